"""Broken recordings: one line that names file, row and cause; the good rows are still there."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save
from test_logits_format import make_blocks

from spectheory import Block, DataError, Truncated, UsageError, logits, pmf
from spectheory.logits.writer import Recorder

SECOND = "shard-00001.safetensors"


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    logits.write(make_blocks(30), tmp_path / "rec")
    return tmp_path / "rec"


def damage(recording: Path, edit: dict[str, object]) -> None:
    """Rewrite the second shard with some tensors replaced, and its checksum with it."""
    tensors = {**load_file(recording / SECOND), **edit}
    content = save({k: v for k, v in tensors.items() if v is not None})
    (recording / SECOND).write_bytes(content)
    manifest = json.loads((recording / "manifest.json").read_text())
    manifest["shards"][1]["sha256"] = hashlib.sha256(content).hexdigest()
    (recording / "manifest.json").write_text(json.dumps(manifest))


def expect(recording: Path, cause: str, good: int, row: int | None = None) -> None:
    with pytest.raises(DataError, match=f"{SECOND}.*{cause}") as caught:
        list(logits.read(recording))
    assert "\n" not in str(caught.value)
    reader = logits.read(recording, strict=False)
    for _ in range(2):  # a second pass reports the same, once
        assert len(list(reader)) == good
        assert [(e["file"], e["row"]) for e in reader.errors] == [(SECOND, row)]


def test_missing_shard(recording: Path) -> None:
    (recording / SECOND).unlink()
    expect(recording, "no such file", 18)


@pytest.mark.parametrize("keep", [0, 5, 1000, -1])
def test_cut_shard(recording: Path, keep: int) -> None:
    (recording / SECOND).write_bytes((recording / SECOND).read_bytes()[:keep])
    expect(recording, "corrupt", 18)


def test_flipped_bit(recording: Path) -> None:
    content = bytearray((recording / SECOND).read_bytes())
    content[len(content) // 2] ^= 1
    (recording / SECOND).write_bytes(content)
    expect(recording, "corrupt", 18)


def test_no_safetensors_at_all(recording: Path) -> None:
    manifest = json.loads((recording / "manifest.json").read_text())
    del manifest["shards"][1]["sha256"]
    (recording / "manifest.json").write_text(json.dumps(manifest))
    (recording / SECOND).write_bytes(b"not a tensor file")
    expect(recording, "not a readable safetensors", 18)


def test_manifest_disagrees(recording: Path) -> None:
    good = load_file(recording / SECOND)
    damage(recording, {"target.logits": np.zeros((60, 299), np.float16)})
    expect(recording, r"target.logits has shape \(60, 299\), the manifest says \(60, 300\)", 18)
    damage(recording, {"target.logits": np.zeros((59, 300), np.float16)})
    expect(recording, r"target.logits has shape \(59, 300\)", 18)
    damage(recording, {"target.logits": good["target.logits"], "size": np.full(11, 4, np.int32)})
    expect(recording, "11 blocks of 55 rows, the manifest says 12 of 60", 18)
    damage(recording, {"size": good["size"], "draft.logits": None})
    expect(recording, "draft.logits is missing", 18)


def test_bad_rows_inside_a_shard(recording: Path) -> None:
    good = load_file(recording / SECOND)
    z = good["target.logits"].copy()
    z[12, 5] = np.nan
    damage(recording, {"target.logits": z})
    expect(recording, "block 14: position 2: target token 5 is NaN", 29, row=12)
    tokens = good["tokens"].copy()
    tokens[6] = -1
    damage(recording, {"target.logits": good["target.logits"], "tokens": tokens})
    expect(recording, r"block 13: position 2: drafted token is -1, outside \[0, 300\)", 29, row=7)
    w = good["draft.logits"].copy()
    w[3, good["tokens"][3]] = -np.inf
    damage(recording, {"tokens": good["tokens"], "draft.logits": w})
    expect(recording, "block 12: position 3: drafted token .* has draft probability 0", 29, row=3)


def test_codes_that_cannot_be_decoded(tmp_path: Path) -> None:
    logits.write(make_blocks(30), tmp_path / "rec", encoding="u8sqrt-top256")
    ids = load_file(tmp_path / "rec" / SECOND)["draft.top_ids"]
    ids[9, 0] = 300
    damage(tmp_path / "rec", {"draft.top_ids": ids})
    expect(tmp_path / "rec", "block 14: cannot be decoded as u8sqrt-top256: index 300", 29, row=10)


def test_impossible_truncated_rows(tmp_path: Path) -> None:
    def rows() -> Truncated:
        half = np.full(4, 0.5)
        return Truncated(
            np.arange(8).reshape(4, 2), np.full((4, 2), 0.25), np.full((4, 2), 0.25), half, half, half, half
        )

    logits.write([Block([0, 2, 4, 6], truncated=rows()) for _ in range(20)], tmp_path / "rec", vocab_size=9)
    good = load_file(tmp_path / "rec" / SECOND)
    for name, value, cause in (("ids", 9, "token id is outside"), ("q_tail", np.nan, "q_tail has a value outside")):
        bad = good[f"truncated.{name}"].copy()
        bad[6] = value
        damage(tmp_path / "rec", {**good, f"truncated.{name}": bad})
        expect(tmp_path / "rec", f"block 17: position 2: .*{cause}", 19, row=6)


def test_unknown_encoding_and_broken_manifests(recording: Path, tmp_path: Path) -> None:
    file = recording / "manifest.json"
    manifest = json.loads(file.read_text())
    for change, cause in (
        ({"encoding": "f8-magic"}, "encoding 'f8-magic' is unknown: this version reads f16-rel"),
        ({"format_version": 9}, "format_version 9"),
        ({"format": "else"}, "not the manifest"),
        ({"vocab_size": "many"}, "vocab_size 'many'"),
        ({"shards": [{"file": "x"}]}, "shard 0 needs file, blocks and rows"),
    ):
        file.write_text(json.dumps({**manifest, **change}))
        with pytest.raises(DataError, match=f"manifest.json: .*{cause}"):
            logits.read(recording)
    file.write_text("{half a mani")
    with pytest.raises(DataError, match=r"manifest.json: cannot read it as JSON"):
        logits.read(recording)
    with pytest.raises(DataError, match="is not a recording"):
        logits.read(tmp_path / "nowhere")


def test_half_written_recording(tmp_path: Path) -> None:
    bad = make_blocks(30)
    bad[26] = Block([1], np.full((2, 300), np.nan), np.ones((1, 300)) / 300)
    with pytest.raises(DataError, match=r"block 26: p row 0, token 0 is NaN"):
        logits.write(bad, tmp_path / "rec")
    with pytest.raises(DataError, match=r"manifest.json: the recording stopped after 26 blocks"):
        list(logits.read(tmp_path / "rec"))
    reader = logits.read(tmp_path / "rec", strict=False)
    assert len(list(reader)) == 26
    assert [e["file"] for e in reader.errors] == ["manifest.json"]


def test_existing_recordings_are_never_overwritten(recording: Path) -> None:
    with pytest.raises(UsageError, match="already holds a recording of 30 blocks"):
        logits.write(make_blocks(2), recording)
    with pytest.raises(UsageError, match="its encoding is 'f16-rel', not 'u8sqrt-top256'"):
        Recorder(recording, resume=True, encoding="u8sqrt-top256")
    assert len(list(logits.read(recording))) == 30


def test_mismatched_vocabularies(tmp_path: Path) -> None:
    block = make_blocks(1)[0]
    narrow = pmf.softmax(np.zeros((4, 299)))
    with pytest.raises(DataError, match=r"block 0: .*target rows of 300 tokens and draft rows of 299"):
        logits.write([Block(block.tokens, block.p, narrow)], tmp_path / "a")
    with pytest.raises(DataError, match=r"block 1: .*vocabulary of 300"):
        logits.write([block, make_blocks(1, vocab=301)[0]], tmp_path / "b")
    with pytest.raises(UsageError, match="a manifest has no vocabulary"):
        logits.write([block], tmp_path / "c", vocabulary=300)


def test_full_disk_keeps_what_is_written(tmp_path: Path) -> None:
    """A file-size limit stops the second shard as a full disk would; the first stays, and a rerun completes."""
    code = """
