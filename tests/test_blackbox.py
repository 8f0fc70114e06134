"""Black-box audits: hostile callables get a named verdict and no number, broken ones are rejected, a killed run resumes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import hostile
import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

from spectheory import cli
from spectheory.audit import blackbox, exit_code, write
from spectheory.audit.blackbox import plan as plans
from spectheory.audit.blackbox import run as runs
from spectheory.audit.blackbox.calls import read, read_one
from spectheory.audit.blackbox.edges import LEGAL, edges
from spectheory.audit.blackbox.guard import ContractBroken, guarded
from spectheory.audit.blackbox.interface import forked_generators, from_rule, load, subject
from spectheory.audit.blackbox.scenario import cells_of, draw_block, sample
from spectheory.audit.blackbox.specimens import batched, known
from spectheory.errors import UsageError
from spectheory.results import AuditReport
from spectheory.testing import assert_law, assert_rate
from spectheory.verifiers import Standard

QUICK = blackbox.Request(deviation=0.2, false_alarm=1e-9, miss=1e-6)


@pytest.fixture(autouse=True)
def few_controls(request, monkeypatch):
    """Two controls where the test is not about them: each audit runs its controls, and this file runs many audits."""
    if "control" not in request.node.name:
        from spectheory.audit.blackbox import controls

        monkeypatch.setattr(controls, "GOOD", ("G0",))
        monkeypatch.setattr(controls, "BROKEN", ("M2",))


@pytest.mark.parametrize("name", hostile.KINDS)
def test_hostile_callables_get_a_named_verdict_and_no_number(name):
    limit = 0.25 if name == "sleeps" else 60.0  # the others must not time out on a busy machine
    report = blackbox.audit(subject(getattr(hostile, name), name), QUICK, time_limit=limit)
    assert report.verdict == f"broken contract: {hostile.KINDS[name]}"
    assert report.summary["broken"]["kind"] == hostile.KINDS[name]
    assert report.summary["tests"] == []
    assert report.summary["faults"] == []
    assert exit_code(report) == 4
    assert all(c["ok"] for c in report.extra["controls"])  # the audit itself survived


def test_every_kind_of_broken_contract_is_met():
    assert set(hostile.KINDS.values()) == set(blackbox.KINDS)


def test_a_global_generator_is_noted_not_blamed():
    """False alarm 1e-9 for the whole audit."""
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    report = blackbox.audit(hostile.global_generator, QUICK)
    assert report.verdict == "lossless not rejected"
    assert any("global generator of numpy.random" in note for note in report.summary["notes"])
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_an_answer_that_ignores_its_coins_is_noted():
    def greedy(tokens, q, p, rng):
        kept = next((i for i, x in enumerate(tokens) if x != p[i].argmax()), len(tokens))
        return np.append(tokens[:kept], p[kept].argmax())

    report = blackbox.audit(greedy, QUICK)
    assert report.verdict == "rejected"
    named = [f["fault"] for f in report.summary["faults"]]
    assert named == [
        "silently greedy (and more in blocks)"
    ]  # the specimen M18 draws its bonus token, this one does not
    assert "the answer does not depend on the random source" in report.summary["notes"]


def test_the_statement_gives_both_rates():
    """False alarm 1e-9 for the whole audit."""
    report = blackbox.audit(batched(Standard()), QUICK)
    assert report.verdict == "lossless not rejected"
    assert report.summary["statement"] == "TV > 0.2 would have been found with probability 0.999999"
    assert report.summary["error_budget"]["text"].startswith("1e-09 over 9 tests and 2 comparisons")
    assert exit_code(report) == 0
    assert AuditReport.from_json(json.loads(report.dumps())).verdict == report.verdict
    for test in report.summary["tests"]:
        assert test["draws"] == test["designed"]  # exactly what was designed
        assert test["deviation"].lower == 0


def test_a_rejection_has_a_lower_bound_a_witness_and_a_fault():
    """Seeded. False alarm 1e-6; a fault of TV .15 is missed with probability at most 1e-2 by design, this one has .16."""
    report = blackbox.audit(from_rule(known()["C1"].rule, "stale"), blackbox.Request(0.15, 1e-6, 1e-2, sequential=True))
    assert report.verdict == "rejected"
    test = next(t for t in report.summary["tests"] if t["name"] == "context, bonus")
    assert 0.16 in test["deviation"]  # the exact deviation of the fault
    assert test["deviation"].lower > 0
    assert test["witness"]["seen"] - test["witness"]["target"] >= test["deviation"].lower
    assert report.summary["faults"][0]["fault"] == "bonus drawn from the previous row"
    assert exit_code(report) == 1
    assert "fault class: bonus drawn from the previous row" in blackbox.explain(report)


def test_too_few_draws_are_inconclusive():
    report = blackbox.audit(batched(Standard()), QUICK, max_draws=50)
    assert report.verdict == "inconclusive"
    assert exit_code(report) == 3
    assert all(t["draws"] <= 50 for t in report.summary["tests"])


def test_a_sequential_test_stops_early_and_keeps_its_level():
    trials = plans.plan(batched(Standard()), blackbox.Request(0.1, 1e-3, 1e-4, sequential=True))
    assert all(len(t.looks) == plans.LOOKS and t.looks[-1] == t.design.n for t in trials)
    total = sum(t.design.alpha * plans.LOOKS for t in trials)
    assert total < 1e-3  # what is left belongs to the metamorphic comparisons
    report = blackbox.audit(known()["M1"].subject, blackbox.Request(0.05, 1e-3, 1e-4, sequential=True))
    step = next(t for t in report.summary["tests"] if t["name"] == "step, C4")
    assert step["draws"] == -(-step["designed"] // 16)
    assert 0.5 in step["deviation"]


def test_a_failed_control_makes_the_audit_inconclusive(monkeypatch):
    """A broken verifier put in the place of a good one must not go unnoticed."""
    from spectheory.audit.blackbox import controls

    cases = known()
    cases["G0"] = type(cases["G0"])(**{**vars(cases["G0"]), "subject": cases["M1"].subject})
    monkeypatch.setattr(controls, "known", lambda: cases)
    report = blackbox.audit(batched(Standard()), QUICK)
    assert report.verdict == "inconclusive"
    assert "G0" in report.summary["statement"]
    assert "controls" in blackbox.failures(report)


def test_controls_are_reported_each_time():
    report = blackbox.audit(batched(Standard()), QUICK)
    controls = report.extra["controls"]
    assert {c["broken"] for c in controls} == {True, False}
    assert all(c["ok"] and c["rejected"] == c["broken"] and c["exact_tv"] in c["interval"] for c in controls)
    assert any("Controls" in s["title"] for s in report.extra["sections"])


def test_the_order_of_ids_is_a_metamorphic_relation():
    """M5 inverts the residual's CDF in token order, so renaming the tokens changes its law; the standard rule's stays."""
    renamed = blackbox.examine(known()["M5"].subject, blackbox.Request(0.02, 1e-3, 1e-4))
    assert [c.differs for c in renamed.comparisons] == [True, False]
    fine = blackbox.examine(known()["M2"].subject, blackbox.Request(0.05, 1e-3, 1e-4))
    assert not any(c.differs for c in fine.comparisons)


def test_relabelling_is_a_renaming():
    model = plans.Tabular(*plans.CONTEXT, initial=1)
    other = plans.relabelled(model, (1, 2, 0))
    assert other.initial == 2
    for s in range(3):
        for x in range(3):
            to = {0: 1, 1: 2, 2: 0}
            assert other.target[to[s], to[x]] == model.target[s, x]
            assert other.draft[to[s], to[x]] == model.draft[s, x]


def test_random_pairs_are_asymmetric():
    for seed in range(20):
        model = plans.asymmetric_pair(np.random.default_rng(seed), 6)
        p, q = model.target[0], model.draft[0]
        assert (p > q).sum() >= 2
        assert (q > p).sum() >= 2


def test_edges_of_a_careful_rule():
    found = {e.name: e for e in edges(from_rule(Standard()), lambda: None)}
    assert set(LEGAL) <= set(found)
    assert all(e.status in ("ok", "-", "note") for e in found.values())
    assert found["coin 0, p(x) = 0"].status == "ok"
    assert found["coin = p/q"].detail == "rejected, as u < p/q does"


def test_edges_of_a_careless_one():
    """u <= p/q with an injectable coin, no check of ids, NaN or q = 0; and end of text is counted."""

    def careless(tokens, q, p, rng):
        coins = rng.accept if hasattr(rng, "accept") else rng.random(len(tokens))
        with np.errstate(all="ignore"):
            for i, x in enumerate(tokens):
                if not coins[i] <= p[i, x] / q[i, x]:
                    return np.append(tokens[:i], int(np.argmax(p[i] - q[i]))), i
        return np.append(tokens, int(np.argmax(p[-1]))), len(tokens)

    found = {e.name: e.status for e in edges(subject(careless, eos_ids=(0,)), lambda: None)}
    for name in ("coin 0, p(x) = 0", "q(x) = 0 at a drafted token", "end of text inside a block"):
        assert found[name] == "finding", name


def test_a_token_that_the_target_excludes_is_a_rejection():
    report = blackbox.audit(known()["M1"].subject, QUICK)
    assert {e["name"]: e["status"] for e in report.extra["edges"]}["temperature 0"] == "fault"
    assert "edges" in blackbox.failures(report)


def test_end_of_text_may_cut_a_commit():
    drafts = np.array([5, 0, 3])
    assert read_one((np.array([5, 0]), 2), drafts, 8, eos_ids=(0,))[1] == 2
    with pytest.raises(ContractBroken, match="acceptance miscounted"):
        read_one((np.array([5, 0]), 3), drafts, 8, eos_ids=(0,))
    batch = read((np.array([[5, 0, -1, -1]]), np.array([2])), drafts[None], 8, eos_ids=(0,))
    assert batch.accepted.tolist() == [2]


def test_one_block_and_a_batch_read_the_same():
    rng, scenario = np.random.default_rng(1), blackbox.scenarios()[4]
    drafts, q, p = draw_block(batched(Standard()), scenario, 50, rng, lambda: None)
    whole = read(batched(Standard()).call(drafts, q, p, rng), drafts, 4)
    for i in range(50):
        tokens, accepted = read_one(whole.tokens[i][whole.tokens[i] >= 0], drafts[i], 4)
        assert accepted == whole.accepted[i] == len(tokens) - 1


def test_a_torch_callable_gets_tensors_and_a_torch_generator():
    import torch

    def verify(tokens, q, p, rng):
        assert all(isinstance(x, torch.Tensor) for x in (tokens, q, p))
        kept = torch.rand(tokens.shape, generator=rng) * q[0, tokens] < p[0, tokens]
        residual = (p[0] - q[0]).clamp(min=0) if not bool(kept[0]) else p[1]
        token = torch.multinomial(residual, 1, generator=rng)
        return torch.cat([tokens, token]) if bool(kept[0]) else token

    tally = sample(
        subject(verify, arrays="torch"), blackbox.scenarios()[0], 2000, np.random.default_rng(0), lambda: None
    )
    assert_law(np.repeat(np.arange(4), tally.counts), [0.4, 0.2, 0.3, 0.1])
    assert_rate(tally.accepted, tally.drafted, 0.5)
    with pytest.raises(ContractBroken, match="inputs mutated"):
        sample(
            subject(lambda t, q, p, rng: t.zero_(), arrays="torch"),
            blackbox.scenarios()[0],
            50,
            np.random.default_rng(0),
            lambda: None,
        )


def test_short_commits_are_completed_from_the_target():
    """A verifier that always commits one token drawn from p leaves the joint law the target's (false alarm 1e-9)."""

    def one(tokens, q, p, rng):
        return np.array([rng.choice(p.shape[1], p=p[0] / p[0].sum())])

    scenario = blackbox.scenarios()[6]
    tally = sample(subject(one), scenario, 4000, np.random.default_rng(2), lambda: None)
    assert_law(np.repeat(np.arange(27), tally.counts), scenario.law())


