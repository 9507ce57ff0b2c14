"""The translator in the page against PyTorch: the same numbers, sentences and words."""

import base64
import unicodedata

import numpy as np
import pytest
import torch

from tests.package.unchecked import unchecked
from transformer.data.batches import pad
from transformer.data.grammar import grammar_pairs, grammar_vocabularies
from transformer.data.grammar.vocabularies import SOURCE_WORDS, TARGET_WORDS
from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID, SPECIALS
from transformer.decoding import beam_search, greedy_decode
from transformer.decoding.search import keep_top_k, keep_top_p
from transformer.multihead import record_attention
from transformer_book.experiments.translator import trained
from transformer_book.experiments.translator.data import MAX_LEN
from website.extensions.page_parts import PARTS, copy_part
from website.extensions.translator_files import translator_words

KINDS = ("encoder", "decoder", "cross")
LIMITS = {"pad": PAD_ID, "bos": BOS_ID, "eos": EOS_ID, "maxLen": MAX_LEN}
DECODING = {"bos_id": BOS_ID, "eos_id": EOS_ID, "max_len": MAX_LEN}
OPENED = """async () => {
    const modules = ["model", "parts", "decode", "text", "grammar", "safetensors", "words", "near"];
    for (const name of modules) window[name] = await import(`./${name}.js`);
    window.numbers = await import("../numbers.js");
    const response = await fetch("weights.safetensors");
    const stored = safetensors.readSafetensors(await response.arrayBuffer());
    window.translator = new model.Transformer(stored);
    const words = (list) => new Uint8Array(Float32Array.from(list).buffer);
    window.packed = (list) => {
        let text = "";
        for (const byte of words(list)) text += String.fromCharCode(byte);
        return btoa(text);
    };
}"""
TRACES = """([pairs, limits]) => pairs.map(([source, target]) => {
    const { encoder, steps } = decode.trace(translator, source, limits, target);
    const logits = steps.flatMap(({ logits }) => [...logits]);
    const read = encoder.map((layer) => layer.map((rows) => rows.map((row) => [...row])));
    const padded = (row) => [...row, ...Array(steps.length - row.length).fill(0)];
    const rows = (kind, end) => encoder.map((layer, l) =>
        layer.map((_, head) => steps.map((step) => end(step[kind][l][head]))));
    const maps = [read, rows("decoder", padded), rows("cross", (row) => [...row])];
    return [logits, ...maps].map((numbers) => packed(numbers.flat(3)));
})"""


def copy_translator(static):
    """The translator's files as the site has them, in the folder "translator" of ``static``."""
    with unchecked():
        copy_part(PARTS["book-translator"], static)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    static = tmp_path_factory.mktemp("page")
    copy_translator(static)
    page = static / "translator" / "page.html"
    page.write_text("<!DOCTYPE html><title>Try</title>", encoding="utf-8")
    return static


@pytest.fixture(scope="module")
def page(browser, folder, served):
    """A page with the modules loaded."""
    page = browser.new_page()
    page.goto(f"{served(folder)}translator/page.html")
    page.evaluate(OPENED)
    return page


@pytest.fixture(scope="module")
def model():
    return trained(0).cpu()


def encoded(pairs):
    english, french = grammar_vocabularies()
    return [
        ([*english.encode(p.source), EOS_ID], [*french.encode(p.target), EOS_ID]) for p in pairs
    ]


@pytest.fixture(scope="module")
def pairs():
    """200 pairs of the test, as ids."""
    return encoded(grammar_pairs(200, seed=1, split="test"))


def unpacked(text):
    return torch.from_numpy(np.frombuffer(base64.b64decode(text), dtype=np.float32).copy())


def maps_of(packed, source, target):
    """The weights of all heads (layers, heads, T, S)."""
    S, T = len(source), len(target)
    shapes = zip(KINDS, map(unpacked, packed), ((S, S), (T, T), (T, S)), strict=True)
    return {kind: weights.view(2, 4, *shape) for kind, weights, shape in shapes}


