"""Every figure that the package can draw, from audits of the embedded sample: what `spectheory figures` runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .. import verifiers
from ..protocols import supports
from ..results import AuditReport
from . import compare, run, sequence

HORIZON = 64


def gallery(names: tuple[str, ...] = ()) -> Iterator[tuple[str, AuditReport]]:
    """(name, report) of each audit with figures, or of those named; the figures are saved from the reports.

    nsd: rows, sweep and sequence bounds; compare: all token rules on one plane; asd; ersd; blackbox: how often the
    black-box audit rejects each known verifier; misreadings: where readings of the race theory fail.
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
    from .blackbox.characteristic import operating_characteristic

    return _alone("blackbox", "operating_characteristic", operating_characteristic())


def _misreadings() -> AuditReport:
    from .misreadings import misreadings

    return _alone("ersd", "gallery", misreadings())


def _alone(module: str, function: str, data: Any) -> AuditReport:
    """A report that is nothing but one figure: no audit of a rule stands behind it."""
    figures = [{"module": module, "function": function, "name": function, "data": data}]
    return AuditReport(verifier={}, source={}, claim="", verdict="", summary={}, extra={"figures": figures})


MAKERS: dict[str, Callable[[], AuditReport]] = {
    "nsd": _nsd,
    "compare": _compare,
    "asd": lambda: run(verifiers.example("asd")),
    "ersd": lambda: run(verifiers.example("ersd")),
    "blackbox": _blackbox,
    "misreadings": _misreadings,
}
