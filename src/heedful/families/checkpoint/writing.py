"""A module becomes a folder that transformers loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from ...config import FamilyConfig, write_mapping
from ...errors import ConfigError
from ...files import new_folder
from ..defaults import GenerationDefaults
from ..exchange import write_published
from .files import SAFETENSORS, part_name
from .objects import LayoutError

SHARD_BYTES = 5 * 10**9


def write_checkpoint(
    folder: str | Path,
    module: nn.Module,
    config: FamilyConfig,
    generation: GenerationDefaults | None = None,
    *,
    labels: Sequence[str] = (),
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """Write what `read_checkpoint` and transformers read into a new folder, which is whole or not there.

    Tensors are written as they are, those that are shared once. Above `shard_bytes` they go into several files.
    """
    folder = Path(folder)
    if shard_bytes < 1:
        raise ConfigError(f"shard_bytes must be at least 1, not {shard_bytes}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise LayoutError(f"{folder} is there already, and not an empty folder; choose another one")
    written = write_published(module, config, generation, labels=labels)
    tensors = _once(written.tensors)
    dtype = str(next(iter(tensors.values())).dtype).removeprefix("torch.")
    with new_folder(folder) as partial:
        write_mapping(partial / "config.json", written.config | {"dtype": dtype, "torch_dtype": dtype})
        if written.generation:
            write_mapping(partial / "generation_config.json", written.generation)
        try:
            _write_tensors(partial, tensors, shard_bytes)
        except SafetensorError as error:  # a full disk
            raise LayoutError(f"{folder} cannot be written: {error}") from None


def _write_tensors(folder: Path, tensors: Mapping[str, Tensor], shard_bytes: int) -> None:
    shards = list(_shards(tensors, shard_bytes))
    names = [part_name(place, len(shards)) for place in range(1, len(shards) + 1)]
    if len(shards) == 1:
        names = [SAFETENSORS.whole]
    else:
        size = sum(tensor.nbytes for tensor in tensors.values())
        places = {name: file for file, shard in zip(names, shards, strict=True) for name in shard}
        write_mapping(folder / SAFETENSORS.index, {"metadata": {"total_size": size}, "weight_map": places})
    for file, shard in zip(names, shards, strict=True):
        save_file({name: tensor.cpu() for name, tensor in shard.items()}, folder / file, metadata={"format": "pt"})


def _shards(tensors: Mapping[str, Tensor], most: int) -> Iterator[dict[str, Tensor]]:
    """In order, each as full as it may be; a tensor that is larger than that has one of its own."""
    shard: dict[str, Tensor] = {}
    held = 0
    for name, tensor in tensors.items():
        if shard and held + tensor.nbytes > most:
            yield shard
            shard, held = {}, 0
        shard[name] = tensor
        held += tensor.nbytes
    yield shard


def _once(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Each tensor under its first name; transformers knows which share one."""
    first: dict[tuple[object, ...], str] = {}
    place = {name: (tensor.device, tensor.data_ptr(), tensor.shape) for name, tensor in tensors.items()}
    return {name: tensor for name, tensor in tensors.items() if first.setdefault(place[name], name) == name}
