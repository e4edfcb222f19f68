"""The layers in C, for generation on a CPU. They are compiled at first use, and not used where that is impossible."""
