"""economize's registered verifiers on chain drafts, a batch at a time, with its sampler at temperature 1 and top_p 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...protocols import Coins
from ..blackbox.calls import commit
from .bridge import adapter, ids, log_probs, package, plain, randomness


@adapter("economize", "torch", batched=True)
def rejection(draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any) -> tuple[Any, Any]:
    """The lossless verifier for sampling."""
    return _verify("rejection", draft_tokens, draft_probs, target_probs, rng)


@adapter("economize", "torch")
def rejection_single(draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any) -> tuple[Any, int]:
    """The same verifier on its path for one row."""
    decoding, verifiers = package("economize.decoding.config"), package("economize.decoding.verifiers")
    verifier = verifiers.VERIFIERS.get("rejection")(decoding.DecodeConfig(verifier="rejection"))
    with randomness(rng):
        accepted, following = verifier.verify(
            log_probs(target_probs), draft_tokens.tolist(), _tensor(draft_probs), _selector(rng), ids([0]), 1
        )
    return np.append(draft_tokens[:accepted], following), accepted


@adapter("economize", "torch", batched=True)
def typical(draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any) -> tuple[Any, Any]:
    """Typical acceptance (documented as lossy) at its default options."""
    return _verify("typical", draft_tokens, draft_probs, target_probs, rng)


@adapter("economize", "torch", batched=True)
def accept_all(draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any) -> tuple[Any, Any]:
    """Every draft is final (documented as lossy)."""
    return _verify("accept_all", draft_tokens, draft_probs, target_probs, rng)


def _verify(name: str, draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any) -> tuple[Any, Any]:
    decoding, verifiers = package("economize.decoding.config"), package("economize.decoding.verifiers")
    protocols = package("economize.decoding.protocols")
    verifier = verifiers.VERIFIERS.get(name)(decoding.DecodeConfig(verifier=name))
    rows, size = draft_tokens.shape
    draft = protocols.Draft(ids(draft_tokens), [size] * rows, probs=_tensor(draft_probs))
    with randomness(rng):
        accepted, following = verifier.verify_batch(
            log_probs(target_probs), draft, _selector(rng), ids(np.zeros((rows, 1 + size))), [1] * rows
        )
    return commit(draft_tokens, plain(accepted), plain(following)), plain(accepted)


def _selector(rng: Any) -> Any:
    """economize keeps its generator in the sampler: a fresh one, seeded from ours."""
    seed = 0 if isinstance(rng, Coins) else int(rng.integers(2**62))
    return package("economize.decoding.selectors").TopPSampler(temperature=1.0, top_p=1.0, seed=seed)


def _tensor(laws: Any) -> Any:
    return package("torch").as_tensor(np.asarray(laws, dtype=np.float32))
