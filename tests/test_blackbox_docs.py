"""The how-to pages on black-box audits run: the ten-line test file, and the minimal examples of what was found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = "pytester"
HOWTO = Path(__file__).parents[1] / "docs/howto"


def blocks(page):
    return re.findall(r"```python\n(.*?)```", (HOWTO / page).read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_ten_lines_fail_with_the_fault_class(pytester):
    (code,) = blocks("test-your-verifier-in-ci.md")
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    pytester.makepyfile(test_mine=code)
    result = pytester.runpytest_subprocess("-p", "spectheory.testing.plugin", "-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    page = (HOWTO / "test-your-verifier-in-ci.md").read_text()
    quoted = page[page.index("test_mine:verify: rejected") : page.index("\n...\n```")]
    printed = " ".join(result.stdout.str().replace("\nE ", " ").split())
    for line in quoted.splitlines():
        assert " ".join(line.split()) in printed


@pytest.mark.parametrize("package", ["rotalabs", "seqspecdecod", "transformers"])
def test_minimal_examples_print_what_they_say(package, capsys, monkeypatch):
    import torch

    monkeypatch.setattr(torch, "rand_like", torch.rand_like)  # put back what the example replaces
    torch.manual_seed(0)
    page = (HOWTO / "audit-an-engine.md").read_text(encoding="utf-8")
    code = re.search(rf"<!-- example: {package} -->\n```python\n(.*?)```", page, flags=re.DOTALL)[1]
    exec(code, {})
    printed = capsys.readouterr().out.splitlines()
    promised = [text.split(": never")[0] for text in re.findall(r"print\(.*?\)  # (.*)", code)]
    assert len(printed) == len(promised) > 0
    for said, got in zip(promised, printed):
        assert got.startswith(said)


def test_every_verdict_and_kind_is_on_the_page():
    from spectheory.audit.blackbox import KINDS

    page = (HOWTO / "audit-an-engine.md").read_text(encoding="utf-8")
    for kind in KINDS:
        assert kind in page
