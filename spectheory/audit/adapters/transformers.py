"""Hugging Face transformers' `_speculative_sampling`, called as `generate` calls it: batch 1, logits in float32, global generator."""

from __future__ import annotations

from typing import Any

from .bridge import adapter, ids, log_probs, package, plain, randomness


@adapter("transformers", "torch")
def speculative_sampling(draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any) -> tuple[Any, int]:
    """The lossless mode (no ensemble weight), which is what assisted generation uses by default."""
    return _call(draft_tokens, draft_probs, target_probs, rng, None)


@adapter("transformers", "torch")
def ensemble(draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any) -> tuple[Any, int]:
    """`assistant_ensemble_weight = 0.5`: lossy on purpose; its law is (p + q) / 2 exactly, except for the bonus token."""
    return _call(draft_tokens, draft_probs, target_probs, rng, 0.5)


def _call(draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any, weight: float | None) -> tuple[Any, int]:
    sampling = package("transformers.generation.utils")._speculative_sampling
    candidates, q, p = ids(draft_tokens)[None], log_probs(draft_probs)[None], log_probs(target_probs)[None]
    with randomness(rng):
        tokens, accepted = sampling(candidates, q, candidates.shape[1], p, assistant_ensemble_weight=weight)
    return plain(tokens[0]), int(accepted)