import resource, sys
sys.path.insert(0, sys.argv[2])
from test_logits_format import make_blocks
from spectheory.logits.writer import Recorder
import numpy as np
recorder = Recorder(sys.argv[1], block_size=4)
for i, b in enumerate(make_blocks(30)):
    if i == 20:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
    recorder.add(b.tokens, b.logits, np.log(b.q), 0, i)
recorder.close()
"""
    where = str(tmp_path / "rec")
    run = subprocess.run([sys.executable, "-c", code, where, os.path.dirname(__file__)], capture_output=True, text=True)
    line = run.stderr.strip().splitlines()[-1]
    assert f"{SECOND}: cannot write blocks 12 to 23: File too large" in line
    assert "the 12 blocks before them are safe" in line
    assert sorted(f.name for f in (tmp_path / "rec").iterdir()) == ["manifest.json", "shard-00000.safetensors"]
    assert len(list(logits.read(where, strict=False))) == 12
    recorder = Recorder(where, resume=True, block_size=4)
    for i, b in enumerate(make_blocks(30)[recorder.blocks :], recorder.blocks):
        recorder.add(b.tokens, b.logits, np.log(b.q), 0, i)
    recorder.close()
    assert [b.info["position"] for b in logits.read(where)] == list(range(30))


def test_unwritable_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="cannot create"):
        logits.write(make_blocks(1), tmp_path / "file" / "rec")