@torch.inference_mode()
def in_pytorch(model, source, target):
    with record_attention(model) as recorded:
        logits = model(torch.tensor([source]), torch.tensor([[BOS_ID, *target[:-1]]]))[0]
    names = {"encoder": "encoder.layers.{}.self_attention"}
    names["decoder"] = "decoder.layers.{}.self_attention"
    names["cross"] = "decoder.layers.{}.cross_attention"
    stack = {k: [recorded[name.format(i)][0] for i in range(2)] for k, name in names.items()}
    return logits, {kind: torch.stack(layers) for kind, layers in stack.items()}


@pytest.fixture(scope="module")
def wanted(model, pairs):
    """What PyTorch computes of each pair."""
    with unchecked():
        return [in_pytorch(model, *pair) for pair in pairs]


@pytest.fixture(scope="module")
def traces(page, pairs):
    """What the page computes of each pair, packed: logits, then maps."""
    return page.evaluate(TRACES, [pairs, LIMITS])


def test_the_logits_of_200_pairs_are_those_of_pytorch(traces, wanted):
    far = max(
        (unpacked(packed).view_as(logits) - logits).abs().max().item()
        for (packed, *_), (logits, _) in zip(traces, wanted, strict=True)
    )
    print(f"\nlogits differ by at most {far:.1e}")
    assert far < 1e-3


def test_the_attention_of_200_pairs_is_that_of_pytorch(traces, wanted, pairs):
    far = 0.0
    for (_, *packed), (_, expected), pair in zip(traces, wanted, pairs, strict=True):
        found = maps_of(packed, *pair)
        far = max(far, *((found[kind] - expected[kind]).abs().max().item() for kind in KINDS))
    print(f"\nattention weights differ by at most {far:.1e}")
    assert far < 1e-4


def written(page, search, sources, limits=LIMITS, **options):
    """What a search of the page gives for each source."""
    call = f"([all, ...how]) => all.map((source) => decode.{search}(translator, source, ...how))"
    return page.evaluate(call, [sources, limits, options])


def without_padding(tokens):
    return [[i for i in row if i != PAD_ID] for row in tokens.tolist()]


@pytest.mark.usefixtures("unchecked")
def test_the_likeliest_words_of_200_pairs_are_those_of_pytorch(page, model, pairs):
    sources = [source for source, _ in pairs]
    wanted = without_padding(greedy_decode(model, pad(sources), **DECODING))
    assert written(page, "greedy", sources) == wanted


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("size", "alpha", "count"), [(4, 0.6, 200), (1, 0.6, 40), (2, 0.0, 40), (6, 2.0, 40)]
)
def test_beams_find_what_they_find_in_pytorch(page, model, pairs, size, alpha, count):
    sources = [source for source, _ in pairs[:count]]
    options = {"beam_size": size, "length_penalty": alpha}
    wanted, log_p = beam_search(model, pad(sources), **DECODING, **options)
    found = written(page, "beamSearch", sources, beamSize=size, lengthPenalty=alpha)
    assert [best["tokens"] for best in found] == without_padding(wanted)
    assert [best["logP"] for best in found] == pytest.approx(log_p.tolist(), abs=1e-4)
    for best in found:
        scores = [beam["score"] for beam in best["found"]]
        assert scores == sorted(scores, reverse=True)
        lengths = [((5 + len(beam["tokens"])) / 6) ** alpha for beam in best["found"]]
        log_ps = [beam["logP"] for beam in best["found"]]
        assert scores == pytest.approx([p / n for p, n in zip(log_ps, lengths, strict=True)])


@pytest.mark.usefixtures("unchecked")
def test_beams_that_find_no_end_give_the_best_unfinished_sentence(page, model, pairs):
    sources = [source for source, _ in pairs[:20]]
    wanted, log_p = beam_search(model, pad(sources), bos_id=BOS_ID, eos_id=EOS_ID, max_len=3)
    found = written(page, "beamSearch", sources, LIMITS | {"maxLen": 3})
    assert [best["tokens"] for best in found] == without_padding(wanted)
    assert [best["logP"] for best in found] == pytest.approx(log_p.tolist(), abs=1e-4)


