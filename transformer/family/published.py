"""What the config.json of a published model says, in our words (chapters 14 to 16).

What our parts cannot be raises a ValueError that names the file and the field.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any, get_args

from transformer.family.config import LayerType

_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_new": "gelu_tanh"}
# What values of a config.json are, by their names there. True is no number.
_TYPES: tuple[tuple[str, Callable[[Any], bool], set[str]], ...] = (
    (
        "a positive integer",
        lambda x: type(x) is int and x > 0,
        {
            *("vocab_size", "n_embd", "n_head", "n_layer", "n_inner", "n_positions"),
            *("hidden_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers"),
            *("intermediate_size", "max_position_embeddings", "type_vocab_size", "head_dim"),
            *("sliding_window", "sliding_window_pattern"),
        },
    ),
    ("an integer", lambda x: type(x) is int, {"pad_token_id"}),
    (
        "a number",
        lambda x: type(x) in (int, float) and abs(x) <= sys.float_info.max,
        {
            *("layer_norm_epsilon", "layer_norm_eps", "rms_norm_eps", "rope_theta"),
            *("resid_pdrop", "hidden_dropout_prob", "rope_local_base_freq"),
        },
    ),
    (
        "a positive number",
        lambda x: type(x) in (int, float) and 0 < x <= sys.float_info.max,
        {"query_pre_attn_scalar"},
    ),
    ("a bool", lambda x: type(x) is bool, {"tie_word_embeddings", "attention_bias"}),
    ("a string", lambda x: type(x) is str, {"activation_function", "hidden_act"}),
    ("a list", lambda x: isinstance(x, list), {"layer_types"}),
    ("an object", lambda x: isinstance(x, Mapping), {"rope_parameters", "rope_scaling"}),
)
# What may be null there, which stands for none, or for what follows from the other fields.
_NULLABLE = {
    *("n_inner", "num_key_value_heads", "head_dim", "sliding_window", "layer_types"),
    *("pad_token_id", "rope_parameters", "rope_scaling"),
}


class PublishedConfig(dict[str, Any]):
    """A config.json, whose values are of the types that are theirs."""

    def __init__(self, values: Mapping[str, Any], source: str):
        super().__init__(values)
        self.source = source  # what to call it
        for wanted, is_right, names in _TYPES:
            for name in self.keys() & names:
                if not is_right(self[name]) and not (self[name] is None and name in _NULLABLE):
                    raise ValueError(f"{source}: {name} must be {wanted}, got {self[name]!r}")

    def __missing__(self, name: str) -> Any:
        raise ValueError(f"{self.source} must have {name!r}, got only {sorted(self)}")


def sizes(config: PublishedConfig, pad_id: int | None) -> dict[str, Any]:
    """What Llama and those after it call alike."""
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
    return float(rope.get("rope_theta", config.get("rope_theta", 10_000.0)))


def rope_thetas(config: PublishedConfig) -> tuple[float, float]:
    """Gemma 3's bases: of the layers that see all, and of those with a window."""
    rope = config.get("rope_parameters") or {}
    if not rope.keys() <= {*get_args(LayerType)}:
        wanted = f"rope_parameters for each of {get_args(LayerType)}"
        raise ValueError(f"{config.source} must have {wanted}, got {sorted(rope)}")
    older: dict[LayerType, dict[str, Any]] = {  # what stands there in files of 2025
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
    """Which layers have a window: said of each, or all but one in so many; Gemma 3."""
    types, every = config.get("layer_types"), config.get("sliding_window_pattern", 6)
    if types is not None:
        return types
    numbers = range(1, config["num_hidden_layers"] + 1)
    return ["sliding_attention" if i % every else "full_attention" for i in numbers]


def pad_token(config: PublishedConfig, pad_id: int | None) -> int | None:
    """What is asked for, or what the config keeps for padding and for nothing else."""
    if pad_id is not None:
        return pad_id
    padding, ends = config.get("pad_token_id"), config.get("eos_token_id")
    text = [config.get("bos_token_id"), *(ends if isinstance(ends, list) else [ends])]
    # Padding that is never seen is one thing; hiding the end of every text is another. A negative
    # number stands for "none" in older configs.
    return None if padding is None or padding in text or padding < 0 else padding
