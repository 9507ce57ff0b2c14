"""Chapter 8: start and step in post-LN, in the reader's own model, and in chapter 7's."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from transformer.config import TransformerConfig
from transformer.model import Transformer
from transformer_book.experiments.cells import chapter, code_of
from transformer_book.experiments.chapter_08.start_and_step import FACTOR, learn, tables_of
from transformer_book.experiments.experiment import Arm, Experiment
from transformer_book.experiments.imports import Import
from transformer_book.experiments.translator.data import corpus

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_08.elsewhere"
POST = "the package's post-LN, short words, small steps"
SEVEN = "chapter 7's translator, large steps"  # its words are long: nn.Embedding starts so


class _Table(nn.Embedding):
    """A table that is its embedding's tokens, too."""

    @property
    def tokens(self) -> nn.Embedding:
        return self


def _undo(table: nn.Module, given: tuple[Tensor, ...], rows: Tensor) -> Tensor:
    return rows / FACTOR


def mine(cell: SimpleNamespace, times: float) -> Any:
    """The reader's model without the factor, its tables ``times`` as large at the start."""
    model: Any = cell.MyTransformer(len(corpus().english), len(corpus().french))
    for embedding in (model.src_embedding, model.tgt_embedding):
        embedding.tokens.register_forward_hook(_undo)
    with torch.no_grad():
        for table in tables_of(model):
            table.mul_(times)
    return model


def post() -> Any:
    """The package's Transformer, as the chapter's of the stored runs, but post-LN; no factor."""
    sizes: dict[str, Any] = {
        "d_model": 64,
        "n_heads": 4,
        "n_encoder_layers": 2,
        "n_decoder_layers": 2,
    }
    words = len(corpus().english), len(corpus().french)
    model: Any = Transformer(TransformerConfig(*words, **sizes, d_ff=128, dropout=0.0))
    model.src_embedding.scale = model.tgt_embedding.scale = 1.0
    return model


def seventh(cell: SimpleNamespace) -> Any:
    """Chapter 7's translator as it is."""
    model: Any = cell.Translator()
    for side in ("src_embedding", "tgt_embedding"):
        table = _Table(*getattr(model, side).weight.shape)
        table.load_state_dict(getattr(model, side).state_dict())
        setattr(model, side, table)
    return model


def arms() -> dict[str, Arm]:
    """The reader's model in all four cells; of the two others one cell."""
    reader, before = (
        chapter(9, "imports*", "my-model*"),
        chapter(7, "imports*", "translator-model*"),
    )
    found = {
        f"yours, {words} words, {steps} steps": Arm(
            make=partial(mine, reader.names(), start),
            learn=partial(learn, times=times),
            rates=(0.002, 0.003, 0.005, 0.008),
            steps=(800,),
            code=reader.code(ME),
            chapter=8,
        )
        for words, start in (("short", 1.0), ("long", FACTOR))
        for steps, times in (("small", 1.0), ("large", FACTOR))
    }
    whole = found["yours, long words, large steps"]
    found[SEVEN] = replace(
        whole, make=partial(seventh, before.names()), rates=(0.005,), code=before.code(ME)
    )
    found[POST] = replace(
        whole,
        make=post,
        learn=partial(learn, times=1.0),
        rates=(0.0005, 0.001, 0.002, 0.003),
        code=code_of([], [Import(ME)]),
    )
    return found


elsewhere = Experiment(
    path=HERE / "elsewhere.json",
    question="Do start and step count in post-LN, too, and what do large steps give chapter 7's?",
    measure="exact",
    scale=1.0,
    judged_by=("exact", "bleu"),
    widens=False,
    arms=arms,
    seconds=15.0,
)
