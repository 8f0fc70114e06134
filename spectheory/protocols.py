"""The few shapes that parts of spectheory agree on: blocks, verdicts, verifiers, models. A stranger's class needs no import."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .arrays import Array
from .errors import DataError


@dataclass(frozen=True)
class Truncated:
    """Rows of which only some tokens are known: shapes (..., M) for ids and values, (...) for the rest.

    `ids` int, -1 pads (value 0 there); `p` and `q` the probabilities of those tokens, NaN where a side did not record
    the token. `p_tail`, `q_tail`: mass of the tokens a side did not record; `p_cut`, `q_cut`: no unrecorded token of
    that side is more probable than this. When every value of `ids` is known on both sides and they were recorded,
    `excess` = sum (q - p)_+ and `deficit` = sum (p - q)_+ over the tokens left out make TV exact.
    """

    ids: Array
    p: Array
    q: Array
    p_tail: Array
    q_tail: Array
    p_cut: Array
    q_cut: Array
    excess: Array | None = None
    deficit: Array | None = None


@dataclass(frozen=True)
class Block:
    """One draft block as the engine sees it before verification.

    `tokens` (K,) drafted ids; `p` (K+1, V) target laws (the last row is the bonus position's); `q` (K, V) draft laws;
    `logits` (K+1, V) target logits for greedy rules. `truncated` replaces p and q where only the top was recorded.
    `info` carries provenance (request, position, file, row) into error messages and reports.
    """

    tokens: Array
    p: Array | None = None
    q: Array | None = None
    logits: Array | None = None
    truncated: Truncated | None = None
    info: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", np.asarray(self.tokens))
        if self.tokens.ndim != 1 or (self.tokens.size and not np.issubdtype(self.tokens.dtype, np.integer)):
            raise DataError(
                f"block tokens must be a vector of integer ids, not {self.tokens.dtype} of shape {self.tokens.shape}"
            )

    @property
    def size(self) -> int:
        """Number of drafted tokens K."""
        return int(self.tokens.shape[0])


@dataclass(frozen=True)
class Verdict:
    """What a verifier says of a block: `accepted` drafts (int), the `tokens` it commits (accepted + 1,), its next `state`."""

    accepted: int
    tokens: Array
    state: Any = None


@dataclass
class Coins:
    """Injectable uniforms in [0, 1): `accept` (K,) for the acceptance tests, `residual` (1,) for the draw after the last one."""

    accept: Array
    residual: Array


@runtime_checkable
class TokenVerifier(Protocol):
    """A rule that decides token by token: accept a drafted x with probability A(x), else emit y ~ r.

    Optional: `residual(p, q, rejected)` where the residual depends on the rejected ids; then `correction(p, q)` =
    sum_x q(x) (1 - A(x)) r(. | x) keeps large vocabularies cheap. `drafted(p, q)`: the law really drafted from, if it
    is not q. `joint(p, q)` (V, V): the law of (drafted, emitted) where randomness is shared.
    """

    def acceptance(self, p: Array, q: Array) -> Array: ...
    def residual(self, p: Array, q: Array) -> Array: ...


@runtime_checkable
class BlockVerifier(Protocol):
    """A rule that decides a block at a time and may carry a request's state. A stranger needs `verify` only."""

    def verify(self, block: Block, state: Any, rng: Any) -> Verdict: ...


@runtime_checkable
class Model(Protocol):
    """A target/draft pair as a sequence model."""

    @property
    def vocab_size(self) -> int: ...
    def laws(self, prefixes: Array) -> tuple[Array, Array]:
        """`prefixes` (n, t) int -> target p (n, V) and draft q (n, V)."""
        ...


CAPABILITIES = ("acceptance", "residual", "correction", "drafted", "joint", "start", "verify", "outcomes")


def supports(verifier: object) -> frozenset[str]:
    """The capabilities a verifier offers, by name (see `TokenVerifier` and `BlockVerifier`)."""
    return frozenset(name for name in CAPABILITIES if callable(getattr(verifier, name, None)))


def depends_on_rejected(verifier: object) -> bool:
    """True if the residual law changes with the rejected token: as `residual_depends_on_rejected` declares it, or,

    without that attribute, whenever `residual` takes a parameter `rejected`.
    """
    declared = getattr(verifier, "residual_depends_on_rejected", None)
    if declared is not None:
        return bool(declared)
    residual = getattr(verifier, "residual", None)
    return residual is not None and "rejected" in inspect.signature(residual).parameters
