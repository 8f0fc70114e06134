"""The assert that a verifier is lossless, as far as a designed test can tell."""

from __future__ import annotations

from typing import Any

from ..results import AuditReport


def assert_lossless(
    verifier: Any,
    *,
    detect: float = 0.05,
    false_alarm: float = 1e-6,
    miss: float = 1e-4,
    seed: int = 0,
    **settings: Any,
) -> AuditReport:
    """Audit `verify(draft_tokens, draft_probs, target_probs, rng) -> tokens` and return the report.

    Fails (AssertionError, with the witness event and the fault class that fits) unless the verdict is "lossless not
    rejected". A lossless callable fails with probability at most `false_alarm`, plus that of a failed control (under 2.2e-5, a
    function of `seed` alone); each test overlooks a TV of `detect` or
    more with probability at most `miss`. `settings`: batched, arrays, draft, eos_ids. Raises UsageError for rates
    outside (0, 1).
    """
    from ..audit import blackbox

    __tracebackhide__ = True
    request = blackbox.Request(detect, false_alarm, miss, seed=seed)
    report = blackbox.audit(blackbox.subject(verifier, **settings), request)
    if report.verdict != blackbox.NOT_REJECTED:
        raise AssertionError(blackbox.explain(report))
    return report
