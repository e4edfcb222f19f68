"""Folders in Hugging Face's layout: what transformers writes is read, what is written it reads, others are named."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import heedful
from heedful.errors import ConfigError, HeedfulError
from heedful.families import (
    GenerationDefaults,
    LayoutError,
    read_checkpoint,
    read_published,
    write_checkpoint,
    write_published,
)
from heedful.families.hf_io import published_family
from heedful.families.weights import WeightsError
from published_pairs import files, pair, reference

GPT2_BYTES = sum(tensor.nbytes for tensor in pair("gpt2").module.parameters())


def folder_of(name: str, folder: Path) -> Path:
    """Write a folder with transformers' `save_pretrained`."""
    reference(name).save_pretrained(folder)
    return folder


def same_weights(item: Any, other: Any) -> None:
    assert item.state_dict().keys() == other.state_dict().keys()
    for key, tensor in item.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[key]), key


@pytest.mark.parametrize("name", ["gpt2", "marian", "t5", "llama 3", "bert classes"])
def test_folders_written_by_transformers_are_read(name: str, tmp_path: Path) -> None:
    both = pair(name)
    result = read_checkpoint(folder_of(name, tmp_path))
    assert (result.config, result.generation) == (both.config, both.generation)
    same_weights(result.module, both.module)
    assert not result.module.training


def test_import_checkpoint_returns_the_module_and_applies_changes(tmp_path: Path) -> None:
    folder_of("bert pooled", tmp_path)
    message = torch.arange(6)[None]
    with torch.no_grad():
        vectors = heedful.import_checkpoint(tmp_path, head="hidden")(message)
        mean = heedful.import_checkpoint(str(tmp_path), head="mean")(message)
    torch.testing.assert_close(mean, vectors.mean(dim=1))
    with pytest.raises(ConfigError, match="did you mean 'head'"):
        heedful.import_checkpoint(tmp_path, heads="mean")


@pytest.mark.parametrize("actual", [False, True], ids=["expected", "actual"])
def test_weights_in_several_files(actual: bool, tmp_path: Path) -> None:
    both = pair("gpt2")
    if actual:
        write_checkpoint(tmp_path, both.module, both.config, both.generation, shard_bytes=6000)
        loaded = transformers.GPT2LMHeadModel.from_pretrained(tmp_path)
        for key, tensor in both.reference.state_dict().items():
            assert torch.equal(loaded.state_dict()[key], tensor), key
    else:
        both.reference.save_pretrained(tmp_path, max_shard_size="6KB")
    shards = sorted(tmp_path.glob("model-*.safetensors"))
    assert shards[0].name == f"model-00001-of-{len(shards):05}.safetensors"
    assert len(shards) > 3
    assert not (tmp_path / "model.safetensors").exists()
    same_weights(read_checkpoint(tmp_path).module, both.module)


def test_shards_are_full_and_a_large_tensor_has_its_own_shard(tmp_path: Path) -> None:
    both = pair("gpt2")
    write_checkpoint(tmp_path / "one", both.module, both.config, shard_bytes=GPT2_BYTES)
    assert not list((tmp_path / "one").glob("*.index.json"))
    write_checkpoint(tmp_path / "two", both.module, both.config, shard_bytes=GPT2_BYTES - 1)
    index = json.loads((tmp_path / "two/model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == GPT2_BYTES
    assert len(set(index["weight_map"].values())) == 2
    write_checkpoint(tmp_path / "all", both.module, both.config, shard_bytes=1)
    assert all(len(load_file(shard)) == 1 for shard in (tmp_path / "all").glob("*.safetensors"))


def test_shared_tensors_are_written_once_and_dtypes_are_kept(tmp_path: Path) -> None:
    both = pair("bart")
    module = both.module.to(torch.bfloat16)
    write_checkpoint(tmp_path / "new", module, both.config, both.generation)
    written = load_file(tmp_path / "new/model.safetensors")
    assert "model.shared.weight" in written
    assert not {"lm_head.weight", "model.encoder.embed_tokens.weight"} & written.keys()
    assert {tensor.dtype for tensor in written.values()} == {torch.bfloat16}
    config = json.loads((tmp_path / "new/config.json").read_text())
    assert config["dtype"] == config["torch_dtype"] == "bfloat16"
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
    ]
    loaded = transformers.BartForConditionalGeneration.from_pretrained(tmp_path / "new")
    assert loaded.dtype == torch.bfloat16
    same_weights(read_checkpoint(tmp_path / "new").module, module)


def test_a_model_that_does_not_generate_has_no_generation_config(tmp_path: Path) -> None:
    both = pair("bert")
    write_checkpoint(tmp_path / "new", both.module, both.config, both.generation)
    assert not (tmp_path / "new/generation_config.json").exists()
    assert read_checkpoint(tmp_path / "new").generation == both.generation


def test_failed_writing_leaves_no_files_and_overwrites_nothing(tmp_path: Path) -> None:
    both = pair("gpt2")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/file").touch()
    with pytest.raises(LayoutError, match="exists and is not an empty folder"):
        write_checkpoint(tmp_path / "taken", both.module, both.config)
    with pytest.raises(ConfigError, match="shard_bytes must be at least 1, not 0"):
        write_checkpoint(tmp_path / "new", both.module, both.config, shard_bytes=0)
    with pytest.raises(
        WeightsError, match=r"does not match its config: embedding.weight is \(37, 20\) and should be \(38"
    ):
        write_checkpoint(tmp_path / "new", both.module, both.config.changed(vocab_size=38))
    with pytest.raises(WeightsError, match=r"decoder.layers.3.\S+ is nothing and should be \("):
        write_checkpoint(tmp_path / "new", both.module, both.config.changed(n_layers=4))
    with pytest.raises(WeightsError, match=r"decoder.layers.2.\S+ is \(.*\) and should be nothing"):
        write_checkpoint(tmp_path / "new", both.module, both.config.changed(n_layers=2))
    with torch.device("meta"), pytest.raises(WeightsError, match="no values to write"):
        write_checkpoint(tmp_path / "new", heedful.build(both.config), both.config)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_the_weights_are_mapped_and_the_file_is_never_written_to(tmp_path: Path) -> None:
    folder_of("gpt2", tmp_path)
    before = (tmp_path / "model.safetensors").read_bytes()
    module = read_checkpoint(tmp_path).module
    mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if str(tmp_path) in line]
    places = [[int(end, 16) for end in line.split()[0].split("-")] for line in mapped]
    assert any(start <= module.embedding.weight.data_ptr() < end for start, end in places)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(1)
    assert (tmp_path / "model.safetensors").read_bytes() == before


