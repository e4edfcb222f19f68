"""One look at a tiny model of every kind, made on the spot: weights are random, and every number is the model's own."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
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
from heedful.tasks.forecasting import ForecastSettings, SeriesForecaster
from heedful.tasks.images import ImageClassifier
from heedful.tasks.images.predictor import ImageSettings
from heedful.tasks.inspection import inspect
from heedful.tasks.language_model import CausalLanguageModel
from heedful.tasks.language_model.predictor import LanguageModelSettings
from heedful.tasks.translation.predictor import Translator, TranslatorSettings

Document = dict[str, Any]

ENGLISH, KOREAN = "The cat reads a book by the sea.", "고양이는 바다에서 책을 읽었다."
BREAKING = "<script>window.broken=1</script><img src=x onerror=window.broken=2>"
SMALL: dict[str, Any] = {"d_model": 32, "n_heads": 4, "d_ff": 48, "dropout": 0.0}
TYPES = {"float32": "<f4", "float16": "<f2", "uint8": "u1"}


def values(document: Document, name: str) -> NDArray[Any]:
    """An array of a document, read without the help of the page."""
    array = document["arrays"][name]
    flat = np.frombuffer(zlib.decompress(base64.b64decode(array["data"])), TYPES[array["type"]])
    return flat.reshape(array["shape"])


def weights(document: Document, attention: str, head: int | str) -> NDArray[Any]:
    """Of one head (queries, keys), or of their "mean"."""
    (attention_found,) = [one for one in document["attentions"] if one["id"] == attention]
    maps = [values(document, one["weights"]) for one in attention_found["heads"]]
    return np.mean(maps, axis=0) if head == "mean" else maps[int(head)]


def built(config: FamilyConfig) -> Any:
    """With weights so far apart that heads differ and answers end."""
    torch.manual_seed(0)
    module = heedful.build(config)
    for name, parameter in module.named_parameters():
        if "norm" not in name:
            parameter.data.normal_(0, 0.3)
    return module


def translator(texts: tuple[str, ...], languages: tuple[str, str], **changes: Any) -> Translator:
    tokenizer = Tokenizer.train(texts * 3, vocab_size=400)
    small = {"preset": "tiny", **SMALL, "n_encoder_layers": 2, "n_decoder_layers": 2, "max_length": 400}
    config = config_of({**small, **changes}).changed(vocab_size=tokenizer.vocab_size)
    source, target = languages
    settings = TranslatorSettings(
        source=source, target=target, max_tokens=400, generation=GenerationConfig(max_new_tokens=12)
    )
    return Translator(config, built(config), tokenizer, settings)


def taught(model: Translator, source: str, target: str, steps: int = 40) -> Translator:
    """One sentence by heart, so that its answer is one that people can read."""
    before, target_ids = model.tokenizer.encode(source), model.target_tokenizer.encode(target)
    read = torch.tensor([[*before, model.tokenizer.end]]), torch.tensor([[model.target_tokenizer.start, *target_ids]])
    wanted = torch.tensor([*target_ids, model.target_tokenizer.end])
    optimizer = torch.optim.Adam(model.module.parameters(), lr=3e-3)
    for _ in range(steps):
        loss = torch.nn.functional.cross_entropy(model.module(*read)[0], wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def translation() -> Document:
    model = taught(translator((ENGLISH, KOREAN), ("ko", "en")), KOREAN, ENGLISH)
    return inspect(model, KOREAN, beam=4, length_penalty=0.6, length_penalty_kind="google")


def into_korean() -> Document:
    return inspect(translator((ENGLISH, KOREAN), ("en", "ko")), ENGLISH, target=KOREAN)


def recurrent() -> Document:
    tiny = {"preset": "recurrent", "d_model": 16}
    tokenizer = Tokenizer.train((ENGLISH, KOREAN) * 3, vocab_size=400)
    config = config_of(tiny).changed(vocab_size=tokenizer.vocab_size)
    settings = TranslatorSettings(source="en", target="ko")
    model = Translator(config, built(config), tokenizer, settings)
    return inspect(model, ENGLISH, target=KOREAN)


def long() -> Document:
    """300 tokens: every map is 300 × 300, and there are many."""
    model = translator((ENGLISH,), ("en", "ko"))
    return inspect(model, " ".join(["The cat reads"] * 100), target=" ".join(["a book"] * 20))


def breaking() -> Document:
    """Text that would be a script if it were ever more than text."""
    return inspect(translator((BREAKING, ENGLISH), ("en", "ko")), BREAKING, target=BREAKING, name=BREAKING)


def writing() -> Document:
    tokenizer = of_pieces([ENGLISH, KOREAN] * 3, vocab_size=350, min_frequency=2)
    tiny = {"preset": "gpt2", "d_model": 32, "n_heads": 4, "n_layers": 2, "max_length": 64}
    config = config_of(tiny).changed(vocab_size=tokenizer.vocab_size)
    settings = LanguageModelSettings(
        tokens=GenerationDefaults(end=(Tokenizer.end,)), generation=GenerationConfig(max_new_tokens=8)
    )
    return inspect(CausalLanguageModel(config, built(config), tokenizer, settings), "고양이는 바다에서")


def reading() -> Document:
    tokenizer = wordpiece()
    config = BertConfig(
        vocab_size=tokenizer.vocab_size, d_model=32, n_heads=4, d_ff=48, n_layers=2, max_length=64, head="classes"
    )
    settings = ClassifierSettings(labels=("glad", "sad"))
    return inspect(Classifier(config, built(config), settings, tokenizer), ENGLISH)


def wordpiece() -> PublishedTokenizer:
    """As BERT's."""
    fast = FastTokenizer(models.WordPiece(unk_token="[UNK]"))
    fast.normalizer = normalizers.BertNormalizer(lowercase=True)
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    fast.train_from_iterator(
        [ENGLISH, KOREAN] * 2, trainers.WordPieceTrainer(vocab_size=120, special_tokens=special, show_progress=False)
    )
    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast.decoder = decoders.WordPiece(prefix="##")
    return PublishedTokenizer(fast.to_str())


def image() -> Document:
    """Of a picture with one bright corner; a class has the name of a script."""
    config = ViTConfig(**SMALL, n_layers=2, image_size=16, patch_size=4, n_channels=1, n_classes=3)
    settings = ImageSettings(labels=("cat", "dog", BREAKING), resize=(16, 16), mean=(0.4,), std=(0.3,))
    pixels = np.zeros((16, 16, 1), dtype=np.uint8)
    pixels[:8, 8:] = 220
    return inspect(ImageClassifier(config, built(config), settings), pixels)


def series() -> Document:
    config = PatchTSTConfig(d_model=32, n_heads=4, d_ff=48, n_layers=2, horizon=7)
    numbers = np.random.default_rng(0).normal(size=60).cumsum() + 50
    return inspect(SeriesForecaster(config, built(config), ForecastSettings()), numbers.tolist())


LOOKS: dict[str, Callable[[], Document]] = {
    look.__name__: look
    for look in (translation, into_korean, recurrent, writing, reading, image, series, long, breaking)
}