# A model whose next word depends on the last alone: ids 3 and 4 are words, 0 is padding.
STUB = """(rows) => {
    const state = () => ({ copy: state });
    const next = (token) => ({ logits: Float32Array.from(rows[token], (x) => x ?? -Infinity) });
    return { start: state, next };
}"""
OF_STUB = {"pad": 0, "bos": 1, "eos": 2, "maxLen": 3}


def test_padding_is_never_written(page):
    rows = [[9, 0, 1, 2, 2]] * 5
    call = f"""([rows, limits]) => [
        decode.greedy(({STUB})(rows), [], limits),
        ...Array.from({{ length: 50 }}, (_, seed) => decode.sample(({STUB})(rows), [], limits,
            {{ temperature: 100, random: numbers.generator(seed) }})),
        ...decode.beamSearch(({STUB})(rows), [], limits).found.map(({{ tokens }}) => tokens),
    ]"""
    written = page.evaluate(call, [rows, OF_STUB])
    assert {token for tokens in written for token in tokens} == {1, 2, 3, 4}


def test_log_probabilities_are_added_in_single_precision_as_the_package_adds_them(page):
    """Two sentences tie in float32, and the first stays; in float64 the second is likelier."""
    first, ends = [8.0, 8.0 - 11 * 2**-20], [-40.0, -40.0 + 3 * 2**-18]
    rows = [
        [*(None,) * 5],
        [None, None, None, *first],
        [*(None,) * 5],
        [0, None, ends[0], None, None],
        [0, None, ends[1], None, None],
    ]
    call = f"([rows, limits]) => decode.beamSearch(({STUB})(rows), [], limits, {{ beamSize: 2 }})"
    best = page.evaluate(call, [rows, OF_STUB])
    assert [found["tokens"] for found in best["found"][:2]] == [[3, 2], [4, 2]]
    assert best["found"][0]["logP"] == best["found"][1]["logP"]


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("top_k", [None, 1, 5, 40])
@pytest.mark.parametrize("top_p", [None, 0.5, 0.95, 1.0])
def test_what_is_sampled_from_is_what_the_package_samples_from(page, temperature, top_k, top_p):
    logits = 3 * torch.randn(6, 316, generator=torch.Generator().manual_seed(0))
    logits[:, 0] = -torch.inf  # padding
    logits[0, 5:9] = logits[0].max() - 0.5  # equals
    wanted = keep_top_p(keep_top_k(logits / temperature, top_k), top_p).softmax(dim=-1)
    options = {"temperature": temperature, "topK": top_k, "topP": top_p}
    options = {name: value for name, value in options.items() if value is not None}
    call = """([rows, options]) => rows.map((row) =>
        [...decode.filtered(row.map((x) => x ?? -Infinity), options)])"""
    rows = [[None if x == -torch.inf else x for x in row] for row in logits.tolist()]
    found = torch.tensor(page.evaluate(call, [rows, options]), dtype=torch.float32)
    near = {"atol": 1e-6, "rtol": 1e-5}
    torch.testing.assert_close(found[1:], wanted[1:], **near)
    # of equals, either may be the last that is kept
    torch.testing.assert_close(found[0].sort().values, wanted[0].sort().values, **near)


@pytest.mark.parametrize("top_p", [0.25, 0.5, 0.51])
def test_of_four_equals_as_many_are_kept_as_in_the_package(page, top_p):
    call = "topP => [...decode.filtered([-Infinity, 0, 0, 0, 0], { topP })].filter((p) => p).length"
    kept = keep_top_p(torch.tensor([[-torch.inf, 0, 0, 0, 0]]), top_p).isfinite().sum()
    assert page.evaluate(call, top_p) == kept


