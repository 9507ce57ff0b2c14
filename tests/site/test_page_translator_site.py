"""What the site gives the translator is the package's: its weights and its words."""

import json

import pytest

from tests.site.test_page_translator import copy_translator
from transformer.data.grammar.vocabularies import SOURCE_WORDS, TARGET_WORDS
from transformer.data.tokens import SPECIALS
from transformer_book.experiments.translator.data import MAX_LEN
from website.extensions.translator_files import EXAMPLES, STORED, translator_words


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    copy_translator(folder)
    return folder


def test_the_weights_are_those_of_the_package_to_the_byte(parts):
    stored = parts / "translator" / "weights.safetensors"
    assert stored.read_bytes() == STORED.read_bytes()
    assert stored.stat().st_size < 1_000_000


def test_the_words_are_those_of_the_package_in_the_order_of_their_ids(parts):
    module = (parts / "translator" / "words.js").read_text(encoding="utf-8")
    words = json.loads(module.split("export default ")[1].rstrip(";\n"))
    assert words["grammar"] == json.loads(json.dumps(translator_words()["grammar"]))
    assert words["ids"] == dict(zip(("pad", "bos", "eos", "unk"), range(4), strict=True))
    assert (words["maxLen"], words["examples"]) == (MAX_LEN, list(EXAMPLES))
    assert abs(1000 * words["kilobytes"] - STORED.stat().st_size) <= 500
    assert words["english"] == [*SPECIALS, *SOURCE_WORDS]
    assert words["french"] == [*SPECIALS, *TARGET_WORDS]
    assert all(set(line.split()) <= set(SOURCE_WORDS) for line in words["examples"])
    assert set().union(*words["grammar"]["words"].values()) == set(SOURCE_WORDS)
