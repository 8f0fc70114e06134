"""The request simulator against plain Python over the same pre-drawn regrets, 10^5 requests of 64 blocks, in one run."""

from time import perf_counter

import numpy as np

from spectheory.models.positions import Positions
from spectheory.montecarlo import simulate_requests, streams
from spectheory.verifiers import RegretBudget

REQUESTS, BLOCKS, CHUNK = 100_000, 64, 2_000
RULE = RegretBudget(4.0, 0.5, 2, "suffix")
POSITIONS = Positions(0.6, {0.5: 0.5, 1.0: 0.3, 3.0: 0.2}, 4)


def plain(matches, regrets):
    """The same rule in plain Python on nested lists, written for speed: spend of each request."""
    budget, gate, cap = RULE.budget, RULE.gate, RULE.cap
    out = []
    for request_matches, request_regrets in zip(matches, regrets):
        left, spent = budget, 0.0
        for block_matches, block_regrets in zip(request_matches, request_regrets):
            charge, exceptions, value = 0.0, 0, len(block_matches)
            for match, regret in zip(block_matches, block_regrets):
                if not match:
                    if exceptions >= cap or regret / value > gate or charge + regret > left + 1e-9:
                        break
                    charge += regret
                    exceptions += 1
                value -= 1
            left = max(left - charge, 0.0)
            spent += charge
        out.append(spent)
    return out


def test_requests_against_plain_python(benchmark):
    """At least 5 times faster (NumPy; no numba)."""
    matches, regrets = (
        x.reshape(REQUESTS, BLOCKS, -1) for x in POSITIONS.draw(REQUESTS * BLOCKS, streams(0, "positions")["positions"])
    )
    ours = benchmark.pedantic(simulate_requests, args=(RULE, matches, regrets), rounds=1, iterations=1)
    taken, spends = 0.0, []
    for start in range(0, REQUESTS, CHUNK):  # lists of 2.6e7 floats at once would measure the memory
        lists = [x[start : start + CHUNK].tolist() for x in (matches, regrets)]
        began = perf_counter()
        spends += plain(*lists)
        taken += perf_counter() - began
    assert np.array_equal(ours.spent[:, -1], spends)
    ratio = taken / benchmark.stats.stats.min
    benchmark.extra_info["times faster than plain Python"] = round(ratio, 1)
    assert ratio >= 5
