"""Recordings of others: a plain .npz of logits, read in place; top-k log-probability dumps, imported as truncated rows."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError
from ..pmf import check_ids, softmax
from ..protocols import Block, Truncated
from . import manifest as manifests
from .encoding import relative
from .reader import Reader
from .writer import ROUNDOFF, roundoff_tv, write


class NpzReader(Reader):
    """A `Reader` over a .npz file with arrays `target`, `draft` (logits) and `tokens`; nothing is copied or rounded.

    Shapes: target (B, K+1, V), draft (B, K, V), tokens (B, K); or target (K+1, V), draft (K, V), tokens (K,): one block.
    A target with no row more than the draft has no bonus rows: (N, V), (N, V), (N,) are N blocks of one draft each.
    Optional: `request` (B,), `position` (B,), `draft_to_target` (V',), `vocab_size` (padding behind it is dropped),
    `dtype_origin` (text: the engine's precision, if not the file's).
    """

    def __init__(self, path: Path, strict: bool, settings: dict[str, Any]) -> None:
        self.path, self.strict, self.texts = path, strict, {}
        self.errors = []
        try:
            archive = zipfile.ZipFile(path)
        except (OSError, zipfile.BadZipFile) as error:
            raise DataError(f"{path}: not a readable .npz file: {error}") from error
        self._members = {name: _Member(archive, path, name) for name in ("target", "draft")}
        self._small = _small_arrays(path)
        self.manifest = self._build()
        self.manifest["tv_floor"] = self._floor()
        self.settings = settings or dict(self.manifest["settings"])

    def _build(self) -> dict[str, Any]:
        """A manifest for what the file holds, with shards of at most 64 rows that exist only as ranges."""
        target, draft, tokens = self._members["target"].shape, self._members["draft"].shape, self._small["tokens"]
        flat = len(target) == 2
        if flat:
            single = target[0] == draft[0] + 1
            tokens = tokens[None] if single else tokens[:, None]
            target, draft = ((1, *s) if single else (s[0], 1, s[1]) for s in (target, draft))
        drafts = tokens.shape[1] if tokens.ndim == 2 else -1
        if (
            len(target) != 3
            or draft[:2] != tokens.shape
            or target[:2] not in ((len(tokens), drafts), (len(tokens), drafts + 1))
        ):
            raise DataError(
                f"{self.path}: target {self._members['target'].shape}, draft {self._members['draft'].shape} and tokens "
                f"{self._small['tokens'].shape} do not fit: they are (B, K+1, V), (B, K, V) and (B, K)"
            )
        narrow, self._tokens = self._small.get("draft_to_target"), tokens
        self._vocab = int(self._small.get("vocab_size", target[2]))
        if draft[2] != (len(narrow) if narrow is not None else target[2]) or not 1 <= self._vocab <= target[2]:
            raise DataError(f"{self.path}: target rows of {target[2]} tokens and draft rows of {draft[2]} do not match")
        step = max(1, manifests.SHARD_ROWS // target[1])
        if target[1] > manifests.SHARD_ROWS:
            raise DataError(f"{self.path}: a block of {target[1]} rows exceeds {manifests.SHARD_ROWS}")
        shards = []
        for start in range(0, len(tokens), step):
            stop = min(start + step, len(tokens))
            file = f"{self.path.name}[{start * target[1]}:{stop * target[1]}]"
            shards.append({"file": file, "blocks": stop - start, "rows": (stop - start) * target[1], "first": start})
        return {
            **manifests.DEFAULTS,
            "encoding": "npz",
            "vocab_size": self._vocab,
            "block_size": drafts,
            "bonus": target[1] == drafts + 1,
            "dtype_origin": self._origin(),
            "draft_to_target": None if narrow is None else narrow.tolist(),
            "shards": shards,
            "complete": True,
        }

    def _origin(self) -> str:
        name = str(self._small.get("dtype_origin", self._members["target"].dtype.name))
        if name not in ROUNDOFF:
            raise DataError(f"{self.path}: dtype_origin {name!r} is none of {', '.join(ROUNDOFF)}")
        return name

    def _floor(self) -> float | None:
        """What rounding to the original precision can have cost, on the first shard: more would be a pass over the file."""
        if not self.manifest["shards"]:
            return None
        count = self.manifest["shards"][0]["rows"]
        z = self._members["target"].rows(0, count)[:, : self._vocab].astype(np.float64)
        z = z[np.isfinite(z.max(axis=-1))]
        return float(roundoff_tv(z, softmax(z), self.manifest["dtype_origin"]).max()) if len(z) else None

    def tensors(self, i: int) -> dict[str, Any]:
        entry, size = self.manifest["shards"][i], int(self.manifest["block_size"])
        first, count, rows = entry["first"], entry["blocks"], entry["rows"] // entry["blocks"]
        drafts = {"target": rows, "draft": size}
        sides = {s: self._members[s].rows(first * n, count * n) for s, n in drafts.items()}
        for side, z in sides.items():
            _refuse_probabilities(f"{self.path}: {side}", z)
        width = {"target": self._vocab, "draft": self._vocab if self.manifest["draft_to_target"] is None else None}
        blocks = np.arange(first, first + count)
        return {
            "size": np.full(count, size),
            "tokens": self._tokens[first : first + count].ravel(),
            "request": self._small.get("request", np.zeros(len(self._tokens), int))[blocks],
            "position": self._small.get("position", np.zeros(len(self._tokens), int))[blocks],
            **{f"{side}.logits": z[:, : width[side]] for side, z in sides.items()},
        }

    def _decoder(self) -> Any:
        return lambda tensors: _relative(tensors["logits"])


def _relative(z: Any) -> Any:
    """Rows whose maximum is not finite are left as they are: the gate behind names what is wrong with them."""
    return relative(z) if np.isfinite(z.max(axis=-1)).all() else np.asarray(z, dtype=np.float32)


class _Member:
    """Rows of one array in a .npz, streamed: forward reads only decompress what they pass."""

    def __init__(self, archive: zipfile.ZipFile, path: Path, name: str) -> None:
        self.label, self._archive, self._name = f"{path}: {name}", archive, f"{name}.npy"
        try:
            self._file = archive.open(self._name)
            version = np.lib.format.read_magic(self._file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            self.shape, fortran, self.dtype = read(self._file)
        except KeyError:
            raise DataError(f"{path}: there is no array {name!r} in it: it needs target, draft and tokens") from None
        except (ValueError, zipfile.BadZipFile, EOFError) as error:
            raise DataError(f"{self.label} is not a readable array: {error}") from error
        if fortran or self.dtype.kind != "f" or len(self.shape) not in (2, 3):
            raise DataError(
                f"{self.label} must be a C-ordered float array of 2 or 3 axes, not {self.dtype} {self.shape}"
            )
        self._start = self._file.tell()

    def rows(self, first: int, count: int) -> Any:
        width = self.shape[-1]
        nbytes = width * self.dtype.itemsize
        start = self._start + first * nbytes
        try:
            if start < self._file.tell():  # a new pass: reopening lets the archive's checksum be verified again
                self._file = self._archive.open(self._name)
            if start != self._file.tell():
                self._file.seek(start)
            content = self._file.read(count * nbytes)
        except (OSError, EOFError, zipfile.BadZipFile, zipfile.zlib.error) as error:  # type: ignore[attr-defined]
            raise DataError(f"{self.label} rows {first} to {first + count - 1}: {error}") from error
        if len(content) != count * nbytes:
            raise DataError(f"{self.label} ends before row {first + len(content) // nbytes}")
        return np.frombuffer(content, dtype=self.dtype).reshape(count, width)


def _small_arrays(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as data:
        if "tokens" not in data:
            raise DataError(f"{path}: there is no array 'tokens' in it: it needs target, draft and tokens")
        names = ("tokens", "request", "position", "draft_to_target", "vocab_size")
        found = {name: np.asarray(data[name]) for name in names if name in data}
        if "dtype_origin" in data:
            found["dtype_origin"] = np.asarray(data["dtype_origin"])
    for name, x in found.items():
        if name != "dtype_origin" and x.dtype.kind not in "iu":
            raise DataError(f"{path}: {name} must be whole numbers, not {x.dtype}")
    return found


def _refuse_probabilities(label: str, z: Any) -> None:
    """Softmax of probabilities is nearly uniform and looks like a result: refuse rows that are laws already."""
    if z.shape[1] > 1 and (z >= 0).all() and (abs(z.sum(axis=-1, dtype=np.float64) - 1) < 1e-3).all():
        raise DataError(f"{label} holds probabilities (rows sum to 1): store logits, or the logarithms of these")


def import_top_logprobs(
    source: str | Path, path: str | Path, vocab_size: int, top: int = 20, **manifest: Any
) -> list[dict[str, Any]]:
    """Turn a JSON-lines dump of top log-probabilities into a recording of truncated rows in the new directory `path`.

    One block a line: {"tokens": [K ids], "target": [K maps], "draft": [K maps]}, each map {"id": log-probability in nats}
    (or {"id": {"logprob": x}}), optionally "request" and "position"; a bonus map behind the K-th is ignored. A map holds
    the `top` most probable tokens and perhaps the drafted one. Returns [{"file", "row", "cause"}] of the lines that were
    left out, row being the line number from 0; the good lines are recorded. Raises DataError if none is good.
    """
    errors: list[dict[str, Any]] = []
    blocks = _logprob_blocks(Path(source), vocab_size, top, errors)
    first = next(blocks, None)
    if first is None:
        cause = f"row {errors[0]['row']}: {errors[0]['cause']}" if errors else "it is empty"
        raise DataError(f"{source}: no line of it is usable: {cause}")
    write(chain([first], blocks), path, vocab_size=vocab_size, **manifest)
    return errors


def _logprob_blocks(source: Path, vocab_size: int, top: int, errors: list[dict[str, Any]]) -> Iterator[Block]:
    try:
        with open(source, encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                if line.strip():
                    try:
                        yield _logprob_block(json.loads(line), vocab_size, top)
                    except (ValueError, KeyError, TypeError, AttributeError) as error:
                        cause = f"no {error}" if isinstance(error, KeyError) else str(error)
                        errors.append({"file": source.name, "row": number, "cause": cause})
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{source}: cannot read it: {error}") from error


def _logprob_block(data: dict[str, Any], vocab_size: int, top: int) -> Block:
    tokens = check_ids(np.asarray(data["tokens"], dtype=np.int64), vocab_size, "drafted token")
    sides = []
    for side in ("target", "draft"):
        if len(data[side]) < len(tokens):
            raise DataError(f"{side} has {len(data[side])} positions for {len(tokens)} drafted tokens")
        sides.append([_known(row, side, i, vocab_size, top) for i, row in enumerate(data[side][: len(tokens)])])
    ids = [sorted({*p, *q}) for (p, *_), (q, *_) in zip(*sides)]
    width = max((len(i) for i in ids), default=0)
    table = np.array([i + [-1] * (width - len(i)) for i in ids]).reshape(len(ids), width)
    values = [
        np.array([[0.0 if t < 0 else known.get(t, np.nan) for t in row] for row, (known, *_) in zip(table, side)])
        for side in sides
    ]
    tails, cuts = ([np.array([entry[k] for entry in side]) for side in sides] for k in (1, 2))
    info: dict[str, Any] = {k: data[k] for k in ("request", "position") if k in data}
    return Block(tokens, truncated=Truncated(table, *values, *tails, *cuts), info=info)


def _known(row: Any, side: str, position: int, vocab_size: int, top: int) -> tuple[dict[int, float], float, float]:
    """Recorded probabilities, the mass of the rest, and a bound on each token of the rest."""
    logs = {int(i): float(x["logprob"] if isinstance(x, dict) else x) for i, x in row.items()}
    check_ids(np.array(list(logs), dtype=np.int64), vocab_size, f"{side} position {position}: token")
    p = {i: float(np.exp(x)) for i, x in logs.items()}
    mass = sum(p.values())
    if not logs or not mass <= 1 + 1e-3:
        raise DataError(f"{side} position {position}: its probabilities sum to {mass:.6g}, more than 1")
    # A drafted token outside the top is appended by engines: the bound is the top-th value, not the least one.
    ranked, tail = sorted(p.values(), reverse=True), max(0.0, 1 - mass)
    return p, tail, min(ranked[min(top, len(ranked)) - 1], tail)