def test_symbolic_links_of_a_hub_cache_are_followed(tmp_path: Path) -> None:
    folder_of("gpt2", tmp_path / "blobs")
    (tmp_path / "snapshot").mkdir()
    for path in (tmp_path / "blobs").iterdir():
        (tmp_path / "snapshot" / path.name).symlink_to(path)
    same_weights(read_checkpoint(tmp_path / "snapshot").module, pair("gpt2").module)
    (tmp_path / "snapshots").mkdir()
    with pytest.raises(LayoutError, match="give the folder inside its snapshots"):
        read_checkpoint(tmp_path)


NAMES = ("no", "yes, surely", "vielleicht ☕")


def test_labels_round_trip(tmp_path: Path) -> None:
    both = pair("bert classes")
    write_checkpoint(tmp_path / "new", both.module, both.config, labels=NAMES)
    assert read_checkpoint(tmp_path / "new").labels == NAMES
    expected = transformers.AutoConfig.from_pretrained(tmp_path / "new")
    assert expected.id2label == dict(enumerate(NAMES))
    assert expected.label2id == {name: place for place, name in enumerate(NAMES)}
    config, tensors = files(both.reference)[0], both.reference.state_dict()
    many = {str(place): f"{place}" for place in (2, 0, 1)}  # by their number, not by their place in the file
    assert read_published(config | {"id2label": many}, tensors).labels == ("0", "1", "2")
    assert read_published(config | {"id2label": None, "num_labels": 3}, tensors).labels == ()
    assert read_published(*_vocabulary()).labels == ()  # says LABEL_0 and LABEL_1, and has no classes


def _vocabulary() -> tuple[dict[str, Any], dict[str, Any]]:
    model = reference("bert")
    return files(model)[0], dict(model.state_dict())


@pytest.mark.parametrize(
    "labels",
    [{"0": "a", "1": "b", "3": "c"}, {"0": "a", "1": "b", "2": 5}, {"0": "a", "1": "b", "2": "c" * 1001}, {}],
)
def test_invalid_labels_are_refused(labels: dict[str, Any]) -> None:
    both = pair("bert classes")
    config = files(both.reference)[0] | {"id2label": labels}
    with pytest.raises(ConfigError, match=r"id2label must name the classes 0 to 2|a label is text|n_classes"):
        read_published(config, both.reference.state_dict())
    with pytest.raises(ConfigError, match="has 3 classes, but 2 labels"):
        write_published(both.module, both.config, labels=("a", "b"))
    with pytest.raises(ConfigError, match="has 0 classes, but 1 labels"):
        write_published(pair("gpt2").module, pair("gpt2").config, labels=("a",))


def put(folder: Path, **contents: Any) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        (folder / name.replace("__", ".")).write_text(content if isinstance(content, str) else json.dumps(content))


