"""True or false."""


def answers() -> dict[str, bool]:
    """{"a": True, "b": False, …}"""
    return {"a": False, "b": True, "c": False, "d": True, "e": False, "f": True, "g": False, "h": False}
