"""Slow, obvious definitions in Fractions or plain loops: what the fast code is compared with."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def output_law(rule, p, q):
    """p~(y) = d(y) A(y) + sum_x d(x) (1 - A(x)) r(y | x), term by term; d is the law really drafted from."""
    from spectheory.protocols import depends_on_rejected

    size = len(p)
    accept, d = rule.acceptance(p, q), rule.drafted(p, q)
    law = [d[y] * accept[y] for y in range(size)]
    for x in range(size):
        weight = d[x] * (1 - accept[x])
        if weight == 0:
            continue
        r = rule.residual(p, q, x) if depends_on_rejected(rule) else rule.residual(p, q)
        for y in range(size):
            law[y] += weight * r[y]
    return law


def total_variation(p, q):
    return sum(max(a - b, 0) for a, b in zip(p, q))


def nucleus(p, top_p):
    """Indices, walking down the sorted tokens until their mass reaches top_p."""
    if top_p == 0:
        return set()
    if top_p == 1:
        return {i for i, x in enumerate(p) if x > 0}
    kept, mass = set(), Fraction(0)
    for i in sorted(range(len(p)), key=lambda i: (-p[i], i)):
        kept.add(i)
        mass += p[i]
        if mass >= top_p:
            return kept
    return kept


def rational(p, scale=10**6):
    """A float law as Fractions that sum to exactly 1."""
    weights = [Fraction(round(float(x) * scale)) for x in p]
    total = sum(weights)
    return np.array([w / total for w in weights], dtype=object)
