"""On a GPU: the same answers, no waiting for the device, and a step that can be captured and replayed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

import heedful
from heedful.core import Mask, attend, attention_weights, causal, padding, window

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.filterwarnings("default"),  # the compiler's own warnings differ from version to version
]

LENGTHS = [7, 3, 5]
KEEP_LEFT = torch.arange(7) >= 7 - torch.tensor(LENGTHS)[:, None]
MASKS: dict[str, Mask | None] = {
    "none": None,
    "causal": causal(),
    "right": padding(LENGTHS),
    "causal-right": causal() & padding(LENGTHS),
    "window": causal() & window(3),
}


@contextmanager
def no_waiting() -> Iterator[None]:
    """Any wait for the device inside is an error."""
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def model(**changes: Any) -> Any:
    torch.manual_seed(0)
    sizes = {"d_model": 64, "n_heads": 4, "d_ff": 96, "n_encoder_layers": 2, "n_decoder_layers": 2, "vocab_size": 50}
    return heedful.build("tiny", **(sizes | changes)).eval()


def batch() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    source, target = torch.randint(0, 50, (3, 7)), torch.randint(0, 50, (3, 6))
    return source, target, torch.arange(7) < torch.tensor(LENGTHS)[:, None]


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_fused_equals_written_out(name: str, dtype: torch.dtype, kv_heads: int) -> None:
    query = torch.randn(3, 4, 7, 16, device="cuda", dtype=dtype)
    key, value = (torch.randn(3, kv_heads, 7, 16, device="cuda", dtype=dtype) for _ in range(2))
    mixed = attend(query, key, value, keep=MASKS[name])
    weights = attention_weights(query.float(), key.float(), keep=MASKS[name])
    expected = weights @ value.float().repeat_interleave(4 // kv_heads, dim=1)
    real = torch.arange(7) < torch.tensor(LENGTHS)[:, None] if "right" in name else torch.ones(3, 7, dtype=torch.bool)
    close = 1e-5 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(mixed.float().transpose(1, 2)[real], expected.transpose(1, 2)[real], rtol=0, atol=close)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_fully_masked_row_is_zero_with_finite_gradients(dtype: torch.dtype) -> None:
    inputs = [torch.randn(2, 4, 5, 16, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3)]
    out = attend(*inputs, keep=padding(torch.tensor([[True] * 5, [False] * 5], device="cuda")))
    assert not out[1].any()
    out.sum().backward()
    assert all(tensor.grad is not None and bool(tensor.grad.isfinite().all()) for tensor in inputs)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "relative", "rotary", "alibi", "none"])
def test_the_gpu_gives_what_the_cpu_gives(positions: str) -> None:
    source, target, keep = batch()
    here = model(positions=positions, max_length=32).double()
    expected = here(source, target, keep)
    seen = here.cuda()(source.cuda(), target.cuda(), keep.cuda())
    close = 1e-6 if positions == "rotary" else 1e-10  # rotary angles are float32, as published models were trained
    torch.testing.assert_close(seen.cpu(), expected, rtol=0, atol=close)


@pytest.mark.parametrize("positions", ["sinusoidal", "relative", "rotary", "alibi"])
def test_forward_and_backward_never_wait_for_the_device(positions: str) -> None:
    source, target, keep = (tensor.cuda() for tensor in batch())
    there = model(positions=positions, max_length=32).cuda().train()
    known = padding(keep, lengths=LENGTHS)
    with no_waiting():
        for said in (known, keep, padding(LENGTHS)):
            there(source, target, said, None).square().mean().backward()


@pytest.mark.parametrize("side", ["left", "right"])
def test_memory_is_linear_though_the_host_knows_no_lengths(side: str) -> None:
    """Causal attention over padding that only the device knows: never a mask of Tq × Tk."""

    def kept(length: int) -> int:
        query, key, value = (torch.randn(2, 4, length, 16, device="cuda", requires_grad=True) for _ in range(3))
        real = torch.arange(length, device="cuda") < torch.tensor([[length], [length // 2]], device="cuda")
        storages: dict[int, int] = {}

        def pack(tensor: Tensor) -> Tensor:
            storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            attend(query, key, value, keep=causal() & padding(real.flip(1) if side == "left" else real))
        return sum(storages.values())

    assert kept(512) < 2.2 * kept(256)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "relative", "rotary", "alibi"])
@torch.no_grad()
def test_a_captured_step_replays_to_the_same_logits(positions: str) -> None:
    source, target, keep = (tensor.cuda() for tensor in batch())
    there = model(positions=positions, max_length=32).cuda()
    known = padding(keep, lengths=LENGTHS)
    whole = there(source, target, keep)
    memory = there.encode(source, known)
    cache = there.new_cache(16)
    token = torch.zeros(3, 1, dtype=torch.long, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(2):
            there.decode(token, memory, known, cache)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        logits = there.decode(token, memory, known, cache)
    cache.length.zero_()
    for t in range(target.shape[1]):
        token.copy_(target[:, t : t + 1])
        graph.replay()
        torch.testing.assert_close(logits[:, 0], whole[:, t], rtol=0, atol=1e-4)


@pytest.mark.parametrize("positions", ["sinusoidal", "relative", "rotary"])
def test_compiled_without_a_break_equals_eager(positions: str) -> None:
    source, target, keep = (tensor.cuda() for tensor in batch())
    there = model(positions=positions).cuda()
    known = padding(keep, lengths=LENGTHS)
    expected = there(source, target, known)
    compiled: Any = torch.compile(there, fullgraph=True)
    torch.testing.assert_close(compiled(source, target, known), expected, rtol=0, atol=1e-4)
