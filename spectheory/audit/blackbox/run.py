"""Runs a black-box audit: contract, edges, the designed tests, controls; finished chunks are kept, so that a rerun goes on."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import time
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..._version import __version__
from ...errors import UsageError
from ...montecarlo.multinomial import Deviation, deviation_interval
from ...results import AuditReport
from .contract import probe
from .controls import Control, controls
from .edges import Edge, edges
from .faults import Fit, name_faults
from .guard import ContractBroken, guarded
from .interface import Subject, forked_generators, subject
from .metamorphic import Comparison, compare
from .plan import METAMORPHIC, Request, Trial, plan
from .scenario import Tally, empty_tally, sample

STATE = "blackbox-state.json"
TIME_LIMIT = 10.0  # seconds without an answer
FIRST = 6  # times the limit for the very first call, which may have to import a large package
CHUNK, BATCHED_CHUNK = 1000, 50_000
SAVE_EVERY = 1.0  # seconds

Progress = Callable[[int, int], None]


@dataclass
class Run:
    """Everything an audit found; `broken` ends it early. `report.py` turns it into an AuditReport."""

    subject: Subject
    request: Request
    trials: list[Trial]
    tallies: dict[str, Tally] = field(default_factory=dict)
    found: dict[str, Deviation] = field(default_factory=dict)
    broken: ContractBroken | None = None
    notes: list[str] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)
    faults: list[Fit] = field(default_factory=list)
    max_draws: int | None = None


def audit(
    target: Any,
    request: Request | None = None,
    *,
    max_draws: int | None = None,
    time_limit: float = TIME_LIMIT,
    out: Path | str | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Audit a callable (see `interface`) and report; never raises for what the callable does.

    `max_draws` caps each test below its designed size (an audit that needed more is inconclusive); `out` keeps the
    counts of an audit that was stopped, and the same request on the same code goes on from there. Raises UsageError for
    a request out of range or a package that the callable names and that is not installed.
    """
    from .report import report

    return report(examine(target, request, max_draws=max_draws, time_limit=time_limit, out=out, progress=progress))


def examine(
    target: Any,
    request: Request | None = None,
    *,
    max_draws: int | None = None,
    time_limit: float = TIME_LIMIT,
    out: Path | str | None = None,
    progress: Progress | None = None,
) -> Run:
    """What `audit` does, before it becomes a report. Raises UsageError as `audit`."""
    subject_, request = subject(target), request or Request()
    if time_limit <= 0 or (max_draws is not None and max_draws < 1):
        raise UsageError(f"a time limit must be positive and a cap on draws at least 1, not {time_limit}, {max_draws}")
    run = Run(subject_, request, plan(subject_, request), max_draws=max_draws)
    state = _State(Path(out) / STATE if out else None, _fingerprint(subject_, request, max_draws))
    try:
        run.notes = guarded(partial(probe, subject_, request.seed), time_limit, first=FIRST * time_limit)
        run.edges = guarded(partial(edges, subject_), time_limit)
        _run_trials(run, state, time_limit, progress)
    except ContractBroken as broken:
        run.broken = broken
    with forked_generators(request.seed):
        run.controls = controls(request.seed, lambda: None)
    if run.broken is None:
        counts = {name: tally.counts for name, tally in run.tallies.items()}
        run.comparisons = compare(run.trials, counts, request.false_alarm / (len(run.trials) + len(METAMORPHIC)))
        if any(d.rejected for d in run.found.values()):
            run.faults = name_faults(run.trials, counts)
    state.clear()
    return run


def _run_trials(run: Run, state: _State, time_limit: float, progress: Progress | None) -> None:
    total = sum(_goal(run, t) for t in run.trials)
    done = 0
    for trial in run.trials:
        name = trial.scenario.name
        tally, chunk = state.load(name, trial)
        for look in trial.looks:
            goal = min(look, _goal(run, trial))
            if int(tally.counts.sum()) > goal:
                continue  # resumed beyond this look: it was taken before, another one would not be in the budget
            while (drawn := int(tally.counts.sum())) < goal:
                if progress is not None:
                    progress(done + drawn, total)
                tally.add(_chunk(run, trial, chunk, goal - drawn, time_limit))
                chunk += 1
                state.save(name, tally, chunk)
            found = deviation_interval(tally.counts, trial.scenario.law(), trial.design.alpha, trial.design.method)
            if found.rejected or goal < look:
                break
        run.tallies[name], run.found[name] = tally, found
        done += _goal(run, trial)
        state.save(name, tally, chunk, now=True)
    if progress is not None:
        progress(total, total)


def _goal(run: Run, trial: Trial) -> int:
    return trial.design.n if run.max_draws is None else min(trial.design.n, run.max_draws)


def _chunk(run: Run, trial: Trial, chunk: int, missing: int, time_limit: float) -> Tally:
    """One chunk of draws, its randomness a function of (seed, test, chunk) alone."""
    size = BATCHED_CHUNK if run.subject.batched else CHUNK
    seed = [run.request.seed, zlib.crc32(trial.scenario.name.encode()), chunk]
    rng = np.random.default_rng(seed)
    with forked_generators(int(rng.integers(2**32))) as used:
        tally = guarded(partial(sample, run.subject, trial.scenario, min(size, missing), rng), time_limit)
    tally.globals |= set(used)
    return tally


class _State:
    """Counts on disk, by test: written to a temporary name, then renamed; another request's counts are not read."""

    def __init__(self, path: Path | None, fingerprint: str) -> None:
        self.path, self.fingerprint, self.saved = path, fingerprint, time.monotonic()
        self.tests: dict[str, dict[str, Any]] = {}
        if path is not None and path.exists():
            try:
                kept = json.loads(path.read_text())
            except json.JSONDecodeError:
                kept = {}
            if kept.get("fingerprint") == fingerprint:
                self.tests = kept["tests"]

    def load(self, name: str, trial: Trial) -> tuple[Tally, int]:
        """(tally, next chunk) of a test; empty if it has not begun."""
        kept = self.tests.get(name)
        if kept is None:
            return empty_tally(trial.scenario), 0
        held = Tally(np.array(kept["counts"]), kept["calls"], kept["drafted"], kept["accepted"], set(kept["globals"]))
        return held, kept["chunks"]

    def save(self, name: str, tally: Tally, chunks: int, now: bool = False) -> None:
        if self.path is None:
            return
        plain = {**asdict(tally), "counts": tally.counts.tolist(), "globals": sorted(tally.globals), "chunks": chunks}
        self.tests[name] = plain
        if now or time.monotonic() - self.saved > SAVE_EVERY:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary = self.path.with_suffix(".tmp")
            temporary.write_text(json.dumps({"fingerprint": self.fingerprint, "tests": self.tests}))
            os.replace(temporary, self.path)
            self.saved = time.monotonic()

    def clear(self) -> None:
        """A finished audit is never answered from its counts: code that it imports may have changed."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _fingerprint(subject_: Subject, request: Request, max_draws: int | None) -> str:
    """Changes whenever kept counts would: the callable, its code's file, package versions, the request."""
    code = subject_.call if inspect.isroutine(subject_.call) else type(subject_.call)
    try:
        digest = hashlib.sha256(Path(inspect.getfile(code)).read_bytes()).hexdigest()
    except (OSError, TypeError):  # defined at a prompt or in C: its text is not at hand
        digest = ""
    what = [subject_.name, subject_.batched, subject_.arrays, digest, subject_.versions(), asdict(request), max_draws]
    return hashlib.sha256(json.dumps([*what, __version__], sort_keys=True).encode()).hexdigest()[:16]
