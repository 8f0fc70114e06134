"""The register of claims: `@theorem` puts a closed form beside its statement, source and hypotheses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

Relation = Literal["=", "<=", ">="]
Status = Literal["proved", "exact", "statistical", "false", "report"]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Theorem:
    """One claim. `relation` reads: second route RELATION closed form (`<=`: the closed form is an upper bound).

    `statement` is TeX. `status` is what is known of the claim: `proved`, `exact` (an identity checked in rational
    arithmetic), `statistical`, `false` (then `counterexample` and `replacement` say how and what holds instead) or
    `report` (a figure that is reported, not claimed).
    """

    id: str
    source: str
    statement: str
    relation: Relation
    hypotheses: str
    status: Status
    closed_form: Callable[..., Any]
    counterexample: str = ""
    replacement: str = ""

    def __post_init__(self) -> None:
        if self.status == "false" and not (self.counterexample and self.replacement):
            raise ValueError(f"{self.id} is false: it needs a counterexample and a replacement")

    @property
    def family(self) -> str:
        """The letters that the id starts with: S, N, L, V, Q, A, E."""
        return self.id.rstrip("0123456789").split(".")[0].rstrip("0123456789")


_THEOREMS: dict[str, Theorem] = {}


def theorem(
    id: str,
    *,
    source: str,
    statement: str,
    relation: Relation,
    hypotheses: str,
    status: Status,
    counterexample: str = "",
    replacement: str = "",
) -> Callable[[F], F]:
    """Register the decorated function as the closed form of claim `id` (say N1, or N6.kl for a part). Raises ValueError for an id taken."""

    def register(closed_form: F) -> F:
        if id in _THEOREMS:
            raise ValueError(f"theorem {id} is registered twice")
        _THEOREMS[id] = Theorem(
            id, source, statement, relation, hypotheses, status, closed_form, counterexample, replacement
        )
        return closed_form

    return register


def theorems(family: str = "") -> dict[str, Theorem]:
    """All registered claims, or those of one family (S, N, L, V, Q, A, E), in the order of registration."""
    return {k: t for k, t in _THEOREMS.items() if family in ("", t.family)}
