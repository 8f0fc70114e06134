"""Probes before any statistics: the same seed and inputs must give the same answer, and every answer must be well formed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .calls import call
from .guard import ContractBroken
from .interface import Subject, forked_generators
from .plan import scenarios
from .scenario import Scenario, draw_block

SEEDS = 24
BATCH = 4  # blocks a probe when the callable takes batches


def probe(subject: Subject, seed: int, beat: Callable[[], None]) -> list[str]:
    """Run every probe; returns notes (what is worth knowing but not wrong). Raises ContractBroken."""
    chosen = [s for s in scenarios(seed) if s.kind == "tokens"]
    used: set[str] = set()
    seen: dict[str, set[bytes]] = {}
    for i in range(SEEDS):
        scenario = chosen[i % len(chosen)]
        first, names = _once(subject, scenario, seed + i, beat)
        again, _ = _once(subject, scenario, seed + i, beat)
        if not np.array_equal(first, again):
            raise ContractBroken(
                "not reproducible", f"seed {seed + i}, {scenario.name}: {first.tolist()}, then {again.tolist()}"
            )
        used |= names
        seen.setdefault(scenario.name, set()).add(_fresh_coins(subject, scenario, seed, i, beat))
    notes = [f"draws from the global generator of {name}, which the audit forked and seeded" for name in sorted(used)]
    if all(len(answers) == 1 for answers in seen.values()):
        notes.append("the answer does not depend on the random source")
    return notes


def _once(subject: Subject, scenario: Scenario, seed: int, beat: Callable[[], None]) -> tuple[Any, set[str]]:
    with forked_generators(seed) as used:
        rng = np.random.default_rng(seed)
        block = draw_block(subject, scenario, BATCH if subject.batched else 1, rng, beat)
        tokens = call(subject, *block, rng, beat).tokens
    return np.column_stack([block[0], tokens]), set(used)


def _fresh_coins(subject: Subject, scenario: Scenario, seed: int, i: int, beat: Callable[[], None]) -> bytes:
    """The answer to one fixed block under coins of its own: over many i, they must not all agree."""
    with forked_generators(seed):
        block = draw_block(subject, scenario, BATCH if subject.batched else 1, np.random.default_rng(seed), beat)
    with forked_generators(1000 + i):
        tokens: bytes = call(subject, *block, np.random.default_rng(1000 + i), beat).tokens.tobytes()
    return tokens
