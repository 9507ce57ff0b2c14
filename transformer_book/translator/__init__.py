"""The translator so far: one corpus, one training and one test for the book's growing model."""

from typing import TYPE_CHECKING

from transformer.doors import at_first_use

if TYPE_CHECKING:
    from transformer_book.translator.data import SENTENCES as SENTENCES
    from transformer_book.translator.data import Corpus as Corpus
    from transformer_book.translator.data import corpus as corpus
    from transformer_book.translator.learning import Judged as Judged
    from transformer_book.translator.learning import judge as judge
    from transformer_book.translator.learning import train_translator as train_translator
    from transformer_book.translator.learning import write as write
    from transformer_book.translator.results import Stored as Stored
    from transformer_book.translator.results import results_so_far as results_so_far
    from transformer_book.translator.results import stored as stored
    from transformer_book.translator.trained_models import my_weights as my_weights
    from transformer_book.translator.trained_models import trained as trained
else:
    __getattr__, __dir__, __all__ = at_first_use(
        __name__,
        {
            "data": "SENTENCES Corpus corpus",
            "learning": "Judged judge train_translator write",
            "results": "Stored results_so_far stored",
            "trained_models": "my_weights trained",
        },
    )
