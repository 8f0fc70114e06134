"""The ledger: every registered claim holds (or is false as registered), and every check can fail."""

from __future__ import annotations

import io
import json

import pytest
from click.testing import CliRunner
from hypothesis import strategies as st

import spectheory as spec
from spectheory import ledger
from spectheory.cli import main
from spectheory.ledger import CHECKS, Check, rows, show
from spectheory.ledger.run import excess, run_one
from spectheory.ledger.show import failure
from spectheory.theory.registry import Theorem, theorem, theorems

ledger.load()
CLAIMS = theorems()


# CI searches little but tries every published example, family and recorded row; `make full` searches as `verify` does.
@pytest.mark.parametrize("examples", [20, pytest.param(200, marks=pytest.mark.full)])
@pytest.mark.parametrize("claim", CLAIMS)
def test_claim(claim, examples):
    result = run_one(CLAIMS[claim], CHECKS[claim], examples, seed=0)
    assert result.ok, failure(result, examples, mutate=False)


# CI shows a sample of the mutations; `make full` shows all of them.
SAMPLE = set(list(CLAIMS)[::8])


@pytest.mark.parametrize("claim", [c if c in SAMPLE else pytest.param(c, marks=pytest.mark.full) for c in CLAIMS])
def test_a_wrong_formula_is_caught(claim):
    result = run_one(CLAIMS[claim], CHECKS[claim], examples=300, seed=0, mutate=True)
    assert not result.ok
    assert not result.error


def test_nothing_is_listed_whose_check_is_missing():
    assert set(CHECKS) == set(CLAIMS)


def test_every_item_of_the_theory_is_there_and_what_only_reports_is_marked():
    sheet = [*(f"S{n}" for n in (1, 2)), *(f"N{n}" for n in range(1, 8)), *(f"Q{n}" for n in range(1, 10))]
    sheet += [*(f"A{n}" for n in range(1, 11)), *(f"E{n}" for n in range(1, 8))]
    assert set(sheet) <= {c.split(".")[0] for c in CLAIMS}
    assert {c.id for c in CLAIMS.values() if c.status == "report"} >= {"A10", "E7.constants"}
    assert sum(c.status == "false" for c in CLAIMS.values()) >= 6


def test_most_claims_are_tried_on_real_rows():
    recorded = {c for c, check in CHECKS.items() if check.pairs or check.blocks}
    assert len(recorded) > 0.8 * len(CHECKS)
    false = {c.id for c in CLAIMS.values() if c.status == "false"}
    # Counterexamples that are instances of a check are golden there; these claims are refuted by search alone.
    assert {c for c in false if not CHECKS[c].golden} <= {"A7.trajectory", "V.cactus.emitted"}


def test_every_claim_is_sourced_and_stated():
    for claim in CLAIMS.values():
        assert claim.statement
        assert claim.source
        assert claim.hypotheses
        assert claim.closed_form.__doc__, claim.id


def test_false_claims_need_a_counterexample():
    with pytest.raises(ValueError, match="needs a counterexample"):
        Theorem("X1", "here", "x", "=", "none", "false", print)
    with pytest.raises(ValueError, match="registered twice"):
        theorem("N1", source="", statement="", relation="=", hypotheses="", status="proved")(print)


@pytest.mark.parametrize(
    ("relation", "claimed", "second", "gap"),
    [("=", 1, 1, 0), ("=", 1, 2, 1), ("<=", 2, 1, -1), ("<=", 1, 2, 1), (">=", 1, 2, -1), (">=", 2, 1, 1)],
)
def test_relations_read_second_route_relation_closed_form(relation, claimed, second, gap):
    assert excess(relation, claimed, second) == gap


def test_infinities_and_nan():
    inf, nan = float("inf"), float("nan")
    assert excess("=", inf, inf) == 0
    assert excess("<=", inf, 3.0) == -inf
    assert excess("=", nan, 1.0) == inf


def claim_of(status="proved", relation="<="):
    extra = {"counterexample": "1", "replacement": "2"} if status == "false" else {}
    return Theorem("X1", "here", "x", relation, "none", status, abs, **extra)


def check_of(claimed=lambda i: i + 1, second=lambda i: i, mutated=lambda i: i - 1, **more):
    return Check("X1", more.pop("instances", st.integers(0, 10)), claimed, second, mutated, **more)


def test_a_violation_is_shrunk_and_reproducible():
    first, second = (run_one(claim_of(), check_of(claimed=lambda i: min(i, 6)), 100, seed=3) for _ in range(2))
    assert first == second
    assert (first.ok, first.witness) == (False, "7")
    assert "again: spectheory verify X1 --seed 3 --examples 100" in failure(first, 100, mutate=False)


