"""Run a real target/draft pair block by block and record what a verifier would have seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, UsageError
from ..models.causal import CausalPair, check_device, is_recipe, load_pair, load_tokenizer, locate
from ..pmf import softmax
from ..protocols import Block, Coins
from ..verifiers import Standard
from ..verifiers.token import inverse_cdf
from . import manifest as manifests
from .encoding import stored
from .reader import read
from .writer import Recorder

ADVANCE = {"sample": "standard", "greedy": "strict-greedy"}  # what commits tokens between blocks
Progress = Callable[[int, int], None]


def extract(
    target: str,
    draft: str,
    prompts: Sequence[str],
    path: str | Path,
    *,
    block: int = 4,
    blocks: int = 8,
    drafts: str = "sample",
    device: str = "cpu",
    seed: int = 0,
    encoding: str = "f16-rel",
    tokens: str | Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Record up to `blocks` blocks of `block` drafted tokens for each prompt into the directory `path`.

    Drafts are drawn from the draft's STORED law (`drafts="sample"`) or are its argmax (`"greedy"`); the target then
    scores all K + 1 positions. Between blocks the request advances as an engine's would: by the standard rule, or by
    strict greedy verification. A request ends when it commits an end token. `tokens`, an earlier recording, replays its
    tokens instead of drawing: sampling is not the same on every BLAS, the tokens are. A killed run continues
    where it stopped and ends with the same bytes. Raises UsageError or DataError.
    """
    if drafts not in ADVANCE or block < 1 or blocks < 1:
        raise UsageError(f"drafts is sample or greedy and blocks are at least 1, not {drafts!r}, {block}, {blocks}")
    if not prompts:
        raise DataError("there are no prompts")
    check_device(device)
    tokenizer, pair = load_tokenizer(target), load_pair(target, draft, device)
    fields = {
        "models": {
            "target": _described(target),
            "draft": draft if is_recipe(draft) else _described(draft),
            **_versions(),
        },
        "tokenizer": _described(target),
        "device": _device_name(device),
        "vocab_size": pair.vocab_size,
        "block_size": block,
        "blocks_per_request": blocks,
        "draft_mode": drafts,
        "advance": ADVANCE[drafts],
        "seed": seed,
        "encoding": encoding,
        "eos_ids": _eos(pair),
    }
    ids = [[int(i) for i in tokenizer(text).input_ids] for text in prompts]
    empty = [i for i, found in enumerate(ids) if not found]
    if empty:
        raise DataError(f"prompt {empty[0]} has no tokens: the model needs at least one to start from")
    replayed = None if tokens is None else _replay(Path(tokens), fields, ids)
    return record(pair, ids, path, replayed, lambda x: tokenizer.batch_decode([[i] for i in x]), progress, **fields)


def record(
    pair: CausalPair,
    prompts: Sequence[Sequence[int]],
    path: str | Path,
    replayed: list[Any] | None = None,
    texts: Callable[[Any], list[str]] | None = None,
    progress: Progress | None = None,
    **fields: Any,
) -> Path:
    """`extract` for a pair in memory and prompts of token ids; `fields` are the manifest keys that `extract` fills."""
    known = [{"id": i, "prompt_tokens": len(ids), "tokens": list(ids)} for i, ids in enumerate(prompts)]
    recorder = Recorder(path, resume=True, texts=texts, requests=known, **fields)
    if [r["tokens"][: r["prompt_tokens"]] for r in recorder.manifest["requests"]] != [list(ids) for ids in prompts]:
        raise UsageError(f"{path} holds another recording: its prompts differ; choose another directory")
    if recorder.finished:
        return Path(path)
    done = _blocks_by_request(Path(path), recorder)
    last, blocks = max(done, default=-1), int(recorder.manifest["blocks_per_request"])
    total, count = blocks * len(prompts), recorder.blocks
    for i in range(max(last, 0), len(prompts)):
        # A request cut short by a kill runs again from its prompt, so the floats are those of an unbroken run.
        request = recorder.manifest["requests"][i]
        request["tokens"] = request["tokens"][: request["prompt_tokens"]]
        steps = _decode(pair, request["tokens"], i, blocks, replayed and replayed[i], recorder.manifest)
        for b, (drafted, z, w, committed) in enumerate(steps):
            if b >= done.get(i, 0):
                recorder.add(drafted, z, w, i, len(request["tokens"]))
                count += 1
            request["tokens"].extend(int(x) for x in committed)
            recorder.remember(request["tokens"])
            if progress is not None:
                progress(count, total)
    recorder.close()
    return Path(path)


def _blocks_by_request(path: Path, recorder: Recorder) -> dict[int, int]:
    """How many blocks of each request are already on disk."""
    if not recorder.blocks:
        return {}
    reader = read(path)
    found = [int(r) for i in range(len(reader.shards)) for r in reader.tensors(i)["request"]]
    return {r: found.count(r) for r in set(found)}


