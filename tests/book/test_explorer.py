import json
import re
from html.parser import HTMLParser

import pytest
import torch
from torch.testing import assert_close

from transformer.config import TransformerConfig
from transformer.data.grammar import grammar_pairs, grammar_vocabularies
from transformer.data.tokens import BOS_ID, EOS_ID
from transformer.model import Transformer
from transformer.multihead import record_attention
from transformer_book.explorer import Explored, explore, from_model
from transformer_book.explorer.explored import TITLES
from transformer_book.explorer.page import SCALE

SOURCE, TARGET = ["the", "black", "cat", "<eos>"], ["<bos>", "le", "chat", "noir", "<eos>"]
HOSTILE = ("<b>", "</script>", "<!--", '"', "'", "&amp;", "\\", "$x$", "\u2028")


def explored(source, target, *, seed=0, gold=None, kinds=TITLES, layers=(2, 3), heads=2):
    """Random weights; ``layers`` of the encoder and of the decoder."""
    g = torch.Generator().manual_seed(seed)
    S, T = len(source), len(target) - 1
    sizes = {"encoder": (layers[0], S, S), "decoder": (layers[1], T, T), "cross": (layers[1], T, S)}
    maps = {}
    for kind in kinds:
        n_layers, rows, columns = sizes[kind]
        scores = 3 * torch.randn(n_layers, heads, rows, columns, generator=g)
        if kind == "decoder":
            scores += torch.full((T, T), -torch.inf).triu(1)
        maps[kind] = scores.softmax(dim=-1)
    return Explored(source, target, maps, gold)


def cat(**changes):
    gold = frozenset({(0, 0), (0, 1), (1, 2), (2, 1)})
    return explored(SOURCE, TARGET, **{"gold": gold, **changes})


