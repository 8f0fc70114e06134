"""Compact scores: all that a greedy rule needs of a block, in a few bytes a position instead of a vocabulary."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import DataError
from ..pmf import check_ids, log_softmax
from .manifest import replace
from .reader import Reader


class Scores(NamedTuple):
    """B blocks of K drafts, in the order of decoding within each request.

    `request` (B,) int, equal for blocks of one request; `position` (B,) int, tokens before the block; `tokens` (B, K)
    int64, drafted ids; `drafted_logit` (B, K) float64, their target logits; `top_id`, `top_logit` (B, K+1): the target's
    argmax (lowest id on ties) and its logit, bonus position last. Logits are relative to the row maximum, so
    `top_logit` is 0 and the regret of a draft is -drafted_logit, as stored, without rounding. `log_top` (B, K+1) is the
    log-probability (nats, temperature 1) of the top token: that of a draft is log_top + drafted_logit.
    `manifest` is the recording's, without its requests and shards.
    """

    request: Any
    position: Any
    tokens: Any
    drafted_logit: Any
    top_id: Any
    top_logit: Any
    log_top: Any
    manifest: dict[str, Any]


def scores(reader: Reader) -> Scores:
    """The compact scores of a recording whose blocks all have K drafts and a bonus row. Raises DataError."""
    columns: dict[str, list[Any]] = {name: [] for name in Scores._fields[:-1]}
    for rows in reader.rows():
        if rows.target is None or len(rows.target) != len(rows.tokens) + 1:
            raise DataError(f"block {rows.info['block']}: compact scores need full target rows and the bonus row")
        z = rows.target.astype(np.float64)
        best = z.argmax(axis=-1)
        top = np.take_along_axis(z, best[:, None], axis=-1)[:, 0]
        columns["request"].append(rows.info["request"])
        columns["position"].append(rows.info["position"])
        columns["tokens"].append(rows.tokens)
        columns["drafted_logit"].append(z[np.arange(len(rows.tokens)), rows.tokens] - top[:-1])
        columns["top_id"].append(best)
        columns["top_logit"].append(top - top)
        columns["log_top"].append(log_softmax(z)[np.arange(len(best)), best])
    if len({len(t) for t in columns["tokens"]}) != 1:
        raise DataError(f"{reader.path}: its blocks do not all have the same number of drafts")
    manifest = {k: v for k, v in reader.manifest.items() if k not in ("requests", "shards")}
    return Scores(**{name: np.array(column) for name, column in columns.items()}, manifest=manifest)


def save_scores(found: Scores, path: str | Path) -> None:
    """Write compact scores as a compressed .npz with the manifest as JSON text inside."""
    columns = found._asdict()
    columns["manifest"] = np.array(json.dumps(found.manifest))
    columns["tokens"], columns["top_id"] = (columns[k].astype(np.int32) for k in ("tokens", "top_id"))
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **columns)
    replace(Path(path), buffer.getvalue())


def _check_shapes(columns: dict[str, Any]) -> None:
    count, size = columns["tokens"].shape
    wide, narrow = (count, size + 1), (count, size)
    fitting = {"request": (count,), "position": (count,), "drafted_logit": narrow}
    fitting |= dict.fromkeys(("top_id", "top_logit", "log_top"), wide)
    for name, shape in fitting.items():
        if columns[name].shape != shape:
            raise ValueError(f"{name} has shape {columns[name].shape}, its tokens ask for {shape}")


def load_scores(path: str | Path, strict: bool = True) -> Scores:
    """Read what `save_scores` wrote. Raises DataError naming the file, and the block of a bad id or logit.

    Without `strict` bad ids and logits pass: for readers that check, and set aside, block by block.
    """
    try:
        with np.load(path, allow_pickle=False) as data:
            columns = {name: data[name] for name in Scores._fields}
            manifest = json.loads(str(columns.pop("manifest")))
        _check_shapes(columns)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: not a readable file of compact scores: {error}") from error
    for name in ("tokens", "top_id"):
        columns[name] = columns[name].astype(np.int64)
        if strict:
            check_ids(columns[name], int(manifest["vocab_size"]), f"{path}: {name}")
    bad = ~(columns["drafted_logit"] <= 0)
    if strict and bad.any():
        block, at = np.argwhere(bad)[0]
        raise DataError(
            f"{path}: block {block}, position {at}: drafted_logit {columns['drafted_logit'][block, at]} is not <= 0"
        )
    return Scores(**columns, manifest=manifest)
