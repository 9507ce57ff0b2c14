"""Chapter 15: a table learnt by heart by one network, by eight experts, and by one as large.

Whether the router has to learn, or to be there at all, is asked by the arms in ``DOORS``: without a
router each pair has its network from the start, or is sent to another one each time.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from transformer.layers import GatedFeedForward, RMSNorm
from transformer.runtime import evaluating
from transformer_book import minimise
from transformer_book.experiments import Arm, Measures, Plan, experiment

WORDS, ANSWERS, WIDTH = 48, 32, 16  # 48 adjectives, 48 nouns: 2,304 pairs
D_FF, N_EXPERTS = 12, 8
ROOMS = torch.randint(8, (WORDS, WORDS), generator=torch.Generator().manual_seed(500))
Door = Callable[[Tensor], Tensor]  # pairs (n, 2) -> which of the eight networks reads each (n,)
DOORS: dict[str, Door] = {
    "no router, by adjective": lambda pairs: pairs[:, 0] % N_EXPERTS,
    "no router, at random": lambda pairs: ROOMS[pairs[:, 0], pairs[:, 1] - WORDS],
    "no router, another each time": lambda pairs: torch.randint(N_EXPERTS, (len(pairs),)),
}


class Experts(nn.Module):
    """Of ``n`` feed-forward networks a router chooses ``k`` for each row (Shazeer et al., 2017).

    What an expert says is multiplied by the router's share, so that the router learns, too. After
    each step of training, experts that were chosen too often get a handicap in the choice, and the
    others an advantage, of ``push``: Wang et al. (2024). ``counts``: how often each was chosen. A
    ``frozen`` router keeps the weights that it began with.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        n: int,
        *,
        k: int = 1,
        push: float = 0.01,
        frozen: bool = False,
    ):
        super().__init__()
        self.k = k
        self.router = nn.Linear(d_model, n, bias=False).requires_grad_(not frozen)
        self.experts = nn.ModuleList(GatedFeedForward(d_model, d_ff) for _ in range(n))
        self.register_buffer("advantage", torch.zeros(n))
        self.push = push
        self.counts = torch.zeros(n)

    def forward(self, x: Tensor) -> Tensor:  # (rows, d_model)
        shares = self.router(x).softmax(dim=-1)
        chosen = (shares + self.advantage).topk(self.k, dim=-1).indices
        self.counts = chosen.flatten().bincount(minlength=len(self.experts)).float()
        if self.training:
            self.advantage += self.push * (self.counts.mean() - self.counts).sign()  # type: ignore[operator]
        y = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            own = (chosen == i).any(dim=-1).nonzero()[:, 0]
            y = y.index_add(0, own, shares[own, i, None] * expert(x[own]))
        return y


class Rooms(nn.Module):
    """``n`` feed-forward networks without a router: who calls it says which one reads each row."""

    def __init__(self, d_model: int, d_ff: int, n: int):
        super().__init__()
        self.experts = nn.ModuleList(GatedFeedForward(d_model, d_ff) for _ in range(n))

    def forward(self, x: Tensor, chosen: Tensor) -> Tensor:
        y = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            own = (chosen == i).nonzero()[:, 0]
            y = y.index_add(0, own, expert(x[own]))
        return y


class Memory(nn.Module):
    """The vectors of an adjective and a noun, added; then ``feed_forward`` (pre-LN).

    With a ``door`` it is that of :class:`Rooms`.
    """

    def __init__(self, feed_forward: nn.Module, door: Door | None = None):
        super().__init__()
        self.door = door
        self.words = nn.Embedding(2 * WORDS, WIDTH)
        self.feed_forward = feed_forward
        self.norms = nn.ModuleList(RMSNorm(WIDTH) for _ in range(2))
        self.read_out = nn.Linear(WIDTH, ANSWERS)

    def forward(self, pairs: Tensor) -> Tensor:
        x = self.words(pairs).sum(dim=-2)
        read = self.norms[0](x)
        room = () if self.door is None else (self.door(pairs),)
        x = x + self.feed_forward(read, *room)
        return self.read_out(self.norms[1](x))


def memory(name: str) -> Memory:
    """The model of an arm."""
    if name.startswith("one expert"):
        return Memory(GatedFeedForward(WIDTH, D_FF))
    if name == "one as large as eight":
        return Memory(GatedFeedForward(WIDTH, N_EXPERTS * D_FF))
    if name in DOORS:
        return Memory(Rooms(WIDTH, D_FF, N_EXPERTS), DOORS[name])
    if name == "sixteen half as wide, two are read":
        return Memory(Experts(WIDTH, D_FF // 2, 2 * N_EXPERTS, k=2))
    push = 0.0 if "left alone" in name else 0.01
    return Memory(Experts(WIDTH, D_FF, N_EXPERTS, push=push, frozen="frozen" in name))


def learn(model: Memory, plan: Plan, n_steps: int) -> Measures:
    """The share of the pairs that is known; "idle": experts with under a fortieth of them."""
    g = torch.Generator().manual_seed(plan.seed)
    grid = torch.meshgrid(torch.arange(WORDS), torch.arange(WORDS), indexing="ij")
    pairs = torch.stack([grid[0], grid[1] + WORDS], dim=-1).flatten(0, 1)
    answers = torch.randint(ANSWERS, (len(pairs),), generator=g)
    minimise(
        lambda step: nn.functional.cross_entropy(model(pairs), answers),
        model.parameters(),
        n_steps=n_steps,
        lr=lambda step: plan.lr * min(1, (step + 1) / 50) * (1 - step / n_steps),
    )
    with evaluating(model):
        known = (model(pairs).argmax(dim=-1) == answers).float().mean().item()
    counts = getattr(model.feed_forward, "counts", torch.ones(1))
    return {"known": known, "idle": (counts < counts.sum() / 40).sum().item()}


@experiment(
    "What do eight experts know by heart, of which each word reads one?",
    measure="known",
    scale=1.0,
    learn=learn,
    rates=(0.01, 0.03),
    steps=(800,),
    widens=False,
)
def experts() -> dict[str, Arm]:
    names = [
        *("one expert", "eight experts", "eight experts, left alone", "one as large as eight"),
        *("eight experts, router frozen", "eight experts, left alone, router frozen"),
        "sixteen half as wide, two are read",
        *DOORS,
    ]
    longer = "one expert, five times the steps"
    return {name: Arm(partial(memory, name)) for name in names} | {
        longer: Arm(partial(memory, longer), steps=(4000,))
    }
