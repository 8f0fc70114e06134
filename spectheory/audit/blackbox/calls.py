"""Calling the stranger and reading its answer: every token that is counted has passed these checks."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arrays import to_numpy
from ...errors import UsageError
from .guard import ContractBroken
from .interface import Subject


@dataclass(frozen=True)
class Answers:
    """What B calls committed: `tokens` (B, K+1), -1 behind the last one; `accepted` (B,) drafts kept."""

    tokens: Any
    accepted: Any


def call(subject: Subject, drafts: Any, q: Any, p: Any, rng: Any, beat: Callable[[], None]) -> Answers:
    """Verify blocks (B, K), (B, K, V), (B, K+1, V): one call if batched, else B calls. Raises ContractBroken."""
    if subject.batched:
        beat()
        return read(_ask(subject, drafts, q, p, rng), drafts, p.shape[-1], subject.eos_ids)
    out = np.full((len(drafts), drafts.shape[1] + 1), -1, dtype=np.int64)
    accepted = np.empty(len(drafts), dtype=np.int64)
    for i in range(len(drafts)):
        beat()
        tokens, accepted[i] = read_one(
            _ask(subject, drafts[i], q[i], p[i], rng), drafts[i], p.shape[-1], subject.eos_ids
        )
        out[i, : len(tokens)] = tokens
    return Answers(out, accepted)


def _ask(subject: Subject, drafts: Any, q: Any, p: Any, rng: Any) -> Any:
    given = [subject.array(x.copy()) for x in (drafts, q, p)]
    try:
        result = subject.call(*given, subject.generator(rng))
    except UsageError:  # an adapter whose package is missing: the user's mistake, not the callable's
        raise
    except (Exception, SystemExit) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        at = f"{where.filename.rsplit('/', 1)[-1]}:{where.lineno}"
        raise ContractBroken("raises", f"{type(error).__name__}: {error} (at {at})") from error
    for name, now, then in zip(("draft_tokens", "draft_probs", "target_probs"), given, (drafts, q, p)):
        now, then = to_numpy(now), to_numpy(subject.array(then))
        if not np.array_equal(now, then, equal_nan=now.dtype.kind == "f"):
            i = tuple(int(k) for k in np.argwhere((now != then) & ~((now != now) & (then != then)))[0])
            raise ContractBroken(
                "inputs mutated", f"{name}{list(i)} was {then[i]:.6g}, and is {now[i]:.6g} after the call"
            )
    return result


def read_one(result: Any, drafts: Any, vocab_size: int, eos_ids: tuple[int, ...] = ()) -> tuple[Any, int]:
    """(tokens (n,), accepted drafts) of one answer, checked against its drafts (K,). Raises ContractBroken."""
    tokens, claimed = _split(result)
    tokens = _whole_numbers(tokens, 1)
    size = len(drafts)
    if len(tokens) == 0:
        raise ContractBroken("wrong shape", "a call committed no token")
    _check_ids(tokens, vocab_size)
    if len(tokens) > size + 1:
        raise ContractBroken("too many tokens", f"{len(tokens)} tokens for a block of {size} drafts")
    kept = len(tokens) - 1
    if not np.array_equal(tokens[:kept], drafts[:kept]):
        raise ContractBroken("drafts rewritten", f"drafts {drafts.tolist()} came back as {tokens.tolist()}")
    cut = bool(eos_ids) and int(tokens[-1]) in eos_ids and kept < size and tokens[-1] == drafts[kept]
    if claimed is not None:
        allowed = (kept, kept + 1) if cut else (kept,)
        claimed = _whole_numbers(claimed, 0)
        if int(claimed) not in allowed:
            raise ContractBroken(
                "acceptance miscounted",
                f"{int(claimed)} drafts are said to be accepted, {kept} of {drafts.tolist()} were committed: {tokens.tolist()}",
            )
        return tokens, int(claimed)
    return tokens, kept


def read(result: Any, drafts: Any, vocab_size: int, eos_ids: tuple[int, ...] = ()) -> Answers:
    """The answers of a batch (B, up to K+1), -1 behind the last token. Raises ContractBroken for the first bad row."""
    tokens, claimed = _split(result)
    tokens = _whole_numbers(tokens, 2)
    rows, size = drafts.shape
    if len(tokens) != rows:
        raise ContractBroken("wrong shape", f"{len(tokens)} rows of tokens for a batch of {rows}")
    if tokens.shape[1] > size + 1 and (tokens[:, size + 1 :] != -1).any():
        raise ContractBroken("too many tokens", f"{tokens.shape[1]} tokens for blocks of {size} drafts")
    held = np.full((rows, size + 1), -1, dtype=np.int64)
    held[:, : tokens.shape[1]] = tokens[:, : size + 1]
    length = np.where((held == -1).any(axis=1), (held == -1).argmax(axis=1), size + 1)
    inside = np.arange(size + 1) < length[:, None]
    if (length == 0).any() or (held[~inside] != -1).any():
        raise ContractBroken("wrong shape", f"row {int(np.argmin(length))} has no token, or tokens behind its padding")
    _check_ids(held[inside], vocab_size)
    before_last = np.arange(size) < (length - 1)[:, None]
    wrong = np.flatnonzero((before_last & (held[:, :size] != drafts)).any(axis=1))
    if len(wrong):
        raise ContractBroken(
            "drafts rewritten", f"drafts {drafts[wrong[0]].tolist()} came back as {held[wrong[0]].tolist()}"
        )
    if claimed is not None:
        claimed = _whole_numbers(claimed, 1)
        last = held[np.arange(rows), length - 1]
        at_eos = np.isin(last, eos_ids) & (length <= size) if eos_ids else np.zeros(rows, dtype=bool)
        bad = np.flatnonzero((claimed != length - 1) & ~(at_eos & (claimed == length)))
        if len(bad):
            raise ContractBroken(
                "acceptance miscounted",
                f"{int(claimed[bad[0]])} drafts are said to be accepted, {int(length[bad[0]]) - 1} were committed",
            )
    return Answers(held, length - 1 if claimed is None else claimed)


def commit(drafts: Any, accepted: Any, following: Any) -> Any:
    """Tokens (B, K+1): the accepted drafts, the token after them, -1 behind."""
    at = np.arange(drafts.shape[1] + 1)
    padded = np.concatenate([drafts, drafts[:, :1]], axis=1)
    return np.where(at < accepted[:, None], padded, np.where(at == accepted[:, None], following[:, None], -1))


def _split(result: Any) -> tuple[Any, Any]:
    """`tokens` or `(tokens, accepted)`: a pair whose first part is itself an array."""
    if isinstance(result, tuple) and len(result) == 2 and np.ndim(to_numpy(result[0])) > 0:
        return result
    return result, None


def _whole_numbers(x: Any, ndim: int) -> Any:
    try:
        a = to_numpy(x)
    except (TypeError, ValueError) as error:
        raise ContractBroken("wrong shape", f"the answer is no array: {error}") from None
    if a.dtype.kind == "f" and np.isnan(a).any():
        raise ContractBroken("NaN", f"the answer holds NaN: {a.tolist()}"[:200])
    if a.ndim != ndim or a.dtype.kind not in "iuf" or (a.dtype.kind == "f" and (a % 1 != 0).any()):
        raise ContractBroken(
            "wrong shape", f"expected whole numbers with {ndim} axes, got {a.dtype} of shape {a.shape}"
        )
    return a.astype(np.int64)


def _check_ids(tokens: Any, vocab_size: int) -> None:
    bad = tokens[(tokens < 0) | (tokens >= vocab_size)]
    if bad.size:
        raise ContractBroken("id outside the vocabulary", f"token {int(bad[0])} with a vocabulary of {vocab_size}")
