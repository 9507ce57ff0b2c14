"""Chapter 15: norms of queries and keys, at rates from low to high."""

from functools import partial

from torch import Tensor

from transformer.family import DecoderOnly, FamilyConfig
from transformer.multihead import MultiHeadAttention
from transformer.runtime import evaluating
from transformer_book.experiments import Arm, Measures, Plan, experiment
from transformer_book.experiments.family.language import LENGTH, N_SYMBOLS, excess_loss, language
from transformer_book.experiments.family.learning import train_on_language

RATES = (0.004, 0.016, 0.064)
NAMES = ("block of today", "with QK-norm")


def small_model(*, normed: bool) -> DecoderOnly:
    """Two blocks of today, whose queries and keys are normalised or not."""
    sizes = {"d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 86, "max_len": LENGTH}
    return DecoderOnly(FamilyConfig.modern(N_SYMBOLS[2] + 1, qk_norm=normed, **sizes))


def largest_score(model: DecoderOnly) -> float:
    """The largest size of a score, over all heads and layers, in 64 rows of new text."""
    tokens = language(order=2).write(64, LENGTH, seed=[3])
    found: list[float] = []

    def look(attention: MultiHeadAttention, inputs: tuple[Tensor, ...]) -> None:
        q, (k, _) = attention.queries(inputs[0]), attention.project(inputs[1], inputs[2])
        found.append((q @ k.mT / attention.d_k**0.5).abs().max().item())

    hooks = [block.self_attention.register_forward_pre_hook(look) for block in model.blocks]  # type: ignore[union-attr]
    with evaluating(model):
        model(tokens.to(next(model.parameters()).device))
    for hook in hooks:
        hook.remove()
    return max(found)


def learn(model: DecoderOnly, plan: Plan, n_steps: int) -> Measures:
    """The loss above the entropy, in nats, and the largest score at the end."""
    trained, _ = train_on_language(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps, order=2)
    measures = {"excess": excess_loss(trained, order=2), "score": largest_score(trained)}  # type: ignore[arg-type]
    return {name: round(x, 5) for name, x in measures.items()}


@experiment(
    "What do norms of queries and keys change, at rates from low to high?",
    measure="excess",
    lower_is_better=True,
    learn=learn,
    steps=(240,),
    widens=False,
)
def qk_norm() -> dict[str, Arm]:
    return {
        f"{name}, rate {lr}": Arm(partial(small_model, normed=name == NAMES[1]), rates=(lr,))
        for name in NAMES
        for lr in RATES
    }
