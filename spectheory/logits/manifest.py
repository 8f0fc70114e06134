"""The manifest of a recording: what was recorded, by whom, and which shards hold it. Files are replaced, never edited."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from ..errors import DataError
from .encoding import ENCODINGS

NAME, TEXTS = "manifest.json", "texts.json"
FORMAT, VERSION = "spectheory-logits", 1
SHARD_ROWS = 64  # no shard holds more positions than this, bonus positions included

# Every key of a manifest with its default; the how-to page "dump logits from your engine" explains them.
DEFAULTS: dict[str, Any] = {
    "format": FORMAT,
    "format_version": VERSION,
    "encoding": "f16-rel",
    "vocab_size": None,
    "block_size": None,
    "blocks_per_request": None,
    "bonus": True,
    "models": {},
    "tokenizer": None,
    "device": None,
    "settings": {"temperature": 1.0},
    "dtype_origin": "float32",
    "tv_floor": None,
    "rounding": {},
    "draft_mode": None,
    "advance": None,
    "seed": None,
    "eos_ids": [],
    "draft_to_target": None,
    "requests": [],
    "shards": [],
    "complete": False,
}


def load(directory: Path) -> dict[str, Any]:
    """The checked manifest in `directory`. Raises DataError naming the file and the key."""
    path = directory / NAME
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file: {directory} is not a recording") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot read it as JSON: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise DataError(f"{path}: not the manifest of a {FORMAT} recording")
    if data.get("format_version") != VERSION:
        raise DataError(f"{path}: format_version {data.get('format_version')} is not {VERSION}")
    known = (*ENCODINGS, "truncated")
    if data.get("encoding") not in known:
        raise DataError(f"{path}: encoding {data.get('encoding')!r} is unknown: this version reads {', '.join(known)}")
    whole = {**DEFAULTS, **data}
    if not isinstance(whole["vocab_size"], int) or whole["vocab_size"] < 1:
        raise DataError(f"{path}: vocab_size {whole['vocab_size']!r} is not a number of tokens")
    for i, shard in enumerate(whole["shards"]):
        if not isinstance(shard, dict) or not {"file", "blocks", "rows"} <= set(shard):
            raise DataError(f"{path}: shard {i} needs file, blocks and rows")
    return whole


def save(directory: Path, manifest: dict[str, Any]) -> None:
    text = json.dumps(manifest, indent=1, allow_nan=False)
    lists = re.sub(r"\[[\s\d.,e+-]*\]", lambda m: " ".join(m.group().split()), text)  # token lists on one line
    replace(directory / NAME, lists.encode())


def replace(path: Path, content: bytes) -> None:
    """Write under a temporary name, then rename: a reader sees the old file or the new one. Raises OSError."""
    temporary = path.with_name(path.name + ".part")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
