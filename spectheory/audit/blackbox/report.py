"""From what a run found to an AuditReport: the verdict, its sentence, and the tables both renderers show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..._version import __version__
from ...montecarlo import clopper_pearson
from ...results import AuditReport, Interval
from ..verdict import BROKEN, INCONCLUSIVE, NOT_REJECTED, REJECTED
from .guard import KINDS
from .plan import METAMORPHIC, Trial
from .run import Run

Section = dict[str, Any]


def report(run: Run) -> AuditReport:
    """The whole report; a broken contract has no TV number anywhere."""
    verdict, statement = judge(run)
    subject = run.subject
    tests = [] if run.broken else [_test(run, t) for t in run.trials if t.scenario.name in run.found]
    summary = {
        "rows": 0,  # recorded rows: none, the pairs are designed
        "statement": statement,
        "error_budget": _budget(run),
        "tests": tests,
        "faults": [{"fault": f.fault, "log_likelihood_behind": f.behind, "evidence": f.evidence} for f in run.faults],
        "broken": None if run.broken is None else {"kind": run.broken.kind, "detail": run.broken.detail},
        "notes": _notes(run),
    }
    edge_cases = [{"name": e.name, "status": e.status, "detail": e.detail} for e in run.edges]
    checks = [
        {
            **{
                k: getattr(c, k)
                for k in ("specimen", "fault", "broken", "rejected", "draws", "interval", "named", "ok")
            },
            "exact_tv": c.tv,
        }
        for c in run.controls
    ]
    return AuditReport(
        verifier={
            "title": subject.name,
            "name": subject.name,
            "batched": subject.batched,
            "arrays": subject.arrays,
            "packages": subject.versions(),
        },
        source={"name": "designed pairs", "seed": run.request.seed},
        claim="lossless: committed tokens follow the target",
        verdict=verdict,
        spectheory_version=__version__,
        summary=summary,
        extra={"sections": _sections(run), "edges": edge_cases, "controls": checks},
    )


def judge(run: Run) -> tuple[str, str]:
    """(verdict, the sentence that explains it)."""
    if run.broken is not None:
        return f"{BROKEN}: {run.broken.kind}", f"{KINDS[run.broken.kind]}: {run.broken.detail}"
    failed = [c.specimen for c in run.controls if not c.ok]
    if failed:
        return INCONCLUSIVE, f"the audit failed its own controls ({', '.join(failed)}): no verdict of it can be trusted"
    rejected = [t for t in run.trials if run.found[t.scenario.name].rejected]
    if rejected:
        worst = max(rejected, key=lambda t: run.found[t.scenario.name].interval.lower)
        found = run.found[worst.scenario.name]
        where = f"{worst.scenario.name}: {_event(worst, found.witness)}"
        return (
            REJECTED,
            f"TV >= {found.interval.lower:.4g}; {where} has probability {found.claimed:.4f}, was seen with {found.observed:.4f}",
        )
    faults = [e for e in run.edges if e.status == "fault"]
    if faults:
        return REJECTED, f"{faults[0].name}: {faults[0].detail}"
    short = [t for t in run.trials if run.tallies[t.scenario.name].counts.sum() < t.design.n]
    if short:
        widest = max(run.found[t.scenario.name].interval.upper for t in run.trials)
        return (
            INCONCLUSIVE,
            f"{len(short)} tests stopped before their designed size; TV up to {widest:.4g} is not excluded",
        )
    r = run.request
    return NOT_REJECTED, f"TV > {r.deviation:g} would have been found with probability {1 - r.miss:g}"


def _test(run: Run, trial: Trial) -> dict[str, Any]:
    name = trial.scenario.name
    found, tally = run.found[name], run.tallies[name]
    return {
        "name": name,
        "finds": trial.scenario.finds,
        "draws": int(tally.counts.sum()),
        "designed": trial.design.n,
        "calls": tally.calls,
        "method": trial.design.method,
        "alpha": trial.design.alpha,
        # One look has the design's alpha; where the test may stop at any of its looks the interval has the sum.
        "deviation": replace(found.interval, alpha=trial.design.alpha * len(trial.looks)),
        "rejected": found.rejected,
        "witness": {"event": _event(trial, found.witness), "target": found.claimed, "seen": found.observed}
        if found.rejected
        else None,
        "acceptance": _acceptance(run, trial),
    }


def _acceptance(run: Run, trial: Trial) -> Interval | None:
    """Mean drafts kept over drafts made; an interval only where blocks of one make the drafts independent trials."""
    tally = run.tallies[trial.scenario.name]
    if trial.scenario.block != 1 or not tally.drafted:
        return None
    one_look = clopper_pearson(tally.accepted, tally.drafted, trial.design.alpha)
    return replace(one_look, alpha=trial.design.alpha * len(trial.looks))


def _event(trial: Trial, witness: Any) -> str:
    """The witness event in tokens: {0, 2}, or the likeliest of its sequences."""
    cells = np.flatnonzero(witness)
    shape = trial.scenario.shape
    if len(shape) == 1:
        return "{" + ", ".join(str(int(c)) for c in cells) + "}"
    names = ["".join(str(int(x)) for x in np.unravel_index(c, shape)) for c in cells]
    shown = ", ".join(names[:6]) + (f", ... ({len(names)} sequences)" if len(names) > 6 else "")
    return "{" + shown + "}"


def _budget(run: Run) -> dict[str, Any]:
    r, shares = run.request, len(run.trials) + len(METAMORPHIC)
    looks = len(run.trials[0].looks)
    text = f"{r.false_alarm:g} over {len(run.trials)} tests and {len(METAMORPHIC)} comparisons, equal shares" + (
        f", each over {looks} looks" if looks > 1 else ""
    )
    return {
        "false_alarm": r.false_alarm,
        "miss": r.miss,
        "deviation": r.deviation,
        "shares": shares,
        "looks": looks,
        "text": text,
    }


def _notes(run: Run) -> list[str]:
    notes = list(run.notes)
    names = set().union(*(t.globals for t in run.tallies.values())) if run.tallies else set()
    notes += [
        n
        for name in sorted(names)
        if (n := f"draws from the global generator of {name}, which the audit forked and seeded") not in notes
    ]
    for c in run.comparisons:
        if c.differs:
            notes.append(
                f"the law depends on the order of ids: {c.first} and {c.second} differ by TV {c.tv:.4f} (limit {c.limit:.4f})"
            )
    return notes


def _sections(run: Run) -> list[Section]:
    out: list[Section] = [
        {
            "title": "How it was tested",
            "columns": ["what", "value"],
            "rows": _head(run),
            "notes": _notes(run),
            "prose": ["value"],
        }
    ]
    if run.broken is None:
        out += (
            [_tests_section(run), _faults_section(run)] if run.faults or _any_rejected(run) else [_tests_section(run)]
        )
    if run.edges:
        rows = [[e.name, e.status, e.detail] for e in run.edges]
        out.append(
            {
                "title": "Edge cases",
                "columns": ["input", "status", "what happened"],
                "rows": rows,
                "prose": ["what happened"],
            }
        )
    return [*out, _controls_section(run)]


def _any_rejected(run: Run) -> bool:
    return any(d.rejected for d in run.found.values())


def _head(run: Run) -> list[list[Any]]:
    budget, subject = _budget(run), run.subject
    rows: list[list[Any]] = [
        ["false alarms", budget["text"]],
        ["misses", f"{budget['miss']:g} in each test, of a deviation of {budget['deviation']:g} or more"],
        [
            "called with",
            f"{subject.arrays} arrays, {'a batch of blocks' if subject.batched else 'one block'} at a time",
        ],
    ]
    versions = run.subject.versions()
    if versions:
        rows.append(["packages", ", ".join(f"{k} {v}" for k, v in versions.items())])
    return rows


def _tests_section(run: Run) -> Section:
    rows = []
    for trial in run.trials:
        if trial.scenario.name not in run.found:
            continue
        t = _test(run, trial)
        interval = t["deviation"]
        rows.append(
            [
                t["name"],
                t["draws"],
                f"[{interval.lower:.4f}, {interval.upper:.4f}]",
                "REJECTED" if t["rejected"] else "ok",
                t["finds"],
            ]
        )
    return {
        "title": "Tests, TV from the target",
        "columns": ["test", "draws", "TV, two-sided", "outcome", "what it finds"],
        "prose": ["what it finds"],
        "rows": rows,
        "notes": [
            "all intervals hold at once with the audit's confidence; the sizes were fixed before the first call."
        ],
    }


def _faults_section(run: Run) -> Section:
    rows = [[f.fault, f"{f.behind:.2f}", f.tests, f.evidence] for f in run.faults]
    notes = ["exact laws of known faults that no test rejects; behind: log-likelihood lost against the best."]
    if not rows:
        notes = ["no known fault has a law that fits all tests: the deviation is of another kind."]
    return {
        "title": "Which fault",
        "columns": ["fault", "behind", "tests", "evidence"],
        "rows": rows,
        "notes": notes,
        "prose": ["evidence"],
    }


def _controls_section(run: Run) -> Section:
    rows = [
        [
            c.specimen,
            c.fault,
            c.draws,
            f"{c.tv:.4f}",
            f"[{c.interval.lower:.4f}, {c.interval.upper:.4f}]",
            "rejected" if c.rejected else "not rejected",
            "ok" if c.ok else "FAILED",
        ]
        for c in run.controls
    ]
    right, broken = sum(c.ok for c in run.controls), sum(c.broken for c in run.controls)
    total = len(run.controls)
    note = (
        f"{right} of {total} controls as expected: {broken} known to be broken, {total - broken} known to be lossless."
    )
    columns = ["id", "fault", "draws", "exact TV", "measured", "outcome", "control"]
    return {
        "title": "Controls: the audit on verifiers it knows",
        "columns": columns,
        "rows": rows,
        "notes": [note],
        "prose": ["fault"],
    }
