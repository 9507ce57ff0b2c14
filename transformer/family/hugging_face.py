"""GPT-2, BERT and Llama as Hugging Face stores them, in our models (chapters 14 and 15)."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file
from torch import Tensor

from transformer.checks import shape_text
from transformer.family.config import FamilyConfig
from transformer.family.decoder_only import DecoderOnly
from transformer.family.encoder_only import EncoderOnly, Pooler
from transformer.family.names import BERT, GPT2, LLAMA, their_names
from transformer.family.stack import Stack

Weights = Mapping[str, Tensor]
Settings = Mapping[str, Any]  # a config.json
Model = TypeVar("Model", bound=Stack)

_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_new": "gelu_tanh"}
# What older files hold besides weights: masks, counted positions, the frequencies of rotation.
_CONSTANTS = re.compile(r"\.attn\.(masked_)?bias$|\.position_ids$|\.rotary_emb\.inv_freq$")


def load_gpt2(
    weights: Weights | str | Path, config: Settings | None = None, *, pad_id: int | None = None
) -> DecoderOnly:
    """Our model with the weights of a ``GPT2LMHeadModel``, in evaluation mode; chapter 14.

    ``weights`` is the folder that ``save_pretrained`` writes, or a state dict together with its
    ``config``: ``real = GPT2LMHeadModel.from_pretrained("gpt2")``, then
    ``load_gpt2(real.state_dict(), real.config.to_dict())``. Their layers are stored transposed.
    Without ``pad_id`` it is that of the config; None, and every token is text, if the config has
    none, as GPT-2's, or takes for it a token that also begins or ends a text.

    Raises ValueError for a config that our parts do not cover, and for names of weights that are
    missing, or left over.
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
        d_ff=c.get("n_inner") or 4 * c["n_embd"],
        max_len=c["n_positions"],
        norm_eps=c["layer_norm_epsilon"],
        feed_forward=_activation(c["activation_function"]),
        dropout=c.get("resid_pdrop", 0.1),
        tie_embeddings=c.get("tie_word_embeddings", True),
        pad_id=_pad_id(c, pad_id),
    )

    def convert(ours: str, name: str, x: Tensor) -> Tensor:
        x = x.mT if ".c_" in name and x.dim() == 2 else x
        return x.tensor_split(3)["qkv".index(ours.split("W_")[1][0])] if ".c_attn" in name else x

    return _filled(DecoderOnly(made), theirs, GPT2, convert)


def load_bert(
    weights: Weights | str | Path, config: Settings | None = None, *, pad_id: int | None = None
) -> EncoderOnly:
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
        feed_forward=_activation(c["hidden_act"]),
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
    model = EncoderOnly(made)
    if "bert.pooler.dense.weight" in theirs:
        model.pooler = Pooler(made.d_model)
    return _filled(model, theirs, BERT)


def load_llama(
    weights: Weights | str | Path, config: Settings | None = None, *, pad_id: int | None = None
) -> DecoderOnly:
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

    return _filled(DecoderOnly(made), theirs, LLAMA, convert)


def _read(
    weights: Weights | str | Path, config: Settings | None, model_type: str
) -> tuple[dict[str, Tensor], Settings]:
    if not isinstance(weights, Mapping):
        folder = Path(weights)
        files, about = sorted(folder.glob("model*.safetensors")), folder / "config.json"
        if not files or not about.is_file():
            wanted = "a folder with config.json and model.safetensors"
            raise ValueError(f"weights must be a state dict or {wanted}, got {str(folder)!r}")
        config = config or json.loads(about.read_text(encoding="utf-8"))
        weights = {name: x for file in files for name, x in load_file(file).items()}
    if config is None:
        raise ValueError("config must come with a state dict, as model.config.to_dict(), got None")
    if config.get("model_type") != model_type:
        got = config.get("model_type")
        raise ValueError(f"config must have the model_type {model_type!r}, got {got!r}")
    weights = {name: x for name, x in weights.items() if not _CONSTANTS.search(name)}
    return weights, _Known(config)


class _Known(dict):
    def __missing__(self, name: str) -> Any:
        raise ValueError(f"config must have {name!r}, got only {sorted(self)}")


def _require(config: Settings, **wanted: Any) -> None:
    for name, want in wanted.items():
        got = config.get(name)
        if got is not None and got != want:
            raise ValueError(f"config must have {name} = {want!r} for our parts, got {got!r}")


def _activation(name: str) -> str:
    if name not in _ACTIVATIONS:
        raise ValueError(f"config must have an activation of {tuple(_ACTIVATIONS)}, got {name!r}")
    return _ACTIVATIONS[name]


def _rope_theta(config: Settings) -> float:
    rope: Settings = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default":
        raise ValueError(f"config must have the rope_type 'default' for our parts, got {kind!r}")
    return float(rope.get("rope_theta", config.get("rope_theta", 10_000.0)))


def _pad_id(config: Settings, pad_id: int | None) -> int | None:
    """What is asked for, or what the config keeps for padding and for nothing else."""
    if pad_id is not None:
        return pad_id
    padding, ends = config.get("pad_token_id"), config.get("eos_token_id")
    text = {config.get("bos_token_id"), *(ends if isinstance(ends, list) else [ends])}
    # Padding that is never seen is one thing; hiding the end of every text is another. A negative
    # number stands for "none" in older configs.
    return None if padding is None or padding in text or padding < 0 else padding


def _filled(
    model: Model,
    theirs: dict[str, Tensor],
    table: dict[str, str],
    convert: Callable[[str, str, Tensor], Tensor] = lambda ours, name, x: x,
) -> Model:
    """The model with each of its parameters from ``theirs``, all of which are used."""
    parameters = dict(model.named_parameters())  # a tied one once
    names = their_names(parameters, table)
    missing, left = (
        sorted({*names.values()} - theirs.keys()),
        sorted(theirs.keys() - names.values()),
    )
    if missing or left:
        raise ValueError(
            f"weights must be those of the config, got some too few, {missing}, or many, {left}"
        )
    with torch.no_grad():
        for ours, p in parameters.items():
            x = convert(ours, names[ours], theirs[names[ours]])
            if x.shape != p.shape:
                wanted, got = shape_text(p.shape), shape_text(x.shape)
                raise ValueError(f"{names[ours]} must make {ours} {wanted}, got {got}")
            p.copy_(x)
    return model.eval()


def _drop_copy(theirs: dict[str, Tensor], copy: str, original: str) -> None:
    """Tied weights have two names in a state dict, and one in a file."""
    x = theirs.pop(copy, None)
    if x is not None and not torch.equal(x, theirs.setdefault(original, x)):
        raise ValueError(f"{copy} and {original} must be equal in a tied model, got two tensors")
