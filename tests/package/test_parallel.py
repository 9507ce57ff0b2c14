import bz2
import gzip
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.data.parallel import (
    LONGEST_LINE,
    Report,
    encode_pairs,
    read_lines,
    read_parallel,
)
from transformer.data.text import BytePairEncoding, Vocabulary, clean_line

LINES = ["the cat sat on the mat", "the dog sat on the cat", "ein weißer Hund schläft", "猫が好き"]
BPE = BytePairEncoding.train(LINES * 3, vocab_size=330)
VOCABULARY = Vocabulary.from_sentences(LINES)
PACKED = gzip.compress(b"a\n", mtime=0)  # without a time, which two test processes would differ in


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Write two files, as they are or with gzip, and read them as one."""
    monkeypatch.chdir(tmp_path)

    def read(src, tgt, *, pack=lambda data: data, **options):
        for name, text in (("a.de", src), ("a.en", tgt)):
            data = text.encode() if isinstance(text, str) else text
            (tmp_path / name).write_bytes(pack(data))
        return read_parallel("a.de", "a.en", **options)

    return read


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress])
def test_lines_are_paired(read, pack):
    pairs, report = read("eins zwei\ndrei\n", "one two\nthree\n", pack=pack)
    assert pairs == [("eins zwei", "one two"), ("drei", "three")]
    assert report == Report(2, {})
    assert str(report) == "2 pairs kept, 0 left out"


def test_gzip_in_two_parts_is_read_to_its_end(read):
    whole = gzip.compress(b"a\n", mtime=0) + gzip.compress(b"b\n", mtime=0)
    assert read(whole, "c\nd\n")[0] == [("a", "c"), ("b", "d")]


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
    (b"a\n\x1a\n", b"a\nb\n", r"^a\.de, line 2: empty$"),  # the end of a file, for DOS
    (b"a" * (LONGEST_LINE + 1) + b"\na\n", b"a\nb\n", r"^a\.de, line 1: over 16384 bytes$"),
    (b"a\n" + b"a" * 3 * LONGEST_LINE, b"a\nb\n", r"^a\.de, line 2: over 16384 bytes$"),
    (b"a\nb\n", b"a\na b c d\n", r"^a\.en, line 2: over 3 words$"),
    (b"a b c d\na\n", b"\na\n", r"^a\.de, line 1: over 3 words$"),
    (b"a\nb\nc\0\n", b"a\nb\nc\n", r"^a\.de, line 3: with a NUL$"),
    (b"a\n" + b"b\r" * 40, b"a\nb\n", r"^a\.de, line 2: with \\r inside, where lines must .*$"),
    (b"a\nb\n", b"a\n" + b"b b\r" * 9999 + b"\n", r"^a\.en, line 2: with \\r inside, where .*$"),
]


@pytest.mark.parametrize(("src", "tgt", "message"), BAD_LINES)
def test_a_bad_line_is_named_or_skipped(read, src, tgt, message):
    with pytest.raises(ValueError, match=message) as caught:
        read(src, tgt, max_words=3)
    pairs, report = read(src, tgt, max_words=3, on_bad="skip")
    assert len(pairs) == report.kept == tgt.count(b"\n") - 1
    assert list(report.skipped.values()) == [1]
    assert str(caught.value).endswith(f": {next(iter(report.skipped))}")


def test_the_longest_line_is_no_bad_one(read):
    longest = "a" * LONGEST_LINE
    assert read(f"{longest}\n{longest}", "b\nc")[0] == [(longest, "b"), (longest, "c")]


def test_what_never_ends_is_refused_at_once():
    with pytest.raises(ValueError, match="zero must be UTF-8, plain or gzip, line 1 looks like"):
        next(read_lines(lambda size: b"\0" * size, "zero"))
    assert next(read_lines(lambda size: b"a" * size, "one")) == ("", "over 16384 bytes")


@pytest.mark.parametrize("on_bad", ["error", "skip"])
@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_another_encoding_is_that_of_a_file_not_of_a_line(read, encoding, mark, pack, on_bad):
    message = r"^a\.de must be UTF-8, plain or gzip, line [12] looks like UTF-16 or no text$"
    for text in ("ein Hund\r\nzwei\r\n", "猫\n犬\n"):
        with pytest.raises(ValueError, match=message):
            read((mark + text).encode(encoding), "a dog\ntwo\n", pack=pack, on_bad=on_bad)
    for data in (b"a\nb\0\n", b"a" * 3 * LONGEST_LINE + b"\nb\0\n"):
        with pytest.raises(ValueError, match="line 2 looks like UTF-16"):
            read(data, "c\nd\n", pack=pack, on_bad=on_bad)
    with pytest.raises(ValueError, match="line 1 looks like UTF-16"):  # by its mark alone
        read("上海".encode("utf-16"), "Shang\nhai", pack=pack, on_bad=on_bad)


def test_what_was_skipped_is_counted_by_reason(read):
    src, tgt = b"a b\na b c\n\n\xff\nd\n\n", "x\ny\nz\nw\nu v w\nr\n"
    pairs, report = read(src, tgt, max_words=2, on_bad="skip")
    assert pairs == [("a b", "x")]
    skipped = {"over 2 words": 2, "empty": 2, "not UTF-8": 1}
    assert report == Report(1, skipped, left_out=(2, 3, 4, 5, 6))
    assert str(report) == "1 pairs kept, 5 left out (2 empty, 1 not UTF-8, 2 over 2 words)"


@pytest.mark.parametrize("on_bad", ["error", "skip"])
@pytest.mark.parametrize(
    ("src", "tgt", "message"),
    [
        ("a\nb\n", "a\n", r"as many lines as each other, got 2 in a\.de and 1 in a\.en"),
        ("a\n", "a\n\n", r"as many lines as each other, got 1 in a\.de and 2 in a\.en"),
        ("", "", r"a\.de and a\.en hold no pair to learn from: 0 pairs kept, 0 left out"),
        (PACKED[:-1], "a\n", r"a\.de is not a whole gzip file: ."),
        ("a\n", PACKED + b"?", r"a\.en is not a whole gzip file: ."),
        (
            "a\n",
            gzip.compress(b"a\n", mtime=0)[:10] + b"\x07" * 9,
            r"a\.en is not a whole gzip file: .",
        ),
    ],
)
def test_files_that_do_not_fit_are_named(read, src, tgt, message, on_bad):
    with pytest.raises(ValueError, match=message):
        read(src, tgt, on_bad=on_bad)


def test_a_file_that_is_called_gzip_is(tmp_path):
    for name, data in (("a.gz", b"<html>\n"), ("b", PACKED), ("c.gz", PACKED), ("d.gz", b"")):
        (tmp_path / name).write_bytes(data)
    assert read_parallel(tmp_path / "b", tmp_path / "c.gz")[0] == [("a", "a")]
    with pytest.raises(ValueError, match=r"a\.gz is no gzip file, though it is called one$"):
        read_parallel(tmp_path / "b", tmp_path / "a.gz")
    with pytest.raises(ValueError, match=r"as many lines as each other, got 0 in .* and 1 in"):
        read_parallel(tmp_path / "d.gz", tmp_path / "b")


@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_lines_that_end_in_a_lone_carriage_return_are_not_taken_for_one(read, end):
    for text in (f"a\rb{end}", "\ufeffa\rb", "\rb"):
        with pytest.raises(ValueError, match=r"^a\.de, line 1: with \\r inside, where"):
            read(text, "a\nb\n")
        with pytest.raises(
            ValueError, match=r"0 pairs kept, 1 left out \(1 with \\r inside, where"
        ):
            read(text, "a\n", on_bad="skip")
    assert read(f"a{end}", "b\n")[0] == [("a", "b")]  # of which there is one line


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress, gzip.compress])
def test_packed_in_another_way_is_no_text_before_it_has_too_many_lines(tmp_path, pack):
    (tmp_path / "a").write_bytes(gzip.compress(pack(b"ein Hund\n"), mtime=0))
    (tmp_path / "b").write_text("a dog\n" * 99)
    with pytest.raises(
        ValueError, match=r"a(, line 1: not UTF-8| must be UTF-8, plain or gzip, .*)$"
    ):
        read_parallel(tmp_path / "a", tmp_path / "b")


def test_every_truncation_of_a_gzip_file_is_seen(read):
    whole = gzip.compress(b"ein Hund\n" * 20, mtime=0)
    for length in range(2, len(whole)):
        with pytest.raises(ValueError, match=r"a\.de is not a whole gzip file: ."):
            read(whole[:length], "a dog\n" * 20)


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
