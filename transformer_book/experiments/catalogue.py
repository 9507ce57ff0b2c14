"""All experiments of the book, by name, found in the modules that define them."""

from functools import cache
from importlib import import_module
from pathlib import Path

from transformer_book.experiments import Experiment

HERE = Path(__file__).parent
FILES = [*HERE.glob("chapter_*.py"), *HERE.glob("chapter_*/*.py")]
CHAPTERS = sorted(".".join(path.relative_to(HERE).with_suffix("").parts) for path in FILES)
OTHERS = ("translator.experiment",)


@cache
def catalogue() -> dict[str, Experiment]:
    """Every experiment by its name; imports all modules that define some."""
    modules = [import_module(f"transformer_book.experiments.{m}") for m in (*OTHERS, *CHAPTERS)]
    found = (x for module in modules for x in vars(module).values() if isinstance(x, Experiment))
    return {each.name: each for each in found}
