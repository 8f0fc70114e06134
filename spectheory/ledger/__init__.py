"""Runs every registered theorem against an independent second route, and its mutation to show that the check can fail."""

from .checks import CHECKS, Check, check, load
from .run import run, run_one

__all__ = ["CHECKS", "Check", "check", "load", "run", "run_one"]
