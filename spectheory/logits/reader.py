"""Reading recordings as a stream of blocks: one shard of at most 64 rows is in memory at a time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import DataError
from ..pmf import check_ids, validate_logits, warp
from ..protocols import Block, Truncated
from . import manifest as manifests
from .encoding import ENCODINGS
from .writer import SIDES

CONTEXT = 24  # tokens before a block that `info["context"]` shows


class Rows(NamedTuple):
    """One block undecided: `tokens` (K,), logits `target` (K+1, V) and `draft` (K, V) float32 with row maximum 0
    (None where `truncated` holds the rows), and `info`."""

    tokens: Any
    target: Any
    draft: Any
    truncated: Truncated | None
    info: dict[str, Any]


class Reader:
    """A recording as an iterable of `Block`s, as often as you like; see `read`.

    `manifest` dict, `shards` (file names), `texts` {id: text} where known, `errors` [{"file", "row", "cause"}] of the last
    pass, `len(reader)` blocks. `blocks(i)` and `rows(i)` give one shard alone, `rows()` the logits without laws.
    `info` of a block: request, block (number in the recording), position, shard (index), file, rows (range in that
    shard), context and texts (of the tokens before and in the block).
    """

    def __init__(self, path: Path, strict: bool, settings: dict[str, Any]) -> None:
        self.path, self.strict = path, strict
        self.errors: list[dict[str, Any]] = []
        self.manifest = manifests.load(path)
        self.settings = settings or dict(self.manifest["settings"])
        self.texts = self._read_texts()

    def _read_texts(self) -> dict[int, str]:
        try:
            data = json.loads((self.path / manifests.TEXTS).read_text(encoding="utf-8"))
            return {int(k): str(v) for k, v in data.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError) as error:
            raise DataError(f"{self.path / manifests.TEXTS}: cannot read it as JSON: {error}") from error

    @property
    def shards(self) -> list[str]:
        return [str(s["file"]) for s in self.manifest["shards"]]

    @property
    def vocab_size(self) -> int:
        return int(self.manifest["vocab_size"])

    @property
    def draft_settings(self) -> dict[str, Any]:
        """Settings that turn draft logits into the law really drafted from: greedy drafts come from a one-hot law."""
        return {"temperature": 0.0} if self.manifest["draft_mode"] == "greedy" else self.settings

    def __len__(self) -> int:
        return sum(int(s["blocks"]) for s in self.manifest["shards"])

    def __iter__(self) -> Iterator[Block]:
        return self.blocks()

    def blocks(self, shard: int | None = None) -> Iterator[Block]:
        """Blocks of one shard or of all: `p`, `q` are the laws at `settings` and `draft_settings`, `logits` the target's."""
        for rows in self.rows(shard):
            if rows.truncated is not None:
                yield Block(rows.tokens, truncated=rows.truncated, info=rows.info)
                continue
            p, q = warp(rows.target, **self.settings), warp(rows.draft, **self.draft_settings)
            yield Block(rows.tokens, p, q, rows.target.astype(np.float64), info=rows.info)

    def rows(self, shard: int | None = None) -> Iterator[Rows]:
        """The blocks of one shard or of all as `Rows` (float32 logits), each checked."""
        self.errors = []
        if shard is None and not self.manifest["complete"]:
            cause = f"the recording stopped after {len(self)} blocks; run the extraction again to resume it"
            self._report(manifests.NAME, None, cause)
        before = np.cumsum([0, *(int(s["blocks"]) for s in self.manifest["shards"])])
        for i in range(len(self.shards)) if shard is None else (shard,):
            try:
                tensors = self.tensors(i)
            except DataError as error:
                if self.strict:
                    raise
                self.errors.append({"file": self.shards[i], "row": None, "cause": _cause(error)})
                continue
            yield from self._decode(i, tensors, int(before[i]))

    def _report(self, file: str, row: int | None, cause: str) -> None:
        if self.strict:
            raise DataError(f"{self.path / file}: {'' if row is None else f'row {row}: '}{cause}")
        self.errors.append({"file": file, "row": row, "cause": cause})

    def tensors(self, i: int) -> dict[str, Any]:
        """The tensors of a shard, checked against its checksum and the manifest. Raises DataError."""
        from safetensors import SafetensorError
        from safetensors.numpy import load

        entry = self.manifest["shards"][i]
        path = self.path / entry["file"]
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path}: {(error.strerror or str(error)).lower()}") from error
        if "sha256" in entry and hashlib.sha256(content).hexdigest() != entry["sha256"]:
            raise DataError(f"{path}: corrupt: {len(content)} bytes that do not match the manifest's checksum")
        try:
            tensors = dict(load(content))
        except (SafetensorError, ValueError, KeyError) as error:
            raise DataError(f"{path}: not a readable safetensors file: {error}") from error
        self._check_shapes(path, entry, tensors)
        return tensors

    def _check_shapes(self, path: Path, entry: dict[str, Any], tensors: dict[str, Any]) -> None:
        missing = [k for k in (*_PLAIN, *self._parts()) if k not in tensors]
        if missing:
            raise DataError(f"{path}: tensor {missing[0]} is missing, encoding {self.manifest['encoding']} needs it")
        sizes = tensors["size"]
        drafts, targets = int(sizes.sum()), int((sizes + bool(self.manifest["bonus"])).sum())
        if len(sizes) != entry["blocks"] or targets != entry["rows"]:
            raise DataError(
                f"{path}: {len(sizes)} blocks of {targets} rows, the manifest says {entry['blocks']} of {entry['rows']}"
            )
        narrow = self.manifest["draft_to_target"]
        widths = {"target": self.vocab_size, "draft": self.vocab_size if narrow is None else len(narrow)}
        for name, x in tensors.items():
            side, _, part = name.partition(".")
            if name in ("request", "position", "size"):
                expected: tuple[int, ...] = (len(sizes),)
            elif side == "target":
                expected = (targets, *((widths[side],) if part in ("logits", "code") else x.shape[1:]))
            else:
                expected = (drafts, *((widths[side],) if part in ("logits", "code") else x.shape[1:]))
            if x.shape != expected:
                raise DataError(f"{path}: tensor {name} has shape {x.shape}, the manifest says {expected}")

    def _parts(self) -> list[str]:
        if self.manifest["encoding"] == "truncated":
            return [f"truncated.{side}" for side in SIDES[:-2]]
        parts = {"f16-rel": ("logits",), "u8sqrt-top256": ("code", "scale", "top_ids", "top")}[
            self.manifest["encoding"]
        ]
        return [f"{side}.{part}" for side in ("target", "draft") for part in parts]

    def _decode(self, i: int, tensors: dict[str, Any], first: int) -> Iterator[Rows]:
        bonus = bool(self.manifest["bonus"])
        draft_at = np.cumsum([0, *tensors["size"]])
        target_at = np.cumsum([0, *(tensors["size"] + bonus)])
        for b in range(len(tensors["size"])):
            drafts, targets = slice(*draft_at[b : b + 2]), slice(*target_at[b : b + 2])
            info = self._info(i, first + b, targets, tensors, b)
            tokens = tensors["tokens"][drafts].astype(np.int64)
            info["texts"] = [self.texts.get(int(t)) for t in tokens]
            try:
                rows = self._rows(tensors, tokens, drafts, targets, info)
            except _BadRow as error:
                self._report(self.shards[i], int(targets.start) + error.at, f"block {first + b}: {error}")
            else:
                yield rows

    def _rows(self, tensors: dict[str, Any], tokens: Any, drafts: slice, targets: slice, info: dict[str, Any]) -> Rows:
        """One block's rows out of a shard. Raises _BadRow for NaN, ids out of range, drafts that q cannot draw."""
        vocab = self.vocab_size
        _each(tokens, lambda x: check_ids(x, vocab, "drafted token"))
        if self.manifest["encoding"] == "truncated":
            rows = Truncated(**{s: tensors[f"truncated.{s}"][drafts] for s in SIDES if f"truncated.{s}" in tensors})
            return Rows(tokens, None, None, _checked(rows, vocab), info)
        decode = self._decoder()
        try:
            z, w = (
                decode({k.partition(".")[2]: v[at] for k, v in tensors.items() if k.startswith(f"{side}.")})
                for side, at in (("target", targets), ("draft", drafts))
            )
        except (IndexError, ValueError, TypeError) as error:
            raise _BadRow(0, f"cannot be decoded as {self.manifest['encoding']}: {error}") from error
        _each(z, lambda x: validate_logits(x, "target"))
        _each(w, lambda x: validate_logits(x, "draft"))
        w = widen(w, self.manifest["draft_to_target"], vocab)
        drawn = np.take_along_axis(w, tokens[:, None], axis=-1) > -np.inf
        _each(np.hstack([tokens[:, None], drawn]), _drawable)
        return Rows(tokens, z, w, None, info)

    def _decoder(self) -> Any:
        return ENCODINGS[self.manifest["encoding"]].decode

    def _info(self, i: int, block: int, rows: slice, tensors: dict[str, Any], b: int) -> dict[str, Any]:
        request, position = int(tensors["request"][b]), int(tensors["position"][b])
        requests = self.manifest["requests"]
        known = requests[request] if request < len(requests) else {}
        before = known.get("tokens", [])[max(position - CONTEXT, 0) : position]
        return {
            "request": known.get("id", request),
            "block": block,
            "position": position,
            "shard": i,
            "file": self.shards[i],
            "rows": (int(rows.start), int(rows.stop)),
            "context": "".join(self.texts.get(int(t), "\N{REPLACEMENT CHARACTER}") for t in before),
        }


