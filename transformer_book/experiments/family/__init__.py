"""Chapter 15's experiments that no page has time for: a language, models, what is stored."""

from transformer_book.experiments.family.language import (
    BATCH_TOKENS,
    Language,
    LanguageBatches,
    excess_loss,
    language,
)
from transformer_book.experiments.family.learning import train_on_language
from transformer_book.experiments.family.models import CHANGES, SIZES, block_config, scaling_model
from transformer_book.experiments.family.results import (
    Block,
    ScalingRun,
    block_results,
    scaling_runs,
)
from transformer_book.experiments.family.scaling import (
    Law,
    best_sizes,
    bootstrap,
    fit_law,
    power_of,
)

__all__ = [
    "BATCH_TOKENS",
    "CHANGES",
    "SIZES",
    "Block",
    "Language",
    "LanguageBatches",
    "Law",
    "ScalingRun",
    "best_sizes",
    "block_config",
    "block_results",
    "bootstrap",
    "excess_loss",
    "fit_law",
    "language",
    "power_of",
    "scaling_model",
    "scaling_runs",
    "train_on_language",
]
