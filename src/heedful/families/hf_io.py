"""Reads and writes published checkpoints in Hugging Face's layout: config.json, weights, generation_config.json."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from ..config import FamilyConfig, write_mapping
from ..core import ClassHead, DecoderOnly, EncoderDecoder
from ..errors import ConfigError, unknown
from ..files import new_folder
from .checkpoint_files import FORMATS, SAFETENSORS, LayoutError, part_name, read_object, read_tensors, some_of
from .hf_config import GenerationDefaults, Published, labels_to_hf
from .registry import FAMILIES, Family, family_of
from .sizes import build_on_meta, check_sizes
from .weight_map import from_hf, to_hf
from .weights import WeightsError

MAX_LABEL_LENGTH = 1000  # characters


class Imported(NamedTuple):
    """A published checkpoint as a module, its config, its generation defaults and the names of its classes."""

    module: Any
    config: FamilyConfig
    generation: GenerationDefaults
    labels: tuple[str, ...] = ()


class Exported(NamedTuple):
    """The contents of a checkpoint's files; a shared tensor is listed under each of its names.

    `generation` is empty if the model does not generate.
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
    """Build a module in evaluation mode from published values; tensors are not copied where their layout allows.

    Args:
        config: The contents of config.json.
        tensors: The published tensors by name.
        generation: The contents of generation_config.json.
        **changes: Changes to the family's config, such as `head="mean"`.
    """
    family, published = published_family(config)
    family_config = published.read(config, family.config).changed(**changes)
    check_sizes(family_config, {name: tensor.shape for name, tensor in tensors.items()})
    defaults = GenerationDefaults.read(published, config, generation or {})
    module = build_on_meta(family_config)
    labels = _read_labels(config.get("id2label"), _n_classes(module))
    state = from_hf(tensors, published.names(family_config), module.state_dict(keep_vars=True))
    module.load_state_dict(state, assign=True)
    return Imported(module.eval(), family_config, defaults, labels)


def write_published(
    module: nn.Module, config: FamilyConfig, generation: GenerationDefaults | None = None, *, labels: Sequence[str] = ()
) -> Exported:
    """Return what `read_published` reads; tensors are the module's own where their layout allows."""
    family = family_of(config.family)
    published = family.published
    if published is None:
        names = sorted(name for name, family in FAMILIES.items() if family.published is not None)
        raise ConfigError(f"the family {config.family!r} has no published form; {', '.join(names)} have one")
    state = module.state_dict()
    _check_weights(state, build_on_meta(config).state_dict())
    defaults = (generation or GenerationDefaults()).write(published)
    tokens = {key: value for key, value in defaults.items() if key.endswith("_token_id")}
    # The family's config overrides the token ids, since RoBERTa counts positions from the id of its padding.
    written = tokens | published.write(config) | _write_labels(labels, _n_classes(module))
    generates = isinstance(module, EncoderDecoder | DecoderOnly)
    return Exported(written, defaults if generates else {}, to_hf(state, published.names(config)))


def published_family(config: Mapping[str, Any]) -> tuple[Family, Published]:
    """Return the family that reads a config.json."""
    families = {
        family.published.model_type: (family, family.published)
        for family in FAMILIES.values()
        if family.published is not None
    }
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or model_type not in families:
        raise ConfigError(unknown("model_type", model_type, families))
    return families[model_type]


