"""Negative controls: verifiers that are wrong in ways seen in real code, and some that only look wrong.

An audit must reject every specimen with `lossless=False` and none of the others. Each acts on one step; the joint-level
specimens are in `broken_joint`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..arrays import Array, align, argmax, maximum, namespace, one_hot, ones_like, ratio, total, where, zeros_like
from ..pmf import race_agreement, race_joint, softmax, top_k
from ..pmf import residual as standard_residual
from .lenience import Lenience
from .resample_target import ResampleTarget
from .sample_and_match import SampleAndMatch
from .slack import AdditiveSlack
from .standard import Standard
from .token import TokenRule, capped_ratio
from .typical import Typical


class _StandardTest(TokenRule):
    """The standard acceptance test; the specimens below spoil something else."""

    def acceptance(self, p: Array, q: Array) -> Array:
        return capped_ratio(p, q)


class AcceptEverything(TokenRule):
    """Every draft is accepted: the output is the draft's law."""

    def acceptance(self, p: Array, q: Array) -> Array:
        return ones_like(q)


class SoftmaxResidual(_StandardTest):
    """(p - q)_+ sent through a softmax, as if it were logits, instead of being normalised."""

    def residual(self, p: Array, q: Array, rejected: Array | None = None) -> Array:
        p, q = align(p, q)
        return softmax(maximum(p - q, 0))


class DraftedOnlyResidual(_StandardTest):
    """q is subtracted at the drafted token only (a one-hot q where the full row was needed)."""

    residual_depends_on_rejected: ClassVar[bool] = True

    def residual(self, p: Array, q: Array, rejected: Array | None = None) -> Array:
        p, q = align(p, q)
        return standard_residual(p, one_hot(np.asarray(rejected), q) * q)


class ReusedUniform(_StandardTest):
    """The acceptance uniform also drives the residual's inverse CDF (in token order)."""

    def joint(self, p: Array, q: Array) -> Array:
        """Law of (drafted, emitted), (..., V, V): after rejecting x the uniform lies in [A(x), 1)."""
        p, q = align(p, q)
        a, r = self.acceptance(p, q), self.residual(p, q)
        upper = np.cumsum(r, axis=-1)
        lower = upper - r
        emitted = maximum(upper[..., None, :] - np.maximum(lower[..., None, :], a[..., :, None]), 0)
        return q[..., :, None] * (emitted + a[..., :, None] * np.eye(q.shape[-1], dtype=int))


class ReusedRaceNoise(_StandardTest):
    """Drafts by exponential race, and the residual race runs on the same noise."""

    def joint(self, p: Array, q: Array) -> Array:
        """Law of (drafted, emitted), (V, V), by the coupling of the two races."""
        p, q = align(p, q)
        a = self.acceptance(p, q)[:, None]
        return race_joint(self.residual(p, q), q) * (1 - a) + q[:, None] * a * np.eye(q.shape[-1], dtype=int)


class SharedRace(TokenRule):
    """Looks wrong, is exact: one shared exponential race, accepted iff draft and target pick the same token."""

    def acceptance(self, p: Array, q: Array) -> Array:
        """P(the target's race agrees | x won the draft's), (..., V)."""
        p, q = align(p, q)
        return ratio(race_agreement(p, q), q + 0 * p, 1)

    def joint(self, p: Array, q: Array) -> Array:
        """Law of (drafted, emitted), (V, V); the emitted column is p whatever q."""
        return race_joint(p, q)


class GreedyDrafts(_StandardTest):
    """Drafts are argmax q, while the ratio and the residual use the soft q."""

    def drafted(self, p: Array, q: Array) -> Array:
        return one_hot(argmax(q), q)


@dataclass(frozen=True)
class TopKDrafts(_StandardTest):
    """Drafts come from the renormalised top `k` of q, while the ratio and the residual use the raw q."""

    k: int = 2

    def drafted(self, p: Array, q: Array) -> Array:
        return top_k(q, self.k)


@dataclass(frozen=True)
class DraftsFrom(_StandardTest):
    """Drafts come from a fixed other law (say q rounded to bfloat16) than the declared q."""

    law: tuple[float, ...]

    def drafted(self, p: Array, q: Array) -> Array:
        return np.asarray(self.law) + 0 * q


@dataclass(frozen=True)
class WrongTarget(TokenRule):
    """Verifies, exactly, against another law than the request's (a filter ignored or applied in the wrong order)."""

    law: tuple[float, ...]

    def acceptance(self, p: Array, q: Array) -> Array:
        return capped_ratio(np.asarray(self.law) + 0 * p, q)

    def residual(self, p: Array, q: Array, rejected: Array | None = None) -> Array:
        return standard_residual(np.asarray(self.law) + 0 * p, q)


class RatioToMaximum(TokenRule):
    """Accept with p(x) / max p, else resample from p."""

    def acceptance(self, p: Array, q: Array) -> Array:
        p, q = align(p, q)
        return p / namespace(p).max(p, axis=-1, keepdims=True) + 0 * q

    def residual(self, p: Array, q: Array, rejected: Array | None = None) -> Array:
        p, q = align(p, q)
        return p + 0 * q


