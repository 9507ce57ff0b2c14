"""The translator that chapter 9 trains, ready made: chapters 10 and 12 ask and open it."""

import json
from dataclasses import asdict
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save

from transformer.config import TransformerConfig
from transformer.files import replace_file
from transformer.model import Transformer
from transformer.runtime import default_device

WEIGHTS = Path(__file__).with_name("weights")


def trained(seed: int = 0) -> Transformer:
    """Chapter 9's translator, trained from this seed, in evaluation mode on ``default_device()``.

    ``make experiments ONLY=trained`` has trained and stored ten, from the seeds 0 to 9. They are
    kept in half precision, so the last digits differ from those of a training run of your own.

    Raises ValueError for a seed that is not stored.
    """
    path = WEIGHTS / f"seed-{seed}.safetensors"
    if not path.exists():
        seeds = sorted(int(p.stem.removeprefix("seed-")) for p in WEIGHTS.glob("*.safetensors"))
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
