"""A stranger's verifier as a subject of an audit: what is called, with which arrays, one block or a batch at a time.

`verify(draft_tokens, draft_probs, target_probs, rng) -> tokens` or `(tokens, accepted)`: shapes (K,), (K, V), (K+1, V) ->
(accepted + 1,); with `batched`, each with a leading axis B, and tokens (B, K+1) padded with -1. A callable says more about
itself by attributes, all optional: `batched` (bool), `arrays` ("numpy" or "torch"), `draft` (a callable
`draft(probs (V,) or (B, V), rng) -> ids` that draws its own drafts), `eos_ids`, `packages` (names whose versions the
report records), `claim` (what its authors say of it).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import UsageError
from ...protocols import Block, Coins
from ...verifiers.token import TokenRule, inverse_cdf

ARRAYS = ("numpy", "torch")


@dataclass(frozen=True)
class Subject:
    """`call` and how to call it; `make` gives a fresh one where the callable keeps state between draft and verify."""

    name: str
    call: Callable[..., Any]
    batched: bool = False
    arrays: str = "numpy"
    draft: Callable[..., Any] | None = None
    eos_ids: tuple[int, ...] = ()
    packages: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list, compare=False)

    def versions(self) -> dict[str, str]:
        """Installed versions of the packages that the callable names. Raises UsageError for one that is not installed."""
        try:
            return {name: metadata.version(name) for name in self.packages}
        except metadata.PackageNotFoundError as error:
            raise UsageError(f"{self.name} needs the package {error.name}: install it first") from None

    def array(self, x: Any) -> Any:
        """`x` as the callable wants it: NumPy as it is; torch tensors, probabilities in torch's default dtype."""
        if self.arrays == "numpy":
            return x
        torch = import_module("torch")
        made = torch.as_tensor(x)
        return made.to(torch.get_default_dtype()) if made.is_floating_point() else made

    def generator(self, rng: Any) -> Any:
        """The random source handed over: NumPy's Generator or Coins as they are, for torch a seeded torch.Generator."""
        if self.arrays == "numpy" or isinstance(rng, Coins):
            return rng
        return import_module("torch").Generator().manual_seed(int(rng.integers(2**62)))


def subject(target: Any, name: str = "", **settings: Any) -> Subject:
    """Wrap a callable. `settings` (batched, arrays, draft, eos_ids, packages) override its own attributes.

    Raises UsageError for something that cannot be called or an unknown kind of arrays.
    """
    if isinstance(target, Subject):
        return replace(target, **settings) if settings else target
    if not callable(target):
        raise UsageError(
            f"{name or target!r} is not callable: a verifier is verify(draft_tokens, draft_probs, target_probs, rng)"
        )
    own = {k: getattr(target, k) for k in ("batched", "arrays", "draft", "eos_ids", "packages") if hasattr(target, k)}
    chosen = {**own, **{k: v for k, v in settings.items() if v is not None}}
    if chosen.get("arrays", "numpy") not in ARRAYS:
        raise UsageError(f"arrays must be one of {', '.join(ARRAYS)}, not {chosen['arrays']!r}")
    for key in ("eos_ids", "packages"):
        chosen[key] = tuple(chosen.get(key, ()))
    return Subject(name or _name_of(target), target, **chosen)


def load(spec: str, **settings: Any) -> Subject:
    """The callable `pkg.module:callable`, the working directory importable. Raises UsageError if there is none."""
    module, _, path = spec.partition(":")
    if not path:
        raise UsageError(f"name a callable as pkg.module:callable, not {spec!r}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        target: Any = import_module(module)
        for part in path.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"cannot load {spec!r}: {error}") from None
    return subject(target() if isinstance(target, type) else target, spec, **settings)


def from_rule(rule: Any, name: str = "") -> Subject:
    """One of our own rules as a stranger's callable, its own drafts included: what the controls are made of."""
    start = getattr(rule, "start", None)

    def verify(tokens: Any, q: Any, p: Any, rng: Any) -> tuple[Any, int]:
        verdict = rule.verify(Block(tokens, p, q), start() if start else None, rng)
        return verdict.tokens, verdict.accepted

    def draft(q: Any, rng: np.random.Generator) -> int:
        return inverse_cdf(rule.drafted(q, q), rng.random())

    own = getattr(type(rule), "drafted", TokenRule.drafted) is not TokenRule.drafted
    return Subject(name or type(rule).__name__, verify, draft=draft if own else None)


@contextmanager
def forked_generators(seed: int) -> Iterator[list[str]]:
    """Seed the global generators of random, NumPy and torch (if loaded), and put them back afterwards.

    Yields a list that names, on leaving, those that were drawn from: a callable that ignores `rng` is noted, not blamed.
    """
    torch: Any = sys.modules.get("torch")
    before = _states(torch)
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - the legacy global generator is what strangers use
    if torch is not None:
        torch.default_generator.manual_seed(seed)
    seeded = _states(torch)
    used: list[str] = []
    try:
        yield used
    finally:
        used += [name for name, now in _states(torch).items() if not _same(now, seeded[name])]
        random.setstate(before["random"])
        np.random.set_state(before["numpy.random"])  # noqa: NPY002
        if torch is not None:
            torch.set_rng_state(before["torch"])


def _states(torch: Any) -> dict[str, Any]:
    found = {"random": random.getstate(), "numpy.random": np.random.get_state()}  # noqa: NPY002
    return found if torch is None else {**found, "torch": torch.get_rng_state()}


def _same(a: Any, b: Any) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b)) if isinstance(a, tuple) else bool((a == b).all())


def _name_of(target: Any) -> str:
    named = target if hasattr(target, "__qualname__") else type(target)
    return f"{named.__module__}:{named.__qualname__}"
