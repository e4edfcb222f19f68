"""One update beside torch's own pieces: which weights decay, the clipping, Adam, the average, and the mask."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from copying import V, config, tiny
from torch import Tensor, nn

import heedful
from heedful import core
from heedful.families.weights import put_weights, weights_of
from heedful.training.optimizers import Ema, Update, ema_weight, load_state, mean_of, state_of, undecayed
from heedful.training.parallel import ReplicatedModel


@pytest.mark.parametrize("changes", [{}, {"positions": "learned"}, {"positions": "relative"}, {"tied": "none"}])
def test_matrices_decay_and_nothing_else_in_a_transformer(changes: dict[str, Any]) -> None:
    module = tiny(**changes)
    expected = {
        name
        for name, _ in module.named_parameters()
        if name.endswith((".bias", "norm.weight", "embedding.weight", "positions.weight"))
    } - {"head.embedding.weight"}
    assert undecayed(module) == expected
    assert any(name.endswith("q_proj.weight") for name, _ in module.named_parameters())
    assert ("head.embedding.weight" in dict(module.named_parameters())) == (changes.get("tied") == "none")


def test_matrices_decay_and_nothing_else_in_a_recurrent_model() -> None:
    module = heedful.build("recurrent", vocab_size=V, d_model=8)
    names = [name for name, _ in module.named_parameters()]
    assert undecayed(module) == {name for name in names if "bias" in name or name.endswith("embedding.weight")}
    assert "encoder.forwards.0.weight_hh_l0" in names


def test_a_class_token_and_torchs_embedding_do_not_decay() -> None:
    patches = core.PatchEmbedding(8, image_size=4, patch_size=2)
    assert undecayed(nn.ModuleList([patches, nn.Embedding(3, 8)])) == {"0.prefix", "0.project.bias", "1.weight"}


def test_shared_parameters_are_updated_once() -> None:
    update = Update(ReplicatedModel(tiny()), config(), 10)
    parameters = [
        parameter for paced in update.optimizers for group in paced.param_groups for parameter in group["params"]
    ]
    assert len(parameters) == len(set(parameters)) == len(list(tiny().parameters()))


def gradients_for(module: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)


def sums(total: float, n: int) -> Tensor:
    return torch.tensor([total, total, n], dtype=torch.float64)


@pytest.mark.parametrize("clip", [0.0, 0.05, 1e9])
def test_update_is_torchs_clip_and_adamw(clip: float) -> None:
    settings = config(max_grad_norm=clip, weight_decay=0.1, ema_decay=0.9, schedule="cosine")
    ours, theirs = tiny().double(), tiny().double()
    update = Update(ReplicatedModel(ours), settings, 10)
    names = undecayed(theirs)
    decayed = [parameter for name, parameter in theirs.named_parameters() if name not in names]
    spared = [parameter for name, parameter in theirs.named_parameters() if name in names]
    adamw = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": spared, "weight_decay": 0.0}],
        betas=(0.9, 0.98),
        eps=1e-9,
        foreach=False,
    )
    average = {name: weight.clone() for name, weight in weights_of(theirs).items()}
    n = 17
    for step in range(1, 5):
        update.prepare(step)
        gradients_for(ours, step)
        total, plain, counted, norm, finite = update(sums(1.0, n))
        assert (float(total), float(plain), float(counted)) == (1.0, 1.0, 17.0)
        assert finite

        gradients_for(theirs, step)
        for parameter in theirs.parameters():
            assert parameter.grad is not None
            parameter.grad /= n
        their_norm = torch.nn.utils.clip_grad_norm_(theirs.parameters(), clip or float("inf"))
        for group in adamw.param_groups:
            group["lr"] = float(torch.tensor(update.schedule(step)))  # the rate is a float32 on the device
        adamw.step()
        decay = min(0.9, (1 + step) / (10 + step))
        average = {name: decay * average[name] + (1 - decay) * new for name, new in weights_of(theirs).items()}

        torch.testing.assert_close(norm, their_norm)
        for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-7, atol=1e-9)
    assert update.ema is not None
    for name, weight in update.ema.means.items():
        torch.testing.assert_close(weight, average[name], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("what", ["gradient", "infinite gradient", "loss"])
@pytest.mark.parametrize("first", [True, False], ids=["at once", "later"])
def test_what_is_not_finite_changes_nothing(what: str, first: bool) -> None:
    module = tiny()
    update = Update(ReplicatedModel(module), config(), 10)
    assert update.ema is not None
    if not first:
        update.prepare(1)
        gradients_for(module, 1)
        update(sums(1.0, 3))
    before = [weights_of(module), update.ema.means, state_of(update.optimizers, update.model.weights)]
    before = [{name: tensor.clone() for name, tensor in tensors.items()} for tensors in before]

    update.prepare(2)
    gradients_for(module, 2)
    parameter = next(module.parameters())
    assert parameter.grad is not None
    if what != "loss":
        parameter.grad.view(-1)[3] = float("nan") if what == "gradient" else float("inf")
    values = update(sums(float("nan") if what == "loss" else 1.0, 3))

    assert not values[-1]
    after = [weights_of(module), update.ema.means, state_of(update.optimizers, update.model.weights)]
    for old, new in zip(before, after, strict=True):
        for name, tensor in new.items():
            assert torch.equal(tensor, old.get(name, torch.zeros_like(tensor))), name


def test_frozen_parameters_stay_and_unused_ones_do_no_harm() -> None:
    module = nn.ModuleDict({"used": nn.Linear(2, 2), "frozen": nn.Linear(2, 2), "unused": nn.Linear(2, 2)})
    module["frozen"].requires_grad_(False)
    before = {name: weight.clone() for name, weight in weights_of(module).items()}
    update = Update(ReplicatedModel(module), config(weight_decay=0.5), 10)
    update.prepare(1)
    module["frozen"](module["used"](torch.ones(1, 2))).sum().backward()
    update(sums(1.0, 1))
    changed = {name for name, weight in weights_of(module).items() if not torch.equal(weight, before[name])}
    assert changed == {"used.weight", "used.bias"}


def test_the_optimisers_state_travels_by_name() -> None:
    module, other = tiny(), tiny()
    update, fresh = Update(ReplicatedModel(module), config(), 10), Update(ReplicatedModel(other), config(), 10)
    for step in (1, 2):
        update.prepare(step)
        gradients_for(module, step)
        update(sums(1.0, 1))
    put_weights(other, weights_of(module))
    load_state(fresh.optimizers, fresh.model.weights, state_of(update.optimizers, update.model.weights))
    for each, owner in ((update, module), (fresh, other)):
        each.prepare(3)
        gradients_for(owner, 3)
        each(sums(1.0, 1))
    assert all(torch.equal(a, b) for a, b in zip(module.parameters(), other.parameters(), strict=True))


def test_the_average_forgets_its_start() -> None:
    """Between 1 and the decay: the first steps weigh much, the later ones 1 − decay."""
    assert ema_weight(1, 0.999) == pytest.approx(9 / 11)
    assert ema_weight(10**6, 0.999) == pytest.approx(0.001)


def test_the_average_holds_shared_weights_once() -> None:
    ema = Ema(ReplicatedModel(tiny()).weights)
    assert ema.means.keys() == dict(tiny().named_parameters()).keys()


def test_mean_of_weights() -> None:
    snapshots = [{"a": torch.tensor([1.0, k]), "n": torch.tensor(k)} for k in (2, 3, 7)]
    mean = mean_of(snapshots)
    assert mean["a"].tolist() == [1.0, 4.0]
    assert mean["a"].dtype == torch.float32
    assert int(mean["n"]) == 7
    with pytest.raises(ValueError, match="no weights"):
        mean_of([])
