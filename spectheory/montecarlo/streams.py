"""Named random streams: what one part draws never shifts what another part sees."""

from __future__ import annotations

import zlib

import numpy as np


def streams(seed: int, *names: str) -> dict[str, np.random.Generator]:
    """One independent Generator a name, children of one seed. A stream depends on (seed, name) alone, not on the others."""
    key = {name: (zlib.crc32(name.encode()),) for name in names}
    return {name: np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key[name])) for name in names}
