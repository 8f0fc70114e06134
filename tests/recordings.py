"""Small recordings and blocks that the audit's tests run over."""

from __future__ import annotations

import numpy as np

from spectheory import logits, pmf
from spectheory.protocols import Block


def make_blocks(n=12, vocab=60, size=3, seed=0, requests=4):
    """Blocks with drafts really drawn from q; rows of one request share a temperature, so they are dependent."""
    rng = np.random.default_rng(seed)
    out = []
    for b in range(n):
        request = b % requests
        z = rng.normal(size=(size + 1, vocab)) * (1 + request)
        w = z[:size] + rng.normal(size=(size, vocab))
        q = pmf.softmax(w)
        tokens = [int(rng.choice(vocab, p=row)) for row in q]
        out.append(Block(np.array(tokens), pmf.softmax(z), q, z, info={"request": f"r{request}"}))
    return out


def record(path, n=40, vocab=60, size=3, seed=0, requests=5, **manifest):
    """A recording on disk of `make_blocks`, several shards long; returns its path."""
    blocks = make_blocks(n, vocab, size, seed, requests)
    fields = {"block_size": size, "draft_mode": "sample", "eos_ids": [1], "tv_floor": 1e-3, **manifest}
    logits.write(blocks, path, **fields)
    return path
