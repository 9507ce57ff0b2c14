"""How many guesses of a draft a larger model keeps: letters of this book, three pairs of models."""

import random
import statistics
import time
from collections import Counter
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from transformer.family import DecoderOnly
from transformer.training.objective import linear_schedule
from transformer_book import minimise
from transformer_book.experiments.chapter_17.clock import model_of
from transformer_book.notebooks import cells_of, chapter_path

NO_END = 1  # no letter has this id, so that all answers have the same length
LENGTH, ROWS = 96, 16  # of a text that is learnt from, and how many a step
TARGET: dict[str, Any] = {"d_model": 128, "n_layers": 4, "d_ff": 352}
DRAFT: dict[str, Any] = {"d_model": 128, "n_layers": 1, "d_ff": 128}
GUESSES = (1, 4)
ROUNDS = 5  # of each text, for the best of its seconds


def letters() -> tuple[Tensor, int]:
    """The words of chapters 1 to 12 as ids from 2 on, and how many ids there are."""
    cells = [cell for n in range(1, 13) for cell in cells_of(chapter_path(n)).values()]
    text = "".join(cell.source + "\n" for cell in cells if not cell.is_code)
    common = sorted({c for c in set(text) if text.count(c) >= 20})
    ids = {c: i + 2 for i, c in enumerate(common)}
    return torch.tensor([ids[c] for c in text if c in ids]), len(common) + 2


def learnt(
    sizes: dict[str, Any], ids: Tensor, vocab: int, seed: int, n_steps: int, lr: float
) -> tuple[DecoderOnly, float]:
    """A model that has read, and its loss in the last steps, in nats a letter."""
    torch.manual_seed(seed)
    model, g = model_of(**sizes, vocab=vocab).train(), torch.Generator().manual_seed(seed)
    rate_of = linear_schedule(lr, warmup=min(30, n_steps), n_steps=n_steps)

    def loss_of(step: int) -> Tensor:
        at = torch.randint(len(ids) - LENGTH - 1, (ROWS,), generator=g).tolist()
        rows = torch.stack([ids[i : i + LENGTH + 1] for i in at])
        return cross_entropy(model(rows[:, :-1]).mT, rows[:, 1:])

    losses = minimise(
        loss_of,
        model.parameters(),
        n_steps=n_steps,
        lr=lambda step: rate_of(step + 1),
        clip_norm=1.0,
    )
    return model.eval(), statistics.mean(losses[-50:])


def answered(
    server: SimpleNamespace,
    prompt: list[int],
    target: DecoderOnly,
    draft: DecoderOnly,
    n: int,
    n_words: int,
    temperature: float = 0.0,
) -> tuple[list[int], dict[str, int]]:
    """An answer with ``n`` guesses a call, or with none, and what was counted."""
    engine = server.Engine(target, server.Pages(8, 16))
    if not n:
        request = server.Request(prompt, max_len=n_words)
        server.serve([request], engine, slots=1)
        return request.answer, {}
    how = {"n": n, "max_len": n_words, "eos_id": NO_END, "temperature": temperature}
    guessing = server.Engine(draft, server.Pages(8, 16))
    answer, calls, made, kept = server.speculate(prompt, engine, guessing, **how)
    return answer, {"calls": calls, "made": made, "kept": kept, "words": len(answer)}


def drafts(server: SimpleNamespace, *, small: bool) -> dict[str, Any]:
    """For each number of guesses: the share that is kept and words a call, of the likeliest words
    and of drawn ones; and the seconds of the likeliest against those without a draft.
    """
    ids, vocab = letters()
    cut = len(ids) - len(ids) // 10
    n_steps, n_texts, n_words = (5, 2, 8) if small else (300, 12, 48)
    found: dict[str, Any] = {"losses": [], "guesses": {str(n): [] for n in GUESSES}}
    for seed in range(1 if small else 3):
        target, loss = learnt(TARGET, ids[:cut], vocab, seed, n_steps, 0.003)
        draft, draft_loss = learnt(DRAFT, ids[:cut], vocab, seed, n_steps, 0.006)
        found["losses"].append([loss, draft_loss])
        g, unread = random.Random(seed), ids[cut:].tolist()
        starts = [g.randrange(len(unread) - 40) for _ in range(n_texts)]
        counts = {key: Counter[str]() for key in [(n, t) for n in GUESSES for t in (0.0, 1.0)]}
        seconds = dict.fromkeys((0, *GUESSES), 0.0)
        for prompt in [unread[i : i + 32] for i in starts]:
            given = server, prompt, target, draft
            took: dict[int, list[float]] = {n: [] for n in seconds}
            for turn in range(ROUNDS):  # by turns, so that other work on the machine hits all
                for n in seconds:
                    began = time.process_time()
                    answer, told = answered(*given, n, n_words)
                    took[n].append(time.process_time() - began)
                    if n == 0:
                        plain = answer
                    elif answer != plain:
                        raise ValueError("a draft must change no word, got another answer")
                    elif turn == 0:
                        counts[n, 0.0].update(told)
            for n, each in took.items():
                seconds[n] += min(each)
            for n in GUESSES:
                counts[n, 1.0].update(answered(*given, n, n_words, 1.0)[1])
        for n in GUESSES:
            row = {"time": seconds[n] / seconds[0]}
            for name, t in (("likeliest", 0.0), ("drawn", 1.0)):
                count = counts[n, t]
                row[f"{name}: kept"] = count["kept"] / count["made"]
                row[f"{name}: words"] = count["words"] / count["calls"]
            found["guesses"][str(n)].append(row)
    return found
