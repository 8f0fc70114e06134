"""The tutorials live in `notebooks/` beside `docs/`; Sphinx reads pages inside its source folder. A copy bridges the two."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def copy(source: Path, target: Path) -> list[Path]:
    """Copy every notebook that changed and drop copies whose original is gone; links to `../docs/` become `../`."""
    target.mkdir(exist_ok=True)
    originals = sorted(source.glob("*.ipynb"))
    for notebook in originals:
        twin = target / notebook.name
        text = notebook.read_text(encoding="utf-8").replace("](../docs/", "](../")
        if not twin.exists() or twin.read_text(encoding="utf-8") != text:
            twin.write_text(text, encoding="utf-8")
    for twin in target.glob("*.ipynb"):
        if not (source / twin.name).exists():
            twin.unlink()
    return originals


def _copy(app: Any) -> None:
    docs = Path(app.srcdir)
    copy(docs.parent / "notebooks", docs / "tutorials")


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", _copy)
    return {"parallel_read_safe": True}