def test_an_exception_fails_the_claim_with_its_instance():
    result = run_one(claim_of(), check_of(claimed=lambda i: 1 // (5 - i) + 20), 100, seed=0)
    assert (result.ok, result.witness) == (False, "5")
    assert result.error.startswith("ZeroDivisionError")
    assert "on 5" in failure(result, 100, mutate=False)


def test_an_exception_is_not_the_violation_of_a_false_claim():
    result = run_one(claim_of("false"), check_of(claimed=lambda i: 1 // 0), 100, seed=0)
    assert not result.ok
    assert result.error


def test_a_mutation_that_only_crashes_is_not_caught():
    assert run_one(claim_of(), check_of(mutated=lambda i: 1 // 0), 100, seed=0, mutate=True).ok


def test_a_strategy_that_fails_or_yields_nothing_fails_the_claim():
    broken = st.integers().map(lambda i: 1 // 0)
    assert "ZeroDivisionError" in run_one(claim_of(), check_of(instances=broken), 50, seed=0).error
    result = run_one(claim_of(), check_of(instances=st.integers().filter(lambda i: False)), 50, seed=0)
    assert not result.ok
    assert result.error


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        (check_of(claimed=lambda i: i, tolerance=0), ""),
        (check_of(claimed=lambda i: i, tolerance=1e-9), "has a tolerance"),
        (check_of(claimed=float, tolerance=0), "rounded numbers"),
    ],
)
def test_status_exact_means_rational_arithmetic_without_tolerance(check, reason):
    result = run_one(claim_of("exact", "="), check, 30, seed=0)
    assert result.ok == (not reason)
    assert reason in result.error


def test_golden_examples_are_tried_and_their_values_compared():
    assert run_one(claim_of(), check_of(golden=[(50, 51)]), 20, seed=0).golden == 1
    wrong_value = run_one(claim_of(), check_of(golden=[(50, 52)]), 20, seed=0)
    assert not wrong_value.ok
    assert wrong_value.error == "gives 51, published 52"
    violated = run_one(claim_of(), check_of(claimed=lambda i: min(i, 30), golden=[(50, None)]), 20, seed=0)
    assert not violated.ok
    assert violated.witness == "golden example 0: 50"


def test_the_registered_counterexample_must_violate_a_false_claim():
    false = {"claimed": lambda i: min(i, 6), "mutated": lambda i: i}
    assert run_one(claim_of("false"), check_of(**false, golden=[(7, 6)]), 100, seed=0).ok
    assert not run_one(claim_of("false"), check_of(**false, golden=[(6, 6)]), 100, seed=0).ok


def test_pairs_and_blocks_are_tried_and_can_fail():
    lengths = check_of(pairs=lambda p, q, n: len(p), blocks=lambda block: block.size)
    result = run_one(claim_of(), lengths, 20, seed=0)
    assert (result.ok, result.families, result.recorded) == (True, len(rows.FAMILIES), 2 * len(rows.recorded_blocks()))
    failed = run_one(claim_of(), check_of(claimed=lambda i: min(i, 1000), pairs=lambda p, q, n: len(p)), 20, seed=0)
    assert not failed.ok
    assert "recorded block 0, position 0" in failed.witness
    crashed = run_one(claim_of(), check_of(blocks=lambda block: block.nothing), 20, seed=0)
    assert "AttributeError" in crashed.error


def test_rounding_is_forgiven_on_rows_but_not_on_searched_instances():
    noisy = check_of(claimed=lambda i: i * (1 + 1e-15), instances=st.integers(0, 10), tolerance=0)
    assert not run_one(claim_of(relation="="), noisy, 50, seed=0).ok
    on_rows = check_of(
        claimed=lambda i: i * (1 + 1e-15) if i > 10 else i, tolerance=0, pairs=lambda p, q, n: float(len(p))
    )
    assert run_one(claim_of(relation="="), on_rows, 50, seed=0).ok


def test_coarse_laws_are_laws_close_to_the_real_ones():
    for p, q in [(row[1], row[2]) for row in rows.recorded_pairs()[:3]]:
        small = rows.coarse(p, q, 5)
        assert all(x.shape == (5,) and sum(x) == 1 and min(x) >= 0 for x in small)
        top = sorted(p)[::-1][:2]  # the most likely tokens keep their mass
        assert all(min(abs(float(v) - t) for v in small[0]) < 1e-5 for t in top)
    block = rows.recorded_blocks()[0]
    assert rows.coarse(block.p, block.q, 3)[0].shape == (block.size + 1, 3)


def test_verify_command():
    result = CliRunner().invoke(main, ["verify", "N1", "--json", "--examples", "20"])
    assert result.exit_code == 0
    (found,) = (spec.CheckResult.from_json(r) for r in json.loads(result.stdout))
    assert (found.claim, found.ok, found.golden, found.families, found.recorded) == ("N1", True, 1, 12, 8)
    result = CliRunner().invoke(main, ["verify", "N1", "--mutate"])
    assert result.exit_code == 1
    assert "violated by" in result.stdout
    assert "again: spectheory verify N1 --seed 0 --examples 100 --mutate" in result.stdout
    assert result.stdout.endswith("1 wrong formulas, 1 caught\n")
    result = CliRunner().invoke(main, ["verify", "nothing"])
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_an_id_takes_its_parts_along():
    claims = [t.id for t in ledger.chosen("N6")]
    assert "N6.kl" in claims
    assert all(c.startswith("N6.") for c in claims)


def test_the_terminal_shows_a_table_a_family_and_failures_below(monkeypatch):
    from rich.console import Console

    out = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda: Console(file=out, force_terminal=True, width=120))
    claims = ledger.chosen("L")
    results = list(show.live(claims, ledger.run("L", examples=20, mutate=True), examples=20, mutate=True))
    assert [r.claim for r in results] == [c.id for c in claims]
    text = out.getvalue()
    assert "Family L" in text
    assert "again: spectheory verify L1 --seed 0 --examples 20 --mutate" in text
    assert "its replacement is not violated" in text


def test_list_command():
    result = CliRunner().invoke(main, ["list"])
    assert result.exit_code == 0
    assert "standard" in result.stdout
    assert "N6.delta_alone" in result.stdout
    claims = json.loads(CliRunner().invoke(main, ["list", "--json"]).stdout)["claims"]
    assert {c["id"] for c in claims} == set(CLAIMS)