def test_cells_are_read_most_significant_first():
    scenario = blackbox.scenarios()[4]
    answers = read(np.array([[1, 2, 3]]), np.array([[1, 2]]), 4)
    assert cells_of(scenario, None, answers, np.random.default_rng(0)).tolist() == [1 * 16 + 2 * 4 + 3]


def test_global_generators_are_put_back():
    import random

    import torch

    before = random.getstate(), torch.get_rng_state()
    with forked_generators(5) as used:
        random.random()
        torch.rand(1)
    assert used == ["random", "torch"]
    assert random.getstate() == before[0]
    assert (torch.get_rng_state() == before[1]).all()


def test_a_time_limit_does_not_touch_quick_work():
    assert guarded(lambda beat: 7, 0.2) == 7
    with pytest.raises(ValueError, match="mine"):
        guarded(lambda beat: (_ for _ in ()).throw(ValueError("mine")).__next__(), 5.0)


@pytest.mark.parametrize("bad", [{"deviation": 0.0}, {"false_alarm": 1.0}, {"miss": 2.0}])
def test_rates_must_be_rates(bad):
    with pytest.raises(UsageError, match="strictly between"):
        blackbox.Request(**bad)


@pytest.mark.parametrize("spec", ["hostile", "hostile:missing", "no_such_module_anywhere:f", "hostile:KINDS"])
def test_what_cannot_be_loaded_is_a_usage_error(spec):
    with pytest.raises(UsageError):
        load(spec)


