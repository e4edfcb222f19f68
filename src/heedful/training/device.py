"""The device to compute on, and whether bf16 is fast there."""

import torch

from ..errors import ConfigError


def torch_device(name: str = "auto") -> torch.device:
    """Return the device of this name, once it was tried. "auto" is a GPU if there is one.

    Raises:
        ConfigError: if the device cannot be used.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.ones(1, device=name).item()  # `item` refuses "meta"
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f'device: {name!r} cannot be used here ({reason}); try "auto"') from None
    return torch.device(name)


def computes_in_bf16(device: torch.device) -> bool:
    """Return True if bf16 products are faster than float32: on every GPU, and on CPUs with bf16 instructions."""
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return device.type != "cpu" or any(bool(getattr(torch.cpu, name, bool)()) for name in checks)
