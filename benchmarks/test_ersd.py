"""Speed of ERSD's exact laws, each against a named peer in the same group. Ratios to peers are asserted, seconds are reported."""

from __future__ import annotations

import heapq
import time

import numpy as np
import pytest

from spectheory import exact, logits
from spectheory.pmf import softmax
from spectheory.theory import ersd

FIRST = "P(R = 1) at V = 151,936 (target: 3 x one argsort)"
ENTROPY = "H[R] of a real row, V = 49,152 (target: 1e-3 nats in 2 s, 1e-5 in 30 s)"
TREE = "best tree, a million nodes (target: 4 s) and the textbook heap"


@pytest.fixture(scope="module")
def large():
    """A pair of heavy-tailed laws."""
    rng, size = np.random.default_rng(0), 151_936
    z = -1.1 * np.log(np.arange(1, size + 1)) + rng.normal(0, 0.3, size)
    return softmax(z), softmax(z + rng.normal(0, 0.8, size))


@pytest.fixture(scope="module")
def real():
    block = next(iter(logits.sample()))
    return block.p[0], block.q[0]


def best(work, *args, rounds=9):
    """Shortest of some runs."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work(*args)
        times.append(time.perf_counter() - start)
    return min(times)


@pytest.mark.benchmark(group=FIRST)
def test_acceptance(benchmark, large):
    benchmark(ersd.acceptance, *large)
    p, q = large
    assert best(ersd.acceptance, p, q) < 3 * best(np.argsort, q / p)


@pytest.mark.benchmark(group=FIRST)
def test_peer_argsort(benchmark, large):
    p, q = large
    benchmark(np.argsort, q / p, kind="stable")


@pytest.mark.benchmark(group=ENTROPY)
@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_rank_entropy(benchmark, real, tol):
    interval = benchmark.pedantic(exact.rank_entropy, (*real, tol), rounds=3)
    assert interval.width <= 2 * tol


@pytest.mark.benchmark(group=ENTROPY)
def test_peer_argsort_of_a_real_row(benchmark, real):
    benchmark(np.argsort, real[1] / real[0], kind="stable")


@pytest.mark.benchmark(group=TREE)
@pytest.mark.parametrize("nodes", [10**5, 10**6])
def test_optimal_tree(benchmark, nodes):
    law = exact.rank_law(np.array([0.4, 0.3, 0.2, 0.1]), np.full(4, 0.25))
    benchmark.pedantic(ersd.optimal_tree, (law, nodes), rounds=3)


@pytest.mark.benchmark(group=TREE)
def test_peer_heap_of_all_children(benchmark):
    """100,000 nodes: every node that is popped pushes all its children."""

    def grow(law, k):
        heap = [(-x, -1, r) for r, x in enumerate(law)]
        heapq.heapify(heap)
        out = []
        for n in range(k):
            minus, parent, rank = heapq.heappop(heap)
            out.append((parent, rank, -minus))
            for r, x in enumerate(law):
                heapq.heappush(heap, (minus * x, n, r))
        return out

    law = exact.rank_law(np.array([0.4, 0.3, 0.2, 0.1]), np.full(4, 0.25)).tolist()
    benchmark.pedantic(grow, (law, 10**5), rounds=3)
