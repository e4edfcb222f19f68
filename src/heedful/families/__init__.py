"""Named architectures: each one file of a config, a builder, presets and published names over the same core."""

from .albert import AlbertConfig
from .bart import BartConfig
from .bert import BertConfig
from .checkpoint import LayoutError, import_checkpoint, read_checkpoint, write_checkpoint
from .composed import ComposedConfig, DescriptionError, describe
from .defaults import GenerationDefaults, PublishedWarning
from .deit import DeiTConfig
from .distilbert import DistilBertConfig
from .exchange import Exported, Imported, read_published, write_published
from .gpt2 import GPT2Config
from .llama import LlamaConfig
from .marian import MarianConfig
from .mistral import MistralConfig
from .opt import OPTConfig
from .original import OriginalConfig
from .patchtst import PatchTSTConfig
from .recurrent import RecurrentConfig
from .registry import FAMILIES, Family, build, config_of, presets, register
from .roberta import RobertaConfig, XLMRobertaConfig
from .t5 import T5Config
from .vit import ViTConfig

__all__ = [
    "FAMILIES",
    "AlbertConfig",
    "BartConfig",
    "BertConfig",
    "ComposedConfig",
    "DeiTConfig",
    "DescriptionError",
    "DistilBertConfig",
    "Exported",
    "Family",
    "GPT2Config",
    "GenerationDefaults",
    "Imported",
    "LayoutError",
    "LlamaConfig",
    "MarianConfig",
    "MistralConfig",
    "OPTConfig",
    "OriginalConfig",
    "PatchTSTConfig",
    "PublishedWarning",
    "RecurrentConfig",
    "RobertaConfig",
    "T5Config",
    "ViTConfig",
    "XLMRobertaConfig",
    "build",
    "config_of",
    "describe",
    "import_checkpoint",
    "presets",
    "read_checkpoint",
    "read_published",
    "register",
    "write_checkpoint",
    "write_published",
]
