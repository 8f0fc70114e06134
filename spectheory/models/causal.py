"""A real target/draft pair through torch and transformers, as a sequence model. The only model file that needs them."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import DataError, UsageError
from ..pmf import softmax


class Decoder:
    """One causal language model with a key-value cache over `n` rows of equal length.

    `score(prefixes, last)` is all a decoding loop needs: it keeps the part of the cache that the new prefixes share
    with the previous ones and computes only the rest, so growing, rewinding after a rejection and starting anew are
    the same call. `select(rows)` reorders, repeats or drops rows without computing anything again.

    >>> z = draft.score(context, 1)[:, -1]                                   # doctest: +SKIP
    >>> z = target.score(np.hstack([context, drafted]), K + 1)               # doctest: +SKIP
    """

    def __init__(self, model: Any, device: str = "cpu") -> None:
        self.model = model.to(device).eval()
        self.device = device
        self.vocab_size = int(model.config.vocab_size)
        # transformers renamed the argument; passing the old name warns where the new one exists.
        known = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in known else "past_key_values"
        self.reset()

    def reset(self) -> None:
        """Forget the cache: the next `score` computes everything, bit for bit as a new decoder would."""
        from transformers import DynamicCache

        self._cache: Any = DynamicCache()
        self._seen = np.empty((0, 0), dtype=np.int64)

    def score(self, prefixes: Array, last: int = 1) -> Any:
        """Logits (n, last, V) float32 that follow the last `last` tokens of each prefix; `prefixes` (n, t) int, t >= last.

        Raises DataError for ids outside the vocabulary or prefixes that are too short.
        """
        import torch

        ids = np.asarray(prefixes, dtype=np.int64)
        if ids.ndim != 2 or not 1 <= last <= ids.shape[1]:
            raise DataError(f"prefixes must be (n, t) with t >= {max(last, 1)}, not {ids.shape}")
        if ((ids < 0) | (ids >= self.vocab_size)).any():
            row, at = np.argwhere((ids < 0) | (ids >= self.vocab_size))[0]
            raise DataError(f"prefix row {row}, position {at}: id {ids[row, at]} is outside [0, {self.vocab_size})")
        self._rewind(min(self._shared(ids), ids.shape[1] - last))
        new = torch.as_tensor(ids[:, self._seen.shape[1] :], device=self.device)
        with torch.inference_mode():
            out = self.model(new, use_cache=True, logits_to_keep=last, **{self._cache_name: self._cache})
        self._seen = ids
        return out.logits.float().cpu().numpy()

    def select(self, rows: Array) -> None:
        """Keep the cached rows `rows` (m,) in that order; a row may be named more than once."""
        import torch

        index = np.asarray(rows, dtype=np.int64)
        self._seen = self._seen[index]
        self._cache.batch_select_indices(torch.as_tensor(index, device=self.device))

    def _shared(self, ids: Any) -> int:
        """Number of leading columns in which all rows agree with the cache; 0 for another number of rows."""
        if self._seen.shape[0] != ids.shape[0]:
            return 0
        width = min(self._seen.shape[1], ids.shape[1])
        same = (self._seen[:, :width] == ids[:, :width]).all(axis=0)
        return width if same.all() else int(same.argmin())

    def _rewind(self, length: int) -> None:
        if length <= 0:
            self.reset()
        elif length < self._seen.shape[1]:
            self._cache.crop(length - self._seen.shape[1])  # negative: the number of tokens to drop
            self._seen = self._seen[:, :length]


class CausalPair:
    """Target and draft `Decoder`s over one vocabulary, as a sequence model: continuations of `prompt` (ids, may be empty).

    `laws(prefixes)` is the Model protocol. For block decoding use `pair.target.score` and `pair.draft.score` directly;
    they see whole prefixes, prompt included. Raises DataError if the vocabularies differ.
    """

    def __init__(self, target: Any, draft: Any, device: str = "cpu", prompt: Sequence[int] = ()) -> None:
        self.target, self.draft = Decoder(target, device), Decoder(draft, device)
        self.prompt = np.asarray(prompt, dtype=np.int64)
        if self.target.vocab_size != self.draft.vocab_size:
            raise DataError(
                f"the target has {self.target.vocab_size} tokens and the draft {self.draft.vocab_size}: "
                "their vocabularies must be the same"
            )

    @property
    def vocab_size(self) -> int:
        return self.target.vocab_size

    def laws(self, prefixes: Array) -> tuple[Array, Array]:
        """Laws p, q (n, V) float64 at temperature 1 of the next token after `prompt` + `prefixes` (n, t); t = 0 needs a prompt."""
        z, w = self.logits(prefixes)
        return softmax(z), softmax(w)

    def logits(self, prefixes: Array) -> tuple[Array, Array]:
        """Target and draft logits (n, V) float32, for greedy rules and other temperatures; as `laws`."""
        ids = np.asarray(prefixes, dtype=np.int64)
        ids = np.hstack([np.broadcast_to(self.prompt, (ids.shape[0], self.prompt.size)), ids])
        return self.target.score(ids)[:, -1], self.draft.score(ids)[:, -1]


def load_pair(target: str, draft: str, device: str = "cpu", prompt: Sequence[int] = ()) -> CausalPair:
    """Load a pair: `target` as `load_model` takes it; `draft` likewise, or made from the target as `make_draft` does.

    Raises UsageError for a device that torch does not have here, DataError for different vocabularies.
    """
    check_device(device)
    model = load_model(target)
    return CausalPair(model, make_draft(model, draft) if is_recipe(draft) else load_model(draft), device, prompt)


def load_model(name: str) -> Any:
    """A transformers causal model in float32 from a directory, a .gguf file, or an installed package that holds one.

    Never downloads. Raises UsageError if nothing is there, DataError if it cannot be loaded.
    """
    return _load("AutoModelForCausalLM", name, dtype="float32")


def load_tokenizer(name: str) -> Any:
    """The tokenizer that belongs to `load_model(name)`. Raises as it."""
    return _load("AutoTokenizer", name)


def check_device(device: str) -> None:
    """Raises UsageError unless torch can put a tensor there."""
    try:
        import torch

        torch.zeros(1, device=device)
    except ImportError as error:
        raise UsageError("this needs torch and transformers: install the extra `extract`") from error
    except Exception as error:  # torch raises anything, also AssertionError, for a device it was not built for
        raise UsageError(f"device {device!r} is not available: {str(error).splitlines()[0]}") from error


def locate(name: str) -> tuple[Path, str | None]:
    """(directory, name of the .gguf file in it or None) of a model path or package. Raises UsageError."""
    path = Path(name)
    if not path.exists():
        spec = importlib.util.find_spec(name) if name.isidentifier() else None
        if spec is None or not spec.submodule_search_locations:
            raise UsageError(
                f"no model {name!r}: give a directory, a .gguf file or an installed package that holds one"
            )
        path = Path(spec.submodule_search_locations[0])
    if path.is_file():
        return path.parent, path.name
    files = sorted(f.name for f in path.glob("*.gguf"))
    if not files and not (path / "config.json").exists():
        raise UsageError(f"{path}: neither config.json nor a .gguf file is there")
    return path, None if (path / "config.json").exists() else files[0]


def _load(auto: str, name: str, **options: Any) -> Any:
    directory, gguf = locate(name)
    if gguf is not None:
        options["gguf_file"] = gguf
    with _quiet():
        try:
            import transformers

            return getattr(transformers, auto).from_pretrained(str(directory), local_files_only=True, **options)
        except ImportError as error:
            raise UsageError(
                f"loading {name} needs the extra `extract`: {str(error).strip().splitlines()[0]}"
            ) from error
        except Exception as error:  # a broken file can raise anything in there
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise DataError(f"{directory / (gguf or '')}: cannot load it: {reason[0]}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Loading bars and hints of transformers do not belong on our stderr; what goes wrong is raised."""
    with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def is_recipe(draft: str) -> bool:
    """True for a draft that is made from the target: `skip:...` or `rtn:...`."""
    return draft.partition(":")[0] in ("skip", "rtn")


