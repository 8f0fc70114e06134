"""The audit's sequence section and the horizon command, with their figures."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import spectheory as spec
from spectheory import audit
from spectheory.audit import sequence
from spectheory.audit.horizon import powers
from spectheory.cli import main
from spectheory.errors import DataError, UsageError
from spectheory.verifiers import Nucleus, Standard

P, Q = np.array([0.4, 0.2, 0.3, 0.1]), np.array([0.1, 0.5, 0.1, 0.3])
BLOCKS = [spec.Block([1, 3], np.stack([P, P, P]), np.stack([Q, Q])) for _ in range(3)]


def test_powers():
    assert powers(1) == [1]
    assert powers(64) == [1, 2, 4, 8, 16, 32, 64]
    assert powers(5) == [1, 2, 4, 5]
    with pytest.raises(UsageError, match=">= 1"):
        powers(0)


def added(rule, **options):
    return sequence.add(audit.run(rule, BLOCKS, sweep=False), rule, BLOCKS, **options)


def test_equal_rows_are_one_context():
    """Rows that are all C4 have the exact values of the context-free model."""
    rule = Nucleus(0.8)
    curve = added(rule, horizon=4, block=2).summary["sequence"]["curve"]
    model = spec.models.Tabular(P[None], Q[None])
    for point in curve:
        true = spec.exact.sequence_deviation(rule, model, length=point["length"], block_size=2)
        assert point["bounds"]["best"].lower - 1e-12 <= true <= point["bounds"]["best"].upper + 1e-12
        for name in ("coupling", "union", "uniform"):
            direct = spec.theory.nsd.sequence_bounds(rule, model, length=point["length"], block_size=2)
            assert point["bounds"][name].upper == pytest.approx(direct[name].upper, abs=1e-10)
        assert point["estimate"].lower - 0.02 <= true <= point["estimate"].upper + 0.02


def test_the_price_of_speed_follows_theorem_n2():
    prices = added(Nucleus(0.8), horizon=2, block=4).summary["sequence"]["trade_off"]
    assert [p["value"] for p in prices["points"]] == sorted(p["value"] for p in prices["points"])
    for point in prices["points"]:
        assert point["acceptance"] - point["deviation"] == pytest.approx(0.5, abs=1e-12)  # 1 - D
        assert point["speedup"] <= prices["cap"] + 1e-12
    at = next(p for p in prices["points"] if p["value"] == 0.8)
    assert at["speedup"] == pytest.approx(2.801333, abs=1e-6)


def test_the_standard_rule_has_nothing_to_report():
    curve = added(Standard(), horizon=8).summary["sequence"]["curve"]
    assert all(p["bounds"]["best"].upper < 1e-9 for p in curve)


def test_what_cannot_be_read():
    with pytest.raises(DataError, match="no row with full laws"):
        sequence.add(audit.run(Standard(), BLOCKS), Standard(), [], horizon=2)
    with pytest.raises(UsageError, match=">= 1"):
        added(Standard(), horizon=0)


def test_the_command_writes_section_and_figures(tmp_path):
    arguments = ["audit", "nsd", "--set", "top_p=0.9", "--horizon", "8", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert "Deviation of whole sequences" in result.stdout
    assert "What speed costs" in result.stdout
    for name in ("horizon", "trade_off"):
        assert (tmp_path / f"{name}.svg").stat().st_size > 1000
        assert json.loads((tmp_path / f"{name}.json").read_text())
    report = spec.AuditReport.from_json(json.loads((tmp_path / "report.json").read_text()))
    curve = report.summary["sequence"]["curve"]
    assert [p["length"] for p in curve] == [1, 2, 4, 8]
    for p in curve:
        best, coupling, union = (p["bounds"][k] for k in ("best", "coupling", "union"))
        assert best.lower <= best.upper <= coupling.upper + 1e-12
        assert coupling.upper <= union.upper + 1e-12
    first = curve[0]["bounds"]["best"]
    assert first.lower - 1e-9 <= report.summary["deviation"]["on_data"].estimate <= first.upper + 1e-9


def test_figures_of_plain_data():
    from spectheory.figures import sequence as figures

    made = figures.horizon(
        {"lengths": [1, 10, 10**6], "upper": {"union": [0.1, 1.0, 9.0]}, "lower": {}, "exact": [0.1, 0.2, 0.3]}
    )
    assert len(made.axes[0].lines) == 2
    curves = [{"label": "one", "speedup": [1, 2], "deviation": [0, 0.1], "values": [0, 1]}]
    assert figures.trade_off({"parameter": "top_p", "curves": curves}).axes[0].get_xlabel().startswith("speed-up")


@pytest.mark.parametrize("fault", ["SharedUniform", "ResidualBonus", "StaleBonus", "NoStop"])
def test_joint_faults_are_refuted_by_the_block_audit(fault):
    name = f"spectheory.verifiers.broken_joint:{fault}"
    result = CliRunner().invoke(main, ["audit", name, "--max-deviation", "0"])
    assert result.exit_code == 1, result.output
    assert "REFUTED" in result.stdout


def test_block_verification_is_lossless_on_the_small_models():
    from spectheory.audit import joint

    report = joint.run(spec.verifiers.get("block"), max_deviation=0)
    assert report.verdict == "holds"
    assert report.summary["by_blocks"]["deviation over 4 tokens, small models, largest"].upper < 1e-12
    with pytest.raises(UsageError, match="no acceptance"):
        joint.run(object())
