"""Settings that hold however pytest is called, for tests and for the chapters' kernels."""

import os

# One thread a process, set before torch is imported and inherited by every kernel: two threads on
# a busy machine wait for each other, and sums come out in another order.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TQDM_DISABLE"] = "1"  # progress bars are for people; they would stand in the outputs
os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads and forked processes do not mix

import re
from pathlib import Path

import pytest
from beartype import BeartypeConf
from beartype.claw import beartype_packages
from hypothesis import settings
from jaxtyping import install_import_hook
from nbval.plugin import IPyNbCell

from tests.measured import compare_within_a_factor
from tools.needs import lacking

ROOT = Path(__file__).parent
PACKAGES = ("transformer", "transformer_book")


def name_shapes(package: str) -> list[str]:
    """The modules of a package whose annotations name shapes, by jaxtyping."""
    paths = [*(ROOT / package).rglob("*.py")]
    shaped = (p for p in paths if re.search("^from jaxtyping import", p.read_text("utf-8"), re.M))
    return [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sorted(shaped)]


# Every annotation of both packages is checked at run time, shapes by jaxtyping. It binds the
# arguments of each call to their names, which only takes time where no shape is named.
install_import_hook([n for package in PACKAGES for n in name_shapes(package)], "beartype.beartype")
beartype_packages(PACKAGES, conf=BeartypeConf(claw_is_pep526=False))

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
