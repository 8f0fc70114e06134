"""Recorded greedy blocks as compact scores, row by row, and a rule replayed over them; bad rows are set aside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import DataError
from ..protocols import Block
from ..verifiers.regret_budget import RegretBudget, RequestState, scores


class Row(NamedTuple):
    """One recorded block: where it is from, and its scores (K+1,), (K+1,), (K,), (K,). `log_top` (K+1,) may be None."""

    request: Any
    row: int
    top_logit: Any
    top_id: Any
    drafted_logit: Any
    tokens: Any
    log_top: Any = None

    @property
    def matches(self) -> Any:
        return self.tokens == self.top_id[:-1]

    @property
    def regrets(self) -> Any:
        return np.where(self.matches, 0.0, self.top_logit[:-1] - self.drafted_logit)


class Played(NamedTuple):
    """A row, what the rule accepted of it, and the request's state before and after."""

    row: Row
    accepted: int
    before: RequestState
    after: RequestState

    @property
    def charge(self) -> float:
        return float(self.after.spent - self.before.spent)

    @property
    def exceptions(self) -> int:
        return len(self.after.ledger) - len(self.before.ledger)


Errors = list[dict[str, Any]]


def read_rows(source: Any) -> tuple[list[Row], Errors, dict[str, Any], str]:
    """(rows, errors, manifest, name) of the embedded greedy sample (None), a path (.npz of compact scores, or a recording
    with full target rows), `Scores`, or any iterable of `Block`s with logits or p.

    Blocks without `info["request"]` are one request. Raises DataError for a source that cannot be read at all.
    """
    from .. import logits

    name = "embedded greedy sample" if source is None else type(source).__name__
    errors: Errors = []
    if isinstance(source, str | Path):
        name = str(source)
        if Path(source).suffix == ".npz":
            source = logits.load_scores(source, strict=False)
        else:
            reader = logits.read(source, strict=False)
            source = logits.scores(reader)
            errors = [{"shard": e["file"], "row": e["row"], "cause": e["cause"]} for e in reader.errors]
    if source is None:
        source = logits.greedy_sample()
    if isinstance(source, logits.Scores):
        return list(_from_scores(source)), errors, dict(source.manifest), name
    if not isinstance(source, Iterable):
        raise DataError(f"the source must be a path, compact scores or an iterable of blocks, not {name}")
    rows: list[Row] = []
    for i, block in enumerate(source):
        try:
            rows.append(_from_block(block, i))
        except DataError as error:
            errors.append({"shard": "", "row": i, "cause": str(error)})
    return rows, errors, {}, name


def _from_scores(s: Any) -> Iterator[Row]:
    for i in range(len(s.tokens)):
        yield Row(int(s.request[i]), i, s.top_logit[i], s.top_id[i], s.drafted_logit[i], s.tokens[i], s.log_top[i])


def _from_block(block: Block, number: int) -> Row:
    from ..arrays import log0, to_law
    from ..pmf import log_softmax

    top, ids, drafted = scores(block)
    laws = log_softmax(block.logits) if block.logits is not None else log0(to_law(block.p))
    log_top = np.asarray(laws)[np.arange(len(ids)), ids]
    return Row(block.info.get("request", 0), number, top, ids, drafted, block.tokens, log_top)


def replay(rule: RegretBudget, rows: Sequence[Row], vocab_size: int | None = None) -> tuple[list[Played], Errors]:
    """Run `rule` over the rows, each request with a budget of its own. A bad row is reported and leaves its request as is."""
    states: dict[Any, RequestState] = {}
    played: list[Played] = []
    errors: Errors = []
    for row in rows:
        before = states.get(row.request) or rule.start()
        info = {"request": row.request, "row": row.row}
        try:
            verdict = rule.verify_scores(*row[2:6], before, info, vocab_size)
        except DataError as error:
            errors.append({"shard": "", "row": row.row, "cause": str(error)})
            continue
        states[row.request] = verdict.state
        played.append(Played(row, verdict.accepted, before, verdict.state))
    return played, errors


def by_request(played: Sequence[Played]) -> list[list[Played]]:
    """The played rows of each request, in order."""
    groups: dict[Any, list[Played]] = {}
    for one in played:
        groups.setdefault(one.row.request, []).append(one)
    return list(groups.values())


def refused(rule: RegretBudget, one: Played) -> bool:
    """Whether the budget test ended this block: the next mismatch passes gate and cap."""
    matches, regrets = one.row.matches, one.row.regrets
    size, i = len(matches), one.accepted
    if i == size or rule.strict or one.exceptions >= rule.cap or not rule.within_gate(float(regrets[i]), i, size):
        return False
    charge = sum(float(r) for r in regrets[:i])  # 0 at a match: what the block has run up, added as the rule adds
    return not rule.within_budget(charge, float(regrets[i]), one.before.remaining)
