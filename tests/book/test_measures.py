"""What experiments choose, count and average, in examples in which a wrong choice shows."""

import builtins
import json
from functools import partial
from statistics import mean
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from tests.book.test_translator import Phrasebook
from transformer_book import descent
from transformer_book.experiments import (
    chapter_01,
    chapter_03,
    chapter_04,
    chapter_05,
    chapter_06,
    chapter_07,
    chapter_09,
    chapter_10,
    chapter_12,
    chapter_13,
    chapter_14,
)
from transformer_book.experiments.catalogue import HOMES, experiment
from transformer_book.experiments.experiment import Plan
from transformer_book.experiments.running import run_one
from transformer_book.experiments.translator.data import Corpus, corpus

REPORTED, SWEPT = (Plan(0.01, seed, (1,), sweep=seed == 100) for seed in (0, 100))


@pytest.fixture(scope="module", autouse=True)
def corpus_is_made(unchecked_module):
    return corpus().examples


def forbidden(_):
    raise AssertionError("a sweep has met the test")


class Spied(torch.Generator):
    """Tells its seeds."""

    seeds: set

    def manual_seed(self, seed):
        self.seeds.add(seed)
        return super().manual_seed(seed)


# 
# A learning rate is chosen on nothing that is reported


# made up from a seed that is the same for all: each run has a start of its own, and texts no end
SAME_TEXTS = {"lengths": {1000}, "rewards": {999}}
BY_HEART = "by_heart", "experts"  # what is learnt is what is asked
FAMILY = "blocks", "scaling", "scaling_back"  # one long text of a language that is known
ELSEWHERE = "real_sentences", "caches"  # have tests of their own


def swept_recipes():
    """An arm for each recipe that has a sweep, by the experiment's name."""
