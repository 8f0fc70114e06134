"""What every torch adapter needs: tensors from arrays, torch's randomness from ours, injected coins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from ...arrays import to_numpy
from ...errors import UsageError
from ...protocols import Coins

F = TypeVar("F", bound=Callable[..., Any])


def adapter(*packages: str, batched: bool = False) -> Callable[[F], F]:
    """Say of an adapter which packages' versions the report records, and whether it takes a batch of blocks."""

    def mark(function: F) -> F:
        vars(function).update(packages=packages, batched=batched)
        return function

    return mark


def package(name: str) -> Any:
    """A module of an optional package. Raises UsageError that names what to install."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError(f"this adapter needs the package {name.split('.')[0]}: {error}") from None


def log_probs(laws: Any) -> Any:
    """ln of laws, float32 as engines hold them, -inf at mass 0: logits whose softmax is the law."""
    return package("torch").as_tensor(np.asarray(laws, dtype=np.float64)).log().float()


def ids(tokens: Any) -> Any:
    return package("torch").as_tensor(np.asarray(tokens, dtype=np.int64))


def plain(tokens: Any) -> Any:
    return to_numpy(tokens)


@contextmanager
def randomness(rng: Any) -> Iterator[Any]:
    """A torch.Generator seeded from `rng`; the global generator is forked and seeded alike, for code that takes none.

    With Coins, torch.rand and torch.rand_like return the acceptance coins instead, rounded to float32 towards 0.
    """
    torch = package("torch")
    if not isinstance(rng, Coins):
        seed = int(rng.integers(2**62))
        with _global_generator(seed):
            yield torch.Generator().manual_seed(seed)
        return
    coins = np.asarray(rng.accept, dtype=np.float64)
    below_one = np.minimum(coins.astype(np.float32), np.float32(1 - 2.0**-24))
    before = torch.rand, torch.rand_like
    left = list(below_one.ravel())

    def rand(*size: Any, **kwargs: Any) -> Any:
        shape = size[0] if size and not isinstance(size[0], int) else size
        count = int(np.prod(tuple(shape)))
        taken = [left.pop(0) for _ in range(count)]
        return torch.as_tensor(np.array(taken, dtype=np.float32).reshape(tuple(shape)))

    torch.rand, torch.rand_like = rand, lambda like, **kwargs: rand(tuple(like.shape))
    try:
        with _global_generator(0):
            yield torch.Generator().manual_seed(0)
    finally:
        torch.rand, torch.rand_like = before


@contextmanager
def _global_generator(seed: int) -> Iterator[None]:
    """Seed the CPU's global generator, then put it back (torch.manual_seed would visit every device, slowly)."""
    generator = package("torch").default_generator
    before = generator.get_state()
    generator.manual_seed(seed)
    try:
        yield
    finally:
        generator.set_state(before)
