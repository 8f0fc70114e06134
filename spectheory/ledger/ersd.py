"""Checks of ERSD's claims: rank laws by quadrature or subset sums, trees by brute force, lists by linear programmes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from .. import exact, pmf
from ..testing import budgets, calibrated, lists, path_laws, race_pairs, rational_pairs, skewed_pairs
from ..theory import ersd, multidraft, trees
from ..verifiers.exponential_race import ExponentialRace
from .checks import check

RULE = ExponentialRace()


def race(name: str, claimed: Any, second: Any, mutated: Any, instances: Any = None, tolerance: float = 1e-9) -> None:
    """A check over pairs (P, Q)."""
    check(
        name,
        instances=rational_pairs(1, 4) if instances is None else instances,
        claimed=lambda i: claimed(*i),
        second=lambda i: second(*i),
        mutated=lambda i: mutated(*i),
        tolerance=tolerance,
    )


def accepted(p: Any, q: Any) -> Any:
    return exact.rank_law(p, q)[0]


race("E1.lossless", ersd.output_law, lambda p, q: exact.output_law(RULE, p, q), lambda p, q: q, tolerance=0)
race("E1.accept", ersd.acceptance, accepted, lambda p, q: 1 - pmf.total_variation(p, q), tolerance=0)
race("E1.lower", ersd.acceptance_lower, accepted, ersd.acceptance_upper, tolerance=0)
race("E1.upper", ersd.acceptance_upper, accepted, ersd.acceptance_lower, tolerance=0)
race(
    "E1.second",
    ersd.second_rank,
    lambda p, q: exact.rank_law(p, q)[1],
    lambda p, q: 1 - ersd.acceptance(p, q),
    race_pairs(2),
    0,
)
race(
    "E1.mean",
    ersd.mean_rank,
    lambda p, q: exact.mean(exact.rank_law(p, q)),
    lambda p, q: exact.index_mean(p, q),
    race_pairs(),
    0,
)
race(
    "E1.two",
    ersd.two_token_law,
    exact.rank_law,
    lambda p, q: ersd.two_token_law(p, q)[::-1],
    rational_pairs(2, 2),
    0,
)


def uniform(law: Any) -> Any:
    """The uniform law on the support of `law`, in Fractions."""
    n = int(np.sum(law > 0))
    return np.array([Fraction(int(x > 0), n) for x in law], dtype=object)


race(
    "E1.uniform",
    ersd.jaccard,
    lambda p, q: accepted(uniform(p), uniform(q)),
    lambda p, q: 1 - pmf.total_variation(uniform(p), uniform(q)),
    tolerance=0,
)


def mean_log_index(p: Any, q: Any) -> float:
    """E ln K over the first 1500 indices, a lower bound; the tail is below (50 / 51)^1500 for weights up to 12."""
    return exact.log_mean(exact.index_law(p.astype(float), q.astype(float), 1500))


def rank_entropy(p: Any, q: Any) -> float:
    return float(pmf.entropy(exact.rank_law(p, q)))


def index_entropy(p: Any, q: Any) -> float:
    return exact.index_entropy(p, q).upper


race("E2.log_lambda", ersd.log_rank_lambda, mean_log_index, lambda p, q: ersd.log_rank_lambda(p, q) / 2, race_pairs())
race(
    "E2.log",
    ersd.log_rank_bound,
    ersd.log_rank_lambda,
    lambda p, q: ersd.log_rank_bound(p, q) - math.log(2),
    race_pairs(),
)
race(
    "E2.entropy",
    ersd.index_entropy_bound,
    lambda p, q: max(rank_entropy(p, q), index_entropy(p, q)),
    lambda p, q: ersd.divergence(p, q),
    race_pairs(),
)
race(
    "E2.selection",
    ersd.selection_entropy,
    index_entropy,
    lambda p, q: index_entropy(p, q) + ersd.selection_entropy(p, q) / 2,
    race_pairs(),
)
race(
    "E2.dcs",
    ersd.channel_simulation_divergence,
    ersd.selection_entropy,
    ersd.index_entropy_bound,
    race_pairs(),
)
race("E2.kl", ersd.divergence, ersd.channel_simulation_divergence, ersd.log_rank_bound, race_pairs())


def mixture(p: Any, q: Any) -> float:
    return ersd.mixture_bound(p, exact.rank_law(p, q), exact.draft_laws(q))


race("E2.mixture", mixture, rank_entropy, lambda p, q: ersd.divergence(p, q), skewed_pairs())


def class_rank_law(targets: Any, weights: Any) -> Any:
    mean = (weights[:, None] * targets).sum(axis=0)
    return sum(w * exact.rank_law(t, mean) for t, w in zip(targets, weights) if w > 0)


check(
    "E2.calibrated",
    instances=calibrated(),
    claimed=lambda i: ersd.calibrated_bound(*i),
    second=lambda i: float(pmf.entropy(class_rank_law(*i))),
    mutated=lambda i: 2 * ersd.calibrated_bound(*i) + 0.1,
)

race("E3.entropy", ersd.naive_entropy_bound, rank_entropy, mixture, skewed_pairs())
race(
    "E3.monotone",
    lambda p, q: ersd.rank_rise(exact.rank_law(p, q)),
    lambda p, q: max(np.diff(exact.rank_law(p, q))),
    lambda p, q: 1 - accepted(p, q),
    rational_pairs(2, 4),
    0,
)
race(
    "E3.zero",
    ersd.distance_at_zero_entropy,
    lambda p, q: pmf.total_variation(p, q) if rank_entropy(p, q) == 0 else 0,
    lambda p, q: 1 - accepted(p, q),
    tolerance=0,
)


def reused_by_order(p: Any, q: Any) -> Any:
    """The shared-noise output law by following the noise: where the draft's race ends at time s with winner x,

    E_x = s q_x and, by memorylessness, E_j = s q_j + Exp(1) for the others; s is integrated by Gauss-Laguerre.
    """
    res, reject = pmf.residual(p, q).astype(float), np.maximum(q - p, 0).astype(float)
    out, q = np.minimum(p, q).astype(float), q.astype(float)
    for s, w in zip(*np.polynomial.laguerre.laggauss(20)):
        # A rejected x has q(x) > p(x), hence no residual mass: the residual's race is among the others.
        out = out + reject.sum() * w * _head_start(res, s * q)
    return out


def _head_start(law: Any, start: Any) -> Any:
    """P(argmin (start_j + Exp(1)) / law_j = y), (V,): hazards law_j switch on at times start_j / law_j."""
    alive = np.flatnonzero(law > 0)
    begin = start[alive] / law[alive]
    out, survive = np.zeros(len(law)), 1.0
    times = [*np.sort(begin), math.inf]
    for a, b in zip(times, times[1:]):
        on = alive[begin <= a]
        hazard = law[on].sum()
        gone = survive * -math.expm1(-hazard * (b - a))
        out[on] += gone * law[on] / hazard
        survive -= gone
    return out


race("E3.reuse", ersd.lossless_law, reused_by_order, ersd.reused_noise_law, rational_pairs(2, 4))


def conditional_miss(p: Any, q: Any) -> Any:
    joint = exact.rank_joint(p, q)[:, 0]
    return np.array([1 - a / b if b > 0 else 0 for a, b in zip(joint, p)], dtype=object)


race("E7.matching", ersd.matching_miss, conditional_miss, lambda p, q: ersd.matching_miss(p, q) / 2, tolerance=0)


def transport(p: Any, sets: dict[int, Any]) -> float:
    """The optimal multi-draft acceptance as a linear programme: couple the drafted set S (a bit mask) with y ~ p."""
    from scipy.optimize import linprog

    masks, size = list(sets), len(p)
    cost = [-float(s >> y & 1) for s in masks for y in range(size)]
    rows = np.kron(np.eye(len(masks)), np.ones(size))
    columns = np.kron(np.ones(len(masks)), np.eye(size))
    right = [*(float(sets[s]) for s in masks), *p.astype(float)]
    return -float(linprog(cost, A_eq=np.vstack([rows, columns]), b_eq=right, method="highs").fun)


def iid_sets(q: Any, m: int) -> dict[int, Any]:
    """Law of the set of m i.i.d. drafts, by bit mask."""
    law = {0: 1 + 0 * q[0]}
    for _ in range(m):
        following: dict[int, Any] = {}
        for s, w in law.items():
            for i in np.flatnonzero(q > 0):
                following[s | 1 << int(i)] = following.get(s | 1 << int(i), 0) + w * q[i]
        law = following
    return law


def race_sets(q: Any, m: int) -> dict[int, Any]:
    """Law of the set of the first m tokens of the draft order, by bit mask: summed over all draft orders."""
    law: dict[int, Any] = {}

    def walk(s: int, w: Any, left: int) -> None:
        rest = [i for i in range(len(q)) if q[i] > 0 and not s >> i & 1]
        if left == 0 or not rest:
            law[s] = law.get(s, 0) + w
            return
        for i in rest:
            walk(s | 1 << i, w * q[i] / sum(q[j] for j in rest), left - 1)

    walk(0, 1 + 0 * q[0], m)
    return law


check(
    "E4.index",
    instances=lists(),
    claimed=lambda i: multidraft.index_acceptance(*i),
    second=lambda i: sum(exact.rank_law(i[0], i[1])[: i[2]]),
    mutated=lambda i: multidraft.optimal_wor(*i),
    tolerance=0,
)
check(
    "E4.list",
    instances=lists(),
    claimed=lambda i: multidraft.list_bound(*i),
    second=lambda i: sum(exact.index_law(*i)),
    mutated=lambda i: multidraft.optimal_wor(*i),
    tolerance=0,
)
check(
    "E4.optimal",
    instances=lists(3),
    claimed=lambda i: float(multidraft.optimal_iid(*i)),
    second=lambda i: transport(i[0], iid_sets(i[1], i[2])),
    mutated=lambda i: float(multidraft.optimal_iid(i[0], i[1], i[2] + 1)),
    tolerance=1e-8,
)
check(
    "E4.wor",
    instances=lists(3),
    claimed=lambda i: float(multidraft.optimal_wor(*i)),
    second=lambda i: transport(i[0], race_sets(i[1], i[2])),
    mutated=lambda i: float(multidraft.optimal_iid(*i)),
    tolerance=1e-8,
)


def least_valid_kseq(p: Any, q: Any, m: int) -> float:
    """K-SEQ's acceptance by bisecting rho on the pointwise condition: the law of accepted tokens must not exceed P."""
    p, q = p.astype(float), q.astype(float)

    def accepted_law(rho: float) -> Any:
        one = np.minimum(q, p / rho)
        return one * sum((1 - one.sum()) ** n for n in range(m))

    low, high = 1.0, float(m)
    if (accepted_law(low) <= p + 1e-13).all():
        return float(accepted_law(low).sum())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if (accepted_law(middle) <= p + 1e-14).all() else (middle, high)
    return float(accepted_law(high).sum())


