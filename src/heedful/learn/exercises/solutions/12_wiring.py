"""The wiring for a task."""


def choose_wiring() -> dict[str, str]:
    """Values: "encoder-only", "decoder-only", "encoder-decoder" """
    return {
        "translate a sentence": "encoder-decoder",
        "summarize a document": "encoder-decoder",
        "continue a text": "decoder-only",
        "label a review": "encoder-only",
        "fill in a masked word": "encoder-only",
        "label a picture": "encoder-only",
        "forecast prices from patches": "encoder-only",
    }


def n_patches(length: int, patch: int, stride: int) -> int:
    """30, 6, 3 → 9"""
    return (length - patch) // stride + 1
