"""Training (chapter 9); ``python -m transformer.training --help`` trains from the command line."""

from transformer.training.checkpoint import load_checkpoint, load_transformer, save_checkpoint
from transformer.training.loop import History, evaluate_loss, fit
from transformer.training.objective import (
    paper_optimizer,
    paper_schedule,
    smoothed_cross_entropy,
    warmup_schedule,
)

__all__ = [
    "History",
    "evaluate_loss",
    "fit",
    "load_checkpoint",
    "load_transformer",
    "paper_optimizer",
    "paper_schedule",
    "save_checkpoint",
    "smoothed_cross_entropy",
    "warmup_schedule",
]
