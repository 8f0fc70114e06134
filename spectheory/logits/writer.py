"""Writing recordings: rows collect into shards of at most 64, each written whole and entered in the manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import log0
from ..errors import DataError, UsageError
from ..pmf import check_ids, softmax, validate, validate_logits
from ..protocols import Block, Truncated
from . import manifest as manifests
from .encoding import encoding, stored

ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
TEXT_TOP = 64  # token texts are kept for this many top tokens of each row
SIDES = ("ids", "p", "q", "p_tail", "q_tail", "p_cut", "q_cut", "excess", "deficit")


def roundoff_tv(z: Any, p: Any, dtype: str) -> Any:
    """How far rounding logits `z` (n, V) to `dtype` can move their laws `p` in TV, (n,): to first order u sum p |z|."""
    return ROUNDOFF[dtype] * np.where(p > 0, p * np.abs(np.where(p > 0, z, 0)), 0).sum(axis=-1)


class Recorder:
    """Collects blocks and writes them to the directory `path`.

    `add` a block, `close` at the end; `texts(ids) -> list[str]` gives token texts where known. With `resume` the blocks
    already in `path` are kept and new ones follow. Raises UsageError if `path` already holds a recording and `resume` is
    false or the settings differ, DataError if the disk refuses: what was written before stays readable.
    """

    def __init__(
        self, path: str | Path, *, resume: bool = False, texts: Callable[[Any], list[str]] | None = None, **fields: Any
    ) -> None:
        self.path, self._texts = Path(path), texts
        unknown = sorted(set(fields) - set(manifests.DEFAULTS))
        if unknown:
            raise UsageError(f"a manifest has no {', '.join(unknown)}: see docs/howto/dump-logits.md")
        self.manifest = {**manifests.DEFAULTS, **fields, "shards": [], "complete": False}
        self.text: dict[str, str] = {}
        self._pending: list[tuple[dict[str, Any], int]] = []
        self.finished = False  # true if `path` already held a complete recording
        if (self.path / manifests.NAME).exists():
            self._continue(resume, fields)
        if self.manifest["encoding"] != "truncated":
            encoding(self.manifest["encoding"])
        elif self.manifest["vocab_size"] is None:
            raise UsageError("truncated rows do not show their vocabulary: pass vocab_size")
        if self.manifest["dtype_origin"] not in ROUNDOFF:
            raise UsageError(f"dtype_origin {self.manifest['dtype_origin']!r} is none of {', '.join(ROUNDOFF)}")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{self.path}: cannot create it: {error.strerror}") from error

    def _continue(self, resume: bool, fields: dict[str, Any]) -> None:
        old = manifests.load(self.path)
        if not resume:
            raise UsageError(
                f"{self.path} already holds a recording of {_blocks(old)} blocks: choose another directory"
            )
        changed = [k for k in fields if k not in ("requests", "shards", "rounding", "tv_floor") and old[k] != fields[k]]
        if changed:
            name = changed[0]
            raise UsageError(
                f"{self.path} holds another recording: its {name} is {old[name]!r}, not {fields[name]!r}; choose another directory"
            )
        self.finished = bool(old["complete"])
        self.manifest = {**old, "complete": False}
        texts = self.path / manifests.TEXTS
        self.text = json.loads(texts.read_text(encoding="utf-8")) if texts.exists() else {}

    @property
    def blocks(self) -> int:
        """Blocks that are safe on disk."""
        return _blocks(self.manifest)

    def add(self, tokens: Any, target: Any, draft: Any, request: int = 0, position: int = 0) -> None:
        """One block: `tokens` (K,), target logits (K+1, V) (or (K, V): no bonus row), draft logits (K, V).

        `request` indexes the manifest's requests, `position` is the number of tokens before the block.
        """
        tokens = np.asarray(tokens)
        target, draft = validate_logits(target, "target"), validate_logits(draft, "draft")
        self._check_width(target.shape[-1], draft.shape[-1])
        check_ids(tokens, target.shape[-1], "drafted token")
        if len(target) != len(tokens) + bool(self.manifest["bonus"]) or len(draft) != len(tokens):
            raise DataError(
                f"a block of {len(tokens)} drafts came with {len(target)} target rows and {len(draft)} draft rows"
            )
        name, entry = self.manifest["encoding"], self._entry(tokens, request, position)
        for side, z in (("target", target), ("draft", draft)):
            entry.update({f"{side}.{part}": x for part, x in encoding(name).encode(z).items()})
        entry["check"] = np.vstack([self._rounding(z) for z in (target, draft)])
        if self._texts is not None:
            self._name_tokens(tokens, target, draft)
        self._put(entry, len(target))

    def add_truncated(self, tokens: Any, rows: Truncated, request: int = 0, position: int = 0) -> None:
        """One block of which only the top tokens are known: `rows` with K rows of `ids` (K, M)."""
        entry = self._entry(np.asarray(tokens), request, position)
        for side in SIDES:
            value = getattr(rows, side)
            if value is not None:
                entry[f"truncated.{side}"] = np.asarray(value, dtype=np.int32 if side == "ids" else np.float64)
        if len(entry["truncated.ids"]) != len(entry["tokens"]):
            raise DataError(
                f"a block of {len(entry['tokens'])} drafts came with {len(entry['truncated.ids'])} truncated rows"
            )
        self._put(entry, len(entry["tokens"]))

    def close(self) -> None:
        """Write what is pending and mark the recording complete. Raises DataError."""
        self._flush(complete=True)

    def _check_width(self, target: int, draft: int) -> None:
        vocab = self.manifest["vocab_size"] = self.manifest["vocab_size"] or target
        narrow = self.manifest["draft_to_target"]
        if target != vocab or draft != (vocab if narrow is None else len(narrow)):
            raise DataError(
                f"block {self.blocks + len(self._pending)}: target rows of {target} tokens and draft rows of {draft} "
                f"do not fit a vocabulary of {vocab}" + ("" if narrow is None else f" and a draft map of {len(narrow)}")
            )

    def _entry(self, tokens: Any, request: int, position: int) -> dict[str, Any]:
        return {
            "size": np.array([len(tokens)], np.int32),
            "tokens": tokens.astype(np.int32),
            "request": np.array([request], np.int32),
            "position": np.array([position], np.int32),
        }

    def _put(self, entry: dict[str, Any], rows: int) -> None:
        if rows > manifests.SHARD_ROWS:
            raise UsageError(f"a block of {rows} rows does not fit a shard of {manifests.SHARD_ROWS}")
        if sum(r for _, r in self._pending) + rows > manifests.SHARD_ROWS:
            self._flush()
        self._pending.append((entry, rows))

    def _rounding(self, z: Any) -> Any:
        """Per row of z: TV of its law to the stored law, to the f16-rel law, and what rounding to dtype_origin can cost."""
        z = np.asarray(z, dtype=np.float64)
        name, p = self.manifest["encoding"], softmax(z)
        kept = softmax(stored(z, name))
        half = kept if name == "f16-rel" else softmax(stored(z, "f16-rel"))
        floor = roundoff_tv(z, p, self.manifest["dtype_origin"])
        return np.stack([abs(p - kept).sum(-1) / 2, abs(half - kept).sum(-1) / 2, floor], axis=1)

    def _name_tokens(self, tokens: Any, *sides: Any) -> None:
        ids = set(np.asarray(tokens).tolist())
        for z in sides:
            top = np.argpartition(z, max(-TEXT_TOP, -z.shape[1]), axis=-1)[:, -TEXT_TOP:]
            ids.update(top.ravel().tolist())
        self.remember(ids)

    def remember(self, ids: Iterable[int]) -> None:
        """Keep the texts of these tokens for reports."""
        new = sorted(i for i in {int(i) for i in ids} if str(i) not in self.text)
        if new and self._texts is not None:
            self.text.update(zip(map(str, new), self._texts(new)))

    def _flush(self, complete: bool = False) -> None:
        number, count = len(self.manifest["shards"]), len(self._pending)
        name = f"shard-{number:05d}.safetensors"
        manifest = {**self.manifest, "complete": complete, "shards": list(self.manifest["shards"])}
        try:
            if count:
                manifest["shards"].append(self._write_shard(name))
            _summarise(manifest)
            if self.text:
                text = json.dumps(dict(sorted(self.text.items())), ensure_ascii=False, separators=(",", ":"))
                manifests.replace(self.path / manifests.TEXTS, text.encode("utf-8", "replace"))
            manifests.save(self.path, manifest)
        except OSError as error:
            raise DataError(
                f"{self.path / name}: cannot write blocks {self.blocks} to {self.blocks + count - 1}: "
                f"{error.strerror or error}; the {self.blocks} blocks before them are safe"
            ) from error
        self.manifest, self._pending = manifest, []

    def _write_shard(self, name: str) -> dict[str, Any]:
        from safetensors.numpy import save

        entries = [e for e, _ in self._pending]
        check = np.concatenate([e.pop("check", np.empty((0, 3))) for e in entries])
        content = save({key: np.concatenate(_padded([e[key] for e in entries])) for key in entries[0]})
        manifests.replace(self.path / name, content)
        shard: dict[str, Any] = {"file": name, "blocks": len(entries), "rows": sum(r for _, r in self._pending)}
        if len(check):
            mean, worst = check.mean(axis=0), check.max(axis=0)
            shard["laws"] = len(check)
            shard["tv_stored"], shard["tv_f16"] = [float(mean[0]), float(worst[0])], [float(mean[1]), float(worst[1])]
            shard["tv_floor"] = float((check[:, 0] + check[:, 2]).max())
        return {**shard, "sha256": hashlib.sha256(content).hexdigest()}


def _padded(parts: list[Any]) -> list[Any]:
    """Truncated rows of different widths to the widest: ids with -1, values with 0."""
    if parts[0].ndim < 2:
        return parts
    width = max(p.shape[1] for p in parts)
    fill = -1 if parts[0].dtype == np.int32 else 0
    return [
        np.pad(p, ((0, 0), (0, width - p.shape[1])), constant_values=fill) if p.shape[1] < width else p for p in parts
    ]


def _blocks(manifest: dict[str, Any]) -> int:
    return sum(int(s["blocks"]) for s in manifest["shards"])


def _summarise(manifest: dict[str, Any]) -> None:
    """Rounding figures of the whole recording from those of its shards."""
    measured = [s for s in manifest["shards"] if "laws" in s]
    if not measured:
        return
    weight = np.array([s["laws"] for s in measured], dtype=float)
    manifest["rounding"] = {
        key: {
            "laws": int(weight.sum()),
            "tv_mean": float(np.average([s[column][0] for s in measured], weights=weight)),
            "tv_max": max(s[column][1] for s in measured),
        }
        for key, column in (("against_origin", "tv_stored"), ("against_f16", "tv_f16"))
    }
    manifest["tv_floor"] = max(s["tv_floor"] for s in measured)


def write(
    blocks: Iterable[Block], path: str | Path, *, texts: Mapping[int, str] | None = None, **manifest: Any
) -> None:
    """Write `blocks` as a recording in the new directory `path`; keyword arguments are manifest keys.

    Each block needs target `logits` or `p`, and `q`; or `truncated` rows. `info["request"]` and `info["position"]` are
    kept; `texts` are token texts where known. `encoding` is `f16-rel` unless given; blocks of truncated rows are stored
    as they are. Raises UsageError or DataError; the blocks before a bad one stay on disk, in an unfinished recording.
    """
    blocks = iter(blocks)
    first = next(blocks, None)
    if first is None:
        raise DataError(f"{path}: there are no blocks to write")
    recorder = Recorder(path, **{**_kind(first), **manifest})
    recorder.text = {str(i): text for i, text in (texts or {}).items()}
    requests = recorder.manifest["requests"] = list(recorder.manifest["requests"])
    index = {str(r["id"]): i for i, r in enumerate(requests)}
    try:
        for number, block in enumerate(chain([first], blocks)):
            name = block.info.get("request", 0)
            if str(name) not in index:
                index[str(name)] = len(requests)
                requests.append({"id": name})
            _add(recorder, block, number, index[str(name)])
    except Exception:
        recorder._flush()
        raise
    recorder.close()


def _kind(first: Block) -> dict[str, Any]:
    """What the first block tells of the recording."""
    if first.truncated is not None:
        return {"encoding": "truncated", "bonus": False, "block_size": first.size}
    rows = first.logits if first.logits is not None else first.p
    return {"bonus": rows is None or len(rows) == first.size + 1, "block_size": first.size}


def _add(recorder: Recorder, block: Block, number: int, request: int) -> None:
    position = int(block.info.get("position", 0))
    try:
        if block.truncated is not None:
            recorder.add_truncated(block.tokens, block.truncated, request, position)
        else:
            recorder.add(block.tokens, *_rows(block), request, position)
    except DataError as error:
        raise DataError(f"block {number}: {error}") from error


def _rows(block: Block) -> tuple[Any, Any]:
    """Target and draft logits of a block; log laws where only the laws are there."""
    if (block.p is None and block.logits is None) or block.q is None:
        raise DataError("a block needs target logits or p, and q, to be written")
    target = block.logits if block.logits is not None else log0(validate(block.p, "p"))
    return np.asarray(target), log0(validate(block.q, "q"))
