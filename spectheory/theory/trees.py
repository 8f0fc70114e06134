"""Optimal draft trees over ranks (E5) and the speed-up bounds that hold for every k (E6).

A node is a path of ranks; in the context-free model its probability is the product of rank probabilities, and
E[tokens] = 1 + sum of the probabilities of the drafted nodes: the token at depth d + 1 is emitted iff the walk reaches
depth d. The best k nodes are the k most probable paths (a prefix is at least as probable, so they are prefix-closed).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, is_rational, to_law, total
from ..errors import DataError, UsageError
from ..results import Interval
from .registry import theorem
from .standard import expected_tokens as expected_tokens_iid

ERSD = "arXiv:2504.15475"
TUNSTALL = "leaf-entropy theorem (Tunstall 1967), after arXiv:2504.15475"


class Tree(NamedTuple):
    """k nodes, most probable first: `parent` (k,) indices, -1 for children of the root; `rank` (k,) from 1; `prob` (k,)."""

    parent: Array
    rank: Array
    prob: Array


class Forest(NamedTuple):
    """A tree for each of several requests under one budget: as `Tree`, and `request` (k,), the index of the request."""

    parent: Array
    rank: Array
    prob: Array
    request: Array


def _rank_pmf(rank_pmf: Array) -> Any:
    """A checked rank law (n,): non-negative, sum 1 within 1e-6 (a truncated law may be given with its lost mass last)."""
    pmf = to_law(np.asarray(rank_pmf))
    if pmf.ndim != 1 or pmf.size == 0:
        raise DataError(f"a rank law is one row of probabilities, not of shape {pmf.shape}")
    bad = np.flatnonzero([not 0 <= x <= 1 + 1e-9 for x in pmf])
    if len(bad):
        raise DataError(f"rank law, rank {int(bad[0]) + 1}: {float(pmf[bad[0]])} is not a probability")
    if abs(float(total(pmf)) - 1) > 1e-6:
        raise DataError(f"the rank law sums to {float(total(pmf)):.9g}, not 1")
    return pmf


def _budget(k: int) -> int:
    if k != int(k) or k < 0:
        raise UsageError(f"k must be a whole number >= 0 of drafted tokens, not {k}")
    return int(k)


def optimal_tree(rank_pmf: Array, k: int) -> Tree:
    """The `k` most probable paths of ranks under `rank_pmf` (n,): the tree that maximises E[tokens] (E5). O(k log n).

    Siblings are taken by probability, not by rank. In order of falling probability the nodes are the merge of the
    sequences p_r x (root, node 1, node 2, ...), one a rank: one heap entry a rank in use. Exact on Fractions; nodes
    without probability are left out, so fewer than `k` may come back. Raises UsageError for k < 0, DataError for no law.
    """
    forest = optimal_forest([rank_pmf], k)
    return Tree(forest.parent, forest.rank, forest.prob)


def optimal_forest(rank_pmfs: Sequence[Array], k: int) -> Forest:
    """The best `k` nodes in all over a batch of requests, each with its own rank law: maximises the summed E[tokens].

    `prob` is given within a request; nodes come most probable first. Raises as `optimal_tree`.
    """
    k, laws = _budget(k), [_rank_pmf(x) for x in rank_pmfs]
    ranks = [[int(r) for r in np.argsort(-x, kind="stable") if x[r] > 0] for x in laws]
    probs = [[x[r] if is_rational(x) else float(x[r]) for r in order] for x, order in zip(laws, ranks)]
    parent: list[int] = []
    rank: list[int] = []
    prob: list[Any] = []
    request: list[int] = []
    outputs: list[list[int]] = [[-1] for _ in laws]  # the nodes of a request in order, its root first
    # (minus probability, tie-break, request, position of the rank in its order, position of the parent in `outputs`)
    heap = [(-p[0], b, b, 0, 0) for b, p in enumerate(probs)]
    heapq.heapify(heap)
    for n in range(k):
        if not heap:
            break
        minus, _, b, j, at = heap[0]
        mine, p = outputs[b], probs[b]
        above = mine[at]
        parent.append(above)
        rank.append(ranks[b][j] + 1)
        prob.append(-minus)
        request.append(b)
        mine.append(n)
        # The next candidate of this rank hangs under the next node; it exists, as the node just made is one.
        heapq.heapreplace(heap, (-p[j] * prob[mine[at + 1]], n, b, j, at + 1))
        if at == 0 and j + 1 < len(p):
            heapq.heappush(heap, (-p[j + 1], n, b, j + 1, 0))
    exact = any(is_rational(x) for x in laws)
    probability = np.array(prob, dtype=object if exact else np.float64)
    return Forest(
        np.array(parent, dtype=np.int64), np.array(rank, dtype=np.int64), probability, np.array(request, np.int64)
    )


@theorem(
    "E5",
    source=ERSD,
    statement=r"\max_{|T| = k} \mathbb{E}[\#\mathrm{generated}] = 1 + \sum_{v \in T_k} P(v),\ T_k \text{ the } k \text{ likeliest paths}",
    relation="=",
    hypotheses="context-free ranks with law rank_pmf; prefix-closed trees of k nodes",
    status="proved",
)
def expected_tokens(rank_pmf: Array, k: int) -> Any:
    """E*[tokens per target call] of the optimal tree of `k` drafted nodes; 1 at k = 0, k + 1 if one rank is certain.

    Exact on Fractions. Raises as `optimal_tree`.
    """
    prob = optimal_tree(rank_pmf, k).prob
    return 1 + total(prob) if is_rational(prob) else 1 + math.fsum(prob)


@theorem(
    "E5.chain",
    source=ERSD,
    statement=r"\mathbb{E}[\#\mathrm{generated}] = (1 - a^{k+1}) / (1 - a)",
    relation="=",
    hypotheses="the chain of first drafts, acceptance a = P(R = 1), independent positions",
    status="proved",
)
def chain_tokens(a: Any, k: int) -> Any:
    """Expected tokens of a chain of `k` drafts with acceptance `a`; k + 1 at a = 1. Exact on Fractions."""
    return expected_tokens_iid(a, _budget(k))


def leaves(k: int, children: int) -> int:
    """Leaves of a tree with k + 1 internal nodes (root and drafted) of `children` children each: (k + 1)(c - 1) + 1."""
    return (k + 1) * (children - 1) + 1


def _entropy(pmf: Any) -> float:
    return math.fsum(-float(x) * math.log(float(x)) for x in pmf if 0 < x < 1)


@theorem(
    "E6.leaf",
    source=TUNSTALL,
    statement=r"\mathbb{E}^*[\#\mathrm{generated}] \le \ln M_k / H[R],\ M_k = (k+1)(s-1) + 1",
    relation="<=",
    hypotheses="context-free ranks, s of them possible; any k; infinite at H[R] = 0",
    status="proved",
)
def leaf_bound(rank_pmf: Array, k: int) -> float:
    """ln M_k / H[R]: the exit leaf of the completed tree has entropy E[tokens] H[R], at most the log of its leaves."""
    pmf = _rank_pmf(rank_pmf)
    h, support = _entropy(pmf), int((pmf > 0).sum())
    return math.inf if h == 0 else math.log(leaves(_budget(k), support)) / h


@theorem(
    "E6.paper",
    source=ERSD,
    statement=r"\mathbb{E}^*[\#\mathrm{generated}] \le (\ln V + \ln(k+1)) / H[R]",
    relation="<=",
    hypotheses="context-free ranks over a vocabulary of V; infinite at H[R] = 0",
    status="proved",
)
def paper_bound(rank_pmf: Array, k: int, vocab_size: int) -> float:
    """(ln V + ln(k + 1)) / H[R], from M_k <= V (k + 1). Raises UsageError if fewer than the possible ranks are in V."""
    pmf = _rank_pmf(rank_pmf)
    h, support = _entropy(pmf), int((pmf > 0).sum())
    if vocab_size < support:
        raise UsageError(f"{support} ranks have mass: the vocabulary cannot have only {vocab_size} tokens")
    return math.inf if h == 0 else (math.log(vocab_size) + math.log(_budget(k) + 1)) / h


@theorem(
    "E6.lower",
    source=TUNSTALL,
    statement=r"\mathbb{E}^*[\#\mathrm{generated}] \ge (\ln M_k - \ln 1/p_{\min}) / H[R]",
    relation=">=",
    hypotheses="context-free ranks, p_min the least positive rank probability; k + 1 at H[R] = 0",
    status="proved",
)
def lower_bound(rank_pmf: Array, k: int) -> float:
    """(ln M_k - ln 1 / p_min) / H[R]: every leaf of the optimal tree is at least p_min times as probable as any other."""
    pmf = _rank_pmf(rank_pmf)
    h, positive = _entropy(pmf), [float(x) for x in pmf if x > 0]
    if h == 0:
        return float(_budget(k) + 1)
    return (math.log(leaves(_budget(k), len(positive))) + math.log(min(positive))) / h


@theorem(
    "E6.vfree",
    source="ours, by the leaf-entropy theorem",
    statement=r"\mathbb{E}^*[\#\mathrm{generated}] \le \ln((k+1) m + 1) / H[R_m]",
    relation="<=",
    hypotheses="the optimal tree uses m distinct ranks; R_m merges the others into one miss; infinite at H[R_m] = 0; "
    "1 at k = 0; with no rank left to merge the leaves are M_k, as in E6.leaf",
    status="proved",
)
def vfree_bound(rank_pmf: Array, k: int) -> float:
    """ln((k + 1) m + 1) / H[R_m], m the number of distinct ranks in the optimal tree: V does not enter."""
    return vfree(rank_pmf, k)[0]


def vfree(rank_pmf: Array, k: int) -> tuple[float, int]:
    """(`vfree_bound`, m). Where no rank is left to merge the tree has M_k leaves, as in `leaf_bound`."""
    pmf, k = _rank_pmf(rank_pmf), _budget(k)
    if k == 0:
        return 1.0, 0  # nothing is drafted: one token
    used = np.unique(optimal_tree(pmf, k).rank) - 1
    m = len(used)
    kept = [float(pmf[r]) for r in used]
    rest = math.fsum(float(x) for x in np.delete(pmf, used))
    h = _entropy([*kept, rest])
    if h == 0:
        return math.inf, m
    return math.log((k + 1) * m + 1 if rest > 0 else leaves(k, m)) / h, m


def speedup_bounds(rank_pmf: Array, k: int, vocab_size: int) -> dict[str, Interval]:
    """E6 around E*[tokens] at budget `k`: upper bounds `paper`, `leaf`, `vfree`, and `lower`, all certified Intervals.

    `H[R]` = 0 (equal laws) gives infinite upper bounds: then E* = k + 1. Raises UsageError for k < 0, DataError for no law.
    """
    pmf = _rank_pmf(rank_pmf)
    most = float(_budget(k) + 1)
    upper = {"paper": paper_bound(pmf, k, vocab_size), "leaf": leaf_bound(pmf, k), "vfree": vfree_bound(pmf, k)}
    return {
        **{name: Interval.upper_bound(max(x, 1.0), f"E6.{name}", lower=1.0) for name, x in upper.items()},
        "lower": Interval(min(lower_bound(pmf, k), most), None, most, "certified", None, "E6, Tunstall"),
    }


@theorem(
    "E6.general",
    source="ours, by the leaf-entropy theorem",
    statement=r"\sum_{v \in \{\mathrm{root}\} \cup T} P(v) H(R_v \mid v) \le \ln((k+1)(V-1) + 1)",
    relation="<=",
    hypotheses="any tree of k drafted nodes, ranks whose law depends on the whole path",
    status="proved",
)
def general_bound(k: int, vocab_size: int) -> float:
    """ln((k + 1)(V - 1) + 1) in nats: caps the path-weighted conditional entropies of any drafted tree, in any contexts."""
    return math.log(leaves(_budget(k), vocab_size))


@theorem(
    "E6.averaged",
    source=f"{ERSD}, as usually read",
    statement=r"\mathbb{E}^*[\#\mathrm{generated}] \le \ln((k+1)(V-1) + 1) / \bar H,\ \bar H \text{ the averaged entropy}",
    relation="<=",
    hypotheses="contexts that vary and persist",
    status="false",
    counterexample="two persistent classes w.p. 1/2: P = Q, and P = (0, 1), Q = (1/2, 1/2); k = 16 yields 9.5 tokens > 5.14",
    replacement="E6.general",
)
def averaged_bound(entropies: Any, k: int, vocab_size: int) -> float:
    """The false bound: the leaf bound with the entropy averaged over contexts (E3). `entropies` (n,) in nats."""
    h = float(np.mean(entropies))
    return math.inf if h == 0 else general_bound(k, vocab_size) / h
