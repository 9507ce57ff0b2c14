"""GPT-2, BERT and Llama as Hugging Face stores them, in our models (chapters 14 and 15)."""

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from transformer.checks import shape_text
from transformer.family.config import FamilyConfig
from transformer.family.decoder_only import DecoderOnly
from transformer.family.encoder_only import EncoderOnly, Pooler
from transformer.family.names import BERT, GPT2, LLAMA, their_names
from transformer.family.stack import Stack
from transformer.saved import read_json
from transformer.tensors import check_finite, copy_tensors, open_tensors

Weights = Mapping[str, Tensor] | str | Path | nn.Module
Model = TypeVar("Model", bound=Stack)

_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_new": "gelu_tanh"}
# What older files hold besides weights: masks, counted positions, the frequencies of rotation.
_CONSTANTS = re.compile(r"\.attn\.(masked_)?bias$|\.position_ids$|\.rotary_emb\.inv_freq$")

# What values of a config.json are, by their names there. True is no number.
_TYPES: tuple[tuple[str, Callable[[Any], bool], set[str]], ...] = (
    (
        "a positive integer",
        lambda x: type(x) is int and x > 0,
        {
            *("vocab_size", "n_embd", "n_head", "n_layer", "n_inner", "n_positions"),
            *("hidden_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers"),
            *("intermediate_size", "max_position_embeddings", "type_vocab_size"),
        },
    ),
    ("an integer", lambda x: type(x) is int, {"pad_token_id"}),
    (
        "a number",
        lambda x: type(x) in (int, float) and abs(x) <= sys.float_info.max,
        {
            *("layer_norm_epsilon", "layer_norm_eps", "rms_norm_eps", "rope_theta"),
            *("resid_pdrop", "hidden_dropout_prob"),
        },
    ),
    ("a bool", lambda x: type(x) is bool, {"tie_word_embeddings", "attention_bias"}),
    ("a string", lambda x: type(x) is str, {"activation_function", "hidden_act"}),
    ("an object", lambda x: isinstance(x, Mapping), {"rope_parameters", "rope_scaling"}),
)


def load_gpt2(weights: Weights, config: Any = None, *, pad_id: int | None = None) -> DecoderOnly:
    """Our model with the weights of a ``GPT2LMHeadModel``, in evaluation mode; chapter 14.

    ``weights`` is a model, as ``GPT2LMHeadModel.from_pretrained("gpt2")``, the folder that its
    ``save_pretrained`` writes, or its state dict together with its ``config``, an object or a
    dict. Their layers are stored transposed. Without ``pad_id`` it is that of the config; None, and
    every token is text, if the config has none, as GPT-2's, or takes for it a token that also
    begins or ends a text.

    Raises ValueError for a file that is damaged, a config that our parts do not cover, weights that
    are missing, left over or not finite; OSError for a file that cannot be read.
    """
    theirs, c = _read(weights, config, "gpt2")
    _require(c, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False)
    _require(c, add_cross_attention=False)
    if "wte.weight" in theirs:  # as in the published files
        theirs = {f"transformer.{name}": x for name, x in theirs.items()}
    if c.get("tie_word_embeddings", True):
        _drop_copy(theirs, "lm_head.weight", "transformer.wte.weight")
    made = FamilyConfig.gpt2(
        c["vocab_size"],
        d_model=c["n_embd"],
        n_heads=c["n_head"],
        n_layers=c["n_layer"],
        d_ff=c.get("n_inner", 4 * c["n_embd"]),
        max_len=c["n_positions"],
        norm_eps=c["layer_norm_epsilon"],
        feed_forward=_activation(c, "activation_function"),
        dropout=c.get("resid_pdrop", 0.1),
        tie_embeddings=c.get("tie_word_embeddings", True),
        pad_id=_pad_id(c, pad_id),
    )

    def convert(ours: str, name: str, x: Tensor) -> Tensor:
        x = x.mT if ".c_" in name and x.dim() == 2 else x
        return x.tensor_split(3)["qkv".index(ours.split("W_")[1][0])] if ".c_attn" in name else x

    return _filled(DecoderOnly, made, theirs, GPT2, convert)


