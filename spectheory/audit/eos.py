"""End of text: verifiers ignore it, what is committed does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..arrays import Array
from ..protocols import Verdict


def truncate_at_eos(verdict: Verdict, eos_ids: Sequence[int]) -> Verdict:
    """The verdict as an engine commits it: tokens up to and including the first of `eos_ids`, nothing behind it.

    `accepted` counts the drafts that are still committed. Without an end-of-text token the verdict is unchanged.
    """
    ends = np.flatnonzero(np.isin(verdict.tokens, list(eos_ids)))
    if not ends.size:
        return verdict
    kept = int(ends[0]) + 1
    return replace(verdict, accepted=min(verdict.accepted, kept), tokens=verdict.tokens[:kept])


def expected_tokens(accept: Array, ends: Array | None = None) -> float:
    """E[tokens that one target call commits], over the coins, of one block of given drafts.

    `accept` (K,) are the acceptance probabilities of the drafted tokens, `ends` (K,) says which of them end the text.
    1 + sum_i prod_{j <= i} accept_j; with an end at draft e, an accepted prefix stops there and earns no further token.
    """
    reach = np.cumprod(np.asarray(accept, dtype=np.float64))
    at = np.flatnonzero(ends) if ends is not None else np.empty(0, dtype=int)
    if not at.size:
        return float(1 + reach.sum())
    last = int(at[0])
    return float(reach[: last + 1].sum() + 1 - reach[last])
