"""Settings that hold however pytest is called, for tests and for the chapters' kernels."""

import os

# One thread a process, set before torch is imported and inherited by every kernel: two threads on
# a busy machine wait for each other, and sums come out in another order.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TQDM_DISABLE"] = "1"  # progress bars are for people; they would stand in the outputs
os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads and forked processes do not mix

from pathlib import Path

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook
from nbval.plugin import IPyNbCell

from tests.measured import compare_within_a_factor
from tools.needs import lacking

ROOT = Path(__file__).parent
PACKAGES = ("transformer", "transformer_book")


def modules_of(package: str) -> list[str]:
    paths = sorted(p for p in (ROOT / package).rglob("*.py") if p.name != "__init__.py")
    return [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]


# Every annotation of both packages is checked at run time. But jaxtyping binds the arguments of
# each call to their names, and a corpus of sentences is a million small calls, none with a shape.
CHECKED = [name for package in PACKAGES for name in modules_of(package)]
CHECKED = [name for name in CHECKED if not name.startswith("transformer.data.grammar.")]
install_import_hook(CHECKED, "beartype.beartype")

settings.register_profile("book", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("book")


def pytest_collection_modifyitems(items):
    """The chapters come first: one that begins late would run on alone after all others."""
    items.sort(key=lambda item: item.path.suffix != ".ipynb")
    for item in items:
        if isinstance(item, IPyNbCell):
            compare_within_a_factor(item)


def pytest_runtest_setup(item):
    if reason := lacking(item.path):
        pytest.skip(reason)
    if item.get_closest_marker("cuda"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("no CUDA device here")