def load_bert(weights: Weights, config: Any = None, *, pad_id: int | None = None) -> EncoderOnly:
    """Our model with the weights of a ``BertForMaskedLM`` or a ``BertForPreTraining``.

    Chapter 14; arguments and errors as of :func:`load_gpt2`. A pooler is loaded where there is
    one; the head that says whether two sentences follow each other is left out.
    """
    theirs, c = _read(weights, config, "bert")
    _require(c, position_embedding_type="absolute", is_decoder=False, tie_word_embeddings=True)
    made = FamilyConfig.bert(
        c["vocab_size"],
        d_model=c["hidden_size"],
        n_heads=c["num_attention_heads"],
        n_layers=c["num_hidden_layers"],
        d_ff=c["intermediate_size"],
        max_len=c["max_position_embeddings"],
        norm_eps=c["layer_norm_eps"],
        feed_forward=_activation(c, "hidden_act"),
        dropout=c.get("hidden_dropout_prob", 0.1),
        n_token_types=c["type_vocab_size"],
        pad_id=_pad_id(c, pad_id),
    )
    renamed = {"gamma": "weight", "beta": "bias"}  # what a norm has in older files
    theirs = {
        re.sub(r"(gamma|beta)$", lambda found: renamed[found[0]], name): x
        for name, x in theirs.items()
        if not name.startswith("cls.seq_relationship.")
    }
    embeddings = "bert.embeddings.word_embeddings.weight"
    _drop_copy(theirs, "cls.predictions.decoder.weight", embeddings)
    _drop_copy(theirs, "cls.predictions.decoder.bias", "cls.predictions.bias")

    def make(config: FamilyConfig) -> EncoderOnly:
        model = EncoderOnly(config)
        if "bert.pooler.dense.weight" in theirs:
            model.pooler = Pooler(config.d_model)
        return model

    return _filled(make, made, theirs, BERT)


