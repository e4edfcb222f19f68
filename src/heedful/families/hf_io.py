"""Published checkpoints in Hugging Face's layout, in and out: config.json, weights, generation_config.json.

A published config and tensors become a module, and a module becomes them; the same from and to a folder.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from ..config import FamilyConfig, write_mapping
from ..core import ClassHead, DecoderOnly, EncoderDecoder
from ..errors import ConfigError, HeedfulError, unknown
from ..files import new_folder
from .checkpoint_files import FORMS, SAFETENSORS, LayoutError, part_name, read_object, read_tensors, some_of
from .hf_config import GenerationDefaults, Published
from .registry import FAMILIES, Family, family_of
from .weight_map import from_hf, to_hf
from .weights import WeightsError

MOST_LAYERS = 1000
LONGEST_LABEL = 1000  # characters


class Imported(NamedTuple):
    """What a published checkpoint holds; the module is wired as its family says. `labels` are its classes' names."""

    module: Any
    config: FamilyConfig
    generation: GenerationDefaults
    labels: tuple[str, ...] = ()


class Exported(NamedTuple):
    """What a published checkpoint holds, as its files have it; tensors that are shared stand under every name.

    `generation` is empty where a model does not generate.
    """

    config: dict[str, Any]
    generation: dict[str, Any]
    tensors: dict[str, Tensor]


def read_published(
    config: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    generation: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Imported:
    """A module in evaluation mode from a config.json, its tensors, and a generation_config.json where there is one.

    The tensors are taken over where their layout allows, not copied. `changes` are made to the family's config:
    another head, another dropout.
    """
    family, published = published_family(config)
    ours = published.read(config, family.config).changed(**changes)
    for field in fields(ours):  # no more modules than a checkpoint can fill
        most = min(MOST_LAYERS, len(tensors))
        if field.name.endswith("_layers") and getattr(ours, field.name) > most:
            there = f"there are only {len(tensors)} tensors" if most < MOST_LAYERS else f"at most {most} are read"
            raise ConfigError(f"{field.name}={getattr(ours, field.name)}, but {there}")
    defaults = GenerationDefaults.read(published, config, generation or {})
    module = _outline(family, ours)
    labels = _read_labels(config.get("id2label"), _n_classes(module))
    state = from_hf(tensors, published.names(ours), module.state_dict(keep_vars=True))
    module.load_state_dict(state, assign=True)
    return Imported(module.eval(), ours, defaults, labels)


def write_published(
    module: nn.Module, config: FamilyConfig, generation: GenerationDefaults | None = None, *, labels: Sequence[str] = ()
) -> Exported:
    """What `read_published` reads. The tensors are the module's own where their layout allows."""
    family = family_of(config.family)
    published = family.published
    if published is None:
        known = sorted(name for name, family in FAMILIES.items() if family.published is not None)
        raise ConfigError(f"the family {config.family!r} has no published form; {', '.join(known)} have one")
    state = module.state_dict()
    _refuse_other(state, _outline(family, config).state_dict())
    defaults = (generation or GenerationDefaults()).write(published)
    tokens = {key: value for key, value in defaults.items() if key.endswith("_token_id")}
    # What the config says of tokens is what the model computes: RoBERTa counts positions from its padding's id.
    written = tokens | published.write(config) | _write_labels(labels, _n_classes(module))
    generates = isinstance(module, EncoderDecoder | DecoderOnly)
    return Exported(written, defaults if generates else {}, to_hf(state, published.names(config)))


def published_family(config: Mapping[str, Any]) -> tuple[Family, Published]:
    """The family that a config.json is of."""
    known = {
        family.published.model_type: (family, family.published)
        for family in FAMILIES.values()
        if family.published is not None
    }
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or model_type not in known:
        raise ConfigError(unknown("model_type", model_type, known))
    return known[model_type]


def _outline(family: Family, config: FamilyConfig) -> nn.Module:
    """A model without values: every shape, and what is shared, before anything is allocated."""
    try:
        with torch.device("meta"):
            return family.build(config)
    except HeedfulError:
        raise
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:  # sizes that no tensor can have
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"{config.family}: a model of these sizes cannot be built: {reason}") from None


