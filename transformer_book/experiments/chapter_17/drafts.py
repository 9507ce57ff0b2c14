"""How many guesses of a draft a larger model keeps: letters of this book, three pairs of models."""

import random
import statistics
import time
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
GUESSES = (1, 2, 4, 8)


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


def looped(answer: list[int], n: int = 6) -> float:
    """The share of letters that end a run of ``n`` which has come before: easy to guess."""
    runs = [tuple(answer[i : i + n]) for i in range(len(answer) - n + 1)]
    return 1 - len(set(runs)) / len(runs)


def drafts(server: SimpleNamespace, *, small: bool) -> dict[str, Any]:
    """For each number of guesses: the share that is kept, words a call, seconds against none."""
    ids, vocab = letters()
    cut = len(ids) - len(ids) // 10
    n_steps, n_texts, n_words = (5, 2, 8) if small else (300, 12, 48)
    found: dict[str, Any] = {"losses": [], "looped": [], "guesses": {str(n): [] for n in GUESSES}}
    for seed in range(1 if small else 3):
        target, loss = learnt(TARGET, ids[:cut], vocab, seed, n_steps, 0.003)
        draft, draft_loss = learnt(DRAFT, ids[:cut], vocab, seed, n_steps, 0.006)
        found["losses"].append([loss, draft_loss])
        g, unread = random.Random(seed), ids[cut:].tolist()
        starts = [g.randrange(len(unread) - 40) for _ in range(n_texts)]
        prompts = [unread[i : i + 32] for i in starts]
        plain, plain_seconds = [], 0.0
        for prompt in prompts:
            request, began = server.Request(prompt, max_len=n_words), time.process_time()
            engine = server.Engine(target, server.Pages(8, 16))
            server.serve([request], engine, slots=1)
            plain_seconds += time.process_time() - began
            plain.append(request.answer)
        found["looped"].append(statistics.mean(map(looped, plain)))
        for n in GUESSES:
            calls = kept = words = 0
            began = time.process_time()
            for prompt, answer in zip(prompts, plain, strict=True):
                engines = [server.Engine(m, server.Pages(8, 16)) for m in (target, draft)]
                how = {"n": n, "max_len": n_words, "eos_id": NO_END}
                written, some, right = server.speculate(prompt, *engines, **how)
                if written != answer:
                    raise ValueError("a draft must change no word, got another answer")
                calls, kept, words = calls + some, kept + right, words + len(written)
            seconds = time.process_time() - began
            found["guesses"][str(n)].append(
                {
                    "kept": kept / (n * calls),
                    "words_per_call": words / calls,
                    "time": seconds / plain_seconds,
                }
            )
    return found
