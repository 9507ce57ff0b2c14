"""Our Transformer as a Marian model of Hugging Face's ``transformers`` (chapter 11).

Marian (Junczys-Dowmunt et al., 2018) is the Transformer of Vaswani et al. (2017) with other names.
Two things differ. Its sines stand in the first half of the channels and its cosines in the second,
while ours alternate: so all channels that meet the positions change places. And CTranslate2 takes
no vector for the token that starts a translation: it starts from zero.
"""

import json
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from transformer.checks import shape_text
from transformer.config import TransformerConfig
from transformer.data.text import Tokenizing
from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID
from transformer.export.tokenizer import save_tokenizer
from transformer.files import replace_file
from transformer.model import Transformer
from transformer.positional import sinusoidal_encoding

# Our parts of a layer, and theirs.
_ENCODER = {
    "self_attention.W_q": "self_attn.q_proj",
    "self_attention.W_k": "self_attn.k_proj",
    "self_attention.W_v": "self_attn.v_proj",
    "self_attention.W_o": "self_attn.out_proj",
    "residual_1.norm": "self_attn_layer_norm",
    "feed_forward.W_1": "fc1",
    "feed_forward.W_2": "fc2",
    "residual_2.norm": "final_layer_norm",
}
_DECODER = _ENCODER | {
    "cross_attention.W_q": "encoder_attn.q_proj",
    "cross_attention.W_k": "encoder_attn.k_proj",
    "cross_attention.W_v": "encoder_attn.v_proj",
    "cross_attention.W_o": "encoder_attn.out_proj",
    "residual_2.norm": "encoder_attn_layer_norm",
    "residual_3.norm": "final_layer_norm",
}
_READS = ("W_q", "W_k", "W_v", "W_1")  # their columns are the channels that carry the positions
_WRITES = ("W_o", "W_2", "norm")  # their rows are
# What a config may say here; whatever it has besides must be as it is by default.
_COVERED = {
    *("src_vocab_size", "tgt_vocab_size", "d_model", "n_heads", "n_encoder_layers"),
    *("n_decoder_layers", "d_ff", "dropout", "max_len", "share_embeddings"),
}
_NEVER = -1e9  # a logit whose probability is 0


def save_marian(
    model: Transformer,
    folder: str | Path,
    *,
    src_tokenizer: Tokenizing,
    tgt_tokenizer: Tokenizing,
    lowercase: bool = False,
    start_from_zero: bool = False,
) -> None:
    """Writes what ``MarianMTModel.from_pretrained(folder)`` and ``AutoTokenizer`` load; chapter 11.

    Ids and logits are ours. Where each language has a vocabulary of its own, ``folder`` holds the
    tokenizer of the source, and ``folder``/target that of the target. ``lowercase`` says that the
    model has been trained on text in lower case, which the tokenizer then makes.

    ``start_from_zero`` is for ``ct2-transformers-converter``, which drops the vector of the token
    that starts a translation, and the last row of each table. The folder then has one token more,
    whose row is zero; what <bos> had stands in the decoder's first position. Such a model
    translates in ``transformers``, too, but cannot be saved anew by it, which drops positions.

    Raises ValueError for a model with parts that Marian has not, for tokenizers that are not the
    model's, and for a folder that holds something.
    """
    folder = Path(folder)
    _check(model, src_tokenizer, tgt_tokenizer, start_from_zero)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"folder must be new or empty, got {str(folder)!r}")
    weights, start = _weights(model), BOS_ID
    if start_from_zero:
        weights, start = _from_zero(weights, model), model.config.tgt_vocab_size
    folder.mkdir(parents=True, exist_ok=True)
    write = partial(save_tokenizer, max_len=model.config.max_len, lowercase=lowercase)
    write(src_tokenizer, folder)
    if not model.config.share_embeddings:
        write(tgt_tokenizer, folder / "target")
    _write(folder, weights, model.config, start)


def _write(folder: Path, weights: dict[str, Tensor], c: TransformerConfig, start: int) -> None:
    """Writes the weights and both files of settings; config.json is last, and makes it whole."""
    # safetensors wants each number once, one after the other, and transformers wants "format"
    stored = {name: x.detach().cpu().contiguous().clone() for name, x in weights.items()}
    replace_file(folder / "model.safetensors", save(stored, metadata={"format": "pt"}))
    dtype = str(weights["final_logits_bias"].dtype).removeprefix("torch.")
    for name, settings in {
        "generation_config.json": _generation(c, start),
        "config.json": {**_settings(c, start), "dtype": dtype},
    }.items():
        replace_file(folder / name, json.dumps(settings, indent=1) + "\n")


def _check(
    model: Transformer, src_tokenizer: Tokenizing, tgt_tokenizer: Tokenizing, one_vocabulary: bool
) -> None:
    c = model.config
    for field in fields(c):
        value = getattr(c, field.name)
        if field.name not in _COVERED and value != field.default:
            wanted = f"{field.name} = {field.default!r}, as Marian has"
            raise ValueError(f"model must have {wanted}, got {value!r}")
    sizes = len(src_tokenizer), len(tgt_tokenizer)
    if sizes != (c.src_vocab_size, c.tgt_vocab_size):
        raise ValueError(
            f"tokenizers must have the model's {c.src_vocab_size} and {c.tgt_vocab_size} tokens, "
            f"got {sizes[0]} and {sizes[1]}"
        )
    if one_vocabulary and not c.share_embeddings:
        raise ValueError("model must have one vocabulary for both languages, got one for each")


