"""Our docstrings are plain text with Markdown code spans; Sphinx reads reStructuredText. This bridges the two."""

from __future__ import annotations

import re
from typing import Any


def to_rst(lines: list[str]) -> list[str]:
    """Code spans become literals, everything else that reStructuredText would read as markup is escaped."""
    out, indented = [], False
    for line in lines:
        if line.strip():
            example = line.lstrip().startswith((">>>", "...")) or (indented and line.startswith(" "))
            indented = example or line.startswith("    ")
            out.append(line if example else _escape(line))
        else:
            indented = False
            out.append(line)
    return out


def _escape(line: str) -> str:
    pieces = re.split(r"`+([^`]+)`+", line)  # text, code, text, code, ...
    return "".join(f"``{piece}``" if i % 2 else re.sub(r"([\\*_|])", r"\\\1", piece) for i, piece in enumerate(pieces))


def _process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = to_rst(lines)


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True}
