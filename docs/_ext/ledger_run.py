"""Runs the whole ledger once a build, claim and wrong formula, and keeps the outcome while the code is the same."""

from __future__ import annotations

import hashlib
import json
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from spectheory import CheckResult, __version__, ledger
from spectheory.theory.registry import theorems


@dataclass(frozen=True)
class Outcome:
    """What the last run found: with the claim as registered, and with its wrong formula swapped in."""

    result: CheckResult
    mutated: CheckResult


def outcomes(cache: Path, examples: int, seed: int = 0) -> dict[str, Outcome]:
    """An outcome for each claim that has a check. `cache` is read back only if not a byte of the package has changed."""
    key = f"{_fingerprint()} {examples} {seed}"
    if cache.exists():
        kept = json.loads(cache.read_text(encoding="utf-8"))
        if kept["key"] == key:
            return {id: Outcome(*map(CheckResult.from_json, pair)) for id, pair in kept["claims"].items()}
    ledger.load()
    ids = list(ledger.CHECKS)
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(ids))) as pool:
        pairs = pool.map(_run, ids, [examples] * len(ids), [seed] * len(ids))
        found = {id: Outcome(*pair) for id, pair in zip(ids, pairs)}
    cache.parent.mkdir(parents=True, exist_ok=True)
    written = cache.with_suffix(".partial")
    claims = {id: [o.result.to_json(), o.mutated.to_json()] for id, o in found.items()}
    written.write_text(json.dumps({"key": key, "version": __version__, "claims": claims}, indent=1), encoding="utf-8")
    written.replace(cache)
    return found


def _run(id: str, examples: int, seed: int) -> list[CheckResult]:
    ledger.load()
    claim, check = theorems()[id], ledger.CHECKS[id]
    return [ledger.run_one(claim, check, examples, seed, mutate) for mutate in (False, True)]


def _fingerprint() -> str:
    """A digest of every source file of the package."""
    digest = hashlib.sha256()
    for path in sorted(Path(str(ledger.__file__)).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
