"""Does the stated claim hold? The claim is about the rows audited, where the mean deviation is exact."""

from __future__ import annotations

from ..errors import UsageError
from ..results import AuditReport, Interval

# Float64 sums over a vocabulary leave up to about 1e-12; a deviation below this is not one.
ROUNDING = 1e-9
HOLDS, REFUTED, UNDECIDED, NONE = "holds", "refuted", "undecided", "no claim"
# A black-box audit cannot confirm, only fail to reject; a callable that broke the contract gets no number at all.
NOT_REJECTED, REJECTED, INCONCLUSIVE, BROKEN = "lossless not rejected", "rejected", "inconclusive", "broken contract"
EXIT_CODES = {HOLDS: 0, NONE: 0, REFUTED: 1, UNDECIDED: 3, NOT_REJECTED: 0, REJECTED: 1, INCONCLUSIVE: 3}


def decide(deviation: Interval, max_deviation: float | None) -> tuple[str, str]:
    """(claim, verdict) for the claim that the mean one-step deviation is at most `max_deviation`; None states no claim.

    An interval that straddles the limit leaves the claim undecided. Raises UsageError for a limit outside [0, 1].
    """
    if max_deviation is None:
        return "", NONE
    if not 0 <= max_deviation <= 1:
        raise UsageError(f"--max-deviation must lie in [0, 1], not {max_deviation}")
    what = (
        "lossless: mean one-step deviation is 0"
        if max_deviation == 0
        else f"mean one-step deviation <= {max_deviation:g}"
    )
    claim = f"{what} on the rows audited"
    if deviation.upper <= max_deviation + ROUNDING:
        return claim, HOLDS
    return claim, REFUTED if deviation.lower > max_deviation + ROUNDING else UNDECIDED


def exit_code(report: AuditReport) -> int:
    """What the command line returns: a refuted claim (1) comes before bad data (4), bad data before undecided (3)."""
    if report.verdict == REFUTED:
        return 1
    return 4 if report.errors or report.verdict.startswith(BROKEN) else EXIT_CODES.get(report.verdict, 0)
