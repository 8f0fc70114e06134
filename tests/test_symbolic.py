"""Symbolic proofs: they go through, they refuse wrong formulas, and they are about the library's own functions."""

from __future__ import annotations

import random
import subprocess
import sys
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from click.testing import CliRunner

from spectheory import exact, ledger
from spectheory.cli import main
from spectheory.ledger import symbolic, symbolic_nsd, symbolic_race, symbolic_regret, symbolic_sequence
from spectheory.ledger.symbolic import PROOFS, Refused, at, at_least_zero, prove, rational_functions, sign, vanishes
from spectheory.pmf import total_variation
from spectheory.theory import nsd, race_law
from spectheory.theory.registry import theorems
from spectheory.verifiers import Nucleus

# CI proves the smaller sizes (all of what is quick); `make full` and `spectheory prove` prove all.
QUICK = {"N": {"sizes": (1, 2, 3)}, "Q": {"lengths": (1, 2)}, "E1.law": {"sizes": (2,)}, "E1.mean": {"sizes": (2,)}}


@pytest.mark.parametrize("claim", PROOFS)
def test_the_proof_goes_through_for_small_sizes(claim):
    module = import_module(f"spectheory.ledger.{PROOFS[claim]}")
    log = list(getattr(module, claim.replace(".", "_"))(**QUICK.get(claim, QUICK.get(claim[0], {}))))
    assert any(line.endswith("QED") for line in log)
    assert len(log) >= 3


@pytest.mark.full
@pytest.mark.parametrize("claim", PROOFS)
def test_the_proof_goes_through(claim):
    log = list(prove(claim))
    assert log[0].startswith(f"{claim}:")
    assert any(line.endswith("QED") for line in log)


@pytest.mark.full
@pytest.mark.parametrize("proof", [symbolic_nsd.N1, symbolic_nsd.N2, symbolic_nsd.N3])
def test_nsd_for_five_tokens(proof):
    assert list(proof(sizes=(5,)))[-1].endswith("QED")


WRONG = {
    "N1 by TV": (symbolic_nsd.N1, lambda c: c.tv),
    "N1 by half of it": (symbolic_nsd.N1, lambda c: symbolic_nsd.delta(c) / 2),
    "N1 with the deficit": (symbolic_nsd.N1, lambda c: sum((c.deficit[x] for x in c.nucleus), 0 * c.one)),
    "N2 without Delta": (symbolic_nsd.N2, lambda c: c.one - c.tv),
    "N3 as a mixture": (symbolic_nsd.N3, lambda c: [p + symbolic_nsd.delta(c) * (q - p) for p, q in zip(c.p, c.q)]),
    "N3 without the loss": (symbolic_nsd.N3, lambda c: [p + e for p, e in zip(c.p, c.excess)]),
    "Q1 with the draft's bonus": (
        symbolic_sequence.Q1,
        lambda s, x, k: symbolic_sequence.matrix_product([_bonus_from_q(a) for a in s], x, k),
    ),
    "Q1 with one block size": (
        symbolic_sequence.Q1,
        lambda s, x, k: symbolic_sequence.matrix_product(s, x, len(x)),
    ),
    "Q1.standard as the draft": (
        symbolic_sequence.Q1_standard,
        lambda s, x, k: np.prod([a.q[t] for a, t in zip(s, x)]),
    ),
    "A7 doubled": (symbolic_regret.A7, lambda row: 2 * symbolic_regret.regret(row)),
    "A7 against the neighbour": (symbolic_regret.A7, lambda row: row.logits[0] - row.logits[row.token]),
    "A7.bound with half the budget": (symbolic_regret.A7_bound, lambda top, b, n: top - b / 2),
    "A7.perplexity per block of 2": (symbolic_regret.A7_perplexity, lambda top, b, n: (b / 2 - top) / n),
    "E1.law without the order": (symbolic_race.E1_law, lambda c, i, rank: c.p[i] / c.size),
    "E1.accept as 1 - TV": (symbolic_race.E1_accept, lambda c, i: min_of(c, i)),
    "E1.second doubled": (symbolic_race.E1_second, lambda c, i: 2 * symbolic_race.second_rank(c, i)),
    "E1.mean without the square": (
        symbolic_race.E1_mean,
        lambda c, i: c.p[i] * sum(c.rates(i), c.one),
    ),
    "E1.two squared": (symbolic_race.E1_two, lambda c: symbolic_race.overlap(c) ** 2),
    "E1.lower as 1 - TV": (
        lambda formula: symbolic_race.E1_lower(formula, sizes=(3,)),
        symbolic_race.overlap,
    ),
    "E1.upper as the lower bound": (symbolic_race.E1_upper, symbolic_race.harmonic),
}


def _bonus_from_q(at_position):
    return symbolic_sequence.Position(at_position.q, at_position.q, at_position.accept, at_position.residual)


def min_of(case, i):
    return case.q[i] if sign(case.p[i] - case.q[i], case.name) > 0 else case.p[i]


def test_every_proof_is_tried_with_a_wrong_formula():
    assert {name.split(" ")[0] for name in WRONG} == set(PROOFS)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_formula_is_refused(name):
    proof, wrong = WRONG[name]
    with pytest.raises(Refused):
        list(proof(wrong))


def test_a_refusal_shows_laws_on_which_the_wrong_formula_fails():
    with pytest.raises(Refused) as caught:
        list(symbolic_nsd.N1(lambda c: c.tv, sizes=(2,)))
    text = str(caught.value)
    assert "V = 2" in text
    p, q = (_law(text, name) for name in ("p", "q"))
    # N is {} there: the claim that the deviation is TV(p, q) must fail on the laws shown.
    assert "N = {}" in text
    assert nsd.step_deviation(p, q, 0) != total_variation(p, q)