class GreedyInDisguise(TokenRule):
    """Silently greedy: always commits argmax p."""

    def acceptance(self, p: Array, q: Array) -> Array:
        p, q = align(p, q)
        return one_hot(argmax(p), p) + 0 * q

    def residual(self, p: Array, q: Array, rejected: Array | None = None) -> Array:
        return self.acceptance(p, q)


class ZeroedBeforeTest(TokenRule):
    """p(x) is zeroed in place before the test reads it: every draft is rejected, then p without x is drawn."""

    residual_depends_on_rejected: ClassVar[bool] = True

    def acceptance(self, p: Array, q: Array) -> Array:
        return zeros_like(q)

    def residual(self, p: Array, q: Array, rejected: Array | None = None) -> Array:
        p, q = align(p, q)
        kept = where(one_hot(np.asarray(rejected), p) == 1, zeros_like(p), p)
        return ratio(kept, total(kept, keepdims=True) + 0 * kept, 0)


class ArgmaxResidual(_StandardTest):
    """The residual's argmax instead of a sample from it."""

    def residual(self, p: Array, q: Array, rejected: Array | None = None) -> Array:
        return one_hot(argmax(standard_residual(p, q)), q)


_ODDS = math.exp(0.03)
BF16_Q = (_ODDS / (1 + _ODDS), 1 / (1 + _ODDS))


@dataclass(frozen=True)
class Specimen:
    """A rule, what is wrong with it in the words of a bug report, whether it is exact after all, and a pair that shows it."""

    rule: Any
    fault: str
    lossless: bool = False
    p: tuple[float, ...] = field(default=(0.4, 0.2, 0.3, 0.1))
    q: tuple[float, ...] = field(default=(0.1, 0.5, 0.1, 0.3))


def specimens() -> dict[str, Specimen]:
    """The one-step specimens by id: G are exact, M are wrong in the rule, D in the law drafted from, T in the target."""
    return {
        "G0": Specimen(Standard(), "none: the standard rule", lossless=True),
        "G1": Specimen(SampleAndMatch(), "none: samples the target, keeps the draft if equal", lossless=True),
        "G3": Specimen(SharedRace(), "none: one exponential race shared by draft and target", lossless=True),
        "M1": Specimen(AcceptEverything(), "accepts every draft"),
        "M2": Specimen(ResampleTarget(), "residual resampled from p"),
        "M3": Specimen(SoftmaxResidual(), "residual is a softmax of (p - q)_+"),
        "M4": Specimen(DraftedOnlyResidual(), "residual subtracts q only at the drafted token"),
        "M5": Specimen(ReusedUniform(), "acceptance uniform reused in the residual draw"),
        "M6": Specimen(ReusedRaceNoise(), "draft race noise reused in the residual draw"),
        "M7": Specimen(GreedyDrafts(), "greedy drafts with soft q in ratio and residual"),
        "M11": Specimen(RatioToMaximum(), "accepts with p / max p, then resamples p"),
        "M12": Specimen(AdditiveSlack(0.3), "accepts with p / q + 0.3 (1 - max p)"),
        "M13": Specimen(Lenience(0.5), "lenient test: accepts with min(1, 2 p / q)"),
        "M15": Specimen(Typical(1.0, 0.5, "argmax"), "typical acceptance, rejection commits argmax p"),
        "M18": Specimen(GreedyInDisguise(), "silently greedy"),
        "M19": Specimen(ZeroedBeforeTest(), "p of the drafted token zeroed before the test"),
        "M22": Specimen(ArgmaxResidual(), "residual argmax instead of a sample"),
        "D1": Specimen(
            TopKDrafts(2),
            "drafts from top-2 of q, raw q in the ratio",
            p=(0.4, 0.3, 0.2, 0.1),
            q=(0.5, 0.25, 0.15, 0.1),
        ),
        "D2": Specimen(GreedyDrafts(), "greedy drafts with soft q in ratio and residual", p=(0.6, 0.4), q=(0.7, 0.3)),
        # logits (10.03, 10.00): bfloat16 rounds both to 10, so drafts are fair coins while q is declared in float32
        "D3": Specimen(
            DraftsFrom((0.5, 0.5)), "drafts from bfloat16 logits, float32 q in the ratio", p=(0.6, 0.4), q=BF16_Q
        ),
        "T1": Specimen(
            WrongTarget((0.5, 0.3, 0.2)), "request's top_p = 0.7 ignored", p=(0.625, 0.375, 0.0), q=(0.2, 0.3, 0.5)
        ),
        "T2": Specimen(
            WrongTarget((0.6, 0.3, 0.06, 0.04)),
            "request's min_p = 0.2 ignored",
            p=(2 / 3, 1 / 3, 0.0, 0.0),
            q=(0.25,) * 4,
        ),
        "T3": Specimen(
            WrongTarget((35 / 85, 25 / 85, 20 / 85, 5 / 85) + (0.0,) * 5),
            "top-k applied after top-p instead of before",
            p=(35 / 80, 25 / 80, 20 / 80) + (0.0,) * 6,
            q=(1 / 9,) * 9,
        ),
    }