def test_a_token_is_drawn_as_often_as_its_probability_says(page):
    shares = [0.0, 0.5, 0.0, 0.3, 0.15, 0.05]
    call = """(shares) => Array.from({ length: 10000 }, (_, i) =>
        numbers.drawFrom(shares, (i + 0.5) / 10000))"""
    drawn = torch.tensor(page.evaluate(call, shares)).bincount(minlength=6) / 10_000
    assert drawn.tolist() == pytest.approx(shares, abs=2e-4)
    assert page.evaluate("numbers.drawFrom([0, 0.25, 0.5, 0], 0.999999)") == 2  # sums are rounded


def test_the_largest_come_first_and_of_equals_the_first(page):
    assert page.evaluate("numbers.order([1, 3, -Infinity, 1, 3, 2])") == [1, 4, 5, 0, 3, 2]


def test_text_is_split_and_encoded_as_the_package_does_it(page):
    texts = [
        *("the black cat sleeps", " the\tcat \n", "", "The cat", "the zebra <eos> <pad>", "cat."),
        *("constructor toString __proto__", "un élève", unicodedata.normalize("NFD", "été à côté")),
    ]
    call = """([texts, language]) => {
        const { ids, [language]: list } = words.default;
        const vocabulary = new text.Vocabulary(list, ids.unk);
        return texts.map((line) => vocabulary.encode(line));
    }"""
    for language, vocabulary in zip(("english", "french"), grammar_vocabularies(), strict=True):
        assert page.evaluate(call, [texts, language]) == [vocabulary.encode(t) for t in texts]


def test_what_a_page_opens_with_is_what_the_model_in_it_writes(page):
    told = translator_words()["opening"]
    call = """([sentence, limits]) => {
        const { ids, english, french } = words.default;
        const source = new text.Vocabulary(english, ids.unk).encode(sentence).concat(ids.eos);
        const tokens = decode.greedy(translator, source, limits);
        const { steps } = decode.trace(translator, source, limits, tokens);
        const cross = steps.map((s) => s.cross.map((layer) => layer.map((row) => [...row])));
        return [source.map((id) => english[id]), tokens.map((id) => french[id]), cross];
    }"""
    source, target, cross = page.evaluate(call, [translator_words()["examples"][0], LIMITS])
    assert (told["source"], told["target"]) == (source, target)
    stored = torch.tensor([step["cross"] for step in told["steps"]])
    torch.testing.assert_close(torch.tensor(cross), stored, rtol=0, atol=2e-5)


def test_each_word_of_the_opening_looks_most_at_the_word_that_it_translates():
    opening = translator_words()["opening"]
    layer = translator_words()["head"]["layer"]
    looks = torch.tensor([step["cross"][layer] for step in opening["steps"]]).mean(dim=1)
    most = [opening["source"][i] for i in looks.argmax(dim=-1)]
    pairs = dict(zip(opening["target"], most, strict=True))
    assert [pairs[word] for word in ("le", "chat", "noir", "dort")] == [
        *("the", "cat", "black", "sleeps")
    ]


def test_the_words_are_those_of_the_package_in_the_order_of_their_ids():
    words = translator_words()
    assert words["ids"] == dict(zip(("pad", "bos", "eos", "unk"), range(4), strict=True))
    assert words["english"] == [*SPECIALS, *SOURCE_WORDS]
    assert words["french"] == [*SPECIALS, *TARGET_WORDS]
    assert set(" ".join(words["examples"]).split()) <= set(SOURCE_WORDS)
    assert set().union(*words["grammar"]["words"].values()) == set(SOURCE_WORDS)


@pytest.fixture(scope="module")
def grammar(page):
    """Calls a function of the page that is written with ``grammar``."""
    page.evaluate("() => { window.rules = new grammar.Grammar(words.default.grammar); }")
    return page


@pytest.mark.usefixtures("unchecked")
def test_the_words_that_are_suggested_can_go_on_to_every_sentence_of_the_grammar(grammar):
    sentences = [
        [*pair.source]
        for split in ("train", "test")
        for pair in grammar_pairs(500, seed=5, split=split)
    ]
    call = """(sentences) => sentences.filter((sentence) => {
        const offered = (word, i) => rules.next(sentence.slice(0, i)).words.has(word)
            && (i === 0 || rules.joins(sentence[i - 1], word));
        return !sentence.every(offered) || !rules.next(sentence).complete;
    })"""
    assert grammar.evaluate(call, sentences) == []


