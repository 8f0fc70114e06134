"""Reference pages list what the package exports, so that no page can forget a name.

A fence "```{public} spectheory.pmf" becomes the names in the package's `__all__`; "```{modules} spectheory.theory" every
file of a package, in turn.
"""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from typing import Any

FENCE = re.compile(r"^```\{(public|modules)\} (\S+)\n```$", re.MULTILINE)


def automodule(name: str, imported: bool) -> str:
    extra = "   :imported-members:\n" if imported else ""
    return f"```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n{extra}```\n"


def expand(text: str) -> str:
    def listing(match: re.Match[str]) -> str:
        kind, name = match.groups()
        if kind == "public":
            return automodule(name, imported=True)
        found = sorted(m.name for m in pkgutil.iter_modules(import_module(name).__path__))
        return "\n".join(f"## {x.replace('_', ' ')}\n\n{automodule(f'{name}.{x}', imported=False)}" for x in found)

    return FENCE.sub(listing, text)


def _read(app: Any, name: str, source: list[str]) -> None:
    if name.startswith("reference/"):
        source[0] = expand(source[0])


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}
