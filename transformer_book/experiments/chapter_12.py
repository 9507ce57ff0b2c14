"""Chapter 12: what its page asks of a translator, asked of many, in both orders of the norm."""

from functools import partial
from pathlib import Path
from statistics import mean
from types import SimpleNamespace
from typing import Literal

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from transformer.data.tokens import EOS_ID, PAD_ID
from transformer.layers import NormOrder
from transformer.metrics import alignment_from_attention
from transformer.model import Transformer
from transformer_book.experiments import Arm, Measures, Plan, chapter, experiment
from transformer_book.experiments.translator import judge, my_model, train_translator, trained
from transformer_book.experiments.translator.teaching import new_translator

CELLS = (
    "imports*", "load", "record", "record-cat", "batch", "noun-phrases", "noun-head",
    "your-turn-remove",
    "solution-your-turn-remove", "remove-in-use", "without", "outputs-of",
    "with-outputs", "swap-equal", "swap-how", "swap-cat", "swap-distance",
    "hide-word", "couples", "patch-looks", "your-turn-patch", "solution-your-turn-patch", "patch",
    "roads-how", "many",
)  # fmt: skip
KEPT = Path(".experiments/inside")  # weights, where it is run
OPENED = (
    "pre-LN",
    "pre-LN, Glorot",
    "pre-LN, nn.Linear",
    "yours",
    "post-LN",
    "post-LN, Glorot",
)
Start = Literal["Glorot", "nn.Linear"]
Head = tuple[int, int]
Found = dict[str, float]


def page() -> SimpleNamespace:
    """What the page asks of a translator."""
    return chapter(12, *CELLS).names()


def translator(norm: NormOrder, start: Start) -> Transformer:
    """The page's size; its matrices start as the package's do, or as ``nn.Linear`` does."""
    model = new_translator(norm=norm)
    if start == "nn.Linear":
        for part in model.modules():
            if isinstance(part, nn.Linear):
                part.reset_parameters()
    return model


def learn(
    model: Transformer, plan: Plan, n_steps: int, *, norm: NormOrder, start: Start
) -> Measures:
    """Trains a translator, and asks it. Its weights are kept, for questions that come later."""
    kept = KEPT / f"{norm}-{plan.lr}-{start}-{plan.seed}.safetensors"
    if not kept.exists():
        train_translator(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps)
        kept.parent.mkdir(parents=True, exist_ok=True)
        halves = {name: x.half().contiguous() for name, x in model.state_dict().items()}
        save_file(halves, kept)
    model.load_state_dict({name: x.float() for name, x in load_file(kept).items()})
    return asked(model, page())


def ask_stored(model: Transformer, plan: Plan, n_steps: int) -> Measures:
    """Asks a translator that is stored already: pre-LN one of chapter 9's, post-LN the reader's."""
    return asked(trained(plan.seed) if model.config.norm == "pre" else my_model(), page())


def asked(model: nn.Module, page: SimpleNamespace) -> Measures:
    """What the sections of the page ask, of one translator."""
    model.eval().requires_grad_(False)
    found: Found = {"right": judge(model).exact}
    found |= _cross_attention(model, page) | _encoder(model, page) | _removed(model, page)
    found |= _swapped(model, page) | _article(model, page) | _roads(model, page)
    found |= _layers(model, page) | {
        "own share": mean(_own_share(model, page, k) for k in range(4))
    }
    return {name: round(float(x), 4) for name, x in found.items()}


def _cross_attention(model: nn.Module, page: SimpleNamespace) -> Found:
    weights = page.weights_of(model, page.CROSS, page.src, page.tgt).flatten(1, 2)
    heads = weights.unbind(dim=1)
    looks = weights.argmax(dim=-1)  # (B, 8, T)
    found = {"agree": (looks == looks[:, :1]).all(dim=1)[page.is_word].float().mean().item()}
    found |= {f"head {h}": page.accuracy(one) for h, one in enumerate(heads)}
    found["average"] = page.accuracy(weights.mean(dim=1))
    return found | dict(zip(("others right", "same mistake"), _votes(heads, page), strict=True))


