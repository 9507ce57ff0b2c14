from pathlib import Path

import pytest
import torch

from transformer import memory
from transformer.config import TransformerConfig
from transformer.family import DecoderOnly, FamilyConfig
from transformer.memory import available, check_fits, size_of
from transformer.model import Transformer

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        (Transformer, TransformerConfig.tiny(30, 40, n_encoder_layers=1, n_decoder_layers=4)),
        (Transformer, TransformerConfig.tiny(30, 30, position="rotary", norm="pre")),
        (Transformer, TransformerConfig.tiny(30, 30, position="learned", n_encoder_layers=7)),
        (DecoderOnly, FamilyConfig(30, d_model=8, n_heads=2, n_layers=5, d_ff=9)),
    ],
)
def test_a_size_is_that_of_the_model_which_is_not_made(kind, config):
    made = kind(config)
    size = size_of(kind, config)
    n, buffers = sum(p.numel() for p in made.parameters()), sum(b.nbytes for b in made.buffers())
    assert size == (n, 4 * n, buffers)
    assert size.in_training == 16 * n + buffers
    assert size.in_use == 4 * n + buffers


def test_the_size_of_what_could_never_be_made_is_told_at_once():
    layers = {"n_encoder_layers": 10**9, "n_decoder_layers": 10**9}
    size = size_of(Transformer, TransformerConfig.tiny(30, 30, **layers))
    assert size.parameters > 10**13
    with pytest.raises(ValueError, match="a model of these sizes cannot be: "):
        size_of(Transformer, TransformerConfig(30, 30, d_model=2**40))


def test_what_fits_is_let_through_to_the_byte_and_the_rest_told_with_both_sizes(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda device: 12_000_000)
    check_fits(12_000_000, what="it")
    with pytest.raises(ValueError, match=r"^it needs at least 12\.0 MB, and cpu has 12\.0 MB left"):
        check_fits(12_000_001, "cpu", what="it")
    check_fits(6_000_000, what="it", processes=2)
    with pytest.raises(ValueError, match=r"^it needs at least 6\.0 MB in each of 2 processes, and"):
        check_fits(6_000_001, what="it", processes=2)
    monkeypatch.setattr(memory, "available", lambda device: None)  # nobody knows
    check_fits(10**30, what="it")


def test_memory_is_that_of_the_device(monkeypatch):
    free = available(CPU)
    assert 10**8 < free < 10**14
    assert available(torch.device("meta")) is None
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (7, 9))
    assert available(torch.device("cuda:0")) == 7


FILES = {
    "/proc/meminfo": "MemTotal:  9000 kB\nMemFree: 1 kB\nMemAvailable:   2000 kB\n",
    "/proc/self/cgroup": "1:name=systemd:/\n0::/user/job\n",
    "/sys/fs/cgroup/user/memory.max": "1500000\n",
    "/sys/fs/cgroup/user/job/memory.max": "max\n",
}


@pytest.mark.parametrize(
    ("changes", "free"),
    [
        ({}, 1_500_000),  # the group above sets the limit
        ({"/sys/fs/cgroup/user/job/memory.max": "1400000"}, 1_400_000),
        ({"/sys/fs/cgroup/user/memory.max": "max"}, 2_048_000),
        ({"/sys/fs/cgroup/user/memory.max": None}, 2_048_000),
        ({"/sys/fs/cgroup/memory.max": "300"}, 300),
        ({"/proc/self/cgroup": "4:memory:/docker/1\n"}, 2_048_000),
        ({"/sys/fs/cgroup/memory/memory.limit_in_bytes": "99"}, 99),  # the first version
        ({"/proc/self/cgroup": None}, 2_048_000),
        ({"/proc/meminfo": None, "/proc/self/cgroup": None}, 32_768_000),
        ({"/proc/meminfo": "MemTotal: 9 kB\n", "/proc/self/cgroup": None}, 32_768_000),
    ],
)
def test_a_container_or_a_job_has_no_more_than_its_limit(changes, free, monkeypatch):
    files = FILES | changes

    def read_text(path, *_, **__):
        if files.get(str(path)) is None:
            raise FileNotFoundError(path)
        return files[str(path)]

    monkeypatch.setattr(Path, "read_text", read_text)
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 8000}
    monkeypatch.setattr("os.sysconf", pages.__getitem__)
    assert available(CPU) == free


@pytest.mark.parametrize(
    ("n_bytes", "spoken"),
    [(7, "7 B"), (999, "999 B"), (1000, "1.0 kB"), (99_949, "99.9 kB"), (123_456, "123 kB"),
     (1_500_000_000, "1.5 GB"), (50_400_000_000_000, "50.4 TB"), (10**21, "1,000,000 PB")],
)  # fmt: skip
def test_sizes_are_told_in_a_unit_that_fits(n_bytes, spoken, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda device: 0)
    with pytest.raises(ValueError, match=f"it needs at least {spoken}, and cpu has 0 B left"):
        check_fits(n_bytes, what="it")
