"""Whether another test set might have said otherwise: the paired bootstrap (chapter 11)."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from sacrebleu.metrics import BLEU
from torch import Tensor

N_ORDERS = 4  # runs of 1 to 4 words


class Difference(NamedTuple):
    """BLEU of the one minus BLEU of the other, and the middle 95 % of it over resampled tests."""

    difference: float
    low: float
    high: float


def bleu_counts(hypotheses: Sequence[str], references: Sequence[str]) -> Int[Tensor, "n 10"]:
    """A row a sentence: right runs of 1 to 4 words, all such runs, and both lengths; chapter 11.

    Summed over the sentences, a row is all that BLEU is made of.
    """
    metric, rows = BLEU(effective_order=True), []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        score = metric.sentence_score(hypothesis, [reference])
        rows.append([*score.counts, *score.totals, score.sys_len, score.ref_len])
    return torch.tensor(rows)


def bleu_of(sums: Int[Tensor, "N 10"]) -> Float[Tensor, " N"]:
    """BLEU of summed counts, Papineni et al. (2002), section 2.3; 0 where no run of a length is."""
    right, total = sums[:, :N_ORDERS].double(), sums[:, N_ORDERS : 2 * N_ORDERS].double()
    lengths = sums[:, -2:].double()
    mean_log = (right / total.clamp(min=1)).log().mean(dim=1)
    brevity = (1 - lengths[:, 1] / lengths[:, 0].clamp(min=1)).clamp(max=0)
    return 100 * (mean_log + brevity).exp()


def paired_bootstrap(
    one: Int[Tensor, "n 10"], other: Int[Tensor, "m 10"], *, n_samples: int = 1000, seed: int = 0
) -> Difference:
    """Koehn (2004), section 4: both systems on the same resampled sentences; chapter 11.

    Raises ValueError for counts of different sentences.
    """
    if one.shape != other.shape:
        raise ValueError(f"other must have the shape of one, {tuple(one.shape)}, got "
                         f"{tuple(other.shape)}")  # fmt: skip
    chosen = torch.randint(
        len(one), (n_samples, len(one)), generator=torch.Generator().manual_seed(seed)
    )
    differences = bleu_of(one[chosen].sum(dim=1)) - bleu_of(other[chosen].sum(dim=1))
    low, high = differences.quantile(torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    whole = bleu_of(one.sum(dim=0, keepdim=True)) - bleu_of(other.sum(dim=0, keepdim=True))
    return Difference(whole.item(), low, high)
