"""The how-to page runs: its Python, its commands, and its CI snippet step by step as a shell would."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from recordings import record

from spectheory.audit.text import LABELS
from spectheory.cli import main

HOWTO = Path(__file__).parents[1] / "docs/howto"
PAGE = (HOWTO / "audit-a-rule.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def run(command):
    words = shlex.split(command)
    assert words[0] == "spectheory"
    return CliRunner().invoke(main, words[1:])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(HOWTO / "my_rule.py", tmp_path)
    return tmp_path


def test_the_ci_snippet_passes_and_fails_as_it_says(folder):
    """The step of the snippet, as it stands: exit code 0; with a looser rule, 1."""
    (snippet,) = blocks("yaml")
    steps = re.findall(r"- run: (.*)", snippet)
    assert steps[0] == "pip install spectheory"
    (command,) = steps[1:]
    done = run(command)
    assert done.exit_code == 0, done.output
    assert "HOLDS: mean one-step deviation <= 0.02" in done.output
    assert (folder / "drift" / "report.html").exists()
    refuted = run(command.replace("share=0.9", "share=0.1"))
    assert refuted.exit_code == 1
    assert "REFUTED" in refuted.output


def test_the_python_runs(folder):
    record(folder / "recording", n=20)
    for block in blocks("python"):
        exec(block, {})


def test_the_first_command_runs(folder):
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert [c.split()[1] for c in commands] == ["audit", "compare"]
    done = run(commands[0])
    assert done.exit_code == 0
    for label in ("deviation", "acceptance rate", "gap to the optimal line", "expected tokens per call"):
        assert label in done.output
        assert any(text.startswith(label) for text in LABELS.values())
        assert f"| {label}" in PAGE
