"""Every part of the Transformer, and nothing but torch under it."""

from .attention import DotProduct, attend, attention_weights
from .cache import Cache, KVCache, State
from .embeddings import PatchEmbedding, SeriesEmbedding, TokenEmbedding, Vectors
from .feedforward import ACTIVATIONS, FeedForward, GatedFeedForward
from .fixed_cache import FixedKVCache
from .heads import ClassHead, FirstToken, ForecastHead, Hidden, Mean, PoolingHead, Transform, VocabularyHead
from .layers import DecoderLayer, EncoderLayer, PostNorm, PreNorm
from .masks import Mask, causal, everything, padding, window
from .multihead import MultiHeadAttention
from .norms import LayerNorm, RMSNorm
from .positions import ALiBi, Learned, LinearScaling, Llama3Scaling, Positions, Relative, Rotary, Sinusoidal
from .recurrent import (
    AdditiveAttention,
    NoAttention,
    RecurrentDecoder,
    RecurrentEncoder,
    RecurrentState,
)
from .stacks import Decoder, Encoder, Stack
from .transformer import DecoderOnly, EncoderDecoder, EncoderOnly

__all__ = [
    "ACTIVATIONS",
    "ALiBi",
    "AdditiveAttention",
    "Cache",
    "ClassHead",
    "Decoder",
    "DecoderLayer",
    "DecoderOnly",
    "DotProduct",
    "Encoder",
    "EncoderDecoder",
    "EncoderLayer",
    "EncoderOnly",
    "FeedForward",
    "FirstToken",
    "FixedKVCache",
    "ForecastHead",
    "GatedFeedForward",
    "Hidden",
    "KVCache",
    "LayerNorm",
    "Learned",
    "LinearScaling",
    "Llama3Scaling",
    "Mask",
    "Mean",
    "MultiHeadAttention",
    "NoAttention",
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
    "SeriesEmbedding",
    "Sinusoidal",
    "Stack",
    "State",
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
