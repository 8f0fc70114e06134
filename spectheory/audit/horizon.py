"""How far do whole continuations drift: the unbiased estimate on a real pair of language models (theorem Q9)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..arrays import Array
from ..errors import UsageError
from ..montecarlo.estimate import Progress, SequenceEstimate, estimate_sequence
from ..results import AuditReport
from .plan import plan


def powers(horizon: int) -> list[int]:
    """1, 2, 4, ... up to `horizon`, which closes the list. Raises UsageError below 1."""
    if horizon < 1:
        raise UsageError(f"the horizon must be >= 1 token, not {horizon}")
    return [*(2**i for i in range(horizon.bit_length()) if 2**i < horizon), horizon]


@dataclass(frozen=True)
class _Pair:
    """A causal pair behind one prompt, with the identity that a store of its paths is known by."""

    model: Any
    fingerprint: str

    @property
    def vocab_size(self) -> int:
        return int(self.model.vocab_size)

    def laws(self, prefixes: Array) -> tuple[Array, Array]:
        laws: tuple[Array, Array] = self.model.laws(prefixes)
        return laws


def run_pair(
    verifier: Any,
    target: str,
    draft: str,
    *,
    horizon: int,
    prompt: str | None = None,
    block_size: int = 4,
    paths: int = 64,
    half_width: float = 0.0,
    alpha: float = 0.05,
    batch: int = 16,
    seed: int = 0,
    device: str = "cpu",
    out: Path | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """TV between the rule's and the target's continuations of one `prompt`, at 1, 2, 4, ..., `horizon` tokens.

    `target`, `draft` as `models.causal.load_pair` takes them; temperature 1. End of text is a token like others. With
    `out`, finished batches of paths are kept there and a rerun goes on from them. Raises as `estimate_sequence`.
    """
    from ..logits import PROMPTS
    from ..logits.extract import read_prompts
    from ..models.causal import load_pair, load_tokenizer

    one, lengths = plan(verifier, None, None, False), powers(horizon)
    text = read_prompts(PROMPTS)[0] if prompt is None else prompt
    ids = [int(i) for i in load_tokenizer(target)(text).input_ids]
    if not ids:
        raise UsageError("the prompt has no tokens")
    name = f"{target} {draft} {ids}"
    estimate = estimate_sequence(
        verifier,
        _Pair(load_pair(target, draft, device, ids), name),
        horizons=lengths,
        block_size=block_size,
        paths=paths,
        half_width=half_width,
        alpha=alpha,
        batch=batch,
        seed=seed,
        store=None if out is None else out / "paths.npz",
        progress=progress,
    )
    last = estimate.deviation[-1]
    return AuditReport(
        verifier=one.spec(),
        source={"name": repr(text), "models": {"target": target, "draft": draft}},
        claim="",
        verdict=f"a {horizon}-token continuation changes with probability in [{last.lower:.3g}, {last.upper:.3g}]",
        summary={"sequence": {"block": block_size, "paths": len(estimate.values["engine"]), "curve": _curve(estimate)}},
        extra={"sections": [_section(estimate, block_size)], "figures": [_figure(estimate)]},
    )


def _curve(estimate: SequenceEstimate) -> list[dict[str, Any]]:
    columns = zip(estimate.horizons, estimate.deviation, estimate.engine, estimate.target)
    return [{"length": t, "deviation": d, "engine": e, "target": p} for t, d, e, p in columns]


def _section(estimate: SequenceEstimate, block_size: int) -> dict[str, Any]:
    level, count = 100 * (1 - estimate.alpha), len(estimate.values["engine"])
    rows = [
        [t, d.estimate, d.lower, d.upper, e.estimate, p.estimate]
        for t, d, e, p in zip(estimate.horizons, estimate.deviation, estimate.engine, estimate.target)
    ]
    return {
        "title": "Probability that a continuation changes: TV(rule, target) by length",
        "columns": ["tokens", "estimate", "lower", "upper", "mean over rule's paths", "mean over target's paths"],
        "rows": rows,
        "notes": [
            f"blocks of K = {block_size}; {count} paths drawn under the rule, {count} under the target; the same paths serve every length.",
            f"all intervals hold at once with {level:g} % confidence, whenever the sampling stopped "
            "(betting confidence sequences, 2010.09686).",
        ],
    }


def _figure(estimate: SequenceEstimate) -> dict[str, Any]:
    series = {"low": [d.lower for d in estimate.deviation], "high": [d.upper for d in estimate.deviation]}
    data = {
        "lengths": list(estimate.horizons),
        "upper": {},
        "lower": {},
        "estimate": {"middle": [d.estimate for d in estimate.deviation], **series},
    }
    return {"module": "sequence", "function": "horizon", "name": "horizon", "data": data}
