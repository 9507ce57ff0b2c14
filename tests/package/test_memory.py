import pytest
import torch

from transformer import memory
from transformer.config import TransformerConfig
from transformer.family import DecoderOnly, FamilyConfig
from transformer.memory import available, check_fits, size_of
from transformer.model import Transformer


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        (Transformer, TransformerConfig.tiny(30, 40, n_encoder_layers=1, n_decoder_layers=4)),
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


def test_what_fits_is_let_through_and_the_rest_told_with_both_sizes(monkeypatch):
    assert 10**7 < available(torch.device("cpu")) < 10**16
    monkeypatch.setattr(memory, "available", lambda device: 12_000_000)
    check_fits(12_000_000, what="it")
    with pytest.raises(ValueError, match=r"^it needs at least 12\.0 MB, and cpu has 12\.0 MB left"):
        check_fits(12_000_001, "cpu", what="it")
    with pytest.raises(ValueError, match=r"^it needs at least 6\.0 MB in each of 2 processes, and"):
        check_fits(6_000_001, what="it", processes=2)
    monkeypatch.setattr(memory, "available", lambda device: None)  # nobody knows
    check_fits(10**30, what="it")
