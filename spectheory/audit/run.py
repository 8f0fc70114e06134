"""Runs rules over a source, shard by shard, bad rows set aside; finished shards are kept so that a rerun goes on."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, UsageError
from ..protocols import Block
from ..results import AuditReport
from .plan import Plan
from .rows import Record, in_order, join_columns, measure
from .source import Source
from .summary import resummarise, summarise

PARTS = ".parts"
Progress = Callable[[int, int], None]


def audit_token_rules(
    plans: Sequence[Plan],
    source: Source,
    *,
    max_deviation: float | None = None,
    out: Path | None = None,
    shards: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> list[AuditReport]:
    """One report a plan, over the same rows. `shards` restricts to those named; `out` keeps finished shards.

    Raises UsageError for an unknown shard, DataError for a source without blocks.
    """
    chosen = _chosen(source, shards)
    gathered: list[list[Record]] = [[] for _ in plans]
    errors = [source.unfinished() for _ in plans]
    for done, i in enumerate(chosen):
        for k, (rows, bad) in enumerate(_shard(plans, source, i, out)):
            errors[k] += bad
            if rows:
                gathered[k].append(rows)
        if progress is not None:
            progress(done + 1, len(chosen))
    if not any(gathered) and not any(errors):
        raise DataError(f"{source.name}: there is no block to audit")
    return [
        summarise(plan, source, in_order(join_columns(rows)), bad, max_deviation)
        for plan, rows, bad in zip(plans, gathered, errors)
    ]


def _chosen(source: Source, shards: Sequence[str] | None) -> list[int]:
    if shards is None:
        return list(range(len(source.shards)))
    unknown = set(shards) - set(source.shards)
    if unknown:
        raise UsageError(f"no shard is called {sorted(unknown)[0]!r}: {source.name} has {', '.join(source.shards)}")
    return [source.shards.index(s) for s in shards]


def _shard(
    plans: Sequence[Plan], source: Source, i: int, out: Path | None
) -> list[tuple[Record, list[dict[str, Any]]]]:
    """(rows, errors) of one shard for each plan, from the cache where all are there."""
    identity = source.fingerprint(i)
    paths = [out / PARTS / f"{i:05d}-{plan.fingerprint(identity)}.npz" for plan in plans] if out and identity else []
    cached = [_load_part(path) for path in paths]
    if cached and all(c is not None for c in cached):
        return [c for c in cached if c is not None]
    records: list[list[Record]] = [[] for _ in plans]
    errors: list[list[dict[str, Any]]] = [[] for _ in plans]
    for block in _numbered(source, i):
        for k, plan in enumerate(plans):
            try:
                records[k].append(measure(plan, block, source.manifest, source.warped))
            except DataError as error:
                errors[k].append({"shard": block.info["file"], "row": block.info["rows"][0], "cause": str(error)})
    done = [(join_columns(r), source.errors + e) for r, e in zip(records, errors)]
    for path, (rows, bad) in zip(paths, done):
        _save_part(path, rows, bad)
    return done


def _numbered(source: Source, i: int) -> Iterator[Block]:
    """The blocks of a shard with the provenance that rows are keyed by, counted where the source does not say."""
    at = 0
    for number, block in enumerate(source.blocks(i)):
        given = dict(block.info)
        rows = given.get("rows") or ((given["row"],) if "row" in given else (at,))
        file = str(given.get("file", given.get("shard", source.shards[i])))
        known = {"block": number, "request": f"block {number}", **given, "file": file, "rows": tuple(rows)}
        at += block.size + 1
        yield Block(block.tokens, block.p, block.q, block.logits, block.truncated, known)


def _save_part(path: Path, rows: Record, errors: list[dict[str, Any]]) -> None:
    """Under a temporary name, then renamed. A disk that is full costs the cache, never the audit."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        with temporary.open("wb") as file:
            np.savez(file, **rows, errors=np.array(json.dumps(errors)))
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)


def _load_part(path: Path) -> tuple[Record, list[dict[str, Any]]] | None:
    """A finished shard, or None if it is missing or damaged."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
            rows = {k: data[k] for k in data.files}
        return rows, json.loads(str(rows.pop("errors")))
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
        return None


def clear_parts(out: Path) -> None:
    """Remove the kept shards of a finished audit."""
    for path in (out / PARTS).glob("*"):
        path.unlink(missing_ok=True)
    if (out / PARTS).is_dir():
        (out / PARTS).rmdir()


def join(reports: Sequence[AuditReport]) -> AuditReport:
    """One report from audits of different shards of one source by one rule: the report an audit of all of them gives.

    Raises UsageError if they are not of one rule, one source and one claim.
    """
    if not reports:
        raise UsageError("there is no report to join")
    first = reports[0]
    for other in reports[1:]:
        for what in ("verifier", "source", "claim"):
            if _comparable(getattr(other, what)) != _comparable(getattr(first, what)):
                raise UsageError(f"reports of different {what}s cannot be joined")
    rows = in_order(join_columns([dict(r.rows) for r in reports if r.rows]))
    keys = list(zip(rows.get("shard", []), rows.get("row", [])))
    if len(set(keys)) != len(keys):
        raise UsageError("the reports overlap: a row was audited twice")
    return resummarise(reports, rows)


def _comparable(x: Any) -> str:
    return json.dumps(x, sort_keys=True, default=str) if isinstance(x, Mapping) else str(x)
