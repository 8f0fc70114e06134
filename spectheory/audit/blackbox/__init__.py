"""Audits of callables: a stranger's verifier is called, never read; the verdict is statistical, with both error rates stated."""

from .guard import KINDS, ContractBroken
from .interface import Subject, from_rule, load, subject
from .plan import Request, scenarios
from .run import audit, examine

__all__ = [
    "KINDS",
    "ContractBroken",
    "Request",
    "Subject",
    "audit",
    "examine",
    "from_rule",
    "load",
    "scenarios",
    "subject",
]
