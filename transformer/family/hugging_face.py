"""GPT-2, BERT, Llama, Mistral and Gemma 3 as Hugging Face stores them, in our models.

Chapters 14 to 16.
"""

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from transformer.checks import shape_text
from transformer.family.config import FamilyConfig
from transformer.family.decoder_only import DecoderOnly
from transformer.family.encoder_only import EncoderOnly, Pooler
from transformer.family.names import BERT, GEMMA3, GPT2, LLAMA, their_names
from transformer.family.published import (
    PublishedConfig,
    activation,
    layer_types,
    pad_token,
    positive,
    require,
    rope_theta,
    rope_thetas,
    sizes,
)
from transformer.family.stack import Stack
from transformer.saved import read_json
from transformer.tensors import open_tensors

Weights = Mapping[str, Tensor] | str | Path | nn.Module
Model = TypeVar("Model", bound=Stack)

# What published files hold besides weights: masks, counted positions, frequencies of rotation.
_CONSTANTS = re.compile(r"\.attn\.(masked_)?bias$|\.position_ids$|\.rotary_emb\.inv_freq$")


def load_gpt2(weights: Weights, config: Any = None, *, pad_id: int | None = None) -> DecoderOnly:
    """Our model with the weights of a ``GPT2LMHeadModel``, in evaluation mode; chapter 14.

    ``weights`` is a model, as ``GPT2LMHeadModel.from_pretrained("gpt2")``, the folder that its
    ``save_pretrained`` writes, or its state dict together with its ``config``, an object or a
    dict. Their layers are stored transposed. Without ``pad_id`` it is that of the config; None, and
    every token is text, if the config has none, as GPT-2's, or takes for it a token that also
    begins or ends a text.

    Raises ValueError for a file that is damaged, a config that our parts do not cover, and weights
    that are missing or left over; TypeError for a size that is no integer; OSError for a file that
    cannot be read.
    """
    theirs, c = _read(weights, config, "gpt2")
    require(c, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False)
    require(c, add_cross_attention=False)
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
        feed_forward=activation(c, "activation_function"),
        dropout=c.get("resid_pdrop", 0.1),
        tie_embeddings=c.get("tie_word_embeddings", True),
        pad_id=pad_token(c, pad_id),
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
    require(c, position_embedding_type="absolute", is_decoder=False, tie_word_embeddings=True)
    made = FamilyConfig.bert(
        c["vocab_size"],
        d_model=c["hidden_size"],
        n_heads=c["num_attention_heads"],
        n_layers=c["num_hidden_layers"],
        d_ff=c["intermediate_size"],
        max_len=c["max_position_embeddings"],
        norm_eps=c["layer_norm_eps"],
        feed_forward=activation(c, "hidden_act"),
        dropout=c.get("hidden_dropout_prob", 0.1),
        n_token_types=c["type_vocab_size"],
        pad_id=pad_token(c, pad_id),
    )
    renamed = {"gamma": "weight", "beta": "bias"}  # what a norm has in the published files
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
    channel j + d_k / 2, we channels 2j and 2j + 1: see :func:`in_pairs`.
    """
    theirs, c = _read(weights, config, "llama")
    bias, tied = c.get("attention_bias", False), c.get("tie_word_embeddings", False)
    require(c, hidden_act="silu", mlp_bias=bias)
    made = FamilyConfig.modern(
        **sizes(c, pad_id), rope_theta=rope_theta(c), bias=bias, tie_embeddings=tied
    )
    return _filled_like_llama(made, theirs, LLAMA, partial(in_pairs, made.d_k))


def load_mistral(weights: Weights, config: Any = None, *, pad_id: int | None = None) -> DecoderOnly:
    """Our model with the weights of a ``MistralForCausalLM``, such as Mistral 7B.

    Llama's parts, of which the first version has a window of 4,096 tokens in all layers: Jiang et
    al. (2023), section 2; chapter 16. Arguments and errors as of :func:`load_gpt2`.
    """
    theirs, c = _read(weights, config, "mistral")
    require(c, hidden_act="silu", layer_types=None)
    made = FamilyConfig.modern(
        **sizes(c, pad_id),
        rope_theta=rope_theta(c),
        window=c.get("sliding_window", 4096),
        tie_embeddings=c.get("tie_word_embeddings", False),
    )
    return _filled_like_llama(made, theirs, LLAMA, partial(in_pairs, made.d_k))


def load_gemma3(weights: Weights, config: Any = None, *, pad_id: int | None = None) -> DecoderOnly:
    """Our model with the weights of a ``Gemma3ForCausalLM``: those that read text alone.

    These are Gemma 3 270M and 1B (Gemma Team, 2025); chapter 16. Arguments and errors as of
    :func:`load_gpt2`. Their norms multiply by 1 + weight, and their scores are divided by
    √query_pre_attn_scalar; we keep the sum, and the other divisor is put into the gains of queries.
    """
    theirs, c = _read(weights, config, "gemma3_text")
    require(c, hidden_activation="gelu_pytorch_tanh", attention_bias=False)
    require(c, attn_logit_softcapping=None, final_logit_softcapping=None)
    require(c, use_bidirectional_attention=False)
    full, local = rope_thetas(c)
    made = FamilyConfig(
        **sizes(c, pad_id),
        norm_kind="rms",
        feed_forward="geglu_tanh",
        position="rotary",
        bias=False,
        tie_embeddings=c.get("tie_word_embeddings", True),
        window=c.get("sliding_window"),
        rope_theta=full,
        local_rope_theta=local,
        qk_norm=True,
        sandwich_norm=True,
        scale_embeddings=True,
    )
    made = made.replace(layer_types=layer_types(c))  # as many as layers, whose number is checked
    stretch = math.sqrt(made.d_k / positive(c, "query_pre_attn_scalar"))

    def convert(ours: str, name: str, x: Tensor) -> Tensor:
        if "norm" in ours:
            x = x.to(torch.promote_types(x.dtype, torch.float32)) + 1
        return in_pairs(made.d_k, ours, name, stretch * x if ".q_norm." in ours else x)

    return _filled_like_llama(made, theirs, GEMMA3, convert)


def in_pairs(d_k: int, ours: str, name: str, x: Tensor) -> Tensor:
    """Makes neighbours of channels that are turned together, in what makes queries and keys.

    Chapter 15. ``x`` is the parameter that we call ``ours``: each ``d_k`` rows of W_q and W_k are
    those of a head, and QK-norm has a gain for each.
    """
    if not re.search(r"W_[qk]\.|[qk]_norm\.", ours) or x.size(0) % d_k:
        return x
    halves = x.unflatten(0, (-1, 2, d_k // 2))  # (heads, half, pair, …)
    return halves.transpose(1, 2).flatten(0, 2)


def _read(
    weights: Weights, config: Any, model_type: str
) -> tuple[dict[str, Tensor], PublishedConfig]:
    """A state dict without constants, and its config, which knows what to call itself."""
    source = "config"
    if isinstance(weights, nn.Module):
        config = getattr(weights, "config", None) if config is None else config
        weights = weights.state_dict()
    if not isinstance(weights, Mapping):
        wanted = "a model, its state dict or a folder with config.json and model.safetensors"
        if not isinstance(weights, str | Path):
            raise ValueError(f"weights must be {wanted}, got {type(weights).__name__}")
        about, files = Path(weights) / "config.json", _files_of_weights(Path(weights))
        if not files or not about.is_file():
            raise ValueError(f"weights must be {wanted}, got {str(weights)!r}")
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
    return theirs, PublishedConfig(config, source)


def _files_of_weights(folder: Path) -> list[Path]:
    """One file, or the shards that an index names: what ``from_pretrained`` reads, and no other."""
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if whole.is_file():
        return [whole]
    if not index.is_file():
        return []
    names = read_json(index, None, "an index of weights", weight_map=dict)["weight_map"].values()
    return sorted({folder / str(name) for name in names})


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
    missing = sorted({*names.values()} - theirs.keys())
    left = sorted(theirs.keys() - names.values())
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
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(converted[name])
    return model.eval()


def _filled_like_llama(
    config: FamilyConfig,
    theirs: dict[str, Tensor],
    table: dict[str, str],
    convert: Callable[[str, str, Tensor], Tensor],
) -> DecoderOnly:
    if config.tie_embeddings:
        _drop_copy(theirs, "lm_head.weight", "model.embed_tokens.weight")
    return _filled(DecoderOnly, config, theirs, table, convert)


def _drop_copy(theirs: dict[str, Tensor], copy: str, original: str) -> None:
    """Drops the second name that tied weights have in a state dict, and not in a file."""
    x = theirs.pop(copy, None)
    if x is not None and not torch.equal(x, theirs.setdefault(original, x)):
        raise ValueError(f"{copy} and {original} must be equal in a tied model, got two tensors")
