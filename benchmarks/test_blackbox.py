"""Speed of a black-box audit: what drawing, checking and counting add to the vectorised callable itself."""

from __future__ import annotations

import time

import numpy as np
import pytest

from spectheory.audit.blackbox.plan import asymmetric_pair
from spectheory.audit.blackbox.scenario import Scenario, draw_block, sample
from spectheory.audit.blackbox.specimens import batched
from spectheory.verifiers import Standard

CALLS, BATCH = 1_000_000, 50_000
SCENARIO = Scenario("V = 8", asymmetric_pair(np.random.default_rng(0), 8), 1, 1, "")
SUBJECT = batched(Standard())


def audited():
    rng = np.random.default_rng(1)
    for _ in range(CALLS // BATCH):
        sample(SUBJECT, SCENARIO, BATCH, rng, lambda: None)


def bare():
    """The peer: the same callable on one batch of inputs drawn beforehand, nothing checked or counted."""
    rng = np.random.default_rng(1)
    block = draw_block(SUBJECT, SCENARIO, BATCH, rng, lambda: None)
    for _ in range(CALLS // BATCH):
        SUBJECT.call(*block, rng)


@pytest.mark.benchmark(group="a million verifications, V = 8")
def test_a_million_verifications(benchmark):
    begun = time.perf_counter()
    bare()
    peer = time.perf_counter() - begun
    benchmark.pedantic(audited, rounds=1, iterations=1)
    took = benchmark.stats.stats.min
    benchmark.extra_info.update(peer_seconds=peer, ratio=took / peer)
    assert took < 5 * peer
    assert took < 30
