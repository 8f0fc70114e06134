"""Rules that decide a block at a time: exact accepted lengths on the recorded drafts, and a search for joint faults.

A row-by-row audit cannot see them: their faults show only in the law of several tokens. So the rule is also run on small
models made of recorded rows, where the law of the whole engine is enumerated: a lossless rule is lossless there, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import DataError, UsageError
from ..exact import sequence_deviation
from ..models import Tabular, merge_tokens
from ..protocols import Block, supports
from ..results import AuditReport, Interval
from ..verifiers import Standard
from .plan import label_of, plan, settings_of, title_of
from .rows import laws
from .run import Progress, _numbered
from .source import open_source
from .verdict import HOLDS, NONE, REFUTED, ROUNDING

# The small models: groups of tokens (top token, other tokens with p >= q, the rest), drafts in a block, tokens followed.
GROUPS, DRAFTS, TOKENS = 3, 2, 4


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
    """Audit a rule with `outcomes`. `max_deviation` claims a bound on the mean deviation on the small models.

    Raises UsageError for a rule without `outcomes`, DataError if no block has full laws.
    """
    name = type(verifier).__name__
    if "outcomes" not in supports(verifier):
        raise UsageError(
            f"{name} has no acceptance(p, q) and residual(p, q), nor outcomes(block, state): see `spectheory list`"
        )
    if max_deviation is not None and not 0 <= max_deviation <= 1:
        raise UsageError(f"--max-deviation must lie in [0, 1], not {max_deviation}")
    one = plan(Standard(), request, block, False)  # its request prepares the rows
    opened = open_source(source, one.request)
    errors = opened.unfinished()
    kept: list[tuple[Array, Array, Array]] = []
    for i in range(len(opened.shards)):
        for b in _numbered(opened, i):
            try:
                kept.append(_measure(verifier, b, laws(one, b, opened.warped)[:2]))
            except DataError as error:
                errors.append({"shard": b.info["file"], "row": b.info["rows"][0], "cause": str(error)})
        errors += opened.errors
        if progress is not None:
            progress(i + 1, len(opened.shards))
    if not kept:
        raise DataError(f"{opened.name}: no block with full laws")
    ours, theirs, deviation = (np.array(x) for x in zip(*kept))
    return _report(_spec(verifier), opened.spec(), ours, theirs, deviation, max_deviation, errors)


def _measure(verifier: Any, block: Block, pair: tuple[Array, Array]) -> tuple[float, float, float]:
    """(expected accepted drafts, the same by the standard rule, deviation on the small model) of one recorded block."""
    p, q = pair
    if block.p is None or len(block.p) <= block.size:
        raise DataError("the block has no bonus row")
    whole = Block(block.tokens, np.vstack([p, block.p[block.size :]]), q)
    start = getattr(verifier, "start", lambda: None)
    accepted = [
        float(sum(mass * n for mass, n, _, _ in rule.outcomes(whole, state)))
        for rule, state in ((verifier, start()), (Standard(), None))
    ]
    model = small_model(p, q)
    return accepted[0], accepted[1], float(sequence_deviation(verifier, model, length=TOKENS, block_size=DRAFTS))


def _spec(verifier: Any) -> dict[str, Any]:
    label, settings, cls = label_of(verifier), settings_of(verifier), type(verifier)
    title = title_of(verifier, label, settings)
    return {"title": title, "rule": label, "settings": settings, "class": f"{cls.__module__}:{cls.__qualname__}"}


def small_model(p: Array, q: Array) -> Tabular:
    """Recorded rows (K, V) as an order-1 model over GROUPS tokens: context g takes row g mod K, its tokens merged."""
    rows = []
    for g in range(GROUPS):
        a, b = p[g % len(p)], q[g % len(q)]
        groups = np.where(np.arange(len(a)) == a.argmax(), 0, np.where(a >= b, 1, 2))
        spare = np.arange(GROUPS)  # every group must exist: one massless token each
        rows.append([merge_tokens(np.append(x, np.zeros(GROUPS)), np.append(groups, spare)) for x in (a, b)])
    return Tabular(np.stack([r[0] for r in rows]), np.stack([r[1] for r in rows]))


def _report(
    spec: dict[str, Any],
    source: dict[str, Any],
    ours: Array,
    theirs: Array,
    deviation: Array,
    limit: float | None,
    errors: list[Any],
) -> AuditReport:
    mean = float(deviation.mean())
    claim, verdict = "", NONE
    if limit is not None:
        what = "lossless" if limit == 0 else f"mean deviation <= {limit:g}"
        claim = f"{what} over {TOKENS} tokens of small models made of the recorded rows"
        verdict = HOLDS if mean <= limit + ROUNDING else REFUTED
    values = {
        "expected tokens per call, this rule": Interval.exact(1 + float(ours.mean())),
        "expected tokens per call, standard rule": Interval.exact(1 + float(theirs.mean())),
        f"deviation over {TOKENS} tokens, small models, mean": Interval.exact(mean),
        f"deviation over {TOKENS} tokens, small models, largest": Interval.exact(float(deviation.max())),
    }
    section = {
        "title": "A rule that decides by blocks",
        "columns": ["on the recorded blocks", "exact"],
        "rows": [[k, v.upper if v.upper > ROUNDING else 0.0] for k, v in values.items()],
        "notes": [
            "expected tokens: over the rule's coins, given the recorded drafts; end of text is not looked at.",
            f"small models: each block's rows merged to {GROUPS} tokens (the top one, other p >= q, the rest), one row a context, "
            f"K = {DRAFTS}. A lossless rule deviates by 0 there; a deviation refutes losslessness, its size is that of these models.",
        ],
    }
    return AuditReport(
        verifier=spec,
        source=source,
        claim=claim,
        verdict=verdict,
        summary={"blocks": len(ours), "rows": len(ours), "by_blocks": values},
        errors=errors,
        extra={"sections": [section]},
    )
