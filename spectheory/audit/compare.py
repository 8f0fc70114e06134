"""Several rules on the same rows: one plane, one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..results import AuditReport
from .plan import plan
from .run import Progress, audit_token_rules
from .source import open_source
from .verdict import NONE

FIGURES = ("acceptance", "deviation", "gap", "tokens_per_call")


def compare(
    verifiers: Sequence[Any],
    source: Any = None,
    *,
    request: Mapping[str, Any] | None = None,
    block: int | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Audit token rules over one pass of `source`. `summary["rules"]` has one entry a rule, `sweep` one curve a rule.

    Arguments as `run`. Raises UsageError for fewer than one rule or rules that are not token rules.
    """
    if not verifiers:
        raise UsageError("compare needs at least one rule")
    plans = [plan(v, request, block) for v in verifiers]
    opened = open_source(source, plans[0].request)
    reports = audit_token_rules(plans, opened, out=None if out is None else Path(out), progress=progress)
    first = reports[0]
    return AuditReport(
        verifier={"compare": [r.verifier for r in reports]},
        source=first.source,
        claim="",
        verdict=NONE,
        summary={
            **{k: first.summary.get(k) for k in ("rows", "blocks", "requests", "method", "tv", "lossless")},
            "rules": [_entry(r) for r in reports],
        },
        sweep=[{"rule": r.verifier["title"], "points": r.sweep} for r in reports if r.sweep],
        errors=_distinct(reports),
        extra={"rule_errors": {r.verifier["title"]: len(r.errors) for r in reports if r.errors}},
        spectheory_version=first.spectheory_version,
    )


def _entry(report: AuditReport) -> dict[str, Any]:
    kept = {k: report.summary[k] for k in FIGURES if k in report.summary}
    return {"rule": report.verifier["title"], "verifier": report.verifier, "rows": report.summary["rows"], **kept}


def _distinct(reports: Sequence[AuditReport]) -> list[Any]:
    """Errors of the source are met by every rule: each is listed once."""
    out: list[Any] = []
    for error in (e for r in reports for e in r.errors):
        if error not in out:
            out.append(error)
    return out
