"""A search for counterexamples: state a claim as a function, let Hypothesis try to break it, get the smallest break back."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


def counterexample(
    instances: SearchStrategy[T], claim: Callable[[T], Any], *, examples: int = 1000, seed: int = 0
) -> T | None:
    """The smallest instance found on which `claim` is false, or None if `examples` instances all satisfy it.

    None is no proof. The search depends on `seed` alone, so the same call finds the same instance. An exception in
    `claim` comes out as it is; hypothesis.errors.Unsatisfiable if `instances` filters everything away.
    """
    config = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )

    def violated(instance: Any) -> bool:
        return not claim(instance)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # claims meet 0/0 and inf - inf on purpose
            return find(instances, violated, settings=config, random=random.Random(seed))
    except NoSuchExample:
        return None
