"""rotalabs-accel's `verify_tokens`, as its `speculative_decode` calls it: one forward pass of the target, then the tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from .bridge import adapter, ids, log_probs, package, plain, randomness


@adapter("rotalabs-accel", "torch")
def verify_tokens(draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any) -> tuple[Any, int]:
    """Temperature 1, top_p 1. The library hands over only the probability of each drafted token, not the draft's law."""
    core = package("rotalabs_accel.speculative.core")

    def target(input_ids: Any, **cache: Any) -> Any:
        return SimpleNamespace(logits=log_probs(target_probs)[None], past_key_values=None)

    own = np.asarray(draft_probs, dtype=np.float32)[np.arange(len(draft_tokens)), draft_tokens]
    with randomness(rng):
        tokens, accepted, _ = core.verify_tokens(
            target, ids([[0]]), ids(draft_tokens), package("torch").as_tensor(own), None, temperature=1.0, top_p=1.0
        )
    return plain(tokens), int(accepted)
