"""Checks of the order among sequence bounds (Q2.least) and of the chain rule's equality (Q5.equality)."""

from __future__ import annotations

from typing import Any

from .. import exact
from ..testing import engines
from ..theory import sequence, sequence_order
from .checks import check
from .fixed_sequence import LONG, REPAIR, c4, recorded
from .sequence import the_chain


def coupling_by_paths(i: Any) -> float:
    """1 - W_T with the sum over (tokens, j) paths written out, path by path."""
    c = the_chain(i)

    def rest(t: int, context: int, j: int) -> float:
        if t == c.length:
            return 1.0
        total = 0.0
        for x in range(c.p.shape[1]):
            after = int(c.successors[context][x])
            p, out, kept = (float(law[context][x]) for law in (c.p, c.out, c.accepted))
            if j == c.block_size:
                total += p * rest(t + 1, after, 0) if p else 0
            elif min(p, out) > 0:
                stay = kept / out
                total += min(p, out) * (stay * rest(t + 1, after, j + 1) + (1 - stay) * rest(t + 1, after, 0))
        return total

    return 1 - rest(0, c.initial, 0)


check(
    "Q2.least",
    instances=engines(3),
    claimed=lambda i: sequence_order.beaten(the_chain(i)),
    second=coupling_by_paths,
    mutated=lambda i: [sequence.coupling(the_chain((*i[:2], 1, i[3])))],
    golden=[*((c4(*at), None) for at in LONG), (REPAIR, None)],
    blocks=recorded,
)
check(
    "Q5.equality",
    instances=engines(3, no_bonus=True),
    claimed=lambda i: sequence_order.kl_without_bonus(the_chain(i)),
    second=lambda i: exact.sequence_kl(i[0], i[1], length=i[2], block_size=i[3])[1],
    mutated=lambda i: sequence_order.kl_without_bonus(the_chain((*i[:2], max(1, i[2] - 1), i[3]))),
    golden=[(c4(4, 4), None)],
    blocks=lambda block: recorded(block, block_size=3),
)
