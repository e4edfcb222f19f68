"""The layers in C, for generation on a CPU: compiled where they are first used, and left out where they cannot be."""
