import json
import os
import pickle
import unicodedata

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer.data.text import BytePairEncoding, Vocabulary, clean_line
from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID

LINES = ["the cat sat on the mat", "the dog sat on the cat", "ein weißer Hund schläft", "猫が好き"]
BPE = BytePairEncoding.train(LINES * 3, vocab_size=330)
VOCABULARY = Vocabulary.from_sentences(LINES)
EITHER = pytest.mark.parametrize("tokenizer", [VOCABULARY, BPE], ids=["words", "bytes"])
E_ACUTE, E_AND_ACUTE = "caf\u00e9", "cafe\u0301"  # they look the same


def test_specials_have_the_first_ids():
    assert (PAD_ID, BOS_ID, EOS_ID, UNK_ID) == (0, 1, 2, 3)
    for tokenizer in (Vocabulary([]), BPE):
        assert tuple(tokenizer.words([PAD_ID, BOS_ID, EOS_ID, UNK_ID])) == SPECIALS


# A line


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("a\x00b\x1fc\x7fd\x85e\x9ff", "a b c d e f"),
        ("a\rb\vc\x0cd\u2028e\u2029f\u200bg", "a b c d e f g"),
        ("\ufeffa\ufeffb\ufeff", "ab"),
        ("e\ufeff\u0301", "\u00e9"),
        ("\x1f \t\xa0\u3000a\x1c\n", "a"),
        ("\ufeff\x00\x1a\u200b\xa0\t", ""),
        *((text, text) for text in ("a\tb  c\xa0d\u3000e", "\U0001f468\u200d\U0001f469", "a\xadb")),
    ],
)
def test_what_of_a_line_is_text(line, text):
    assert clean_line(line) == text
    assert clean_line(line.upper(), lowercase=True) == text


@given(st.text())
def test_a_clean_line_is_one_line_and_stays_as_it_is(text):
    line = clean_line(text)
    assert clean_line(line) == line
    assert line.splitlines() == [line] * bool(line)


@given(st.text("ΑΣσςaI'.1- \u0130\u1e9e\u01c5\u0301\u0307\xad"))
def test_small_letters_are_those_of_python(text):
    assert clean_line(text, lowercase=True) == clean_line(text.lower())


# Vocabulary


def test_words_follow_in_the_order_given():
    vocabulary = Vocabulary(["b", "a"])
    assert len(vocabulary) == 6
    assert vocabulary.encode("a b  c\ta\n") == [5, 4, UNK_ID, 5]
    assert vocabulary.encode(["a", "b c"]) == vocabulary.encode(("a", "d")) == [5, UNK_ID]
    assert vocabulary.encode("") == []


def test_ids_become_text_up_to_the_first_eos():
    vocabulary = Vocabulary(["a", "b"])
    ids = [BOS_ID, 4, PAD_ID, 5, UNK_ID, EOS_ID, 4, EOS_ID, PAD_ID]
    assert vocabulary.decode(ids) == vocabulary.decode(torch.tensor(ids)) == "a b"
    assert vocabulary.decode([4, 5]) == "a b"
    assert vocabulary.decode([]) == ""
    labels = ["<bos>", "a", "<pad>", "b", "<unk>", "<eos>", "a", "<eos>", "<pad>"]
    assert vocabulary.words(ids) == vocabulary.words(torch.tensor(ids)) == labels


def test_the_most_frequent_words_come_first():
    sentences = ["c b d b", ["c", "a"], "<unk> <unk> <unk> e b"]
    assert Vocabulary.from_sentences(sentences).words(range(4, 9)) == ["b", "c", "a", "d", "e"]
    frequent = Vocabulary.from_sentences(iter(sentences), min_count=2)
    assert frequent.words(range(len(frequent)))[4:] == ["b", "c"]
    small = Vocabulary.from_sentences(sentences, max_size=7)
    assert small.words(range(len(small)))[4:] == ["b", "c", "a"]
    assert len(Vocabulary.from_sentences(sentences, max_size=100)) == 9


