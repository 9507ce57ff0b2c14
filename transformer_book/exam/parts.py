"""What is asked in the exam, in the order in which one would look for a mistake."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from transformer_book.exam import (
    functions,
    heads,
    layers,
    model_questions,
    training_questions,
    translation,
)
from transformer_book.exam.reader import Mine
from transformer_book.exam.report import NotThereYet, Result, Wrong


@dataclass(frozen=True)
class Part:
    """``ask`` says what is right; it raises NotThereYet or Wrong. ``made_of`` names other parts."""

    name: str
    ask: Callable[[Mine], str]
    made_of: tuple[str, ...] = ()
    trains: bool = False


LAYERS = ("EncoderLayer", "DecoderLayer")
MODEL = (*LAYERS, "causal_mask", "padding_mask", "positions")
OF_MODEL = ("Transformer, the future", "Transformer, the source", "Transformer, padding")
TO_TRAIN = ("Transformer, the numbers", "train_step", "greedy_decode")
PARTS = (
    Part("attention", functions.ask_attention),
    Part("causal_mask", functions.ask_causal_mask),
    Part("padding_mask", functions.ask_padding_mask),
    Part("positions", functions.ask_positions),
    Part("MultiHeadAttention", heads.ask_heads, ("attention",)),
    Part("EncoderLayer", layers.ask_encoder_layer, ("MultiHeadAttention",)),
    Part("DecoderLayer", layers.ask_decoder_layer, ("MultiHeadAttention",)),
    Part("Transformer", model_questions.ask_runs, MODEL),
    Part("Transformer, the future", model_questions.ask_future, ("Transformer",)),
    Part("Transformer, the source", model_questions.ask_source, ("Transformer",)),
    Part("Transformer, padding", model_questions.ask_padding, OF_MODEL[:1]),
    Part("Transformer, the numbers", model_questions.ask_numbers, OF_MODEL),
    Part("loss", functions.ask_loss),
    Part("train_step", training_questions.ask_train_step, ("loss",)),
    Part("greedy_decode", training_questions.ask_greedy_decode),
    Part("translation", translation.ask_translation, TO_TRAIN, trains=True),
)
NAMED = {part.name: part for part in PARTS}


def answers(
    mine: Mine, parts: Sequence[Part] = PARTS, results: dict[str, Result] | None = None
) -> Iterator[Result]:
    """What comes of each part; ``results`` are known of others, and it adds to them."""
    results = {} if results is None else results
    for part in parts:
        yield _answer(mine, part, results)


def _answer(mine: Mine, part: Part, results: dict[str, Result]) -> Result:
    """The parts that it is made of are asked first: of a wrong one nothing right can be made."""
    if part.name not in results:
        of = (_answer(mine, NAMED[name], results).spoilt_by for name in part.made_of)
        spoilt_by = next(filter(None, of), "")
        results[part.name] = _waits(part, spoilt_by) if spoilt_by else _asked(mine, part)
    return results[part.name]


def _waits(part: Part, spoilt_by: str) -> Result:
    text = f"waits for {spoilt_by}, which is not right yet"
    return Result(part.name, "○", text, spoilt_by)


def _asked(mine: Mine, part: Part) -> Result:
    try:
        return Result(part.name, "✓", part.ask(mine))
    except NotThereYet as gap:
        return Result(part.name, "○", str(gap))
    except Wrong as wrong:
        return Result(part.name, "✗", str(wrong), part.name)
    except Exception as error:  # what the exam did not expect of a file: it is told all the same
        text = f"the exam could not go on with what came back{mine.where(error)}"
        return Result(part.name, "✗", text, part.name)
