"""Tiny models of transformers with random weights and odd sizes, and their twins here, made from what they publish.

Norms, biases and buffers are random too: as they start, one and zero, they would hide a mistake.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.config import FamilyConfig
from heedful.families import GenerationDefaults, read_published
from published_images import IMAGES
from published_readers import CHANGES, LIMIT, READERS, V
from published_series import SERIES

V_TARGET = 29
TRANSLATOR = {
    "d_model": 20,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 5,
    "decoder_attention_heads": 5,
    "encoder_ffn_dim": 23,
    "decoder_ffn_dim": 23,
    "max_position_embeddings": LIMIT,
}


class Pair(NamedTuple):
    """A model of transformers, and the same here."""

    reference: Any
    module: Any
    config: FamilyConfig
    generation: GenerationDefaults
    labels: tuple[str, ...] = ()

    def inputs(self, rows: int, length: int) -> Tensor:
        """Random ones: an image (B, C, height, width), a series (B, L, C), or tokens (B, T)."""
        config, draw = self.reference.config, torch.Generator().manual_seed(length)
        dtype = next(self.reference.parameters()).dtype
        if hasattr(config, "image_size"):
            size = config.image_size
            return torch.randn((rows, config.num_channels, size, size), generator=draw, dtype=dtype)
        if hasattr(config, "context_length"):
            length = config.context_length
            return torch.randn((rows, length, config.num_input_channels), generator=draw, dtype=dtype)
        smaller = int(getattr(config, "decoder_vocab_size", config.vocab_size))  # where there are two
        return torch.randint(0, smaller, (rows, length), generator=draw)


def _gpt2(**changes: Any) -> Any:
    sizes = {"vocab_size": V, "n_positions": LIMIT, "n_embd": 20, "n_layer": 3, "n_head": 5, "n_inner": 33}
    tokens = {"bos_token_id": V - 1, "eos_token_id": V - 1}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes | tokens | changes))


def _bart(**changes: Any) -> Any:
    tokens = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
    config = transformers.BartConfig(vocab_size=V, forced_eos_token_id=2, **TRANSLATOR | tokens | changes)
    model = transformers.BartForConditionalGeneration(config)
    model.generation_config.forced_bos_token_id = 0
    return model


def _marian(**changes: Any) -> Any:
    vocabulary = changes.get("decoder_vocab_size", V)
    pad = vocabulary - 1  # as the published ones: the last token pads and starts, and is never written
    tokens = {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": 0, "forced_eos_token_id": 0}
    settings = {"vocab_size": V, "activation_function": "swish", "scale_embedding": True}
    model = transformers.MarianMTModel(transformers.MarianConfig(**settings | TRANSLATOR | tokens | changes))
    model.generation_config.bad_words_ids = [[pad]]
    model.generation_config.num_beams = 4
    return model


def _t5(**changes: Any) -> Any:
    sizes = {"d_model": 20, "d_kv": 6, "d_ff": 23, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 5}
    buckets = {"relative_attention_num_buckets": 12, "relative_attention_max_distance": 20}
    config = transformers.T5Config(vocab_size=V, decoder_start_token_id=0, **sizes | buckets | changes)
    model = transformers.T5ForConditionalGeneration(config)
    if changes.get("tie_word_embeddings") is False:  # transformers ties them again until a checkpoint says otherwise
        model.lm_head.weight = nn.Parameter(torch.empty_like(model.lm_head.weight))
    return model


def _opt(**changes: Any) -> Any:
    sizes = {"vocab_size": V, "hidden_size": 20, "ffn_dim": 23, "num_hidden_layers": 3, "num_attention_heads": 5}
    limit = {"max_position_embeddings": LIMIT}
    return transformers.OPTForCausalLM(transformers.OPTConfig(**sizes | limit | changes))


def _llama(**changes: Any) -> Any:
    sizes = {"vocab_size": V, "hidden_size": 24, "intermediate_size": 23, "num_hidden_layers": 3, "pad_token_id": None}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": LIMIT}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes | heads | changes))


def _mistral(**changes: Any) -> Any:
    sizes = {"vocab_size": V, "hidden_size": 24, "intermediate_size": 23, "num_hidden_layers": 3}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": LIMIT}
    sees = {"sliding_window": 5} | changes
    return transformers.MistralForCausalLM(transformers.MistralConfig(**sizes | heads | sees))


LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 300.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 3.0,
    "original_max_position_embeddings": 40,
}


GENERATORS: dict[str, Callable[[], Any]] = {
    "gpt2": _gpt2,
    "gpt2 untied": lambda: _gpt2(
        tie_word_embeddings=False, n_inner=None, activation_function="relu", layer_norm_epsilon=1e-3
    ),
    "bart": _bart,
    "bart scaled": lambda: _bart(scale_embedding=True, activation_function="relu"),
    "marian": _marian,
    "marian with two vocabularies": lambda: _marian(
        share_encoder_decoder_embeddings=False, decoder_vocab_size=V_TARGET, scale_embedding=False
    ),
    "t5": _t5,
    "t5 v1.1": lambda: _t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False, layer_norm_epsilon=1e-3),
    "t5 gated, tied": lambda: _t5(feed_forward_proj="gated-silu"),
    "opt": _opt,
    "opt untied": lambda: _opt(tie_word_embeddings=False, activation_function="gelu"),
    "llama": _llama,
    "llama tied, with biases": lambda: _llama(
        tie_word_embeddings=True, attention_bias=True, mlp_bias=True, rms_norm_eps=1e-3, head_dim=10
    ),
    "llama linear": lambda: _llama(rope_parameters={"rope_type": "linear", "rope_theta": 500.0, "factor": 2.5}),
    "llama 3": lambda: _llama(rope_parameters=LLAMA3),
    "mistral": _mistral,
    "mistral tied, with wide heads": lambda: _mistral(
        tie_word_embeddings=True, num_key_value_heads=4, head_dim=10, rms_norm_eps=1e-3, sliding_window=3
    ),
    "mistral without a window": lambda: _mistral(
        sliding_window=None, rope_parameters={"rope_type": "default", "rope_theta": 500.0}
    ),
}
TEXTS = GENERATORS | READERS
MAKERS = TEXTS | IMAGES | SERIES


def reference(name: str, dtype: torch.dtype = torch.float32) -> Any:
    """One of transformers' models, with random weights."""
    torch.manual_seed(0)
    model = MAKERS[name]()
    fixed = {table.data_ptr() for table in _sinusoidal_tables(model)}
    for key, tensor in model.state_dict().items():
        if tensor.data_ptr() not in fixed:
            tensor.normal_(1.0 if "norm" in key.lower() or ".ln_" in key else 0.0, 0.2)
    model = model.to(dtype).eval()
    return _exact(model) if dtype == torch.float64 else model


