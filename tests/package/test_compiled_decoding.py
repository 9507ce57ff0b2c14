"""One step of fixed shape, compiled and repeated, writes what the growing steps write."""

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from tests.package.test_cached_decoding import ENDS, VARIANTS, Slopes, written
from tests.package.test_decoder_only import CONFIGS, prompts
from tests.package.test_decoder_only import model as decoder_only
from tests.package.test_decoding import Chain
from tests.package.test_model import SRC, shaken
from tools.chapters import ROOT
from transformer.decoding import compiled, greedy_decode
from transformer.family import DecoderOnly
from transformer.positional import POSITIONS

pytestmark = pytest.mark.usefixtures("unchecked")
EMPTY = SRC.clone()
EMPTY[2] = 0  # a source without a word


@pytest.fixture(autouse=True)
def _as_it_is(monkeypatch):
    """The step of fixed shape is not compiled here but in a process of its own, below.

    Memory that was not written to holds NaN.
    """
    monkeypatch.setattr(Tensor, "new_empty", lambda x, *sizes: x.new_full(sizes, torch.nan))
    monkeypatch.setitem(POSITIONS, "slopes", Slopes)
    monkeypatch.setattr(compiled, "_compiled_step", lambda: compiled._step)


def same(model, src, **ends):
    plain = greedy_decode(model, src, **ends)
    assert torch.equal(greedy_decode(model, src, compiled=True, **ends), plain)
    return plain


@pytest.mark.parametrize(
    "changes",
    [{"position": p} for p in (*POSITIONS, "slopes")] + list(VARIANTS.values()),
    ids=str,
)
def test_the_tokens_are_those_of_growing_steps(changes):
    model, _ = written(**changes)
    model.output.weight.data[2].mul_(0.3)  # so that sentences end here and there
    for src in (SRC, EMPTY) if model.pad_id == 0 else (SRC,):
        for max_len in (1, 2, 8):
            same(model, src, **ENDS | {"max_len": max_len})


@pytest.mark.parametrize("kind", CONFIGS)
def test_prompts_are_gone_on_from(kind):
    made = decoder_only(kind)
    for src in (prompts(), prompts()[:1], prompts()[:, :0], prompts()[:0]):
        same(made, src, bos_id=1, eos_id=2, max_len=6)


@pytest.mark.parametrize("window", [1, 2, 7, 10, 11, 100])
def test_windows_narrow_and_wide(window):
    torch.manual_seed(0)
    config = CONFIGS["windows"].replace(window=window, tie_embeddings=False)
    made = shaken(DecoderOnly(config))
    same(made, prompts()[:, :0], bos_id=1, eos_id=2, max_len=6)
    assert len(same(made, prompts(), bos_id=1, eos_id=2, max_len=6).unique()) > 3


# what PyTorch makes of the one graph on this processor is PyTorch's, and a minute of a compiler
COMPILE = """
import functools, torch
torch.compile = functools.partial(torch.compile, backend="aot_eager", fullgraph=True)
from transformer import Transformer, TransformerConfig, greedy_decode
from transformer.family import DecoderOnly, FamilyConfig
torch.manual_seed(0)
src = torch.randint(3, 30, (3, 5))
src[1, :2] = 0
kinds = ["sliding_attention", "full_attention"]
sizes = {"d_model": 16, "n_heads": 4, "d_ff": 32, "max_len": 20, "dropout": 0.0}
for model in (
    Transformer(TransformerConfig.tiny(30, 30, **sizes)),
    DecoderOnly(FamilyConfig.modern(30, n_layers=2, **sizes)),
    DecoderOnly(FamilyConfig.modern(30, n_layers=2, window=4, layer_types=kinds, **sizes)),
):
    for max_len in (4, 9):
        ends = {"bos_id": 1, "eos_id": 2, "max_len": max_len}
        plain = greedy_decode(model, src, **ends)
        assert torch.equal(greedy_decode(model, src, compiled=True, **ends), plain)
"""


def test_the_step_is_one_graph():
    # in a process of its own: the run-time check of annotations is not made to be compiled
    subprocess.run([sys.executable, "-c", COMPILE], cwd=ROOT, check=True)


def test_nan_is_told_but_not_behind_an_end():
    made, src = decoder_only("without"), prompts()[:1].repeat(4, 1)
    first = torch.tensor([1, 3, 4, 5])
    word = greedy_decode(made, src, bos_id=first, eos_id=2, max_len=8)[1, 0].item()
    with torch.no_grad():
        made.embedding.tokens.weight[0] = torch.nan  # of padding, which follows an end
    n_words = (same(made, src, bos_id=first, eos_id=word, max_len=8) != 0).sum(dim=1)
    assert n_words.min() + 2 < n_words.max()  # so that padding is read
    model, _ = written()
    with torch.no_grad():
        model.output.weight[7, 0] = torch.nan
    with pytest.raises(ValueError, match="got NaN"):
        greedy_decode(model, SRC, compiled=True, **ENDS)


def test_what_has_no_step_of_fixed_shape_is_refused():
    model, _ = written()
    with pytest.raises(ValueError, match="compiled goes with a cache, got use_cache=False"):
        greedy_decode(model, SRC, compiled=True, use_cache=False, **ENDS)
    with pytest.raises(ValueError, match="compiled must be False for a model that takes no cache"):
        greedy_decode(Chain(torch.zeros(6, 6)), SRC, compiled=True, **ENDS)
