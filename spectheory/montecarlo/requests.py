"""Requests under a regret budget, simulated many at once: pre-drawn blocks, i.i.d. positions, tabular models."""

from __future__ import annotations

import math
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
CHUNK = 2048


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


def scan_blocks(rule: RegretBudget, matches: Array, regrets: Array, remaining: Array) -> tuple[Array, ...]:
    """One block of each of n requests: `matches`, `regrets` (K, n), `remaining` (n,) -> accepted, exceptions, charge,

    refused, (n,) each. The vectorised form of `RegretBudget.scan`, in the same float operations.
    """
    size, n = matches.shape
    alive, refused = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
    accepted, exceptions, charge = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.zeros(n)
    suffix, limit = rule.variant == "suffix", remaining + float(SLACK)
    gate, cap = float(rule.gate), float(rule.cap)
    for i in range(size):
        regret, match = regrets[i], matches[i]
        able = alive & ~match & (exceptions < cap) & (regret / rule.value(i, size) <= gate) & (regret < math.inf)
        if rule.strict:
            able[:] = False
        after = charge + regret
        fits = after <= limit if suffix else (charge < remaining) & (after <= remaining)
        refused |= able & ~fits
        able &= fits
        charge = np.where(able, after, charge)
        exceptions += able
        alive &= match | able
        accepted += alive
    return accepted, exceptions, charge, refused


def simulate_requests(rule: RegretBudget, matches: Array, regrets: Array) -> RequestSample:
    """Run `rule` over n requests of pre-drawn blocks: `matches` bool and `regrets` in nats, (n, blocks, K).

    Raises DataError naming request, block and position of a NaN or negative regret, or for shapes that differ.
    """
    matches, regrets = np.asarray(matches, dtype=bool), np.asarray(regrets, dtype=np.float64)
    if regrets.ndim != 3 or matches.shape != regrets.shape:
        raise DataError(f"matches and regrets must both be (n, blocks, K), not {matches.shape} and {regrets.shape}")
    if not (regrets >= 0).all():
        request, block, at = np.argwhere(~(regrets >= 0))[0]
        raise DataError(f"request {request}, block {block}, position {at}: regret {regrets[request, block, at]}")
    n, blocks, _ = regrets.shape
    out = _empty(n, blocks)
    for start in range(0, n, CHUNK):
        rows = slice(start, start + CHUNK)
        _run(rule, matches[rows].transpose(1, 2, 0), regrets[rows].transpose(1, 2, 0), out, rows)
    return out


def simulate_iid(rule: RegretBudget, positions: Positions, requests: int, blocks: int, seed: int = 0) -> RequestSample:
    """`requests` requests of `blocks` blocks of i.i.d. positions, from the stream `positions` of `seed`."""
    rng, out = streams(seed, "positions")["positions"], _empty(requests, blocks)
    for start in range(0, requests, CHUNK):
        n = min(CHUNK, requests - start)
        matches, regrets = (x.reshape(blocks, n, -1).transpose(0, 2, 1) for x in positions.draw(blocks * n, rng))
        _run(rule, matches, regrets, out, slice(start, start + n))
    return out


def _empty(n: int, blocks: int) -> RequestSample:
    whole = np.zeros((n, blocks), dtype=np.int32)
    return RequestSample(whole, whole.copy(), np.zeros((n, blocks)), np.zeros((n, blocks), dtype=bool))


def _run(rule: RegretBudget, matches: Array, regrets: Array, out: RequestSample, rows: slice) -> None:
    """Fill `rows` of `out` from blocks laid out (blocks, K, n): the request axis last, so that NumPy runs along it."""
    matches, regrets = np.ascontiguousarray(matches), np.ascontiguousarray(regrets)
    remaining = np.full(matches.shape[2], float(rule.budget))
    spent = np.zeros(matches.shape[2])
    for b in range(matches.shape[0]):
        accepted, exceptions, charge, refused = scan_blocks(rule, matches[b], regrets[b], remaining)
        remaining = np.maximum(remaining - charge, 0)
        spent = spent + charge
        out.accepted[rows, b], out.exceptions[rows, b] = accepted, exceptions
        out.spent[rows, b], out.refused[rows, b] = spent, refused


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
            x = guess[here] if u is None else (cuts[here] <= (u * cuts[here, -1])[:, None]).sum(axis=1)
            drafted.append(x)
            path.append(model.step(here, x))
        at, x = np.stack(path), np.stack(drafted)
        regrets = scores[at[:-1], greedy[at[:-1]]] - scores[at[:-1], x]
        accepted, _, charge, _ = scan_blocks(rule, x == greedy[at[:-1]], regrets, remaining[act])
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
