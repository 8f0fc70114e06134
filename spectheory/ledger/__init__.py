"""Runs every registered theorem against an independent second route, and its mutation to show that the check can fail."""

from .checks import CHECKS, Check, check, load
from .run import chosen, run, run_one

__all__ = ["CHECKS", "Check", "check", "chosen", "load", "run", "run_one"]
