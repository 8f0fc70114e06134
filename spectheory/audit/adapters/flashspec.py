"""flashspec's CPU samplers, a batch of blocks at a time, on log-probabilities as its engine holds them."""

from __future__ import annotations

from typing import Any

from ..blackbox.calls import commit
from .bridge import adapter, ids, log_probs, package, plain, randomness


@adapter("flashspec", "torch", batched=True)
def rejection(draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any) -> tuple[Any, Any]:
    """`rejection_step`: Algorithm 1 with the bonus row, the engine's fast path."""
    sampling = package("flashspec.sampling.rejection")
    with randomness(rng) as generator:
        out = sampling.rejection_step(
            ids(draft_tokens), log_probs(draft_probs), log_probs(target_probs), generator=generator
        )
    return _tokens(draft_tokens, out)


@adapter("flashspec", "torch", batched=True)
def one_hot(draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any) -> tuple[Any, Any]:
    """`rejection_step_onehot`: drafts as if deterministic; exact for drafts from any law."""
    sampling = package("flashspec.sampling.rejection")
    with randomness(rng) as generator:
        out = sampling.rejection_step_onehot(ids(draft_tokens), log_probs(target_probs), generator=generator)
    return _tokens(draft_tokens, out)


@adapter("flashspec", "torch", batched=True)
def typical(draft_tokens: Any, draft_probs: Any, target_probs: Any, rng: Any) -> tuple[Any, Any]:
    """`typical_sample` (documented as lossy) at its default threshold; the engine adds the bonus token from the target."""
    torch = package("torch")
    sampling = package("flashspec.sampling.typical")
    size, p = draft_tokens.shape[1], log_probs(target_probs)
    with randomness(rng) as generator:
        kept, first, _ = sampling.typical_sample(
            log_probs(draft_probs), p[:, :size], ids(draft_tokens), size, generator=generator
        )
        bonus = torch.multinomial(p[:, size].exp(), num_samples=1, generator=generator)
    accepted = plain(first).astype(int)
    row = torch.arange(len(kept))
    at = first.long().clamp(max=size - 1)
    following = torch.where(first.long() < size, kept[row, at], bonus[:, 0])
    return commit(draft_tokens, accepted, plain(following)), accepted


def _tokens(draft_tokens: Any, out: Any) -> tuple[Any, Any]:
    accepted, following = plain(out[:, 0]), plain(out[:, 1])
    return commit(draft_tokens, accepted, following), accepted
