"""The shapes of "I am a student"."""


def predict_shapes() -> dict[str, tuple[int, ...]]:
    """Keys: "ids", "embedded", "keys", "scores", "merged", "hidden", "logits"; e.g. {"ids": (7, 7), …}"""
    return {
        "ids": (1, 4),
        "embedded": (1, 4, 512),
        "keys": (1, 8, 4, 64),
        "scores": (1, 8, 4, 4),
        "merged": (1, 4, 512),
        "hidden": (1, 4, 2048),
        "logits": (1, 4, 10000),
    }
