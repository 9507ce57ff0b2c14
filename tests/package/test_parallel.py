import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.data.parallel import LONGEST_LINE, Report, encode_pairs, read_parallel
from transformer.data.text import BytePairEncoding, Vocabulary, clean_line

LINES = ["the cat sat on the mat", "the dog sat on the cat", "ein weißer Hund schläft", "猫が好き"]
BPE = BytePairEncoding.train(LINES * 3, vocab_size=330)
VOCABULARY = Vocabulary.from_sentences(LINES)


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Write two files and read them as one."""
    monkeypatch.chdir(tmp_path)

    def read(src, tgt, **options):
        for name, text in (("a.de", src), ("a.en", tgt)):
            (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return read_parallel("a.de", "a.en", **options)

    return read


def test_lines_are_paired(read, tmp_path):
    pairs, report = read("eins zwei\ndrei\n", "one two\nthree\n")
    assert pairs == [("eins zwei", "one two"), ("drei", "three")]
    assert report == Report(2, {})
    assert str(report) == "2 pairs kept, 0 left out"
    (tmp_path / "a.de.gz").write_bytes(gzip.compress((tmp_path / "a.de").read_bytes()))
    assert read_parallel("a.de.gz", "a.en")[0] == pairs


def test_line_ends_and_the_byte_order_mark_are_no_text(read):
    # one within, too, as ``cat`` leaves it between two files
    assert read("\ufeffa\r\n\ufeffb c \r\n", "d\n\te")[0] == [("a", "d"), ("b c", "e")]


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_nothing_else_ends_a_line(read, odd):
    assert read(f"a{odd}b\n", "c\n")[0] == [("a b", "c")]


@given(text=st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"])))
def test_a_line_comes_back_clean(text, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "line"
    path.write_bytes(f"x\n{text}.\n".encode())
    assert read_parallel(path, path)[0][1] == (clean_line(f"{text}."),) * 2


BAD_LINES = [
    (b"a\n \n", b"a\nb\n", r"^a\.de, line 2: empty$"),
    (b"a\nb\n", b"\xe3\x80\x80\nb\n", r"^a\.en, line 1: empty$"),  # an ideographic space
    (b"a\nb\xff\n", b"a\nb\n", r"^a\.de, line 2: not UTF-8$"),
    (b"a\nb\n", b"a\n\xc3\n", r"^a\.en, line 2: not UTF-8$"),
    (b"a" * (LONGEST_LINE + 1) + b"\na\n", b"a\nb\n", r"^a\.de, line 1: over 16384 bytes$"),
    (b"a\n" + b"a" * 3 * LONGEST_LINE, b"a\nb\n", r"^a\.de, line 2: over 16384 bytes$"),
    (b"a\nb\nc\0\n", b"a\nb\nc\n", r"^a\.de, line 3: not UTF-8, for it has a NUL$"),
    ("ein\nHund\n".encode("utf-16"), b"a\ndog\n", r"^a\.de, line 1: not UTF-8"),
    ("ein\n".encode("utf-16-le"), b"a\n", r"^a\.de, line 1: not UTF-8, for it has a NUL$"),
    (b"a\n" + b"b\r" * 40, b"a\nb\n", r"^a\.de, line 2: with \\r inside, where lines must .*$"),
    (b"a\nb\n", b"a\n" + b"b b\r" * 9999 + b"\n", r"^a\.en, line 2: with \\r inside, where .*$"),
]


@pytest.mark.parametrize(("src", "tgt", "message"), BAD_LINES)
def test_a_bad_line_is_named_or_skipped(read, src, tgt, message):
    with pytest.raises(ValueError, match=message):
        read(src, tgt)


def test_the_longest_line_is_no_bad_one(read):
    longest = "a" * LONGEST_LINE
    assert read(f"{longest}\n{longest}", "b\nc")[0] == [(longest, "b"), (longest, "c")]


def test_what_was_skipped_is_counted_by_reason(read):
    src, tgt = b"a b\n\xff\n\n\xff\nd\n", "x\ny\nz\n\n \n"
    pairs, report = read(src, tgt, on_bad="skip")
    assert pairs == [("a b", "x")]
    assert report == Report(1, {"not UTF-8": 2, "empty": 2}, left_out=(2, 3, 4, 5))
    assert str(report) == "1 pairs kept, 4 left out (2 empty, 2 not UTF-8)"


@pytest.mark.parametrize("on_bad", ["error", "skip"])
@pytest.mark.parametrize(
    ("src", "tgt", "message"),
    [
        ("a\nb\n", "a\n", r"as many lines as each other, got 2 in a\.de and 1 in a\.en"),
        ("a\n", "a\n\n", r"as many lines as each other, got 1 in a\.de and 2 in a\.en"),
        ("", "", r"a\.de and a\.en hold no pair to learn from: 0 pairs kept, 0 left out"),
    ],
)
def test_files_that_do_not_fit_are_named(read, src, tgt, message, on_bad):
    with pytest.raises(ValueError, match=message):
        read(src, tgt, on_bad=on_bad)


@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_lines_that_end_in_a_lone_carriage_return_are_not_taken_for_one(read, end):
    for text in (f"a\rb{end}", "\ufeffa\rb", "\rb"):
        with pytest.raises(ValueError, match=r"^a\.de, line 1: with \\r inside, where"):
            read(text, "a\nb\n")
    assert read(f"a{end}", "b\n")[0] == [("a", "b")]  # of which there is one line


def test_a_file_that_is_no_whole_gzip_file_is_named(tmp_path):
    whole, file = gzip.compress(b"ein Hund\n" * 20, mtime=0), tmp_path / "a.gz"
    cut = [whole[:length] for length in (1, 5, 12, 25, -8, -1)]
    for data in (b"<html>\n", whole[:10] + b"\x07" * 9, whole + b"?", *cut):
        file.write_bytes(data)
        with pytest.raises(ValueError, match=rf"^{file} is not a whole gzip file: ."):
            read_parallel(file, file)


def test_nothing_left_is_an_error_that_says_why(read):
    with pytest.raises(ValueError, match=r"no pair .*: 0 pairs kept, 1 left out \(1 empty\)"):
        read("a\n", "\n", on_bad="skip")


def test_a_file_that_is_not_there(tmp_path):
    (tmp_path / "a.de").write_text("a\n")
    with pytest.raises(FileNotFoundError, match=r"a\.en"):
        read_parallel(tmp_path / "a.de", tmp_path / "a.en")


# Pairs of ids


def test_pairs_become_examples():
    src, tgt = Vocabulary(["a", "b"]), Vocabulary(["x", "y"])
    pairs = [("a b", "y"), (["b", "c"], ("x", "z", "z")), ("", "")]
    examples, report = encode_pairs(iter(pairs), src, tgt, max_len=5)
    assert examples == [([4, 5, 2], [1, 5, 2]), ([5, 3, 2], [1, 4, 3, 3, 2]), ([2], [1, 2])]
    assert report == Report(3, {}, {"source": (1, 4), "target": (2, 4)})
    assert str(report) == (
        "3 pairs kept, 0 left out; 1 of 4 source tokens unknown; 2 of 4 target tokens unknown"
    )


def test_lines_are_encoded_as_they_are_read():
    dressed, _ = encode_pairs([("\ufeffder\x0bHund\x00", "a\u2028dog ")], BPE, BPE, max_len=50)
    assert dressed == encode_pairs([("der Hund", "a dog")], BPE, BPE, max_len=50)[0]


def test_both_tokenizers_fit():
    examples, report = encode_pairs([(LINES[0], LINES[1])], VOCABULARY, BPE, max_len=50)
    [(src, tgt)] = examples
    assert VOCABULARY.decode(src) == LINES[0]
    assert BPE.decode(tgt) == LINES[1]
    assert report.unknown["target"] == (0, len(tgt) - 2)


def test_long_pairs_are_named_or_skipped():
    pairs = [("a", "a"), ("a a a a", "a"), ("a", "a a a"), ("a a a", "a a")]
    words = Vocabulary(["a"])
    with pytest.raises(ValueError, match="pair 2 must fit max_len 4, got 5 tokens"):
        encode_pairs(pairs, words, words, max_len=4)
    examples, report = encode_pairs(pairs, words, words, max_len=4, on_long="skip")
    assert examples == [([4, 2], [1, 4, 2]), ([4, 4, 4, 2], [1, 4, 4, 2])]
    assert report.left_out == (2, 3)
    assert str(report).startswith("2 pairs kept, 2 left out (2 over 4 tokens); 0 of 4 source")
    with pytest.raises(ValueError, match="pairs must hold one of at most 2 tokens, got none: 0 p"):
        encode_pairs(pairs, words, words, max_len=2, on_long="skip")


def test_there_is_no_third_choice(read, unchecked):
    with pytest.raises(
        ValueError, match=r"on_bad must be one of \('error', 'skip'\), got 'ignore'"
    ):
        read("a\n", "a\n", on_bad="ignore")
    with pytest.raises(ValueError, match=r"on_long must be one of \('error', 'skip'\), got None"):
        encode_pairs([("a", "a")], VOCABULARY, VOCABULARY, max_len=9, on_long=None)
