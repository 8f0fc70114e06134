"""A tiny random Llama and a word tokenizer, built on the spot: no network, no download."""

from __future__ import annotations

from pathlib import Path
from typing import Any

VOCAB = 96


def tiny_model(seed: int = 0, layers: int = 4, vocab: int = VOCAB) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocab,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        bos_token_id=None,
        eos_token_id=1,
        initializer_range=0.35,  # large enough that the laws are far from uniform
    )
    return LlamaForCausalLM(config).eval()


def save_tiny(path: Path, seed: int = 0, vocab: int = VOCAB) -> Path:
    """A model directory as transformers writes it, with a tokenizer of the words w0, w1, ..."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(vocab)}, unk_token="w0"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tiny_model(seed, vocab=vocab).save_pretrained(path)
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="w1").save_pretrained(path)
    return path
