"""A tokeniser for a bare list of tokens, as engines keep one beside a model: nothing says how a text became them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as FastTokenizer

from .published_tokenizer import PublishedTokenizer

Unit = Literal["words", "characters"]


def tokenizer_of(tokens: Sequence[str], unknown: str, unit: Unit = "words") -> PublishedTokenizer:
    """What is not in the list is `unknown`.

    Of "words" a text comes with spaces between its tokens, and goes out so; of "characters" each is a token.
    """
    places = {token: place for place, token in reversed(list(enumerate(tokens)))}
    fast = FastTokenizer(models.WordLevel(places, unk_token=unknown))
    if unit == "characters":
        fast.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        fast.decoder = decoders.Fuse()
    else:
        fast.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PublishedTokenizer(fast.to_str(pretty=True))
