"""What comes out: intervals that know their kind, check results and audit reports, all frozen and JSON-able."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from html import escape
from typing import Any, Literal

SCHEMA_VERSION = 1
Kind = Literal["exact", "certified", "statistical"]


def encode_float(x: float | None) -> float | str | None:
    """JSON has no infinities: they travel as the strings "inf" and "-inf"; NaN is never written."""
    if x is None or math.isfinite(x):
        return x
    if math.isnan(x):
        raise ValueError("a result must not be NaN")
    return "inf" if x > 0 else "-inf"


def decode_float(x: float | str | None) -> float | None:
    return None if x is None else float(x)


@dataclass(frozen=True)
class Interval:
    """A number with its uncertainty.

    `kind` says what the interval promises: `exact` (up to float rounding, lower = upper), `certified` (a theorem or
    a rounding direction; `alpha` is None) or `statistical` (covers with probability at least 1 - `alpha`).
    `source` names the theorem or method.
    """

    lower: float
    estimate: float | None
    upper: float
    kind: Kind
    alpha: float | None = None
    source: str = ""

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise ValueError(f"interval [{self.lower}, {self.upper}] is empty")
        if (self.kind == "statistical") != (self.alpha is not None):
            raise ValueError("alpha goes with statistical intervals, and only with them")

    @classmethod
    def exact(cls, value: float, source: str = "") -> Interval:
        return cls(float(value), float(value), float(value), "exact", None, source)

    @classmethod
    def upper_bound(cls, value: float, source: str = "", lower: float = 0.0) -> Interval:
        return cls(lower, None, float(value), "certified", None, source)

    @property
    def width(self) -> float:
        return self.upper - self.lower

    def __contains__(self, x: float) -> bool:
        return self.lower <= x <= self.upper

    def __str__(self) -> str:
        if self.kind == "exact":
            return f"{self.upper:.6g}"
        middle = "" if self.estimate is None else f"{self.estimate:.6g} in "
        promise = f"certified, {self.source}" if self.kind == "certified" else f"{1 - (self.alpha or 0):.6g} confidence"
        return f"{middle}[{self.lower:.6g}, {self.upper:.6g}] ({promise.rstrip(', ')})"

    def to_json(self) -> dict[str, Any]:
        return {k: encode_float(v) if isinstance(v, float) else v for k, v in asdict(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Interval:
        floats = {k: decode_float(data[k]) for k in ("lower", "estimate", "upper", "alpha")}
        return cls(**floats, kind=data["kind"], source=data["source"])  # type: ignore[arg-type]


@dataclass(frozen=True)
class CheckResult:
    """The outcome of checking one claim of the ledger: what was tried, what was found, how to see it again.

    `examples` instances were searched; `golden`, `families` and `recorded` count the fixed ones. `worst` and
    `worst_fixed` are the largest gaps met (<= 0 where the relation holds with room). `witness` is the instance that
    violates a claim, `error` the exception that a check died of.
    """

    claim: str
    ok: bool
    examples: int
    worst: float
    witness: str = ""
    seed: int = 0
    status: str = ""
    error: str = ""
    golden: int = 0
    families: int = 0
    recorded: int = 0
    worst_fixed: float = -math.inf
    schema_version: int = SCHEMA_VERSION

    def to_json(self) -> dict[str, Any]:
        return {k: encode_float(v) if isinstance(v, float) else v for k, v in asdict(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CheckResult:
        return cls(**{**data, **{k: decode_float(data[k]) for k in ("worst", "worst_fixed") if k in data}})


def _plain(x: Any) -> Any:
    """Nested results to plain JSON data."""
    if isinstance(x, Interval | CheckResult):
        return x.to_json()
    if isinstance(x, Mapping):
        return {str(k): _plain(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return [_plain(v) for v in x]
    if hasattr(x, "tolist"):  # NumPy scalars and arrays
        return _plain(x.tolist())
    return encode_float(x) if isinstance(x, float) else x


_INTERVAL_KEYS = frozenset(Interval.__dataclass_fields__)


def _revive(x: Any) -> Any:
    """Plain JSON data back to nested results: a mapping with exactly an interval's keys is an interval."""
    if isinstance(x, Mapping):
        return Interval.from_json(x) if set(x) == _INTERVAL_KEYS else {k: _revive(v) for k, v in x.items()}
    return [_revive(v) for v in x] if isinstance(x, list) else x


@dataclass(frozen=True, repr=False)
class AuditReport:
    """The answer of an audit. `rows` holds the per-row arrays (saved as `rows.npz`, never in the JSON)."""

    verifier: Mapping[str, Any]
    source: Mapping[str, Any]
    claim: str
    verdict: str
    summary: Mapping[str, Any]
    sweep: list[Any] = field(default_factory=list)
    worst_rows: list[Any] = field(default_factory=list)
    errors: list[Any] = field(default_factory=list)
    extra: Mapping[str, Any] = field(default_factory=dict)
    rows: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    schema_version: int = SCHEMA_VERSION
    spectheory_version: str = ""

    def to_json(self) -> dict[str, Any]:
        from ._version import __version__

        whole = replace(self, spectheory_version=self.spectheory_version or __version__, rows={})
        return {k: _plain(getattr(whole, k)) for k in self.__dataclass_fields__ if k != "rows"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> AuditReport:
        if data.get("schema_version") != SCHEMA_VERSION:
            raise ValueError(f"report schema {data.get('schema_version')} is not {SCHEMA_VERSION}")
        return cls(**{k: _revive(v) for k, v in data.items()})

    def dumps(self) -> str:
        return json.dumps(self.to_json(), indent=1, allow_nan=False)

    def means(self) -> list[tuple[str, str]]:
        """(name, value) of the means over the rows: what a glance at the report wants."""
        means = {k: v["on_data"] for k, v in self.summary.items() if isinstance(v, Mapping) and v.get("on_data")}
        return [(name.replace("_", " "), str(value)) for name, value in means.items()]

    def __repr__(self) -> str:
        title = f"Audit of {self.verifier.get('title', 'several rules')} on {self.source.get('name', 'rows')}: {self.verdict}"
        errors = [f"  {len(self.errors)} bad rows set aside"] if self.errors else []
        return "\n".join([title, *(f"  {name:<22} {value}" for name, value in self.means()), *errors])

    def _repr_html_(self) -> str:
        title, *_ = repr(self).splitlines()
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in self.means())
        return f"<p>{escape(title)}</p><table>{rows}</table>"
