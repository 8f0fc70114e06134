"""The page docs/theory/asd.md: its code runs and prints what it says; every claim of the family is on it."""

import doctest
import re
from pathlib import Path

from spectheory import theory
from spectheory.theory.registry import theorems

PAGE = Path(__file__).parents[1] / "docs" / "theory" / "asd.md"


def test_the_code_prints_what_the_page_says():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 20
    assert result.failed == 0


def test_every_claim_is_placed_once():
    theory.load()
    placed = re.findall(r"```\{claim\} (\S+)\n```", PAGE.read_text(encoding="utf-8"))
    assert sorted(placed) == sorted(theorems("A"))
