"""Every figure that the package can draw, from audits of the embedded sample: what `spectheory figures` runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .. import verifiers
from ..protocols import supports
from ..results import AuditReport
from . import compare, run, sequence

HORIZON = 64


def gallery(names: tuple[str, ...] = ()) -> Iterator[tuple[str, AuditReport]]:
    """(name, report) of each audit with figures, or of those named; the figures are saved from the reports.

    nsd: rows, sweep and sequence bounds; compare: all token rules on one plane; asd; ersd; blackbox: how often the
    black-box audit rejects each known verifier.
    """
    for name in names or MAKERS:
        yield name, MAKERS[name]()


def _nsd() -> AuditReport:
    rule = verifiers.get("nsd", top_p=0.9)
    return sequence.add(run(rule), rule, horizon=HORIZON)


def _compare() -> AuditReport:
    rules = [verifiers.example(name) for name in verifiers.names()]
    return compare([rule for rule in rules if {"acceptance", "residual"} <= supports(rule)])


def _blackbox() -> AuditReport:
    """The operating characteristic of the black-box audit: no audit of one rule, but a figure like the others."""
    from .blackbox.characteristic import operating_characteristic

    wanted = {"module": "blackbox", "function": "operating_characteristic", "name": "operating_characteristic"}
    figures = [wanted | {"data": operating_characteristic()}]
    return AuditReport(verifier={}, source={}, claim="", verdict="", summary={}, extra={"figures": figures})


MAKERS: dict[str, Callable[[], AuditReport]] = {
    "nsd": _nsd,
    "compare": _compare,
    "asd": lambda: run(verifiers.example("asd")),
    "ersd": lambda: run(verifiers.example("ersd")),
    "blackbox": _blackbox,
}
