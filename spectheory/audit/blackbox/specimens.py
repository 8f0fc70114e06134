"""Our known-good and known-broken verifiers as strangers' callables, each with the scenario that shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...models import Tabular
from ...protocols import depends_on_rejected
from ...verifiers.block import BlockVerification
from ...verifiers.broken import specimens as step_specimens
from ...verifiers.broken_joint import NoStop, ResidualBonus, SharedUniform, StaleBonus
from ...verifiers.standard import Standard
from .calls import commit
from .interface import Subject, from_rule
from .plan import C4, CONTEXT
from .scenario import Scenario, inverse_cdf


@dataclass(frozen=True)
class Known:
    """A rule whose exact law we know, its callable, the scenario that shows it, the fault in words."""

    rule: Any
    subject: Subject
    scenario: Scenario
    fault: str
    lossless: bool


JOINT_FAULTS = {
    "J1": (ResidualBonus(), "bonus drawn from the residual row"),
    "J2": (NoStop(), "no stop at the first failed test"),
    "J3": (SharedUniform(), "one acceptance uniform shared by the whole block"),
}
STALE_BONUS = (StaleBonus(), "bonus drawn from the previous row")


def known() -> dict[str, Known]:
    """Every specimen by id: those of one step on their own pair, J on blocks of C4, C on context-dependent rows."""
    block = Scenario("block of 2, C4", Tabular([C4[0]], [C4[1]]), 2, 3, "")
    context = Scenario("context, bonus", Tabular(*CONTEXT), 1, 2, "")
    out = {}
    for name, s in step_specimens().items():
        scenario = Scenario(f"step, {name}", Tabular([s.p], [s.q]), 1, 1, "")
        out[name] = Known(s.rule, step_subject(name, s.rule), scenario, s.fault, s.lossless)
    out["B0"] = Known(
        BlockVerification(), from_rule(BlockVerification(), "B0"), block, "none: block verification", True
    )
    out["B1"] = Known(Standard(), batched(Standard(), "B1"), block, "none: token-wise, in a block", True)
    for name, (rule, fault) in JOINT_FAULTS.items():
        out[name] = Known(rule, from_rule(rule, name), block, fault, False)
    out["C1"] = Known(STALE_BONUS[0], from_rule(STALE_BONUS[0], "C1"), context, STALE_BONUS[1], False)
    return out


def step_subject(name: str, rule: Any) -> Subject:
    """A callable that does what the rule says, shared randomness included."""
    special = {"G3": RaceAgreement, "M6": ReusedRace}
    if name in special:
        made = special[name]()
        return Subject(name, made, batched=True, draft=made.draft)
    if name == "M5":
        return Subject(name, reused_uniform, batched=True)
    return batched(rule, name)


def batched(rule: Any, name: str = "") -> Subject:
    """A token rule, vectorised over a batch of blocks, with its own drafts."""
    takes_rejected = depends_on_rejected(rule)

    def verify(drafts: Any, q: Any, p: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        a = np.take_along_axis(np.asarray(rule.acceptance(p[:, :-1], q)), drafts[..., None], -1)[..., 0]
        first, row = first_failures(rng.random(drafts.shape) < a), np.arange(len(drafts))
        last = np.minimum(first, drafts.shape[1] - 1)
        at_p, at_q, x = p[row, last], q[row, last], drafts[row, last]
        residual = rule.residual(at_p, at_q, x) if takes_rejected else rule.residual(at_p, at_q)
        law = np.where((first < drafts.shape[1])[:, None], residual, p[:, -1])
        return commit(drafts, first, inverse_cdf(law, rng)), first

    own = getattr(rule, "drafted", None)

    def draft(q: Any, rng: np.random.Generator) -> Any:
        return inverse_cdf(np.broadcast_to(q if own is None else own(q, q), q.shape), rng)

    return Subject(name or type(rule).__name__, verify, batched=True, draft=draft)


def first_failures(passed: Any) -> Any:
    """(B,) number of leading True of (B, K)."""
    return np.where(passed.all(axis=1), passed.shape[1], (~passed).argmax(axis=1))


def reused_uniform(drafts: Any, q: Any, p: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """M5: the coin that rejected a draft also inverts the residual's CDF. Blocks of one draft."""
    from ...pmf import residual

    rule, u = Standard(), rng.random(len(drafts))
    a = np.take_along_axis(np.asarray(rule.acceptance(p[:, 0], q[:, 0])), drafts, -1)[:, 0]
    accepted = u < a
    cdf = np.cumsum(residual(p[:, 0], q[:, 0]), axis=-1)
    inverted = np.minimum((cdf <= u[:, None]).sum(axis=1), p.shape[-1] - 1)
    y = np.where(accepted, inverse_cdf(p[:, 1], rng), inverted)
    return commit(drafts, accepted.astype(int), y), accepted.astype(int)


class RaceAgreement:
    """G3: one exponential race a position, shared by draft and target; a draft is kept if it also wins the target's race."""

    def __init__(self) -> None:
        self.noise: list[Any] = []

    def draft(self, q: Any, rng: np.random.Generator) -> Any:
        noise = rng.exponential(size=q.shape)
        self.noise.append(noise)
        return winners(noise, q)

    def __call__(self, drafts: Any, q: Any, p: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        noise = np.stack([*self.noise[-drafts.shape[1] :], rng.exponential(size=p[:, -1].shape)], axis=1)
        self.noise.clear()
        targets = winners(noise, p)
        first = first_failures(targets[:, :-1] == drafts)
        return commit(drafts, first, targets[np.arange(len(drafts)), first]), first


class ReusedRace(RaceAgreement):
    """M6: the standard test, and the residual's race runs on the noise that chose the draft."""

    def __call__(self, drafts: Any, q: Any, p: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        from ...pmf import residual

        noise, k = np.stack(self.noise[-drafts.shape[1] :], axis=1), drafts.shape[1]
        self.noise.clear()
        a = np.take_along_axis(np.asarray(Standard().acceptance(p[:, :-1], q)), drafts[..., None], -1)[..., 0]
        first, row = first_failures(rng.random(drafts.shape) < a), np.arange(len(drafts))
        last = np.minimum(first, k - 1)
        corrected = winners(noise[row, last], np.asarray(residual(p[row, last], q[row, last])))
        return commit(drafts, first, np.where(first < k, corrected, inverse_cdf(p[:, -1], rng))), first


def winners(noise: Any, law: Any) -> Any:
    """argmin of noise / law over the last axis; a token without mass never wins."""
    return np.where(law > 0, noise / np.where(law > 0, law, 1.0), np.inf).argmin(axis=-1)
