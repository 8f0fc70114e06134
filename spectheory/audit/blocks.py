"""Rules that decide a block at a time: what a recorded block earns, exactly over the rule's coins.

Their law is one of whole sequences, so there is no deviation row by row: `exact.sequence_law` has it on small models.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .. import pmf
from .._version import __version__
from ..errors import DataError, UsageError
from ..protocols import Block
from ..results import AuditReport
from ..verifiers.token import capped_ratio
from .eos import expected_tokens
from .plan import label_of, settings_of, title_of
from .rows import join_columns
from .run import Progress, _numbered
from .source import open_source
from .summary import METHOD, _in_order, figure
from .text import interval
from .verdict import NONE


def run(
    verifier: Any,
    source: Any = None,
    *,
    max_deviation: float | None = None,
    request: Mapping[str, Any] | None = None,
    block: int | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Expected tokens per call of a rule with `outcomes`, against the standard rule on the same blocks; as `audit.run`.

    `out` is taken and not used: a block costs too little to keep parts.

    Raises UsageError for a claim about the deviation, or settings that the source cannot apply.
    """
    if max_deviation is not None:
        raise UsageError(f"{label_of(verifier)} decides whole blocks: --max-deviation is about single steps")
    if any(v is not None for v in (request or {}).values()):
        raise UsageError(
            "under other request settings the recorded drafts are no draws from q, which a block rule needs"
        )
    if block is not None and block < 1:
        raise UsageError(f"--block must be at least 1, not {block}")
    opened = open_source(source, {})
    records: list[dict[str, Any]] = []
    errors = opened.unfinished()
    for i in range(len(opened.shards)):
        for one in _numbered(opened, i):
            try:
                records.append(_measure(verifier, one, opened.manifest, block))
            except DataError as error:
                errors.append({"shard": one.info["file"], "row": one.info["rows"][0], "cause": str(error)})
        errors += opened.errors
        if progress is not None:
            progress(i + 1, len(opened.shards))
    if not records and not errors:
        raise DataError(f"{opened.name}: there is no block to audit")
    settings = settings_of(verifier)
    spec = {"title": title_of(verifier, label_of(verifier), settings), "rule": label_of(verifier), "settings": settings}
    spec["class"] = f"{type(verifier).__module__}:{type(verifier).__qualname__}"
    summary, sections = _summary(join_columns(records))
    return AuditReport(
        verifier=spec,
        source=opened.spec(),
        claim="",
        verdict=NONE if records else "no data",
        summary=summary,
        errors=_in_order(errors),
        extra={"sections": sections},
        spectheory_version=__version__,
    )


def _measure(verifier: Any, block: Block, manifest: Mapping[str, Any], most: int | None) -> dict[str, Any]:
    """One row: expected tokens of the block under the rule and under the standard one, end of text respected."""
    if block.size == 0:
        raise DataError("the block has no drafts (K = 0)")
    if block.p is None or block.q is None:
        raise DataError("the block has no laws p and q")
    size = min(most or block.size, block.size)
    if len(block.p) <= size:
        raise DataError("the bonus row of the target is missing: a block rule needs K + 1 target laws")
    p, q = pmf.validate(block.p[: size + 1], "p"), pmf.validate(block.q[:size], "q")
    tokens, ends = block.tokens[:size], np.isin(block.tokens[:size], list(manifest.get("eos_ids") or []))
    cut = Block(tokens, p, q, info=block.info)
    stop = int(np.argmax(ends)) + 1 if ends.any() else size + 1
    earned = sum(float(prob) * min(kept + 1, stop) for prob, kept, *_ in verifier.outcomes(cut, verifier.start()))
    standard = capped_ratio(p[:size], q)[np.arange(size), tokens]
    return {
        "request": np.array([str(block.info["request"])]),
        "tokens": np.array([earned]),
        "standard": np.array([expected_tokens(standard, ends)]),
        "size": np.array([size]),
    }


def _summary(rows: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    if not rows:
        return {"rows": 0}, []
    bounds = (1.0, float(rows["size"].max() + 1))
    names = {"tokens_per_call": "tokens", "standard_tokens_per_call": "standard"}
    figures = {k: figure(rows[v], rows["request"], None, bounds) for k, v in names.items()}
    counts = {"rows": int(rows["size"].sum()), "blocks": len(rows["size"]), "requests": len(set(rows["request"]))}
    columns = ["expected tokens per call", "on data", "population, 95 %", "median"]
    table = [
        [
            label,
            interval(f["on_data"]),
            f"[{f['population'].lower:.4g}, {f['population'].upper:.4g}]",
            f["quantiles"]["median"],
        ]
        for label, f in zip(("this rule", "standard rule"), figures.values())
    ]
    notes = [
        f"on data: exact over the rule's coins, given the recorded drafts. {METHOD}.",
        "a block rule's law is one of whole sequences: exact.sequence_law and exact.sequence_deviation have it on small models.",
    ]
    section = {"title": "What a block earns", "columns": columns, "rows": table, "notes": notes}
    return {**counts, "method": METHOD, **figures}, [section]