def _law(text, name):
    inside = text.split(f"{name} = (")[1].split(")")[0]
    return np.array([Fraction(x) for x in inside.split(", ")], dtype=object)


def test_the_formulas_proved_are_the_library_s():
    """At random points of random cases whose set N is the nucleus of some top_p, the symbolic and library values agree."""
    rng, agreed = random.Random(3), 0
    for case in symbolic_nsd.cases(3):
        numbers = [rng.randint(1, 9) for _ in case.gens]
        mass = at(case.one, numbers)
        p, q = (np.array([at(x, numbers) / mass for x in law], dtype=object) for law in (case.p, case.q))
        order = sorted(range(3), key=lambda i: (-p[i], i))
        if set(order[: len(case.nucleus)]) != case.nucleus:
            continue
        top_p = sum((p[i] for i in case.nucleus), Fraction(0))
        rule = Nucleus(top_p)
        assert at(symbolic_nsd.delta(case), numbers) / mass == nsd.step_deviation(p, q, top_p)
        assert at(symbolic_nsd.rate(case), numbers) / mass == nsd.acceptance_rate(p, q, top_p)
        assert [at(x, numbers) / mass for x in symbolic_nsd.law(case)] == list(nsd.output_law(p, q, top_p))
        assert [at(x, numbers) / mass for x in symbolic_nsd.output(case)] == list(exact.output_law(rule, p, q))
        agreed += 1
    assert agreed >= 15


@pytest.mark.parametrize("size", [2, 3])
def test_cases_cover_random_laws(size):
    """Every pair of laws lies in a case: its signs are listed, and the parametrisation reaches it."""
    rng = random.Random(5)
    signs = {case.name.split("signs ")[1].split(",")[0] for case in symbolic_nsd.cases(size)}
    for _ in range(50):
        p, q = (np.array([Fraction(rng.randint(0, 4)) for _ in range(size)]) for _ in range(2))
        if not p.sum() or not q.sum():
            continue
        p, q = p / p.sum(), q / q.sum()
        pattern = "".join("+" if b >= a else "-" for a, b in zip(p, q))
        assert pattern in signs
        case = next(c for c in symbolic_nsd.cases(size) if f"signs {pattern}," in c.name)
        distance = sum(np.maximum(q - p, 0))
        # a = min(p, q), g = the excess on G and the deficit over D on L, as the module's proof says
        steps = [(b - a) if s == "+" else (a - b) / distance for a, b, s in zip(p, q, pattern)]
        numbers = [*map(min, p, q), *steps]
        assert [at(x, numbers) for x in case.p] == list(p)
        assert [at(x, numbers) for x in case.q] == list(q)


def test_every_proof_is_of_a_registered_claim():
    ledger.load()
    assert set(PROOFS) <= set(theorems())


def test_the_race_proved_is_the_library_s():
    """At points of random cases: the joint law from the densities, the library's, and the exact engine's."""
    rng = random.Random(1)
    for case in symbolic_race.by_ratio(3):
        numbers = [rng.randint(1, 9) for _ in case.p[0].field.gens]
        p, q = (np.array([at(x, numbers) for x in law], dtype=object) for law in (case.p, case.q))
        joint = [[at(symbolic_race.joint(case, i, r), numbers) for r in (1, 2, 3)] for i in range(3)]
        assert joint == race_law.rank_joint(p, q).tolist() == exact.rank_joint(p, q).tolist()


def test_signs_and_zeros_are_decided_by_coefficients():
    x, y = rational_functions(["x", "y"])
    assert [sign(v, "") for v in (x + y, -x / y, 0 * x)] == [1, -1, 0]
    with pytest.raises(Refused, match="has no sign"):
        sign(x - y, "here")
    with pytest.raises(Refused, match="here: the two sides differ by x"):
        vanishes(x, "here")
    at_least_zero(x * y / (x + 1), "here")
    with pytest.raises(Refused, match=r"cannot certify .* law = \(1/3, 2/3\)"):
        at_least_zero(x - y, "here", law=[x, y])
    with pytest.raises(Refused, match="cannot certify"):  # true, but not by coefficients: no point is shown
        at_least_zero((x - y) ** 2, "here", law=[x, y])


def test_prove_command(monkeypatch):
    result = CliRunner().invoke(main, ["prove", "N2"])
    assert result.exit_code == 0
    assert "N2 is proved for V in {1, 2, 3, 4}: 310 cases. QED" in result.stdout
    result = CliRunner().invoke(main, ["prove", "S1"])
    assert result.exit_code == 2
    assert "no symbolic proof of 'S1'" in result.output
    monkeypatch.setitem(sys.modules, "sympy", None)
    result = CliRunner().invoke(main, ["prove", "N2"])
    assert result.exit_code == 2
    assert "spectheory[symbolic]" in result.output


def test_a_refused_proof_ends_the_command_with_code_1(monkeypatch):
    monkeypatch.setattr(symbolic_nsd, "delta", lambda case: case.tv)
    monkeypatch.setattr(symbolic_nsd.N1, "__defaults__", (symbolic_nsd.delta, (2,)))
    result = CliRunner().invoke(main, ["prove", "N1"])
    assert result.exit_code == 1
    assert "differ by" in result.output
    assert "Traceback" not in result.output


def test_sympy_is_loaded_for_a_proof_only():
    code = "import sys, spectheory.ledger.symbolic, spectheory.cli; print('sympy' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"


def test_selection():
    assert list(symbolic.PROOFS)[:3] == ["N1", "N2", "N3"]
    family = [line for line in prove("A") if not line.startswith(" ")]
    assert [line.split(":")[0] for line in family] == ["A7", "A7.bound", "A7.perplexity"]