def test_a_word_is_the_same_however_it_was_typed():
    assert E_ACUTE != E_AND_ACUTE
    for made, asked in ((E_ACUTE, E_AND_ACUTE), (E_AND_ACUTE, E_ACUTE)):
        assert Vocabulary([made]).encode(asked) == [4]
        assert Vocabulary.from_sentences([made, asked]).words([4]) == [E_ACUTE]
    bpe = BytePairEncoding.train([E_ACUTE] * 4, vocab_size=300)
    assert bpe.encode(E_AND_ACUTE) == bpe.encode(E_ACUTE)
    assert len(bpe.encode(E_ACUTE)) == 1


@EITHER
def test_a_special_in_a_text_is_only_text(tokenizer):
    for special in SPECIALS:
        assert not set(tokenizer.encode(f"the {special} cat")) & {PAD_ID, BOS_ID, EOS_ID}
    assert VOCABULARY.encode("<eos>") == [UNK_ID]
    assert BPE.decode(BPE.encode("the <eos>cat<pad>")) == "the <eos>cat<pad>"


@given(st.lists(st.text(min_size=1).filter(lambda w: w.split() == [w] and w not in SPECIALS)))
def test_words_make_a_round_trip(words):
    words = [unicodedata.normalize("NFC", word) for word in words]
    vocabulary = Vocabulary.from_sentences([words])
    assert vocabulary.decode(vocabulary.encode(words)) == " ".join(words)
    assert vocabulary.decode(vocabulary.encode(" ".join(words))) == " ".join(words)
    assert vocabulary.words(vocabulary.encode(words)) == words


# BytePairEncoding


def assigned(text):
    """Without what a later Unicode than one of the two libraries' might compose."""
    return all(unicodedata.category(c) != "Cn" for c in text)


@given(st.text().filter(assigned))
def test_any_text_makes_a_round_trip(text):
    ids = BPE.encode(text)
    assert UNK_ID not in ids
    assert BPE.decode(ids) == unicodedata.normalize("NFC", text)
    assert BPE.decode(torch.tensor([BOS_ID, *ids, EOS_ID, 300, PAD_ID])) == BPE.decode(ids)
    assert BPE.encode(text.split()) == BPE.encode(" ".join(text.split()))


def test_frequent_words_become_one_piece_wherever_they_stand():
    the, cat, the_again = BPE.encode("the cat the")
    assert the == the_again
    assert BPE.words([the, cat]) == [" the", " cat"]
    assert BPE.words(BPE.encode("weißer")) == [" weißer"]
    assert BPE.decode([cat]) == "cat"
    # the empty text has no piece, and that of a space keeps it
    assert BPE.encode("") == []
    assert BPE.decode(BPE.encode(" the")) == " the"


def test_training_stops_at_the_size_or_when_pairs_are_seen_once():
    assert len(BytePairEncoding.train(LINES * 3, vocab_size=270)) == 270
    assert len(BytePairEncoding.train(["ab cd"], vocab_size=300)) == 260
    assert len(BytePairEncoding.train(["ab ab"], vocab_size=300)) == 262  # " a", " ab"
    assert len(BytePairEncoding.train([], vocab_size=260)) == 260


def test_training_is_deterministic(tmp_path):
    for name in ("a", "b"):
        BytePairEncoding.train(iter(LINES * 3), vocab_size=330).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# Both


