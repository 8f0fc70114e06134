"""Inputs at the edge: temperature 0, masked and padded rows, injected coins, bad inputs. Deterministic, so no error rate.

Status: "ok"; "fault" (a token that the target cannot emit was committed, or a legal input made it fail); "finding" (wrong,
but only at a coin of probability near 0 or on an input that is itself wrong); "note" (a convention); "-" (not applicable).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...protocols import Coins
from .calls import call
from .guard import ContractBroken
from .interface import Subject, forked_generators
from .scenario import inverse_cdf

RUNS = 64


@dataclass(frozen=True)
class Edge:
    name: str
    status: str
    detail: str


Rows = list[tuple[float, ...]]

# name -> (target rows (K+1, V), draft rows (K, V)); every row is a law, so a verifier must cope with it.
LEGAL: dict[str, tuple[Rows, Rows]] = {
    "temperature 0": ([(0, 0, 1, 0), (1, 0, 0, 0), (0, 0, 0, 1)], [(0.1, 0.2, 0.6, 0.1), (0.7, 0.1, 0.1, 0.1)]),
    "temperature 0 on both sides": ([(0, 0, 1, 0), (1, 0, 0, 0), (0, 0, 0, 1)], [(0, 0, 1, 0), (0, 1, 0, 0)]),
    "ties": ([(0.25,) * 4, (0.5, 0.5, 0, 0), (0.25,) * 4], [(0.25,) * 4, (0, 0, 0.5, 0.5)]),
    "-inf logits (mass 0)": ([(0.5, 0.5, 0, 0), (0, 0.3, 0.7, 0), (0.2, 0, 0, 0.8)], [(0.25,) * 4, (0.25,) * 4]),
    "masked draft row": ([(0.1, 0.2, 0.3, 0.4)] * 3, [(0, 0.5, 0.5, 0), (1, 0, 0, 0)]),
    "padded vocabulary": ([(0.6, 0.4, 0, 0, 0, 0)] * 3, [(0.2, 0.8, 0, 0, 0, 0)] * 2),
    "disjoint supports": ([(0.5, 0.5, 0, 0)] * 3, [(0, 0, 0.5, 0.5)] * 2),
    "p = q": ([(0.4, 0.2, 0.3, 0.1)] * 3, [(0.4, 0.2, 0.3, 0.1)] * 2),
    "one token": ([(1.0,)] * 3, [(1.0,)] * 2),
}


def edges(subject: Subject, beat: Callable[[], None]) -> list[Edge]:
    """Every check, in a fixed order."""
    out = [_legal(subject, name, np.array(p), np.array(q), beat) for name, (p, q) in LEGAL.items()]
    out += [_end_of_text(subject, beat)]
    out += [
        _bad_input(subject, name, beat) for name in ("q(x) = 0 at a drafted token", "a NaN in q", "a drafted id of -1")
    ]
    return out + _coins(subject, beat)


def _legal(subject: Subject, name: str, p: Any, q: Any, beat: Callable[[], None]) -> Edge:
    """No committed token may be one that its target row excludes."""
    rng, kept = np.random.default_rng(11), 0
    drafts = np.stack([inverse_cdf(np.tile(row, (RUNS, 1)), rng) for row in q], axis=1)
    try:
        answers = _call(subject, drafts, q, p, rng, beat)
    except ContractBroken as broken:
        return Edge(name, "fault", str(broken))
    for draft, tokens, accepted in zip(drafts, answers.tokens, answers.accepted):
        kept += int(accepted)
        for row, x in zip(p, tokens[tokens >= 0]):
            if row[x] == 0:
                return Edge(
                    name, "fault", f"drafts {draft.tolist()}: committed token {x}, which the target cannot emit"
                )
    if name == "p = q" and kept < drafts.size:
        return Edge(
            name, "note", f"{drafts.size - kept} of {drafts.size} drafts rejected, although p = q needs no rejection"
        )
    return Edge(name, "ok", f"{RUNS} blocks, {kept} of {drafts.size} drafts kept")


def _end_of_text(subject: Subject, beat: Callable[[], None]) -> Edge:
    name = "end of text inside a block"
    if not subject.eos_ids:
        return Edge(
            name, "-", "declares no eos_ids: it ignores end of text, so cut the commit and the count afterwards"
        )
    eos, size = subject.eos_ids[0], 4
    law = np.full((size + 1, max(8, eos + 2)), 1 / max(8, eos + 2))
    drafts = np.full((RUNS, size), eos + 1)
    drafts[:, 1] = eos
    try:
        answers = _call(subject, drafts, law[:-1], law, np.random.default_rng(5), beat)
    except ContractBroken as broken:
        return Edge(name, "fault", str(broken))
    behind = int((answers.tokens[:, 2:] >= 0).sum())
    counted = int((answers.accepted > 2).sum())
    if behind or counted:
        return Edge(
            name, "finding", f"{behind} tokens committed and {counted} times drafts counted behind the end of text"
        )
    return Edge(name, "ok", "nothing committed or counted behind it")


def _bad_input(subject: Subject, name: str, beat: Callable[[], None]) -> Edge:
    """An input that breaks the caller's side of the contract: refusing it is right, taking it silently is a finding."""
    p, q, drafts = (
        np.array([(0.4, 0.3, 0.2, 0.1)] * 2),
        np.array([(0.5, 0.5, 0.0, 0.0)]),
        np.zeros((RUNS, 1), dtype=np.int64),
    )
    if name.startswith("q(x)"):
        drafts[:] = 2
    elif "NaN" in name:
        q[0, 1] = np.nan
    else:
        drafts[:] = -1
    try:
        answers = _call(subject, drafts, q, p, np.random.default_rng(3), beat)
    except ContractBroken as broken:
        if broken.kind == "raises":
            return Edge(name, "ok", f"refused: {broken.detail}"[:160])
        return Edge(name, "finding", f"taken silently: {broken}")
    kept = int(answers.accepted.sum())
    if name.startswith("q(x)") and not kept:
        return Edge(name, "ok", "always rejected")
    first = answers.tokens[0, 0]
    return Edge(name, "finding", f"taken silently: {kept} of {RUNS} such drafts accepted, first answer {first}")


