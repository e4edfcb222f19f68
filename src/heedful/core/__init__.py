"""Every part of the Transformer, and nothing but torch under it."""

from .attention import DotProduct, attend, attention_weights
from .cache import Cache, KVCache, State
from .embeddings import PatchEmbedding, SeriesEmbedding, TokenEmbedding, Vectors
from .feedforward import ACTIVATIONS, FeedForward, GatedFeedForward
from .fixed_cache import FixedKVCache
from .heads import (
    Average,
    ClassHead,
    FirstToken,
    ForecastHead,
    Hidden,
    Joined,
    Largest,
    Mean,
    PoolingHead,
    Token,
    Transform,
    VocabularyHead,
)
from .layers import DecoderLayer, EncoderLayer, PostNorm, PreNorm
from .masks import Mask, causal, everything, padding, window
from .multihead import MultiHeadAttention
from .norms import BatchNorm, LayerNorm, RMSNorm
from .positions import ALiBi, Learned, LinearScaling, Llama3Scaling, Positions, Relative, Rotary, Sinusoidal
from .recurrent import (
    AdditiveAttention,
    NoAttention,
    RecurrentDecoder,
    RecurrentEncoder,
    RecurrentState,
)
from .series import DirectForecast, Forecaster, InstanceScale, MeanScale, NoScale, Scale
from .stacks import Decoder, Encoder, Stack
from .transformer import DecoderOnly, EncoderDecoder, EncoderOnly

__all__ = [
    "ACTIVATIONS",
    "ALiBi",
    "AdditiveAttention",
    "Average",
    "BatchNorm",
    "Cache",
    "ClassHead",
    "Decoder",
    "DecoderLayer",
    "DecoderOnly",
    "DirectForecast",
    "DotProduct",
    "Encoder",
    "EncoderDecoder",
    "EncoderLayer",
    "EncoderOnly",
    "FeedForward",
    "FirstToken",
    "FixedKVCache",
    "ForecastHead",
    "Forecaster",
    "GatedFeedForward",
    "Hidden",
    "InstanceScale",
    "Joined",
    "KVCache",
    "Largest",
    "LayerNorm",
    "Learned",
    "LinearScaling",
    "Llama3Scaling",
    "Mask",
    "Mean",
    "MeanScale",
    "MultiHeadAttention",
    "NoAttention",
    "NoScale",
    "PatchEmbedding",
    "PoolingHead",
    "Positions",
    "PostNorm",
    "PreNorm",
    "RMSNorm",
    "RecurrentDecoder",
    "RecurrentEncoder",
    "RecurrentState",
    "Relative",
    "Rotary",
    "Scale",
    "SeriesEmbedding",
    "Sinusoidal",
    "Stack",
    "State",
    "Token",
    "TokenEmbedding",
    "Transform",
    "Vectors",
    "VocabularyHead",
    "attend",
    "attention_weights",
    "causal",
    "everything",
    "padding",
    "window",
]
