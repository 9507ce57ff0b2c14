"""The end of the exam: the reader's model learns the book's little corpus, and translates."""

from collections.abc import Callable

import torch
from torch import nn

from transformer.data.batches import BucketedBatches, pad
from transformer.data.tokens import EOS_ID, PAD_ID
from transformer.training.objective import linear_schedule
from transformer_book.exam.model_questions import NAME
from transformer_book.exam.modules import made
from transformer_book.exam.reader import Mine
from transformer_book.exam.report import Wrong
from transformer_book.experiments.translator import SENTENCES, corpus

SIZES = {"d_model": 64, "n_heads": 4, "n_layers": 2, "d_ff": 128}
N_STEPS, RATE, BATCH = 1000, 0.005, 32
N_TEST, MAX_LEN = 200, 24
ENOUGH = 0.3  # of the new sentences, without a fault
GOOD = 0.9  # the page's file gets 0.98


def ask_translation(mine: Mine) -> str:
    """Trains, tells how it goes, and lets the file translate."""
    sizes = {"src_vocab": len(corpus().english), "tgt_vocab": len(corpus().french)} | SIZES
    step = mine.get("train_step", "model", "optimizer", "src", "tgt")
    decode = mine.get("greedy_decode", "model", "src", "max_len")
    torch.manual_seed(3)
    model = made(mine, NAME, sizes, ("src", "tgt"))
    losses = _train(mine, model, step)
    model.eval()
    written = _written(mine, decode, model, [s.split() for s in SENTENCES])
    for source, target in zip(SENTENCES, written, strict=True):
        mine.tell(f"  {source} → {target}")
    pairs = corpus().test[:N_TEST]
    answers = _written(mine, decode, model, [pair.source for pair in pairs])
    right = [a == " ".join(pair.target) for a, pair in zip(answers, pairs, strict=True)]
    share = sum(right) / len(right)
    mine.tell(f"  {N_TEST} new sentences: right {100 * share:.0f} %")
    if share < ENOUGH:
        look = "A low loss and bad French is a leak, or greedy_decode feeding back another word"
        if losses[-1] > 1:
            look = "The loss has hardly fallen: is every parameter found, and the start small?"
        first = right.index(False)
        raise Wrong(
            f"of {N_TEST} new sentences fewer than {100 * ENOUGH:.0f} % are right",
            f"{look} (section 9.3)",
            source=" ".join(pairs[first].source),
            expected=" ".join(pairs[first].target),
            it_writes=answers[first],
        )
    tip = "" if share > GOOD else "\n    With embeddings that start small it is more (section 8.8)"
    return f"it has learned, and translates sentences that it has never seen{tip}"


def _train(mine: Mine, model: nn.Module, step: Callable) -> list[float]:
    """The loss of each step, in nats."""
    batches = BucketedBatches(corpus().examples, batch_size=BATCH, seed=0)
    rate_of = linear_schedule(RATE, warmup=50, n_steps=N_STEPS)  # which counts from 1
    adam = torch.optim.Adam(model.parameters(), fused=True)
    losses: list[float] = []
    model.train()
    for number in range(N_STEPS):
        adam.param_groups[0]["lr"] = rate_of(number + 1)
        batch, what = batches(number), f"in step {number} of the training: train_step"
        loss = mine.call(what, step, model=model, optimizer=adam, src=batch.src, tgt=batch.tgt)
        losses.append(float(loss))
        if number % (N_STEPS // 4) == 0:
            mine.tell(f"  step {number}: loss {losses[-1]:.2f}")
    return losses


def _written(mine: Mine, decode: Callable, model: nn.Module, sentences: list) -> list[str]:
    src = pad([[*corpus().english.encode(words), EOS_ID] for words in sentences])
    with torch.no_grad():
        written = mine.call("greedy_decode", decode, model=model, src=src, max_len=MAX_LEN)
    rows = written.tolist()
    ends = [[*row, EOS_ID].index(EOS_ID) for row in rows]
    return [
        corpus().french.decode([i for i in row[:end] if i != PAD_ID])
        for row, end in zip(rows, ends, strict=True)
    ]