def test_a_missing_package_and_senseless_limits_are_usage_errors():
    with pytest.raises(UsageError, match="needs the package no-such-engine"):
        blackbox.audit(subject(hostile.standard, packages=("no-such-engine",)), QUICK)
    for bad in ({"max_draws": 0}, {"time_limit": 0.0}):
        with pytest.raises(UsageError):
            blackbox.audit(hostile.standard, QUICK, **bad)
    with pytest.raises(UsageError, match="arrays must be one of"):
        subject(hostile.standard, arrays="jax")
    with pytest.raises(UsageError, match="not callable"):
        subject(7)


@pytest.mark.parametrize(
    ("draft", "kind"),
    [
        (lambda q, rng: 1 / 0, "raises"),
        (lambda q, rng: float("nan"), "raises"),
        (lambda q, rng: len(q), "id outside the vocabulary"),
        (lambda q, rng: np.random.default_rng().integers(len(q)), "not reproducible"),
    ],
)
def test_hostile_drafts_get_a_named_verdict(draft, kind):
    report = blackbox.audit(subject(hostile.standard, "drafts", draft=draft), QUICK)
    assert report.verdict == f"broken contract: {kind}"


def test_drafts_that_do_not_follow_their_law_are_found():
    """Greedy drafts with the soft q in ratio and residual (M7): the contract test shows TV 1 - q_max = .5 on C4."""
    report = blackbox.audit(known()["M7"].subject, QUICK)
    test = next(t for t in report.summary["tests"] if t["name"] == "drafts")
    assert test["rejected"]
    assert 0.5 in test["deviation"]
    assert report.summary["faults"][0]["fault"] == "greedy drafts with soft q in ratio and residual"


