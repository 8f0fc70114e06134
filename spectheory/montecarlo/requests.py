"""Requests under a regret budget, simulated many at once: pre-drawn blocks, i.i.d. positions, tabular models."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..arrays import Array, argmax, log0
from ..errors import DataError, UsageError
from ..models.positions import Positions
from ..models.tabular import Tabular
from ..verifiers.regret_budget import SLACK, RegretBudget
from .streams import streams

# Requests worked on at once: their blocks stay in the processor's cache.
CHUNK = 4096


@dataclass(frozen=True)
class RequestSample:
    """Per request and block, (n, blocks): `accepted` drafts, `exceptions` used, nats `spent` so far, and whether the

    budget test `refused` a mismatch that gate and cap let through.
    """

    accepted: Array
    exceptions: Array
    spent: Array
    refused: Array


@dataclass(frozen=True)
class SequenceSample:
    """`tokens` (n, T) of each request, nats `spent` (n,) when T was reached, verification `calls` (n,) made for it."""

    tokens: Array
    spent: Array
    calls: Array


class Scanner:
    """Scans one block of each of `n` requests at once: `RegretBudget.scan` in the same float operations.

    Every prefix is priced without looking at its request: charges by length 0..K, NaN where gate or cap forbid it. NaN
    fails every test, and so does all that is added to it; and prefixes get no cheaper with length. So those that fit are counted.
    """

    def __init__(self, rule: RegretBudget, size: int, n: int) -> None:
        self.rule, self.size, self.suffix = rule, size, rule.variant == "suffix"
        self.limits = [-1.0 if rule.strict else _largest_passing(rule, i, size) for i in range(size)]
        self.charge, self.exceptions = np.zeros((size + 2, n)), np.zeros((size + 1, n), dtype=np.int32)
        self.charge[-1] = np.nan  # nothing is longer than the block
        self.before = np.full((size + 1, n), -math.inf)  # the charge before the prefix's last mismatch
        self.each = np.arange(n)

    def __call__(self, matches: Array, regrets: Array, remaining: Array) -> tuple[Array, Array, Array, Array]:
        """`matches`, `regrets` (K, n), regrets 0 at a match, `remaining` (n,) -> accepted, exceptions, charge, refused."""
        charge, exceptions = self.charge, self.exceptions
        for i in range(self.size):
            np.add(exceptions[i], ~matches[i], out=exceptions[i + 1])
            passes = regrets[i] <= self.limits[i]
            passes &= exceptions[i + 1] <= self.rule.cap
            passes |= matches[i]
            np.add(charge[i], np.where(passes, regrets[i], np.nan), out=charge[i + 1])
            if not self.suffix:
                self.before[i + 1] = np.where(matches[i], self.before[i], charge[i])
        if self.suffix:
            fits = charge[1:-1] <= remaining + float(SLACK)
        else:
            fits = charge[1:-1] <= remaining
            fits &= self.before[1:] < remaining
        accepted = np.add.reduce(fits, axis=0, dtype=np.intp)
        at = accepted * len(self.each) + self.each
        # A block that gate and cap would have let go on was ended by the budget.
        refused = ~np.isnan(charge.take(at + len(self.each)))
        return accepted, exceptions.take(at), charge.take(at), refused


def _largest_passing(rule: RegretBudget, position: int, size: int) -> float:
    """The largest float r with r / s <= g as the rule divides: one comparison then stands for the division."""
    value, gate = float(rule.value(position, size)), float(rule.gate)
    largest = min(gate * value, sys.float_info.max)
    while largest / value > gate:
        largest = math.nextafter(largest, -math.inf)
    while (above := math.nextafter(largest, math.inf)) < math.inf and above / value <= gate:
        largest = above
    return largest


def simulate_requests(rule: RegretBudget, matches: Array, regrets: Array) -> RequestSample:
    """Run `rule` over n requests of pre-drawn blocks: `matches` bool and `regrets` in nats, (n, blocks, K).

    NumPy runs along the requests: fastest where they are contiguous in memory (drawn as (blocks, K, n), passed as a
    transposed view). Raises DataError naming request, block and position of a NaN or negative regret, or for shapes
    that differ.
    """
    matches, regrets = np.asarray(matches, dtype=bool), np.asarray(regrets, dtype=np.float64)
    if regrets.ndim != 3 or matches.shape != regrets.shape:
        raise DataError(f"matches and regrets must both be (n, blocks, K), not {matches.shape} and {regrets.shape}")
    if not (regrets >= 0).all():
        request, block, at = np.argwhere(~(regrets >= 0))[0]
        raise DataError(f"request {request}, block {block}, position {at}: regret {regrets[request, block, at]}")
    matches, regrets = matches.transpose(1, 2, 0), regrets.transpose(1, 2, 0)
    blocks, _, n = regrets.shape
    out = _empty(blocks, n)
    for start in range(0, n, CHUNK):
        rows = slice(start, start + CHUNK)
        _run(rule, matches[..., rows], regrets[..., rows], out, rows)
    return _by_request(out)


def simulate_iid(rule: RegretBudget, positions: Positions, requests: int, blocks: int, seed: int = 0) -> RequestSample:
    """`requests` requests of `blocks` blocks of i.i.d. positions, from the stream `positions` of `seed`."""
    rng, out = streams(seed, "positions")["positions"], _empty(blocks, requests)
    for start in range(0, requests, CHUNK):
        n = min(CHUNK, requests - start)
        _run(rule, *positions.draw((blocks, positions.block_size, n), rng), out, slice(start, start + n))
    return _by_request(out)


def _empty(blocks: int, n: int) -> RequestSample:
    """Room for a sample, blocks first while it is filled."""
    whole = np.zeros((blocks, n), dtype=np.int32)
    return RequestSample(whole, whole.copy(), np.zeros((blocks, n)), np.zeros((blocks, n), dtype=bool))


def _by_request(out: RequestSample) -> RequestSample:
    return RequestSample(out.accepted.T, out.exceptions.T, out.spent.T, out.refused.T)


def _run(rule: RegretBudget, matches: Array, regrets: Array, out: RequestSample, rows: slice) -> None:
    """Fill columns `rows` of `out`, block after block."""
    blocks, size, n = matches.shape
    scan = Scanner(rule, size, n)
    remaining, spent = np.full(n, float(rule.budget)), np.zeros(n)
    for b in range(blocks):
        out.accepted[b, rows], out.exceptions[b, rows], charge, out.refused[b, rows] = scan(
            matches[b], np.where(matches[b], 0.0, regrets[b]), remaining
        )
        remaining = np.maximum(remaining - charge, 0)
        spent = out.spent[b, rows] = spent + charge


def simulate_sequences(
    rule: RegretBudget,
    model: Tabular,
    *,
    requests: int,
    length: int,
    block_size: int,
    drafts: Literal["argmax", "sampled"] = "argmax",
    seed: int = 0,
) -> SequenceSample:
    """`requests` requests of a tabular model, each decoded to `length` tokens in blocks of `block_size` drafts.

    Drafts are the draft's argmax or `sampled` from it (stream `draft` of `seed`). The last call runs to its end: what
    it charges beyond T counts. Raises UsageError for sizes below 1 or unknown drafts.
    """
    if min(requests, length, block_size) < 1 or drafts not in ("argmax", "sampled"):
        raise UsageError(f"need sizes >= 1 and drafts argmax or sampled, not {length}, {block_size}, {drafts!r}")
    scores, greedy = log0(model.target.astype(np.float64)), argmax(model.target)
    cuts, guess = np.cumsum(model.draft.astype(np.float64), axis=1), argmax(model.draft)
    rng = streams(seed, "draft")["draft"]
    tokens = np.zeros((requests, length + block_size + 1), dtype=np.int64)
    context, count, calls = (np.full(requests, start) for start in (model.initial, 0, 0))
    remaining, spent = np.full(requests, float(rule.budget)), np.zeros(requests)
    while (act := np.flatnonzero(count < length)).size:
        path, drafted = [context[act]], []
        for _ in range(block_size):
            u = rng.random(len(act)) if drafts == "sampled" else None
            here = path[-1]
            x = (
                guess[here]
                if u is None
                else np.minimum((cuts[here] <= (u * cuts[here, -1])[:, None]).sum(axis=1), cuts.shape[1] - 1)
            )
            drafted.append(x)
            path.append(model.step(here, x))
        at, x = np.stack(path), np.stack(drafted)
        regrets = scores[at[:-1], greedy[at[:-1]]] - scores[at[:-1], x]
        matches = x == greedy[at[:-1]]
        accepted, _, charge, _ = Scanner(rule, block_size, len(act))(
            matches, np.where(matches, 0.0, regrets), remaining[act]
        )
        after = at[accepted, np.arange(len(act))]
        _commit(tokens, act, count[act], x, accepted, greedy[after])
        context[act] = model.step(after, greedy[after])
        remaining[act] = np.maximum(remaining[act] - charge, 0)
        spent[act] += charge
        count[act] += accepted + 1
        calls[act] += 1
    return SequenceSample(tokens[:, :length], spent, calls)


def _commit(tokens: Any, act: Any, count: Any, drafted: Any, accepted: Any, bonus: Any) -> None:
    """Write each request's accepted drafts and its target token behind what it has."""
    for i in range(len(drafted)):
        keep = accepted > i
        tokens[act[keep], count[keep] + i] = drafted[i, keep]
    tokens[act, count + accepted] = bonus
