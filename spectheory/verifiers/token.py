"""What every token rule shares: the standard residual, the engine's loop over a block, and its exact outcomes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from ..arrays import Array, align, maximum, to_law, to_numpy, total, where, zeros_like
from ..errors import CostError, DataError
from ..pmf import check_ids
from ..pmf import residual as standard_residual
from ..protocols import Block, Coins, TokenVerifier, Verdict, depends_on_rejected

# Without a closed-form correction each possible rejected token costs one residual: V residuals of V tokens.
CORRECTION_CAP = 4096
# The joint law of drafted and emitted token is V^2 numbers, and up to V^4 operations.
JOINT_CAP = 64
# A rule's class attribute SWEEP: the parameter that trades deviation for acceptance, and the values an audit tries.
Sweep = tuple[str, tuple[float, ...]]


class TokenRule(ABC):
    """Base class of token rules; subclasses give `acceptance` and maybe `residual`.

    A rule whose residual depends on the rejected token sets `residual_depends_on_rejected` and gives `correction`.
    """

    residual_depends_on_rejected: ClassVar[bool] = False

    @abstractmethod
    def acceptance(self, p: Array, q: Array) -> Array:
        """A(x), (..., V): the probability of accepting a drafted x."""

    def residual(self, p: Array, q: Array, rejected: Array | None = None) -> Array:
        """r, (..., V): the law of the token emitted after a rejection; the standard residual unless overridden."""
        return standard_residual(p, q)

    def correction(self, p: Array, q: Array) -> Array:
        """sum_x q(x) (1 - A(x)) r(. | x), (..., V): P(reject) r where r is the same for every x, else a loop over x."""
        if self.residual_depends_on_rejected:
            return _summed_residuals(self, p, q)
        drafted = self.drafted(p, q)
        return total(drafted * (1 - self.acceptance(p, q)), keepdims=True) * self.residual(p, q)

    def drafted(self, p: Array, q: Array) -> Array:
        """The law that drafts are really drawn from, (..., V)."""
        return q

    def start(self) -> None:
        """Token rules carry no state from block to block."""
        return

    def verify(self, block: Block, state: Any = None, rng: Any = None) -> Verdict:
        """Run the rule on one block: see `verify_block`."""
        return verify_block(self, block, rng)

    def outcomes(self, block: Block, state: Any = None) -> list[tuple[Any, int, Array, Any]]:
        """[(probability, accepted, next law (V,), state)] of a block: see `block_outcomes`."""
        return block_outcomes(self, block)


def correction(verifier: TokenVerifier, p: Array, q: Array) -> Array:
    """sum_x d(x) (1 - A(x)) r(. | x), (..., V), d the law drafted from, of any token verifier.

    Uses the verifier's own closed form if it has one. Raises CostError when the residual takes the rejected token,
    has no closed form and V exceeds CORRECTION_CAP.
    """
    own = getattr(verifier, "correction", None)
    if own is not None:
        return own(p, q)
    if depends_on_rejected(verifier):
        return _summed_residuals(verifier, p, q)
    p, q = align(p, q)
    return total(drafted(verifier, p, q) * (1 - verifier.acceptance(p, q)), keepdims=True) * verifier.residual(p, q)


def step_weights(verifier: Any, p: Array, q: Array) -> tuple[Array, Array]:
    """How the next token comes about, (n, V) each for laws (n, V): mass emitted by accepting, and by the correction.

    Their sum is the output law. Shared randomness (`joint`) counts equal draft and output as accepted.
    """
    joint = getattr(verifier, "joint", None)
    if joint is None:
        return drafted(verifier, p, q) * verifier.acceptance(p, q), maximum(correction(verifier, p, q), 0)
    pairs = np.stack([np.asarray(joint(a, b)) for a, b in zip(p, q)])
    accepted = np.einsum("...ii->...i", pairs)
    return accepted, pairs.sum(axis=-2) - accepted


def by_blocks(verifier: Any) -> bool:
    """True if the rule's law must come from its own `outcomes`: it decides more than token by token."""
    own = getattr(type(verifier), "outcomes", None)
    return own is not None and own is not TokenRule.outcomes


def _summed_residuals(verifier: TokenVerifier, p: Array, q: Array) -> Array:
    """The correction by its definition: one residual for each token that can be rejected."""
    p, q = align(p, q)
    rejection, size = drafted(verifier, p, q) * (1 - verifier.acceptance(p, q)), q.shape[-1]
    if size > CORRECTION_CAP:
        raise CostError(
            f"the residual of {type(verifier).__name__} takes the rejected token, which costs V^2 = {size}^2 a row "
            f"(cap: V = {CORRECTION_CAP}); give it a closed-form `correction(p, q)`, or drop the parameter if it is ignored"
        )
    out = zeros_like(rejection)
    for x in range(size):
        weight = rejection[..., x : x + 1]
        if bool((weight != 0).any()):  # a token never rejected may have no residual
            out = out + where(weight != 0, weight * verifier.residual(p, q, x), zeros_like(out))  # type: ignore[call-arg]
    return out