GPT2 = {"model_type": "gpt2"}
BUNDLE = {"format": 1, "task": "translation", "model": {}, "settings": {}, "sha256": {}}


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ({}, "has no config.json; it is empty"),
        ({"vocab__txt": "", "a__md": ""}, "has no config.json; it holds a.md, vocab.txt"),
        ({"config__json": GPT2}, r"no weights that are read here \(model.safetensors or pytorch_model.bin, or several"),
        ({"config__json": GPT2, "tf_model__h5": ""}, "these files are not read: tf_model.h5"),
        ({"config__json": GPT2, "a__gguf": "", "flax_model__msgpack": ""}, "not read: a.gguf, flax_model.msgpack"),
        ({"config__json": GPT2, "model__bin": ""}, "a model of CTranslate2; read it with heedful.families.ctrans"),
        ({"model__bin": ""}, "a model of CTranslate2"),
        ({"config__json": {}, "adapter_config__json": {}}, "an adapter, which changes another model; merge"),
        ({"model_index__json": {}}, "a pipeline of diffusers"),
        ({"modules__json": [], "config_sentence_transformers__json": {}}, "often 0_Transformer"),
        ({"config__json": BUNDLE, "model__safetensors": ""}, r"a Heedful bundle; read it with heedful.load\("),
        ({"config__json": "[" * 100_000}, "config.json contains JSON that is nested too deeply"),
        ({"config__json": "[1]"}, r"config.json contains JSON, but not an object: \[1\]"),
        ({"config__json": "{"}, "config.json does not contain valid JSON"),
        ({"config__json": '{"a": 1, "a": 2}'}, "the key 'a' occurs twice"),
        ({"config__json": '{"a": ' + "9" * 5000 + "}"}, "does not contain valid JSON"),
        ({"config__json": '{"a": "' + "x" * 2**23 + '"}'}, "more than the 8,388,608 bytes"),
        (
            {"config__json": GPT2, "generation_config__json": "5"},
            "generation_config.json contains JSON, but not an object",
        ),
        ({"config__json": {"model_type": "gpt3"}}, "did you mean 'gpt2'"),
        ({"config__json": {}}, "unknown model_type None; allowed: .*, bart, bert"),
    ],
)
def test_unreadable_folders_are_identified(contents: dict[str, Any], message: str, tmp_path: Path) -> None:
    put(tmp_path / "model", **contents)
    with pytest.raises(HeedfulError, match=message) as caught:
        read_checkpoint(tmp_path / "model")
    assert str(tmp_path / "model") in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_missing_folders_and_undecodable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match=r"is not there; a checkpoint is a folder that holds config\.json"):
        read_checkpoint(tmp_path / "none")
    put(tmp_path, file="")
    with pytest.raises(LayoutError, match="is a file; a checkpoint is a folder"):
        read_checkpoint(tmp_path / "file")
    (tmp_path / "config.json").write_bytes(b"\xff\xfe")
    with pytest.raises(LayoutError, match="it is not UTF-8"):
        read_checkpoint(tmp_path)
    put(tmp_path, config__json=GPT2)
    (tmp_path / "model.safetensors").symlink_to(tmp_path / "blob")
    with pytest.raises(LayoutError, match=r"model.safetensors \(a broken link\)"):
        read_checkpoint(tmp_path)


def test_errors_of_model_and_weights_name_the_folder(tmp_path: Path) -> None:
    folder_of("gpt2", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    put(tmp_path, config__json=config | {"architectures": ["GPT2ForSequenceClassification"]})
    with pytest.raises(ConfigError, match=r"(?s)^\S*: gpt2: unknown architecture.*GPT2LMHeadModel"):
        read_checkpoint(tmp_path)
    put(tmp_path, config__json=config | {"vocab_size": 38})
    with pytest.raises(WeightsError, match=r"^\S*: the weights are of another model: .*wte.weight is \(37, 20\)"):
        read_checkpoint(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["transformer.h.0.ln_1.weight"] = tensors["transformer.h.0.ln_1.weight"].to(torch.float8_e4m3fn)
    save_file(tensors, tmp_path / "model.safetensors")
    put(tmp_path, config__json=config)
    with pytest.raises(WeightsError, match=r"ln_1.weight holds torch.float8_e4m3fn"):
        read_checkpoint(tmp_path)


JUNK: tuple[Any, ...] = (None, True, -1, 10**12, 10**30, 1e308, "x", [[]], {"a": []})


@pytest.mark.filterwarnings("ignore::heedful.families.PublishedWarning")
@pytest.mark.parametrize("name", ["gpt2", "marian", "llama 3", "bert classes"])
def test_any_value_of_a_setting_gives_a_model_or_a_clear_error(name: str) -> None:
    model = reference(name)
    config, generation = files(model)
    tensors = dict(model.state_dict())
    _, published = published_family(config)
    settings = {key for setting in published.settings.values() for key in setting.keys} & config.keys()
    for key, value in product([*settings, "architectures", "model_type"], JUNK):
        with suppress(HeedfulError):
            read_published(config | {key: value}, tensors)
    for key, value in product(generation, JUNK):
        with suppress(HeedfulError):
            GenerationDefaults.read(published, config, generation | {key: value})


def test_a_folder_may_be_moved_once_it_is_read(tmp_path: Path) -> None:
    folder_of("gpt2", tmp_path / "model")
    module = read_checkpoint(tmp_path / "model").module
    shutil.rmtree(tmp_path / "model")
    same_weights(module, pair("gpt2").module)
