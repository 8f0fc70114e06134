"""The documentation's own machinery, and every code file that its pages show; the site itself is built by `make docs`."""

from __future__ import annotations

import doctest
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spectheory import CheckResult, ledger
from spectheory.cli import main
from spectheory.theory.registry import Theorem, theorems

DOCS = Path(__file__).parents[1] / "docs"
NOTEBOOKS = sorted((DOCS.parent / "notebooks").glob("*.ipynb"))
sys.path.insert(0, str(DOCS / "_ext"))

import claims  # noqa: E402
import docstrings  # noqa: E402
import ledger_run  # noqa: E402
import module_lists  # noqa: E402
import tutorials  # noqa: E402


@pytest.fixture(scope="module")
def known() -> dict[str, Theorem]:
    ledger.load()
    return theorems()


def outcome(claim: str, ok: bool = True, caught: bool = True, witness: str = "([1/2, 1/2], 1)") -> ledger_run.Outcome:
    result = CheckResult(claim, ok, 100, 0.25, "" if ok else witness, seed=7, golden=2, recorded=8)
    return ledger_run.Outcome(result, CheckResult(claim, not caught, 12, 0.5, witness, seed=7))


def test_a_block_says_what_the_run_found(known: dict[str, Theorem]) -> None:
    claim = known["N1"]
    held, failed = (claims.block(claim, outcome("N1", ok)) for ok in (True, False))
    assert "[held]{.claim-held}, on 100 searched instances (seed 7) and 2 published, 8 recorded ones" in held
    assert "[failed]{.claim-failed}, worst gap 0.25, on `([1/2, 1/2], 1)`" in failed
    assert "[held]" not in failed


def test_a_block_shows_statement_hypotheses_source_function_and_check(known: dict[str, Theorem]) -> None:
    text = claims.block(known["N1"], outcome("N1"))
    assert known["N1"].statement in text
    assert "any top\\_p in \\[0, 1\\]" in text
    assert "{cite:p}`2610.07822`" in text
    assert "{py:func}`spectheory.theory.nsd.step_deviation`" in text
    assert "second=deviation" in text


def test_a_block_shows_how_its_claim_is_checked(known: dict[str, Theorem]) -> None:
    assert all("- Second route: in `spectheory." in claims.block(known[id], outcome(id)) for id in known)
    assert "second=least_deviation_by_programme" in claims.check_source(known["N7"])
    by_helper = claims.check_source(known["Q2"])
    assert "def _check_upper" in by_helper
    assert by_helper.endswith('_check_upper("Q2", sequence.coupling)')


def test_instances_read_well() -> None:
    witness = "(Tabular(target=array([[Fraction(0, 1),\n Fraction(1, 2)]], dtype=object)), 1)"
    assert claims.readable(witness) == "`(Tabular(target=[[0, 1/2]]), 1)`"


def test_a_false_claim_needs_its_violation(known: dict[str, Theorem]) -> None:
    claim = known["L2.scaled"]
    found = ledger_run.Outcome(replace(outcome(claim.id).result, witness="([1], [1])"), outcome(claim.id).mutated)
    assert claims.status(claim, found)[0] == "refuted"
    word, sentence = claims.status(claim, outcome(claim.id, ok=False, witness=""))
    assert word == "failed"
    assert "no violation was found" in sentence
    assert "{prf:conjecture}" in claims.block(claim, found)


def test_a_check_that_cannot_fail_is_called_defective(known: dict[str, Theorem]) -> None:
    assert "defective" in claims.block(known["N1"], outcome("N1", caught=False))
    assert "defective" not in claims.block(known["N1"], outcome("N1"))


def test_a_claim_without_check_is_not_passed_off_as_held(known: dict[str, Theorem]) -> None:
    assert claims.status(known["N1"], None)[0] == "unchecked"


def test_a_reported_figure_is_not_passed_off_as_a_claim(known: dict[str, Theorem]) -> None:
    figure = replace(known["N1"], status="report")
    assert claims.status(figure, outcome("N1"))[0] == "reported"
    assert claims.status(figure, outcome("N1", ok=False))[0] == "failed"
    assert "{prf:observation}" in claims.block(figure, outcome("N1"))


def test_an_exception_in_a_check_is_shown(known: dict[str, Theorem]) -> None:
    broken = replace(outcome("N1", ok=False).result, error="ZeroDivisionError: x")
    assert "ZeroDivisionError: x" in claims.status(known["N1"], ledger_run.Outcome(broken, broken))[1]


def test_every_claim_is_placed_once_on_the_site(known: dict[str, Theorem]) -> None:
    placed: list[str] = []
    for path in (DOCS / "theory").glob("*.md"):
        text = claims.expand(f"theory/{path.stem}", path.read_text(encoding="utf-8"), {})
        placed += re.findall(r"^\((claim-\S+)\)=$", text, re.MULTILINE)
    assert sorted(placed) == sorted(claims.slug(id) for id in known)


def test_a_page_cannot_place_a_claim_that_nobody_registered() -> None:
    with pytest.raises(KeyError, match="N99"):
        claims.expand("theory/nsd", "```{claim} N99\n```", {})


