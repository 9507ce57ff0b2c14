"""What a type checker says about the front door: ``make types`` reads this file and runs nothing.

The calls of the first function are right. In the second each line is wrong and names the error that
mypy must find in it, for an ``ignore`` that hides nothing is an error, too.
"""

from pathlib import Path
from typing import assert_type

from torch import Tensor, nn

from transformer import (
    MultiHeadAttention,
    Transformer,
    TransformerConfig,
    beam_search,
    fit,
    greedy_decode,
    load_model,
    sample,
    save_model,
)
from transformer.attention import attention, attention_weights
from transformer.data.batches import make_batch
from transformer.fused import fused_attention
from transformer.masks import causal_mask, padding_mask
from transformer.multihead import record_attention
from transformer.training import History, paper_schedule


def right(src: Tensor, tgt: Tensor, q: Tensor) -> None:
    config = TransformerConfig(
        100, 120, d_model=64, n_heads=4, n_encoder_layers=2, n_decoder_layers=2, d_ff=128,
        dropout=0.0, norm="pre", position="rotary", max_len=50, pad_id=0, share_embeddings=False,
    )  # fmt: skip
    model = Transformer(config)
    with record_attention(model) as maps:
        assert_type(maps, dict[str, Tensor])
        logits: Tensor = model(src, tgt)
    heads = MultiHeadAttention(64, 4, bias=False)
    heads(logits, logits, logits, mask=causal_mask(7))
    heads(logits, logits, logits, padding_mask(src, pad_id=0))
    assert_type(attention(q, q, q, attention_weights(q, q, mask=None) > 0), Tensor)
    assert_type(fused_attention(q, q, q), Tensor)
    assert_type(greedy_decode(model, src, bos_id=1, eos_id=2, max_len=50), Tensor)
    drawn = sample(model, src, bos_id=1, eos_id=2, max_len=50, temperature=0.7, top_k=5, top_p=0.9)
    assert_type(drawn, Tensor)
    best = beam_search(model, src, bos_id=1, eos_id=2, max_len=50, beam_size=4, length_penalty=0.6)
    assert_type(best, tuple[Tensor, Tensor])
    history = fit(
        model,
        lambda step: make_batch([([4, 5, 2], [1, 5, 4, 2])]),
        n_steps=10,
        schedule=paper_schedule(64),
    )
    assert_type(history, History)
    assert_type(save_model(model, "a/folder"), Path)
    assert_type(model.save_pretrained("a/folder"), Path)
    assert_type(Transformer.from_pretrained("a/folder", revision="v2"), Transformer)
    assert_type(model.push_to_hub("someone/a-model", private=True), str)
    greedy_decode(load_model("a/folder", device="cpu"), src, bos_id=1, eos_id=2, max_len=50)


def wrong(model: Transformer, config: TransformerConfig, src: Tensor) -> None:
    TransformerConfig(100, 120, norm="middle")  # type: ignore[arg-type]
    TransformerConfig(100, 120, dimension=64)  # type: ignore[call-arg]
    Transformer(512)  # type: ignore[arg-type]
    MultiHeadAttention(64, 4, False)  # type: ignore[call-arg]
    greedy_decode(model, src, 1, 2, 50)  # type: ignore[call-arg]
    greedy_decode(nn.Linear(2, 3), src, bos_id=1, eos_id=2, max_len=50)  # type: ignore[arg-type]
    sample(model, src, bos_id=1, eos_id=2)  # type: ignore[call-arg]
    beam_search(model, src, bos_id=1, eos_id=2, max_len="50")  # type: ignore[arg-type]
    save_model(nn.Linear(2, 3), "a/folder")  # type: ignore[arg-type]
    fit(model, [], n_steps=10, schedule=paper_schedule(64))  # type: ignore[arg-type]
