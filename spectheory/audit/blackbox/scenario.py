"""One statistical test: a small model to draw blocks from, what is counted, and the exact law of the counts under losslessness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ...models import Tabular
from .calls import Answers, call
from .guard import ContractBroken
from .interface import Subject

Kind = Literal["tokens", "calls", "drafts"]


@dataclass(frozen=True)
class Scenario:
    """Blocks of `block` drafts from `model`; counted are the first `length` tokens, a shorter commit completed from the target.

    kind "calls" counts the first tokens of two successive calls instead (they must be independent), "drafts" the first
    draft that the engine itself draws (it must follow the declared law). `finds` says in words which faults show here.
    """

    name: str
    model: Tabular
    block: int
    length: int
    finds: str
    kind: Kind = "tokens"

    @property
    def shape(self) -> tuple[int, ...]:
        size = self.model.vocab_size
        return {"tokens": (size,) * self.length, "calls": (size, size), "drafts": (size,)}[self.kind]

    def law(self) -> Any:
        """What a lossless verifier's counts follow, flat (N,): the target itself."""
        p, q = self.model.target[self.model.initial], self.model.draft[self.model.initial]
        if self.kind == "drafts":
            return q
        if self.kind == "calls":
            return np.outer(p, p).ravel()
        from ...exact import target_law

        return np.asarray(target_law(self.model, length=self.length)).ravel()


@dataclass
class Tally:
    """Counts so far: `counts` (N,) cells, `drafted` and `accepted` drafts, `calls`; `globals` names global generators used."""

    counts: Any
    calls: int = 0
    drafted: int = 0
    accepted: int = 0
    globals: set[str] = field(default_factory=set)

    def add(self, other: Tally) -> None:
        self.counts = self.counts + other.counts
        self.calls, self.drafted = self.calls + other.calls, self.drafted + other.drafted
        self.accepted, self.globals = self.accepted + other.accepted, self.globals | other.globals


def empty_tally(scenario: Scenario) -> Tally:
    return Tally(np.zeros(int(np.prod(scenario.shape)), dtype=np.int64))


def calls_per_draw(scenario: Scenario) -> int:
    return 2 if scenario.kind == "calls" else 1


def sample(subject: Subject, scenario: Scenario, n: int, rng: np.random.Generator, beat: Callable[[], None]) -> Tally:
    """`n` draws of the counted quantity. Raises ContractBroken."""
    calls = n * calls_per_draw(scenario)
    if scenario.kind == "drafts":
        drafts = draw_block(subject, scenario, n, rng, beat)[0]
        return Tally(np.bincount(drafts[:, 0], minlength=scenario.model.vocab_size))
    if subject.draft is None or subject.batched:
        drafts, q, p = draw_block(subject, scenario, calls, rng, beat)
        answers = call(subject, drafts, q, p, rng, beat)
    else:  # the engine may carry noise from its draft to its verdict: one block at a time
        drafts, answers = _one_by_one(subject, scenario, calls, rng, beat)
    cells = cells_of(scenario, drafts, answers, rng)
    counts = np.bincount(cells, minlength=int(np.prod(scenario.shape)))
    return Tally(counts, calls, drafts.size, int(answers.accepted.sum()))


def draw_block(
    subject: Subject, scenario: Scenario, n: int, rng: np.random.Generator, beat: Callable[[], None]
) -> tuple[Any, Any, Any]:
    """Drafts (n, K) with their rows q (n, K, V) and p (n, K+1, V), fresh arrays. Raises ContractBroken for bad drafts."""
    model, size = scenario.model, scenario.block
    contexts = np.full((n, size + 1), model.initial)
    drafts = np.empty((n, size), dtype=np.int64)
    for i in range(size):
        q = model.draft[contexts[:, i]]
        drafts[:, i] = inverse_cdf(q, rng) if subject.draft is None else _own_drafts(subject, q, rng, beat)
        contexts[:, i + 1] = model.step(contexts[:, i], drafts[:, i])
    return drafts, model.draft[contexts[:, :-1]], model.target[contexts]


def inverse_cdf(laws: Any, rng: np.random.Generator) -> Any:
    """One token (n,) from each row of `laws` (n, V); never one without mass."""
    cumulative = np.cumsum(laws, axis=1)
    drawn = (cumulative <= rng.random(len(laws))[:, None] * cumulative[:, -1:]).sum(axis=1)
    last = laws.shape[1] - 1 - (laws[:, ::-1] > 0).argmax(axis=1)
    return np.minimum(drawn, last)


def cells_of(scenario: Scenario, drafts: Any, answers: Answers, rng: np.random.Generator) -> Any:
    """The cell number of each draw: base-V digits, the earliest token most significant."""
    size = scenario.model.vocab_size
    if scenario.kind == "calls":
        pairs = answers.tokens[:, 0].reshape(-1, 2)
        return pairs[:, 0] * size + pairs[:, 1]
    model, tokens = scenario.model, answers.tokens
    contexts, cells = np.full(len(tokens), model.initial), np.zeros(len(tokens), dtype=np.int64)
    for t in range(scenario.length):
        x = tokens[:, t].copy()
        missing = x < 0
        if missing.any():
            x[missing] = inverse_cdf(model.target[contexts[missing]], rng)
        cells = cells * size + x
        contexts = model.step(contexts, x)
    return cells


def _own_drafts(subject: Subject, q: Any, rng: np.random.Generator, beat: Callable[[], None]) -> Any:
    assert subject.draft is not None
    drawn: list[Any] = []
    for rows in [q] if subject.batched else q:
        beat()
        try:
            ids = subject.draft(subject.array(rows.copy()), subject.generator(rng))
            drawn += [int(x) for x in ids] if subject.batched else [int(ids)]
        except (Exception, SystemExit) as error:
            raise ContractBroken("raises", f"draft(): {type(error).__name__}: {error}") from error
    out = np.asarray(drawn, dtype=np.int64)
    if out.shape != (len(q),) or (out < 0).any() or (out >= q.shape[1]).any():
        raise ContractBroken(
            "id outside the vocabulary", f"draft() gave {out[:8].tolist()} for {len(q)} rows of {q.shape[1]} tokens"
        )
    return out


def _one_by_one(
    subject: Subject, scenario: Scenario, n: int, rng: np.random.Generator, beat: Callable[[], None]
) -> tuple[Any, Answers]:
    drafts, tokens = np.empty((n, scenario.block), np.int64), np.full((n, scenario.block + 1), -1, np.int64)
    accepted = np.empty(n, np.int64)
    for i in range(n):
        block = draw_block(subject, scenario, 1, rng, beat)
        answer = call(subject, *block, rng, beat)
        drafts[i], tokens[i], accepted[i] = block[0][0], answer.tokens[0], answer.accepted[0]
    return drafts, Answers(tokens, accepted)
