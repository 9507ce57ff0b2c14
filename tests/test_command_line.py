"""``python -m transformer.training`` and ``transformer.decoding.translate``, alone and under torchrun."""

import gzip
import io
import json
import subprocess
import sys

import pytest

from tools.chapters import ROOT
from transformer import translate as translate_module
from transformer.data.grammar import grammar_pairs
from transformer.training.__main__ import main
from transformer.training.checkpoint import checkpoints, load_transformer
from transformer.decoding.translate import load_tokenizers, translate

QUICK = ["--preset", "tiny", "--device", "cpu", "--quiet", "--batch-size", "8", "--max-len", "24"]
GRAMMAR = ["--pairs", "60", "--steps", "4", "--save-every", "2", *QUICK]


def train(run, *options):
    main(["--out", str(run), *options])
    return json.loads((checkpoints(run)[-1] / "state.json").read_text())


def contents(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "grammar"
    return run, train(run, *GRAMMAR)


@pytest.fixture
def files(tmp_path):
    """Two languages that a model learns fast: the second is the first, in capitals."""
    lines = [" ".join(pair.source) for pair in grammar_pairs(40, seed=0)]
    paths = []
    for name, made in (("src", lines), ("tgt", [line.upper() for line in lines])):
        paths.append(str(tmp_path / f"{name}.gz"))
        with gzip.open(paths[-1], "wt", encoding="utf-8") as file:
            file.write("\n".join(made) + "\n")
    return paths


def test_trains_on_the_grammar_corpus_and_measures(trained, capsys):
    run, about = trained
    assert about["step"] == 4
    assert len(about["state"]["losses"]) == 4
    assert set(about["state"]["evaluations"]) == {"2", "4"}
    results = json.loads((run / "results.json").read_text())
    assert results.keys() >= {"loss", "perplexity", "exact match", "BLEU"}
    assert results["loss"] == pytest.approx(about["state"]["evaluations"]["4"], rel=1e-6)
    assert {p.name for p in run.iterdir()} == {
        *("settings.json", "source.json", "target.json", "results.json"),
        *("step-00000002", "step-00000004"),
    }


def test_the_same_command_goes_on_and_ends_as_if_it_had_not_stopped(trained, tmp_path):
    _, whole = trained
    train(tmp_path / "run", *GRAMMAR, "--steps", "3")
    again = train(tmp_path / "run", *GRAMMAR)
    assert again["state"]["losses"] == whole["state"]["losses"]


def test_a_run_with_other_settings_is_refused_and_kept(trained):
    run, _ = trained
    before = contents(run)
    with pytest.raises(
        ValueError, match="other settings: --norm was post, is pre; --seed was 0, is 1"
    ):
        train(run, *GRAMMAR, "--norm", "pre", "--seed", "1")
    assert contents(run) == before


def test_a_folder_of_other_things_is_refused_and_kept(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="--out must be a new folder or that of a run"):
        train(tmp_path, *GRAMMAR)
    assert contents(tmp_path) == {(tmp_path / "thesis.tex").relative_to(tmp_path): b"years of work"}


def test_trains_on_files_with_byte_pairs(files, tmp_path, capsys):
    run = tmp_path / "run"
    options = ["--train", *files, "--dev", *files, "--vocab-size", "300", "--steps", "2"]
    train(
        run,
        *options,
        *QUICK,
        "--max-len",
        "99",
        "--lowercase",
        "--norm",
        "pre",
        "--position",
        "rotary",
    )
    printed = capsys.readouterr().out
    assert "train: 40 pairs kept, 0 left out; 0 of" in printed
    assert "BLEU" in printed
    model = load_transformer(checkpoints(run)[-1])
    source, target = load_tokenizers(run)
    assert source is target
    assert len(source) == model.config.src_vocab_size == model.config.tgt_vocab_size == 300
    assert model.config.share_embeddings
    assert (model.config.norm, model.config.position) == ("pre", "rotary")


def test_bad_lines_are_an_error_or_a_counted_skip_as_asked(files, tmp_path, capsys):
    with gzip.open(files[0], "ab") as src, gzip.open(files[1], "ab") as tgt:
        src.write(b"\nbad \xff\n" + b"long " * 300 + b"\n")
        tgt.write(b"empty\nbytes\nline\n")
    options = ["--train", *files, "--vocab-size", "300", "--steps", "1", *QUICK, "--max-len", "99"]
    with pytest.raises(ValueError, match=r"src\.gz, line 41: empty"):
        train(tmp_path / "strict", *options)
    assert not (tmp_path / "strict").exists()
    train(tmp_path / "lenient", *options, "--on-bad", "skip")
    printed = capsys.readouterr().out
    assert "41 pairs kept, 2 left out (1 empty, 1 not UTF-8)" in printed
    assert "40 pairs kept, 1 left out (1 over 99 tokens)" in printed


def test_a_long_sentence_to_measure_on_is_left_out_as_asked(files, tmp_path, capsys):
    long = [str(tmp_path / name) for name in ("long.src", "long.tgt")]
    for path in long:
        with open(path, "w") as file:
            file.write("the cat\n" + "the " * 99 + "\n")
    options = ["--train", *files, "--dev", *long, "--vocab-size", "300", "--steps", "1", *QUICK]
    train(tmp_path / "run", *options, "--max-len", "60", "--on-bad", "skip", "--lowercase")
    assert "1 pairs kept, 1 left out (1 over 60 tokens)" in capsys.readouterr().out
    assert json.loads((tmp_path / "run/results.json").read_text())["steps"] == 1
    before = translated(tmp_path / "run", "the cat")
    assert translated(tmp_path / "run", "The CAT") == before


def translated(run, line):
    with pytest.MonkeyPatch.context() as patch:
        out = io.StringIO()
        patch.setattr(sys, "stdin", io.StringIO(line + "\n"))
        patch.setattr(sys, "stdout", out)
        translate_module.main([str(run), "--device", "cpu"])
        return out.getvalue()


def test_an_empty_folder_is_as_good_as_a_new_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train(".", *GRAMMAR, "--steps", "1")
    assert (tmp_path / "settings.json").exists()
    (tmp_path / "settings.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"settings.json is not of a training run"):
        train(".", *GRAMMAR, "--steps", "1")


def test_files_of_unequal_length_are_refused(files, tmp_path):
    with gzip.open(files[0], "ab") as src:
        src.write(b"one more\n")
    with pytest.raises(ValueError, match=r"as many lines as each other, got 41 in .* and 40 in"):
        train(tmp_path / "run", "--train", *files, *QUICK)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dev", "a", "b"], "--dev goes with --train"),
        (["--batch-size", "2", "--max-tokens", "9"], "not allowed with"),
        (["--preset", "huge"], "invalid choice"),
        (["--warmup", "0"], "must be at least 1, got 0"),
        (["--batch-size", "0"], "must be at least 1, got 0"),
        (["--dropout", "2"], "must be at least 0 and below 1, got 2"),
        (["--clip-norm", "0"], "must be positive, got 0"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message, capsys, tmp_path):
    with pytest.raises(SystemExit) as stopped:
        main(["--out", str(tmp_path / "run"), *options])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_help_names_every_option():
    command = [sys.executable, "-m", "transformer.training", "--help"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for option in ("--train", "--dev", "--max-tokens", "--accumulate", "--precision", "torchrun"):
        assert option in shown


def test_two_processes_under_torchrun_learn_as_one_with_twice_the_batch(tmp_path):
    options = ["--steps", "8", "--dropout", "0", "--pairs", "200", "--save-every", "8"]
    one = train(tmp_path / "one", *GRAMMAR, *options, "--batch-size", "16")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += ["-m", "transformer.training", "--out", str(tmp_path / "two"), *GRAMMAR, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    two = json.loads((tmp_path / "two/step-00000008/state.json").read_text())
    assert one["state"]["losses"] == pytest.approx(two["state"]["losses"], abs=1e-4)
    assert done.stdout.count("train: 200 pairs") == 1


# transformer.decoding.translate


def test_translates_in_order_with_empty_lines_where_they_were(trained):
    run, _ = trained
    model, tokenizers = load_transformer(checkpoints(run)[-1]), load_tokenizers(run)
    lines = [" ".join(pair.source) for pair in grammar_pairs(9, seed=5)]
    lines[3:3] = ["", "   "]
    together = translate(lines, model, *tokenizers, max_len=12, batch_size=4)
    alone = [translate([line], model, *tokenizers, max_len=12)[0] for line in lines]
    assert together == alone
    assert together[3:5] == ["", ""]
    assert all(together[:3])
    assert translate([], model, *tokenizers, max_len=12) == []
    with pytest.raises(ValueError, match="must be a list of sentences, got the str 'the cat'"):
        translate("the cat", model, *tokenizers)
    with pytest.raises(ValueError, match="max_len must be positive, got 0"):
        translate(lines, model, *tokenizers, max_len=0)
    beams = translate(lines, model, *tokenizers, max_len=12, beam_size=3)
    assert len(beams) == len(lines)
    assert beams != together


def test_a_sentence_too_long_is_named(trained):
    run, _ = trained
    model, tokenizers = load_transformer(checkpoints(run)[-1]), load_tokenizers(run)
    lines = ["the cat", "the " * 24]
    with pytest.raises(
        ValueError, match=r"sentences\[1\] must have no more than 24 tokens, got 25"
    ):
        translate(lines, model, *tokenizers, max_len=5)


def test_the_command_translates_standard_input(trained, monkeypatch, capsys, tmp_path):
    run, _ = trained
    monkeypatch.setattr(sys, "stdin", io.StringIO("the cat sleeps\n\nthe dog\n"))
    translate_module.main([str(run), "--beam-size", "1", "--device", "cpu"])
    printed = capsys.readouterr().out.split("\n")
    assert len(printed) == 4
    assert printed[0]
    assert printed[1] == ""
    with pytest.raises(SystemExit):
        translate_module.main([str(tmp_path)])
    assert "holds no checkpoint" in capsys.readouterr().err
