"""Writes a trained model for the tools of others (chapter 11).

    python -m transformer export runs/de-en --to marian exported
    python -m transformer export runs/de-en --to ctranslate2 exported

marian: what MarianMTModel and AutoTokenizer of Hugging Face's transformers load from the folder,
to translate, to go on training, and to convert to ONNX. ctranslate2: the same for CTranslate2's
ct2-transformers-converter, which starts a translation in another way; one vocabulary for both
languages.
"""

import argparse

from transformer.commands.run_folder import add_run, load_run
from transformer.export import save_marian

USAGE = "%(prog)s RUN --to {marian,ctranslate2} FOLDER [options]"


def add_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    formats = ("marian", "ctranslate2")
    parser.add_argument("--to", choices=formats, required=True, help="who is to read it")
    text = "a new or an empty one"
    parser.add_argument("folder", metavar="FOLDER", help=text)


def execute(args: argparse.Namespace) -> None:
    run = load_run(args)
    src_tokenizer, tgt_tokenizer = run.tokenizers
    save_marian(
        run.model,
        args.folder,
        src_tokenizer=src_tokenizer,
        tgt_tokenizer=tgt_tokenizer,
        lowercase=run.lowercase,
        start_from_zero=args.to == "ctranslate2",
    )
    print(f"{args.folder}: {run.checkpoint} of {args.run}, for {args.to}")