def test_a_word_has_one_kind_and_what_belongs_to_a_verb_is_none():
    words = translator_words()["grammar"]["words"]
    every = [word for those in words.values() for word in those]
    assert len(every) == len({*every})
    assert {"at", "back", "for", "lot", "of", "to"} <= {*words["other words"]}


@pytest.mark.parametrize(
    "sentence",
    [
        *("the cat", "the cat sleep", "cats sleeps", "a apple falls", "an cat sleeps", "i sees"),
        *("the cat does not sees a dog", "every cat does not sleep", "he sees any cats"),
        *("the flower sleeps", "she does not see some cats", "the cat never often sleeps"),
        *("the cat sleeps sleeps", "the young table is red", "sleeps", "we talks to the dog"),
    ],
)
def test_what_the_grammar_does_not_write_is_no_sentence(grammar, sentence):
    complete = "(words) => rules.next(words).complete"
    assert grammar.evaluate(complete, sentence.split()) is False


def test_sentences_by_chance_are_many_and_whole(grammar):
    call = """() => {
        const random = numbers.generator(1);
        const drawn = Array.from({ length: 500 }, () => rules.random(random));
        const whole = drawn.filter((each) => rules.next(each.split(" ")).complete);
        return [whole.length, new Set(drawn).size];
    }"""
    n_whole, n_different = grammar.evaluate(call)
    assert n_whole == 500
    assert n_different > 450


def test_the_place_where_words_leave_the_grammar(grammar):
    call = "(sentences) => sentences.map((words) => rules.leaves(words))"
    sentences = {
        **{"the old queen sleeps": 2, "cat the": 0, "she does not see some cats": 4},
        **{"the black cat sleeps": -1, "the black cat": -1, "the cat sleeps sleeps": 3, "": -1},
    }
    assert grammar.evaluate(call, [each.split() for each in sentences]) == [*sentences.values()]
    joins = "(pairs) => pairs.filter((pair) => rules.joins(...pair.split(' ')))"
    met = ["the cat", "cat sleeps", "old cat", "cats sleep", "not often"]
    assert grammar.evaluate(joins, [*met, "old queen", "sleeps cat", "cat cat"]) == met


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("She doesn’t see it.", "she does not see it"),
        ("I'm happy, they're sad", "i am happy they are sad"),
        ("he's old; aren't they?", "he is old are not they"),
        ("the queen's cat", "the queen's cat"),  # no verb
        ("“The black cat,” sleeps !", "the black cat sleeps"),
        ("the cat.sleeps ", "the cat.sleeps"),
    ],
)
def test_what_is_drawn_together_is_read_in_full_and_marks_behind_words_are_no_part_of_them(
    page, typed, read
):
    assert page.evaluate("typed => text.plain(typed)", typed) == read


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        *(("quene", "queen"), ("teh", "the"), ("beutifull", "beautiful"), ("sleeping", "sleep")),
        *(("king", None), ("hello", None), ("world", None), ("sat", None)),
    ],
)
def test_a_word_with_a_typing_error_is_known_and_another_word_is_not(page, typed, meant):
    call = "typed => near.nearWord(typed, words.default.english.slice(4)) ?? null"
    assert page.evaluate(call, typed) == meant


@pytest.mark.parametrize(
    ("typed", "nearest"),
    [
        ("the king sees a dog", "the actress sees a dog"),
        ("the woman is reading a book", "the woman reads a book"),
        ("he goes to school", "he goes to a school"),
        ("hello world", None),
    ],
)
def test_near_sentences_are_the_grammars(grammar, typed, nearest):
    found = grammar.evaluate("typed => near.nearSentences(typed.split(' '), rules, 3)", typed)
    assert (found[0] if found else None) == nearest
    assert len(found) == (3 if nearest else 0)
    complete = "found => found.every((each) => rules.next(each.split(' ')).complete)"
    assert grammar.evaluate(complete, found)
