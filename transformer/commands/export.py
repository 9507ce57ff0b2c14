"""Writes a trained model for the tools of others (chapter 11).

    python -m transformer export runs/de-en --to marian exported
    python -m transformer export runs/de-en --to ctranslate2 exported

marian: what MarianMTModel and AutoTokenizer of Hugging Face's transformers load from the folder,
to translate, to go on training, and to convert to ONNX. ctranslate2: the same for CTranslate2's
ct2-transformers-converter, which starts a translation in another way; one vocabulary for both
languages.
"""

import argparse
from pathlib import Path

import torch

from transformer.commands.options import checkpoint, whole
from transformer.commands.run_folder import RunFolder
from transformer.export import save_marian


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s RUN --to {marian,ctranslate2} FOLDER [options]"
    parser.add_argument("run", metavar="RUN", help="the folder that train wrote")
    parser.add_argument(
        "--to", choices=("marian", "ctranslate2"), required=True, help="who is to read it"
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="a new or an empty one")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--checkpoint",
        type=checkpoint,
        default="best",
        metavar="best|last|STEP",
        help="best: the one of lowest loss on the dev set (default: %(default)s)",
    )
    chosen.add_argument(
        "--average",
        type=whole,
        metavar="N",
        help="the mean of the last N checkpoints, as train --keep N leaves them",
    )


def execute(args: argparse.Namespace) -> None:
    folder = RunFolder(Path(args.run))
    run = folder.load(args.checkpoint, average=args.average, device=torch.device("cpu"))
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