check(
    "E4.kseq",
    instances=lists(),
    claimed=lambda i: multidraft.kseq_acceptance(*i),
    second=lambda i: least_valid_kseq(*i),
    mutated=lambda i: float(multidraft.optimal_iid(*i)),
    tolerance=1e-8,
)


def all_trees(ranks: int, k: int) -> Iterator[frozenset[tuple[int, ...]]]:
    """Every prefix-closed set of k paths over `ranks` ranks."""
    level = {frozenset[tuple[int, ...]]()}
    for _ in range(k):
        level = {t | {(*v, r)} for t in level for v in [(), *t] for r in range(ranks) if (*v, r) not in t}
    yield from level


def brute_tokens(law: Any, k: int) -> Any:
    return max(1 + sum(math.prod(law[r] for r in v) for v in tree) for tree in all_trees(len(law), k))


def rank_order_tokens(law: Any, k: int) -> Any:
    """The wrong tree: k children of the root in the order of rank."""
    return 1 + sum(law[:k])


check(
    "E5",
    instances=budgets(3, 4),
    claimed=lambda i: trees.expected_tokens(*i),
    second=lambda i: brute_tokens(*i),
    mutated=lambda i: rank_order_tokens(*i),
    tolerance=0,
)
check(
    "E5.chain",
    instances=budgets(3, 6),
    claimed=lambda i: trees.chain_tokens(i[0][0], i[1]),
    second=lambda i: 1 + sum(math.prod([i[0][0]] * d) for d in range(1, i[1] + 1)),
    mutated=lambda i: trees.expected_tokens(*i),
    tolerance=0,
)


