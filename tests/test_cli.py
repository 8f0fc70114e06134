"""The command line: settings are read as a user writes them, mistakes are one line and their exit code, never a traceback."""

from __future__ import annotations

import math

import pytest
from click.testing import CliRunner

import spectheory as spec
from spectheory.cli import main, parse_settings


def test_settings_are_read_as_written():
    read = parse_settings(("a=.9", "b=2", "c=suffix", "d=true", "e=[1, 2]", "f=inf", "g=-1e-3"))
    assert read == {"a": 0.9, "b": 2, "c": "suffix", "d": True, "e": [1, 2], "f": math.inf, "g": -1e-3}
    assert isinstance(read["b"], int)


@pytest.mark.parametrize("pair", ["top_p", "=0.9", "top p=0.9"])
def test_a_setting_needs_a_name_and_a_value(pair):
    with pytest.raises(spec.UsageError, match="NAME=VALUE"):
        parse_settings((pair,))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["audit", "nsd"], 2, "missing a required argument: 'top_p'"),
        (["audit", "nsd", "--set", "top_p=2"], 2, "top_p must lie in [0, 1], not 2"),
        (["audit", "nsd", "--set", "top_p=nan"], 2, "top_p must lie in [0, 1], not nan"),
        (["audit", "asd", "--set", "budget=nan"], 2, "budget"),
        (["audit", "nonsense"], 2, "unknown rule 'nonsense'"),
        (["audit", "no_such_module:Rule"], 2, "No module named 'no_such_module'"),
        (["audit", "standard", "--logits", "no/such/recording"], 4, "no/such/recording"),
        (["extract", "--out", "x", "--target", "no/such/model"], 2, "no model 'no/such/model'"),
        (["verify", "nothing"], 2, "nothing"),
        (["compare", "nsd(top_p=0.9"], 2, "name(setting=value, ...)"),
    ],
)
def test_a_mistake_is_one_line(arguments, code, message):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    assert message in result.output
    assert "Traceback" not in result.output
    assert len(result.output.strip().splitlines()) == 1
