"""``translate``, and the commands ``translate`` and ``evaluate`` on what a run has learned."""

import gzip
import inspect
import io
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import torch
from sacrebleu.metrics import BLEU, CHRF

from tests.package.odd_lines import odd_lines
from tests.package.test_command_line import refused
from transformer.commands import main
from transformer.commands.options import Decoding
from transformer.commands.run_folder import load
from transformer.commands.translate import read_sentences
from transformer.config import TransformerConfig
from transformer.data.batches import BucketedBatches, pad
from transformer.data.parallel import encode_pairs
from transformer.data.text import BytePairEncoding, Vocabulary
from transformer.data.tokens import BOS_ID, EOS_ID
from transformer.decoding import beam_search, search
from transformer.decoding import translate as translate_module
from transformer.decoding.translate import translate
from transformer.metrics import bleu
from transformer.model import Transformer
from transformer.training import evaluate_loss
from transformer.training.checkpoint import checkpoints, load_transformer

WORDS = [f"w{i}" for i in range(20)]
SENTENCES = ["w0 w1 w2", "", "w3", "   ", "w4 w5 w6 w7 w8 w9", "w0 w1", "w9 w8 w7"]
TOKENIZERS = (Vocabulary(WORDS), Vocabulary([word.upper() for word in WORDS]))


@pytest.fixture
def model():
    torch.manual_seed(0)
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 32, "max_len": 70}
    model = Transformer(TransformerConfig.tiny(24, 24, **sizes)).eval()
    with torch.no_grad():  # so that it says different things of different sentences
        for weights in model.decoder.parameters():
            weights.mul_(3)
    return model


def test_translates_in_order_with_empty_lines_where_they_were(model):
    options = {"max_len": 12, "beam_size": 1}
    together = translate(SENTENCES, model, *TOKENIZERS, batch_size=2, **options)
    alone = [translate([line], model, *TOKENIZERS, **options)[0] for line in SENTENCES]
    assert together == alone
    assert [bool(line) for line in together] == [bool(line.strip()) for line in SENTENCES]
    assert len({*together}) > 3
    assert translate([], model, *TOKENIZERS) == []


def spy(monkeypatch, name, seen):
    real = getattr(search, name)

    def record(model, src, **options):
        seen.append((tuple(src.shape), options))
        return real(model, src, **options)

    monkeypatch.setattr(translate_module, name, record)


def test_a_translation_has_up_to_50_tokens_more_than_its_source(model, monkeypatch):
    seen = []
    spy(monkeypatch, "greedy_decode", seen)
    translate(["w1 w2 w3"], model, *TOKENIZERS, beam_size=1)
    translate(["w1 " * 30], model, *TOKENIZERS, beam_size=1)
    translate(["w1 w2 w3"], model, *TOKENIZERS, beam_size=1, max_len=3)
    assert [options["max_len"] for _, options in seen] == [4 + 50, 70, 3]


def test_the_longest_come_first_with_others_of_their_length(model, monkeypatch):
    seen = []  # what runs out of memory does so at once
    spy(monkeypatch, "beam_search", seen)
    translate(SENTENCES, model, *TOKENIZERS, max_len=2, batch_size=2)
    assert [shape for shape, _ in seen] == [(2, 7), (2, 4), (1, 2)]


def test_the_beam_is_searched_as_asked(model, monkeypatch):
    seen = []
    spy(monkeypatch, "beam_search", seen)
    how = {"max_len": 9, "beam_size": 3, "length_penalty": -9.0, "early_stopping": True}
    found = translate(SENTENCES[:1], model, *TOKENIZERS, **how)
    how |= {"bos_id": BOS_ID, "eos_id": EOS_ID}
    assert [options for _, options in seen] == [how]
    src = pad([[*TOKENIZERS[0].encode(SENTENCES[0]), EOS_ID]])
    assert found == [TOKENIZERS[1].decode(beam_search(model, src, **how)[0][0])]


