"""How a regret budget is used up, exactly: i.i.d. positions by dynamic programming over (exceptions, charge).

Charges live on a lattice: the multiples of the largest unit that divides every admissible regret, floats read as the
decimals they print. Budget and gate are tested as the rule tests them, up to the rule's own float rounding of sums. A
`step` coarsens the lattice: charges are rounded up (or down), while gates keep seeing the true regrets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from ..arrays import Array, argmax, one_hot
from ..errors import CostError, UsageError
from ..models.positions import Positions
from ..models.tabular import as_table
from ..protocols import Model
from ..results import Interval
from ..verifiers.regret_budget import SLACK, RegretBudget
from .block import engine_states

# Cells (spend x exceptions x charge) of one pass of the dynamic programme.
LATTICE_CAP = 10_000_000
Direction = Literal["up", "down"]


@dataclass(frozen=True)
class Lattice:
    """The rule and the positions in whole units: what the dynamic programme sees.

    `weights`, `masses` of the regrets (mismatches counted as 1 in all); `admissible` (K, n) says which pass the gate
    where. A charge fits while the total is <= `top` and, for `normalized`, the total before it is < `full`; both None
    for an infinite budget. `largest` is the largest charge of a block.
    """

    unit: Fraction
    match: Any
    weights: list[int]
    masses: list[Any]
    admissible: Array
    exceptions: int
    top: int | None
    full: int | None
    largest: int
    exact: bool

    @property
    def size(self) -> int:
        return int(self.admissible.shape[0])

    def zeros(self, *shape: int) -> Array:
        return np.full(shape, Fraction(0), dtype=object) if self.exact else np.zeros(shape)

    def values(self, law: Array) -> dict[Any, Any]:
        """{charge in nats: probability} of a law over units, zeros left out; floats unless all is exact."""
        return {self.nats(c): law[c] for c in np.flatnonzero(law != 0)}

    def nats(self, units: Any) -> Any:
        value = int(units) * self.unit
        return value if self.exact else float(value)


def lattice(
    rule: RegretBudget,
    positions: Positions,
    remaining: Any = None,
    step: Any = None,
    direction: Direction = "up",
) -> Lattice:
    """Put the rule on a lattice of charges. `remaining` replaces the budget (default: all of it).

    Raises UsageError for a step <= 0 or an unknown direction, CostError if the unit is finer than the budget slack.
    """
    if direction not in ("up", "down") or (step is not None and not step > 0):
        raise UsageError(f"step must be > 0 and direction up or down, not {step} and {direction!r}")
    size, budget = positions.block_size, rule.budget if remaining is None else remaining
    regrets = list(positions.regrets)
    admissible = np.array(
        [[not rule.strict and rule.cap > 0 and rule.within_gate(r, i, size) for r in regrets] for i in range(size)],
        dtype=bool,
    ).reshape(size, len(regrets))
    known = [_decimal(r) if admissible[:, j].any() else Fraction(0) for j, r in enumerate(regrets)]
    unit = _unit(known) if step is None else _decimal(step)
    if unit <= 2 * SLACK:
        raise CostError(f"the regrets share no unit above {float(2 * SLACK):g} nats: pass a step, say 1/64")
    around = math.ceil if direction == "up" else math.floor
    # Regrets that weigh the same and pass the same gates are one: many recorded values, few classes.
    masses: dict[tuple[int, tuple[bool, ...]], Any] = {}
    for j, (r, mass) in enumerate(zip(known, positions.regrets.values())):
        kind = around(r / unit), tuple(bool(ok) for ok in admissible[:, j])
        masses[kind] = masses.get(kind, 0) + (1 - positions.match) * mass
    weights = [weight for weight, _ in masses]
    admissible = np.array([passes for _, passes in masses], dtype=bool).reshape(len(masses), size).T
    exceptions = size if rule.cap == math.inf else min(int(rule.cap), size)
    top = full = None
    if budget != math.inf:
        left = _decimal(budget)
        top = math.floor((left + (SLACK if rule.variant == "suffix" else 0)) / unit)
        full = math.ceil(left / unit) if rule.variant == "normalized" else None
    most = sorted((max((w for w, ok in zip(weights, row) if ok), default=0) for row in admissible), reverse=True)
    largest = sum(most[:exceptions])
    return Lattice(
        unit,
        positions.match,
        weights,
        list(masses.values()),
        admissible,
        exceptions,
        top,
        full,
        largest if top is None else min(largest, top),
        positions.exact,
    )


def _decimal(x: Any) -> Fraction:
    return Fraction(x) if isinstance(x, Fraction | int) else Fraction(repr(float(x)))


def _unit(values: list[Fraction]) -> Fraction:
    """The largest unit of which all values are multiples; 1 if all are 0."""
    whole = math.lcm(*(v.denominator for v in values))
    return Fraction(math.gcd(*(int(v * whole) for v in values)) or whole, whole)


def blocks_from(grid: Lattice, spent: Array) -> tuple[Array, Array]:
    """Laws of one block begun with `spent` (S,) units: joint (S, K+1, C+1) over (accepted, charge), and refused (S, C+1):

    the part in which the budget test, and nothing before it, ended the block. Raises CostError beyond LATTICE_CAP.
    """
    spent, charges = np.asarray(spent), grid.largest + 1
    cells = len(spent) * (grid.exceptions + 1) * charges
    if cells > LATTICE_CAP:
        raise CostError(f"{cells} lattice cells exceed LATTICE_CAP = {LATTICE_CAP}: pass a coarser step")
    alive = grid.zeros(len(spent), grid.exceptions + 1, charges)
    alive[:, 0, 0] += 1
    joint, refused = grid.zeros(len(spent), grid.size + 1, charges), grid.zeros(len(spent), charges)
    before = spent[:, None] + np.arange(charges)
    for i in range(grid.size):
        moved = alive * grid.match
        for weight, mass, passes in zip(grid.weights, grid.masses, grid.admissible[i]):
            if not passes:
                joint[:, i] += mass * alive.sum(axis=1)
                continue
            joint[:, i] += mass * alive[:, -1]  # the cap is used up
            fits = np.ones(before.shape, dtype=bool)
            if grid.top is not None:
                fits = before + weight <= grid.top
            if grid.full is not None:
                fits &= before < grid.full
            able = mass * alive[:, :-1]
            if weight < charges:
                moved[:, 1:, weight:] += np.where(fits[:, None], able, 0 * able)[..., : charges - weight]
            held = np.where(fits, 0 * able.sum(axis=1), able.sum(axis=1))
            joint[:, i] += held
            refused += held
        alive = moved
    joint[:, -1] += alive.sum(axis=1)
    return joint, refused


def block_law(
    rule: RegretBudget,
    positions: Positions,
    remaining: Any = None,
    step: Any = None,
    direction: Direction = "up",
) -> dict[tuple[int, Any], Any]:
    """Exact joint law {(accepted, charge in nats): probability} of one block with `remaining` budget (default: all).

    Theorem A9. With a `step` the charges are rounded, and by A6 the accepted length is stochastically at most
    (`up`) or at least (`down`) the true one. Raises CostError where the lattice is too fine, UsageError for a bad step.
    """
    grid = lattice(rule, positions, remaining, step, direction)
    joint, _ = blocks_from(grid, np.zeros(1, dtype=int))
    return {(int(n), grid.nats(c)): joint[0, n, c] for n, c in np.argwhere(joint[0] != 0)}


def block_moments(rule: RegretBudget, positions: Positions) -> tuple[Any, Any, Any]:
    """(E[X], E[X^2], C_max) of the unconstrained block charge X: gate and cap on, budget infinite. Nats, no lattice."""
    free = replace(rule, budget=math.inf) if not rule.strict else rule
    size, exact = positions.block_size, positions.exact
    zero: Any = Fraction(0) if exact else 0.0
    exceptions = size if free.cap == math.inf else min(int(free.cap), size)
    # For every number of exceptions: probability of being alive, and the first two moments of the charge on it.
    alive = [[zero + 1, zero, zero]] + [[zero] * 3 for _ in range(exceptions)]
    ended, most = [zero, zero], []
    for i in range(size):
        passing = [(r, (1 - positions.match) * m) for r, m in positions.regrets.items()]
        passing = [(_number(r, exact), m) for r, m in passing if not free.strict and free.within_gate(r, i, size)]
        most.append(max((r for r, m in passing if m > 0), default=zero))
        stay = [[positions.match * v for v in row] for row in alive]
        lost = 1 - positions.match - sum(m for _, m in passing)
        for e, (mass, first, second) in enumerate(alive):
            stop = 1 - positions.match if e == exceptions else lost
            ended = [ended[0] + stop * first, ended[1] + stop * second]
            for r, m in passing if e < exceptions else ():
                gain = (mass, first + r * mass, second + 2 * r * first + r * r * mass)
                stay[e + 1] = [old + m * new for old, new in zip(stay[e + 1], gain)]
        alive = stay
    mean = ended[0] + sum(row[1] for row in alive)
    square = ended[1] + sum(row[2] for row in alive)
    return mean, square, sum(sorted(most, reverse=True)[:exceptions], zero)


def _number(x: Any, exact: bool) -> Any:
    return _decimal(x) if exact else float(x)


@dataclass(frozen=True)
class Request:
    """A request of i.i.d. blocks on its lattice: `spend` (blocks + 1, S) laws of units spent, `accepted` (blocks,)

    expected accepted tokens, `survival` (blocks + 1,) P(no budget rejection in the first n blocks).
    """

    grid: Lattice
    spend: Array
    accepted: Array
    survival: Array


def request(
    rule: RegretBudget, positions: Positions, blocks: int, step: Any = None, direction: Direction = "up"
) -> Request:
    """Run the exact chain of spends for `blocks` blocks. Raises CostError beyond LATTICE_CAP."""
    grid = lattice(rule, positions, None, step, direction)
    top = blocks * grid.largest if grid.top is None else min(grid.top, blocks * grid.largest)
    joint, refused = blocks_from(grid, np.arange(top + 1))
    charge = joint.sum(axis=1)
    lengths = (joint.sum(axis=2) * np.arange(grid.size + 1)).sum(axis=1)
    spend, clean = grid.zeros(blocks + 1, top + 1), grid.zeros(blocks + 1, top + 1)
    spend[0, 0] += 1
    clean[0, 0] += 1
    accepted = grid.zeros(blocks)
    for n in range(blocks):
        accepted[n] = (spend[n] * lengths).sum()
        for c in range(grid.largest + 1):
            spend[n + 1, c:] += (spend[n] * charge[:, c])[: top + 1 - c]
            clean[n + 1, c:] += (clean[n] * (charge - refused)[:, c])[: top + 1 - c]
    return Request(grid, spend, accepted, clean.sum(axis=1))


def spend_law(rule: RegretBudget, positions: Positions, blocks: int, **lattice_options: Any) -> dict[Any, Any]:
    """Exact law {nats spent: probability} after `blocks` blocks (theorem A9); `step`, `direction` as in `block_law`.

    With a step it is the exact law of the rounded charges; `expected_spend` certifies its mean. Raises CostError.
    """
    run = request(rule, positions, blocks, **lattice_options)
    return run.grid.values(run.spend[blocks])


def tokens_per_call(rule: RegretBudget, positions: Positions, blocks: int, **lattice_options: Any) -> Array:
    """E[tokens committed by call n], (blocks,): accepted + 1 as the budget runs down. Raises CostError."""
    return 1 + request(rule, positions, blocks, **lattice_options).accepted


def expected_blocks(rule: RegretBudget, positions: Positions, step: Any = None) -> Interval:
    """E[N], N the first block in which the budget test rejects (theorem A9); inf if it never does.

    Exact on the lattice of the regrets; with a `step`, certified: rounding charges up can only bring N forward, down
    only put it off. NOT the time until nothing is accepted, which can be far longer. Raises CostError.
    """
    if step is None:
        return Interval.exact(float(_expected_blocks(lattice(rule, positions))), "A9")
    ways: tuple[Direction, Direction] = ("up", "down")
    low, high = (float(_expected_blocks(lattice(rule, positions, None, step, way))) for way in ways)
    return Interval(low, None, high, "certified", None, "A9, charges rounded up and down")


def expected_exhaustion(rule: RegretBudget, positions: Positions) -> Interval:
    """E[blocks until no regret > 0 can be accepted any more]: permanent exhaustion, which no A9 bound covers. Exact.

    inf for an infinite budget, 0 where nothing but ties is ever accepted. Raises CostError.
    """
    grid = lattice(rule, positions)
    if grid.top is None:
        return Interval.exact(math.inf if grid.largest > 0 else 0.0, "exact chain")
    joint, _ = blocks_from(grid, np.arange(grid.top + 1))
    charge = joint.sum(axis=1)
    return Interval.exact(float(_hitting_time(grid, charge, grid.zeros(grid.top + 1), stuck=0)), "exact chain")


def _expected_blocks(grid: Lattice) -> Any:
    """E[N] from an empty ledger."""
    if grid.top is None:
        return math.inf
    joint, refused = blocks_from(grid, np.arange(grid.top + 1))
    return _hitting_time(grid, joint.sum(axis=1) - refused, refused.sum(axis=1), stuck=math.inf)


def _hitting_time(grid: Lattice, moves: Array, exits: Array, stuck: Any) -> Any:
    """Expected blocks until an exit, from nothing spent: `moves` (S, C+1) by charge, `exits` (S,); a spend that is never

    left takes `stuck`. Back substitution, as a block never lowers the spend.
    """
    out = np.full(len(exits), stuck, dtype=object)
    for s in range(len(exits) - 1, -1, -1):
        ahead = [(moves[s, c], out[s + c]) for c in range(1, min(grid.largest, len(exits) - 1 - s) + 1) if moves[s, c]]
        leaving = exits[s] + sum(mass for mass, _ in ahead)  # not 1 - P(charge 0): that would cancel
        if leaving > 0:
            out[s] = (1 + sum(mass * later for mass, later in ahead)) / leaving
    return out[0]


def expected_spend(rule: RegretBudget, positions: Positions, blocks: int, step: Any = None) -> Interval:
    """E[nats spent after `blocks` blocks]: exact on the lattice; with a `step`, certified around the rounded chain.

    U_n the unconstrained spend, r the largest admissible regret: min(U_n, B - r) <= S_n <= min(U_n, B) pathwise (after
    the first rejection more than B - r is spent), and U_n lies between its rounded versions. Raises CostError.
    """
    run = request(rule, positions, blocks, step)
    mean = _mean(run.grid, run.spend[blocks])
    if step is None:
        return Interval.exact(float(mean), "A9")
    budget, worst = float(rule.budget), max((float(w * run.grid.unit) for w in run.grid.weights), default=0.0)
    floor = _capped_mean(rule, positions, blocks, step, "down", max(0.0, budget - worst))
    slack = blocks * float(SLACK) if rule.variant == "suffix" else 0.0
    ceiling = _capped_mean(rule, positions, blocks, step, "up", budget) + slack
    return Interval(floor, min(max(float(mean), floor), ceiling), ceiling, "certified", None, "A9, charges rounded")


def _capped_mean(
    rule: RegretBudget, positions: Positions, blocks: int, step: Any, direction: Direction, limit: float
) -> float:
    """E[min(U_n, limit)] of the unconstrained spend with rounded charges."""
    free = rule if rule.strict else replace(rule, budget=math.inf)
    run = request(free, positions, blocks, step, direction)
    return float(sum(mass * min(float(spent), limit) for spent, mass in run.grid.values(run.spend[blocks]).items()))


def sequence_spend_law(
    rule: RegretBudget,
    model: Model,
    *,
    length: int,
    block_size: int,
    drafts: Literal["argmax", "sampled"] = "argmax",
) -> dict[tuple[tuple[int, ...], float], Any]:
    """Exact law {(first T tokens, nats spent): probability} of a request on a small model.

    Drafts are the draft's argmax (then one point carries all mass) or `sampled` from it. The last call runs to its end:
    what it charges beyond T counts. Raises UsageError for bad sizes or drafts, CostError beyond `exact.block`'s cap.
    """
    if drafts not in ("argmax", "sampled"):
        raise UsageError(f"drafts must be argmax or sampled, not {drafts!r}")
    table = as_table(model, length + block_size)
    if drafts == "argmax":
        table = replace(table, draft=one_hot(argmax(table.draft), table.draft))
    out: dict[tuple[tuple[int, ...], float], Any] = {}
    for (tokens, state), mass in engine_states(rule, table, length=length, block_size=block_size).items():
        key = tokens, float(state.spent)  # type: ignore[attr-defined]
        out[key] = out.get(key, 0) + mass
    return out


def _mean(grid: Lattice, law: Array) -> Any:
    return (law * np.arange(len(law))).sum() * (grid.unit if grid.exact else float(grid.unit))
