"""rotalabs-accel: `verify_tokens` as its `speculative_decode` calls it, and the step it documents as exact, `rejection_sample`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from .bridge import adapter, ids, log_probs, package, plain, randomness


@adapter("rotalabs-accel", "torch")
def verify_tokens(draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any) -> tuple[Any, int]:
    """One forward pass of the target, then the tests: temperature 1 and the library's default top_p of 0.9.

    The library hands over the probability of each drafted token only, not the draft's law.
    """
    return _verify(draft_tokens, draft_probs, target_probs, rng, 0.9)


@adapter("rotalabs-accel", "torch")
def verify_tokens_unfiltered(draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any) -> tuple[Any, int]:
    """The same with top_p = 1."""
    return _verify(draft_tokens, draft_probs, target_probs, rng, 1.0)


@adapter("rotalabs-accel", "torch")
def rejection_sample(draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any) -> tuple[Any, int]:
    """Its single step, in a loop that stops at the first rejection; the bonus token is ours, drawn from the target."""
    sampling, torch = package("rotalabs_accel.speculative.sampling"), package("torch")
    logits, drafts = log_probs(target_probs), ids(draft_tokens)
    p, q = logits.exp(), torch.as_tensor(np.asarray(draft_probs, dtype=np.float32))
    with randomness(rng):
        for i, x in enumerate(drafts):
            kept, token = sampling.rejection_sample(p[i, x], q[i, x], x, logits[i])
            if not kept:
                return np.append(draft_tokens[:i], int(token)), i
        return np.append(draft_tokens, int(torch.multinomial(p[-1], num_samples=1))), len(draft_tokens)


def _verify(draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any, top_p: float) -> tuple[Any, int]:
    core = package("rotalabs_accel.speculative.core")

    def target(input_ids: Any, **cache: Any) -> Any:
        return SimpleNamespace(logits=log_probs(target_probs)[None], past_key_values=None)

    own = np.asarray(draft_probs, dtype=np.float32)[np.arange(len(draft_tokens)), draft_tokens]
    with randomness(rng):
        tokens, accepted, _ = core.verify_tokens(
            target, ids([[0]]), ids(draft_tokens), package("torch").as_tensor(own), None, temperature=1.0, top_p=top_p
        )
    return plain(tokens), int(accepted)
