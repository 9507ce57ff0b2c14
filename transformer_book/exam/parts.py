"""What is asked in the exam, in the order in which one would look for a mistake."""

from collections.abc import Callable
from typing import NamedTuple

from transformer_book.exam import (
    functions,
    layers,
    model_questions,
    training_questions,
    translation,
)
from transformer_book.exam.reader import Mine
from transformer_book.exam.report import NotThereYet, Result, Wrong


class Part(NamedTuple):
    """``ask`` says what is right; it raises NotThereYet or Wrong. ``made_of`` names other parts."""

    ask: Callable[[Mine], str]
    made_of: tuple[str, ...] = ()
    trains: bool = False


MODEL_PARTS = ("EncoderLayer", "DecoderLayer", "causal_mask", "padding_mask", "positions")
BEHAVIOUR = ("Transformer, the future", "Transformer, the source", "Transformer, padding")
NEEDED_TO_TRAIN = ("Transformer, the numbers", "train_step", "greedy_decode")
PARTS = {
    "attention": Part(functions.ask_attention),
    "causal_mask": Part(functions.ask_causal_mask),
    "padding_mask": Part(functions.ask_padding_mask),
    "positions": Part(functions.ask_positions),
    "MultiHeadAttention": Part(layers.ask_heads, ("attention",)),
    "EncoderLayer": Part(layers.ask_encoder_layer, ("MultiHeadAttention",)),
    "DecoderLayer": Part(layers.ask_decoder_layer, ("MultiHeadAttention",)),
    "Transformer": Part(model_questions.ask_runs, MODEL_PARTS),
    "Transformer, the future": Part(model_questions.ask_future, ("Transformer",)),
    "Transformer, the source": Part(model_questions.ask_source, ("Transformer",)),
    "Transformer, padding": Part(model_questions.ask_padding, ("Transformer",)),
    "Transformer, the numbers": Part(model_questions.ask_numbers, BEHAVIOUR),
    "loss": Part(functions.ask_loss),
    "train_step": Part(training_questions.ask_train_step, ("loss",)),
    "greedy_decode": Part(training_questions.ask_greedy_decode),
    "translation": Part(translation.ask_translation, NEEDED_TO_TRAIN, trains=True),
}


def answer(mine: Mine, name: str, spoilt_by: dict[str, str]) -> Result:
    """What comes of the part called ``name``.

    ``spoilt_by`` says of the parts that were asked before which wrong one spoils them, or "". The
    parts that this one is made of are asked first: of a wrong one nothing right can be made.
    """
    part = PARTS[name]
    for needed in part.made_of:
        if needed not in spoilt_by:
            answer(mine, needed, spoilt_by)
    spoiler = next(filter(None, (spoilt_by[needed] for needed in part.made_of)), "")
    if spoiler:
        result = Result(name, "○", f"waits for {spoiler}, which is not right yet", spoiler)
    else:
        result = _asked(mine, name, part)
    spoilt_by[name] = result.spoilt_by
    return result


def _asked(mine: Mine, name: str, part: Part) -> Result:
    try:
        return Result(name, "✓", part.ask(mine))
    except NotThereYet as gap:
        return Result(name, "○", str(gap))
    except Wrong as wrong:
        return Result(name, "✗", str(wrong), name)
    except Exception as error:  # what the exam did not expect of a file: it is told all the same
        text = f"the exam could not go on with what came back{mine.where(error)}"
        return Result(name, "✗", text, name)