def load_llama(weights: Weights, config: Any = None, *, pad_id: int | None = None) -> DecoderOnly:
    """Our model with the weights of a ``LlamaForCausalLM``, such as SmolLM or Llama 2 and 3.0.

    Chapter 15; arguments and errors as of :func:`load_gpt2`. They turn channel j of a head with
    channel j + d_k / 2, we channels 2j and 2j + 1, so that the rows of W_q and W_k change places.
    """
    theirs, c = _read(weights, config, "llama")
    d, n_heads = c["hidden_size"], c["num_attention_heads"]
    _require(c, hidden_act="silu", head_dim=d // n_heads, mlp_bias=c.get("attention_bias", False))
    made = FamilyConfig.modern(
        c["vocab_size"],
        d_model=d,
        n_heads=n_heads,
        n_key_heads=c.get("num_key_value_heads"),
        n_layers=c["num_hidden_layers"],
        d_ff=c["intermediate_size"],
        max_len=c["max_position_embeddings"],
        norm_eps=c["rms_norm_eps"],
        rope_theta=_rope_theta(c),
        bias=c.get("attention_bias", False),
        tie_embeddings=c.get("tie_word_embeddings", False),
        pad_id=_pad_id(c, pad_id),
    )
    if made.tie_embeddings:
        _drop_copy(theirs, "lm_head.weight", "model.embed_tokens.weight")

    def convert(ours: str, name: str, x: Tensor) -> Tensor:
        if not re.search("W_[qk]", ours) or x.size(0) % made.d_k:
            return x
        halves = x.unflatten(0, (-1, 2, made.d_k // 2))  # (heads, half, pair, …)
        return halves.transpose(1, 2).flatten(0, 2)

    return _filled(DecoderOnly, made, theirs, LLAMA, convert)


def _read(weights: Weights, config: Any, model_type: str) -> tuple[dict[str, Tensor], "_Config"]:
    """A state dict and its config, both without what says nothing of the model."""
    place, source = "weights", "config"
    if isinstance(weights, nn.Module):
        config = getattr(weights, "config", None) if config is None else config
        weights = weights.state_dict()
    if not isinstance(weights, Mapping):
        wanted = "a model, its state dict or a folder with config.json and model.safetensors"
        if not isinstance(weights, str | Path):
            raise ValueError(f"weights must be {wanted}, got {type(weights).__name__}")
        place, about = str(weights), Path(weights) / "config.json"
        files = sorted(Path(weights).glob("model*.safetensors"))
        if not files or not about.is_file():
            raise ValueError(f"weights must be {wanted}, got {place!r}")
        if config is None:
            config, source = read_json(about, None, "the config of a model"), str(about)
        weights = {name: x for file in files for name, x in open_tensors(file).items()}
    config = config.to_dict() if hasattr(config, "to_dict") else config
    if not isinstance(config, Mapping):
        wanted = "come with a state dict, as model.config or as a dict"
        raise ValueError(f"config must {wanted}, got {config!r}")
    if config.get("model_type") != model_type:
        got = config.get("model_type")
        raise ValueError(f"{source} must have the model_type {model_type!r}, got {got!r}")
    theirs = {name: x for name, x in weights.items() if not _CONSTANTS.search(name)}
    for name, x in theirs.items():
        check_finite(x, name, place)
    return theirs, _Config(config, source)


class _Config(dict[str, Any]):
    """A config.json without what is null there, whose values are of the types that are theirs."""

    def __init__(self, values: Mapping[str, Any], source: str):
        super().__init__({name: x for name, x in values.items() if x is not None})
        self.source = source  # what to call it
        for wanted, is_right, names in _TYPES:
            for name in self.keys() & names:
                if not is_right(self[name]):
                    raise ValueError(f"{source}: {name} must be {wanted}, got {self[name]!r}")

    def __missing__(self, name: str) -> Any:
        raise ValueError(f"{self.source} must have {name!r}, got only {sorted(self)}")


def _require(config: _Config, **wanted: Any) -> None:
    for name, want in wanted.items():
        got = config.get(name, want)
        if got != want:
            needed = f"{name} = {want!r} for our parts"
            raise ValueError(f"{config.source} must have {needed}, got {got!r}")


def _activation(config: _Config, name: str) -> str:
    if config[name] not in _ACTIVATIONS:
        wanted = f"an activation of {tuple(_ACTIVATIONS)}"
        raise ValueError(f"{config.source} must have {wanted}, got {config[name]!r}")
    return _ACTIVATIONS[config[name]]


def _rope_theta(config: _Config) -> float:
    for name in ("rope_scaling", "rope_parameters"):  # a file may have both
        rope = _Config(config.get(name, {}), config.source)
        kind = rope.get("rope_type", rope.get("type", "default"))
        if kind != "default":
            wanted = "the rope_type 'default' for our parts"
            raise ValueError(f"{config.source} must have {wanted}, got {kind!r}")
    return float(rope.get("rope_theta", config.get("rope_theta", 10_000.0)))


def _pad_id(config: _Config, pad_id: int | None) -> int | None:
    """What is asked for, or what the config keeps for padding and for nothing else."""
    if pad_id is not None:
        return pad_id
    padding, ends = config.get("pad_token_id"), config.get("eos_token_id")
    text = [config.get("bos_token_id"), *(ends if isinstance(ends, list) else [ends])]
    # Padding that is never seen is one thing; hiding the end of every text is another. A negative
    # number stands for "none" in older configs.
    return None if padding is None or padding in text or padding < 0 else padding


def _filled(
    make: Callable[[FamilyConfig], Model],
    config: FamilyConfig,
    theirs: dict[str, Tensor],
    table: dict[str, str],
    convert: Callable[[str, str, Tensor], Tensor] = lambda ours, name, x: x,
) -> Model:
    """A model with each of its parameters from ``theirs``, all of which are used.

    They are held against each other before the model is made.
    """
    with torch.device("meta"):
        outline = dict(make(config).named_parameters())  # a tied one once
    names = their_names(outline, table)
    missing, left = (
        sorted({*names.values()} - theirs.keys()),
        sorted(theirs.keys() - names.values()),
    )
    if missing or left:
        raise ValueError(
            f"weights must be those of the config, got some too few, {missing}, or many, {left}"
        )
    converted = {ours: convert(ours, name, theirs[name]) for ours, name in names.items()}
    for ours, x in converted.items():
        if x.shape != outline[ours].shape:
            wanted, got = shape_text(outline[ours].shape), shape_text(x.shape)
            raise ValueError(f"{names[ours]} must make {ours} {wanted}, got {got}")
    model = make(config)
    copy_tensors(converted, model)
    return model.eval()


def _drop_copy(theirs: dict[str, Tensor], copy: str, original: str) -> None:
    """Tied weights have two names in a state dict, and one in a file."""
    x = theirs.pop(copy, None)
    if x is not None and not torch.equal(x, theirs.setdefault(original, x)):
        raise ValueError(f"{copy} and {original} must be equal in a tied model, got two tensors")
