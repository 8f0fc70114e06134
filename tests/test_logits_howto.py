"""The how-to page runs: its Python blocks in order, in one namespace, in an empty directory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from spectheory.logits import manifest as manifests

PAGE = (Path(__file__).parent.parent / "docs/howto/dump-logits.md").read_text(encoding="utf-8")


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(block, names)
    out = capsys.readouterr().out
    assert "6 blocks, acceptance" in out
    assert "bytes that do not match the manifest's checksum" in out


def test_the_page_explains_every_manifest_key() -> None:
    table = PAGE[PAGE.index("| manifest key") : PAGE.index("Tensors of a shard")]
    assert set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", table, flags=re.MULTILINE)))) == set(
        manifests.DEFAULTS
    )
