"""`spectheory figures`: every figure from the embedded sample, the same bytes each time."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from spectheory.audit.gallery import MAKERS
from spectheory.cli import main


def drawn(names, out):
    result = CliRunner().invoke(main, ["figures", *names, "--out", str(out)])
    assert result.exit_code == 0, result.output
    return {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file()}


def test_the_same_bytes_each_time(tmp_path):
    first = drawn(["blackbox"], tmp_path / "a")
    assert {p.suffix for p in first} == {".svg", ".pdf", ".json"}
    assert drawn(["blackbox"], tmp_path / "b") == first


@pytest.mark.full
def test_every_figure_is_drawn(tmp_path):
    files = drawn([], tmp_path)
    assert {p.parts[0] for p in files} == set(MAKERS)
    assert len([p for p in files if p.suffix == ".svg"]) >= 15


def test_an_unknown_figure_is_a_usage_error(tmp_path):
    result = CliRunner().invoke(main, ["figures", "nothing", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "choose from nsd, compare" in result.output


def test_without_matplotlib_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("spectheory.audit.save.find_spec", lambda name: None)
    result = CliRunner().invoke(main, ["figures", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "spectheory[plot]" in result.output
    result = CliRunner().invoke(main, ["audit", "standard", "--out", str(tmp_path)])
    assert result.exit_code == 0
    assert "spectheory[plot]" in result.output
    assert (tmp_path / "report.html").exists()
