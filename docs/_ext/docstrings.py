"""Our docstrings are plain text with Markdown code spans; Sphinx reads reStructuredText. This bridges the two."""

from __future__ import annotations

import re
from typing import Any


def to_rst(text: str) -> str:
    """Code spans become literals, also across a line break; what else reStructuredText would read as markup is escaped."""
    pieces = re.split(r"`+([^`]+)`+", text)  # text, code, text, code, ...
    return "".join(
        f"``{' '.join(piece.split())}``" if i % 2 else re.sub(r"([\\*_|])", r"\\\1", piece)
        for i, piece in enumerate(pieces)
    )


def _process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = to_rst("\n".join(lines)).split("\n")


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True}