class _BadRow(DataError):
    """What is wrong with one position of a block, counted from the block's first row."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


def _each(rows: Any, check: Callable[[Any], Any]) -> None:
    """Apply `check` row by row, so that the first bad one is known. Raises _BadRow."""
    for at, row in enumerate(rows):
        try:
            check(row[None])
        except DataError as error:
            raise _BadRow(at, f"position {at}: {_unplaced(str(error))}") from error


def _unplaced(message: str) -> str:
    """The gate speaks of the single row that it was given: its own place says nothing."""
    return message.replace(" row 0,", "").replace(" row 0 ", " ").replace(" at position 0", "")


def _drawable(row: Any) -> None:
    ((token, possible),) = row
    if not possible:
        raise DataError(f"drafted token {token} has draft probability 0: not drawn from the declared q")


_PLAIN = ("size", "tokens", "request", "position")


def _cause(error: DataError) -> str:
    """The message without the path, which the report keeps apart."""
    return str(error).partition(": ")[2]


def _checked(rows: Truncated, vocab_size: int) -> Truncated:
    """Raises _BadRow unless ids and masses are possible."""
    for at, ids in enumerate(rows.ids):
        if ((ids >= vocab_size) | (ids < -1)).any():
            raise _BadRow(at, f"position {at}: a recorded token id is outside [0, {vocab_size})")
        for name in ("p", "q", "p_tail", "q_tail", "p_cut", "q_cut"):
            value = getattr(rows, name)[at]
            if not (((value >= 0) & (value <= 1 + 1e-6)) | (name in ("p", "q") and np.isnan(value))).all():
                raise _BadRow(at, f"position {at}: truncated {name} has a value outside [0, 1]")
    return rows


def widen(draft: Any, draft_to_target: list[int] | None, vocab_size: int) -> Any:
    """Draft logits (n, V') on the target's ids: log-sum-exp where several draft ids map to one, -inf elsewhere."""
    if draft_to_target is None:
        return draft
    ids = check_ids(np.asarray(draft_to_target), vocab_size, "draft_to_target")
    mass = np.zeros((len(draft), vocab_size))
    np.add.at(mass.T, ids, np.exp(np.asarray(draft, dtype=np.float64)).T)
    with np.errstate(divide="ignore"):
        return np.log(mass).astype(np.float32)


def read(path: str | Path, *, strict: bool = True, **settings: Any) -> Reader:
    """Open a recording (a directory, or a plain .npz as `NpzReader` says) as a re-iterable stream of blocks.

    `settings` (temperature, top_k, top_p, min_p) replace the recorded request settings on both sides. Bad data: with
    `strict` the first bad row raises DataError naming file, row and cause; without, iteration goes on with the good
    rows and `reader.errors` lists the bad ones. A missing or broken manifest always raises.
    """
    from .foreign import NpzReader

    return (NpzReader if Path(path).is_file() else Reader)(Path(path), strict, settings)
