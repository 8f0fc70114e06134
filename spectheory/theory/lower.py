"""Lower bounds on TV(P~, P) over T tokens by data processing: any statistic of the sequence deviates no more than the whole.

Q8: TV_T never falls in T, so what a shorter horizon shows is a lower bound for every longer one.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from .chain import Chain, start, transfer
from .registry import theorem
from .sequence import SHEET

# Tokens that `marginal` looks at one by one, and that `count` follows; longer horizons inherit by Q8.
MARGINAL_CAP, COUNT_CAP = 64, 512


@theorem(
    "Q8",
    source=SHEET,
    statement=r"T' \le T \Rightarrow \mathrm{TV}_T \ge \mathrm{TV}_{T'} \ge \mathrm{TV}(\tilde P(x_t), P(x_t)),\ t \le T'",
    relation=">=",
    hypotheses="an engine that does not look at T; t <= T",
    status="proved",
)
def marginal(c: Chain) -> float:
    """The largest deviation of a single token's law among the first MARGINAL_CAP positions."""
    worst, states = 0.0, []
    for law in (c.out, c.p):
        spread = np.repeat(law[:, None, :], c.block_size + 1, axis=1)
        spread[:, c.block_size] = c.p
        states.append((start(c), transfer(c, law, c.p), spread.reshape(c.size, -1)))
    for _ in range(min(c.length, MARGINAL_CAP)):
        ours, theirs = (v @ spread for v, _, spread in states)
        worst = max(worst, float(abs(ours - theirs).sum()) / 2)
        states = [(v @ m, m, spread) for v, m, spread in states]
    return worst


def _marked(c: Chain, law: Array) -> tuple[Array, Array]:
    """Transfer matrices (all tokens, marked tokens) under `law`; marked are those that the rule favours, out > p."""
    mark = c.out > c.p * (1 + 1e-9)  # not what rounding favours
    return transfer(c, law, c.p), transfer(c, law * mark, c.p * mark)


@theorem(
    "Q8.count",
    source=SHEET,
    statement=r"\mathrm{TV}_T \ge \mathrm{TV}(\text{law of } C \text{ under } \tilde P, \text{ under } P),"
    r"\ C = \#\{t : \tilde p > p \text{ at } x_t\}",
    relation=">=",
    hypotheses="an engine that does not look at T",
    status="proved",
)
def count(c: Chain) -> float:
    """TV of the number of tokens that the rule favours, among the first COUNT_CAP tokens: it tends to 1 as these grow."""
    laws = []
    for law in (c.out, c.p):
        everything, marked = _marked(c, law)
        state = start(c)[None]  # (counts so far, states)
        for _ in range(min(c.length, COUNT_CAP)):
            stay, up = state @ (everything - marked), state @ marked
            state = np.pad(stay, ((0, 1), (0, 0))) + np.pad(up, ((1, 0), (0, 0)))
        laws.append(state.sum(axis=1))
    return float(abs(laws[0] - laws[1]).sum()) / 2


@theorem(
    "Q8.moments",
    source="Levin, Peres and Wilmer, Markov Chains and Mixing Times, Prop. 7.12",
    statement=r"\mathrm{TV}_T \ge d^2 / (d^2 + 2 (v_1 + v_2)),\ d = |\tilde{\mathbb E} C - \mathbb E C|,\ v_i = \text{variances of } C",
    relation=">=",
    hypotheses="an engine that does not look at T",
    status="proved",
)
def moments(c: Chain) -> float:
    """The lower bound that means and variances of C (`count`) give: O(log T), so it serves at any horizon."""
    rates = [float((marked.sum(axis=1)).mean()) for _, marked in (_marked(c, law) for law in (c.out, c.p))]
    centre = sum(rates) / 2  # scores near mean 0 keep the variances' digits
    (mean_out, square_out), (mean_p, square_p) = (_two_moments(c, law, centre) for law in (c.out, c.p))
    gap = abs(mean_out - mean_p)
    allowance = 1e-15 * c.length * (c.size + 4) * (square_out + square_p)
    variances = square_out - mean_out**2 + square_p - mean_p**2 + allowance
    gap = max(0.0, gap - 1e-15 * c.length * (c.size + 4) * (abs(mean_out) + abs(mean_p)))
    return gap**2 / (gap**2 + 2 * max(variances, 0.0)) if gap else 0.0


def _two_moments(c: Chain, law: Array, centre: float) -> tuple[float, float]:
    """E[S] and E[S^2] of S = sum_t (1[token t is marked] - centre), from (sum_x w e^{h score})^T up to h^2."""
    everything, marked = _marked(c, law)
    one = (everything, marked - centre * everything, (marked * (1 - 2 * centre) + centre**2 * everything) / 2)
    row = start(c)
    state, left = (row, 0 * row, 0 * row), c.length
    while left:
        if left & 1:
            state = _times(state, one)
        left >>= 1
        if left:
            one = _times(one, one)
    return float(state[1].sum()), 2 * float(state[2].sum())


def _times(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, Array, Array]:
    """Product of two matrix polynomials in h, cut at h^2."""
    return a[0] @ b[0], a[0] @ b[1] + a[1] @ b[0], a[0] @ b[2] + a[1] @ b[1] + a[2] @ b[0]