def best_tokens(law: Any, k: int) -> float:
    """E*[tokens] by growing the tree greedily, one most probable path at a time, from plain lists."""
    open_paths, total = [float(x) for x in law], 1.0
    for _ in range(k):
        best = max(open_paths)
        open_paths.remove(best)
        open_paths += [best * float(x) for x in law]
        total += best
    return total


check(
    "E6.leaf",
    instances=budgets(),
    claimed=lambda i: trees.leaf_bound(*i),
    second=lambda i: best_tokens(*i),
    mutated=lambda i: trees.lower_bound(*i),
)
check(
    "E6.paper",
    instances=budgets(),
    claimed=lambda i: trees.paper_bound(*i, len(i[0])),
    second=lambda i: best_tokens(*i),
    mutated=lambda i: trees.paper_bound(*i, len(i[0])) / 2,
)
check(
    "E6.lower",
    instances=budgets(),
    claimed=lambda i: trees.lower_bound(*i),
    second=lambda i: best_tokens(*i),
    mutated=lambda i: trees.leaf_bound(*i),
)
check(
    "E6.vfree",
    instances=budgets(),
    claimed=lambda i: trees.vfree_bound(*i),
    second=lambda i: best_tokens(*i),
    mutated=lambda i: trees.vfree_bound(*i) * 0.8,
)


