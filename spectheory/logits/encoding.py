"""How rows of logits are stored. Every encoding keeps z - max z: only differences matter, and near 0 float16 is fine.

Plain float16 of raw logits is not offered: at |z| = 20 its steps of 1/64 move near-ties at a nucleus boundary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..errors import UsageError

TOP = 256  # tokens of a row that u8sqrt-top256 keeps as exact float16
LEVELS = 254  # its codes 0..254 are values, 255 is -inf


class Encoding(NamedTuple):
    """`encode`: logits (n, V) -> named arrays (n, ...); `decode`: back to float32 (n, V); the inverse up to rounding."""

    encode: Callable[[Any], dict[str, Any]]
    decode: Callable[[dict[str, Any]], Any]


def relative(z: Any) -> Any:
    """z - max z of rows (n, V) in float32, subtracted in float64."""
    z = np.asarray(z)
    return (z - z.max(axis=-1, keepdims=True).astype(np.float64)).astype(np.float32)


def _encode_f16(z: Any) -> dict[str, Any]:
    with np.errstate(over="ignore"):  # below -65504 is -inf: e^-65504 is 0 in any float
        return {"logits": relative(z).astype(np.float16)}


def _decode_f16(tensors: dict[str, Any]) -> Any:
    return tensors["logits"].astype(np.float32)


def _encode_u8(z: Any) -> dict[str, Any]:
    """One byte a token, round(254 sqrt(gap / largest gap)), and float16 for the TOP most probable tokens of each row."""
    z = relative(z)
    top = np.sort(np.argsort(-z, axis=-1, kind="stable")[:, :TOP], axis=-1)
    finite = np.isfinite(z)
    scale = np.where(finite, -z, 0).max(axis=-1)
    share = np.where(finite, -z, 0) / np.where(scale > 0, scale, 1)[:, None]
    code = np.where(finite, np.rint(LEVELS * np.sqrt(share)), 255).astype(np.uint8)
    ids = top.astype(np.uint16 if z.shape[1] <= 2**16 else np.int32)
    with np.errstate(over="ignore"):
        kept = np.take_along_axis(z, top, axis=-1).astype(np.float16)
    return {"code": code, "scale": scale.astype(np.float32), "top_ids": ids, "top": kept}


def _decode_u8(tensors: dict[str, Any]) -> Any:
    code = tensors["code"]
    levels = (np.arange(256, dtype=np.float64) / LEVELS) ** 2
    gaps = (levels[None, :] * tensors["scale"].astype(np.float64)[:, None]).astype(np.float32)
    z = -np.take_along_axis(gaps, code.astype(np.intp), axis=-1)
    z[code == 255] = -np.inf
    np.put_along_axis(z, tensors["top_ids"].astype(np.intp), tensors["top"].astype(np.float32), axis=-1)
    return z


ENCODINGS = {"f16-rel": Encoding(_encode_f16, _decode_f16), "u8sqrt-top256": Encoding(_encode_u8, _decode_u8)}


def encoding(name: str) -> Encoding:
    """The encoding called `name`. Raises UsageError."""
    if name not in ENCODINGS:
        raise UsageError(f"encoding {name!r} is unknown: choose one of {', '.join(ENCODINGS)}")
    return ENCODINGS[name]


def stored(z: Any, name: str) -> Any:
    """Logits (n, V) as they come back from the file: what a draft must be drawn from. Raises UsageError."""
    chosen = encoding(name)
    return chosen.decode(chosen.encode(z))
