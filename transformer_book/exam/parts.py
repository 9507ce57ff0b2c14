"""What is asked in the exam, in the order in which one would look for a mistake."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from transformer_book.exam import functions, heads, layers, numbers, translation, whole, writing
from transformer_book.exam.marks import Mine, NotThereYet, Result, Wrong

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Part:
    """``ask`` says what is right; it raises NotThereYet or Wrong."""

    name: str
    ask: Callable[..., str]
    trains: bool = False


PARTS = (
    Part("attention", functions.ask_attention),
    Part("causal_mask", functions.ask_causal_mask),
    Part("padding_mask", functions.ask_padding_mask),
    Part("positions", functions.ask_positions),
    Part("MultiHeadAttention", heads.ask_heads),
    Part("EncoderLayer", layers.ask_encoder_layer),
    Part("DecoderLayer", layers.ask_decoder_layer),
    Part("Transformer", whole.ask_runs),
    Part("Transformer, the future", whole.ask_future),
    Part("Transformer, the source", whole.ask_source),
    Part("Transformer, padding", whole.ask_padding),
    Part("Transformer, the numbers", numbers.ask_numbers),
    Part("loss", functions.ask_loss),
    Part("train_step", writing.ask_train_step),
    Part("greedy_decode", writing.ask_greedy_decode),
    Part("translation", translation.ask_translation, trains=True),
)


def answers(
    mine: Mine, parts: Sequence[Part] = PARTS, *, is_wrong: bool = False, tell: Tell = print
) -> Iterator[Result]:
    """What is found of each part; the one that trains waits while another ``is_wrong``."""
    for part in parts:
        if part.trains and is_wrong:
            yield Result(part.name, "○", "waits until nothing above is wrong; it takes a while")
            continue
        result = answer(mine, part, tell)
        is_wrong = is_wrong or result.mark == "✗"
        yield result


def answer(mine: Mine, part: Part, tell: Tell) -> Result:
    try:
        said = part.ask(mine, tell) if part.trains else part.ask(mine)
    except NotThereYet as gap:
        return Result(part.name, "○", str(gap))
    except Wrong as wrong:
        return Result(part.name, "✗", str(wrong))
    except Exception as error:  # what the exam did not expect of a file: it is told all the same
        said = f"the exam could not go on with what came back{mine.where(error)}"
        return Result(part.name, "✗", said)
    return Result(part.name, "✓", said)
