"""Published examples and recorded rows for exponential races (E): the pairs G1, G4, G6, G8 and their exact values."""

from __future__ import annotations

from decimal import Decimal as D
from fractions import Fraction as F
from typing import Any

import numpy as np

from .. import exact
from ..protocols import Block
from ..testing.strategies import law_of as law
from . import ersd, multidraft, trees  # noqa: F401 - the checks that these examples join
from .checks import attach
from .rows import coarse

G1 = law(7, 3), law(4, 6)
G4 = law(4, 3, 2, 1), law(1, 1, 1, 1)
G6 = law(*(F(1, i) for i in range(1, 9))), law(*(F(1, i**2) for i in range(1, 9)))
G8 = law(9, 1), law(9999, 1)


def small(p: Any, q: Any, n: int) -> Any:
    """Coarse laws of four tokens, zeros included."""
    return coarse(p, q, 4)


def two(p: Any, q: Any, n: int) -> Any:
    return coarse(p, q, 2)


def recorded(block: Block) -> Any:
    """The first recorded position as coarse laws of four tokens, the draft's zeros (below a millionth) lifted."""
    p, q = coarse(np.asarray(block.p)[0], np.asarray(block.q)[0], 4)
    return p, law(*(x + F(1, 10**6) for x in q))


def listed(p: Any, q: Any, n: int) -> Any:
    """(P, Q, m) on coarse laws of four tokens."""
    return *coarse(p, q, 4), 1 + n % 3


def ranked(block: Block) -> Any:
    """(rank law of the first recorded position, k)."""
    p, q = coarse(np.asarray(block.p)[0], np.asarray(block.q)[0], 3)
    return exact.rank_law(p, q), 4


def path(block: Block) -> Any:
    """(rank laws of the block's positions, k)."""
    p, q = coarse(np.asarray(block.p)[: block.size], np.asarray(block.q), 3)
    return np.stack([exact.rank_law(a, b) for a, b in zip(p, q)]), 6


def contexts(block: Block) -> Any:
    """(the block's target laws, equal weights): contexts that one draft law stands for."""
    p, _ = coarse(np.asarray(block.p)[: block.size], np.asarray(block.q), 4)
    return p, law(*[1] * block.size)


attach("E1.lossless", golden=[(G4, G4[0])], pairs=small)
attach(
    "E1.accept",
    golden=[(G1, F(7, 10)), (G4, F(2181, 2860)), (G6, D(".676475237692367")), (G8, F(9001, 10**4))],
    pairs=small,
)
for claim in ("E1.lower", "E1.upper", "E1.uniform", "E7.matching"):
    attach(claim, golden=[(g, None) for g in (G1, G4, G6, G8)], pairs=small)
attach("E1.second", golden=[(G4, F(5689, 30030)), (G6, D(".22956780321194"))], blocks=recorded)
attach("E1.mean", golden=[(G1, F(13, 10)), (G4, D("1.29079254079254")), (G6, D("1.44134983988792"))], blocks=recorded)
attach("E1.two", golden=[(G1, [F(7, 10), F(3, 10)]), (G8, [F(9001, 10**4), F(999, 10**4)])], pairs=two)
for claim in ("E2.log_lambda", "E2.log", "E2.entropy", "E2.selection", "E2.dcs", "E2.kl"):
    attach(claim, golden=[(g, None) for g in (G1, G4)], blocks=recorded)
attach("E2.mixture", golden=[(G4, None), (G8, None)], blocks=recorded)
attach("E2.calibrated", blocks=contexts)
attach("E3.entropy", golden=[(G8, D(".596041"))], blocks=recorded)
attach("E3.monotone", golden=[((law(57, 38, 5), law(5994, 3996, 10)), None)])
attach("E3.zero", golden=[((law(0, 1), law(1, 0)), None)])
attach("E3.reuse", golden=[((law(1, 5, 4), law(6, 3, 1)), law(1, 5, 4))], pairs=small)
attach("E4.index", golden=[((*G4, 2), None)], pairs=listed)
attach("E4.list", golden=[((*G4, 2), None)], pairs=listed)
attach("E4.optimal", golden=[((*G4, 2), 1), ((*G6, 2), D(".8804622751218"))], pairs=listed)
attach("E4.wor", golden=[((*G6, 2), D(".9754684454799"))], pairs=listed)
attach("E4.kseq", golden=[((*G4, 2), D(".9204926287256")), ((*G6, 2), D(".81223553788"))], pairs=listed)

R4, R6 = exact.rank_law(*G4), exact.rank_law(*G6)
SIZES = [(R4, 1), (R4, 4), (R4, 16), (R6, 4), (R6, 16)]  # the rows of the published table


def column(*values: str) -> list[tuple[Any, Any]]:
    return [(at, D(v)) for at, v in zip(SIZES, values)]


TREES = column("1.76258741258741", "3.12578998618379")  # brute force over trees of 16 nodes is out of reach
PAPER = ("3.038105422257", "4.376824393228", "6.164784621931", "4.175911247212", "5.561258112715")
LEAF = ("2.843013403635", "4.050807229677", "5.772845605645", "4.056640295743", "5.419570051909")
VFREE = ("2.004477714598", "3.269162345109", "5.325950879096", "2.908551549746", "4.522226339507")
attach("E5", golden=TREES, blocks=lambda block: (ranked(block)[0], 3))
attach("E5.chain", golden=[((R4, 4), None)], blocks=ranked)
attach("E6.paper", golden=column(*PAPER), blocks=ranked)
attach("E6.leaf", golden=column(*LEAF), blocks=ranked)
attach("E6.vfree", golden=column(*VFREE), blocks=ranked)
attach("E6.lower", golden=[(at, None) for at in SIZES], blocks=ranked)
attach("E6.general", blocks=path)
attach("E6.averaged", golden=[((np.stack([law(1, 0), law(1, 1)]), 16), D("8.34"))])
