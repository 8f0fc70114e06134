"""Several rules on the same rows."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from recordings import make_blocks, record

from spectheory import UsageError, audit, logits
from spectheory.cli import main
from spectheory.verifiers import Nucleus, Standard, example

RULES = ["standard", "nsd(top_p=0.9)", "lenience", "ensemble", "slack", "typical", "thresholds"]


def test_each_entry_is_the_audit_of_the_rule_alone():
    rules, blocks = [Standard(), Nucleus(0.9), example("typical")], make_blocks()
    together = audit.compare(rules, blocks)
    for rule, entry in zip(rules, together.summary["rules"]):
        alone = audit.run(rule, blocks)
        for name in ("acceptance", "deviation", "gap", "tokens_per_call"):
            assert entry[name] == alone.summary[name]
    assert together.summary["tv"] == audit.run(rules[0], blocks).summary["tv"]
    assert together.verdict == "no claim"


def test_the_real_sample_on_one_plane(tmp_path):
    """The rules of the paper on the embedded sample: who lies on the optimal line, who off it, and none below."""
    done = CliRunner().invoke(main, ["compare", *RULES, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "report.json").read_text())
    tv = report["summary"]["tv"]["on_data"]["upper"]
    entries = {e["verifier"]["rule"]: e for e in report["summary"]["rules"]}
    assert set(entries) == {"standard", "nsd", "lenience", "ensemble", "slack", "typical", "thresholds"}
    for name, entry in entries.items():
        accept, deviation, gap = (entry[k]["on_data"]["upper"] for k in ("acceptance", "deviation", "gap"))
        assert gap == pytest.approx(deviation + 1 - accept - tv, abs=1e-9)
        assert gap >= 0
        assert (gap < 1e-9) == (name not in ("typical", "thresholds"))
    assert entries["standard"]["deviation"]["on_data"]["upper"] == 0
    assert {p.name for p in tmp_path.iterdir()} == {
        "report.json",
        "report.html",
        "plane.svg",
        "plane.pdf",
        "plane.json",
    }
    drawn = json.loads((tmp_path / "plane.json").read_text())
    assert len(drawn["points"]) == 7
    assert {c["label"] for c in drawn["curves"]} == {"typical", "thresholds(single=0.9, acc=0.5)"}


def test_settings_in_brackets(tmp_path):
    path = record(tmp_path / "rec", n=6)
    done = CliRunner().invoke(
        main, ["compare", "typical(epsilon=0.2, correction_law=target)", "nsd", "--logits", str(path), "--json"]
    )
    titles = [e["rule"] for e in json.loads(done.stdout)["summary"]["rules"]]
    assert titles == ["typical(epsilon=0.2, correction_law=target)", "nsd(top_p=0.8)"]


def test_bad_rows_are_listed_once(tmp_path):
    blocks = make_blocks(4)
    bad = blocks[0].__class__([1, 2, 3], blocks[0].p[:1], blocks[0].q)
    report = audit.compare([Standard(), Nucleus(0.9)], [*blocks, bad])
    assert len(report.errors) == 1
    assert audit.exit_code(report) == 4


def test_a_stopped_comparison_goes_on(tmp_path, monkeypatch):
    path, out, rules = record(tmp_path / "rec"), tmp_path / "out", [Standard(), Nucleus(0.9)]

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit.compare(rules, path, out=out, progress=stop)
    read = []
    decode = logits.Reader.blocks
    monkeypatch.setattr(logits.Reader, "blocks", lambda self, i=None: read.append(i) or decode(self, i))
    resumed = audit.compare(rules, path, out=out)
    assert read == list(range(1, len(logits.read(path).shards)))
    assert resumed.to_json() == audit.compare(rules, path).to_json()


def test_nothing_to_compare():
    with pytest.raises(UsageError, match="at least one rule"):
        audit.compare([], make_blocks(1))
