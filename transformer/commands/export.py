"""Writes a trained model for the tools of others (chapter 11).

    python -m transformer export runs/de-en --to marian exported
    python -m transformer export runs/de-en --to ctranslate2 exported

marian: what MarianMTModel and AutoTokenizer of Hugging Face's transformers load from the folder,
to translate, to go on training, and to convert to ONNX. ctranslate2: the same for CTranslate2's
ct2-transformers-converter, which starts a translation in another way; one vocabulary for both
languages.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from transformer.commands.options import Option
from transformer.commands.run_folder import Run
from transformer.export import save_marian

USAGE = "%(prog)s RUN --to {marian,ctranslate2} FOLDER [options]"


@dataclass(frozen=True)
class Options:
    """All that ``export`` is told."""

    run: Run
    to: Annotated[Literal["marian", "ctranslate2"], Option("who is to read it")]
    folder: Annotated[Path, Option("a new or an empty one", metavar="FOLDER", positional=True)]


def execute(options: Options) -> None:
    run = options.run.load()
    src_tokenizer, tgt_tokenizer = run.tokenizers
    save_marian(
        run.model,
        options.folder,
        src_tokenizer=src_tokenizer,
        tgt_tokenizer=tgt_tokenizer,
        lowercase=run.lowercase,
        start_from_zero=options.to == "ctranslate2",
    )
    print(f"{options.folder}: {run.checkpoint} of {options.run.run}, for {options.to}")
