"""The order of the blocks."""


def encoder_layer() -> list[str]:
    """Blocks: "add & norm" (twice), "feed-forward", "self-attention"."""
    return ["self-attention", "add & norm", "feed-forward", "add & norm"]


def decoder() -> list[str]:
    """Blocks: "add & norm" (3 ×), "cross-attention", "embedding", "feed-forward", "linear", "masked self-attention",
    "positional encoding", "softmax".
    """
    start, end = ["embedding", "positional encoding"], ["linear", "softmax"]
    sublayers = ["masked self-attention", "cross-attention", "feed-forward"]
    return start + [block for sublayer in sublayers for block in (sublayer, "add & norm")] + end
