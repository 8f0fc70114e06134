"""What an audit is about to do: the rule, the request's settings, the figures that depend on the rule's parameter."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

from .._version import __version__
from ..errors import UsageError
from ..pmf.nucleus import check_top_p
from ..protocols import supports
from ..verifiers import RULES, get

# The nucleus reported for rules that have none of their own: the setting that most engines recommend.
REFERENCE_TOP_P = 0.9
REQUEST_SETTINGS = ("temperature", "top_k", "top_p", "min_p")


@dataclass(frozen=True)
class Plan:
    """One rule on one source: `verifier`, its `label` and `settings`, the `request`'s settings, block size, sweep.

    `sweep` is (parameter, values) or None; `top_p` the nucleus that sizes are reported for.
    """

    verifier: Any
    label: str
    settings: Mapping[str, Any]
    request: Mapping[str, Any] = field(default_factory=dict)
    block: int | None = None
    sweep: tuple[str, tuple[float, ...]] | None = None
    top_p: float = REFERENCE_TOP_P

    def variants(self) -> list[Any]:
        """The rule at each value of its sweep."""
        if self.sweep is None:
            return []
        name, values = self.sweep
        return [_with(self.verifier, self.settings, name, value) for value in values]

    def spec(self) -> dict[str, Any]:
        """What the report says of the rule."""
        title = title_of(self.verifier, self.label, self.settings)
        return {
            "title": title,
            "rule": self.label,
            "settings": dict(self.settings),
            "class": _class_name(self.verifier),
        }

    def fingerprint(self, source: Any) -> str:
        """Changes whenever cached rows would: rule, settings, its code's file, request, sweep, source."""
        what = [
            __version__,
            self.spec(),
            dict(self.request),
            self.sweep,
            self.top_p,
            _code_digest(type(self.verifier)),
            source,
        ]
        return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:16]


def plan(verifier: Any, request: Mapping[str, Any] | None = None, block: int | None = None, sweep: bool = True) -> Plan:
    """Check what was asked for. Raises UsageError for a rule that is not a token rule or settings out of range."""
    if "acceptance" not in supports(verifier) or "residual" not in supports(verifier):
        raise UsageError(
            f"{_class_name(verifier)} has no acceptance(p, q) and residual(p, q): not a token rule, and no "
            "outcomes(block, state); a callable is audited with --black-box"
        )
    request = {k: v for k, v in (request or {}).items() if v is not None}
    unknown = set(request) - set(REQUEST_SETTINGS)
    if unknown:
        raise UsageError(f"unknown request setting {sorted(unknown)[0]!r}: choose from {', '.join(REQUEST_SETTINGS)}")
    if block is not None and block < 1:
        raise UsageError(f"--block must be at least 1, not {block}")
    top_p = getattr(verifier, "top_p", REFERENCE_TOP_P)
    swept = getattr(type(verifier), "SWEEP", None) if sweep else None
    return Plan(
        verifier, label_of(verifier), settings_of(verifier), request, block, swept, float(check_top_p(float(top_p)))
    )


def load_rule(name: str, settings: Mapping[str, Any]) -> Any:
    """The rule called `name`: a registered name, or `pkg.module:Class` with the working directory importable.

    Raises UsageError for an unknown name, module, class or setting.
    """
    if ":" not in name:
        return get(name, **settings)
    module, _, attribute = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        cls = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"cannot load rule {name!r}: {error}") from None
    try:
        return cls(**settings) if isinstance(cls, type) or settings else cls
    except TypeError as error:
        raise UsageError(f"rule {name}: {error}") from None


def settings_of(verifier: Any) -> dict[str, Any]:
    """The settings a rule was made with, as plain numbers and text: dataclass fields, else its public attributes."""
    if dataclasses.is_dataclass(verifier):
        pairs = [(f.name, getattr(verifier, f.name)) for f in dataclasses.fields(verifier) if f.init]
    else:
        pairs = (
            [(k, v) for k, v in vars(verifier).items() if not k.startswith("_")]
            if hasattr(verifier, "__dict__")
            else []
        )
    return {k: _plain_setting(v) for k, v in pairs}


def label_of(verifier: Any) -> str:
    """The registered name of the rule's class, else its class name."""
    cls = type(verifier)
    for name, (module, registered, _) in RULES.items():
        if cls.__name__ == registered and cls.__module__ == f"spectheory.verifiers.{module}":
            return name
    return cls.__name__


def title_of(verifier: Any, label: str, settings: Mapping[str, Any]) -> str:
    """`nsd(top_p=0.9)`: how a report calls a rule. Settings at their default go without saying."""
    fields = dataclasses.fields(verifier) if dataclasses.is_dataclass(verifier) else ()
    defaults = {f.name: f.default for f in fields}
    inside = ", ".join(f"{k}={v}" for k, v in settings.items() if defaults.get(k, dataclasses.MISSING) != v)
    return f"{label}({inside})" if inside else label


def _plain_setting(value: Any) -> Any:
    if isinstance(value, Fraction):
        return float(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return value if isinstance(value, int | float | str | bool | list | tuple | type(None)) else str(value)


def _class_name(verifier: Any) -> str:
    return f"{type(verifier).__module__}:{type(verifier).__qualname__}"


def _code_digest(cls: type[Any]) -> str:
    """Digest of the file that defines the class, so that an edited rule is never answered from an old cache."""
    try:
        return hashlib.sha256(Path(inspect.getfile(cls)).read_bytes()).hexdigest()[:16]
    except (OSError, TypeError):  # defined in a notebook or at a prompt: its source text is not at hand
        return ""


def _with(verifier: Any, settings: Mapping[str, Any], name: str, value: float) -> Any:
    if dataclasses.is_dataclass(verifier) and not isinstance(verifier, type):
        return dataclasses.replace(verifier, **{name: value})
    return type(verifier)(**{**settings, name: value})
