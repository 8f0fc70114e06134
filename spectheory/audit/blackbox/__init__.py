"""Audits of callables: a stranger's verifier is called, never read; the verdict is statistical, with both error rates stated."""

from ..verdict import NOT_REJECTED
from .explain import explain, failures
from .guard import KINDS, ContractBroken
from .interface import Subject, from_rule, load, subject
from .plan import Request, scenarios
from .run import audit, examine

__all__ = [
    "KINDS",
    "NOT_REJECTED",
    "ContractBroken",
    "Request",
    "Subject",
    "audit",
    "examine",
    "explain",
    "failures",
    "from_rule",
    "load",
    "scenarios",
    "subject",
]
