"""Training on real sentences: ``fit`` beside a bare loop round our model, and round its peers'.

Multi30k, German to English, lower case, byte pairs of 4,000. All loops are given the same batches
in the same order; a round is some steps of each. JoeyNMT takes part where it is installed.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from benchmarks import peers
from benchmarks.settings import PAD_ID, SETTINGS, Setting
from benchmarks.timing import Cases
from transformer.data.batches import Batch, BucketedBatches
from transformer.data.multi30k import DataMissing, multi30k
from transformer.data.parallel import encode_pairs
from transformer.data.text import BytePairEncoding
from transformer.data.tokens import Example
from transformer.training import count_labels, fit

STEPS = 5  # of a round
SIZE, PIECES = 64, 4  # sentences of a step, and into how many batches they are cut


def real_training(setting: str, device: torch.device) -> tuple[Cases, dict]:
    """Each loop on batches of its own kind, but of the same number of sentences; and how many
    tokens of the target each has in a round."""
    s = replace(SETTINGS[setting], vocab_size=4000)
    examples = sentences(s.vocab_size)
    whole, cut = (BucketedBatches(examples, batch_size=SIZE // n) for n in (1, PIECES))
    batches = [whole(i).to(device) for i in range(STEPS)]
    pieces = [cut(i).to(device) for i in range(STEPS * PIECES)]
    models = peers.build(s, device)
    try:
        models["JoeyNMT"] = JoeyNMT(s).to(device)
    except ImportError as error:
        print(f"without JoeyNMT: {error}")
    cases: Cases = {
        f"{name}, bare loop": bare_loop(model.train(), batches) for name, model in models.items()
    }
    cases["ours, fit"] = our_fit(s, device, batches)
    in_pieces = f"ours, fit, {PIECES} lengths a step"
    cases[in_pieces] = our_fit(s, device, pieces, accumulate=PIECES)
    tokens = dict.fromkeys(cases, sum(count_labels(batch.labels) for batch in batches))
    tokens[in_pieces] = sum(count_labels(batch.labels) for batch in pieces)
    return cases, {"tokens": tokens}


def sentences(vocab_size: int) -> list[Example]:
    """The training set as the model reads it; ends in a sentence where there is none."""
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
    s: Setting, device: torch.device, batches: Sequence[Batch], *, accumulate: int = 1
) -> Callable[[], object]:
    """Trains as the command line does: clipping, a seed for each step, the history of losses."""
    ours = peers.build(s, device, only=("ours",))["ours"]
    assert isinstance(ours, peers.Ours)
    return lambda: fit(
        ours.model,
        batches.__getitem__,
        n_steps=len(batches) // accumulate,
        accumulate=accumulate,
        schedule=lambda step: peers.RATE,
        device=device,
        progress=False,
    )


class JoeyNMT(peers.Peer):
    """Its Transformer, with its own loss; Kreutzer et al. (2019)."""

    ids: Tensor  # of our words, over there
    model: Any

    def __init__(self, s: Setting):
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
        words, mask = src != PAD_ID, tgt[:, 1:] != PAD_ID
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
    """The special tokens, as JoeyNMT's vocabulary asks a configuration for them."""

    unk_token, pad_token, bos_token, eos_token, sep_token = "<unk>", "<pad>", "<bos>", "<eos>", None
    unk_id, pad_id, bos_id, eos_id = range(4)
    lang_tags: ClassVar[list[str]] = []
