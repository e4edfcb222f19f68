"""Where to compute."""

import torch

from ..errors import ConfigError


def torch_device(name: str = "auto") -> torch.device:
    """The device of this name, tried out; "auto" is a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.ones(1, device=name).item()  # "meta" would make it, but has nothing in it
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f'device: {name!r} cannot be used here ({reason}); try "auto"') from None
    return torch.device(name)


def computes_in_bf16(device: torch.device) -> bool:
    """Whether products in bf16 are faster there than in float32: on every GPU, and on CPUs with instructions for it."""
    if device.type != "cpu":
        return True
    asked = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(bool(getattr(torch.cpu, name, bool)()) for name in asked)
