"""What the config.json of a published model says, in our words (chapters 14 to 16).

What our parts cannot be raises a ValueError that names the file and the field.
"""

import math
from collections.abc import Mapping
from typing import Any, get_args

from transformer.family.config import LayerType

_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_new": "gelu_tanh"}


class PublishedConfig(dict[str, Any]):
    """A config.json that knows what to call itself."""

    def __init__(self, values: Mapping[str, Any], source: str):
        super().__init__(values)
        self.source = source

    def __missing__(self, name: str) -> Any:
        raise ValueError(f"{self.source} must have {name!r}, got only {sorted(self)}")


def sizes(config: PublishedConfig, pad_id: int | None) -> dict[str, Any]:
    """The sizes, as Llama and the models after it call them."""
    c = config
    d, n_heads = c["hidden_size"], c["num_attention_heads"]
    d_k = c.get("head_dim")
    return {
        "vocab_size": c["vocab_size"],
        "d_model": d,
        "n_heads": n_heads,
        "n_key_heads": c.get("num_key_value_heads"),
        "head_dim": None if d_k is None or d_k * n_heads == d else d_k,
        "n_layers": c["num_hidden_layers"],
        "d_ff": c["intermediate_size"],
        "max_len": c["max_position_embeddings"],
        "norm_eps": c["rms_norm_eps"],
        "pad_id": pad_token(c, pad_id),
    }


def require(config: PublishedConfig, **wanted: Any) -> None:
    """Raises ValueError for a field that has another value; one that is not there has this one."""
    for name, want in wanted.items():
        got = config.get(name, want)
        if got != want:
            needed = f"{name} = {want!r} for our parts"
            raise ValueError(f"{config.source} must have {needed}, got {got!r}")


def positive(config: PublishedConfig, name: str, default: Any = None) -> float:
    """A number above 0; ValueError where the field, or what stands for it, is none."""
    number = config.get(name, default)
    if type(number) not in (int, float) or not 0 < number < math.inf:
        wanted = f"{name} must be a positive number"
        raise ValueError(f"{config.source}: {wanted}, got {number!r}")
    return float(number)


def activation(config: PublishedConfig, name: str) -> str:
    """Our word for the activation of a feed-forward network that is not gated."""
    if config[name] not in _ACTIVATIONS:
        wanted = f"an activation of {tuple(_ACTIVATIONS)}"
        raise ValueError(f"{config.source} must have {wanted}, got {config[name]!r}")
    return _ACTIVATIONS[config[name]]


def rope_theta(config: PublishedConfig) -> float:
    """The base of rotary angles, which are not scaled."""
    for name in ("rope_scaling", "rope_parameters"):  # a file may have both
        rope = PublishedConfig(config.get(name) or {}, config.source)
        kind = rope.get("rope_type", rope.get("type", "default"))
        if kind != "default":
            wanted = "the rope_type 'default' for our parts"
            raise ValueError(f"{config.source} must have {wanted}, got {kind!r}")
    return positive(rope, "rope_theta", config.get("rope_theta", 10_000.0))


def rope_thetas(config: PublishedConfig) -> tuple[float, float]:
    """Gemma 3's bases: of the layers that see all, and of those with a window."""
    rope = config.get("rope_parameters") or {}
    if not rope.keys() <= {*get_args(LayerType)}:
        wanted = f"rope_parameters for each of {get_args(LayerType)}"
        raise ValueError(f"{config.source} must have {wanted}, got {sorted(rope)}")
    older: dict[LayerType, dict[str, Any]] = {  # as the published files have them
        "full_attention": {
            "rope_theta": config.get("rope_theta", 1e6),
            "rope_scaling": config.get("rope_scaling"),
        },
        "sliding_attention": {"rope_theta": config.get("rope_local_base_freq", 1e4)},
    }
    full, local = (
        rope_theta(PublishedConfig({**old, "rope_parameters": rope.get(kind)}, config.source))
        for kind, old in older.items()
    )
    return full, local


def layer_types(config: PublishedConfig) -> list[LayerType]:
    """The kind of each layer, as listed, or all but one in so many with a window; Gemma 3."""
    types, every = config.get("layer_types"), positive(config, "sliding_window_pattern", 6)
    if types is not None:
        return types
    numbers = range(1, config["num_hidden_layers"] + 1)
    return ["sliding_attention" if i % every else "full_attention" for i in numbers]


def pad_token(config: PublishedConfig, pad_id: int | None) -> int | None:
    """The padding id: the one asked for, or a token that the config keeps for padding alone."""
    if pad_id is not None:
        return pad_id
    padding, ends = config.get("pad_token_id"), config.get("eos_token_id")
    text = [config.get("bos_token_id"), *(ends if isinstance(ends, list) else [ends])]
    # Padding that is never seen is one thing; hiding the end of every text is another. In the first
    # Llama's config, -1 stands for "none".
    return None if padding in (-1, *text) else padding
