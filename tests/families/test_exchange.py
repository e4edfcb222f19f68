"""Published checkpoints in: every setting read or refused, every tensor used or named, nothing by halves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

import heedful
from heedful.errors import ConfigError
from heedful.families import FAMILIES, GenerationDefaults, OriginalConfig, config_of, read_published, write_published
from heedful.families.weights import WeightsError
from published_pairs import MAKERS, files, reference
from published_readers import LIMIT

PUBLISHED = {
    family.published.model_type: (family, family.published)
    for family in FAMILIES.values()
    if family.published is not None
}
every_type = pytest.mark.parametrize("model_type", PUBLISHED)

# Keys of every config that say nothing about what is computed, and those of one family alone.
NEUTRAL = {
    "_name_or_path", "architectures", "chunk_size_feed_forward", "dtype", "id2label", "label2id", "model_type",
    "output_attentions", "output_hidden_states", "problem_type", "return_dict", "transformers_version", "use_cache",
    "bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "forced_eos_token_id",
    "is_decoder",  # says which stack a part of transformers is
    "init_std", "initializer_range", "initializer_factor",  # how training starts
    "layerdrop", "encoder_layerdrop", "decoder_layerdrop", "classifier_dropout",  # training alone
    "classifier_dropout_prob", "qa_dropout", "seq_classif_dropout",  # likewise
    "summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout",
    "reorder_and_upcast_attn", "pretraining_tp",  # the same sums in another order
    "distribution_output", "num_parallel_samples", "num_targets", "output_range",  # other heads of PatchTST
    "do_mask_input", "mask_type", "mask_value", "random_mask_ratio", "num_forecast_mask_patches",  # its pretraining
    "channel_consistent_masking", "unmasked_channel_indices",
    "dense_act_fn", "is_gated_act",  # T5 says them again in feed_forward_proj
    "encoder_stride",  # of a head that restores images
}  # fmt: skip


def published(name: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    model = reference(name)
    return files(model)[0], dict(model.state_dict())


@every_type
def test_every_setting_of_transformers_is_read_or_refused_or_known_to_be_neutral(model_type: str) -> None:
    _, published_side = PUBLISHED[model_type]
    neutral = (
        {key for setting in published_side.settings.values() for key in setting.keys}
        | published_side.fixed.keys()
        | NEUTRAL
    )
    assert transformers.AutoConfig.for_model(model_type).to_dict().keys() <= neutral


@every_type
def test_missing_keys_have_the_defaults_of_transformers(model_type: str) -> None:
    family, published_side = PUBLISHED[model_type]
    hf_config = transformers.AutoConfig.for_model(model_type).to_dict()
    nothing: dict[str, Any] = {}
    written, left_out = (published_side.read(settings, family.config).to_dict() for settings in (hf_config, nothing))
    same_keys = {"target_vocab_size": None}  # the same where it is written out
    assert written | same_keys == left_out | same_keys
    if not published_side.hf_defaults:
        assert left_out == family.config().to_dict()


@every_type
def test_every_preset_has_a_published_config_and_comes_back_from_it(model_type: str) -> None:
    family, published_side = PUBLISHED[model_type]
    assert any("tiny" in name for name in family.presets)
    for config in family.presets.values():
        assert published_side.read(published_side.write(config), family.config) == config
        assert transformers.AutoConfig.for_model(**published_side.write(config)).model_type == model_type


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx=True is not supported"),
        ("gpt2", {"scale_attn_weights": False}, "scale_attn_weights=False is not supported"),
        ("gpt2", {"add_cross_attention": True}, "add_cross_attention=True is not supported"),
        ("gpt2", {"activation_function": "quick_gelu"}, "activation_function 'quick_gelu'"),
        ("gpt2", {"architectures": ["GPT2ForSequenceClassification"]}, "GPT2ForSequenceClassification"),
        ("gpt2", {"n_head": 3}, "not divisible"),
        ("gpt2", {"n_layer": 10**9}, "n_layers=1000000000, but there are only"),
        ("gpt2", {"n_embd": "20"}, "d_model must be a whole number"),
        ("gpt2", {"n_layer": -1}, "n_layers must be at least 1"),
        ("gpt2", {"activation_function": ["gelu"]}, "activation_function ['gelu']"),
        ("gpt2", {"n_embd": None, "n_head": 5}, "not divisible"),
        ("gpt2", {"eos_token_id": "2"}, "end[0] must be a whole number"),
        ("marian", {"bad_words_ids": 5}, "bad_words_ids=5 is not supported"),
        ("bert classes", {"id2label": 3, "num_labels": "x"}, "n_classes must be a whole number"),
        ("llama", {"hidden_size": "24"}, "d_model must be a whole number"),
        ("llama", {"rope_parameters": [3]}, "not [3]"),
        ("gpt2", {"model_type": "gpt3"}, "did you mean 'gpt2'"),
        ("gpt2", {"model_type": None}, "allowed: albert, bart"),
        ("bart", {"normalize_before": True}, "normalize_before=True is not supported"),
        ("bart", {"decoder_attention_heads": 4}, "encoder_attention_heads=5 and decoder_attention_heads=4 differ"),
        ("bart", {"tie_word_embeddings": False}, "tie_word_embeddings=False is not supported"),
        ("marian", {"tie_word_embeddings": False}, "share_encoder_decoder_embeddings=True with tie_word_embeddings"),
        ("marian", {"bad_words_ids": [[3, 4]]}, "bad_words_ids"),
        ("t5", {"feed_forward_proj": "gated-quick"}, "gated-quick"),
        (
            "bert",
            {"position_embedding_type": "relative_key"},
            "position_embedding_type='relative_key' is not supported",
        ),
        ("bert", {"is_decoder": True}, "is_decoder=True is not supported"),
        ("bert", {"architectures": ["BertForMultipleChoice"]}, "BertForMultipleChoice"),
        ("roberta", {"max_position_embeddings": 38}, "max_length must be at least 1, not 0"),
        ("roberta", {"max_position_embeddings": "514"}, "max_length must be a whole number"),
        ("roberta", {"pad_token_id": -1}, "position_offset must be at least 1, not 0"),
        ("roberta", {"pad_token_id": "1"}, "position_offset must be a whole number"),
        ("roberta", {"is_decoder": True}, "is_decoder=True is not supported"),
        ("distilbert", {"sinusoidal_pos_embds": True}, "sinusoidal_pos_embds=True is not supported"),
        ("distilbert", {"activation": "tanh"}, "activation 'tanh'"),
        ("albert", {"inner_group_num": 2}, "inner_group_num=2 is not supported; only 1 is"),
        ("albert", {"num_hidden_groups": 2}, "n_layers=3 is not divisible by n_groups=2"),
        ("llama", {"rope_parameters": {"rope_type": "yarn", "factor": 2.0}}, "rope_type 'yarn'"),
        ("llama", {"rope_parameters": None, "rope_scaling": {"type": "dynamic", "factor": 2.0}}, "rope_type 'dynamic'"),
        ("llama", {"rope_parameters": {"rope_type": "linear"}}, "factor"),
        ("llama", {"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor=0.5 is not supported"),
    ],
)
def test_a_setting_that_is_not_supported_is_named(name: str, change: dict[str, Any], message: str) -> None:
    config, tensors = published(name)
    with pytest.raises(ConfigError) as caught:
        read_published(config | change, tensors)
    assert message in str(caught.value)


def without(key: str) -> Callable[[dict[str, Tensor]], None]:
    def change(tensors: dict[str, Tensor]) -> None:
        del tensors[key]

    return change


def put(key: str, make: Callable[[dict[str, Tensor]], Tensor]) -> Callable[[dict[str, Tensor]], None]:
    def change(tensors: dict[str, Tensor]) -> None:
        tensors[key] = make(tensors)

    return change


C_ATTN = "transformer.h.1.attn.c_attn.weight"
POSITIONS = "model.encoder.embed_positions.weight"
GROUP = "albert.encoder.albert_layer_groups.1.albert_layers.0"


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("gpt2", without(C_ATTN), f"{C_ATTN} is missing"),
        ("bart", without("model.decoder.layers.2.encoder_attn.v_proj.bias"), "encoder_attn.v_proj.bias is missing"),
        ("gpt2 untied", without("lm_head.weight"), "lm_head.weight is missing"),
        ("albert of three groups", without(f"{GROUP}.ffn.bias"), f"{GROUP}.ffn.bias is missing"),
        ("albert", put(f"{GROUP}.ffn.bias", lambda t: torch.zeros(23)), f"{GROUP}.ffn.bias has no place"),
        ("gpt2", put("score.weight", lambda t: torch.zeros(2, 20)), "score.weight has no place"),
        ("gpt2", put(C_ATTN, lambda t: t[C_ATTN].t()), f"{C_ATTN} is (60, 20) and should be (20, 60)"),
        ("gpt2", put(C_ATTN, lambda t: t[C_ATTN].to(torch.int8)), f"{C_ATTN} holds torch.int8"),
        ("bart", put("lm_head.weight", lambda t: t["lm_head.weight"] + 1), "lm_head.weight differs from model.shared"),
        ("t5", put("lm_head.weight", lambda t: t["lm_head.weight"] + 1), "lm_head.weight differs from shared.weight"),
        ("marian", put(POSITIONS, lambda t: t[POSITIONS].flip(1)), f"{POSITIONS} is not what its formula gives"),
        ("marian", put(POSITIONS, lambda t: t[POSITIONS][:9]), f"{POSITIONS} is (9, 20) and should be ({LIMIT}, 20)"),
    ],
)
def test_a_tensor_that_does_not_fit_is_named(
    name: str, change: Callable[[dict[str, Tensor]], None], message: str
) -> None:
    config, tensors = published(name)
    change(tensors)
    with pytest.raises(WeightsError) as caught:
        read_published(config, tensors)
    assert message in str(caught.value)
    assert "more" not in str(caught.value)  # it is the only one


def test_shapes_are_compared_before_anything_is_allocated() -> None:
    config, tensors = published("gpt2")
    with pytest.raises(WeightsError, match=r"wte\.weight is \(37, 20\) and should be \(1000000000000, 20\)"):
        read_published(config | {"vocab_size": 10**12}, tensors)


@pytest.mark.parametrize("name", MAKERS)
def test_a_shared_tensor_under_one_of_its_names_is_enough(name: str) -> None:
    config, tensors = published(name)
    first: dict[int, str] = {}
    once = {key: tensor for key, tensor in tensors.items() if first.setdefault(tensor.data_ptr(), key) == key}
    if name.startswith("marian"):
        del once[POSITIONS]  # computed here
    whole, saved = read_published(config, tensors).module, read_published(config, once).module
    for key, tensor in whole.state_dict().items():
        assert torch.equal(saved.state_dict()[key], tensor), key


def test_every_ignored_tensor_has_a_reason() -> None:
    config, tensors = published("gpt2")
    tensors["transformer.h.0.attn.bias"] = torch.ones(1, 1, LIMIT, LIMIT).tril()
    read_published(config, tensors)
    config, tensors = published("t5")
    tensors["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] = torch.zeros(12, 5)
    read_published(config, tensors)


@pytest.mark.parametrize("name", ["gpt2", "bart", "marian", "llama tied, with biases"])
def test_a_checkpoint_of_the_model_without_its_head(name: str) -> None:
    model = reference(name)
    tensors = dict(model.state_dict())
    bare = model.base_model.state_dict()
    assert not bare.keys() & tensors.keys()
    tensors |= {key: torch.zeros_like(tensors[key]) for key in tensors if key == "final_logits_bias"}
    whole, carried = (read_published(files(model)[0], settings).module for settings in (tensors, bare))
    for key, tensor in whole.state_dict().items():
        assert torch.equal(carried.state_dict()[key], tensor), key


def test_a_pretraining_checkpoint_with_older_names_fits_every_head() -> None:
    config, tensors = published("bert")
    tensors = {
        key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for key, tensor in tensors.items()
    }
    tensors |= {"bert.pooler.dense.weight": torch.randn(20, 20), "bert.pooler.dense.bias": torch.randn(20)}
    tensors |= {"cls.seq_relationship.weight": torch.randn(2, 20), "cls.seq_relationship.bias": torch.randn(2)}
    tensors["bert.embeddings.position_ids"] = torch.arange(LIMIT)[None]
    config["architectures"] = ["BertForPreTraining"]
    for head in ("words", "pooled", "mean", "hidden"):
        module = read_published(config, tensors, head=head).module
        assert torch.equal(module.embedding.weight, tensors["bert.embeddings.word_embeddings.weight"])
    with pytest.raises(WeightsError, match=r"classifier\.weight is missing; classifier\.bias is missing"):
        read_published(config, tensors, head="classes")


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("roberta", ["roberta.pooler.dense"]),
        ("distilbert", []),
        ("albert of three groups", ["albert.pooler", "sop_classifier.classifier"]),
    ],
)
def test_a_masked_lm_checkpoint_fits_heads_without_weights(name: str, others: list[str]) -> None:
    config, tensors = published(name)
    for other in others:
        tensors |= {f"{other}.weight": torch.randn(20, 20), f"{other}.bias": torch.randn(20)}
    whole = read_published(config, tensors).module.encoder.state_dict()
    for head in ("mean", "hidden"):
        module = read_published(config, tensors, head=head).module
        for key, tensor in whole.items():
            assert torch.equal(module.encoder.state_dict()[key], tensor), key
    with pytest.raises(WeightsError, match=r"classifier\..*weight is missing"):
        read_published(config, tensors, head="classes")


def test_layers_of_a_group_share_weights() -> None:
    config, tensors = published("albert of three groups")
    layers = list(read_published(config, tensors).module.encoder.layers)
    assert [layers.index(layer) for layer in layers] == [0, 0, 2, 2, 4, 4]


@torch.no_grad()
@pytest.mark.parametrize("pad", [0, 1, 5])
@pytest.mark.parametrize("kind", [transformers.RobertaModel, transformers.XLMRobertaModel])
def test_roberta_positions_begin_after_the_padding_id(kind: type[Any], pad: int) -> None:
    sizes = {"hidden_size": 12, "num_attention_heads": 2, "intermediate_size": 9, "num_hidden_layers": 1}
    hf_model = kind(kind.config_class(vocab_size=40, max_position_embeddings=20, pad_token_id=pad, **sizes)).eval()
    hf_model.embeddings.position_embeddings.weight.normal_()
    imported = read_published(files(hf_model)[0], hf_model.state_dict())
    tokens = torch.randint(6, 40, (2, 19 - pad))  # as many as there are positions
    torch.testing.assert_close(imported.module(tokens), hf_model(tokens).last_hidden_state, rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match=f"positions end at {19 - pad}"):
        imported.module(torch.ones(1, 20 - pad, dtype=torch.long))
    out = write_published(imported.module, imported.config, imported.generation).config
    assert (out["max_position_embeddings"], out["pad_token_id"]) == (20, pad)


def test_a_field_without_a_published_key_is_refused() -> None:
    config = config_of("distilbert-tiny").changed(vocab_size=9, norm_eps=1e-5)
    with pytest.raises(ConfigError, match="norm_eps=1e-12; there is no key for 1e-05"):
        write_published(heedful.build(config), config)


def test_older_files_store_rotary_scaling_under_two_keys() -> None:
    config, tensors = published("llama 3")
    older = {key: value for key, value in config.items() if key != "rope_parameters"}
    older_keys = dict(config["rope_parameters"])
    older |= {
        "rope_theta": older_keys.pop("rope_theta"),
        "rope_scaling": {"type": older_keys.pop("rope_type"), **older_keys},
    }
    assert read_published(older, tensors).config == read_published(config, tensors).config
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(3)
    read_published(config, tensors)


def test_an_unscaled_t5_without_output_copies_the_embedding() -> None:
    """Newer files of T5 1.1 may leave the output out, where it equals the embedding."""
    config, tensors = published("t5 v1.1")
    assert config["tie_word_embeddings"]
    assert not config["scale_decoder_outputs"]
    del tensors["lm_head.weight"]
    state = read_published(config, tensors).module.state_dict()
    assert torch.equal(state["head.embedding.weight"], tensors["shared.weight"])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_dtype_is_the_published_one_and_the_widest_of_several(dtype: torch.dtype) -> None:
    config, tensors = published("marian")
    half = {key: tensor.to(dtype) for key, tensor in tensors.items()}
    module = read_published(config, half).module
    assert {tensor.dtype for tensor in module.state_dict().values()} == {dtype}
    half["final_logits_bias"] = half["final_logits_bias"].float()
    module = read_published(config, half).module
    assert {tensor.dtype for tensor in module.state_dict().values()} == {torch.float32}


def test_a_module_read_in_is_ready_to_use_and_to_train() -> None:
    config, tensors = published("t5")
    module = read_published(config, tensors).module
    assert not module.training
    assert all(parameter.requires_grad and not parameter.is_meta for parameter in module.parameters())
    assert module.head.embedding is module.source_embedding is module.target_embedding


def test_generation_defaults_come_from_both_files_and_the_later_one_counts() -> None:
    config = {"model_type": "marian", "decoder_start_token_id": 5, "bos_token_id": 1, "eos_token_id": 0, "num_beams": 6}
    later = {"eos_token_id": [0, 7], "bad_words_ids": [[5]], "forced_eos_token_id": 0, "pad_token_id": None}
    _, marian = PUBLISHED["marian"]
    defaults = GenerationDefaults.read(marian, config, later)
    assert defaults == GenerationDefaults(start=5, end=(0, 7), forced_last=0, suppress_tokens=(5,), beam=6)
    assert GenerationDefaults.read(marian, defaults.write(marian)) == defaults
    _, gpt2 = PUBLISHED["gpt2"]
    assert GenerationDefaults.read(gpt2, {"bos_token_id": 3, "eos_token_id": 4}) == GenerationDefaults(
        start=3, end=(4,)
    )


def test_a_family_without_a_published_form_is_refused() -> None:
    with pytest.raises(ConfigError, match="'original' has no published form; albert, bart"):
        write_published(heedful.build("tiny", vocab_size=9), OriginalConfig())


@pytest.mark.parametrize(
    ("preset", "parameters"),
    [
        ("gpt2", 124_439_808),
        ("gpt2-medium", 354_823_168),
        ("gpt2-large", 774_030_080),
        ("gpt2-xl", 1_557_611_200),
        ("bart-base", 139_420_416 + 50_265),  # and the bias of the output, which is a buffer there
        ("bart-large", 406_291_456 + 50_265),
        ("t5-small", 60_506_624),
        ("t5-base", 222_903_552),
        ("t5-large", 737_668_096),
        ("t5-3b", 2_851_598_336),
        ("t5-11b", 11_307_321_344),
        ("t5-v1.1-small", 76_961_152),
        ("t5-v1.1-base", 247_577_856),
        ("t5-v1.1-large", 783_150_080),
        ("t5-v1.1-xl", 2_849_757_184),
        ("t5-v1.1-xxl", 11_135_332_352),
        ("bert-base", 109_514_298),
        ("bert-large", 335_174_458),
        ("roberta-base", 124_697_433),
        ("roberta-large", 355_412_057),
        ("xlm-roberta-base", 278_295_186),
        ("xlm-roberta-large", 560_142_482),
        ("distilbert-base", 66_985_530),
        ("albert-base", 11_221_680),
        ("albert-large", 16_795_824),
        ("albert-xlarge", 54_821_040),
        ("albert-xxlarge", 206_368_944),
        ("llama-7b", 6_738_415_616),
        ("llama-13b", 13_015_864_320),
        ("llama-2-7b", 6_738_415_616),
        ("llama-2-70b", 68_976_648_192),
        ("llama-3-8b", 8_030_261_248),
        ("llama-3.1-8b", 8_030_261_248),
        ("llama-3.2-1b", 1_235_814_400),
        ("llama-3.2-3b", 3_212_749_824),
    ],
)
def test_presets_have_as_many_parameters_as_the_published_models(preset: str, parameters: int) -> None:
    with torch.device("meta"):
        model = heedful.build(preset)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters
