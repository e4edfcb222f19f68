"""Named architectures: each one file of a config, a builder, presets and published names over the same core."""

from .albert import AlbertConfig
from .bart import BartConfig
from .bert import BertConfig
from .checkpoint_files import LayoutError
from .composed import ComposedConfig
from .description import DescriptionError, describe
from .distilbert import DistilBertConfig
from .gpt2 import GPT2Config
from .hf_config import GenerationDefaults, PublishedWarning
from .hf_io import (
    Exported,
    Imported,
    import_checkpoint,
    read_checkpoint,
    read_published,
    write_checkpoint,
    write_published,
)
from .llama import LlamaConfig, MistralConfig
from .marian import MarianConfig
from .opt import OPTConfig
from .original import OriginalConfig
from .patchtst import PatchTSTConfig
from .recurrent import RecurrentConfig
from .registry import FAMILIES, Family, build, config_of, presets, register
from .roberta import RobertaConfig, XLMRobertaConfig
from .t5 import T5Config
from .vit import DeiTConfig, ViTConfig

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
