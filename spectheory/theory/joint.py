"""The best that a bound on the joint law of (tokens, positions in the block) can do: its TV itself, composed by the FFT.

Q2..Q6 all bound TV of the engine's joint law over (tokens, j) against the target's with the same kernel; the kernel cancels
in the log-ratio, which is ln(p~ / p) on drafted and 0 on bonus steps. So that TV is E(1 - e^{-S})_+ for an additive
function S of the Markov chain (context, j): one forward recursion a frequency. Proof: docs/theory/sequence.md.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from ..arrays import Array
from ..errors import PrecisionError
from ..results import Interval
from .chain import Chain, accumulate, gains, transfer
from .composition import EPS, LogRatioLaw, _gap, _log_mgf, _Split, _split, log_ratios
from .registry import theorem

# Frequencies times (context, context, j) times tokens: complex multiplications of the recursion.
WORK_CAP = 2**30
HELD_CAP = 2**23  # frequencies times states


@theorem(
    "Q7.joint",
    source="spectheory, docs/theory/sequence.md",
    statement=r"\mathrm{TV}(\tilde P, P) \le \mathbb{E}_{\tilde P}(1 - e^{-S_T})_+,"
    r"\ S_T = \sum_{t\ \mathrm{drafted}} \ln(\tilde p / p)(x_t)",
    relation="<=",
    hypotheses="any token verifier, tabular model, K and T; equality if K >= T; never above Q2..Q6",
    status="proved",
)
def joint_tv(c: Chain, error: float = 1e-4) -> Interval:
    """Upper bound on TV(P~, P), within `error` of TV of the joint laws over (tokens, j). Two-sided if K >= T.

    Raises PrecisionError beyond WORK_CAP and HELD_CAP.
    """
    infinite = min(1.0, _infinite(c))
    values = log_ratios(c)
    finite = values[np.isfinite(values)]
    largest = float(abs(finite).max(initial=0))
    if largest == 0:
        return _interval(c, infinite, infinite)
    mesh = largest / 64
    while True:
        low, high = _at_mesh(c, values, mesh, error / 40, infinite)
        if high - low <= error:
            return _interval(c, low, high)
        mesh *= min(0.7, max(1 / 32, 0.9 * math.sqrt(error / (high - low))))


def _interval(c: Chain, low: float, high: float) -> Interval:
    lower = max(0.0, low) if c.block_size >= c.length else 0.0
    return Interval(min(lower, high), None, min(1.0, max(0.0, high)), "certified", None, "Q7.joint")


def _infinite(c: Chain) -> float:
    """Mass of the engine's paths that the target never takes."""
    shown = c.p > 0
    return accumulate(c, transfer(c, c.out * shown, c.p), gains(c, np.sum(np.where(shown, 0, c.out), axis=1)))


def _at_mesh(c: Chain, values: Array, mesh: float, tail: float, infinite: float) -> tuple[float, float]:
    """(lower, upper) end of TV of the joint laws at one mesh."""
    from scipy.fft import irfft, next_fast_len

    pieces = _pieces(c, values, mesh)
    noise = [x for two in pieces.values() for x in two]
    low, high, lost = _window(_whole(c, values, mesh), c.length, tail)
    n = max(2, next_fast_len(high - low + 1, real=True))
    work, held = n / 2 * len(c.p) ** 2 * (c.block_size + 1) * c.length, n / 2 * c.size
    if work > WORK_CAP or held > HELD_CAP:
        raise PrecisionError(
            f"the joint composition takes {work:.2g} multiplications on {held:.2g} numbers, above WORK_CAP = {WORK_CAP} or "
            f"HELD_CAP = {HELD_CAP}"
        )
    bins = np.roll(irfft(_forward(c, pieces, n), n), -(low % n))
    s = mesh * (low + np.arange(n))
    value = infinite + float(bins @ np.where(s > 0, -np.expm1(-np.maximum(s, 0)), 0.0))
    worst = _Split(np.zeros(1), np.zeros(1), max(x.mean for x in noise), max(x.proxy for x in noise))
    gap = _gap([(worst, c.length)], bins, s)
    # each step adds at most a relative error of a few ulp a frequency; Cauchy-Schwarz over n bins
    floor = math.sqrt(n) * 8 * EPS * math.log2(n + 1) * (c.length + 1) + c.length * 1e-13
    return float(value - gap - lost - floor), float(value + lost + floor)


def _pieces(c: Chain, values: Array, mesh: float) -> dict[tuple[int, int], tuple[_Split, _Split]]:
    """Log-ratio laws on the mesh of what is accepted and what is corrected, by (context, next context)."""
    out = {}
    for s, to in product(range(len(c.p)), repeat=2):
        there = (c.successors[s] == to) & np.isfinite(values[s]) & (c.out[s] > 0)
        if there.any():
            laws = (LogRatioLaw(values[s, there], w[s, there], 0.0) for w in (c.accepted, c.corrected))
            accepted, corrected = (_split(law, mesh, 0.0) for law in laws)
            out[s, to] = accepted, corrected
    return out


def _whole(c: Chain, values: Array, mesh: float) -> list[_Split]:
    """The log-ratio law of one drafted step in each context."""
    live = [np.isfinite(values[s]) & (c.out[s] > 0) for s in range(len(c.p))]
    laws = [LogRatioLaw(values[s, at], c.out[s, at], 0.0) for s, at in enumerate(live) if at.any()]
    return [_split(law, mesh, 0.0) for law in laws]


def _window(steps: list[_Split], length: int, tail: float) -> tuple[int, int, float]:
    """Mesh indices that hold S up to mass `tail` on each side: Chernoff with the worst context (or a bonus) at each step."""
    ends = [min([0, *(int(x.index.min()) for x in steps)]), max([0, *(int(x.index.max()) for x in steps)])]
    low, high = length * ends[0], length * ends[1]
    spread = max(float(x.mass @ x.index.astype(float) ** 2) for x in steps)
    for scale in np.geomspace(0.05, 64, 32) / math.sqrt(length * spread or 1.0):
        for sign in (1, -1):
            log_mgf = length * max([0.0, *(_log_mgf(x, sign * scale) for x in steps)])
            bound = math.ceil((log_mgf - math.log(tail)) / scale)
            low, high = (low, min(high, bound)) if sign > 0 else (max(low, -bound), high)
    return low, max(low, high), tail * (int(low > length * ends[0]) + int(high < length * ends[1]))


def _forward(c: Chain, pieces: dict[tuple[int, int], tuple[_Split, _Split]], n: int) -> Array:
    """Transform of the law of S: the forward recursion over (context, j), all frequencies at once."""
    from scipy.fft import rfft

    def transform(x: _Split) -> Array:
        wrapped = np.zeros(n)
        np.add.at(wrapped, x.index % n, x.mass)
        return rfft(wrapped)

    moves = {key: tuple(transform(x) for x in two) for key, two in pieces.items()}
    bonus = np.zeros((len(c.p), len(c.p)))
    np.add.at(bonus, (np.arange(len(c.p))[:, None], c.successors), c.p)
    state = np.zeros((len(c.p), c.block_size + 1, n // 2 + 1), dtype=complex)
    state[c.initial, 0] = 1
    for _ in range(c.length):
        new = np.zeros_like(state)
        new[:, 0] = np.einsum("st,sf->tf", bonus, state[:, -1])
        for (s, to), (accepted, corrected) in moves.items():
            new[to, 1:] += state[s, :-1] * accepted
            new[to, 0] += state[s, :-1].sum(axis=0) * corrected
        state = new
    return state.sum(axis=(0, 1))