def test_theory_pages_point_to_their_pictures() -> None:
    for page, notebook in claims.PICTURES.items():
        text = claims.expand(f"theory/{page}", (DOCS / "theory" / f"{page}.md").read_text(encoding="utf-8"), {})
        assert f"(/tutorials/{notebook}.ipynb)" in text.split("\n")[2]
        assert notebook in [p.stem for p in NOTEBOOKS]


def test_roles_become_links_and_the_table_has_every_claim(known: dict[str, Theorem]) -> None:
    text = claims.expand("index", "see {claim}`N6.kl`\n\n```{claim-table}\n```", {"N1": outcome("N1")})
    assert "see [N6.kl](#claim-n6-kl)" in text
    assert text.count("\n|") == len(known) + 2
    assert "| [held]{.claim-held} | [nsd](/theory/nsd.md) |" in text
    rows = [line for line in text.splitlines() if line.startswith("| [")]
    assert all(len(re.split(r"(?<!\\)\|", row)) == 6 for row in rows)  # no formula breaks its cell


def test_every_source_is_in_the_bibliography(known: dict[str, Theorem]) -> None:
    cited = {n for t in known.values() for n in re.findall(r"\b\d{4}\.\d{5}\b", t.source)}
    entries = set(re.findall(r"^@\w+\{([^,]+),", (DOCS / "refs.bib").read_text(encoding="utf-8"), re.MULTILINE))
    assert cited <= entries


def test_outcomes_are_kept_until_the_package_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = {id: ledger.CHECKS[id] for id in ("S1", "L2.scaled")}
    monkeypatch.setattr(ledger, "CHECKS", checks)
    cache = tmp_path / "build" / "ledger.json"
    first = ledger_run.outcomes(cache, examples=50)
    assert set(first) == set(checks)
    assert all(o.result.ok and not o.mutated.ok for o in first.values())

    monkeypatch.setattr(ledger_run, "_run", lambda *_: pytest.fail("ran again"))
    assert ledger_run.outcomes(cache, examples=50) == first
    kept = json.loads(cache.read_text(encoding="utf-8"))
    kept["key"] = "other code"
    cache.write_text(json.dumps(kept), encoding="utf-8")
    monkeypatch.setattr(ledger_run, "ProcessPoolExecutor", _Refuses)
    with pytest.raises(RuntimeError, match="runs afresh"):
        ledger_run.outcomes(cache, examples=50)


class _Refuses:
    def __init__(self, workers: int) -> None:
        raise RuntimeError("runs afresh")


def test_docstrings_survive_restructured_text() -> None:
    assert docstrings.to_rst("`laws p_` with x_ * (..., V) | y") == r"``laws p_`` with x\_ \* (..., V) \| y"
    assert docstrings.to_rst("a `code\n  span` b") == "a ``code span`` b"
    assert docstrings.to_rst("`Block`s of x`y`z") == r"``Block``\ s of x\ ``y``\ z"


def test_the_reference_lists_every_file_of_theory() -> None:
    text = module_lists.expand("```{modules} spectheory.theory\n```")
    files = {p.stem for p in (DOCS.parent / "spectheory" / "theory").glob("*.py")} - {"__init__"}
    assert set(re.findall(r"automodule:: spectheory\.theory\.(\w+)", text)) == files


def test_notebooks_are_copied_with_their_links_mended(tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.mkdir()
    (source / "x.ipynb").write_text("[t](../docs/theory/nsd.md)", encoding="utf-8")
    tutorials.copy(source, target)
    assert (target / "x.ipynb").read_text(encoding="utf-8") == "[t](../theory/nsd.md)"
    (source / "x.ipynb").unlink()
    tutorials.copy(source, target)
    assert not list(target.iterdir())


SESSIONS = [
    p for p in sorted(DOCS.rglob("*.md")) if "_build" not in p.parts and ">>> " in p.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("path", SESSIONS, ids=lambda p: p.stem)
def test_interpreter_sessions_in_pages(path: Path) -> None:
    result = doctest.testfile(str(path), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebooks_carry_no_outputs(path: Path) -> None:
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [c for c in cells if c["cell_type"] == "code"]
    assert code
    assert all(c["outputs"] == [] and c["execution_count"] is None for c in code)
    for link in re.findall(r"\]\(([^)#]+)\)", "".join("".join(c["source"]) for c in cells if c not in code)):
        assert (path.parent / link).exists(), link


def test_all_six_notebooks_are_there() -> None:
    assert [p.stem[:2] for p in NOTEBOOKS] == ["01", "02", "03", "04", "05", "06"]


def test_the_howto_rule_is_audited_as_its_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DOCS / "howto")
    command = "audit my_rule:MyRule --set share=0.1 --max-deviation"
    holds, refuted = (CliRunner().invoke(main, [*command.split(), limit]) for limit in ("0.5", "0.000001"))
    assert (holds.exit_code, refuted.exit_code) == (0, 1), holds.output + refuted.output
    assert "HOLDS" in holds.output
    assert len((DOCS / "howto" / "my_rule.py").read_text(encoding="utf-8").split("class MyRule")[1].splitlines()) <= 20


def test_the_howto_tests_pass() -> None:
    tests = DOCS / "howto" / "test_my_rule.py"
    run = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-o", "addopts=", str(tests)]
    path = os.pathsep.join(filter(None, [str(DOCS.parent), os.environ.get("PYTHONPATH")]))
    env = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(run, cwd=DOCS / "howto", env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
