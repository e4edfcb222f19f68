"""Undamaged models and data, which the faults damage.

python benchmarks/_faults_models.py FOLDER     writes them
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import heedful
from _serving_model import sentences, write_model
from heedful.data.published_tokenizer import PublishedTokenizer
from heedful.data.text_tokenizers import of_pieces
from heedful.families import GenerationDefaults, ViTConfig, config_of
from heedful.families.bert import BertConfig
from heedful.generation import GenerationConfig
from heedful.tasks.classification.predictor import Classifier, ClassifierSettings
from heedful.tasks.ctranslate2_export import export_ctranslate2
from heedful.tasks.hf_export import export_huggingface
from heedful.tasks.images import ImageClassifier
from heedful.tasks.images.predictor import ImageSettings
from heedful.tasks.language_model import CausalLanguageModel
from heedful.tasks.language_model.predictor import LanguageModelSettings

WORDS = {
    "the cat": "고양이가",
    "the dog": "개가",
    "a child": "아이가",
    "my friend": "친구가",
    "water": "물을",
    "a book": "책을",
    "bread": "빵을",
    "a song": "노래를",
    "drinks": "마셔요",
    "reads": "읽어요",
    "eats": "먹어요",
    "hears": "들어요",
}
TRANSLATOR: dict[str, Any] = {
    "family": "original",
    "vocab_size": 2_000,
    "d_model": 64,
    "d_ff": 128,
    "n_heads": 2,
    "n_encoder_layers": 6,
    "n_decoder_layers": 6,
    "norm": "pre",
    "dropout": 0.0,
}


def pairs(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Return sentences of three parts with their translations; a number makes each different."""
    random, words = Random(seed), list(WORDS)
    rows = []
    for number in range(count):
        subject, thing, verb = (random.choice(words[start : start + 4]) for start in (0, 4, 8))
        rows.append((f"{subject} {verb} {thing} {number}", f"{WORDS[subject]} {WORDS[thing]} {WORDS[verb]} {number}"))
    return rows


def write_data(folder: Path) -> None:
    """Write pairs, reviews and lines of text."""
    folder.mkdir()
    rows = pairs(300)
    (folder / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8")
    random = Random(1)
    reviews = ["text\tlabel"]
    for number in range(200):
        word = ("great", "awful")[number % 2]
        reviews.append(f"{random.choice(rows)[0]} was {word} {number}\t{('pos', 'neg')[number % 2]}")
    (folder / "reviews.tsv").write_text("\n".join(reviews) + "\n", encoding="utf-8")
    labelled = [line.replace("\tpos", "\tglad").replace("\tneg", "\tsad") for line in reviews]
    (folder / "labelled.tsv").write_text("\n".join(labelled) + "\n", encoding="utf-8")
    (folder / "texts.txt").write_text("".join(f"{source}\n" for source, _ in rows[:20]), encoding="utf-8")
    (folder / "sentences.txt").write_text("\n".join(sentences(TRANSLATOR["vocab_size"], 64)), encoding="utf-8")


def classifier() -> Classifier:
    """Return a BERT classifier with random weights."""
    fast = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    fast.normalizer = normalizers.BertNormalizer(lowercase=True)
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    texts = [text for pair in pairs(50) for text in pair]
    fast.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=160, special_tokens=special))
    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast.decoder = decoders.WordPiece(prefix="##")
    tokenizer = PublishedTokenizer(fast.to_str())
    sizes: dict[str, Any] = {"d_model": 32, "n_heads": 4, "d_ff": 48, "n_layers": 2, "max_length": 64}
    config = BertConfig(vocab_size=tokenizer.vocab_size, **sizes, head="classes", n_classes=3)
    settings = ClassifierSettings(labels=("glad", "sad", "neither"))
    return Classifier(config, heedful.build(config).eval(), settings, tokenizer)


def language_model() -> CausalLanguageModel:
    """Return a GPT-2 with random weights that writes many tokens."""
    tokenizer = of_pieces([text for pair in pairs(50) for text in pair], vocab_size=350, min_frequency=2)
    small = {"preset": "gpt2", "d_model": 64, "n_heads": 4, "n_layers": 2, "max_length": 2048}
    config = config_of(small).changed(vocab_size=tokenizer.vocab_size)
    end = tokenizer.id_of("</s>") or 0
    settings = LanguageModelSettings(
        tokens=GenerationDefaults(start=end, end=(end,)), generation=GenerationConfig(max_new_tokens=16)
    )
    return CausalLanguageModel(config, heedful.build(config).eval(), tokenizer, settings)


def image_classifier() -> ImageClassifier:
    """Return a ViT for gray pictures with random weights."""
    sizes: dict[str, Any] = {"d_model": 32, "n_heads": 4, "d_ff": 48, "n_layers": 2}
    config = ViTConfig(**sizes, image_size=16, patch_size=4, n_channels=1, n_classes=3)
    settings = ImageSettings(labels=("cat", "dog", "bird"), resize=(16, 16), mean=(0.4,), std=(0.3,))
    return ImageClassifier(config, heedful.build(config).eval(), settings)


def main() -> None:
    """Write everything into a folder."""
    folder = Path(sys.argv[1])
    torch.manual_seed(0)
    write_data(folder / "data")
    classifier().save(folder / "classifier")
    language_model().save(folder / "lm")
    image_classifier().save(folder / "pictures")
    write_model(folder / "translator", TRANSLATOR)
    export_huggingface(folder / "classifier", folder / "published")
    export_ctranslate2(folder / "translator", folder / "ctranslate2")


if __name__ == "__main__":
    main()
