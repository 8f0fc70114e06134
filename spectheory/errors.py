"""The errors that spectheory raises on purpose. Anything else is a defect of ours."""

from __future__ import annotations


class SpecTheoryError(Exception):
    """Base class. `exit_code` is what the command line returns for it."""

    exit_code = 1


class DataError(SpecTheoryError, ValueError):
    """The data are not what they claim to be: names the file or row and the cause."""

    exit_code = 4


class UsageError(SpecTheoryError, ValueError):
    """The request makes no sense: an unknown rule, a parameter out of range."""

    exit_code = 2


class CostError(SpecTheoryError):
    """The exact computation would exceed a stated cap: names the cap and the cost."""

    exit_code = 2


class PrecisionError(SpecTheoryError):
    """The requested error is below the numerical floor of the method: names the floor."""

    exit_code = 2
