"""Published examples and recorded rows for the sequence theorems (Q).

A recorded block becomes a small model: its first three positions, merged to three tokens, are the rows of a table of order
1, so that a later context depends on the token before it. Three tokens and T = 3 are enumerated exactly.
"""

from __future__ import annotations

from decimal import Decimal as D
from fractions import Fraction as F
from typing import Any

import numpy as np

from ..models import Tabular
from ..protocols import Block
from ..testing import TableRule
from ..testing.strategies import law_of as law
from ..verifiers import Nucleus, Standard
from .checks import attach
from .nsd import C4
from .rows import coarse
from .sequence import BONUS_WITNESS, PARTIAL_WITNESS

TOP_P = Nucleus(F(4, 5))


def engine(p: Any, q: Any, length: int, block_size: int) -> Any:
    """NSD at top_p = .8 on a model without context."""
    return TOP_P, Tabular(p[None], q[None]), length, block_size


def c4(length: int, block_size: int) -> Any:
    p, q = C4
    return engine(p, q, length, block_size)


def markov(length: int, block_size: int) -> Any:
    """NSD at top_p = .8 on the Markov rows of the published table; one-step deviations .1, 0, .2."""
    target = np.stack([law(7, 2, 1), law(1, 6, 3), law(3, 3, 4)])
    draft = np.stack([law(5, 3, 2), law(3, 4, 3), law(2, 5, 3)])
    return TOP_P, Tabular(target, draft), length, block_size


def recorded(block: Block, rule: Any = TOP_P, block_size: int = 2) -> Any:
    """A recorded block as an engine of length 3 over a Markov model of three tokens."""
    p, q = coarse(np.asarray(block.p)[:3], np.asarray(block.q)[:3], 3)
    return rule, Tabular(p, q), 3, block_size


def one_row(block: Block) -> Any:
    """The first recorded position as a pair of coarse laws."""
    return coarse(np.asarray(block.p)[0], np.asarray(block.q)[0])


# p, q, always accept, and a residual that repairs nothing: V = 2, K = 1, T = 3.
REPAIR = (TableRule(law(1, 1)[None] * 0 + 1, law(0, 1)[None]), Tabular(law(1, 1)[None], law(1, 0)[None]), 3, 1)
TWO = engine(law(7, 3), law(4, 6), 2, 1)  # nucleus {0, 1}: positions alternate drafted, bonus
LONG = [(2, 1), (4, 1), (4, 2), (4, 4)]  # (T, K) of the published columns for C4
SHORT = [(2, 1), (4, 2), (4, 4)]  # and for the Markov rows


def columns(c4_values: str, markov_values: str = "") -> list[tuple[Any, Any]]:
    """Golden values for both published models, in the order of their (T, K)."""
    out = [(c4(*at), D(v)) for at, v in zip(LONG, c4_values.split())]
    return out + [(markov(*at), D(v)) for at, v in zip(SHORT, markov_values.split())]


def half(*values: F) -> list[tuple[Any, Any]]:
    return [(REPAIR, value) for value in values]


attach("Q1", golden=[(TWO, [F(28, 100), F(12, 100), F(42, 100), F(18, 100)])], blocks=recorded)
attach("Q1.standard", blocks=lambda block: recorded(block, Standard()))
attach("Q2", golden=columns(".36 .5844 .6924 .7599", ".11 .2573 .3129") + half(F(3, 4)), blocks=recorded)
attach("Q3", golden=columns(".36 .7104 .9696 1.2", ".11 .2706 .3329") + half(F(1)), blocks=recorded)
attach(
    "Q3.target",
    golden=columns(".405454545 .786870490 1.029493146 1.2", ".111666667 .286657870 .3656") + half(F(9, 8)),
    blocks=recorded,
)
attach("Q5", golden=columns(".281607136 .555704749 .758461887 .938690454"), blocks=recorded)
for claim in ("Q4", "Q5.reverse", "Q6", "Q7.dominated", "Q7.joint", "Q8", "Q8.count", "Q8.moments"):
    attach(claim, golden=[(c4(*at), None) for at in LONG], blocks=recorded)
attach("Q6.lower", golden=[(c4(4, 4), None)], blocks=lambda block: recorded(block, block_size=3))
attach("Q6.lower_any_k", golden=[(BONUS_WITNESS, D(".9994267"))], blocks=recorded)
for claim in ("Q5.pinsker", "Q5.bretagnolle_huber", "Q9"):
    attach(claim, golden=[(C4, None)], pairs=lambda p, q, n: (p, q))
attach("Q9.absolute", golden=[((law(1, 0), law(0, 1)), F(1, 2))], blocks=one_row)
attach(
    "Q7",
    golden=[((law(2, 3), law(7, 3), n), D(v)) for n, v in ((1, ".3"), (2, ".33"), (3, ".432"), (10, ".6834930498"))],
    blocks=lambda block: (*coarse(np.asarray(block.q)[0], np.asarray(block.p)[0], 3), 4),
)
attach("Q7.partial", golden=[(PARTIAL_WITNESS, None)])
