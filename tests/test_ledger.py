"""The ledger: every registered claim holds (or is false as registered), and every check can fail."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import spectheory as spec
from spectheory import ledger
from spectheory.cli import main
from spectheory.ledger import CHECKS
from spectheory.ledger.run import excess, run_one
from spectheory.theory.registry import Theorem, theorem, theorems

ledger.load()
CLAIMS = theorems()


@pytest.mark.parametrize("claim", CLAIMS)
def test_claim(claim):
    result = run_one(CLAIMS[claim], CHECKS[claim], examples=60, seed=0)
    assert result.ok, result.witness


# CI shows a sample of the mutations; `make full` shows all of them.
SAMPLE = set(list(CLAIMS)[::4])


@pytest.mark.parametrize("claim", [c if c in SAMPLE else pytest.param(c, marks=pytest.mark.full) for c in CLAIMS])
def test_a_wrong_formula_is_caught(claim):
    assert not run_one(CLAIMS[claim], CHECKS[claim], examples=300, seed=0, mutate=True).ok


def test_nothing_is_listed_whose_check_is_missing():
    assert set(CHECKS) == set(CLAIMS)


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


def test_verify_command():
    result = CliRunner().invoke(main, ["verify", "N1", "--json", "--examples", "20"])
    assert result.exit_code == 0
    assert [spec.CheckResult.from_json(r).claim for r in json.loads(result.stdout)] == ["N1"]
    result = CliRunner().invoke(main, ["verify", "N1", "--mutate"])
    assert result.exit_code == 1
    assert "violated by" in result.stdout
    assert "again: spectheory verify N1 --seed 0 --examples 100 --mutate" in result.stdout
    result = CliRunner().invoke(main, ["verify", "nothing"])
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_list_command():
    result = CliRunner().invoke(main, ["list"])
    assert result.exit_code == 0
    assert "standard" in result.stdout
    assert "N6.delta_alone" in result.stdout
    claims = json.loads(CliRunner().invoke(main, ["list", "--json"]).stdout)["claims"]
    assert {c["id"] for c in claims} == set(CLAIMS)
