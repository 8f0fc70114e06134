"""The pytest plugin, run by pytest in a directory of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = "pytester"
HOSTILE = Path(__file__).with_name("hostile.py").read_text()
WRONG = """
import numpy as np

def verify(tokens, q, p, rng):
    for i, x in enumerate(tokens):
        if rng.random() * q[i, x] >= p[i, x]:
            return np.append(tokens[:i], rng.choice(p.shape[1], p=p[i] / p[i].sum()))
    return np.append(tokens, rng.choice(p.shape[1], p=p[-1] / p[-1].sum()))
"""


@pytest.fixture
def run(pytester):
    """Run the plugin on what was written there, as a user would who has not installed its entry point."""
    pytester.makepyfile(hostile=HOSTILE, wrong=WRONG)
    pytester.syspathinsert()
    return lambda *args: pytester.runpytest_subprocess(
        "-p", "spectheory.testing.plugin", "-p", "no:cacheprovider", *args
    )


def test_a_lossless_verifier_passes_every_part(run):
    result = run("--spectheory-verifier", "hostile:standard", "--spectheory-detect", "0.2", "-v")
    result.assert_outcomes(passed=11)
    result.stdout.fnmatch_lines(["*hostile:standard[[]contract[]]*PASSED*", "*hostile:standard[[]controls[]]*PASSED*"])


def test_the_fault_class_is_in_the_failure_message(run):
    result = run("--spectheory-verifier", "wrong:verify", "--spectheory-detect", "0.1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*wrong:verify, step, C4: not lossless: TV in *",
            "*witness: {1, 3} has probability 0.3000 under the target, was seen with *",
            "*fault class: residual resampled from p*",
            "*observed TV * from the target, * from this fault's exact law*",
        ]
    )


def test_a_broken_contract_fails_once_and_skips_the_rest(run):
    result = run("--spectheory-verifier", "hostile:too_many", "--spectheory-detect", "0.2")
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1
    assert outcomes["passed"] == 1  # the controls
    result.stdout.fnmatch_lines(["*broken contract: too many tokens*"])


def test_several_verifiers_and_ordinary_tests_run_together(run, pytester):
    pytester.makepyfile(test_own="def test_one():\n    pass\n")
    result = run("--spectheory-verifier", "hostile:too_many", "--spectheory-verifier", "hostile:outside", "test_own.py")
    assert result.parseoutcomes()["failed"] == 2


def test_the_fixture_names_the_fault(run, pytester):
    pytester.makepyfile(
        test_fixture="import hostile, wrong\n"
        "def test_good(assert_lossless):\n"
        "    assert assert_lossless(hostile.standard, detect=0.2).verdict == 'lossless not rejected'\n"
        "def test_bad(assert_lossless):\n"
        "    assert_lossless(wrong.verify, detect=0.1)\n"
    )
    result = run("test_fixture.py")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*fault class: residual resampled from p*"])


@pytest.mark.parametrize(
    "args",
    [
        ("--spectheory-verifier", "nowhere:verify"),
        ("--spectheory-verifier", "hostile:standard", "--spectheory-detect", "2"),
    ],
)
def test_bad_options_are_usage_errors(run, args):
    result = run(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
