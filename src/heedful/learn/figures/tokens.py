"""The figure of chapter 2: from a text to pieces, ids, vectors and scaled vectors."""

from typing import Any

import torch

from ...core import Sinusoidal, TokenEmbedding
from ...data.tokenizer import Tokenizer
from ...demo import Grammar
from . import figure, rounded

TEXTS = ["I am a student", "나는 학생입니다", "The students study", "I love deep learning", "나는 딥러닝을 사랑한다"]
D_MODEL = 512
DRAWN = 64  # of its dimensions


def course_tokenizer() -> Tokenizer:
    """Train the tokenizer of the chapter on sentences of the built-in corpus."""
    pairs = Grammar("demo").sample(2000)
    return Tokenizer.train((text for pair in pairs for text in (pair.korean, pair.english)), vocab_size=1500)


@figure("text-to-vectors")
def text_to_vectors(language: str) -> dict[str, Any]:
    """Return pieces, ids and the first dimensions of the vectors of some texts, from a new embedding table."""
    tokenizer = course_tokenizer()
    embedding = TokenEmbedding(tokenizer.vocab_size, D_MODEL)
    texts = []
    for text in TEXTS:
        ids = tokenizer.encode(text)
        rows = embedding.weight.detach()[ids]
        stages = {
            "rows": rows,
            "scaled": embedding.look_up(torch.tensor(ids)).detach(),
            "positions": Sinusoidal(D_MODEL).table(len(ids)),
        }
        texts.append({
            "text": text,
            "pieces": [{"text": piece.text, "ids": ids[piece.start : piece.stop]} for piece in tokenizer.readable(ids)],
            "stages": {name: rounded(stage[:, :DRAWN]) for name, stage in stages.items()},
            "lengths": {name: round(stage.norm(dim=1).mean().item(), 1) for name, stage in stages.items()},
        })  # fmt: skip
    return {"texts": texts, "vocabulary": tokenizer.vocab_size, "d_model": D_MODEL}
