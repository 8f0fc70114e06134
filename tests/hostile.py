"""Callables that break the contract, one way each; audited by name from the tests of black-box audits."""

from __future__ import annotations

import time

import numpy as np


def standard(tokens, q, p, rng):
    """The standard rule, as a stranger would write it."""
    for i, x in enumerate(tokens):
        if rng.random() * q[i, x] >= p[i, x]:
            residual = np.maximum(p[i] - q[i], 0)
            return np.append(tokens[:i], rng.choice(p.shape[1], p=residual / residual.sum())), i
    return np.append(tokens, rng.choice(p.shape[1], p=p[-1] / p[-1].sum())), len(tokens)


def matrix(tokens, q, p, rng):
    return standard(tokens, q, p, rng)[0][:, None]


def nothing(tokens, q, p, rng):
    return np.array([], dtype=int)


def outside(tokens, q, p, rng):
    out = standard(tokens, q, p, rng)[0]
    out[-1] = p.shape[1]
    return out


def negative(tokens, q, p, rng):
    return np.append(tokens, -1)


def too_many(tokens, q, p, rng):
    return np.append(tokens, [0, 0])


def not_a_number(tokens, q, p, rng):
    return np.append(standard(tokens, q, p, rng)[0][:-1].astype(float), np.nan)


def raises_now_and_then(tokens, q, p, rng):
    if rng.random() < 0.02:
        raise ZeroDivisionError("residual has no mass")
    return standard(tokens, q, p, rng)


def leaves(tokens, q, p, rng):
    raise SystemExit(3)


def sleeps(tokens, q, p, rng):
    time.sleep(3600)


def mutates(tokens, q, p, rng):
    p[0, tokens[0]] = 0.0
    return standard(tokens, q, p, rng)


def unseeded(tokens, q, p, rng):
    return standard(tokens, q, p, np.random.default_rng())


def miscounts(tokens, q, p, rng):
    return standard(tokens, q, p, rng)[0], len(tokens)


def rewrites(tokens, q, p, rng):
    out = standard(tokens, q, p, rng)[0]
    out[:-1] = (out[:-1] + 1) % p.shape[1]
    return out


def global_generator(tokens, q, p, rng):
    """Lossless, but draws from NumPy's global generator."""
    return standard(tokens, q, p, np.random.mtrand._rand)


def short_batch(tokens, q, p, rng):
    return np.concatenate([tokens, tokens[:, :1]], axis=1)[:-1]


short_batch.batched = True


# name -> the kind of verdict it must get
KINDS = {
    "matrix": "wrong shape",
    "nothing": "wrong shape",
    "short_batch": "wrong shape",
    "outside": "id outside the vocabulary",
    "negative": "id outside the vocabulary",
    "too_many": "too many tokens",
    "not_a_number": "NaN",
    "raises_now_and_then": "raises",
    "leaves": "raises",
    "sleeps": "time-out",
    "mutates": "inputs mutated",
    "unseeded": "not reproducible",
    "miscounts": "acceptance miscounted",
    "rewrites": "drafts rewritten",
}
