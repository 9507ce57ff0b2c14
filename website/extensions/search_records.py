"""What readers search: sections, terms of the glossary and names of the package, as records.

``static/search.js`` makes an index of them in the browser, with MiniSearch (``static/vendor``),
which forgives typing errors. A record is a section in its own words, without code, outputs and the
sections inside it; so a hit leads to a place and not to a page, and what is shown of it is prose.
"""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple

from lxml.html import HtmlElement
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.errors import ExtensionError

from website.built import ARTICLE, TERM, classed, tree_of
from website.extensions.book_site import CHINESE
from website.words import site, speaks_chinese

FILE = "_static/search_records.js"
SEARCHED = "intro.html", "chapters/*.html", "appendix/*.html"
# A table of claims, with fields of its own to search them; and what chapters name already.
NOT_TEXTS = "appendix/ledger.html", "appendix/bibliography.html"
# What learners call a place, in other words than the book has there: one who asks for all words of
# one of these finds the place.
TEXT_IS_BAD = "chapters/the_text_is_bad.html"
SYNONYMS = {
    TEXT_IS_BAD: "garbage, gibberish, nonsense, only eos, only pad, only bos, same word, repeats, "
    "repetition, stuck, stops early, empty, low loss, bug, debug",
    f"{TEXT_IS_BAD}#the-end-is-never-learned": "never stops, no eos",
    f"{TEXT_IS_BAD}#labels-not-shifted": "copies input",
    f"{TEXT_IS_BAD}#the-wrong-axis": "softmax dim, softmax dimension",
    f"{TEXT_IS_BAD}#dropout-left-on": "forgot model.eval, different output in train and eval",
    f"{TEXT_IS_BAD}#a-rate-too-high": "same output for all inputs, does not learn, "
    "learning rate too high",
    "chapters/00_the_whole_picture.html#sec-0.2": "eos mean",
    "chapters/03_queries_keys_values.html": "query key value",
    "chapters/04_scaling_and_masks.html#sec-4.1": "√d",
    "chapters/06_positions.html": "word order",
    "chapters/06_positions.html#sec-6.5": "rotary vs sinusoidal, RoPE interleaved, RoPE half",
    "chapters/07_add_and_norm.html#sec-7.3": "LayerNorm vs BatchNorm, biased std, unbiased std",
    "chapters/08_the_transformer.html": "attention is all you need",
    "chapters/08_the_transformer.html#sec-8.5": "how many parameters, number of parameters",
    "chapters/09_training.html#sec-9.3": "loss does not go down, loss not decreasing",
    "chapters/09_training.html#sec-9.4": "warmup, Noam schedule",
    "chapters/09_training.html#sec-9.5": "validation loss goes up, overfitting",
    "chapters/10_decoding.html#sec-10.5": "KV cache",
    "chapters/11_translation.html#sec-11.2": "tokenizer, tokenization",
    "chapters/13_where_the_time_goes.html": "slow, training slow, out of memory, OOM, GPU, CUDA",
    "chapters/13_where_the_time_goes.html#sec-13.3": "quadratic memory, long sequences",
    "chapters/14_gpt_and_bert.html#sec-14.5": "padding side, padding left or right",
    "appendix/glossary.html#term-causal-mask": "masked attention, masked self-attention",
    "appendix/glossary.html#term-mixture-of-experts": "MoE",
}
HEADINGS = "h1 | h2 | h3 | h4"
# Not prose: code, what it prints and draws, and what only helps to find one's way.
NOT_PROSE = (
    ".//h1 | .//h2 | .//h3 | .//h4 | .//script | .//style | .//section | .//nav | .//svg | .//img"
    " | .//summary"
    f" | .//*[{classed('headerlink', 'highlight', 'output', 'book-head', 'py', 'glossary')}]"
)
# What a formula's parts are called where it is one line of text, before which of its children.
FORMULA_SIGNS = {"msqrt": "√", "msub": " _", "msup": " ^", "msubsup": " _^", "mfrac": " /"}


