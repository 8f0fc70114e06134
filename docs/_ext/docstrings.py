"""Our docstrings are plain text with Markdown code spans; Sphinx reads reStructuredText. This bridges the two."""

from __future__ import annotations

import re
from typing import Any


def to_rst(text: str) -> str:
    """Code spans become literals, also across a line break; what else reStructuredText would read as markup is escaped."""
    pieces, out = re.split(r"`+([^`]+)`+", text), ""  # text, code, text, code, ..., text
    for i, piece in enumerate(pieces):
        if i % 2:  # a literal may touch no letter: "``Block``\\ s"
            before, after = ("\\ " * c.isalnum() for c in (out[-1:], pieces[i + 1][:1]))
            out += f"{before}``{' '.join(piece.split())}``{after}"
        else:
            out += re.sub(r"([\\*_|])", r"\\\1", piece)
    return out


def _process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = to_rst("\n".join(lines)).split("\n")


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True}