def drafted(verifier: TokenVerifier, p: Array, q: Array) -> Array:
    """The law (..., V) that the verifier's drafts are really drawn from: q unless it says otherwise."""
    own = getattr(verifier, "drafted", None)
    return q if own is None else own(p, q)


def draw_coins(rng: np.random.Generator | Coins | None, size: int) -> Coins:
    """K acceptance uniforms, then one for the residual: the order in which a Generator is consumed. Raises DataError for None."""
    if isinstance(rng, Coins):
        return rng
    if rng is None:
        raise DataError("this verifier is random: pass rng, a numpy Generator or Coins")
    uniforms = rng.random(size + 1)
    return Coins(uniforms[:size], uniforms[size:])


def inverse_cdf(law: Array, u: float) -> int:
    """The token whose cumulative interval [c(x-1), c(x)) holds u in [0, 1); never a token without mass."""
    cumulative = np.cumsum(np.asarray(law, dtype=np.float64))
    x = int(np.searchsorted(cumulative, u * float(cumulative[-1]), side="right"))
    return min(x, int(np.flatnonzero(law)[-1]))


def verify_block(verifier: TokenVerifier, block: Block, rng: np.random.Generator | Coins | None) -> Verdict:
    """Accept drafts from the left until the first rejection; then emit the residual draw, or the bonus token from p.

    The test is u < A(x), strictly, so a coin of exactly 0 never accepts a token of probability 0. Raises DataError for
    ids out of range, drafted tokens with q = 0, or a block without laws.
    """
    p, q = laws_of(block)
    coins = draw_coins(rng, block.size)
    for i, x in enumerate(block.tokens):
        if not coins.accept[i] < verifier.acceptance(p[i], q[i])[x]:
            takes = "rejected" if depends_on_rejected(verifier) else None
            law = verifier.residual(p[i], q[i], **({takes: int(x)} if takes else {}))
            return Verdict(i, np.append(block.tokens[:i], inverse_cdf(law, float(coins.residual[0]))))
    bonus = inverse_cdf(p[block.size], float(coins.residual[0]))
    return Verdict(block.size, np.append(block.tokens, bonus))


def block_outcomes(verifier: TokenVerifier, block: Block) -> list[tuple[Any, int, Array, Any]]:
    """Exact outcomes of one block of given drafts: [(probability, accepted, law of the next token (V,), None)]."""
    p, q = laws_of(block)
    return list(_outcomes(verifier, block, p, q))


def _outcomes(verifier: TokenVerifier, block: Block, p: Array, q: Array) -> Iterator[tuple[Any, int, Array, Any]]:
    reach: Any = 1
    for i, x in enumerate(block.tokens):
        a = verifier.acceptance(p[i], q[i])[x]
        if a < 1:
            extra = {"rejected": int(x)} if depends_on_rejected(verifier) else {}
            yield reach * (1 - a), i, verifier.residual(p[i], q[i], **extra), None
        reach = reach * a
    if reach > 0:
        yield reach, block.size, p[block.size], None


def laws_of(block: Block) -> tuple[Array, Array]:
    """p (K+1, V) and q (K, V) of a block, checked: shapes, ids in range, no drafted token with q = 0. Raises DataError."""
    if block.p is None or block.q is None:
        raise DataError("this verifier needs the laws p and q of the block")
    p, q = to_law(block.p), to_law(block.q)
    if p.ndim != 2 or p.shape[0] != block.size + 1 or q.shape != (block.size, p.shape[1]):
        raise DataError(
            f"a block of K = {block.size} drafts needs p (K+1, V) and q (K, V), not {p.shape} and {q.shape}"
        )
    for name, law in (("p", p), ("q", q)):
        if bool((law != law).any()):
            row, token = (int(i) for i in np.argwhere(to_numpy(law != law))[0])
            raise DataError(f"{name} is NaN in row {row} at token {token}")
    check_ids(block.tokens, p.shape[1], "drafted token", q)
    return p, q


def capped_ratio(p: Array, q: Array) -> Array:
    """min(1, p / q), with 1 where q = 0: such a token is never drafted, so its acceptance is irrelevant."""
    p, q = align(p, q)
    p, q = p + 0 * q, q + 0 * p
    over = (q > p) & (q > 0)
    return where(over, p / where(over, q, maximum(q, 1)), 1 + zeros_like(p))
