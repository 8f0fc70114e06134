"""Recorded logits: the format, a streaming reader, a writer, imports, extraction and an embedded sample."""

from __future__ import annotations

from pathlib import Path

from .foreign import import_top_logprobs
from .reader import Reader, Rows, read
from .scores import Scores, load_scores, save_scores, scores
from .writer import Recorder, write

SAMPLE = Path(__file__).parent / "sample"
PROMPTS = Path(__file__).parent / "prompts.txt"  # 40 prompts of our own wording: 24 to continue, 16 in chat markup


def sample() -> Reader:
    """The embedded sample: real blocks of SmolLM2-135M-Instruct drafted by itself without layers 16, 17, 18.

    At least 8 blocks of 4 over the full vocabulary of 49,152; its rounding against float16 is in `manifest["rounding"]`.
    """
    return read(SAMPLE)


def greedy_sample() -> Scores:
    """Embedded compact scores of blocks of 8 greedy drafts along the strict greedy path; fields as `Scores` says.

    At least 256 blocks of the pair of `sample`, up to 16 consecutive ones in a request.
    """
    return load_scores(SAMPLE / "greedy.npz")


__all__ = [
    "PROMPTS",
    "Reader",
    "Recorder",
    "Rows",
    "Scores",
    "greedy_sample",
    "import_top_logprobs",
    "load_scores",
    "read",
    "sample",
    "save_scores",
    "scores",
    "write",
]
