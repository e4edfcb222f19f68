"""Named architectures: each one file of a config, a builder, presets and published names over the same core."""

from .bart import BartConfig
from .bert import BertConfig
from .exchange import Exported, Imported, read_published, write_published
from .gpt2 import GPT2Config
from .llama import LlamaConfig
from .marian import MarianConfig
from .original import OriginalConfig
from .published import GenerationDefaults
from .recurrent import RecurrentConfig
from .registry import FAMILIES, Family, build, config_of, presets, register
from .t5 import T5Config

__all__ = [
    "FAMILIES",
    "BartConfig",
    "BertConfig",
    "Exported",
    "Family",
    "GPT2Config",
    "GenerationDefaults",
    "Imported",
    "LlamaConfig",
    "MarianConfig",
    "OriginalConfig",
    "RecurrentConfig",
    "T5Config",
    "build",
    "config_of",
    "presets",
    "read_published",
    "register",
    "write_published",
]
