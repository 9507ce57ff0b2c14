"""Training (chapter 9); ``python -m transformer train --help`` does it from the command line."""

from transformer.training.checkpoint import (
    average_checkpoints,
    best_checkpoint,
    checkpoints,
    load_checkpoint,
    load_transformer,
    save_checkpoint,
)
from transformer.training.loop import History, evaluate_loss, fit
from transformer.training.objective import (
    count_labels,
    linear_schedule,
    paper_optimizer,
    paper_schedule,
    smoothed_cross_entropy,
    warmup_schedule,
)

__all__ = [
    "History",
    "average_checkpoints",
    "best_checkpoint",
    "checkpoints",
    "count_labels",
    "evaluate_loss",
    "fit",
    "linear_schedule",
    "load_checkpoint",
    "load_transformer",
    "paper_optimizer",
    "paper_schedule",
    "save_checkpoint",
    "smoothed_cross_entropy",
    "warmup_schedule",
]
