"""The pytest plugin: `pytest --spectheory-verifier pkg.module:callable` audits a verifier, one test a part of the audit.

The fixture `assert_lossless` is `spectheory.testing.assert_lossless`, for verifiers that a test builds itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ..errors import UsageError
from ..results import AuditReport

_REPORTS = pytest.StashKey[dict[str, AuditReport]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("spectheory", "audit of a speculative-decoding verifier")
    group.addoption(
        "--spectheory-verifier",
        action="append",
        default=[],
        metavar="PKG.MODULE:CALLABLE",
        help="audit verify(draft_tokens, draft_probs, target_probs, rng) -> tokens; may be repeated",
    )
    rates = {
        "detect": (0.05, "the smallest TV worth detecting"),
        "false-alarm": (1e-6, "error rate of one whole audit"),
        "miss": (1e-4, "chance to overlook that TV in one test"),
    }
    for name, (default, text) in rates.items():
        group.addoption(f"--spectheory-{name}", type=float, default=default, help=f"{text} (default {default:g})")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_REPORTS] = {}


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the parts of each audit behind the tests that were collected."""
    from ..audit import blackbox

    for spec in config.getoption("--spectheory-verifier"):
        try:
            subject = blackbox.load(spec)
            request = _request(config)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None
        names = [s.name for s in blackbox.scenarios(drafts=subject.draft is not None)]
        for part in ("contract", "edges", *names, "controls"):
            items.append(AuditItem.from_parent(session, name=f"{spec}[{part}]", spec=spec, part=part, request=request))


@pytest.fixture(scope="session")
def assert_lossless() -> Callable[..., AuditReport]:
    """`assert_lossless(verify, detect=0.05)`: see `spectheory.testing.assert_lossless`."""
    from .lossless import assert_lossless as check

    return check


class AuditFailure(Exception):
    """Carries the message of a failed part; no traceback is shown, since none of the code is the user's."""


class AuditItem(pytest.Item):
    """One part of one audit. The audit itself runs once, when the first of its parts does."""

    def __init__(self, *, spec: str, part: str, request: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.spec, self.part, self.request = spec, part, request

    def runtest(self) -> None:
        from ..audit import blackbox

        reports = self.config.stash[_REPORTS]
        if self.spec not in reports:
            reports[self.spec] = blackbox.audit(blackbox.load(self.spec), self.request)
        report = reports[self.spec]
        found = blackbox.failures(report)
        if self.part in found:
            raise AuditFailure(f"{self.spec}, {self.part}: {found[self.part]}")
        if report.summary["broken"] and self.part not in ("contract", "controls"):
            pytest.skip(f"not run: {report.verdict}")

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        if isinstance(excinfo.value, AuditFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        return self.path, None, self.name


def _request(config: pytest.Config) -> Any:
    from ..audit import blackbox

    rates = [config.getoption(f"--spectheory-{name}") for name in ("detect", "false-alarm", "miss")]
    return blackbox.Request(*rates)
