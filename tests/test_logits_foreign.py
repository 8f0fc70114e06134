"""Recordings of others: plain .npz files read in place, top-20 dumps as truncated rows."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory import DataError, logits, pmf, verifiers


def arrays(count: int = 30, size: int = 4, vocab: int = 200, dtype: Any = np.float32) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    target = (5 * rng.normal(size=(count, size + 1, vocab)) + 3).astype(dtype)
    draft = (5 * rng.normal(size=(count, size, vocab)) - 8).astype(dtype)
    return {"target": target, "draft": draft, "tokens": rng.integers(vocab, size=(count, size))}


def same(z: Any, p: Any) -> None:
    assert np.max(pmf.total_variation(pmf.softmax(z.astype(float)), p)) < 1e-6


# Plain .npz.


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_npz_is_read_in_place(tmp_path: Path, save: Any, dtype: Any) -> None:
    data = arrays(dtype=dtype)
    save(tmp_path / "dump.npz", **data)
    reader = logits.read(tmp_path / "dump.npz")
    assert len(reader) == 30
    assert reader.manifest["dtype_origin"] == np.dtype(dtype).name
    assert [s["rows"] for s in reader.manifest["shards"]] == [60, 60, 30]
    for _ in range(2):
        for b, block in enumerate(reader):
            same(data["target"][b], block.p)
            same(data["draft"][b], block.q)
            assert block.tokens.tolist() == data["tokens"][b].tolist()
    last = next(reader.blocks(2))  # out of order
    same(data["target"][24], last.p)
    assert (last.info["file"], last.info["block"]) == ("dump.npz[120:150]", 24)


def test_npz_becomes_a_recording(tmp_path: Path) -> None:
    np.savez(tmp_path / "dump.npz", **arrays(), request=np.arange(30) // 4, position=np.arange(30))
    logits.write(logits.read(tmp_path / "dump.npz"), tmp_path / "rec")
    for old, new in zip(logits.read(tmp_path / "dump.npz"), logits.read(tmp_path / "rec"), strict=True):
        assert pmf.total_variation(old.p, new.p).max() < 2e-3
        assert pmf.total_variation(old.q, new.q).max() < 2e-3
        assert [old.info[k] for k in ("request", "position")] == [new.info[k] for k in ("request", "position")]


def test_npz_of_one_block_and_of_single_rows(tmp_path: Path) -> None:
    data = arrays(1)
    np.savez(tmp_path / "one.npz", **{k: v[0] for k, v in data.items()})
    (block,) = logits.read(tmp_path / "one.npz")
    assert (block.size, block.p.shape) == (4, (5, 200))
    np.savez(tmp_path / "rows.npz", target=data["target"][0][:4], draft=data["draft"][0], tokens=data["tokens"][0])
    blocks = list(logits.read(tmp_path / "rows.npz"))
    assert [(b.size, b.p.shape) for b in blocks] == [(1, (1, 200))] * 4
    for i, block in enumerate(blocks):
        same(data["target"][0][i], block.p[0])
    with pytest.raises(DataError, match="needs p"):  # without a bonus row there is nothing to emit after the block
        verifiers.Standard().verify(blocks[0], None, np.random.default_rng(0))


def test_npz_extras(tmp_path: Path) -> None:
    data = arrays(3)
    data["target"][..., 190:] = 50  # unmasked padding
    data["draft"] = data["draft"][..., :3]
    data["tokens"] = np.full((3, 4), 7)
    extras = {"vocab_size": 190, "draft_to_target": [7, 9, 7], "request": [4, 4, 5], "position": [10, 12, 3]}
    np.savez(tmp_path / "dump.npz", **data, **extras)
    blocks = list(logits.read(tmp_path / "dump.npz"))
    assert [(b.info["request"], b.info["position"]) for b in blocks] == [(4, 10), (4, 12), (5, 3)]
    for b, block in enumerate(blocks):
        same(data["target"][b, :, :190], block.p)
        narrow = pmf.softmax(data["draft"][b].astype(float))
        assert np.allclose(block.q[:, 7], narrow[:, 0] + narrow[:, 2], atol=1e-6)
        assert np.allclose(block.q[:, 9], narrow[:, 1], atol=1e-6)


def test_npz_states_what_rounding_can_have_cost(tmp_path: Path) -> None:
    """The floor covers what rounding the logits to the original precision really does to these laws."""
    data = arrays(12, dtype=np.float64)
    half = {**data, "target": data["target"].astype(np.float16)}
    np.savez(tmp_path / "half.npz", **half)
    reader = logits.read(tmp_path / "half.npz")
    moved = [pmf.total_variation(pmf.softmax(data["target"][b]), block.p).max() for b, block in enumerate(reader)]
    assert max(moved) <= reader.manifest["tv_floor"] < 20 * max(moved)
    np.savez(tmp_path / "brain.npz", **half, dtype_origin="bfloat16")
    assert logits.read(tmp_path / "brain.npz").manifest["tv_floor"] == 8 * reader.manifest["tv_floor"]
    np.savez(tmp_path / "odd.npz", **half, dtype_origin="int4")
    with pytest.raises(DataError, match=r"odd.npz: dtype_origin 'int4' is none of"):
        logits.read(tmp_path / "odd.npz")


def test_npz_keeps_flat_memory(tmp_path: Path) -> None:
    peaks = []
    for count in (24, 240):
        np.savez_compressed(tmp_path / "dump.npz", **arrays(count, vocab=2000))
        tracemalloc.start()
        assert sum(1 for _ in logits.read(tmp_path / "dump.npz")) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]


def test_npz_with_one_bad_row(tmp_path: Path) -> None:
    data = arrays()
    data["draft"][13, 2, 5] = np.nan
    data["tokens"][20, 1] = 200
    np.savez(tmp_path / "dump.npz", **data)
    with pytest.raises(DataError, match=r"dump.npz\[60:120\]: row 7: block 13: position 2: draft token 5 is NaN"):
        list(logits.read(tmp_path / "dump.npz"))
    reader = logits.read(tmp_path / "dump.npz", strict=False)
    blocks = list(reader)
    assert [b.info["block"] for b in blocks] == [b for b in range(30) if b not in (13, 20)]
    assert [(e["file"], e["row"]) for e in reader.errors] == [("dump.npz[60:120]", 7), ("dump.npz[60:120]", 41)]
    same(data["target"][14], blocks[13].p)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"target": None}, "no array 'target'"),
        ({"tokens": None}, "no array 'tokens'"),
        ({"tokens": np.zeros((30, 4))}, "tokens must be whole numbers"),
        ({"tokens": np.zeros((30, 3), int)}, "do not fit"),
        ({"draft": np.zeros((29, 4, 200), np.float32)}, "do not fit"),
        ({"draft": np.zeros((30, 4, 199), np.float32)}, "target rows of 200 tokens and draft rows of 199"),
        ({"target": np.zeros((30, 5, 200), int)}, "must be a C-ordered float array"),
        ({"target": np.asfortranarray(np.zeros((30, 5, 200)))}, "must be a C-ordered float array"),
        ({"target": np.full((30, 5, 200), 1 / 200)}, "holds probabilities"),
        ({"vocab_size": np.array(201)}, "do not match"),
    ],
)
def test_npz_that_does_not_fit(tmp_path: Path, change: dict[str, Any], cause: str) -> None:
    whole = {k: v for k, v in {**arrays(), **change}.items() if v is not None}
    np.savez(tmp_path / "dump.npz", **whole)
    with pytest.raises(DataError, match=f"dump.npz.*{cause}"):
        list(logits.read(tmp_path / "dump.npz"))


def test_npz_cut_short(tmp_path: Path) -> None:
    np.savez(tmp_path / "dump.npz", **arrays())
    content = (tmp_path / "dump.npz").read_bytes()
    (tmp_path / "dump.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"dump.npz: not a readable .npz"):
        logits.read(tmp_path / "dump.npz")


def test_npz_with_a_flipped_byte(tmp_path: Path) -> None:
    """The checksum inside the archive speaks when the member ends; the rows before are reported."""
    np.savez(tmp_path / "dump.npz", **arrays())
    content = bytearray((tmp_path / "dump.npz").read_bytes())
    content[content.index(b"target.npy") + 60_000] ^= 1
    (tmp_path / "dump.npz").write_bytes(content)
    reader = logits.read(tmp_path / "dump.npz", strict=False)
    assert len(list(reader)) < 30
    assert "target" in reader.errors[0]["cause"]


# Top-20 log-probabilities.


def dump(path: Path, count: int = 6, size: int = 3, vocab: int = 400) -> tuple[list[Any], list[Any]]:
    """A dump as engines write it (the drafted token is appended where it is not in the top 20), and the full laws."""
    data, lines, laws = arrays(count, size, vocab), [], []
    for b in range(count):
        p, q = (pmf.softmax(data[s][b].astype(float)) for s in ("target", "draft"))
        line: dict[str, Any] = {"request": b // 2, "position": b, "tokens": data["tokens"][b].tolist()}
        for side, law in (("target", p), ("draft", q)):
            rows = []
            for i, row in enumerate(law):
                keep = set(np.argsort(-row, kind="stable")[:20].tolist())
                keep |= {int(data["tokens"][b, i])} if i < size else set()
                rows.append({str(t): float(np.log(row[t])) for t in sorted(keep)})
            line[side] = rows
        lines.append(line)
        laws.append((p, q))
    path.write_text("\n".join(map(json.dumps, lines)))
    return lines, laws


def test_top_logprobs_give_certified_intervals(tmp_path: Path) -> None:
    _, laws = dump(tmp_path / "dump.jsonl")
    assert logits.import_top_logprobs(tmp_path / "dump.jsonl", tmp_path / "rec", vocab_size=400) == []
    reader = logits.read(tmp_path / "rec")
    assert (reader.manifest["encoding"], reader.vocab_size, len(reader)) == ("truncated", 400, 6)
    for block, (p, q) in zip(reader, laws, strict=True):
        rows = block.truncated
        tv, (low, high) = pmf.total_variation(p[:3], q), pmf.truncated_total_variation(rows)
        assert (low - 1e-12 <= tv).all()
        assert (tv <= high + 1e-12).all()
        for i in range(3):
            hidden = np.setdiff1d(np.arange(400), rows.ids[i][~np.isnan(rows.p[i]) & (rows.ids[i] >= 0)])
            assert p[i, hidden].max() <= rows.p_cut[i] + 1e-12
            assert p[i, hidden].sum() == pytest.approx(rows.p_tail[i], abs=1e-9)
            hidden = np.setdiff1d(np.arange(400), rows.ids[i][~np.isnan(rows.q[i]) & (rows.ids[i] >= 0)])
            assert q[i, hidden].max() <= rows.q_cut[i] + 1e-12
    assert [b.info["request"] for b in logits.read(tmp_path / "rec")] == [0, 0, 1, 1, 2, 2]


def test_top_logprobs_as_objects(tmp_path: Path) -> None:
    lines, _ = dump(tmp_path / "a.jsonl", count=2)
    wrapped = [
        {**x, **{s: [{k: {"logprob": v} for k, v in row.items()} for row in x[s]] for s in ("target", "draft")}}
        for x in lines
    ]
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, wrapped)))
    for name in "ab":
        logits.import_top_logprobs(tmp_path / f"{name}.jsonl", tmp_path / name, vocab_size=400)
    files = [(tmp_path / n / "shard-00000.safetensors").read_bytes() for n in "ab"]
    assert files[0] == files[1]


def test_bad_lines_are_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    lines, _ = dump(tmp_path / "dump.jsonl", count=8)
    lines[1]["tokens"][0] = 400
    del lines[2]["draft"]
    lines[3]["target"] = lines[3]["target"][:2]
    lines[4]["draft"][1]["7"] = 0.5
    lines[5]["target"][2]["500"] = -9.0
    lines[6]["target"][0] = {"3": None}
    text = [json.dumps(x) for x in lines]
    text[7] = text[7][:40]
    (tmp_path / "dump.jsonl").write_text("\n".join(text))
    errors = logits.import_top_logprobs(tmp_path / "dump.jsonl", tmp_path / "rec", vocab_size=400)
    assert [e["row"] for e in errors] == [1, 2, 3, 4, 5, 6, 7]
    causes = ["is 400, outside", "no 'draft'", "2 positions for 3", "more than 1", "is 500, outside", "NoneType", ""]
    assert all(cause in e["cause"] and e["file"] == "dump.jsonl" for cause, e in zip(causes, errors))
    assert len(list(logits.read(tmp_path / "rec"))) == 1
    (tmp_path / "dump.jsonl").write_text("\n".join(text[1:]))
    with pytest.raises(DataError, match="no line of it is usable: row 0"):
        logits.import_top_logprobs(tmp_path / "dump.jsonl", tmp_path / "none", vocab_size=400)
    with pytest.raises(DataError, match="cannot read it"):
        logits.import_top_logprobs(tmp_path / "nothing", tmp_path / "none", vocab_size=400)
    assert not (tmp_path / "none").exists()
