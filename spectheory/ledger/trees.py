"""Checks of trees and bounds (E5, E6): brute force over all trees, greedy growth from plain lists, varying contexts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import pmf
from ..testing import budgets, path_laws
from ..theory import trees
from .checks import check


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
    second=lambda i: i[1] + 1 if i[0][0] == 1 else (1 - i[0][0] ** (i[1] + 1)) / (1 - i[0][0]),
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
    claimed=lambda i: trees.paper_bound(i[0], i[1], len(i[0])),
    second=lambda i: best_tokens(*i),
    mutated=lambda i: trees.paper_bound(i[0], i[1], len(i[0])) / 2,
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
