"""The torch pair as a sequence model: its cache changes nothing, its drafts are what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from tiny_llama import VOCAB, save_tiny, tiny_model

from spectheory import DataError, UsageError
from spectheory.models import causal
from spectheory.protocols import Model

MODEL = tiny_model()
FRESH = causal.Decoder(MODEL)


def plain(ids: np.ndarray, model: object = MODEL) -> np.ndarray:
    """Logits of every position by one forward pass without a cache: the reference."""
    import torch

    with torch.inference_mode():
        return model(torch.as_tensor(ids)).logits.numpy()


@given(some.data())
@settings(max_examples=40, deadline=None)
def test_cached_scores_equal_plain_ones(data: some.DataObject) -> None:
    """Any sequence of prefixes, growing, rewinding or unrelated, with any number of rows."""
    ids = some.integers(0, VOCAB - 1)
    decoder = causal.Decoder(MODEL)
    prefixes = np.array([[data.draw(ids)]])
    for _ in range(data.draw(some.integers(1, 5))):
        rows = data.draw(some.integers(1, 3))
        keep = data.draw(some.integers(0, prefixes.shape[1]))
        new = data.draw(some.lists(some.lists(ids, min_size=3, max_size=3), min_size=rows, max_size=rows))
        start = np.resize(prefixes[:, :keep], (rows, keep)) if keep else np.empty((rows, 0), int)
        prefixes = np.hstack([start, np.array(new)])
        last = data.draw(some.integers(1, prefixes.shape[1]))
        assert np.allclose(decoder.score(prefixes, last), plain(prefixes)[:, -last:], atol=2e-4)


def test_rows_can_be_reordered_and_repeated() -> None:
    decoder = causal.Decoder(MODEL)
    ids = np.array([[3, 4, 5], [6, 7, 8]])
    decoder.score(ids)
    decoder.select([1, 0, 1])
    grown = np.hstack([ids[[1, 0, 1]], [[9], [10], [11]]])
    assert np.allclose(decoder.score(grown)[:, 0], plain(grown)[:, -1], atol=2e-4)
    assert decoder._seen.shape == (3, 4)


def test_cache_is_really_used() -> None:
    """Growing by one token runs the model on one column only."""
    widths = []
    decoder = causal.Decoder(tiny_model())
    decoder.model.register_forward_pre_hook(lambda _, args: widths.append(tuple(args[0].shape)))
    decoder.score([[1, 2, 3, 4]])
    decoder.score([[1, 2, 3, 4, 5]])
    decoder.score([[1, 2, 9, 9, 9]], 2)  # rewinds to the two shared tokens
    decoder.score([[1, 2, 9, 9, 9]])  # the same prefix again costs its last position
    assert widths == [(1, 4), (1, 1), (1, 3), (1, 1)]


def test_laws_follow_the_protocol() -> None:
    pair = causal.CausalPair(tiny_model(0), tiny_model(1), prompt=[5, 6])
    assert isinstance(pair, Model)
    p, q = pair.laws(np.empty((1, 0), dtype=int))
    assert p.shape == q.shape == (1, VOCAB)
    p, q = pair.laws(np.array([[7, 8], [9, 10]]))
    z = plain(np.array([[5, 6, 7, 8], [5, 6, 9, 10]]))[:, -1].astype(float)
    expected = np.exp(z) / np.exp(z).sum(-1, keepdims=True)
    assert np.allclose(p, expected, atol=1e-5)
    assert abs(p - q).max() > 0.01
    assert p.dtype == np.float64


# Drafts made from the target.


def test_skipping_layers_leaves_the_target_alone() -> None:
    model = tiny_model()
    before = plain(np.array([[1, 2, 3]]), model)
    draft = causal.make_draft(model, "skip:0,2")
    assert (plain(np.array([[1, 2, 3]]), model) == before).all()
    shared = {id(p) for p in model.parameters()}
    assert {id(p) for p in draft.parameters()} <= shared
    # The reference: a model of two layers into which the kept weights are copied.
    other = tiny_model(seed=9, layers=2)
    other.load_state_dict(
        {k.replace("layers.1.", "layers.0.").replace("layers.3.", "layers.1."): v
         for k, v in model.state_dict().items() if ".layers.0." not in k and ".layers.2." not in k}
    )  # fmt: skip
    ids = np.array([[4, 8, 15, 16]])
    assert np.allclose(plain(ids, draft), plain(ids, other), atol=1e-6)
    decoder = causal.Decoder(draft)
    decoder.score(ids[:, :2])
    assert np.allclose(decoder.score(ids), plain(ids, other)[:, -1:], atol=2e-4)


@pytest.mark.parametrize(("bits", "group"), [(1, 4), (4, 16), (8, 32)])
def test_round_to_nearest_by_loops(bits: int, group: int) -> None:
    model = tiny_model()
    draft = causal.make_draft(model, f"rtn:{bits},{group}")
    old = model.model.layers[1].mlp.up_proj.weight.detach().numpy().astype(float)
    new = draft.model.layers[1].mlp.up_proj.weight.detach().numpy()
    for row in range(0, old.shape[0], 7):
        for start in range(0, old.shape[1], group):
            run = old[row, start : start + group]
            grid = np.linspace(run.min(), run.max(), 2**bits)
            nearest = grid[np.abs(run[:, None] - grid).argmin(axis=1)]
            step = grid[1] - grid[0]
            off = np.abs(new[row, start : start + group] - nearest)
            midway = np.abs(np.abs(run[:, None] - grid).min(axis=1) - step / 2) < 1e-4 * step  # a tie in float32
            assert (off[~midway] < 1e-5).all()
    assert (model.lm_head.weight == draft.lm_head.weight).all()


@pytest.mark.parametrize(
    "recipe", ["skip:9", "skip:0,1,2,3", "skip:x", "skip:", "rtn:4", "rtn:0,4", "rtn:4,7", "prune:1"]
)
def test_impossible_drafts(recipe: str) -> None:
    with pytest.raises(UsageError):
        causal.make_draft(MODEL, recipe)


def test_other_architectures_are_refused_by_name() -> None:
    import torch

    with pytest.raises(UsageError, match=r"Linear has no model.layers"):
        causal.make_draft(torch.nn.Linear(2, 2), "skip:0")


# Loading and bad input.


def test_load_from_a_directory(tmp_path: Path) -> None:
    save_tiny(tmp_path)
    pair = causal.load_pair(str(tmp_path), "skip:1")
    ids = np.array([[1, 2, 3]])
    assert np.allclose(pair.target.score(ids, 3), plain(ids), atol=1e-6)
    assert causal.load_tokenizer(str(tmp_path))("w3 w5").input_ids == [3, 5]


def test_nothing_to_load(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no model 'no_such_package'"):
        causal.load_model("no_such_package")
    with pytest.raises(UsageError, match=r"neither config.json nor a .gguf"):
        causal.load_model(str(tmp_path))
    (tmp_path / "broken.gguf").write_bytes(b"GGUF but not really")
    with pytest.raises(DataError, match=r"broken.gguf: cannot load it"):
        causal.load_model(str(tmp_path / "broken.gguf"))


def test_mismatched_vocabularies() -> None:
    with pytest.raises(DataError, match="the target has 96 tokens and the draft 97"):
        causal.CausalPair(tiny_model(), tiny_model(vocab=97))


@pytest.mark.parametrize("ids", [[[-1, 2]], [[2, VOCAB]]])
def test_ids_outside_the_vocabulary(ids: list[list[int]]) -> None:
    with pytest.raises(DataError, match="prefix row 0, position"):
        FRESH.score(ids)


def test_prefixes_too_short() -> None:
    for ids, last in (([[]], 1), ([[1]], 2), ([1, 2], 1), ([[1]], 0)):
        with pytest.raises(DataError, match="prefixes must be"):
            FRESH.score(ids, last)