def _coins(subject: Subject, beat: Callable[[], None]) -> list[Edge]:
    """Injected coins: 0 against a token of mass 0, the boundary p/q itself, and the largest coin below 1 at p = q."""
    p0, q0 = np.array([(0.0, 0.6, 0.4)] * 2), np.array([(0.5, 0.25, 0.25)])
    half = np.array([(0.25, 0.5, 0.25)] * 2), np.array([(0.5, 0.25, 0.25)])
    equal = np.array([(0.4, 0.2, 0.3, 0.1)] * 2)
    below_one = float(np.nextafter(1.0, 0.0)) if subject.arrays == "numpy" else 1 - 2.0**-24
    tried = [
        ("coin 0, p(x) = 0", p0, q0, 0.0),
        ("coin = p/q", *half, 0.5),
        ("coin 1 - ulp, p = q", equal, equal[:1], below_one),
    ]
    out = []
    for name, p, q, u in tried:
        try:
            answers = _call(subject, np.array([[0]]), q, p, _injected(subject, u), beat)
        except ContractBroken as broken:
            if broken.kind == "raises" and broken.detail.startswith(("TypeError", "AttributeError")):
                return [
                    Edge(
                        "injected coins",
                        "-",
                        "does not take Coins: give `rng` as Coins(accept, residual) to have these tried",
                    )
                ]
            out.append(Edge(name, "finding", str(broken)))
            continue
        out.append(_coin_edge(name, bool(answers.accepted[0])))
    return out


def _coin_edge(name: str, kept: bool) -> Edge:
    if name.startswith("coin 0"):
        return Edge(
            name,
            "finding" if kept else "ok",
            "accepted a token of mass 0, as a test u <= p/q does" if kept else "rejected",
        )
    if name.startswith("coin ="):
        return Edge(name, "note", "accepted, as u <= p/q does" if kept else "rejected, as u < p/q does")
    return Edge(name, "ok" if kept else "note", "accepted" if kept else "rejected, although p = q")


def _injected(subject: Subject, u: float) -> Coins:
    shape: tuple[int, ...] = (1, 1) if subject.batched else (1,)
    return Coins(np.full(shape, u), np.full(shape, 0.5))


def _call(subject: Subject, drafts: Any, q: Any, p: Any, rng: Any, beat: Callable[[], None]) -> Any:
    """The same rows for every block, without the engine's own drafts, global generators forked and seeded."""
    with forked_generators(17):
        return call(subject, drafts, np.tile(q, (len(drafts), 1, 1)), np.tile(p, (len(drafts), 1, 1)), rng, beat)
