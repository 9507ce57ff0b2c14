"""All experiments of the book, by name, found in the modules that define them."""

from functools import cache
from importlib import import_module
from pkgutil import walk_packages

from transformer_book import experiments
from transformer_book.experiments import Experiment


@cache
def catalogue() -> dict[str, Experiment]:
    """Every experiment by its name; imports all modules that may define some."""
    modules = walk_packages(experiments.__path__, f"{experiments.__name__}.")
    values = [x for found in modules for x in vars(import_module(found.name)).values()]
    return {each.name: each for each in values if isinstance(each, Experiment)}
