"""How far does a rule drift on recorded rows, and what does it buy: exact row by row, with intervals for what lies beyond."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ..protocols import supports
from ..results import AuditReport
from ..verifiers.token import by_blocks
from .compare import compare
from .eos import expected_tokens, truncate_at_eos
from .plan import load_rule, plan
from .run import Progress, audit_token_rules, join
from .source import open_source
from .verdict import decide, exit_code

# Rules that carry a request's budget or share their noise with the draft have audits of their own, by class name.
SPECIAL = {"RegretBudget": "asd", "ExponentialRace": "ersd"}


def run(
    verifier: Any,
    source: Any = None,
    *,
    max_deviation: float | None = None,
    request: Mapping[str, Any] | None = None,
    block: int | None = None,
    out: str | Path | None = None,
    shards: Sequence[str] | None = None,
    progress: Progress | None = None,
    sweep: bool = True,
) -> AuditReport:
    """Audit one rule: its exact deviation from the target and its acceptance, row by row.

    `source`: a path to a recording, a reader, any iterable of `Block`s, or None for the embedded sample. `max_deviation`
    states a claim about the mean one-step deviation (0 claims losslessness). `request`: temperature, top_k, top_p,
    min_p for both sides. `block` sets the draft length for expected tokens per call (default: as recorded). With `out`,
    finished shards are kept there and a rerun goes on from them. `shards` names the shards to audit: reports of
    different shards join (`join`) to the report of all. `progress(done, total)` is called after each shard.

    Bad rows are collected in `report.errors`; the good ones are reported. Raises UsageError for settings out of range or
    a rule that breaks its contract, DataError for a source that cannot be read at all.
    """
    special = next((SPECIAL[c.__name__] for c in type(verifier).__mro__ if c.__name__ in SPECIAL), None)
    options = {"max_deviation": max_deviation, "request": request, "block": block, "out": out, "progress": progress}
    if special is None and "outcomes" in supports(verifier) and "acceptance" not in supports(verifier):
        special = "blocks"
    if special is None and by_blocks(verifier):  # its single steps do not tell how its blocks behave
        special = "joint"
    if special is not None:
        report: AuditReport = import_module(f".{special}", __name__).run(verifier, source, **options)
        return report
    one = plan(verifier, request, block, sweep)
    opened = open_source(source, one.request)
    folder = None if out is None else Path(out)
    return audit_token_rules([one], opened, max_deviation=max_deviation, out=folder, shards=shards, progress=progress)[
        0
    ]


def write(report: AuditReport, out: str | Path) -> list[Path]:
    """Save report.json, rows.npz, report.html and the figures to `out`: see `save.write`."""
    from .save import write as save

    return save(report, Path(out))


__all__ = [
    "compare",
    "decide",
    "exit_code",
    "expected_tokens",
    "join",
    "load_rule",
    "open_source",
    "run",
    "truncate_at_eos",
    "write",
]
