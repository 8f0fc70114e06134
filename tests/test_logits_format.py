"""The recorded format: round trips, streaming, encodings."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from spectheory import Block, DataError, Truncated, UsageError, logits, pmf
from spectheory.logits import manifest as manifests
from spectheory.logits.encoding import ENCODINGS, TOP, stored
from spectheory.logits.writer import Recorder


def make_blocks(count: int, size: int = 4, vocab: int = 300, seed: int = 0) -> list[Block]:
    rng = np.random.default_rng(seed)
    blocks = []
    for b in range(count):
        z, w = 4 * rng.normal(size=(size + 1, vocab)), 4 * rng.normal(size=(size, vocab))
        info = {"request": f"r{b // 5}", "position": 10 + b}
        blocks.append(Block(rng.integers(vocab, size=size), pmf.softmax(z), pmf.softmax(w), z, info=info))
    return blocks


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    logits.write(make_blocks(30), tmp_path / "rec")
    return tmp_path / "rec"


# Degenerate first.


def test_nothing_to_write(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no blocks"):
        logits.write([], tmp_path / "rec")


@pytest.mark.parametrize("name", ENCODINGS)
def test_one_token_and_no_drafts(tmp_path: Path, name: str) -> None:
    blocks = [Block([0], np.ones((2, 1)), np.ones((1, 1))), Block([], np.ones((1, 1)), np.ones((0, 1)))]
    logits.write(blocks, tmp_path / name, encoding=name)
    one, none = logits.read(tmp_path / name)
    assert one.p.tolist() == [[1], [1]]
    assert one.q.tolist() == [[1]]
    assert none.size == 0
    assert none.q.shape == (0, 1)


@pytest.mark.parametrize("name", ENCODINGS)
def test_impossible_tokens_stay_impossible(name: str) -> None:
    z = np.full((2, 600), -np.inf)
    z[0, 7], z[1, 100:500] = 3.0, np.linspace(-50, 1, 400)
    back = stored(z, name)
    assert (np.isneginf(back) == np.isneginf(z)).all()
    assert back.max(axis=-1).tolist() == [0, 0]


# The encodings.


@given(some.integers(0, 2**32 - 1), some.integers(1, 700), some.sampled_from([0.1, 3.0, 30.0]))
@settings(max_examples=60, deadline=None)
def test_encoding_errors_are_bounded(seed: int, vocab: int, scale: float) -> None:
    z = scale * np.random.default_rng(seed).normal(size=(3, vocab)) + 1000
    gap = z.max(axis=-1, keepdims=True) - z
    half = np.abs(stored(z, "f16-rel") + gap)
    assert (half <= gap * 2.0**-11 * (1 + 1e-3) + 2.0**-25).all()  # half a unit of float16, subnormal near 0
    code = np.abs(stored(z, "u8sqrt-top256") + gap)
    # The root of the gap moves by at most h, half a level: the gap by at most 2 sqrt(gap) h + h^2.
    h = np.sqrt(gap.max(axis=-1, keepdims=True)) / 508
    best = np.argsort(gap, axis=-1, kind="stable")[:, : min(TOP, vocab)]
    rest = np.ones_like(gap, dtype=bool)
    np.put_along_axis(rest, best, False, axis=-1)
    assert (code <= 2 * np.sqrt(gap) * h + h**2 + 1e-5 * gap)[rest].all()
    assert (np.take_along_axis(code, best, -1) == np.take_along_axis(half, best, -1)).all()


def test_f16_rewritten_is_unchanged(recording: Path, tmp_path: Path) -> None:
    logits.write(logits.read(recording), tmp_path / "again")
    for name in logits.read(recording).shards:
        assert (recording / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


# The stream.


def test_blocks_come_back(recording: Path) -> None:
    reader, blocks = logits.read(recording), make_blocks(30)
    assert len(reader) == 30
    for _ in range(2):  # re-iterable
        back = list(reader)
        assert len(back) == 30
        for old, new in zip(blocks, back):
            assert new.tokens.tolist() == old.tokens.tolist()
            assert pmf.total_variation(old.p, new.p).max() < 2e-3
            assert pmf.total_variation(old.q, new.q).max() < 2e-3
            assert (new.p == pmf.softmax(new.logits)).all()
            assert (new.info["request"], new.info["position"]) == (old.info["request"], old.info["position"])


def test_shards_hold_at_most_64_rows(recording: Path) -> None:
    reader = logits.read(recording)
    assert [(s["blocks"], s["rows"]) for s in reader.manifest["shards"]] == [(12, 60), (12, 60), (6, 30)]
    apart = [b.info["block"] for i in range(3) for b in reader.blocks(i)]
    assert apart == [b.info["block"] for b in reader] == list(range(30))
    assert [b.info["rows"] for b in reader.blocks(2)][:2] == [(0, 5), (5, 10)]
    with pytest.raises(UsageError, match="64"):
        logits.write(make_blocks(1, size=64, vocab=3), recording.parent / "long")


def test_blocks_of_different_lengths(tmp_path: Path) -> None:
    blocks = [make_blocks(1, size=k, vocab=20, seed=k)[0] for k in (1, 5, 0, 3)]
    logits.write(blocks, tmp_path / "rec")
    back = list(logits.read(tmp_path / "rec"))
    assert [b.size for b in back] == [1, 5, 0, 3]
    assert [b.info["rows"] for b in back] == [(0, 2), (2, 8), (8, 9), (9, 13)]
    assert all(pmf.total_variation(a.p, b.p).max() < 2e-3 for a, b in zip(blocks, back))


def test_settings_apply_to_both_sides(recording: Path) -> None:
    cold, raw = next(iter(logits.read(recording, temperature=0.5, top_k=3))), next(iter(logits.read(recording)))
    assert np.allclose(cold.p, pmf.warp(raw.logits, temperature=0.5, top_k=3), atol=1e-15)
    assert ((cold.q > 0).sum(axis=-1) == 3).all()


def test_rounding_is_measured_against_the_original(tmp_path: Path) -> None:
    blocks = make_blocks(13, vocab=900)
    logits.write(blocks, tmp_path / "rec", encoding="u8sqrt-top256")
    reader = logits.read(tmp_path / "rec")
    errors = [pmf.total_variation(x, y) for a, b in zip(blocks, reader) for x, y in ((a.p, b.p), (a.q, b.q))]
    measured = reader.manifest["rounding"]["against_origin"]
    assert measured["laws"] == 13 * 9
    assert measured["tv_mean"] == pytest.approx(np.concatenate(errors).mean(), rel=1e-9)
    assert measured["tv_max"] == pytest.approx(np.concatenate(errors).max(), rel=1e-9)
    assert reader.manifest["tv_floor"] >= measured["tv_max"]


def test_float16_logits_have_a_higher_floor(tmp_path: Path) -> None:
    for dtype in ("float32", "float16"):
        logits.write(make_blocks(3), tmp_path / dtype, dtype_origin=dtype)
    floors = [logits.read(tmp_path / dtype).manifest["tv_floor"] for dtype in ("float32", "float16")]
    assert floors[1] > floors[0] + 1e-4


def test_truncated_rows(tmp_path: Path) -> None:
    def rows(width: int) -> Truncated:
        ids = np.arange(width)[None] + np.array([[0], [3]])
        p, q = np.full((2, width), 0.5 / width), np.full((2, width), 0.4 / width)
        q[0, 0] = np.nan
        tail = np.array([0.5, 0.5])
        return Truncated(ids, p, q, tail, tail, tail / 9, tail / 9)

    blocks = [Block([3, 4], truncated=rows(w)) for w in (4, 7)]
    with pytest.raises(UsageError, match="vocab_size"):
        logits.write(blocks, tmp_path / "rec")
    logits.write(blocks, tmp_path / "rec", vocab_size=50)
    back = [b.truncated for b in logits.read(tmp_path / "rec")]
    for old, new in zip((b.truncated for b in blocks), back):
        width = old.ids.shape[1]
        assert (new.ids[:, :width] == old.ids).all()
        assert (new.ids[:, width:] == -1).all()
        for bound in (pmf.truncated_total_variation, pmf.truncated_kl):
            assert np.allclose(np.array(bound(old)), np.array(bound(new)), atol=1e-15)


def test_memory_does_not_grow_with_the_recording(tmp_path: Path) -> None:
    peaks = []
    for count in (24, 240):
        logits.write(make_blocks(count, vocab=4000), tmp_path / str(count))
        tracemalloc.start()
        assert sum(1 for _ in logits.read(tmp_path / str(count))) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]


def test_draft_map_is_applied(tmp_path: Path) -> None:
    z, w = np.zeros((2, 5)), np.log([[0.5, 0.25, 0.25]])
    recorder = Recorder(tmp_path / "rec", draft_to_target=[4, 1, 4], block_size=1)
    recorder.add([4], z, w)
    recorder.close()
    (block,) = logits.read(tmp_path / "rec")
    assert np.allclose(block.q, [[0, 0.25, 0, 0, 0.75]], atol=1e-4)
    recorder = Recorder(tmp_path / "bad", draft_to_target=[4, 1, 4], block_size=1)
    recorder.add([2], z, w)
    recorder.close()
    with pytest.raises(DataError, match=r"drafted token 2 .* draft probability 0"):
        list(logits.read(tmp_path / "bad"))


def test_manifest_has_every_key_and_no_temporary_file_remains(recording: Path) -> None:
    assert not [f for f in recording.iterdir() if f.suffix == ".part"]
    assert set(json.loads((recording / "manifest.json").read_text())) == set(manifests.DEFAULTS)


# The embedded sample.


def test_sample_is_what_it_says() -> None:
    reader = logits.sample()
    blocks = list(reader)
    assert len(blocks) >= 8
    assert len({b.info["request"] for b in blocks}) >= 8
    assert {(b.p.shape, b.q.shape) for b in blocks} == {((5, 49_152), (4, 49_152))}
    assert sum(f.stat().st_size for f in logits.SAMPLE.iterdir()) <= 3_800_000
    assert reader.manifest["encoding"] == "u8sqrt-top256"
    assert 0 < reader.manifest["rounding"]["against_f16"]["tv_max"] < 5e-3
    assert all(text for b in blocks for text in b.info["texts"])
    assert all("\N{REPLACEMENT CHARACTER}" not in b.info["context"] for b in blocks)


def test_greedy_sample_is_a_strict_path() -> None:
    found = logits.greedy_sample()
    assert len(found.request) >= 256
    match = found.tokens == found.top_id[:, :-1]
    assert (found.drafted_logit[match] == 0).all()
    assert (found.drafted_logit <= 0).all()
    assert (found.log_top < 0).all()
    accepted = np.cumprod(match, axis=1).sum(axis=1)
    follows = found.request[1:] == found.request[:-1]
    assert (np.diff(found.position)[follows] == accepted[:-1][follows] + 1).all()


def test_scores_of_a_recording(recording: Path, tmp_path: Path) -> None:
    found = logits.scores(logits.read(recording))
    for b, block in enumerate(logits.read(recording)):
        regret = block.logits[:4].max(axis=-1) - block.logits[np.arange(4), block.tokens]
        assert (found.drafted_logit[b] == -regret).all()
        assert (found.top_id[b] == block.logits.argmax(axis=-1)).all()
        assert np.allclose(found.log_top[b], np.log(block.p.max(axis=-1)), atol=1e-14)
    logits.save_scores(found, tmp_path / "s.npz")
    again = logits.load_scores(tmp_path / "s.npz")
    assert all((np.asarray(x) == np.asarray(y)).all() for x, y in zip(found[:-1], again[:-1]))
    logits.save_scores(
        found._replace(drafted_logit=np.where(found.tokens == found.tokens[3, 1], np.nan, 0.0)), tmp_path / "n.npz"
    )
    with pytest.raises(DataError, match=r"n.npz: block \d+, position \d: drafted_logit nan"):
        logits.load_scores(tmp_path / "n.npz")
    logits.save_scores(found._replace(top_id=found.top_id[:, 1:]), tmp_path / "n.npz")
    with pytest.raises(DataError, match=r"top_id has shape \(30, 4\), its tokens ask for \(30, 5\)"):
        logits.load_scores(tmp_path / "n.npz")
    (tmp_path / "n.npz").write_bytes(b"PK")
    with pytest.raises(DataError, match="not a readable file of compact scores"):
        logits.load_scores(tmp_path / "n.npz")