def test_there_is_one_way_to_decode_by_default():
    for function in (translate, beam_search):
        parameters = inspect.signature(function).parameters
        assert parameters["beam_size"].default == Decoding().beam_size
        assert parameters["length_penalty"].default == Decoding().length_penalty
        assert parameters["early_stopping"].default == Decoding().early_stopping


def test_a_model_with_another_padding_is_refused():
    for pad_id in (None, 4):
        other = Transformer(TransformerConfig.tiny(24, 24, pad_id=pad_id))
        with pytest.raises(ValueError, match=f"model must have the padding id 0, got {pad_id}"):
            translate(["w1"], other, *TOKENIZERS)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("sentences", "options", "message"),
    [
        ("the cat", {}, "sentences must be a list of sentences, got the str 'the cat'"),
        (["w1", "w1 " * 70], {}, r"sentences\[1\] must have no more than 70 tokens, got 71"),
        (["w1"], {"max_len": 71}, "max_len must be at most 70, got 71"),
        (["w1"], {"batch_size": 0}, "batch_size must be positive, got 0"),
        (["w1"], {"beam_size": 25}, "beam_size must be at most 24, the size of the target's voc"),
    ],
)
def test_bad_input_is_refused(sentences, options, message, model):
    with pytest.raises(ValueError, match=message):
        translate(sentences, model, *TOKENIZERS, **options)


def test_a_sentence_without_a_word_stays_without_one(run):
    loaded = load(run)
    empty = ["", " ", "\t", "\n", "\xa0", "\u2028", "\x00", "\ufeff", "\u200b \x1a"]
    assert translate(empty, loaded.model, *loaded.tokenizers) == [""] * len(empty)


# python -m transformer translate

