"""What every experiment shares: settings from config.toml, results and figures into a folder, a check against expected.json."""

from __future__ import annotations

import json
import math
import sys
import tomllib
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click

# name -> (figure, the data that was drawn)
Figures = Mapping[str, tuple[Any, Mapping[str, Any]]]
Run = Callable[[dict[str, Any]], tuple[dict[str, Any], Figures]]


def load_config(folder: Path, quick: bool) -> dict[str, Any]:
    """The settings of an experiment; with `quick` its [quick] table overrides them."""
    config = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
    changes = config.pop("quick", {})
    return config | changes if quick else config


def differences(found: Any, expected: Any, where: str = "results") -> list[str]:
    """Where two nested results differ: numbers by more than 1e-6 relative and 1e-9 absolute, everything else at all."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        odd = [f"{where}.{k}: only in one of the two" for k in sorted(set(found) ^ set(expected))]
        return odd + [d for k in expected if k in found for d in differences(found[k], expected[k], f"{where}.{k}")]
    if isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        return [d for i, (a, b) in enumerate(zip(found, expected)) for d in differences(a, b, f"{where}[{i}]")]
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (found, expected))
    same = math.isclose(found, expected, rel_tol=1e-6, abs_tol=1e-9) if numbers else found == expected
    return [] if same else [f"{where}: {found!r}, expected {expected!r}"]


def drawn(report: Any) -> dict[str, tuple[Any, Mapping[str, Any]]]:
    """name -> (figure, data) of the figures that an audit report asks for."""
    wanted = report.to_json()["extra"].get("figures", [])
    modules = {w["name"]: import_module(f"spectheory.figures.{w['module']}") for w in wanted}
    return {w["name"]: (getattr(modules[w["name"]], w["function"])(w["data"]), w["data"]) for w in wanted}


def experiment(run: Run, file: str) -> None:
    """Make `run` (settings -> results, figures) the command of the folder that `file` lies in."""
    folder = Path(file).resolve().parent

    @click.command(help=run.__doc__)
    @click.option("--quick", is_flag=True, help="The settings of CI.")
    @click.option("--check", is_flag=True, help="Compare with expected.json (of the quick mode).")
    @click.option("--out", type=click.Path(path_type=Path), default=Path("out") / folder.name, show_default=True)
    def command(quick: bool, check: bool, out: Path) -> None:
        from spectheory.figures.style import save

        results, figures = run(load_config(folder, quick))
        out.mkdir(parents=True, exist_ok=True)
        (out / "results.json").write_text(json.dumps(results, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        for name, (figure, data) in figures.items():
            save(figure, out / name, data)
        click.echo(json.dumps(results, indent=1))
        if check:
            found = differences(results, json.loads((folder / "expected.json").read_text(encoding="utf-8")))
            click.echo("\n".join(found) or "as expected", err=True)
            sys.exit(bool(found))

    command()