def _weights(model: Transformer) -> dict[str, Tensor]:
    """The weights by Marian's names, in Marian's order of channels."""
    c = model.config
    ours = dict(model.state_dict())
    order = torch.cat([torch.arange(0, c.d_model, 2), torch.arange(1, c.d_model, 2)])
    order = order.to(model.output.weight.device)  # sines, then cosines
    tables = {
        "model.encoder.embed_tokens.weight": ours.pop("src_embedding.tokens.weight"),
        "model.decoder.embed_tokens.weight": ours.pop("tgt_embedding.tokens.weight"),
        "lm_head.weight": ours.pop("output.weight"),
    }
    if c.share_embeddings:
        tables = {"model.shared.weight": tables["lm_head.weight"]}
    weights = {name: table[:, order] for name, table in tables.items()}
    for side, n_layers, parts in (
        ("encoder", c.n_encoder_layers, _ENCODER),
        ("decoder", c.n_decoder_layers, _DECODER),
    ):
        for i in range(n_layers):
            for part, theirs in parts.items():
                for kind in ("weight", "bias"):
                    name = f"{side}.layers.{i}.{part}.{kind}"
                    x = _reordered(name, ours.pop(name, None), order)
                    weights[f"model.{side}.layers.{i}.{theirs}.{kind}"] = x
    if ours:
        raise ValueError(f"model must have Marian's parts alone, got {sorted(ours)} as well")
    weights["final_logits_bias"] = model.output.weight.new_zeros(1, c.tgt_vocab_size)
    return weights


def _reordered(name: str, x: Tensor | None, order: Tensor) -> Tensor:
    """A weight or a bias of a layer in Marian's order; those of attention must be square."""
    if x is None:
        raise ValueError(f"model must have Marian's parts, got none of the name {name}")
    d_model = len(order)
    if "attention" in name and x.size(0) != d_model:
        raise ValueError(f"{name} must have {d_model} rows in Marian, got {shape_text(x.shape)}")
    part, kind = name.split(".")[-2:]
    if part in _WRITES:
        return x[order]
    return x[:, order] if part in _READS and kind == "weight" else x


def _from_zero(weights: dict[str, Tensor], model: Transformer) -> dict[str, Tensor]:
    """The weights with one more token, of zeros; <bos> is in the decoder's first position."""
    c, table = model.config, weights["model.shared.weight"]
    positions = sinusoidal_encoding(c.max_len, c.d_model).to(table)
    positions = torch.cat([positions[:, 0::2], positions[:, 1::2]], dim=1)
    first = positions.clone()
    first[0] += table[BOS_ID] * model.tgt_embedding.scale
    bias = table.new_tensor([[0.0] * c.tgt_vocab_size + [_NEVER]])
    return weights | {
        "model.shared.weight": torch.cat([table, table.new_zeros(1, c.d_model)]),
        "model.encoder.embed_positions.weight": positions,
        "model.decoder.embed_positions.weight": first,
        "final_logits_bias": bias,
    }


def _settings(c: TransformerConfig, start: int) -> dict[str, Any]:
    """The settings in Marian's config.json; ``start`` is <bos>, or one past the vocabulary."""
    n_more = int(start != BOS_ID)
    return {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "vocab_size": c.src_vocab_size + n_more,
        "decoder_vocab_size": c.tgt_vocab_size + n_more,
        "share_encoder_decoder_embeddings": c.share_embeddings,
        "tie_word_embeddings": c.share_embeddings,
        "d_model": c.d_model,
        **{f"{side}_attention_heads": c.n_heads for side in ("encoder", "decoder")},
        **{f"{side}_ffn_dim": c.d_ff for side in ("encoder", "decoder")},
        "encoder_layers": c.n_encoder_layers,
        "decoder_layers": c.n_decoder_layers,
        "activation_function": "relu",
        "scale_embedding": True,  # by √d_model
        "static_position_embeddings": True,
        "max_position_embeddings": c.max_len,
        "dropout": c.dropout,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "init_std": c.d_model**-0.5,
        "is_encoder_decoder": True,
        **_ends(start),
    }


def _generation(c: TransformerConfig, start: int) -> dict[str, Any]:
    """Settings that decode as ``translate`` with ``early_stopping``; theirs divides by n^0.6."""
    return {
        **_ends(start),
        "num_beams": 4,
        "early_stopping": True,
        "length_penalty": 0.6,
        "max_length": c.max_len + 1,  # the start counts
        "suppress_tokens": [PAD_ID],
    }


def _ends(start: int) -> dict[str, int | None]:
    ids = {"pad_token_id": PAD_ID, "bos_token_id": BOS_ID, "eos_token_id": EOS_ID}
    return {**ids, "decoder_start_token_id": start, "forced_eos_token_id": None}