def _votes(heads: tuple[Tensor, ...], page: SimpleNamespace) -> tuple[float, float]:
    """Where a head is wrong: how many of the others are right, how many make its mistake."""
    links = [alignment_from_attention(one, src=page.src, tgt=page.tgt) for one in heads]
    n = n_right = n_same = 0
    for b, key in enumerate(page.gold):
        by_word = [{t: s for s, t in each[b]} for each in links]
        for t in {t for _, t in key}:
            said = [found[t] for found in by_word]
            wrong = [s for s in said if (s, t) not in key]
            n, n_right = n + len(wrong), n_right + len(wrong) * (len(heads) - len(wrong))
            n_same += sum(said.count(s) - 1 for s in wrong)
    return n_right / n, n_same / n


def _encoder(model: nn.Module, page: SimpleNamespace) -> Found:
    """Where the head looks that the model has chosen to go from a determiner to its noun."""
    weights = page.weights_of(model, page.ENCODER, page.src, page.tgt)
    chosen = page.chosen_head(model, page.noun_phrases)
    other = [
        (b, i, k)
        for b, i, j in page.phrases
        for k, word in enumerate(page.pairs[b].source)
        if word in page.nouns and k != j
    ]
    with_other = {(b, i) for b, i, _ in other}
    places = {
        "noun next": page.next_door,
        "noun across": page.across,
        "adjective": page.between,
        "own noun": [place for place in page.phrases if place[:2] in with_other],
        "other noun": other,
    }
    return {name: page.mean_weight(weights, own)[chosen].item() for name, own in places.items()}


def _removed(model: nn.Module, page: SimpleNamespace) -> Found:
    """The cost of heads one by one and all at once."""
    loss = page.loss_of(model)

    def cost(heads: list[Head]) -> float:
        return page.loss_of(page.without(model, heads)) - loss

    alone = {head: cost([head]) for head in page.everyone}
    found: Found = {}
    for m in range(6):
        heads = page.everyone[4 * m : 4 * m + 4]
        found[f"added {m}"], found[f"at once {m}"] = sum(alone[h] for h in heads), cost(heads)
    mixed = [cost(heads) / sum(alone[h] for h in heads) for heads in _foursomes()]
    return found | {"mixed": max(mixed)}


def _foursomes() -> list[list[Head]]:
    """Twelve groups of a head each of four different modules."""
    g = torch.Generator().manual_seed(0)
    groups = []
    for _ in range(12):
        modules = torch.randperm(6, generator=g)[:4].tolist()
        groups.append([(m, int(torch.randint(4, (), generator=g))) for m in modules])
    return groups


def _swapped(model: nn.Module, page: SimpleNamespace) -> Found:
    """How far equal weights move the next word, and which word the averaged weights name."""
    before, heads = page.predict(model), page.across_heads

    def moved(heads: list[Head]) -> float:
        return page.moved(model, heads, page.equal, before)

    found = {"swap one": max(moved([head]) for head in heads), "swap all": moved(heads)}
    found |= {"swap layer 0": moved(heads[:4]), "swap layer 1": moved(heads[4:])}
    src = page.src[: page.B]
    is_there = (src != PAD_ID) & (src != EOS_ID)
    moves = [page.distance(before, page.hide_word(model, s)) for s in range(src.size(1))]
    averaged = page.weights_of(model, page.CROSS, src, page.tgt[: page.B]).mean(dim=(1, 2))
    tops = [
        x.masked_fill(~is_there[:, None], -1).argmax(dim=-1)
        for x in (torch.stack(moves, dim=-1), averaged)
    ]
    same = (tops[0] == tops[1])[page.is_word[: page.B]]
    return found | {"named": same.float().mean().item()}


def _article(model: nn.Module, page: SimpleNamespace) -> Found:
    """Where the model looks to write le or la, and what decides between them, and le or un."""
    on_the, on_noun = page.looks(model, page.masculine)[..., :2].mean(dim=(0, 1)).tolist()
    found = {"look the": on_the, "look noun": on_noun}
    rest = list(range(2, page.masculine.size(1)))
    ways: dict[str, list[int]] = {
        "nothing": [],
        "the": [0],
        "noun": [1],
        "both": [0, 1],
        "others": rest,
    }
    for name, places in ways.items():
        le, la, *_ = page.first_word(model, places)
        back, *_ = page.first_word(model, places, page.feminine, page.masculine)
        found |= {f"le, {name}": le, f"la, {name}": la, f"back to le, {name}": back}
    with_a = page.masculine.clone()
    with_a[:, 0] = page.english.encode("a")[0]  # "a cat sleeps", "a dog sleeps", …
    for name in ("the", "noun"):
        found[f"un, {name}"] = page.first_word(model, ways[name], others=with_a)[3]
    return found