def path_entropy(laws: Any, k: int) -> float:
    """sum over the root and k most probable paths of P(v) H(R_v), the law after a path being row sum(path) mod c."""
    entropies = [float(pmf.entropy(x)) for x in laws]
    total, drafted = entropies[0], 0
    open_paths = [(float(x), r) for r, x in enumerate(laws[0], 1)]
    while drafted < k and open_paths:
        best = max(open_paths)
        open_paths.remove(best)
        row = best[1] % len(laws)
        total += best[0] * entropies[row]
        open_paths += [(best[0] * float(x), best[1] + r) for r, x in enumerate(laws[row], 1)]
        drafted += 1
    return total


check(
    "E6.general",
    instances=path_laws(),
    claimed=lambda i: trees.general_bound(i[1], len(i[0][0])),
    second=lambda i: path_entropy(*i),
    mutated=lambda i: math.log(i[1] * (len(i[0][0]) - 1) + 1),
)


def persistent_tokens(laws: Any, k: int) -> float:
    """E[tokens] of the best tree when one of the laws, drawn uniformly, holds along the whole path."""
    start = np.ones(len(laws)) / len(laws)
    rows, total = laws.astype(float), 1.0
    open_paths = [start * rows[:, r] for r in range(rows.shape[1])]
    for _ in range(k):
        at = int(np.argmax([x.sum() for x in open_paths]))
        best = open_paths.pop(at)
        total += float(best.sum())
        open_paths += [best * rows[:, r] for r in range(rows.shape[1])]
    return total


check(
    "E6.averaged",
    instances=path_laws(3, 24),
    claimed=lambda i: trees.averaged_bound([float(pmf.entropy(x)) for x in i[0]], i[1], len(i[0][0])),
    second=lambda i: persistent_tokens(*i),
    mutated=lambda i: float(np.mean([trees.leaf_bound(x, i[1]) for x in i[0]])),
)