LINES = ["the cat sleeps", "a dog", "the black dog sees a cat", "we like him", "they eat", "I am"]
SHOUTED = [line.upper() for line in LINES]
KIND = ["--preset", "tiny", "--n-encoder-layers", "1", "--n-decoder-layers", "1", "--device", "cpu"]
COURSE = ["--vocab-size", "280", "--warmup", "20", "--batch-size", "16", "--peak", "5e-3"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One that has learned to shout a few sentences, with three checkpoints."""
    folder = tmp_path_factory.mktemp("runs")
    for name, lines in (("src", LINES), ("tgt", SHOUTED)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines * 8))
    data = ["--train", str(folder / "src"), str(folder / "tgt")]
    course = ["--steps", "120", "--save-every", "40", "--keep", "3", "--max-len", "64"]
    assert (
        main(["train", "--out", str(folder / "run"), *data, *KIND, *COURSE, *course, "--quiet"])
        == 0
    )
    return folder / "run"


class Terminal(io.TextIOWrapper):
    def isatty(self):
        return True


@pytest.fixture
def translated(run, monkeypatch, capsys):
    """What the command writes for what it reads."""

    def translated(data, *options, stream=io.TextIOWrapper):
        monkeypatch.setattr(sys, "stdin", stream(io.BytesIO(data)))
        assert main(["translate", str(run), "--device", "cpu", *options]) == 0
        return capsys.readouterr().out

    return translated


def test_each_line_is_translated_in_its_place(translated):
    lines = [*LINES[:2], "", " ", *LINES[2:]]
    written = translated("".join(f"{line}\n" for line in lines).encode(), "--batch-size", "3")
    assert written.splitlines() == [line.upper().strip() for line in lines]
    assert translated(b"a dog") == "A DOG\n"
    assert translated(b"") == ""


def read(data, run):
    return list(read_sentences(io.BytesIO(data), run))


@pytest.mark.parametrize(
    "dressed", [b"\xef\xbb\xbfa Dog\n", b"a Dog\r\n", b"a\x01Dog\n", b"a\vDog\n", b"\ta Dog \x1f\n"]
)
def test_marks_and_control_characters_are_no_text(run, dressed):
    loaded = load(run)
    assert read(dressed * 2, loaded) == ["a Dog", "a Dog"]
    assert read(dressed, loaded._replace(lowercase=True)) == ["a dog"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"caf\xe9", "standard input, line 3: not UTF-8"),
        (b"a dog\rwe", "standard input, line 3: with \\r inside, where lines must end with "),
        (b"dog " * 70, "standard input, line 3: must have no more than 64 tokens, got "),
    ],
)
def test_a_line_that_cannot_be_read_is_named_after_those_before_it(
    run, bad, message, monkeypatch, capsys
):
    data = io.BytesIO(b"a dog\nI am\n" + bad + b"\nthey eat\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data))
    assert main(["translate", str(run), "--device", "cpu"]) == 2
    written = capsys.readouterr()
    assert written.out == "A DOG\nI AM\n"
    assert written.err.startswith(f"transformer translate: {message}")
    assert written.err.count("\n") == 1


def test_bad_lines_are_skipped_as_asked_and_the_others_keep_their_number(run, monkeypatch, capsys):
    data = io.BytesIO(b"a dog\ncaf\xe9\nthey eat\n" + b"dog " * 70 + b"\nI am\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data))
    assert main(["translate", str(run), "--device", "cpu", "--on-bad", "skip"]) == 0
    written = capsys.readouterr()
    assert written.out == "A DOG\n\nTHEY EAT\n\nI AM\n"
    lines = written.err.splitlines()
    assert lines[0] == "standard input, line 2: not UTF-8; skipped"
    assert lines[1].startswith("standard input, line 4: must have no more than 64 tokens, got ")
    assert len(lines) == 2


def test_what_a_model_cannot_decode_with_is_refused_before_the_first_line(run, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", None)
    for options, message in (
        (["--beam-size", "9999"], "beam_size must be at most 280"),
        (["--length-penalty", "1e308"], "length_penalty must be between -"),
        (["--max-len", "65"], "--max-len must be at most 64, got 65"),
    ):
        assert refused(capsys, "evaluate", run, "no", "no", *options).startswith(message)


def test_the_longest_line_leaves_room_for_its_end(run):
    loaded = load(run)
    longest = "7" * (64 - len(loaded.tokenizers[0].encode("7")))
    assert len(loaded.tokenizers[0].encode(longest)) == 63
    assert read(longest.encode(), loaded) == [longest]
    with pytest.raises(ValueError, match="must have no more than 64 tokens, got 65"):
        read(f"{longest}7".encode(), loaded)


def test_what_is_written_is_utf_8_in_any_locale(translated, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="latin-1"))
    monkeypatch.setattr(
        "transformer.commands.translate.translate", lambda lines, *rest, **options: ["猫"]
    )
    translated("犬\n".encode())
    assert written.getvalue().decode() == "猫\n"


def test_the_options_of_decoding_are_handed_on(translated, monkeypatch):
    seen = []

    def record(lines, *rest, **options):
        seen.append(options)
        return lines

    monkeypatch.setattr("transformer.commands.translate.translate", record)
    options = ("--beam-size", "7", "--length-penalty", "-1.5", "--max-len", "9")
    translated(b"a\n", *options, "--early-stopping")
    translated(b"a\n")
    assert seen == [
        {"beam_size": 7, "length_penalty": -1.5, "max_len": 9, "early_stopping": True},
        {"beam_size": 4, "length_penalty": 0.6, "max_len": None, "early_stopping": False},
    ]


def test_at_a_terminal_each_line_is_answered_at_once(translated, monkeypatch):
    seen = []

    def record(lines, *rest, **options):
        seen.append(lines)
        return lines

    monkeypatch.setattr("transformer.commands.translate.translate", record)
    translated(b"a\nb\nc\n", "--batch-size", "2")
    translated(b"a\nb\n", "--batch-size", "2", stream=Terminal)
    assert seen == [["a", "b"], ["c"], ["a"], ["b"]]


def test_a_translation_comes_before_the_next_line_is_read(run, monkeypatch):
    written, seen = io.BytesIO(), []

    class Waiting(io.BytesIO):
        def __next__(self):
            seen.append(written.getvalue())  # when a line is asked for
            return super().__next__()

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Waiting(b"a dog\nI am\n")))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="utf-8"))
    assert main(["translate", str(run), "--device", "cpu", "--batch-size", "1"]) == 0
    assert seen == [b"", b"A DOG\n", b"A DOG\nI AM\n"]


# Which weights


def in_lower_case(run, folder):
    """A copy of a run, as if it had begun with --lowercase."""
    file = shutil.copytree(run, folder) / "settings.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "lowercase": True}))
    return folder


def state(model):
    return model.state_dict().values()


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(state(a), state(b), strict=True))


def test_any_checkpoint_can_be_chosen(run):
    first, _, last = (load_transformer(path) for path in checkpoints(run))
    assert same(load(run, "last").model, last)
    assert same(load(run, 40).model, first)
    assert load(run, 40).checkpoint == "step 40"
    assert load(run).checkpoint == "step 120"  # without a dev set none is known to be better
    mean = load(run, average=2)
    assert mean.checkpoint == "mean of steps 80, 120"
    second = load_transformer(checkpoints(run)[1])
    for a, b, c in zip(state(second), state(last), state(mean.model), strict=True):
        torch.testing.assert_close((a.double() + b.double()) / 2, c.double(), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--checkpoint", "41"], "{run} holds the steps 40, 80, 120, not 41"),
        (["--average", "4"], "{run} holds 3 checkpoints, not 4"),
    ],
)
def test_what_a_run_has_not_is_refused(run, options, message, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a dog\n")))
    found = refused(capsys, "translate", run, "--device", "cpu", *options)
    assert found.startswith(message.format(run=run))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "{run} must be the folder of a run, has no settings.json"),
        (b'{"lower', "{run}/settings.json is not of a training run: JSONDecodeError"),
        (b"\xff\xfe\xe9", "{run}/settings.json is not of a training run: Unicode"),
        (b"{}", "{run}/settings.json is not of a training run: ValueError: its format"),
        (
            {"lowercase": "no"},
            "{run}/settings.json is not of a training run: ValueError: its lower",
        ),
        ({"vocabulary": {}}, "{run}/settings.json holds no vocabulary: KeyError('source')"),
    ],
)
def test_damaged_settings_are_named(run, content, message, tmp_path, capsys):
    file = shutil.copytree(run, tmp_path / "run") / "settings.json"
    if isinstance(content, dict):
        content = json.dumps({**json.loads(file.read_text()), **content}).encode()
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    found = refused(capsys, "translate", file.parent, "--device", "cpu")
    assert found.startswith(message.format(run=file.parent))


def test_a_damaged_checkpoint_is_named(run, tmp_path, capsys):
    damaged = checkpoints(shutil.copytree(run, tmp_path / "run"))[-1]
    damaged.write_bytes(b"x")
    found = refused(capsys, "translate", damaged.parent, "--device", "cpu")
    assert found.startswith(str(damaged))


def test_a_folder_without_a_checkpoint_is_refused(run, tmp_path, capsys):
    shutil.copy(run / "settings.json", tmp_path)
    assert refused(capsys, "translate", tmp_path) == f"{tmp_path} holds no checkpoint"


# python -m transformer evaluate


@pytest.fixture
def held_out(tmp_path):
    """Sentences to measure on: right, right but for the case, and wrong."""
    sources = ["the cat sleeps", "a dog", "the black dog sees a cat", "they like us"]
    references = ["THE CAT SLEEPS", "a Dog", "THE  BLACK DOG SEES A CAT", "ELLES NOUS AIMENT !"]
    sources, references = [*sources, sources[0]], [*references, references[0]]  # one pair twice
    paths = [tmp_path / "held.src.gz", tmp_path / "held.tgt"]
    paths[0].write_bytes(gzip.compress("".join(f"{line}\n" for line in sources).encode()))
    paths[1].write_text("".join(f"{line}\n" for line in references))
    return sources, references, [str(path) for path in paths]


@pytest.mark.parametrize("lowercase", [False, True])
def test_what_is_scored_is_what_translate_writes(run, tmp_path, monkeypatch, capsys, lowercase):
    """For lines of all odd characters, and a model that writes them."""
    decode, scored, measured = BytePairEncoding.decode, [], []

    def oddly(tokenizer, ids):
        return "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\0\ufeff".join(decode(tokenizer, ids)) + "\n"

    def record_scored(*, hypotheses, **options):
        scored.extend(hypotheses)
        return bleu(hypotheses=hypotheses, **options)

    def record_measured(model, batches):
        batches = list(batches)
        measured.extend(row[row != 0].tolist() for batch in batches for row in batch.src)
        return evaluate_loss(model, batches)

    monkeypatch.setattr(BytePairEncoding, "decode", oddly)
    monkeypatch.setattr("transformer.commands.evaluate.bleu", record_scored)
    monkeypatch.setattr("transformer.commands.evaluate.evaluate_loss", record_measured)
    odd_run = in_lower_case(run, tmp_path / "run") if lowercase else run
    data = "".join(f"{line}\n" for line in [*odd_lines(), "ΟΔΟΣ", "A\u0130\u1e9e"]).encode()
    files = [tmp_path / "s", tmp_path / "t"]
    for file in files:
        file.write_bytes(data)
    options = ["--device", "cpu", "--beam-size", "1", "--max-len", "3", "--batch-size", "256"]
    assert main(["evaluate", str(odd_run), *map(str, files), *options]) == 0
    capsys.readouterr()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert main(["translate", str(odd_run), *options]) == 0
    written = capsys.readouterr().out
    assert written.splitlines() == scored
    assert written.count("\n") == len(scored) == data.count(b"\n")
    assert len(set(scored)) > 3
    loaded = load(odd_run)
    read_there = [[*loaded.tokenizers[0].encode(line), EOS_ID] for line in read(data, loaded)]
    assert sorted(measured) == sorted(read_there)


def test_scores_are_those_of_sacrebleu_on_what_translate_writes(
    run, held_out, translated, tmp_path, capsys
):
    sources, references, paths = held_out
    written = translated("".join(f"{line}\n" for line in sources).encode()).splitlines()
    words = ["evaluate", str(run), *paths, "--device", "cpu", "--json", str(tmp_path / "x.json")]
    assert main(words) == 0
    found = json.loads((tmp_path / "x.json").read_text())
    bleu, chrf = BLEU(), CHRF()
    assert found["BLEU"] == bleu.corpus_score(written, [references]).score
    assert found["BLEU signature"] == str(bleu.get_signature())
    assert found["chrF"] == chrf.corpus_score(written, [references]).score
    assert found["chrF signature"] == str(chrf.get_signature())
    assert found["exact match"] == 3 / 5
    assert found["decoding"] == "beam 4, length penalty 0.6"
    assert found["checkpoint"] == "step 120"
    loaded = load(run)
    examples, _ = encode_pairs(
        zip(sources, references, strict=True), *loaded.tokenizers, max_len=64
    )
    batches = BucketedBatches(examples, batch_size=1).epoch(0)
    assert found["loss"] == pytest.approx(evaluate_loss(loaded.model, batches), rel=1e-5)
    assert found["perplexity"] == pytest.approx(2.718281828 ** found["loss"], rel=1e-6)
    printed = capsys.readouterr().out
    assert "5 pairs kept, 0 left out; 0 of" in printed
    assert "checkpoint: step 120\n" in printed
    assert "exact match: 60.00% of 5; beam 4, length penalty 0.6\n" in printed
    assert f"BLEU: {found['BLEU']:.2f}  beam 4, length penalty 0.6; nrefs:1|case:mixed|" in printed


def test_results_go_into_what_is_no_file_and_never_in_its_place(run, held_out, tmp_path):
    words = ["evaluate", run, *held_out[2], "--device", "cpu", "--json"]
    pipe, link, file = (tmp_path / name for name in ("pipe", "link", "file"))
    os.mkfifo(pipe)
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as reader:  # which waits for nobody
        assert main([str(word) for word in (*words, pipe)]) == 0
        assert json.loads(reader.read())["checkpoint"] == "step 120"
    assert pipe.is_fifo()
    file.touch()
    link.symlink_to(file)
    for _ in range(2):  # over earlier results, too
        assert main([str(word) for word in (*words, link)]) == 0
    assert link.is_symlink()
    assert json.loads(file.read_text())["sentences"] == 5


def test_where_results_cannot_go_is_told_before_the_work(run, held_out, tmp_path, capsys):
    paths = [Path(path) for path in held_out[2]]
    (tmp_path / "link").symlink_to(paths[0])
    (tmp_path / "other").write_text('{"decoding": "greedy"}')
    kept = [*paths, *run.iterdir(), tmp_path / "link", tmp_path / "other"]
    kept = [path for path in kept if path.stat().st_size]  # the lock is empty
    before = [path.read_bytes() for path in kept]
    assert {*checkpoints(run), run / "settings.json"} < {*kept}
    for given in kept:
        words = ("evaluate", tmp_path / "no run", *paths, "--json", given)
        message = f"{given} is not what --json wrote, and would be lost: "
        assert refused(capsys, *words).startswith(message)
    folder = "--json must be a file in a folder that is there, got "
    for given in (tmp_path, Path("."), tmp_path / "no/x"):
        words = ("evaluate", tmp_path / "no run", *paths, "--json", given)
        assert refused(capsys, *words) == f"{folder}{given}"
    assert [path.read_bytes() for path in kept] == before


def test_decoding_is_as_asked_and_named(run, held_out, tmp_path, capsys):
    options = ["--beam-size", "1", "--max-len", "2", "--tokenize", "zh"]
    options += ["--json", str(tmp_path / "x.json")]
    assert main(["evaluate", str(run), *held_out[2], "--device", "cpu", *options]) == 0
    found = json.loads((tmp_path / "x.json").read_text())
    assert found["decoding"] == "greedy, at most 2 tokens"
    assert "|tok:zh|" in found["BLEU signature"]
    named = str(Decoding(beam_size=3, length_penalty=2.5, max_len=7, early_stopping=True))
    assert named == "beam 3, length penalty 2.5, early stopping, at most 7 tokens"
    assert found["exact match"] == 0


def test_bad_lines_are_skipped_as_asked_and_the_others_stay_in_line(run, tmp_path, capsys):
    sources = ["", "the cat sleeps", "the " * 99, "a dog"]
    (tmp_path / "s").write_text("".join(f"{line}\n" for line in sources))
    (tmp_path / "t").write_text("x\nTHE CAT SLEEPS\ny\nA DOG\n")
    words = ["evaluate", run, tmp_path / "s", tmp_path / "t", "--device", "cpu"]
    assert refused(capsys, *words) == f"{tmp_path / 's'}, line 1: empty"
    assert main([*map(str, words), "--on-bad", "skip"]) == 0
    printed = capsys.readouterr().out
    assert "3 pairs kept, 1 left out (1 empty)" in printed
    assert "2 pairs kept, 1 left out (1 over 64 tokens)" in printed
    assert "exact match: 100.00% of 2" in printed


def test_a_run_in_lower_case_is_scored_without_regard_to_case(run, tmp_path):
    lower = in_lower_case(run, tmp_path / "lower")
    swapped = [tmp_path / "s", tmp_path / "t"]
    swapped[0].write_text("THE CAT SLEEPS\nA Dog\n")
    swapped[1].write_text("the cat sleeps\na dog\n")
    words = ["evaluate", str(lower), *map(str, swapped), "--device", "cpu"]
    assert main([*words, "--json", str(tmp_path / "x.json")]) == 0
    found = json.loads((tmp_path / "x.json").read_text())
    assert "case:lc" in found["BLEU signature"]
    assert "case:lc" in found["chrF signature"]
    assert found["BLEU"] == pytest.approx(
        BLEU(lowercase=True)
        .corpus_score(["THE CAT SLEEPS", "A DOG"], [["the cat sleeps", "a dog"]])
        .score
    )
