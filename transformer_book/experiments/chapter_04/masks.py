"""Right masks and wrong ones: what becomes of the loss, and of the translations, in 2,000 steps."""

from collections.abc import Callable, Iterator
from functools import partial

from torch import Tensor, nn

from transformer_book.experiments.cells import chapter
from transformer_book.experiments.chapter_04 import HERE
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.learning import judge, train_translator
from transformer_book.experiments.translator.teaching import pairs_of

ME = "transformer_book.experiments.chapter_04.masks"
RATE = 0.008  # the right masks' best, for all, so that nothing but the masks differs
LAST = 50  # steps whose loss is averaged


def learn(make: Make, plan: Plan) -> Iterator[tuple[int, Measures]]:
    """The loss at the end of training, and the share of sentences that are translated."""

    def train(model: nn.Module, n_steps: int) -> Measures:
        losses = train_translator(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps)
        exact = judge(model, pairs_of(plan)).exact
        return {"loss": sum(losses[-LAST:]) / LAST, "exact": exact}

    yield from one_for_each(make, plan, train)


def arms() -> dict[str, Arm]:
    cells = chapter(4, "imports*", "translator-model*", "broken")
    cell = cells.names()

    def neither(src: Tensor, tgt: Tensor) -> tuple[Tensor, Tensor]:
        """Sees all the French, and padding in place of the English."""
        return cell.padding_upside_down(src, tgt)[0], cell.no_causal_mask(src, tgt)[1]

    def arm(masks: Callable, *, seeds: int = 3, steps: tuple[int, ...] = (300, 2000)) -> Arm:
        return Arm(
            make=partial(cell.Translator, masks=masks),
            learn=learn,
            rates=(RATE,),
            steps=steps,
            code=cells.code(ME),
            chapter=4,
            seeds=tuple(range(seeds)),
        )

    return {
        "right": arm(cell.masks, seeds=5),
        "no causal mask": arm(cell.no_causal_mask, seeds=5),
        "causal upside down": arm(cell.causal_upside_down),
        "padding upside down": arm(cell.padding_upside_down),
        "no causal mask, no English": arm(neither),
    }


masks = Experiment(
    path=HERE / "masks.json",
    question="How low is the loss of a wrong mask, and what does such a model translate?",
    measure="exact",
    scale=1.0,
    arms=arms,
    seeds=tuple(range(3)),
    widens=False,
    seconds=18.0,
)
