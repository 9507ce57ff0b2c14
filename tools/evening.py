"""The files beside "One evening", which its reader may take home: ``make chapters`` writes them.

``translator.py`` and ``gpt.py`` hold the page's own code, and ``evening/`` what it has been at each
stage. ``pairs.tsv`` are sentences of the book's grammar, which ``python -m tools.evening`` writes
anew.
"""

from pathlib import Path

from transformer.files import replace_file
from transformer_book.evening import PAGE, file_of
from transformer_book.experiments.translator.data import corpus

N_TRAIN = 12_000
TRANSLATOR_ENDS = """\
model = train(Transformer, n_steps=1200)
report(model)
"""
# the file of each stage: the cell up to which it goes, and what it trains
STAGES = {
    "1_dictionary": ("report", "Dictionary, rate=0.05"),
    "2_writer": ("writer", "Translator"),
    "3_attention": ("cross", "Translator"),
    "4_positions": ("solution-positions", "Translator"),
    "5_plus": ("plus", "Translator"),
    "6_mask": ("solution-mask", "Translator"),
    "7_encoder": ("solution-residual", "Translator"),
    "8_heads": ("heads", "FourHeads"),
    "9_layers": ("transformer", "Transformer"),
}
GPT_ENDS = """\
gpt = train(GPT)
for line in write(gpt, "", 6) + write(gpt, "the black cat", 3):
    print(line)
"""


def pairs() -> str:
    """A line for each pair: those to learn from, then the test."""
    sentences = corpus().train[:N_TRAIN] + corpus().test
    return "".join(f"{' '.join(p.source)}\t{' '.join(p.target)}\n" for p in sentences)


def files(page: Path = PAGE) -> dict[str, str]:
    """What the reader has typed at the page's two ends, by the names of the files."""
    stages = {
        f"evening/{name}.py": file_of(until, f"report(train({trained}))\n", page=page)
        for name, (until, trained) in STAGES.items()
    }
    return stages | {
        "translator.py": file_of("final", TRANSLATOR_ENDS, page=page),
        "gpt.py": file_of("write", GPT_ENDS, page=page),
    }


def save_files() -> None:
    (PAGE.parent / "evening").mkdir(exist_ok=True)
    for name, text in files().items():
        replace_file(PAGE.parent / name, text)


if __name__ == "__main__":
    replace_file(PAGE.with_name("pairs.tsv"), pairs())
    save_files()