def _roads(model: nn.Module, page: SimpleNamespace) -> Found:
    """How often the right one of le and la is ahead, with one road or both of them closed."""
    cut = page.with_weights(model, page.everyone[:8], page.no_look)
    chosen = page.chosen_head(model, page.noun_phrases)
    roads: dict[str, tuple[nn.Module, list[int]]] = {
        "both open": (model, []),
        "no look": (cut, []),
        "noun hidden": (model, [1]),
        "both closed": (cut, [1]),
    }
    found = {name: page.right_article(twin, hidden) for name, (twin, hidden) in roads.items()}
    found["head removed"] = page.right_article(page.without(model, [chosen]))
    return found


def _layers(model: nn.Module, page: SimpleNamespace) -> Found:
    """P(la) and P(les) where heads of cross-attention say what they say of other sentences."""
    cow, cats = (page.outputs_of(model, others, page.bos) for others in (page.feminine, page.many))
    heads, found = page.across_heads, {}
    groups = {"layer 0": heads[:4], "layer 1": heads[4:]}
    groups |= {f"layer 1, {h}": [(5, h)] for h in range(4)}
    for name, group in groups.items():
        found[f"la from {name}"] = page.first_word(page.with_outputs(model, group, cow), [])[1]
        found[f"les from {name}"] = page.first_word(page.with_outputs(model, group, cats), [])[2]
    return found


@torch.enable_grad()
def _own_share(model: nn.Module, page: SimpleNamespace, k: int) -> float:
    """The share of a word's own embedding in the influence of all on its memory vector.

    Influence is the root of the sum of the squared derivatives; the mean over sentence ``k``.
    """
    n_words = int((page.src[k] != PAD_ID).sum())
    x = model.src_embedding(page.src[k : k + 1, :n_words])  # type: ignore[operator]
    x = x.repeat(x.numel(), 1, 1).requires_grad_()  # a copy for each number of the memory
    model.encoder(x).flatten(1).diagonal().sum().backward()  # type: ignore[operator]
    assert x.grad is not None
    jacobian = x.grad.unflatten(0, (n_words, -1))  # (S, d_model, S, d_model)
    influence = jacobian.square().sum(dim=(1, 3)).sqrt()
    return (influence.diagonal() / influence.sum(dim=-1))[:-1].mean().item()


@experiment(
    "What do ten translators of each order answer to the questions of chapter 12?",
    measure="right",
    scale=1.0,
    rates=(0.005,),
    steps=(2000,),
    widens=False,
)
def inside() -> dict[str, Arm]:
    def arm(norm: NormOrder, start: Start, n_seeds: int) -> Arm:
        how = partial(learn, norm=norm, start=start)
        return Arm(partial(translator, norm, start), learn=how, seeds=tuple(range(n_seeds)))

    pre, mine = (partial(translator, norm, "Glorot") for norm in ("pre", "post"))
    return {
        "pre-LN": Arm(pre, learn=ask_stored, rates=(0.008,), seeds=tuple(range(10))),
        "yours": Arm(mine, learn=ask_stored, seeds=(0,)),
        "post-LN": arm("post", "nn.Linear", 4),
        "post-LN, Glorot": arm("post", "Glorot", 4),
        "pre-LN, nn.Linear": arm("pre", "nn.Linear", 3),
        "pre-LN, Glorot": arm("pre", "Glorot", 2),
    }


def every(measure: str, order: NormOrder | None = None) -> tuple[float, ...]:
    """A measure of all translators, or of those of an order; of any start, yours among them."""
    own = [arm for arm in OPENED if order is None or arm.startswith(order) or arm == "yours"]
    if order == "pre":
        own.remove("yours")
    return tuple(x for arm in own for x in inside.values(arm, measure))
