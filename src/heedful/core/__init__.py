"""Every part of the Transformer, and nothing but torch under it."""

from .attention import DotProduct, MultiHeadAttention, attend, attention_weights
from .cache import Cache, FixedKVCache, KVCache, State
from .embeddings import PatchEmbedding, SeriesEmbedding, TokenEmbedding, Vectors
from .feedforward import ACTIVATIONS, FeedForward, GatedFeedForward
from .heads import ClassHead, FirstToken, ForecastHead, Hidden, Mean, PoolingHead, VocabularyHead
from .layers import DecoderLayer, EncoderLayer, PostNorm, PreNorm
from .masks import Mask, causal, everything, padding, window
from .norms import LayerNorm, RMSNorm
from .positions import ALiBi, Learned, Positions, Relative, Rotary, Sinusoidal, linear_scaling, llama3_scaling
from .recurrent import (
    AdditiveAttention,
    NoAttention,
    RecurrentDecoder,
    RecurrentEncoder,
    RecurrentEncoderDecoder,
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
    "RecurrentEncoderDecoder",
    "RecurrentState",
    "Relative",
    "Rotary",
    "SeriesEmbedding",
    "Sinusoidal",
    "Stack",
    "State",
    "TokenEmbedding",
    "Vectors",
    "VocabularyHead",
    "attend",
    "attention_weights",
    "causal",
    "everything",
    "linear_scaling",
    "llama3_scaling",
    "padding",
    "window",
]
