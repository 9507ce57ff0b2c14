import random
import signal

import numpy as np
import pytest
import torch
from torch import nn

from transformer.runtime import (
    STOPS,
    Timer,
    autocast_dtype,
    default_device,
    evaluating,
    seed_everything,
    signals_held,
)

CPU = torch.device("cpu")


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
def test_default_device_is_the_accelerator_where_there_is_one(kind, monkeypatch):
    accelerator = torch.device(kind)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: accelerator)
    for there, expected in ((True, accelerator), (False, CPU)):
        monkeypatch.setattr(torch.accelerator, "is_available", lambda there=there: there)
        assert default_device() == expected


@pytest.mark.parametrize("kind", ["cpu", "mps"])
def test_a_cpu_and_a_mac_compute_in_float32_unless_asked(kind):
    assert autocast_dtype(torch.device(kind)) is None
    assert autocast_dtype(kind, "fp32") is None
    assert autocast_dtype(kind, "bf16") == torch.bfloat16


def test_an_xpu_computes_in_bfloat16_unless_asked():
    assert autocast_dtype("xpu") == torch.bfloat16
    assert autocast_dtype("xpu", "fp32") is None


@pytest.mark.parametrize(
    ("capability", "precision", "expected"),
    [
        ((7, 5), "auto", torch.float16),
        ((7, 5), "fp16", torch.float16),
        ((7, 5), "fp32", None),
        ((8, 0), "auto", torch.bfloat16),
        ((9, 0), "auto", torch.bfloat16),
        ((9, 0), "fp16", torch.float16),
    ],
)
def test_a_gpu_computes_in_what_it_is_fast_in(monkeypatch, capability, precision, expected):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert autocast_dtype(torch.device("cuda"), precision) == expected


@pytest.mark.usefixtures("unchecked")
def test_refuses_what_the_device_has_not(monkeypatch):
    with pytest.raises(ValueError, match=r"precision must be one of .*'fp16'.*, got 'int8'"):
        autocast_dtype(CPU, "int8")
    for kind in ("cpu", "mps", "xpu"):
        wanted = f"precision must be bf16 or fp32 on {kind}, got 'fp16'"
        with pytest.raises(ValueError, match=wanted):
            autocast_dtype(kind, "fp16")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a T4")
    with pytest.raises(ValueError, match="fp16 or fp32 on a T4, which has no bf16"):
        autocast_dtype(torch.device("cuda"), "bf16")


def test_one_seed_fixes_all_three_generators():
    def draw():
        return random.random(), np.random.rand(), torch.rand(()).item()  # noqa: NPY002

    seed_everything(3)
    first = draw()
    assert draw() != first
    seed_everything(3)
    assert draw() == first
    seed_everything(5)
    assert not set(draw()) & set(first)


def two_modes():
    """A model of which one part is in evaluation already."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.Linear(3, 2))
    model[2].eval()
    return model


def test_evaluating_is_without_dropout_and_without_gradients():
    model, x = two_modes(), torch.ones(4, 3)
    with evaluating(model):
        assert not any(module.training for module in model.modules())
        first = model(x)
        assert torch.equal(model(x), first)
        assert not first.requires_grad
    assert model(x).requires_grad


def test_evaluating_gives_each_module_its_mode_back_even_after_an_error():
    model = two_modes()
    before = [module.training for module in model.modules()]
    assert set(before) == {True, False}
    with evaluating(model):
        pass
    assert [module.training for module in model.modules()] == before
    with pytest.raises(KeyError, match="inside"), evaluating(model):
        raise KeyError("inside")
    assert [module.training for module in model.modules()] == before
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("number", STOPS)
@pytest.mark.usefixtures("ctrl_c")
def test_signals_wait_for_the_end_of_the_block_and_are_as_before_after_it(number):
    waited = []

    def block():
        with signals_held() as waiting:
            signal.raise_signal(number)
            waited.append(waiting)

    def loop_without_end():
        with signals_held() as waiting:
            for _ in range(9):
                signal.raise_signal(number)
                waited.append(len(waiting))

    before = signal.signal(number, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            block()
        assert waited.pop() == [number]
        with pytest.raises(KeyboardInterrupt):
            loop_without_end()
        assert waited == [1, 2]
        with pytest.raises(KeyError, match="inside"), signals_held():
            raise KeyError("inside")
        assert signal.getsignal(number) is signal.default_int_handler
        signal.signal(number, signal.SIG_IGN)
        block()
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


def test_timer_measures_its_block_and_nothing_else(monkeypatch):
    monkeypatch.setattr("time.perf_counter", iter((10.0, 12.5)).__next__)
    with Timer(CPU) as timer:
        pass
    assert timer.seconds == 2.5


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
def test_timer_waits_for_a_gpu_at_both_ends(kind, monkeypatch):
    waited = []
    monkeypatch.setattr(torch.accelerator, "synchronize", waited.append)
    gpu = torch.device(kind)
    with Timer(gpu):
        assert waited == [gpu]
    assert waited == [gpu, gpu]
