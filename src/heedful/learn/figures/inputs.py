"""Figures of a model's inputs: from a text to scaled vectors, and positions as hands, map, waves and five schemes."""

from typing import Any

import torch
from torch import Tensor

from ...core import ALiBi, Learned, Relative, Rotary, Sinusoidal, TokenEmbedding
from ...data.tokenizer import Tokenizer
from ...demo import Grammar
from . import figure, rounded

TEXTS = ["I am a student", "나는 학생입니다", "The students study", "I love deep learning", "나는 딥러닝을 사랑한다"]
D_TEXT, DRAWN = 512, 64  # the width of the vectors of texts, and how many of their numbers are drawn
D_MODEL, LENGTH = 128, 100  # of the map
HANDS = (0, 4, 8, 12, 16, 20, 24, 32)  # the pairs of dimensions drawn as clocks
MOST_POSITION, MOST_SHIFT = 40, 40
N = 24  # tokens of the comparison of schemes


def course_tokenizer() -> Tokenizer:
    """Train the tokenizer of the chapter on sentences of the built-in corpus."""
    pairs = Grammar("demo").sample(2000)
    return Tokenizer.train((text for pair in pairs for text in (pair.korean, pair.english)), vocab_size=1500)


@figure("text-to-vectors")
def text_to_vectors(language: str) -> dict[str, Any]:
    """Return pieces, ids and the first dimensions of the vectors of some texts, from a new embedding table."""
    tokenizer = course_tokenizer()
    embedding = TokenEmbedding(tokenizer.vocab_size, D_TEXT)
    texts = []
    for text in TEXTS:
        ids = tokenizer.encode(text)
        rows = embedding.weight.detach()[ids]
        stages = {
            "rows": rows,
            "scaled": embedding.look_up(torch.tensor(ids)).detach(),
            "positions": Sinusoidal(D_TEXT).table(len(ids)),
        }
        texts.append({
            "text": text,
            "pieces": [{"text": piece.text, "ids": ids[piece.start : piece.stop]} for piece in tokenizer.readable(ids)],
            "stages": {name: rounded(stage[:, :DRAWN]) for name, stage in stages.items()},
            "lengths": {name: round(stage.norm(dim=1).mean().item(), 1) for name, stage in stages.items()},
        })  # fmt: skip
    return {"texts": texts, "vocabulary": tokenizer.vocab_size, "d_model": D_TEXT}


def shift_matrices(pairs: Tensor, most: int) -> Tensor:
    """Fit for every pair and shift k the matrix R with PE(pos + k) = R PE(pos), knowing only the table.

    Args:
        pairs: (T, P, 2), sine and cosine of each pair.
        most: the largest k.

    Returns:
        (most + 1, P, 2, 2), the least squares solutions over all positions.
    """
    columns = pairs.transpose(0, 1)  # (P, T, 2)
    length = pairs.shape[0] - most
    fits = [torch.linalg.lstsq(columns[:, :length], columns[:, k : k + length]).solution for k in range(most + 1)]
    return torch.stack(fits).transpose(-2, -1)


@figure("clock-hands")
def clock_hands(language: str) -> dict[str, Any]:
    """Return the hands (sine, cosine) by position and pair, and the fitted matrix of each shift."""
    table = Sinusoidal(D_MODEL).table(MOST_POSITION + MOST_SHIFT + 1).double()
    pairs = table.unflatten(1, (-1, 2))[:, list(HANDS)]  # (T, P, 2)
    shifts = shift_matrices(pairs, MOST_SHIFT)
    return {
        "d_model": D_MODEL,
        "pairs": HANDS,
        "positions": MOST_POSITION,
        "hands": rounded(pairs, 5),
        "shifts": rounded(shifts, 5),
        "degrees": rounded(torch.rad2deg(torch.atan2(shifts[1, :, 0, 1], shifts[1, :, 0, 0])), 4),  # of one step
    }


@figure("position-map")
def position_map(language: str) -> dict[str, Any]:
    """Return the paper's encodings of 100 positions in 128 dimensions."""
    return {"table": rounded(Sinusoidal(D_MODEL, LENGTH).table()), "waves": [0, 10, 50, 100]}


@figure("position-schemes")
def position_schemes(language: str) -> dict[str, Any]:
    """Return what five schemes make of each pair of query and key position; the learned one is untrained."""
    pos = torch.arange(N)
    learned = torch.nn.functional.normalize(Learned(N, D_MODEL).table(N))
    sinusoidal = Sinusoidal(D_MODEL).table(N)
    ones = torch.ones(1, 1, N, 64) / 8  # every query and key the same vector of length 1
    query, key = Rotary(64).rotate(ones, ones, pos, pos)
    buckets = Relative(8).buckets(pos[None] - pos[:, None])
    return {
        "maps": {
            "sinusoidal": rounded(sinusoidal @ sinusoidal.T / (D_MODEL / 2)),
            "learned": rounded(learned @ learned.T),
            "relative": rounded(buckets),
            "rotary": rounded((query @ key.transpose(-2, -1))[0, 0]),
            "alibi": rounded(ALiBi(8).bias(pos, pos)[1]),
        },
    }
