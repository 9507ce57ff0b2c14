"""The front page shows what the book has: its sentences and its drawing are chapter 0's."""

import re
from pathlib import Path

import nbformat
import torch

from tools.chapters import CHAPTERS, ROOT
from transformer.data.tokens import BOS_ID, EOS_ID
from transformer.multihead import record_attention
from transformer_book.experiments.translator import SENTENCES, corpus, trained
from website.extensions.film_files import SEED

INTRO = (ROOT / "intro.md").read_text(encoding="utf-8")


def outputs(path: Path, cell_id: str):
    cells = nbformat.read(path, as_version=4).cells
    (cell,) = (cell for cell in cells if cell.id == cell_id)
    return cell.outputs


def test_its_sentences_are_those_that_chapter_0_writes():
    (block,) = re.findall(r"```text\n(.*?)```", INTRO, flags=re.DOTALL)
    (written,) = outputs(CHAPTERS[0], "writes")
    assert len(block.splitlines()) == 3
    assert set(block.splitlines()) <= set(written.text.splitlines())


def test_chapter_0_begins_with_shares_of_the_translator_in_its_film():
    """Those of *the*, in the fourth head of the encoder's first layer, in percent."""
    (drawing,) = outputs(CHAPTERS[0], "drawing-idea")
    shown = re.findall(r">(\d+)</text>", drawing.data["image/svg+xml"])
    source = torch.tensor([[*corpus().english.encode(SENTENCES[0]), EOS_ID]])
    model = trained(SEED).cpu()
    with record_attention(model) as maps, torch.inference_mode():
        model(source, torch.tensor([[BOS_ID]]))
    weights = maps["encoder.layers.0.self_attention"][0, 3, 0]
    assert shown == [f"{100 * share:.0f}" for share in weights] + 5 * ["20"]


def test_its_drawing_is_that_of_chapter_0():
    (drawing,) = outputs(CHAPTERS[0], "drawing-whole")
    shown = (ROOT / "website" / "static" / "one_sentence.svg").read_text(encoding="utf-8")
    assert shown == drawing.data["image/svg+xml"]


def test_its_map_has_every_chapter_with_its_own_title():
    rows = re.findall(r"^\| (\d+) \| \[(.+?)\]\(chapters/(\w+\.ipynb)\)", INTRO, flags=re.MULTILINE)
    titles = {path.name: nbformat.read(path, as_version=4).cells[0].source for path in CHAPTERS}
    expected = [
        (number, words, name)
        for name, title in titles.items()
        for number, words in re.findall(r"# (\d+)\. (.+)", title.splitlines()[0])
    ]
    assert rows == expected


def test_it_counts_the_claims_in_full_hundreds():
    (said,) = re.findall(r"more than (\d+) of their sentences", INTRO)
    ledger = (ROOT / "appendix" / "ledger.md").read_text(encoding="utf-8")
    kinds = re.findall(r"^\| (?:identity|theorem|experiment) \| (\d+) \|", ledger, re.MULTILINE)
    assert int(said) == sum(map(int, kinds)) // 100 * 100
