"""Saves a report: report.json, rows.npz, report.html and its figures. Each file is written aside, then renamed."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..errors import DataError
from ..results import AuditReport
from .html import page
from .run import clear_parts


def write(report: AuditReport, out: Path) -> list[Path]:
    """Save to the directory `out` and return what was written. Figures need matplotlib (the extra `plot`).

    Raises DataError naming the file if it cannot be written; files already written stay whole.
    """
    figures = write_figures(report, out)
    images = [path for path in figures if path.suffix == ".svg"]
    paths = [_save(out / "report.json", lambda f: f.write(report.dumps().encode()))]
    if report.rows:
        paths.append(_save(out / "rows.npz", lambda f: np.savez_compressed(f, **report.rows)))
    text = page(report, [path.read_text(encoding="utf-8") for path in images])
    paths.append(_save(out / "report.html", lambda f: f.write(text.encode())))
    clear_parts(out)
    return paths + figures


def can_draw() -> bool:
    """Whether matplotlib (the extra `plot`) is installed."""
    return find_spec("matplotlib") is not None


def write_figures(report: AuditReport, out: Path) -> list[Path]:
    """Save the figures of a report (SVG, PDF and the data drawn) to `out`; none without matplotlib. Raises DataError."""
    if not can_draw():
        return []
    from ..figures import audit as figures

    try:
        out.mkdir(parents=True, exist_ok=True)
        return figures.save_all(report.to_json(), out, report.rows)
    except OSError as error:
        raise DataError(f"{out}: cannot write the figures: {error.strerror or error}") from error


def _save(path: Path, fill: Callable[[IO[bytes]], Any]) -> Path:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            fill(file)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise DataError(f"{path}: cannot write: {error.strerror or error}") from error
    return path
