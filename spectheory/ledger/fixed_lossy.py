"""Published examples, synthetic families and recorded rows for the lossy rules (V)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction as F
from typing import Any

from ..verifiers import Nucleus
from ..verifiers.slack import AdditiveSlack
from ..verifiers.typical import Typical
from . import lossy  # noqa: F401 - the checks that these examples join
from .checks import attach
from .nsd import C4
from .rows import coarse

LEVELS = (F(3, 10), F(9, 10), F(1, 20), F(1, 2))
RULES = (Nucleus(F(9, 10)), AdditiveSlack(F(3, 10)), Typical(F(9, 100), F(3, 10), "argmax"))


def with_value(values: tuple[Any, ...]) -> Callable[[Any, Any, int], Any]:
    """Pairs of laws with these settings in turn."""
    return lambda p, q, n: (p, q, values[n % len(values)])


def likely_draft(p: Any, q: Any, n: int) -> Any:
    """(p, the draft's likeliest token, (single, acc)) on coarse laws: `x` with p(x) > 0."""
    p, q = coarse(p, q)
    x = max((x for x in range(len(p)) if p[x] > 0), key=lambda x: q[x])
    return p, x, (LEVELS[n % 4], LEVELS[(n + 1) % 4])


def with_other_law(p: Any, q: Any, n: int) -> Any:
    """(p, q, alpha, p') with p' between p and q, on coarse laws."""
    p, q = coarse(p, q)
    return p, q, F(1, 2), (p + q) / 2


attach("V.line", pairs=with_value(RULES))
for claim in ("V.ensemble", "V.ensemble.line", "V.slack.bound", "V.constant", "V.constant.least"):
    attach(claim, pairs=with_value(LEVELS))
attach("V.slack", golden=[((*C4, F(3, 10)), F(144, 1000))], pairs=with_value(LEVELS))
attach("V.mentored", pairs=lambda p, q, n: (*coarse(p, q), LEVELS[n % 4]))
attach("V.mentored.optimal", pairs=with_other_law)
TYPICAL = ((F(9, 100), F(3, 10)), (F(1), F(1, 2)))  # Medusa's settings; M15's
attach("V.typical.target", pairs=with_value(TYPICAL))
attach("V.typical.argmax", golden=[((*C4, TYPICAL[1]), F(3, 10))], pairs=with_value(TYPICAL))
attach("V.fuzzy", pairs=with_value(tuple((x, d) for x in LEVELS for d in ("tv", "kl", "js"))))
attach("V.fuzzy.bound", pairs=with_value(LEVELS))
attach("V.thresholds.single", pairs=likely_draft)
attach("V.thresholds", pairs=with_value(tuple(itertools.pairwise(LEVELS))))
attach("V.cactus", pairs=likely_draft)
for claim in ("V.cactus.chi2", "V.cactus.line"):
    attach(claim, pairs=lambda p, q, n: (*coarse(p, q), LEVELS[n % 4]))
attach("V.cactus.emitted", pairs=lambda p, q, n: (*coarse(p, q), LEVELS[n % 4]))
