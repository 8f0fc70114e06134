"""sequential-speculative-decoding's rounds, which draft and verify in one function: models that are tables, drafts that are ours."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from .bridge import adapter, ids, log_probs, package, plain, randomness


@adapter("sequential-speculative-decoding", "torch")
def standard(draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any) -> tuple[Any, int]:
    """`standard_speculative_step` at temperature 1."""
    module = package("seqspecdecod.standard_sd")
    return _round(module, module.standard_speculative_step, draft_tokens, draft_probs, target_probs, rng)


@adapter("sequential-speculative-decoding", "torch")
def capped_hsd(draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any) -> tuple[Any, int]:
    """`capped_hsd_step` at temperature 1: hierarchical speculative decoding with capped ratios."""
    module = package("seqspecdecod.capped_hsd")
    return _round(module, module.capped_hsd_step, draft_tokens, draft_probs, target_probs, rng)


def _round(module: Any, step: Any, draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any) -> tuple[Any, int]:
    """One round from a prompt of one token. The module's sampler returns our drafts first, then samples as it always does."""
    p, q, sampler, drafts = (
        log_probs(target_probs),
        log_probs(draft_probs),
        module.sample_from_probs,
        list(ids(draft_tokens)),
    )

    def draft_model(input_ids: Any) -> Any:  # only the last position's logits are read
        return SimpleNamespace(logits=q[input_ids.shape[1] - 1].expand(1, input_ids.shape[1], -1))

    def target_model(input_ids: Any) -> Any:
        return SimpleNamespace(logits=p[None])

    module.sample_from_probs = lambda law: drafts.pop(0) if drafts else sampler(law)
    settings = {"gamma": len(draft_tokens), "draft_temperature": 1.0, "target_temperature": 1.0}
    try:
        with randomness(rng):
            out, accepted, _ = step(draft_model, target_model, ids([[0]]), **settings)
    finally:
        module.sample_from_probs = sampler
    return plain(out[0, 1:]), int(accepted)
