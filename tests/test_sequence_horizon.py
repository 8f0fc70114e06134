"""The horizon command on a real (tiny) causal pair: the estimate encloses the exact deviation of its unrolled laws."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from tiny_llama import save_tiny

import spectheory as spec
from spectheory.cli import main
from spectheory.models.causal import load_pair

VOCAB = 16


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return str(save_tiny(tmp_path_factory.mktemp("tiny"), vocab=VOCAB))


def run(tiny, out, *more):
    arguments = ["horizon", "nsd", "--set", "top_p=0.6", "--target", tiny, "--draft", "skip:1,2", "--prompt", "w3 w7"]
    arguments += ["--horizon", "2", "--block", "2", "--batch", "100", "--alpha", "1e-9", "--out", str(out), *more]
    return CliRunner().invoke(main, arguments)


def test_the_estimate_encloses_the_exact_value(tiny, tmp_path):
    result = run(tiny, tmp_path, "--paths", "400")
    assert result.exit_code == 0, result.output
    assert "changes with probability in [" in result.stdout
    report = spec.AuditReport.from_json(json.loads((tmp_path / "report.json").read_text()))
    table = spec.models.unroll(load_pair(tiny, "skip:1,2", prompt=[3, 7]), 2)
    for point in report.summary["sequence"]["curve"]:
        true = spec.exact.sequence_deviation(spec.verifiers.Nucleus(0.6), table, length=point["length"], block_size=2)
        for side in ("deviation", "engine", "target"):
            assert point[side].lower <= true <= point[side].upper
        assert true > 0.01
    for suffix in ("svg", "pdf", "json"):
        assert (tmp_path / f"horizon.{suffix}").exists()


def test_a_rerun_goes_on_and_another_request_is_refused(tiny, tmp_path):
    assert run(tiny, tmp_path, "--paths", "100").exit_code == 0
    first = (tmp_path / "paths.npz").read_bytes()
    again = run(tiny, tmp_path, "--paths", "100", "--json")
    assert json.loads(again.stdout)["summary"]["sequence"]["paths"] == 100
    assert (tmp_path / "paths.npz").read_bytes() == first
    other = run(tiny, tmp_path, "--paths", "100", "--seed", "1")
    assert other.exit_code == 4
    assert "another request" in other.output
    assert "Traceback" not in other.output


def test_usage(tiny, tmp_path):
    assert run(tiny, tmp_path, "--horizon", "0").exit_code == 2
    assert run(tiny, tmp_path, "--block", "0").exit_code == 2
    assert run(tiny, tmp_path, "--prompt", "").exit_code == 2
