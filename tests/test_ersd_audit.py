"""The audit of ERSD on small recorded blocks, its tables, figures and command."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import spectheory as spec
from spectheory import audit, exact
from spectheory.cli import main
from spectheory.results import AuditReport
from spectheory.theory import ersd
from spectheory.verifiers.exponential_race import ExponentialRace, race_winner


def blocks(count=4, size=3, vocab=12, same=False, seed=0):
    rng, out = np.random.default_rng(seed), []
    for _ in range(count):
        p = rng.dirichlet(np.full(vocab, 0.5), size=size + 1)
        q = p[:size] if same else rng.dirichlet(np.full(vocab, 0.5), size=size)
        out.append(spec.Block(race_winner(q, rng.standard_exponential((size, vocab))), p=p, q=q))
    return out


@pytest.fixture(scope="module")
def report():
    return audit.run(ExponentialRace(k=5), blocks(), max_deviation=0)


def test_numbers_are_those_of_the_exact_laws(report):
    rows = [(b.p[i], b.q[i]) for b in blocks() for i in range(3)]
    accept = np.mean([ersd.acceptance(p, q) for p, q in rows])
    assert report.summary["acceptance"]["on_data"].upper == pytest.approx(accept, abs=1e-12)
    assert report.summary["races"]["acceptance"]["on_data"].upper == pytest.approx(accept, abs=1e-12)
    laws = np.array([exact.rank_law(p, q) for p, q in rows])
    for (p, q), lower, upper, kl in zip(rows, *(report.rows[x] for x in ("entropy_lower", "entropy_upper", "kl"))):
        assert lower - 1e-9 <= spec.pmf.entropy(exact.rank_law(p, q)) <= upper + 1e-9
        assert kl == pytest.approx(spec.pmf.kl(p, q))
    for k in (1, 5, 16):
        assert ersd.expected_tokens(laws.mean(axis=0), k) in report.summary["races"]["tokens"][str(k)]
    own = np.mean([ersd.expected_tokens(x, 16) for x in laws])
    tokens = next(f for f in report.extra["figures"] if f["name"] == "tokens")["data"]
    assert tokens["rows"]["16"] == pytest.approx(own, abs=1e-2)
    fails = sum(spec.pmf.entropy(x) < spec.pmf.kl(p, q) for x, (p, q) in zip(laws, rows))
    assert abs(fails - report.summary["races"]["naive_bound_fails"]) <= report.summary["races"]["naive_bound_undecided"]


def test_losslessness_is_claimed_and_holds(report):
    assert report.verdict == "holds"
    assert audit.exit_code(report) == 0
    assert AuditReport.from_json(json.loads(report.dumps())).summary["races"]["rows"] == 12


def test_tables_and_figures(report, tmp_path):
    titles = [s["title"] for s in report.extra["sections"]]
    assert titles[:3] == ["Exponential races", "Averaged rank law", "Expected tokens per target call by draft budget"]
    written = {path.name for path in audit.write(report, tmp_path)}
    assert {"report.json", "tokens.svg", "ranks.svg", "tree.svg", "peers.svg", "tokens.json"} <= written
    page = (tmp_path / "report.html").read_text()
    assert "5 (k)" in page
    tree = json.loads((tmp_path / "tree.json").read_text())
    assert len(tree["parent"]) == 5


def test_equal_laws_are_audited_and_print_infinite_bounds():
    report = audit.run(ExponentialRace(k=2), blocks(same=True))
    assert report.summary["races"]["entropy"]["on_data"].upper == 0
    assert report.summary["acceptance"]["on_data"].upper == pytest.approx(1)
    row = next(s for s in report.extra["sections"] if s["title"].startswith("Expected"))["rows"][1]
    assert row[0] == "2 (k)"
    assert row[1] == pytest.approx(3)
    assert row[-3:] == [np.inf, np.inf, np.inf]
    assert "inf" in report.dumps()


def test_a_bad_row_is_set_aside_and_the_rest_reported():
    good = blocks()
    p = good[1].p.copy()
    p[0, 3] = np.nan
    report = audit.run(ExponentialRace(), [good[0], spec.Block(good[1].tokens, p=p, q=good[1].q), *good[2:]])
    assert [e["cause"] for e in report.errors] == ["p row 0, token 3 is NaN"]
    assert report.summary["races"]["rows"] == 9
    assert audit.exit_code(report) == 4


def test_no_budget():
    report = audit.run(ExponentialRace(k=0), blocks(2))
    assert report.summary["races"]["tokens"]["1"].lower >= 1
    result = CliRunner().invoke(main, ["audit", "ersd", "--set", "k=-1"])
    assert result.exit_code == 2
    assert "k must be" in result.stderr


@pytest.mark.full
def test_the_command_on_the_embedded_sample(tmp_path):
    """Real rows of 49,152 tokens: every stated error is kept; a second run takes the shards it finds."""
    command = ["audit", "ersd", "--set", "k=16", "--out", str(tmp_path), "--max-deviation", "0", "--json"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.stderr
    races = json.loads(result.stdout)["summary"]["races"]
    assert races["rows"] >= 32
    assert races["entropy"]["on_data"]["upper"] - races["entropy"]["on_data"]["lower"] <= 2e-3
    means = [races[x]["on_data"]["estimate"] for x in ("lower", "acceptance", "upper")]
    assert means == sorted(means)


def test_an_audit_that_was_stopped_goes_on_from_its_finished_shards(tmp_path, monkeypatch):
    """The race columns of finished shards are read back; a rule with other settings does not take them."""
    from spectheory import logits
    from spectheory.audit import ersd as module

    logits.write(blocks(), tmp_path / "recording", encoding="f16-rel")
    first = audit.run(ExponentialRace(k=3), tmp_path / "recording", out=tmp_path / "out")
    calls = []
    row = module._row
    monkeypatch.setattr(module, "_row", lambda *x: calls.append(1) or row(*x))
    again = audit.run(ExponentialRace(k=3), tmp_path / "recording", out=tmp_path / "out")
    assert calls == []
    assert again.dumps() == first.dumps()
    audit.run(ExponentialRace(k=4), tmp_path / "recording", out=tmp_path / "out")
    assert len(calls) == 12
