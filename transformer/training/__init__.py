"""Training (chapter 9); ``python -m transformer train --help`` does it from the command line."""

from typing import TYPE_CHECKING

from transformer.doors import at_first_use

if TYPE_CHECKING:
    from transformer.training.checkpoint import average_checkpoints as average_checkpoints
    from transformer.training.checkpoint import best_checkpoint as best_checkpoint
    from transformer.training.checkpoint import checkpoints as checkpoints
    from transformer.training.checkpoint import load_checkpoint as load_checkpoint
    from transformer.training.checkpoint import load_transformer as load_transformer
    from transformer.training.checkpoint import save_checkpoint as save_checkpoint
    from transformer.training.history import History as History
    from transformer.training.loop import evaluate_loss as evaluate_loss
    from transformer.training.loop import fit as fit
    from transformer.training.objective import count_labels as count_labels
    from transformer.training.objective import linear_schedule as linear_schedule
    from transformer.training.objective import paper_optimizer as paper_optimizer
    from transformer.training.objective import paper_schedule as paper_schedule
    from transformer.training.objective import smoothed_cross_entropy as smoothed_cross_entropy
    from transformer.training.objective import warmup_schedule as warmup_schedule
    from transformer.training.step import TrainingStep as TrainingStep
else:
    __getattr__, __dir__, __all__ = at_first_use(
        __name__,
        {
            "checkpoint": "average_checkpoints best_checkpoint checkpoints load_checkpoint "
            "load_transformer save_checkpoint",
            "history": "History",
            "loop": "evaluate_loss fit",
            "objective": "count_labels linear_schedule paper_optimizer paper_schedule "
            "smoothed_cross_entropy warmup_schedule",
            "step": "TrainingStep",
        },
    )