class Stopper:
    """A vectorised standard rule that counts its calls and stops the audit at one of them."""

    batched = True

    def __init__(self, stop=None):
        self.calls, self.stop, self.inner = 0, stop, batched(Standard()).call

    def __call__(self, *arguments):
        self.calls += 1
        if self.calls == self.stop:
            raise KeyboardInterrupt
        return self.inner(*arguments)


def test_an_interrupted_audit_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "BATCHED_CHUNK", 300)
    monkeypatch.setattr(runs, "SAVE_EVERY", 0.0)
    whole = Stopper()
    expected = blackbox.audit(whole, QUICK)
    with pytest.raises(KeyboardInterrupt):
        blackbox.audit(Stopper(stop=whole.calls - 4), QUICK, out=tmp_path)
    assert (tmp_path / runs.STATE).exists()
    rest = Stopper()
    report = blackbox.audit(rest, QUICK, out=tmp_path)
    assert rest.calls < whole.calls - 10
    assert report.to_json() == expected.to_json()
    assert not (tmp_path / runs.STATE).exists()  # a finished audit is never answered from its counts


def test_counts_of_another_request_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "SAVE_EVERY", 0.0)
    calls = Stopper()
    blackbox.audit(calls, QUICK)
    with pytest.raises(KeyboardInterrupt):
        blackbox.audit(Stopper(stop=calls.calls - 1), QUICK, out=tmp_path)
    assert (tmp_path / runs.STATE).exists()
    other = blackbox.Request(deviation=0.2, false_alarm=1e-9, miss=1e-6, seed=1)
    fresh, again = Stopper(), Stopper()
    expected = blackbox.audit(fresh, other)
    assert blackbox.audit(again, other, out=tmp_path).to_json() == expected.to_json()
    assert again.calls == fresh.calls