@EITHER
def test_what_is_saved_comes_back(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text("an older one")
    tokenizer.save(path)
    loaded = type(tokenizer).load(str(path))
    assert len(loaded) == len(tokenizer)
    assert loaded.words(range(len(loaded))) == tokenizer.words(range(len(tokenizer)))
    text = "the <eos> weiße Hund 猫"
    assert loaded.encode(text) == tokenizer.encode(text)
    assert loaded.decode(loaded.encode(text)) == tokenizer.decode(tokenizer.encode(text))
    assert os.listdir(tmp_path) == ["tokenizer.json"]
    json.loads(path.read_text(encoding="utf-8"))


FOREIGN = [
    b"",
    b"{}",
    b'{"format": "transformer.data.text.Vocabulary"}',
    b'{"format": "transformer.data.text.Vocabulary", "words": "ab"}',
    b'{"format": "transformer.data.text.Vocabulary", "words": [1]}',
    b'{"format": "transformer.data.text.Vocabulary", "words": ["a", "a"]}',
    b'{"format": "another", "words": ["a"]}',
]


@EITHER
@pytest.mark.parametrize("data", FOREIGN)
def test_a_foreign_file_is_named(tokenizer, data, tmp_path, unchecked):
    path = tmp_path / "foreign.json"
    path.write_bytes(data)
    kind = type(tokenizer)
    with pytest.raises(ValueError, match=rf"foreign\.json is not a saved {kind.__name__}: ."):
        kind.load(path)


def test_byte_pairs_with_other_specials_are_refused(tmp_path):
    path = tmp_path / "foreign.json"
    BPE.save(path)
    path.write_text(path.read_text(encoding="utf-8").replace("<bos>", "<cls>"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"foreign\.json is not a saved .* are not 0 to 3"):
        BytePairEncoding.load(path)


@EITHER
@pytest.mark.parametrize("above", [False, True])
def test_ids_outside_the_vocabulary_are_refused(tokenizer, above):
    bad = len(tokenizer) if above else -1
    message = f"ids must lie between 0 and {len(tokenizer) - 1}, got {bad}"
    for read in (tokenizer.decode, tokenizer.words):
        for ids in ([4, bad], torch.tensor([4, bad])):
            with pytest.raises(ValueError, match=message):
                read(ids)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Vocabulary(["a", "b", "a"]), "words must differ .*, got 'a'"),
        (lambda: Vocabulary([E_ACUTE, E_AND_ACUTE]), f"words must differ .*, got '{E_ACUTE}'"),
        (lambda: Vocabulary("abc"), "words must be an iterable of words, got the str 'abc'"),
        (
            lambda: VOCABULARY.decode(torch.zeros(2, 3)),
            r"those of one sentence, got shape \(2, 3\)",
        ),
        (lambda: BPE.decode(torch.zeros(2, 3)), r"those of one sentence, got shape \(2, 3\)"),
        (lambda: Vocabulary(["<eos>"]), "words must differ .*<eos>.*, got '<eos>'"),
        (lambda: Vocabulary(["a b"]), "words must be without white space .*, got 'a b'"),
        (lambda: Vocabulary([""]), "words must be .* not empty, got ''"),
        (lambda: Vocabulary.from_sentences("a b"), "sentences must be an iterable .* str 'a b'"),
        (
            lambda: Vocabulary.from_sentences(["a"], min_count=0),
            "min_count must be positive, got 0",
        ),
        (
            lambda: Vocabulary.from_sentences(["a"], max_size=4),
            "max_size must be at least 5, .* got 4",
        ),
        (
            lambda: BytePairEncoding.train("a b", vocab_size=300),
            "lines must be an iterable of lines, got the str 'a b'",
        ),
        (
            lambda: BytePairEncoding.train(["a b"], vocab_size=259),
            "vocab_size must be at least 260, specials and bytes, got 259",
        ),
    ],
)
def test_what_makes_no_tokenizer_is_refused(make, message, unchecked):
    with pytest.raises(ValueError, match=message):
        make()


@EITHER
def test_a_pickled_tokenizer_is_the_same(tokenizer):
    # <eos> in a text is text: a flag of the library's that its own pickling forgets
    copied = pickle.loads(pickle.dumps(tokenizer))
    assert copied.encode("the cat <eos>") == tokenizer.encode("the cat <eos>")