class Table(HTMLParser):
    """The rows of a table and the roles of its cells, as a reader without scripts has them."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.scopes, self.tags, self.inside = [], [], set(), False
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.inside = tag in ("td", "th")
        if tag == "tr":
            self.rows.append([])
        if self.inside:
            self.rows[-1].append("")
            self.scopes.append(dict(attributes).get("scope"))

    def handle_data(self, text):
        if self.inside:
            self.rows[-1][-1] += text

    def handle_endtag(self, tag):
        self.inside = False


def parts(html):
    """What stands before the script, and the data in it."""
    before, script = html.split("<script>", 1)
    data = re.search(r'^exploreAttention\("\w+", ".*?", (\{"scale".*\})\);$', script, flags=re.M)
    # between the name of the function and the last bracket: key, style, data
    return before, json.loads(data[1])


def percent(weights):
    return [[int(round(w * SCALE) * 100 / SCALE + 0.5) for w in row] for row in weights.tolist()]


def test_without_scripts_the_table_of_one_head_is_left():
    sentence = cat()
    html = explore([sentence, cat(seed=1)], start=("cross", 1, 0)).data
    table = Table(parts(html)[0])
    assert table.tags <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert table.scopes[1:6] == ["col"] * 4 + ["row"]
    assert table.rows[0] == ["", *SOURCE]
    assert [row[0] for row in table.rows[1:]] == [
        *("<bos> → le", "le → chat", "chat → noir", "noir → <eos>")
    ]
    expected = percent(sentence.maps["cross"][1, 0])
    for i, j in sentence.gold:
        expected[j][i] = f"{expected[j][i]}\xa0◆"
    assert [row[1:] for row in table.rows[1:]] == [[str(cell) for cell in row] for row in expected]
    assert "Cross-attention, layer 1, head 0" in html
    assert '<table class="dataframe">' in html  # which the theme leaves dark in dark mode


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_self_attention_has_its_own_words_on_both_axes_and_no_gold(kind):
    table = Table(parts(explore([cat(kinds=[kind])]).data)[0])
    assert table.rows[0][1:] == (SOURCE if kind == "encoder" else TARGET[:-1])
    assert [row[0].split(" → ")[0] for row in table.rows[1:]] == table.rows[0][1:]
    assert "◆" not in str(table.rows)


def test_it_starts_with_the_first_head_of_the_last_layer_of_the_last_kind():
    for kinds, start in ((TITLES, ("cross", 2, 0)), (["encoder"], ("encoder", 1, 0))):
        sentence = cat(kinds=kinds)
        assert explore([sentence]).data == explore([sentence], start=start).data


def test_the_data_hold_each_weight():
    sentences = [cat(), cat(seed=1, gold=None)]
    _, data = parts(explore(sentences).data)
    for stored, sentence in zip(data["sentences"], sentences, strict=True):
        assert [stored["source"], stored["target"]] == [sentence.source, sentence.target]
        for kind, weights in sentence.maps.items():
            found = torch.tensor(stored["maps"][kind]) / data["scale"]
            assert_close(found, weights, rtol=0, atol=0.5001 / SCALE)
    assert data["sentences"][0]["gold"] == [[0, 0], [0, 1], [1, 2], [2, 1]]
    assert data["sentences"][1]["gold"] is None


def test_words_are_text_whatever_they_look_like():
    html = explore([explored(HOSTILE, ["<bos>", *HOSTILE], gold={(0, 0)})]).data
    before, data = parts(html)
    table = Table(before)
    assert table.rows[0][1:] == list(HOSTILE)
    assert data["sentences"][0]["source"] == list(HOSTILE)
    assert html.lower().count("</script") == html.count("<script") == 1
    assert "<!--" not in html


def test_the_same_input_gives_the_same_bytes_and_another_one_another_key():
    first, same, other = (explore([cat(seed=seed)]).data for seed in (0, 0, 1))
    key = re.compile(r'data-explorer="(\w+)"')
    assert first == same
    assert key.search(first)[1] != key.search(other)[1]
    assert not re.search(r"\bid=", parts(first)[0])  # several on one page cannot clash


def test_nothing_is_loaded():
    words = [f"word{i}" for i in range(12)]
    sentences = [explored(words, words, seed=i, layers=(2, 2), heads=4) for i in range(6)]
    html = explore(sentences).data
    assert not re.search(r"""(src=|href=|url\(|@import) *["']?(https?:)?//""", html)
    assert not re.search(r"https?:|//\w+\.|\bimport\b|\bfetch\b", html)


def test_weights_of_half_precision_and_with_gradients_are_taken():
    maps = {kind: w.bfloat16().requires_grad_() for kind, w in cat().maps.items()}
    _, data = parts(explore([Explored(cat().source, cat().target, maps)]).data)
    found = torch.tensor(data["sentences"][0]["maps"]["cross"]) / SCALE
    assert_close(found, cat().maps["cross"], rtol=0.01, atol=1e-4)
    cross = 1.005 * maps["cross"] / maps["cross"].max()  # which rounding put above one
    explore([Explored(SOURCE, TARGET, {"cross": cross})])


def test_from_model_records_each_sentence_as_if_it_were_padded_into_a_batch():
    vocabularies = src_vocabulary, tgt_vocabulary = grammar_vocabularies()
    torch.manual_seed(0)
    sizes = {"d_model": 16, "d_ff": 16, "max_len": 32, "n_encoder_layers": 1}
    model = Transformer(TransformerConfig.tiny(*map(len, vocabularies), **sizes))
    pairs = grammar_pairs(5, seed=0)
    found = from_model(model, pairs, vocabularies)
    assert model.training
    src, tgt = torch.zeros(5, 31, dtype=torch.long), torch.zeros(5, 31, dtype=torch.long)
    for b, pair in enumerate(pairs):
        src[b, : len(pair.source) + 1] = torch.tensor([*src_vocabulary.encode(pair.source), EOS_ID])
        tgt[b, : len(pair.target) + 1] = torch.tensor([BOS_ID, *tgt_vocabulary.encode(pair.target)])
    with record_attention(model.eval()) as maps:
        model(src, tgt)
    for b, (pair, sentence) in enumerate(zip(pairs, found, strict=True)):
        assert sentence.source == [*pair.source, "<eos>"]
        assert sentence.target == ["<bos>", *pair.target, "<eos>"]
        assert sentence.gold == pair.alignment
        S, T = len(pair.source) + 1, len(pair.target) + 1
        assert sentence.maps["encoder"].shape == (1, 4, S, S)
        for kind, name, (rows, columns) in (
            ("encoder", "encoder.layers.{}.self_attention", (S, S)),
            ("decoder", "decoder.layers.{}.self_attention", (T, T)),
            ("cross", "decoder.layers.{}.cross_attention", (T, S)),
        ):
            for layer, weights in enumerate(sentence.maps[kind]):
                expected = maps[name.format(layer)][b, :, :rows, :columns]
                assert_close(weights, expected, rtol=0, atol=1e-5)
    assert "Cross-attention, layer 1, head 0" in explore(found).data


MAPS = cat().maps
NAN = MAPS["cross"].clone()
NAN[1, 1, 2, 3] = torch.nan


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"maps": {}}, r"maps must be of the kinds \['encoder', 'decoder', 'cross'\], got \[\]"),
        ({"maps": {"self": MAPS["cross"]}}, r"maps must be of the kinds .*, got \['self'\]"),
        (
            {"maps": {"cross": MAPS["cross"].mT[..., :3, :]}},
            r"maps\['cross'\] must have shape \(layers, heads, 4, 4\), got \(3, 2, 3, 4\)",
        ),
        ({"maps": {"cross": MAPS["cross"][0]}}, r"must have shape \(layers, heads, 4, 4\)"),
        ({"maps": {"cross": MAPS["cross"][:, :0]}}, r"got \(3, 0, 4, 4\)"),
        ({"maps": {"cross": -MAPS["cross"]}}, r"maps\['cross'\] must lie between 0 and 1, got -"),
        ({"maps": {"cross": NAN}}, r"maps\['cross'\] must lie between 0 and 1, got nan to nan"),
        ({"gold": {(4, 0)}}, r"gold must link 4 words to 4 words, got \(4, 0\)"),
        ({"gold": {(0, -1)}}, r"gold must link 4 words to 4 words"),
    ],
)
def test_a_sentence_that_cannot_be_shown(changes, message, unchecked):
    with pytest.raises(ValueError, match=message):
        Explored(**{"source": SOURCE, "target": TARGET, "maps": MAPS} | changes)


@pytest.mark.parametrize(
    ("sentences", "start", "message"),
    [
        ([], None, "sentences must hold at least one sentence, got none"),
        ([cat(), cat(heads=3)], None, r"sentences\[1\] must have the \(layers, heads\)"),
        ([cat()], ("cross", 3, 0), r"start must name one of .*, got \('cross', 3, 0\)"),
        ([cat(kinds=["cross"])], ("decoder", 0, 0), r"start must name one of .*'cross': \(3, 2\)"),
    ],
)
def test_what_cannot_be_explored(sentences, start, message):
    with pytest.raises(ValueError, match=message):
        explore(sentences, start=start)
