"""Sentences in, sentences out, with a run of ``python -m transformer.training`` (chapter 11)."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from transformer.checks import check_positive
from transformer.data.batches import pad
from transformer.data.text import BytePairEncoding, Tokenizing, Vocabulary
from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID
from transformer.decoding import beam_search, greedy_decode
from transformer.runtime import default_device
from transformer.training.checkpoint import checkpoints, load_transformer


def translate(
    sentences: Sequence[str],
    model: nn.Module,
    src_tokenizer: Tokenizing,
    tgt_tokenizer: Tokenizing,
    *,
    max_len: int | None = None,
    beam_size: int = 1,
    length_penalty: float = 0.6,
    batch_size: int = 64,
) -> list[str]:
    """The translation of each sentence; chapter 11.

    Greedy, or by beam search with a ``beam_size`` above 1. A translation has up to ``max_len``
    tokens; by default 50 more than the source, Vaswani et al. (2017), section 6.1. A sentence
    without a word is left without one. Sentences of similar length are decoded together.

    Raises ValueError for a sentence too long for the model, naming its place, and bad sizes.
    """
    check_positive(beam_size=beam_size, batch_size=batch_size)
    if max_len is not None:
        check_positive(max_len=max_len)
    if isinstance(sentences, str):
        raise ValueError(f"sentences must be a list of sentences, got the str {sentences!r:.60}")
    if model.pad_id != PAD_ID:
        raise ValueError(f"model must have the padding id {PAD_ID}, got {model.pad_id}")
    limit = getattr(model, "max_len", sys.maxsize)
    sources = [[*src_tokenizer.encode(sentence), EOS_ID] for sentence in sentences]
    for i, ids in enumerate(sources):
        if len(ids) > limit:
            raise ValueError(
                f"sentences[{i}] must have no more than {limit} tokens, got {len(ids)}"
            )
    translations = [""] * len(sources)
    order = sorted(
        (i for i, ids in enumerate(sources) if len(ids) > 1), key=lambda i: -len(sources[i])
    )
    device, ends = next(model.parameters()).device, {"bos_id": BOS_ID, "eos_id": EOS_ID}
    for at in range(0, len(order), batch_size):
        rows = order[at : at + batch_size]
        src = pad([sources[i] for i in rows]).to(device)
        ends["max_len"] = max_len or min(src.size(1) + 50, limit)
        if beam_size == 1:
            tokens = greedy_decode(model, src, **ends)
        else:
            sizes = {"beam_size": beam_size, "length_penalty": length_penalty}
            tokens, _ = beam_search(model, src, **ends, **sizes)
        for i, ids in zip(rows, tokens.cpu(), strict=True):
            translations[i] = tgt_tokenizer.decode(ids)
    return translations


def load_tokenizers(run: str | Path) -> tuple[Tokenizing, Tokenizing]:
    """The source's and the target's, one and the same where they share a vocabulary."""
    run = Path(run)
    if (run / "bpe.json").exists():
        shared = BytePairEncoding.load(run / "bpe.json")
        return shared, shared
    return Vocabulary.load(run / "source.json"), Vocabulary.load(run / "target.json")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m transformer.decoding.translate",
        description="Translates the lines of standard input with a trained model.",
    )
    parser.add_argument("run", type=Path, help="the folder that transformer.training wrote")
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--length-penalty", type=float, default=0.6)
    parser.add_argument("--device", type=torch.device, default=default_device())
    args = parser.parse_args(arguments)
    saved = checkpoints(args.run)
    if not saved:
        parser.error(f"{args.run} holds no checkpoint")
    model = load_transformer(saved[-1], device=args.device)
    sizes = {"beam_size": args.beam_size, "length_penalty": args.length_penalty}
    settings = json.loads((args.run / "settings.json").read_text(encoding="utf-8"))
    lines = [line.rstrip("\n") for line in sys.stdin]
    if settings["lowercase"]:
        lines = [line.lower() for line in lines]
    tokenizers = load_tokenizers(args.run)
    for line in translate(lines, model, *tokenizers, **sizes):
        print(line)


if __name__ == "__main__":
    main()
