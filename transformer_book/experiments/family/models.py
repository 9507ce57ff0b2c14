"""The models of chapter 15's stored experiments: the blocks, and the sizes of the law."""

from torch import nn

from transformer.family import DecoderOnly, FamilyConfig
from transformer_book.experiments.family.language import LENGTH, N_SYMBOLS

BASE = FamilyConfig(
    N_SYMBOLS[2] + 1,
    d_model=64,
    n_heads=4,
    n_layers=2,
    d_ff=256,
    max_len=LENGTH,
    feed_forward="gelu_tanh",
)
CHANGES: dict[str, dict] = {
    "base": {},
    "RMSNorm": {"norm_kind": "rms"},
    "SwiGLU": {"feed_forward": "swiglu"},
    "rotary": {"position": "rotary"},
    "grouped keys": {"n_key_heads": 2},
    "no biases": {"bias": False},
}
CHANGES["all"] = {key: x for change in CHANGES.values() for key, x in change.items()}
SIZES = (8, 16, 28, 48, 80)  # d_model of the models that the scaling law is fitted to


def block_config(name: str) -> FamilyConfig:
    """The base with the change of this name, and the ``d_ff`` that gives it as many parameters.

    Raises ValueError, which lists the names, for another.
    """
    if name not in CHANGES:
        raise ValueError(f"name must be one of {', '.join(CHANGES)}, got {name!r}")
    config, wanted = BASE.replace(**CHANGES[name]), count_parameters(DecoderOnly(BASE))
    one, two = (count_parameters(DecoderOnly(config.replace(d_ff=width))) for width in (1, 2))
    return config.replace(d_ff=1 + round((wanted - one) / (two - one)))


def scaling_config(d_model: int, *, order: int = 1) -> FamilyConfig:
    """A GPT-2 of two layers and two heads, as small as ``d_model`` says, for a language."""
    sizes = {"d_model": d_model, "n_heads": 2, "d_ff": 4 * d_model}
    return BASE.replace(vocab_size=N_SYMBOLS[order] + 1, **sizes)


def scaling_model(d_model: int, *, order: int = 1) -> DecoderOnly:
    return DecoderOnly(scaling_config(d_model, order=order))


def count_parameters(model: nn.Module) -> int:
    """A table that is tied counts once."""
    return sum(p.numel() for p in model.parameters())


def count_embedding(model: DecoderOnly) -> int:
    """Those of the tables of tokens and positions, which Kaplan et al. (2020) leave out."""
    return count_parameters(model.embedding)
