"""Every experiment's quick mode gives what its expected.json says, and its figures are written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXPERIMENTS = sorted(path.parent for path in (ROOT / "experiments").glob("*/run.py"))


@pytest.mark.parametrize("folder", EXPERIMENTS, ids=lambda p: p.name)
def test_quick_mode_is_as_expected(folder, tmp_path):
    command = [sys.executable, str(folder / "run.py"), "--quick", "--check", "--out", str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    assert "as expected" in done.stderr
    assert list(tmp_path.glob("*.svg"))
    for name in ("config.toml", "expected.json", "README.md"):
        assert (folder / name).exists()