class Record(NamedTuple):
    """``where`` is the page that ``address`` leads to, if ``title`` is not the page's own.

    ``kind`` is "term", "chapter", "appendix" or "name"; ``synonyms`` are found and not shown.
    """

    address: str
    title: str
    where: str
    text: str
    kind: str
    synonyms: str = ""


def synonyms_of(address: str) -> str:
    """What a place is called in other words, in English and in the build's language."""
    chinese = site()["synonyms"] if speaks_chinese() else {}
    return ", ".join(filter(None, [SYNONYMS.get(address), chinese.get(address)]))


def words_of(element: HtmlElement) -> str:
    """An element's own prose."""
    copied = deepcopy(element)
    for inner in copied.xpath(NOT_PROSE):
        inner.drop_tree()
    for part in copied.iter(*FORMULA_SIGNS):
        for sign, child in zip(FORMULA_SIGNS[part.tag], part, strict=False):
            child.text = sign.strip() + (child.text or "")
    return " ".join(copied.text_content().split())


def heading_of(section: HtmlElement) -> str:
    (heading, *_) = section.xpath(HEADINGS)
    return " ".join(heading.text_content().removesuffix("#").split())


def terms(article: HtmlElement, address: str, page: str) -> Iterator[Record]:
    """Each entry of a glossary; a name in another language stands in its text."""
    for entry in article.xpath(TERM):
        told, ids = [words_of(entry)], [entry.get("id")]
        for follows in entry.itersiblings():
            told.append(words_of(follows))
            if follows.tag == "dd":
                break
            ids.append(follows.get("id"))
        title, *others, _ = told
        text = " ".join(told[1:])
        here = f"{address}#{next(i for i in ids if not CHINESE.search(i))}"
        synonyms = ", ".join(filter(None, [*others, synonyms_of(here)]))
        yield Record(here, title, page, text, "term", synonyms)


def names(article: HtmlElement, address: str, page: str) -> Iterator[Record]:
    """Each class and function of the package, with what its docstring says."""
    for entry in article.xpath(".//dt[contains(@class, 'sig')][@id]"):
        if (said := entry.getnext()) is not None and said.tag == "dd":
            name = entry.get("id").rpartition(".")[2]
            text = f"{entry.get('id')} {words_of(said)}"
            yield Record(f"{address}#{entry.get('id')}", name, page, text, "name")


def records_of(path: Path, folder: Path) -> Iterator[Record]:
    """What one built page has to find: nothing, if it has no article."""
    address = path.relative_to(folder).as_posix()
    for article in tree_of(path).xpath(ARTICLE):
        sections = article.xpath(f".//section[{HEADINGS}]")
        title = heading_of(sections[0]) if sections else ""
        kind = "appendix" if address.startswith("appendix/") else "chapter"
        for i, section in enumerate(sections):
            here = address if i == 0 else f"{address}#{section.get('id')}"
            if text := words_of(section):
                where = title if i else ""
                yield Record(here, heading_of(section), where, text, kind, synonyms_of(here))
        yield from terms(article, address, title)
        yield from names(article, address, title)


def write_records(folder: Path) -> None:
    """Those of all pages of a built site, as a script, which a page that was opened as a file may
    load, too. Raises ExtensionError if a place in ``SYNONYMS`` is not there."""
    pages = {page for where in SEARCHED for page in folder.glob(where)}
    texts = sorted(pages - {folder / name for name in NOT_TEXTS})
    found = [record for page in texts for record in records_of(page, folder)]
    if lost := SYNONYMS.keys() - {record.address for record in found}:
        raise ExtensionError(f"SYNONYMS names what no page has: {', '.join(sorted(lost))}")
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    (folder / FILE).write_text(f"const RECORDS = {text};\n", encoding="utf-8")


def write_search(app: Sphinx, exception: Exception | None) -> None:
    if exception is None:
        write_records(Path(app.outdir))


def leave_out(app: Sphinx) -> None:
    """Leaves out Sphinx's index, which takes long and knows pages only."""
    assert isinstance(app.builder, StandaloneHTMLBuilder)
    app.builder.search = False
    app.config.html_additional_pages["search"] = "search.html"


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", leave_out)
    app.connect("build-finished", write_search, priority=950)  # once all pages are as they stay
