"""Training on real sentences: ``fit`` beside a bare loop round our model, and round its peers'.

Multi30k, German to English, lower case, byte pairs of 4,000. All loops are given the same batches
in the same order; a round is some steps of each. JoeyNMT takes part where it is installed.
Run: MULTI30K=FOLDER python -m benchmarks.real_training
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from benchmarks import measure, peers, settings
from transformer.data.batches import Batch, BucketedBatches
from transformer.data.multi30k import DataMissing, multi30k
from transformer.data.parallel import encode_pairs
from transformer.data.text import BytePairEncoding
from transformer.data.tokens import Example
from transformer.model import Transformer
from transformer.training import count_labels, fit

STEPS = 5  # of a round
SIZE, PIECES = 64, 4  # sentences of a step, and into how many batches they are cut


def sentences(vocab_size: int) -> list[Example]:
    """Of the training set, as the model reads them; ends in a sentence where there is none."""
    try:
        pairs = multi30k(download=False).train
    except DataMissing as missing:
        raise SystemExit(str(missing)) from None
    pairs = [(src.lower(), tgt.lower()) for src, tgt in pairs]
    both = BytePairEncoding.train((line for pair in pairs for line in pair), vocab_size=vocab_size)
    return encode_pairs(pairs, both, both, max_len=256, on_long="skip")[0]


def bare_loop(model: peers.Peer, batches: Sequence[Batch]) -> Callable[[], None]:
    """Forward, backward, Adam: no clipping, no schedule, no losses kept, nothing else."""
    optimizer = peers.adam(model)

    def run() -> None:
        for src, tgt in batches:
            optimizer.zero_grad()
            model.loss(src, tgt).backward()
            optimizer.step()

    return run


def our_fit(
    model: Transformer, batches: Sequence[Batch], *, accumulate: int
) -> Callable[[], object]:
    """As the command line trains, with clipping, seeds of each step and the history of losses."""
    return lambda: fit(
        model,
        batches.__getitem__,
        n_steps=len(batches) // accumulate,
        accumulate=accumulate,
        schedule=lambda step: peers.RATE,
        device="cpu",
        progress=False,
    )


class JoeyNMT(peers.Peer):
    """Its Transformer, with its own loss; Kreutzer et al. (2019)."""

    ids: Tensor  # of our words, over there
    model: Any

    def __init__(self, s: settings.Setting):
        super().__init__()
        from joeynmt.model import build_model
        from joeynmt.vocabulary import Vocabulary

        side = {
            "type": "transformer",
            "num_layers": s.n_layers,
            "num_heads": s.n_heads,
            "hidden_size": s.d_model,
            "ff_size": s.d_ff,
            "dropout": s.dropout,
            "layer_norm": "post",
            "embeddings": {"embedding_dim": s.d_model, "scale": True, "dropout": s.dropout},
        }
        words = Vocabulary([f"word {i}" for i in range(s.vocab_size - 4)], _Specials())
        config = {"encoder": side, "decoder": side, "tied_embeddings": True, "tied_softmax": True}
        self.model = build_model(config, words, words)
        self.model.loss_function = ("crossentropy", 0.1)
        self.register_buffer("ids", torch.arange(s.vocab_size))
        self.ids[:4] = torch.tensor([1, 2, 3, 0])

    def loss(self, src: Tensor, tgt: Tensor) -> Tensor:
        words, mask = src != settings.PAD_ID, tgt[:, 1:] != settings.PAD_ID
        src, tgt = self.ids[src], self.ids[tgt]
        total, *_ = self.model(
            return_type="loss",
            src=src,
            src_length=words.sum(1),
            src_mask=words.unsqueeze(1),
            trg_input=tgt[:, :-1],
            trg=tgt[:, 1:],
            trg_mask=mask.unsqueeze(1),
        )
        return total / mask.sum()


class _Specials:
    """What JoeyNMT's vocabulary asks of a configuration."""

    unk_token, pad_token, bos_token, eos_token, sep_token = "<unk>", "<pad>", "<bos>", "<eos>", None
    unk_id, pad_id, bos_id, eos_id = range(4)
    lang_tags: ClassVar[list[str]] = []


def loops(s: settings.Setting, examples: list[Example], only: tuple[str, ...]) -> dict:
    """Each on batches of its own kind, but of the same number of sentences."""
    whole, cut = (BucketedBatches(examples, batch_size=SIZE // n) for n in (1, PIECES))
    batches = [whole(i) for i in range(STEPS)]
    pieces = [cut(i) for i in range(STEPS * PIECES)]
    models = peers.build(s, only=tuple(name.partition(",")[0] for name in only))
    try:
        models["JoeyNMT"] = JoeyNMT(s)
    except ImportError as error:
        print(f"without JoeyNMT: {error}")
    cases: dict[str, tuple[Callable[[], object], Sequence[Batch]]] = {
        f"{name}, bare loop": (bare_loop(model.train(), batches), batches)
        for name, model in models.items()
    }
    for n, given in ((1, batches), (PIECES, pieces)):
        model: Transformer = peers.build(s, only=("ours",))["ours"].model
        name = "ours, fit" if n == 1 else f"ours, fit, {n} lengths a step"
        cases[name] = (our_fit(model, given, accumulate=n), given)
    return {name: case for name, case in cases.items() if not only or name in only}


def compare(s: settings.Setting, rounds: int, options) -> dict:
    s = replace(s, vocab_size=4000)
    cases = loops(s, sentences(s.vocab_size), tuple(options.only))
    runs = {name: run for name, (run, _) in cases.items()}
    title = f"training on Multi30k, {s.name}, {STEPS} steps of {SIZE} pairs"
    result = measure.compared(title, runs, rounds, of="ours, bare loop", cpu_time=options.cpu_time)
    tokens = {}
    for name, (_, batches) in cases.items():
        n = sum(count_labels(batch.labels) for batch in batches)
        tokens[name] = round(n / result[name]["seconds"][1])
        print(f"  {name:34}{tokens[name]:10,} target tokens a second")
    return {"cases": result, "tokens_per_second": tokens}


if __name__ == "__main__":
    measure.each_setting("real_training", __doc__, compare, small=10)
