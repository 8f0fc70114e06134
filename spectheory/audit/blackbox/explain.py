"""A report in the words of a failure message: which test, by how much, the event that shows it, the fault it fits."""

from __future__ import annotations

from typing import Any

from ...results import AuditReport


def failures(report: AuditReport) -> dict[str, str]:
    """Part of the audit -> why it failed; empty if nothing did. Parts: "contract", "edges", "controls", each test's name."""
    summary, out = report.summary, {}
    if summary["broken"]:
        out["contract"] = f"{report.verdict}\n  {summary['statement']}"
    bad = [c["specimen"] for c in report.extra["controls"] if not c["ok"]]
    if bad:
        out["controls"] = f"the audit failed its own controls: {', '.join(bad)}"
    impossible = [f"  {e['name']}: {e['detail']}" for e in report.extra["edges"] if e["status"] == "fault"]
    if impossible:
        out["edges"] = "\n".join(["a legal input was not served as the target asks", *impossible])
    named = "\n".join(fault_class(report))
    for test in summary["tests"]:
        if test["rejected"]:
            out[test["name"]] = f"{_deviation(test, summary)}\n{named}"
        elif test["draws"] < test["designed"] and report.verdict == "inconclusive":
            out[test["name"]] = f"inconclusive: {test['draws']} of {test['designed']} draws"
    return out


def explain(report: AuditReport) -> str:
    """The whole report as one message: the verdict, the fault class, then each failure."""
    lines = [f"{report.verifier['name']}: {report.verdict} ({report.summary['statement']})"]
    rejected = {t["name"]: t for t in report.summary["tests"] if t["rejected"]}
    lines += fault_class(report) if rejected else []
    for part, text in failures(report).items():
        lines.append(f"{part}: {_deviation(rejected[part], report.summary) if part in rejected else text}")
    return "\n".join(lines)


def fault_class(report: AuditReport) -> list[str]:
    """Lines that name the faults whose exact laws fit, each with its evidence."""
    lines = [x for f in report.summary["faults"] for x in (f"  fault class: {f['fault']}", f"    {f['evidence']}")]
    return lines or ["  fault class: none of the known ones has a law that fits"]


def _deviation(test: dict[str, Any], summary: Any) -> str:
    interval, witness = test["deviation"], test["witness"]
    rate = f"false alarm {summary['error_budget']['false_alarm']:g} for the whole audit"
    return (
        f"not lossless: TV in [{interval.lower:.4f}, {interval.upper:.4f}] after {test['draws']} draws ({rate})\n"
        f"  witness: {witness['event']} has probability {witness['target']:.4f} under the target, "
        f"was seen with {witness['seen']:.4f}"
    )
