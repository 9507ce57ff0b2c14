"""The translators that chapter 9 trains, ready made: chapters 10 and 12 ask and open them."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn

from transformer.config import TransformerConfig
from transformer.data.grammar import grammar_vocabularies
from transformer.files import replace_file
from transformer.model import Transformer
from transformer.runtime import default_device

WEIGHTS = Path(__file__).with_name("weights")
MINE = "my-transformer.safetensors"


def trained(seed: int = 0) -> Transformer:
    """Chapter 9's translator, trained from this seed, in evaluation mode on ``default_device()``.

    ``make experiments ONLY=trained`` has trained and stored ten, from the seeds 0 to 9. They are
    kept in half precision, so the last digits differ from those of a training run of your own.

    Raises ValueError for a seed that is not stored.
    """
    path = WEIGHTS / f"seed-{seed}.safetensors"
    if not path.exists():
        there = WEIGHTS.glob("seed-*.safetensors")
        seeds = sorted(int(file.stem.removeprefix("seed-")) for file in there)
        raise ValueError(f"seed must be one of {seeds}, got {seed!r}")
    with safe_open(path, framework="pt") as file:
        config = TransformerConfig(**json.loads(file.metadata()["config"]))
        weights = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
    model = Transformer(config)
    model.load_state_dict(weights)
    return model.to(default_device()).eval()


def store_trained(model: Transformer, seed: int) -> None:
    """Keeps the weights of ``model`` as those that ``trained(seed)`` returns."""
    weights = {name: tensor.half().contiguous() for name, tensor in model.state_dict().items()}
    about = {"config": json.dumps(asdict(model.config))}
    WEIGHTS.mkdir(exist_ok=True)
    replace_file(WEIGHTS / f"seed-{seed}.safetensors", save(weights, about))


def my_weights() -> dict[str, Tensor]:
    """The weights of chapter 9's ``MyTransformer`` after its 2,000 steps, from seed 0, by name.

    Chapter 8 puts that model together from its reader's pieces. The weights are float32 on the CPU,
    and were kept in half precision, like those of :func:`trained`.
    """
    return {name: tensor.float() for name, tensor in load_file(WEIGHTS / MINE).items()}


def my_model() -> Transformer:
    """The package's Transformer, post-LN, with :func:`my_weights` in it, as :func:`trained` gives
    its own: what ``MyTransformer`` computes, in the modules that the book's tools know.
    """
    sizes: dict[str, Any] = {"d_model": 64, "n_heads": 4, "d_ff": 128}
    sizes |= {"n_encoder_layers": 2, "n_decoder_layers": 2, "dropout": 0.0, "max_len": 64}
    vocabularies = (len(words) for words in grammar_vocabularies())
    config = TransformerConfig(*vocabularies, **sizes)
    model = Transformer(config)
    model.load_state_dict({_package_name(name): x for name, x in my_weights().items()})
    return model.to(default_device()).eval()


def _package_name(name: str) -> str:
    name = re.sub(r"^(encoder|decoder)\.", r"\1.layers.", name)
    return re.sub(r"\bnorm_(\d)", r"residual_\1.norm", name)


def store_my_weights(model: nn.Module) -> None:
    """Keeps the weights of ``model`` as those that ``my_weights()`` returns."""
    weights = {name: tensor.half().contiguous() for name, tensor in model.state_dict().items()}
    WEIGHTS.mkdir(exist_ok=True)
    replace_file(WEIGHTS / MINE, save(weights))