def _decode(
    pair: CausalPair, prompt: Sequence[int], request: int, blocks: int, replayed: Any, manifest: dict[str, Any]
) -> Iterator[tuple[Any, Any, Any, Any]]:
    """(drafted tokens, target logits, draft logits, committed tokens) of each block of one request."""
    size, greedy, eos = manifest["block_size"], manifest["draft_mode"] == "greedy", set(manifest["eos_ids"])
    # Named streams: one child for each request, with separate draws for drafting and for verification.
    drawing, verifying = (
        np.random.default_rng(s) for s in np.random.SeedSequence((manifest["seed"], request)).spawn(2)
    )
    context = np.asarray(prompt, dtype=np.int64)[None]
    pair.target.reset()
    pair.draft.reset()
    for b in range(blocks if replayed is None else min(blocks, len(replayed))):
        forced = None if replayed is None else replayed[b]
        rows = []
        drafted: list[int] = []
        for i in range(size):
            z = pair.draft.score(np.hstack([context, np.array([drafted], dtype=np.int64).reshape(1, -1)]))[0]
            rows.append(z[0])
            drafted.append(_draw(z, manifest["encoding"], greedy, drawing) if forced is None else int(forced[0][i]))
        whole = np.hstack([context, np.array([drafted])])
        target, draft = pair.target.score(whole, size + 1)[0], np.stack(rows)
        if forced is None:
            committed = _advance(drafted, target, draft, manifest["encoding"], greedy, verifying)
        else:
            committed = forced[1]
        yield np.array(drafted), target, draft, committed
        context = np.hstack([context, np.asarray(committed, dtype=np.int64)[None]])
        if eos & set(np.asarray(committed).tolist()):
            return


def _draw(z: Any, encoding: str, greedy: bool, rng: np.random.Generator) -> int:
    """One drafted token from the law that will be declared."""
    kept = stored(z, encoding)[0]
    if greedy:
        return int(kept.argmax())
    return inverse_cdf(softmax(kept), float(rng.random()))


def _advance(drafted: list[int], target: Any, draft: Any, encoding: str, greedy: bool, rng: np.random.Generator) -> Any:
    """The tokens that verification commits, at least one."""
    z = stored(target, encoding)
    if greedy:
        best = z.argmax(axis=-1)
        agree = int(np.cumprod(best[:-1] == drafted).sum())
        return best[: agree + 1]
    law = Block(np.array(drafted), softmax(z), softmax(stored(draft, encoding)))
    return Standard().verify(law, None, Coins(rng.random(len(drafted)), rng.random(1))).tokens


def _replay(path: Path, fields: dict[str, Any], prompts: list[list[int]]) -> list[list[tuple[list[int], list[int]]]]:
    """For each request of the recording at `path`: its (drafted, committed) tokens, block by block. Raises DataError."""
    reader = read(path)
    old = reader.manifest["requests"]
    if not reader.manifest["complete"]:
        raise DataError(f"{path / manifests.NAME}: the recording is not complete, it cannot be replayed")
    for key in ("block_size", "vocab_size", "draft_mode"):
        if reader.manifest[key] != fields[key]:
            raise DataError(f"{path / manifests.NAME}: {key} is {reader.manifest[key]}, this run has {fields[key]}")
    if [r["tokens"][: r["prompt_tokens"]] for r in old] != prompts:
        raise DataError(f"{path / manifests.NAME}: its prompts are not the prompts of this run")
    found: list[list[tuple[int, list[int]]]] = [[] for _ in old]
    for i in range(len(reader.shards)):
        tensors = reader.tensors(i)
        starts = np.cumsum([0, *tensors["size"]])
        for b, request in enumerate(tensors["request"]):
            drafted = tensors["tokens"][starts[b] : starts[b + 1]].tolist()
            found[int(request)].append((int(tensors["position"][b]), drafted))
    out = []
    for request, blocks in zip(old, found):
        ends = [at for at, _ in blocks[1:]] + [len(request["tokens"])]
        out.append([(drafted, request["tokens"][at:end]) for (at, drafted), end in zip(blocks, ends)])
    return out


def _eos(pair: CausalPair) -> list[int]:
    """End tokens as the model declares them."""
    found = {getattr(c, "eos_token_id", None) for c in (pair.target.model.config,)}
    generation = getattr(pair.target.model, "generation_config", None)
    ids: set[int] = set()
    for value in (*found, getattr(generation, "eos_token_id", None)):
        ids.update(value if isinstance(value, list) else () if value is None else (int(value),))
    return sorted(ids)


def _described(name: str) -> str:
    """What a reader of the manifest needs to find the model again, without this machine's paths."""
    directory, gguf = locate(name)
    label = name if not Path(name).exists() else directory.name
    return label if gguf is None else f"{label}/{gguf}"


def _versions() -> dict[str, str]:
    import torch
    import transformers

    return {"torch": str(torch.__version__), "transformers": str(transformers.__version__)}


def _device_name(device: str) -> str:
    import torch

    return f"{device} ({torch.cuda.get_device_name(device)})" if device.startswith("cuda") else device


def read_prompts(path: str | Path) -> list[str]:
    """One prompt a line of a UTF-8 text file; `\\n` in a line is a line break; blank lines do not count. Raises DataError."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot read prompts: {error}") from error
    found = [line.replace("\\n", "\n") for line in lines if line.strip()]
    if not found:
        raise DataError(f"{path}: there are no prompts in it")
    return found