def test_a_killed_command_resumes(tmp_path):
    """The process dies with os._exit in the middle of the tests; the same command then finishes with fewer calls."""
    (tmp_path / "engine.py").write_text(
        "import os, pathlib\n"
        "from spectheory.audit.blackbox.specimens import batched\n"
        "from spectheory.verifiers import Standard\n"
        "inner, count = batched(Standard()).call, pathlib.Path('calls')\n"
        "def verify(*arguments):\n"
        "    with count.open('a') as f: f.write('x')\n"
        "    if count.stat().st_size == int(os.environ.get('DIE_AT', -1)): os._exit(137)\n"
        "    return inner(*arguments)\n"
        "verify.batched = True\n"
    )
    command = [
        sys.executable,
        "-m",
        "spectheory",
        "audit",
        "engine:verify",
        "--black-box",
        "--detect",
        "0.2",
        "--out",
        "out",
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}

    def launch(**more):
        (tmp_path / "calls").unlink(missing_ok=True)
        done = subprocess.run(
            command, cwd=tmp_path, env={**environment, **more}, capture_output=True, text=True, check=False
        )
        return done, (tmp_path / "calls").stat().st_size

    whole, calls = launch()
    assert whole.returncode == 0, whole.stderr
    killed, _ = launch(DIE_AT=str(calls - 2))
    assert killed.returncode == 137
    assert (tmp_path / "out" / runs.STATE).exists()
    finished, rest = launch()
    assert finished.returncode == 0, finished.stderr
    assert "lossless not rejected" in finished.stdout
    assert rest < calls
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["verdict"] == "lossless not rejected"


def test_command_line(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    common = ["audit", "hostile:standard", "--black-box", "--detect", "0.3", "--false-alarm", "1e-6"]
    done = CliRunner().invoke(cli.main, [*common, "--json", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["verdict"] == "lossless not rejected"
    assert report["verifier"]["name"] == "hostile:standard"
    assert {p.name for p in tmp_path.iterdir()} >= {"report.json", "report.html"}
    refused = CliRunner().invoke(cli.main, [*common, "--top-p", "0.9"])
    assert refused.exit_code == 2
    assert "--black-box" in refused.stderr
    broken = CliRunner().invoke(cli.main, ["audit", "hostile:too_many", "--black-box"])
    assert broken.exit_code == 4
    assert "broken contract: too many tokens" in broken.stdout


@pytest.mark.parametrize("of", [known()["M2"].subject, batched(Standard()), hostile.too_many])
def test_reports_follow_the_schema(of):
    schema = json.loads(files("spectheory.audit").joinpath("report.schema.json").read_text())
    data = json.loads(blackbox.audit(of, QUICK).dumps())
    jsonschema.validate(data, schema, cls=jsonschema.Draft202012Validator)
    assert AuditReport.from_json(data).to_json() == data


def test_the_html_report_shows_every_section(tmp_path):
    report = blackbox.audit(known()["M2"].subject, QUICK)
    write(report, tmp_path)
    page = (tmp_path / "report.html").read_text()
    for title in ("How it was tested", "Tests, TV from the target", "Which fault", "Edge cases", "Controls"):
        assert title in page
    assert "residual resampled from p" in page
