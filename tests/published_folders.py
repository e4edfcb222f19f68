"""Folders as people publish them: tiny models of transformers with random weights, and tokenisers trained on a page."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

PAGE = [
    "The cat drinks water, and the dog reads a book.",
    "I played; she plays. They were playing in the garden!",
    "나는 책을 읽어요. 고양이가 물을 마셔요.",
    "우리는 학교에 갔고, 그는 집에 있었다.",
    "Where is the school? It isn't far from here.",
]
TEXTS = ["The cat reads.", "", "나는 물을 마셔요!", "I played in the garden, and she was far from the school."]
TYPED = ["[MASK] </s> <pad>", "a [SEP] b", "<s>cat", "🙂 <0x41>", "  two  spaces\n\tand a tab "]
LIMIT = 64


@cache
def wordpiece() -> Tokenizer:
    """Train a WordPiece tokenizer like BERT's."""
    fast = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    fast.normalizer = normalizers.BertNormalizer(lowercase=True)
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    fast.train_from_iterator(PAGE * 2, trainers.WordPieceTrainer(vocab_size=200, special_tokens=special))
    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast.decoder = decoders.WordPiece(prefix="##")
    return fast


@cache
def byte_level(*, around: bool = True) -> Tokenizer:
    """As RoBERTa's and BART's, or with nothing around a text, as GPT-2's. Most Hangul is spelt in bytes."""
    fast = Tokenizer(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet)
    fast.train_from_iterator(PAGE, trainer)
    if around:
        fast.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    return fast


@cache  # training it again may give another one
def unigram() -> Tokenizer:
    """Train a Unigram tokenizer like T5's."""
    fast = Tokenizer(models.Unigram())
    fast.normalizer = normalizers.NFKC()
    fast.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=special, unk_token="<unk>")
    fast.train_from_iterator(PAGE * 2, trainer)
    fast.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    fast.decoder = decoders.Metaspace()
    return fast


@cache
def byte_fallback() -> Tokenizer:
    """As Llama's: what is no piece, and Hangul is none here, is spelt in bytes that have tokens of their own."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    letters = sorted({letter for line in PAGE for letter in line if letter.isascii() and letter != " "} | {"▁"})
    merges = [("▁", letter) for letter in letters if letter.isalpha()]
    vocabulary = {piece: place for place, piece in enumerate([*pieces, *letters, *map("".join, merges)])}
    fast = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    fast.add_special_tokens(["<unk>", "<s>", "</s>"])
    fast.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    fast.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    fast.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return fast


READER = {"hidden_size": 20, "intermediate_size": 23, "num_hidden_layers": 2, "num_attention_heads": 5}
WRITER = {
    "d_model": 20,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 5,
    "decoder_attention_heads": 5,
    "encoder_ffn_dim": 23,
    "decoder_ffn_dim": 23,
    "max_position_embeddings": LIMIT,
}
T5_SIZES = {"d_model": 20, "d_kv": 6, "d_ff": 23, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 5}
LLAMA_SIZES = {"hidden_size": 24, "intermediate_size": 23, "num_hidden_layers": 2, "num_attention_heads": 4}


def bert(kind: str = "ForMaskedLM", **changes: Any) -> Any:
    config = transformers.BertConfig(vocab_size=200, max_position_embeddings=LIMIT, **READER | changes)
    return getattr(transformers, f"Bert{kind}")(config)


def roberta(kind: str = "ForMaskedLM", **changes: Any) -> Any:
    rows = {"vocab_size": 300, "max_position_embeddings": LIMIT + 2, "type_vocab_size": 1, "pad_token_id": 1}
    return getattr(transformers, f"Roberta{kind}")(transformers.RobertaConfig(**READER | rows | changes))


def gpt2(**changes: Any) -> Any:
    sizes = {"vocab_size": 300, "n_positions": LIMIT, "n_embd": 20, "n_layer": 2, "n_head": 5}
    tokens = {"bos_token_id": 2, "eos_token_id": 2}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes | tokens | changes))


def llama(**changes: Any) -> Any:
    size = byte_fallback().get_vocab_size() + 7  # rows that no token has, as published ones round theirs up
    config = {"vocab_size": size, "num_key_value_heads": 2, "max_position_embeddings": LIMIT} | LLAMA_SIZES | changes
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**config))


def bart(**changes: Any) -> Any:
    tokens = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
    return transformers.BartForConditionalGeneration(
        transformers.BartConfig(vocab_size=300, **WRITER | tokens | changes)
    )


def marian(**changes: Any) -> Any:
    tokens = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "scale_embedding": True}
    return transformers.MarianMTModel(transformers.MarianConfig(vocab_size=300, **WRITER | tokens | changes))


def t5(**changes: Any) -> Any:
    size = unigram().get_vocab_size() + 5
    tokens = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
    return transformers.T5ForConditionalGeneration(
        transformers.T5Config(vocab_size=size, **T5_SIZES | tokens | changes)
    )


TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    "bert": wordpiece,
    "roberta": byte_level,
    "gpt2": lambda: byte_level(around=False),
    "llama": byte_fallback,
    "bart": byte_level,
    "marian": byte_level,
    "t5": unigram,
}
MASK = {"__type": "AddedToken", "content": "<mask>", "lstrip": True, "special": True}
ROLES: dict[str, dict[str, Any]] = {
    "bert": {"pad_token": "[PAD]", "mask_token": "[MASK]", "cls_token": "[CLS]", "sep_token": "[SEP]"},
    "roberta": {"pad_token": "<pad>", "mask_token": MASK},
    "gpt2": {"eos_token": "</s>"},
    "llama": {"eos_token": "</s>"},
    "bart": {"pad_token": "<pad>", "eos_token": "</s>"},
    "marian": {},
    "t5": {"pad_token": "<pad>", "eos_token": "</s>"},
}


def randomised(model: Any) -> Any:
    """Norms and biases too; so far apart that no two answers are nearly as good."""
    torch.manual_seed(1)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if not name.endswith("embed_positions.weight") or tensor.requires_grad:  # else it is computed
                tensor.normal_(1.0 if "norm" in name.lower() or ".ln_" in name else 0.0, 0.5)
    return model.eval()


def publish(folder: Path, model: Any, *, generation: dict[str, Any] | None = None, **files: Any) -> Path:
    """Write what its authors would: weights, tokeniser, and `files` by name (README_md="…", modules_json=[…])."""
    randomised(model).save_pretrained(folder)
    name = model.config.model_type
    TOKENIZERS[name]().save(str(folder / "tokenizer.json"))
    write(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **ROLES[name]})
    if generation is not None:
        write(folder / "generation_config.json", generation)
    for key, content in files.items():
        write(folder / key.replace("_json", ".json").replace("_md", ".md"), content)
    return folder


def write(path: Path, content: Any) -> None:
    """A text as it is, anything else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def theirs(folder: Path, kind: str) -> tuple[Any, Any]:
    """The model and the tokeniser, as transformers reads the folder."""
    model = getattr(transformers, kind).from_pretrained(folder)
    return model.eval(), transformers.AutoTokenizer.from_pretrained(folder)