def pair(name: str, dtype: torch.dtype = torch.float32) -> Pair:
    """One of `MAKERS`, and its twin."""
    expected = reference(name, dtype)
    config, generation = files(expected)
    tensors = {key: tensor.clone() for key, tensor in expected.state_dict().items()}
    actual = read_published(config, tensors, generation, **CHANGES.get(name, {}))
    return Pair(expected, actual.module, actual.config, actual.generation)


def pairs(dtype: torch.dtype = torch.float32) -> dict[str, Pair]:
    """Return the pairs of all models that generate."""
    return {name: pair(name, dtype) for name in GENERATORS}


def files(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What transformers would write into config.json and generation_config.json."""
    config = model.config.to_dict() | {"architectures": [type(model).__name__]}
    return config, model.generation_config.to_dict() if model.can_generate() else {}


def _sinusoidal_tables(model: nn.Module) -> list[Tensor]:
    kind = "MarianSinusoidalPositionalEmbedding"
    return [
        module.weight
        for module in model.modules()
        if isinstance(module, nn.Embedding) and type(module).__name__ == kind
    ]


def _exact(model: Any) -> Any:
    """What transformers rounds to float32 inside a model of float64, not rounded."""
    for module in model.modules():
        if type(module).__name__ in ("T5LayerNorm", "LlamaRMSNorm", "MistralRMSNorm"):
            module.forward = lambda x, norm=module: F.rms_norm(x, x.shape[-1:], norm.weight, norm.variance_epsilon)
    for table in _sinusoidal_tables(model):
        rows, width = table.shape
        angles = [[row / 10000 ** (2 * i / width) for i in range(width // 2)] for row in range(rows)]
        values = [[*map(math.sin, row), *map(math.cos, row)] for row in angles]
        table.data.copy_(torch.tensor(values, dtype=torch.float64))
    return model