def _refuse_other(state: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """A module that is not what its config says."""
    for name in dict.fromkeys((*wanted, *state)):
        has, should = (str(tuple(known[name].shape)) if name in known else "nothing" for known in (state, wanted))
        if has != should:
            raise WeightsError(f"the module is not what its config says: {name} is {has} and should be {should}")
    if empty := [name for name, tensor in state.items() if tensor.is_meta]:
        raise WeightsError(f"the module has no values to write: {empty[0]} is on the meta device")


def _n_classes(module: nn.Module) -> int:
    """How many classes a model tells apart; 0 where it has no head for that."""
    return next((part.out.out_features for part in module.modules() if isinstance(part, ClassHead)), 0)


def _read_labels(given: Any, n_classes: int) -> tuple[str, ...]:
    if not n_classes or given is None:
        return ()
    places = {str(place): place for place in range(n_classes)}
    if not isinstance(given, Mapping) or {str(key) for key in given} != places.keys() or len(given) != n_classes:
        raise ConfigError(f"id2label must name the classes 0 to {n_classes - 1}, each once, but is {given!r:.100}")
    return _checked_labels(given[key] for key in sorted(given, key=lambda key: places[str(key)]))


def _write_labels(labels: Sequence[str], n_classes: int) -> dict[str, Any]:
    if not labels:
        return {}
    if len(labels) != n_classes:
        raise ConfigError(f"the model tells {n_classes} classes apart, but {len(labels)} labels were given")
    names = _checked_labels(labels)
    return {
        "id2label": {str(place): name for place, name in enumerate(names)},
        "label2id": {name: place for place, name in enumerate(names)},
    }


def _checked_labels(labels: Any) -> tuple[str, ...]:
    found = tuple(labels)
    for label in found:
        if not isinstance(label, str) or len(label) > LONGEST_LABEL:
            raise ConfigError(f"a label is text of at most {LONGEST_LABEL} characters, not {label!r:.100}")
    return found


def read_checkpoint(folder: str | Path, **changes: Any) -> Imported:
    """A module in evaluation mode with its config, generation defaults and labels, from Hugging Face's layout.

    Nothing is allocated before all names and shapes fit. Weights stay mapped to their files where the layout allows:
    leave the files as they are while the module lives. `changes` are made to the config: head="mean".
    """
    folder = Path(folder)
    refuse_other_folders(folder)
    config = read_object(folder / "config.json")
    refuse_bundle(folder, config)
    defaults = folder / "generation_config.json"
    generation = read_object(defaults) if defaults.is_file() else None
    try:
        published_family(config)  # before the weights: of a model that is not known, they do not matter
        tensors = read_tensors(folder)
        if tensors is None:
            raise without_weights(folder)
        return read_published(config, tensors, generation, **changes)
    except ConfigError as error:
        raise ConfigError(f"{folder}: {error}") from None
    except WeightsError as error:
        named = str(error).startswith(str(folder))
        raise error if named else WeightsError(f"{folder}: {error}") from None


def import_checkpoint(folder: str | Path, **changes: Any) -> nn.Module:
    """A published model, ready to use, from a folder with config.json and model.safetensors.

    >>> heedful.import_checkpoint("bert-base-uncased", head="mean")
    """
    module: nn.Module = read_checkpoint(folder, **changes).module
    return module


LISTED = 12  # how many files of a folder a message names
ALLOWED = " or ".join(form.whole for form in FORMS) + ", or several such files with their index"
KINDS = {
    "adapter_config.json": "an adapter, which changes another model; merge it into that model, and save the whole",
    "model_index.json": "a pipeline of diffusers, which is no one model; the models in its folders are not read here",
    "snapshots": "a cache of the hub; give the folder inside its snapshots",
}
WITHOUT_CONFIG = {
    "config_sentence_transformers.json": "a model of sentence-transformers whose Transformer has a folder of its own "
    "(often 0_Transformer); give that one"
}
WITHOUT_WEIGHTS = {"model.bin": "a model of CTranslate2; read it with heedful.families.ctranslate2.from_ctranslate2"}
NOT_READ = (".h5", ".msgpack", ".gguf", ".onnx", ".ckpt", ".pt", ".pth", ".safetensors", ".bin")


def refuse_other_folders(folder: Path) -> None:
    """Raise for what is not there, is no folder, or is another kind of folder."""
    if not folder.is_dir():
        kind = "is a file" if folder.exists() else "is not there"
        raise LayoutError(f"{folder} {kind}; a checkpoint is a folder that holds config.json and {FORMS[0].whole}")
    _refuse(folder, KINDS)
    if not (folder / "config.json").is_file():
        _refuse(folder, WITHOUT_CONFIG | WITHOUT_WEIGHTS)
        raise LayoutError(f"{folder} holds no config.json; {_listed(folder)}")


def refuse_bundle(folder: Path, config: Mapping[str, Any]) -> None:
    """Raise for what this library's own training wrote."""
    if {"format", "task", "model", "sha256"} <= config.keys() and "model_type" not in config:
        raise LayoutError(f"{folder} is a model of Heedful's own; read it with heedful.load({str(folder)!r})")


def without_weights(folder: Path) -> LayoutError:
    """The error for a folder whose weights are of another kind, or not there."""
    _refuse(folder, WITHOUT_WEIGHTS)
    names = _names(folder)
    found = [name for name in names if Path(name).suffix in NOT_READ]
    what = f"what is there is not read: {some_of(found, LISTED, str)}" if found else _listed(folder)
    return LayoutError(f"{folder} holds no weights that are read here ({ALLOWED}); {what}")


def _refuse(folder: Path, kinds: Mapping[str, str]) -> None:
    for name, kind in kinds.items():
        if (folder / name).exists():
            raise LayoutError(f"{folder} is {kind}")


def _listed(folder: Path) -> str:
    names = _names(folder)
    return f"it holds {some_of(names, LISTED, str)}" if names else "it is empty"


def _names(folder: Path) -> list[str]:
    return sorted(f"{path.name} (a broken link)" if not path.exists() else path.name for path in folder.iterdir())


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
    names = [part_name(SAFETENSORS.whole, place, len(shards)) for place in range(1, len(shards) + 1)]
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