def make_draft(model: Any, recipe: str) -> Any:
    """A draft made from the target: `skip:16,17,18` leaves those layers out, `rtn:4,64` rounds the weights of its blocks.

    `rtn:BITS,GROUP`: each run of GROUP weights of a row goes to the nearest of 2^BITS evenly spaced values between its
    minimum and maximum. Unchanged weights are shared with the target. Raises UsageError.
    """
    kind, _, rest = recipe.partition(":")
    try:
        numbers = [int(n) for n in rest.split(",")]
    except ValueError:
        raise UsageError(f"a draft is skip:LAYER,... or rtn:BITS,GROUP, not {recipe!r}") from None
    if kind == "skip":
        return _skip(model, numbers)
    if kind == "rtn" and len(numbers) == 2:
        return _round_to_nearest(model, *numbers)
    raise UsageError(f"a draft is skip:LAYER,... or rtn:BITS,GROUP, not {recipe!r}")


def _twin(model: Any) -> Any:
    """A copy of the modules that shares every parameter and buffer."""
    return copy.deepcopy(model, {id(t): t for t in chain(model.parameters(), model.buffers())})


def _layers(model: Any) -> Any:
    layers = getattr(getattr(model, "model", None), "layers", None)
    if layers is None or not hasattr(layers[0], "self_attn"):
        raise UsageError(f"{type(model).__name__} has no model.layers with self_attn: a draft cannot be made from it")
    return layers


def _skip(model: Any, skipped: Sequence[int]) -> Any:
    twin, layers = _twin(model), _layers(model)
    bad = [i for i in skipped if not 0 <= i < len(layers)]
    if bad or len(set(skipped)) >= len(layers):
        raise UsageError(f"the target has layers 0 to {len(layers) - 1}; cannot skip {bad or skipped}")
    twin.model.layers = type(layers)(layer for i, layer in enumerate(twin.model.layers) if i not in skipped)
    for i, layer in enumerate(twin.model.layers):
        layer.self_attn.layer_idx = i  # its slot in the key-value cache
    twin.config.num_hidden_layers = len(twin.model.layers)
    return twin


def _round_to_nearest(model: Any, bits: int, group: int) -> Any:
    import torch

    if not 1 <= bits <= 16 or group < 1:
        raise UsageError(f"rtn takes 1 to 16 bits and a group >= 1, not {bits},{group}")
    _layers(model)
    twin = _twin(model)
    for module in twin.model.layers.modules():
        if isinstance(module, torch.nn.Linear):
            w = module.weight.detach()
            if w.shape[1] % group:
                raise UsageError(f"rtn: a row of {w.shape[1]} weights does not split into groups of {group}")
            grouped = w.reshape(w.shape[0], -1, group)
            low = grouped.amin(-1, keepdim=True)
            step = ((grouped.amax(-1, keepdim=True) - low) / (2**bits - 1)).clamp(min=1e-8)
            rounded = torch.round((grouped - low) / step) * step + low
            module.weight = torch.nn.Parameter(rounded.reshape(w.shape), requires_grad=False)
    return twin
