"""What the README shows is what the code does: its Python session runs, its quoted output is the commands' own."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from spectheory.cli import main

README = Path(__file__).resolve().parents[1] / "README.md"
QUOTED = re.findall(r"<!-- output of: (.*?) -->\n```\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_python_session():
    failed, tried = doctest.testfile(str(README), module_relative=False)
    assert tried >= 7
    assert failed == 0


@pytest.mark.parametrize(("command", "quoted"), QUOTED, ids=[command for command, _ in QUOTED])
def test_quoted_output(command, quoted, monkeypatch):
    """Every quoted line is printed, up to line breaks and spacing."""
    monkeypatch.setenv("COLUMNS", "120")
    arguments = shlex.split(command)
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    printed = " ".join(re.sub("[│╭╰─╮╯]", " ", result.output).split())
    sentence = " ".join(quoted.split("\n\n")[0].split()) if "\n\n" in quoted else ""
    if sentence:
        assert sentence in printed
        quoted = quoted.split("\n\n", 1)[1]
    for line in quoted.splitlines():
        assert " ".join(line.split()) in printed


def test_something_is_quoted():
    assert len(QUOTED) == 3
