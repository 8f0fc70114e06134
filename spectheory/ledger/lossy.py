"""Checks of the lossy rules' claims against the exact engine."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .. import exact
from ..pmf import chi_square, kl, total_variation
from ..testing import rational_laws, rational_pairs
from ..theory import lossy
from ..verifiers import Standard
from ..verifiers.cactus import Cactus
from ..verifiers.constant import Constant
from ..verifiers.ensemble import Ensemble
from ..verifiers.fuzzy import Fuzzy, jensen_shannon
from ..verifiers.mentored import Mentored
from ..verifiers.slack import AdditiveSlack
from ..verifiers.thresholds import Thresholds
from ..verifiers.typical import Typical
from .checks import check

UNIT = st.fractions(0, 1, max_denominator=12)
POSITIVE = UNIT.filter(bool)


def with_parameter(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """(p, q, value)."""
    return st.tuples(rational_pairs(), values).map(lambda i: (*i[0], i[1]))


class Arbitrary:
    """Any acceptance with any residual that ignores the rejected token."""

    def __init__(self, accept: Any, emitted: Any) -> None:
        self.accept, self.emitted = accept, emitted

    def acceptance(self, p: Any, q: Any) -> Any:
        return self.accept

    def residual(self, p: Any, q: Any) -> Any:
        return self.emitted


@st.composite
def arbitrary_rules(draw: st.DrawFn) -> Any:
    """(p, q, rule)."""
    p, q = draw(rational_pairs())
    accept = np.array(draw(st.lists(UNIT, min_size=len(p), max_size=len(p))), dtype=object)
    return p, q, Arbitrary(accept, draw(rational_laws(len(p))))


check(
    "V.line",
    instances=arbitrary_rules(),
    claimed=lambda i: lossy.optimal_line(i[0], i[1]),
    second=lambda i: 1 - exact.acceptance_rate(i[2], *i[:2]) + exact.step_deviation(i[2], *i[:2]),
    mutated=lambda i: 2 * lossy.optimal_line(i[0], i[1]),
    tolerance=0,
)
check(
    "V.ensemble",
    instances=with_parameter(UNIT),
    claimed=lambda i: lossy.ensemble_law(*i),
    second=lambda i: exact.output_law(Ensemble(i[2]), *i[:2]),
    mutated=lambda i: lossy.ensemble_law(i[1], i[0], i[2]),
    tolerance=0,
)
check(
    "V.ensemble.line",
    instances=with_parameter(UNIT),
    claimed=lambda i: lossy.ensemble_figures(*i),
    second=lambda i: (exact.step_deviation(Ensemble(i[2]), *i[:2]), exact.acceptance_rate(Ensemble(i[2]), *i[:2])),
    mutated=lambda i: lossy.ensemble_figures(i[0], i[1], i[2] ** 2),
    tolerance=0,
)
check(
    "V.slack",
    instances=with_parameter(UNIT),
    claimed=lambda i: lossy.slack_deviation(*i),
    second=lambda i: exact.step_deviation(AdditiveSlack(i[2]), *i[:2]),
    mutated=lambda i: lossy.slack_deviation(i[0], i[1], i[2] / 2),
    tolerance=0,
)
check(
    "V.slack.bound",
    instances=with_parameter(UNIT),
    claimed=lambda i: lossy.slack_bound(*i),
    second=lambda i: exact.step_deviation(AdditiveSlack(i[2]), *i[:2]),
    mutated=lambda i: lossy.slack_bound(i[0], i[1], i[2] / 2),
    tolerance=0,
)
check(
    "V.mentored",
    instances=with_parameter(POSITIVE),
    claimed=lambda i: lossy.mentored_law(*i),
    second=lambda i: exact.output_law(Mentored(i[2]), *i[:2]),
    mutated=lambda i: lossy.mentored_law(i[0], i[1], i[2] / 2),
    tolerance=0,
)
check(
    "V.mentored.optimal",
    # alpha and beta that nearly meet divide by their difference: alpha stays away from 1
    instances=with_parameter(POSITIVE.filter(lambda a: a <= Fraction(9, 10))).flatmap(
        lambda i: rational_laws(len(i[0])).map(lambda other: (*i, other))
    ),
    claimed=lambda i: lossy.mentored_acceptance_bound(*i),
    second=lambda i: exact.acceptance_rate(Standard(), i[3], i[1]),  # no rule that emits p' accepts more (S2)
    mutated=lambda i: lossy.mentored_acceptance_bound(i[0], i[1], 1 - i[2] / 2, i[3]) - kl(i[0], i[3]),
    tolerance=1e-9,
)
check(
    "V.typical.target",
    instances=with_parameter(st.tuples(UNIT, UNIT)),
    claimed=lambda i: lossy.typical_target_deviation(i[0], i[1], *i[2]),
    second=lambda i: exact.step_deviation(Typical(i[2][0], i[2][1], "target"), *i[:2]),
    mutated=lambda i: lossy.typical_argmax_deviation(i[0], i[1], *i[2]),
    tolerance=0,
)
check(
    "V.typical.argmax",
    instances=with_parameter(st.tuples(UNIT, UNIT)),
    claimed=lambda i: lossy.typical_argmax_deviation(i[0], i[1], *i[2]),
    second=lambda i: exact.step_deviation(Typical(i[2][0], i[2][1], "argmax"), *i[:2]),
    mutated=lambda i: lossy.typical_target_deviation(i[0], i[1], *i[2]),
    tolerance=0,
)

DIVERGENCES = {"tv": total_variation, "kl": kl, "js": jensen_shannon}

check(
    "V.fuzzy",
    instances=with_parameter(st.tuples(UNIT, st.sampled_from(list(DIVERGENCES)))),
    claimed=lambda i: lossy.fuzzy_deviation(i[0], i[1], i[2][0], DIVERGENCES[i[2][1]]),
    second=lambda i: exact.step_deviation(Fuzzy(*i[2]), *i[:2]),
    mutated=lambda i: total_variation(i[0], i[1]),
    tolerance=0,
)
check(
    "V.fuzzy.bound",
    instances=with_parameter(UNIT),
    claimed=lambda i: list(lossy.fuzzy_bounds(i[2]).values()),
    second=lambda i: [exact.step_deviation(Fuzzy(i[2], d), *i[:2]) for d in lossy.fuzzy_bounds(i[2])],  # type: ignore[arg-type]
    mutated=lambda i: [v / 2 for v in lossy.fuzzy_bounds(i[2]).values()],
)


@st.composite
def single_drafts(draw: st.DrawFn) -> Any:
    """(p, x, (single, acc))."""
    p = draw(rational_laws())
    return p, draw(st.integers(0, len(p) - 1)), (draw(POSITIVE), draw(POSITIVE))


def point(p: Any, x: int) -> Any:
    """The law of a deterministic draft."""
    return np.array([Fraction(int(y == x)) for y in range(len(p))], dtype=object)


check(
    "V.thresholds.single",
    instances=single_drafts(),
    claimed=lambda i: lossy.thresholds_single(i[0], i[1], *i[2]),
    second=lambda i: exact.step_deviation(Thresholds(*i[2]), i[0], point(*i[:2])),
    mutated=lambda i: lossy.thresholds_single(i[0], i[1], Fraction(1), i[2][1]),
    tolerance=0,
)
check(
    "V.thresholds",
    instances=with_parameter(st.tuples(POSITIVE, POSITIVE)),
    claimed=lambda i: lossy.thresholds_bound(i[0], i[1], *i[2]),
    second=lambda i: exact.step_deviation(Thresholds(*i[2]), *i[:2]),
    mutated=lambda i: lossy.thresholds_bound(i[0], i[1], *i[2]) / 2,
    tolerance=0,
)
check(
    "V.cactus",
    instances=single_drafts().filter(lambda i: i[0][i[1]] > 0),
    claimed=lambda i: lossy.cactus_budget(float(i[2][0])),
    second=lambda i: chi_square(lossy.bent_law(i[0], i[1], float(i[2][0])), i[0].astype(float)),
    mutated=lambda i: lossy.cactus_budget(float(i[2][0])) / 2,
)
check(
    "V.cactus.emitted",
    instances=with_parameter(POSITIVE),
    claimed=lambda i: lossy.cactus_emitted(float(i[2])),
    second=lambda i: chi_square(exact.output_law(Cactus(float(i[2])), *i[:2]), i[0].astype(float)),
    mutated=lambda i: lossy.cactus_chi2_bound(i[0], i[1], float(i[2])),
)
check(
    "V.cactus.chi2",
    instances=with_parameter(POSITIVE),
    claimed=lambda i: lossy.cactus_chi2_bound(i[0], i[1], float(i[2])),
    second=lambda i: chi_square(exact.output_law(Cactus(float(i[2])), *i[:2]), i[0].astype(float)),
    mutated=lambda i: lossy.cactus_chi2_bound(i[0], i[1], float(i[2])) / 2,
)
check(
    "V.cactus.line",
    instances=with_parameter(POSITIVE),
    claimed=lambda i: lossy.cactus_deviation(i[0], i[1], float(i[2])),
    second=lambda i: exact.step_deviation(Cactus(float(i[2])), *i[:2]),
    mutated=lambda i: lossy.cactus_deviation(i[0], i[1], float(i[2]) / 2),
)
check(
    "V.constant",
    instances=with_parameter(UNIT),
    claimed=lambda i: lossy.constant_law(*i),
    second=lambda i: exact.output_law(Constant(i[2]), *i[:2]),
    mutated=lambda i: lossy.constant_law(i[0], i[1], 1 - i[2]),
    tolerance=0,
)
check(
    "V.constant.least",
    instances=with_parameter(UNIT),
    claimed=lambda i: lossy.constant_least_deviation(*i),
    second=lambda i: exact.step_deviation(Constant(i[2]), *i[:2]),
    mutated=lambda i: lossy.constant_least_deviation(i[0], i[1], 1),
    tolerance=0,
)