def _check_weights(state: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Raise for a module that does not match its config, or has no values."""
    for name in dict.fromkeys((*expected, *state)):
        actual, wanted = (str(tuple(side[name].shape)) if name in side else "nothing" for side in (state, expected))
        if actual != wanted:
            raise WeightsError(f"the module does not match its config: {name} is {actual} and should be {wanted}")
    if empty := [name for name, tensor in state.items() if tensor.is_meta]:
        raise WeightsError(f"the module has no values to write: {empty[0]} is on the meta device")


def _n_classes(module: nn.Module) -> int:
    """Return the number of classes of a model's class head, or 0."""
    return next((part.out_proj.out_features for part in module.modules() if isinstance(part, ClassHead)), 0)


def _read_labels(id2label: Any, n_classes: int) -> tuple[str, ...]:
    if not n_classes or id2label is None:
        return ()
    indices = {str(index): index for index in range(n_classes)}
    names = {str(key): name for key, name in id2label.items()} if isinstance(id2label, Mapping) else {}
    if names.keys() != indices.keys() or len(id2label) != n_classes:
        raise ConfigError(f"id2label must name the classes 0 to {n_classes - 1}, each once, but is {id2label!r:.100}")
    return _checked_labels(names[key] for key in indices)


def _write_labels(labels: Sequence[str], n_classes: int) -> dict[str, Any]:
    if not labels:
        return {}
    if len(labels) != n_classes:
        raise ConfigError(f"the model has {n_classes} classes, but {len(labels)} labels were given")
    return labels_to_hf(_checked_labels(labels))


def _checked_labels(labels: Iterable[Any]) -> tuple[str, ...]:
    checked = tuple(labels)
    for label in checked:
        if not isinstance(label, str) or len(label) > MAX_LABEL_LENGTH:
            raise ConfigError(f"a label is text of at most {MAX_LABEL_LENGTH} characters, not {label!r:.100}")
    return checked


def read_checkpoint(folder: str | Path, **changes: Any) -> Imported:
    """Read a module in evaluation mode, its config, generation defaults and labels from Hugging Face's layout.

    Nothing is allocated before all names and shapes match. Weights stay mapped to their files where the layout allows,
    so do not change the files while the module lives. `changes` are made to the config: `head="mean"`.
    """
    folder = Path(folder)
    config = _read_config(folder)
    path = folder / "generation_config.json"
    generation = read_object(path) if path.is_file() else None
    try:
        published_family(config)  # before the weights, which do not matter if the model is not supported
        tensors = read_tensors(folder)
        if tensors is None:
            raise _no_weights(folder)
        return read_published(config, tensors, generation, **changes)
    except ConfigError as error:
        raise ConfigError(f"{folder}: {error}") from None
    except WeightsError as error:
        named = str(error).startswith(str(folder))
        raise error if named else WeightsError(f"{folder}: {error}") from None


def import_checkpoint(folder: str | Path, **changes: Any) -> nn.Module:
    """Read a published model, ready to use, from a folder with config.json and model.safetensors.

    >>> heedful.import_checkpoint("bert-base-uncased", head="mean")
    """
    module: nn.Module = read_checkpoint(folder, **changes).module
    return module


MAX_LISTED = 12  # how many files of a folder a message names
ALLOWED = " or ".join(item.whole for item in FORMATS) + ", or several such files with their index"
OTHER_FOLDERS = {
    "adapter_config.json": "an adapter, which changes another model; merge it into that model, and save the whole",
    "model_index.json": "a pipeline of diffusers, which is no one model; the models in its folders are not read here",
    "snapshots": "a cache of the hub; give the folder inside its snapshots",
}
WITHOUT_CONFIG = {
    "config_sentence_transformers.json": "a model of sentence-transformers whose Transformer is in another folder "
    "(often 0_Transformer); give that one"
}
WITHOUT_WEIGHTS = {"model.bin": "a model of CTranslate2; read it with heedful.families.ctranslate2.from_ctranslate2"}
NOT_READ = (".h5", ".msgpack", ".gguf", ".onnx", ".ckpt", ".pt", ".pth", ".safetensors", ".bin")


def _read_config(folder: Path) -> dict[str, Any]:
    """Read config.json, or raise for a folder that is missing or is not a checkpoint."""
    if not folder.is_dir():
        state = "is a file" if folder.exists() else "is not there"
        raise LayoutError(f"{folder} {state}; a checkpoint is a folder that holds config.json and {FORMATS[0].whole}")
    _refuse(folder, OTHER_FOLDERS)
    if not (folder / "config.json").is_file():
        _refuse(folder, WITHOUT_CONFIG | WITHOUT_WEIGHTS)
        raise LayoutError(f"{folder} has no config.json; {_listed(folder)}")
    config = read_object(folder / "config.json")
    if {"format", "task", "model", "sha256"} <= config.keys() and "model_type" not in config:
        raise LayoutError(f"{folder} is a Heedful bundle; read it with heedful.load({str(folder)!r})")
    return config


def _no_weights(folder: Path) -> LayoutError:
    """Return the error for a folder whose weights are missing or in another format."""
    _refuse(folder, WITHOUT_WEIGHTS)
    others = [name for name in _names(folder) if Path(name).suffix in NOT_READ]
    files = f"these files are not read: {some_of(others, MAX_LISTED, str)}" if others else _listed(folder)
    return LayoutError(f"{folder} holds no weights that are read here ({ALLOWED}); {files}")


def _refuse(folder: Path, kinds: Mapping[str, str]) -> None:
    for name, kind in kinds.items():
        if (folder / name).exists():
            raise LayoutError(f"{folder} is {kind}")


def _listed(folder: Path) -> str:
    names = _names(folder)
    return f"it holds {some_of(names, MAX_LISTED, str)}" if names else "it is empty"


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
    """Write what `read_checkpoint` and transformers read into a new folder, which appears when it is complete.

    Tensors keep their dtype, and shared ones are written once. Above `shard_bytes` they go into several files.
    """
    folder = Path(folder)
    if shard_bytes < 1:
        raise ConfigError(f"shard_bytes must be at least 1, not {shard_bytes}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise LayoutError(f"{folder} exists and is not an empty folder; choose another one")
    written = write_published(module, config, generation, labels=labels)
    tensors = _without_aliases(written.tensors)
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
    parts = (part_name(SAFETENSORS.whole, number, len(shards)) for number in range(1, len(shards) + 1))
    files = dict(zip(parts if len(shards) > 1 else [SAFETENSORS.whole], shards, strict=True))
    if len(files) > 1:
        size = sum(tensor.nbytes for tensor in tensors.values())
        weight_map = {name: file for file, shard in files.items() for name in shard}
        write_mapping(folder / SAFETENSORS.index, {"metadata": {"total_size": size}, "weight_map": weight_map})
    for file, shard in files.items():
        save_file({name: tensor.cpu() for name, tensor in shard.items()}, folder / file, metadata={"format": "pt"})


def _shards(tensors: Mapping[str, Tensor], max_bytes: int) -> Iterator[dict[str, Tensor]]:
    """Split tensors in order into full shards; a larger tensor has a shard to itself."""
    shard: dict[str, Tensor] = {}
    size = 0
    for name, tensor in tensors.items():
        if shard and size + tensor.nbytes > max_bytes:
            yield shard
            shard, size = {}, 0
        shard[name] = tensor
        size += tensor.nbytes
    yield shard


def _without_aliases(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Keep each tensor under its first name; transformers ties the others again."""
    unique: dict[tuple[object, ...], str] = {}
    for name, tensor in tensors.items():
        unique.setdefault((tensor.device, tensor.data_ptr(), tensor.shape), name)
    return {name: tensors[name] for name in unique.values()}
