"""Settings that hold however pytest is called, for tests and for the chapters' kernels."""

import os
import re

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

from tests.book.measured import compare_within_a_factor
from tools.needs import lacking

ROOT = Path(__file__).parent
# The annotations of both packages are checked at run time, but for the grammar's: jaxtyping binds
# the arguments of each call to their names, and a corpus is a million small calls, none with a
# shape. A name stands for all that is in it, so those that the grammar is in are left out, too:
# they hold no function.
GRAMMAR = "transformer.data.grammar"


# What a machine may lack. Who skips for another reason adds it here, where it is seen.
MAY_LACK = re.compile(
    "Multi30k|GPU|CUDA|Windows|checkout|Chromium|Node.js|Java|is not installed|is refused on"
)


def modules() -> list[str]:
    paths = [
        p
        for package in ("transformer", "transformer_book")
        for p in ROOT.glob(f"{package}/**/*.py")
    ]
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths)
    return sorted(name.removesuffix(".__init__") for name in names)


def around_the_grammar(name: str) -> bool:
    return f"{GRAMMAR}.".startswith(f"{name}.") or name.startswith(f"{GRAMMAR}.")


install_import_hook([n for n in modules() if not around_the_grammar(n)], "beartype.beartype")

settings.register_profile("book", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("book")


def pytest_collection_modifyitems(items):
    """The chapters come first: one that begins late would run on alone after all others."""
    items.sort(key=lambda item: item.path.suffix != ".ipynb")
    for item in items:
        if isinstance(item, IPyNbCell):
            item.output_timeout = 86_400  # a busy machine's outputs come late
            compare_within_a_factor(item)


def pytest_runtest_setup(item):
    if reason := lacking(item.path):
        pytest.skip(reason)
    if item.get_closest_marker("cuda"):
        import torch

        if not torch.accelerator.is_available():
            pytest.skip("no GPU here that PyTorch sees")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A test or a chapter that is skipped for a reason that nobody has allowed fails."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2]
        if not MAY_LACK.search(reason):
            report.outcome = "failed"
            report.longrepr = f"{reason!r} is no reason that conftest.py has in MAY_LACK"
    return report
