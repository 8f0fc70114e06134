"""Live decoding of a real pair with a regret budget in the loop: what recorded blocks cannot show, as they follow strict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import argmax
from ..errors import UsageError
from ..pmf import log_softmax
from ..protocols import Block
from ..verifiers.regret_budget import RegretBudget, RequestState


@dataclass(frozen=True)
class Decoded:
    """`tokens` (T,) behind the prompt, verification `calls`, the request's `state`, and the tokens' `log_likelihood` under
    the target at temperature 1 beside the greedy `envelope` of the same prefixes, nats: their gap is the regret of the
    first T tokens (A7)."""

    tokens: Any
    calls: int
    state: RequestState
    log_likelihood: float
    envelope: float


def decode(rule: RegretBudget, pair: Any, prompt: Sequence[int], *, length: int, block_size: int) -> Decoded:
    """Decode `length` tokens behind `prompt` with greedy drafts of `block_size` and `rule` verifying.

    `pair` is a `models.causal.CausalPair`, or anything with `target.score(prefixes, last)` and `draft.score`, logits
    (n, last, V). End-of-text tokens are decoded like any other. Raises UsageError for sizes below 1 or an empty prompt,
    DataError for logits that are NaN or +inf.
    """
    if min(length, block_size, len(prompt)) < 1:
        raise UsageError(f"length, block_size and the prompt must not be empty: {length}, {block_size}, {len(prompt)}")
    tokens = np.asarray(prompt, dtype=np.int64)
    end, state = len(tokens) + length, rule.start()
    chosen: list[float] = []
    greedy: list[float] = []
    while len(tokens) < end:
        drafted = tokens
        for _ in range(block_size):
            guess = argmax(pair.draft.score(drafted[None], 1)[0, -1])
            drafted = np.append(drafted, int(guess))
        z = pair.target.score(drafted[None], block_size + 1)[0]
        info = {"request": "live", "position": len(tokens)}
        verdict = rule.verify(Block(drafted[len(tokens) :], logits=z, info=info), state)
        laws = log_softmax(z[: verdict.accepted + 1])
        chosen += laws[np.arange(verdict.accepted + 1), verdict.tokens].tolist()
        greedy += laws.max(axis=-1).tolist()
        tokens, state = np.append(tokens, verdict.tokens), verdict.state
    return Decoded(
        tokens[len(prompt) : end],
        state.blocks,
        state,
        math.fsum(chosen[:length]),
        math.fsum(greedy[:length]),
    )


def compare_live(
    rules: dict[str, RegretBudget], pair: Any, prompts: Sequence[Sequence[int]], *, length: int, block_size: int
) -> list[dict[str, Any]]:
    """One row a rule over all prompts: calls, tokens per call, gain over the first rule, spend, log-likelihoods a token."""
    rows: list[dict[str, Any]] = []
    for label, rule in rules.items():
        runs = [decode(rule, pair, prompt, length=length, block_size=block_size) for prompt in prompts]
        calls, total = sum(r.calls for r in runs), length * len(runs)
        rows.append(
            {
                "rule": label,
                "calls": calls,
                "tokens_per_call": total / calls,
                "gain": (rows[0]["calls"] if rows else calls) / calls - 1,
                "exceptions": sum(len(r.state.ledger) for r in runs),
                "nats_per_request": sum(float(r.state.spent) for r in runs) / len(runs),
                "log_likelihood": sum(r.log_likelihood for r in runs) / total,
                "envelope": sum(r.envelope for r in runs) / total,
            }
        )
    return rows
