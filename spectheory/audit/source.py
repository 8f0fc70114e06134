"""Where rows come from: a recording, the embedded sample, or any iterable of blocks; shard by shard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..protocols import Block

EMBEDDED = "embedded sample"
# What a report keeps of a manifest: what was recorded and how, not the prompts.
KEPT = ("models", "tokenizer", "device", "settings", "encoding", "dtype_origin", "tv_floor", "draft_mode", "advance")


@dataclass
class Source:
    """`name`, `manifest`, shard names; `blocks(i)` streams shard i; `errors` are those of the shard read last."""

    name: str
    manifest: Mapping[str, Any]
    shards: list[str]
    reader: Any
    warped: bool  # the laws already follow the request's settings

    @property
    def texts(self) -> Mapping[int, str]:
        return getattr(self.reader, "texts", None) or {}

    @property
    def errors(self) -> list[dict[str, Any]]:
        return [_named(e) for e in getattr(self.reader, "errors", [])]

    def blocks(self, shard: int) -> Iterator[Block]:
        whole = getattr(self.reader, "blocks", None)
        return iter(self.reader) if whole is None else whole(shard)

    def fingerprint(self, shard: int) -> Any:
        """Identity of a shard's contents and of what the manifest says of it; None where it has none: not cached then."""
        entries = self.manifest.get("shards") or []
        entry = entries[shard] if shard < len(entries) and isinstance(entries[shard], Mapping) else {}
        kept = [self.manifest.get(k) for k in ("settings", "eos_ids", "draft_mode", "tv_floor", "draft_to_target")]
        return [self.shards[shard], entry["sha256"], kept] if "sha256" in entry else None

    def unfinished(self) -> list[dict[str, Any]]:
        """The recording's own defect, if its extraction was cut short."""
        if self.manifest.get("complete", True):
            return []
        cause = f"the recording is unfinished: it stopped after {len(self.shards)} shards; extract again to resume it"
        return [{"shard": "manifest.json", "row": None, "cause": cause}]

    def spec(self) -> dict[str, Any]:
        """What the report says of the source."""
        return {"name": self.name, **{k: self.manifest[k] for k in KEPT if self.manifest.get(k) is not None}}


def open_source(source: Any, request: Mapping[str, Any]) -> Source:
    """A path to a recording, None for the embedded sample, a reader, or any iterable of blocks. Raises DataError.

    Settings in `request` override the recorded ones; those not named stay as recorded.
    """
    from .. import logits

    if source is None or isinstance(source, str | Path):
        reader = logits.read(logits.SAMPLE if source is None else source, strict=False)
        name = EMBEDDED if source is None else str(source)
        reader.settings = {**reader.settings, **request}
        return Source(name, {**reader.manifest, "settings": reader.settings}, list(reader.shards), reader, True)
    if not isinstance(source, Iterable):
        raise DataError(f"the source must be a path, a reader or an iterable of blocks, not {type(source).__name__}")
    manifest = dict(getattr(source, "manifest", None) or {})
    shards = list(source.shards) if hasattr(source, "shards") and hasattr(source, "blocks") else [""]
    return Source(str(getattr(source, "path", type(source).__name__)), manifest, shards, source, False)


def _named(error: Any) -> dict[str, Any]:
    """A reader's error as the report lists it."""
    if isinstance(error, Mapping):
        return {
            "shard": str(error.get("file", error.get("shard", ""))),
            "row": error.get("row"),
            "cause": str(error["cause"]),
        }
    return {"shard": "", "row": None, "cause": str(error)}
