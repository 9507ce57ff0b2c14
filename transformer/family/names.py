"""What Hugging Face calls the parameters of the models that it has (chapters 14 to 16)."""

import re
from collections.abc import Iterable, Mapping

# Our module, or parameter, and theirs; * is the number of a block.
GPT2 = {
    "embedding.tokens": "transformer.wte",
    "embedding.positions.table": "transformer.wpe.weight",
    "blocks.*.residual_1.norm": "transformer.h.*.ln_1",
    "blocks.*.self_attention.W_q": "transformer.h.*.attn.c_attn",  # all three side by side
    "blocks.*.self_attention.W_k": "transformer.h.*.attn.c_attn",
    "blocks.*.self_attention.W_v": "transformer.h.*.attn.c_attn",
    "blocks.*.self_attention.W_o": "transformer.h.*.attn.c_proj",
    "blocks.*.residual_2.norm": "transformer.h.*.ln_2",
    "blocks.*.feed_forward.W_1": "transformer.h.*.mlp.c_fc",
    "blocks.*.feed_forward.W_2": "transformer.h.*.mlp.c_proj",
    "norm": "transformer.ln_f",
    "output": "lm_head",
}
BERT = {
    "embedding.tokens": "bert.embeddings.word_embeddings",
    "embedding.positions.table": "bert.embeddings.position_embeddings.weight",
    "embedding.types": "bert.embeddings.token_type_embeddings",
    "embedding.norm": "bert.embeddings.LayerNorm",
    "blocks.*.self_attention.W_q": "bert.encoder.layer.*.attention.self.query",
    "blocks.*.self_attention.W_k": "bert.encoder.layer.*.attention.self.key",
    "blocks.*.self_attention.W_v": "bert.encoder.layer.*.attention.self.value",
    "blocks.*.self_attention.W_o": "bert.encoder.layer.*.attention.output.dense",
    "blocks.*.residual_1.norm": "bert.encoder.layer.*.attention.output.LayerNorm",
    "blocks.*.feed_forward.W_1": "bert.encoder.layer.*.intermediate.dense",
    "blocks.*.feed_forward.W_2": "bert.encoder.layer.*.output.dense",
    "blocks.*.residual_2.norm": "bert.encoder.layer.*.output.LayerNorm",
    "pooler.W": "bert.pooler.dense",
    "head.W": "cls.predictions.transform.dense",
    "head.norm": "cls.predictions.transform.LayerNorm",
    "head.output.bias": "cls.predictions.bias",
}
LLAMA = {  # and Mistral
    "embedding.tokens": "model.embed_tokens",
    "blocks.*.residual_1.norm": "model.layers.*.input_layernorm",
    "blocks.*.self_attention.W_q": "model.layers.*.self_attn.q_proj",
    "blocks.*.self_attention.W_k": "model.layers.*.self_attn.k_proj",
    "blocks.*.self_attention.W_v": "model.layers.*.self_attn.v_proj",
    "blocks.*.self_attention.W_o": "model.layers.*.self_attn.o_proj",
    "blocks.*.residual_2.norm": "model.layers.*.post_attention_layernorm",
    "blocks.*.feed_forward.W_1": "model.layers.*.mlp.gate_proj",
    "blocks.*.feed_forward.W_3": "model.layers.*.mlp.up_proj",
    "blocks.*.feed_forward.W_2": "model.layers.*.mlp.down_proj",
    "norm": "model.norm",
    "output": "lm_head",
}
GEMMA3 = LLAMA | {
    "blocks.*.self_attention.q_norm": "model.layers.*.self_attn.q_norm",
    "blocks.*.self_attention.k_norm": "model.layers.*.self_attn.k_norm",
    "blocks.*.residual_1.norm_after": "model.layers.*.post_attention_layernorm",
    "blocks.*.residual_2.norm": "model.layers.*.pre_feedforward_layernorm",
    "blocks.*.residual_2.norm_after": "model.layers.*.post_feedforward_layernorm",
}


def their_names(ours: Iterable[str], table: Mapping[str, str]) -> dict[str, str]:
    """A table from the name of each of our parameters to theirs."""
    return {name: _their_name(name, table) for name in ours}


def _their_name(name: str, table: Mapping[str, str]) -> str:
    block = re.match(r"blocks\.(\d+)\.", name)
    if block:
        name = name.replace(block[0], "blocks.*.", 1)
    module, _, kind = name.rpartition(".")
    theirs = table[name] if name in table else f"{table[module]}.{kind}"
    return theirs.replace("*", block[1]) if block else theirs
