"""RoBERTa and the multilingual XLM-RoBERTa: BERT with other heads, and positions that begin after the padding id."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ..core import EncoderOnly
from .bert import FIXED, SETTINGS, BertConfig, layers
from .encoder_only import architectures, assemble, weight_map, word_links
from .hf_config import HFConfig, Published, Setting
from .registry import register
from .weight_map import WeightMap

ROWS = 512  # of the position table, if a config has no max_position_embeddings


@dataclass(frozen=True, kw_only=True)
class RobertaConfig(BertConfig):
    """RoBERTa. The defaults are those of transformers for missing keys; the presets are the published models."""

    family: ClassVar[str] = "roberta"

    vocab_size: int = 50265
    position_offset: int = 2  # Unused first rows of the position table: the id of the padding token, plus one
    max_length: int = ROWS - 2

    def check(self) -> None:
        super().check()
        self.require_positive("position_offset")


@dataclass(frozen=True, kw_only=True)
class XLMRobertaConfig(RobertaConfig):
    """XLM-RoBERTa: RoBERTa with another tag and another vocabulary."""

    family: ClassVar[str] = "xlm-roberta"

    vocab_size: int = 30522


def build(config: RobertaConfig) -> EncoderOnly:
    """Build RoBERTa; the transform before the output always has GELU."""
    return assemble(config, n_segments=config.n_segments, offset=config.position_offset, transform="gelu")


WORDS = word_links("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head")


def names(config: RobertaConfig) -> WeightMap:
    """Return the published names; the classifier has its own dense layer, not the pooler."""
    return weight_map(
        config,
        "roberta",
        layers,
        WORDS,
        pooler="pooler.dense",
        dense="classifier.dense",
        classifier="classifier.out_proj",
    )


def _read_offset(hf: HFConfig) -> Any:
    pad = hf.get("pad_token_id")
    return pad + 1 if isinstance(pad, int) else pad


def _read_length(hf: HFConfig) -> Any:
    rows, offset = hf.get("max_position_embeddings"), _read_offset(hf)
    rows, offset = ROWS if rows is None else rows, 2 if offset is None else offset
    return rows - offset if isinstance(rows, int) and isinstance(offset, int) else rows


class RobertaPublished(Published):
    """Writes the number of rows of the position table, which two config fields determine."""

    def write(self, config: Any) -> dict[str, Any]:
        """Return the contents of config.json for a config."""
        return super().write(config) | {"max_position_embeddings": config.max_length + config.position_offset}


def _published(model_type: str, kind: str) -> Published:
    return RobertaPublished(
        model_type=model_type,
        architectures=architectures(kind),
        settings=SETTINGS
        | {
            "max_length": Setting(("max_position_embeddings", "pad_token_id"), _read_length, lambda length: {}),
            "position_offset": Setting(("pad_token_id",), _read_offset, lambda offset: {"pad_token_id": offset - 1}),
        },
        fixed=FIXED,
        names=names,
    )


TRAINED = {"max_length": 512, "n_segments": 1, "norm_eps": 1e-5}
TINY = TRAINED | {"vocab_size": 8000, "d_model": 128, "n_heads": 2, "d_ff": 512, "n_layers": 2}
LARGE = TRAINED | {"d_model": 1024, "n_heads": 16, "d_ff": 4096, "n_layers": 24}
LANGUAGES = {"vocab_size": 250002}

roberta = register(
    RobertaConfig,
    build,
    presets={
        "roberta-tiny": RobertaConfig().changed(**TINY),
        "roberta-base": RobertaConfig().changed(**TRAINED),
        "roberta-large": RobertaConfig().changed(**LARGE),
    },
    published=_published("roberta", "Roberta"),
)
xlm_roberta = register(
    XLMRobertaConfig,
    build,
    presets={
        "xlm-roberta-tiny": XLMRobertaConfig().changed(**TINY),
        "xlm-roberta-base": XLMRobertaConfig().changed(**TRAINED, **LANGUAGES),
        "xlm-roberta-large": XLMRobertaConfig().changed(**LARGE, **LANGUAGES),
    },
    published=_published("xlm-roberta", "XLMRoberta"),
)
