"""A tiny model of every task, with random weights that are the same every time, each in a bundle of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer as FastTokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

import heedful
from heedful.config import FamilyConfig
from heedful.data.published_tokenizer import PublishedTokenizer
from heedful.data.text_tokenizers import of_pieces
from heedful.data.tokenizer import Tokenizer
from heedful.families import GenerationDefaults, PatchTSTConfig, ViTConfig, config_of
from heedful.families.bert import BertConfig
from heedful.generation import GenerationConfig
from heedful.tasks.classification.predictor import Classifier, ClassifierSettings
from heedful.tasks.embedding import Embedder, EmbedderSettings
from heedful.tasks.forecasting import ForecastSettings, SeriesForecaster
from heedful.tasks.images import ImageClassifier
from heedful.tasks.images.predictor import ImageSettings
from heedful.tasks.language_model import CausalLanguageModel
from heedful.tasks.language_model.predictor import LanguageModelSettings
from heedful.tasks.masked import MaskedLanguageModel, MaskedLanguageModelSettings
from heedful.tasks.question_answering import QuestionAnswerer, QuestionAnswererSettings
from heedful.tasks.tagging import Tagger, TaggerSettings
from heedful.tasks.translation.predictor import Translator, TranslatorSettings

PAGE = (
    "The cat reads a book by the sea.",
    "I drink water in the garden, and she plays.",
    "고양이는 바다에서 책을 읽었다.",
    "나는 정원에서 물을 마시고 그는 놀아요.",
)
SIZES: dict[str, Any] = {"d_model": 32, "n_heads": 4, "d_ff": 48}


def built(config: FamilyConfig) -> Any:
    """With weights so far apart that answers differ and end."""
    torch.manual_seed(0)
    module = heedful.build(config)
    for name, parameter in module.named_parameters():
        if "norm" not in name:
            parameter.data.normal_(0, 0.3)
    return module.eval()


def translator(source: str, target: str) -> Translator:
    tokenizer = Tokenizer.train(PAGE * 3, vocab_size=400)
    small = {"preset": "tiny", **SIZES, "dropout": 0.0, "n_encoder_layers": 2, "n_decoder_layers": 2}
    config = config_of(small).changed(vocab_size=tokenizer.vocab_size)
    words = GenerationConfig(max_new_tokens=12, beam=2)
    settings = TranslatorSettings(source=source, target=target, max_tokens=64, generation=words)
    return Translator(config, built(config), tokenizer, settings)


def language_model() -> CausalLanguageModel:
    tokenizer = of_pieces(PAGE * 3, vocab_size=350, min_frequency=2)
    small = {"preset": "gpt2", "d_model": 32, "n_heads": 4, "n_layers": 2, "max_length": 64}
    config = config_of(small).changed(vocab_size=tokenizer.vocab_size)
    tokens = GenerationDefaults(start=Tokenizer.end, end=(Tokenizer.end,))
    settings = LanguageModelSettings(tokens=tokens, generation=GenerationConfig(max_new_tokens=16))
    return CausalLanguageModel(config, built(config), tokenizer, settings)


def bert(tokenizer: PublishedTokenizer, **changes: Any) -> BertConfig:
    return BertConfig(vocab_size=tokenizer.vocab_size, **SIZES, n_layers=2, max_length=64, **changes)


def classifier() -> Classifier:
    tokenizer = wordpiece()
    config = bert(tokenizer, head="classes", n_classes=3)
    return Classifier(config, built(config), ClassifierSettings(labels=("glad", "sad", "neither")), tokenizer)


def embedder() -> Embedder:
    tokenizer = wordpiece()
    config = bert(tokenizer, head="mean")
    return Embedder(config, built(config), EmbedderSettings(), tokenizer)


def question_answerer() -> QuestionAnswerer:
    tokenizer = wordpiece()
    config = bert(tokenizer, head="span")
    settings = QuestionAnswererSettings(max_tokens=48, stride=16, can_refuse=True)
    return QuestionAnswerer(config, built(config), settings, tokenizer)


def tagger() -> Tagger:
    tokenizer = wordpiece()
    config = bert(tokenizer, head="token-classes", n_classes=3)
    return Tagger(config, built(config), TaggerSettings(labels=("O", "B-PER", "I-PER")), tokenizer)


def filler() -> MaskedLanguageModel:
    tokenizer = wordpiece()
    config = bert(tokenizer)
    return MaskedLanguageModel(config, built(config), MaskedLanguageModelSettings(mask="[MASK]"), tokenizer)


def image_classifier() -> ImageClassifier:
    """Of grey pictures, 16 by 16."""
    config = ViTConfig(**SIZES, dropout=0.0, n_layers=2, image_size=16, patch_size=4, n_channels=1, n_classes=3)
    settings = ImageSettings(labels=("cat", "dog", "bird"), resize=(16, 16), mean=(0.4,), std=(0.3,))
    return ImageClassifier(config, built(config), settings)


def forecaster() -> SeriesForecaster:
    """The seven steps after 48 or more of one channel."""
    config = PatchTSTConfig(**SIZES, n_layers=2, context_length=48, horizon=7)
    return SeriesForecaster(config, built(config), ForecastSettings(columns=("sold",)))


def wordpiece() -> PublishedTokenizer:
    """As BERT's."""
    fast = FastTokenizer(models.WordPiece(unk_token="[UNK]"))
    fast.normalizer = normalizers.BertNormalizer(lowercase=True)
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=160, special_tokens=special, show_progress=False)
    fast.train_from_iterator(PAGE * 2, trainer)
    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast.decoder = decoders.WordPiece(prefix="##")
    return PublishedTokenizer(fast.to_str())


TINY: dict[str, Callable[[], Any]] = {
    "en-ko": lambda: translator("en", "ko"),
    "ko-en": lambda: translator("ko", "en"),
    "writer": language_model,
    "feelings": classifier,
    "vectors": embedder,
    "answers": question_answerer,
    "entities": tagger,
    "gaps": filler,
    "pictures": image_classifier,
    "sales": forecaster,
}


def write_all(folder: Path) -> None:
    """A bundle for each, in a folder of its name."""
    for name, make in TINY.items():
        make().save(folder / name)
