"""How results look: a live table on a terminal, a line a claim elsewhere, and how to see a failure again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..results import CheckResult
from ..theory.registry import Theorem

LONG = 12  # entries of a law that are written out


def describe(instance: Any) -> str:
    """An instance as text: laws as fractions, long rows by their largest entries."""
    if isinstance(instance, np.ndarray) and instance.ndim == 1 and len(instance) > LONG:
        top = np.argsort(-instance, kind="stable")[:4]
        return f"<{len(instance)} entries, largest " + ", ".join(f"{i}: {instance[i]:.6g}" for i in top) + ">"
    if isinstance(instance, np.ndarray | list | tuple):
        entries = ", ".join(describe(x) for x in instance)
        return f"({entries})" if isinstance(instance, tuple) else f"[{entries}]"
    return str(instance) if isinstance(instance, Fraction | np.generic) else repr(instance)


def again(result: CheckResult, examples: int, mutate: bool) -> str:
    """The command that shows a failure again."""
    return f"spectheory verify {result.claim} --seed {result.seed} --examples {examples}" + " --mutate" * mutate


def failure(result: CheckResult, examples: int, mutate: bool) -> str:
    """Why a claim failed, the instance, how to see it again; "" if it holds."""
    if result.ok:
        return ""
    if mutate and result.status == "false":
        cause = "     its replacement is not violated"
    elif result.error:
        cause = f"     {result.error}" + f"\n     on {result.witness}" * bool(result.witness)
    elif result.witness and result.status == "false" and result.golden + result.families + result.recorded:
        cause = f"     known to be false, but not as registered, see {result.witness}"
    elif result.witness:
        cause = f"     violated by {result.witness}"
    else:
        cause = "     known to be false, but the search finds no violation"
    return f"{cause}\n     again: {again(result, examples, mutate)}"


def line(result: CheckResult) -> str:
    """One result on one line."""
    fixed = [f"{n} {kind}" for kind, n in _fixed(result) if n]
    counts = ", ".join([f"{result.examples} searched", *fixed])
    return f"{'ok  ' if result.ok else 'FAIL'} {result.claim:<20} {result.status:<11} {counts}; worst gap {result.worst:.3g}"


def _fixed(result: CheckResult) -> list[tuple[str, int]]:
    return [("golden", result.golden), ("families", result.families), ("recorded", result.recorded)]


def summary(results: Sequence[CheckResult], mutate: bool) -> str:
    """The count of claims in one line."""
    false, bad = sum(r.status == "false" for r in results), sum(not r.ok for r in results)
    if mutate:
        return f"{len(results)} wrong formulas, {bad} caught"
    return f"{len(results)} claims, {false} of them known to be false; {len(results) - bad} as registered, {bad} not"


def live(
    claims: Sequence[Theorem], results: Iterator[CheckResult], examples: int, mutate: bool
) -> Iterator[CheckResult]:
    """Pass `results` on and print them: on a terminal a table a family that fills up, elsewhere a line a claim."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        for result in results:
            print("\n".join(filter(None, [line(result), failure(result, examples, mutate)])), flush=True)
            yield result
        return
    for family, group in itertools.groupby(claims, key=lambda t: t.family):
        yield from _live_family(console, family, list(group), results, examples, mutate)


def _live_family(
    console: Any, family: str, members: Sequence[Theorem], results: Iterator[CheckResult], examples: int, mutate: bool
) -> Iterator[CheckResult]:
    from rich.live import Live
    from rich.text import Text

    done: dict[str, CheckResult] = {}
    with Live(_table(family, members, done), console=console, auto_refresh=False) as view:
        for result in itertools.islice(results, len(members)):
            done[result.claim] = result
            view.update(_table(family, members, done), refresh=True)
            yield result
    for result in done.values():
        if not result.ok:
            console.print(Text(f"FAIL {result.claim}\n{failure(result, examples, mutate)}"))


def _table(family: str, members: Sequence[Theorem], done: dict[str, CheckResult]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=f"Family {family}", title_justify="left", box=SIMPLE_HEAD)
    for name in ("claim", "status", "source"):
        table.add_column(name)
    for name in ("searched", "golden", "families", "recorded", "worst gap"):
        table.add_column(name, justify="right")
    table.add_column("")
    for claim in members:
        r = done.get(claim.id)
        source = claim.source if len(claim.source) <= 32 else claim.source[:31] + "…"
        cells = [claim.id, claim.status, source]
        if r is None:
            cells += ["", "", "", "", "", "[dim]…[/]"]
        else:
            verdict = "[green]ok[/]" if r.ok else "[bold red]FAIL[/]"
            cells += [str(r.examples), *(str(n or "") for _, n in _fixed(r)), f"{r.worst:.2g}", verdict]
        table.add_row(*cells)
    return table
