"""A chapter's training cut to its first steps, for a look at what runs on which device.

Importing this in a chapter's kernel, before its first cell, changes four things. Training takes
:data:`STEPS` steps instead of hundreds; where it returns losses, the last one stands for those
left out, so that all shapes are the chapter's. Loops of a cell that train do the same. The
grammar's test has :data:`SENTENCES` sentences, for a model that has learnt nothing writes long
ones. A claim that does not hold is printed with ✗ and stops nothing. All else is the chapter's, and
every other error is an error.
"""

import ast
import re
from collections.abc import Callable, Iterable
from functools import wraps
from itertools import islice
from types import ModuleType

from IPython import get_ipython

import transformer.training.loop
import transformer_book.claims
import transformer_book.descent
import transformer_book.experiments.translator.data
from transformer.training import History

STEPS = 4
SHORT = 20  # steps that are left as they are
SENTENCES = 40  # of 600 and 300


def n_of(n_steps: int) -> int:
    """How many of a training's steps are made."""
    return n_steps if n_steps <= SHORT else STEPS


def brief_loop(numbers: Iterable) -> list:
    """What a loop that trains goes through instead of ``numbers``."""
    first = list(islice(numbers, SHORT + 1))
    return first if len(first) <= SHORT else first[:STEPS]


def filled(losses: list[float], n_steps: int) -> list[float]:
    """The last loss stands for those of the steps that were left out."""
    return losses + losses[-1:] * (n_steps - len(losses))


def brief_minimise(minimise: Callable[..., list[float]]) -> Callable[..., list[float]]:
    @wraps(minimise)
    def wrapper(*args, n_steps: int, **options) -> list[float]:
        return filled(minimise(*args, n_steps=n_of(n_steps), **options), n_steps)

    return wrapper


def brief_fit(fit: Callable[..., History]) -> Callable[..., History]:
    @wraps(fit)
    def wrapper(*args, n_steps: int, evaluate_every: int | None = None, **options) -> History:
        if n_of(n_steps) == n_steps:
            return fit(*args, n_steps=n_steps, evaluate_every=evaluate_every, **options)
        history = fit(*args, n_steps=n_of(n_steps), **options)  # evaluates once, at its end
        every = evaluate_every or n_steps
        evaluations = {
            step: value
            for value in history.evaluations.values()
            for step in range(every, n_steps + 1, every)
        }
        return History(filled(history.losses, n_steps), evaluations)

    return wrapper


def brief_pairs(grammar_pairs: Callable[..., list]) -> Callable[..., list]:
    @wraps(grammar_pairs)
    def wrapper(n: int, *, split: str = "train", **options) -> list:
        return grammar_pairs(n if split == "train" else SENTENCES, split=split, **options)

    return wrapper


def brief_claim(claim: Callable[..., None]) -> Callable[..., None]:
    """Only what is false is let pass: a claim without a truth value stops the chapter."""

    @wraps(claim)
    def wrapper(text: str, *args, **options) -> None:
        try:
            claim(text, *args, **options)
        except AssertionError:
            print(f"✗ {text}")

    return wrapper


class LoopsThatTrain(ast.NodeTransformer):
    """``for … in steps`` with a backward pass in it goes through :func:`brief_loop` of them."""

    def visit_For(self, node: ast.For) -> ast.For:
        self.generic_visit(node)
        if re.search(r"\.backward\(|autograd\.grad\(", ast.unparse(node)):
            node.iter = ast.Call(ast.Name(brief_loop.__name__, ast.Load()), [node.iter], [])
        return ast.fix_missing_locations(node)


def put(change: Callable[[Callable], Callable], name: str, *modules: ModuleType) -> None:
    """Replace a function where it is defined and where it was imported before."""
    for module in modules:
        setattr(module, name, change(getattr(module, name)))


put(brief_minimise, "minimise", transformer_book.descent, transformer_book)
put(brief_fit, "fit", transformer.training.loop, transformer.training)
put(brief_pairs, "grammar_pairs", transformer_book.experiments.translator.data)
put(brief_claim, "claim", transformer_book.claims, transformer_book)
get_ipython().user_ns[brief_loop.__name__] = brief_loop
get_ipython().ast_transformers.append(LoopsThatTrain())
