"""``python -m transformer train``, alone and under torchrun, and how all commands end."""

import argparse
import errno
import gzip
import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
import torch

from tests.package.limits import Full, held_elsewhere, largest_file
from tests.package.unchecked import unchecked
from tools.chapters import ROOT
from transformer.commands import evaluate, main, train, train_options
from transformer.commands.options import device
from transformer.commands.run_folder import load, read_settings
from transformer.commands.train_options import OPTIMIZERS
from transformer.config import TransformerConfig
from transformer.data.batches import BucketedBatches
from transformer.data.grammar import grammar_pairs, grammar_vocabularies
from transformer.data.parallel import encode_pairs
from transformer.files import LOCK
from transformer.training import History, evaluate_loss, fit, load_checkpoint
from transformer.training.checkpoint import checkpoints, load_transformer, step_of

QUICK = ["--preset", "tiny", "--device", "cpu", "--quiet", "--batch-size", "8", "--max-len", "24"]
GRAMMAR = ["--pairs", "60", "--steps", "4", "--save-every", "2", *QUICK]
BYTE_PAIRS = ["--vocab-size", "300", "--max-len", "99"]
# torchrun looks for itself by the name of the machine, which need not be known anywhere
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
TORCHRUN += ["--local-addr=127.0.0.1"]


# Python then writes when it is asked to, or at the end, whatever the environment says.
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def state_of(run):
    """What the last checkpoint keeps of its training."""
    last = checkpoints(run)[-1]
    step, state = load_checkpoint(last, load_transformer(last))
    assert step == len(state["losses"])
    return state


def trains(run, *options):
    assert main(["train", "--out", str(run), *options]) == 0
    return state_of(run)


def refused(capsys, *words):
    """The one line that is left of a command, apart from what went before its colon."""
    assert main([str(word) for word in words]) == 2
    [line] = capsys.readouterr().err.splitlines()
    command, _, message = line.partition(": ")
    assert command == f"transformer {words[0]}"
    return message


def contents(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def write_lines(path, lines):
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "grammar"
    with unchecked():  # it decodes 500 sentences; the runs on files are checked
        return run, trains(run, *GRAMMAR)


@pytest.fixture
def files(tmp_path):
    """Two languages that a model learns fast: the second is the first, in capitals."""
    subjects = ["the cat", "a dog", "the black dog", "we", "they", "my sister", "the old man", "I"]
    verbs = ["sleep", "eat", "see a red house", "like him", "never read"]
    lines = [f"{subject} {verb}" for subject in subjects for verb in verbs]
    made = (("src", lines), ("tgt", [line.upper() for line in lines]))
    return [write_lines(tmp_path / f"{name}.gz", text) for name, text in made]


@pytest.fixture
def asked(monkeypatch):
    """What training was asked for, in each command that came to it; none trains."""
    asked = []

    def only_look(model, batches, **options):
        asked.append({"model": model, "batches": batches, **options})
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "fit", only_look)
    return asked


@pytest.fixture
def few(tmp_path):
    """Three pairs to measure on."""
    lines = ["the cat", "a dog", "Ein Hund"]
    return [write_lines(tmp_path / name, lines) for name in ("few.src", "few.tgt")]


@pytest.fixture
def quick(files):
    """Options of a run of a second."""
    options = ["--steps", "4", "--save-every", "2", "--warmup", "2"]
    return ["--train", *files, *QUICK, *BYTE_PAIRS, *options]


def test_trains_on_the_grammar_corpus_and_measures(trained):
    run, state = trained
    assert len(state["losses"]) == 4
    results = json.loads((run / "results.json").read_text())
    assert results["steps"] == 4
    assert results["dev"]["decoding"] == "beam 4, length penalty 0.6"
    assert results["dev"]["sentences"] == 500
    best = min(state["evaluations"].values())
    assert results["dev"]["loss"] == pytest.approx(best, rel=1e-6)
    saved = checkpoints(run)
    assert [step_of(path) for path in saved] == [2, 4]
    assert {*run.iterdir()} == {run / "settings.json", run / "results.json", run / LOCK, *saved}


def test_the_grammar_corpus_is_measured_on_sentences_that_are_held_out(trained):
    run, _ = trained
    results = json.loads((run / "results.json").read_text())
    best = next(
        path for path in checkpoints(run) if f"step {step_of(path)}" == results["checkpoint"]
    )
    model = load_transformer(best)
    losses = {}
    for split in ("train", "test"):
        pairs = [(p.source, p.target) for p in grammar_pairs(500, seed=1, split=split)]
        examples, _ = encode_pairs(pairs, *grammar_vocabularies(), max_len=24)
        batches = BucketedBatches(examples, batch_size=32, shuffle=False)
        with unchecked():
            losses[split] = evaluate_loss(model, batches.epoch(0))
    assert results["dev"]["loss"] == pytest.approx(losses["test"], rel=1e-6)
    assert results["dev"]["loss"] != pytest.approx(losses["train"], rel=1e-4)


def test_says_what_it_does(quick, few, tmp_path, capsys):
    options = ["--dev", *few, "--accumulate", "3", "--batch-size", "7"]
    state = trains(tmp_path / "run", *quick, *options)
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert lines[0].startswith("train: 40 pairs kept, 0 left out; 0 of")
    assert lines[1].startswith("dev: 3 pairs kept, 0 left out; 0 of")
    size = sum(p.numel() for p in load_transformer(checkpoints(tmp_path / "run")[-1]).parameters())
    assert lines[2] == f"{size:,} parameters on cpu; 4 steps, 2 an epoch"
    losses = state["losses"]
    loss = f"{sum(losses) / 4:.3f}"
    assert lines[3].startswith(f"training loss {loss}, the mean of the last 4 steps, after 4 steps")
    assert lines[4].startswith("dev, measured at step ")
    assert lines[7].startswith("BLEU: ")
    assert " beam 4, length penalty 0.6; nrefs:1|case:mixed|" in lines[7]


def test_the_loss_it_tells_is_the_mean_of_the_last_hundred(quick, tmp_path, monkeypatch, capsys):
    history = History([float(n) for n in range(200)])
    monkeypatch.setattr(train, "fit", lambda *args, **options: history)
    assert main(["train", "--out", str(tmp_path / "run"), *quick]) == 0
    told = "training loss 149.500, the mean of the last 100 steps, after 200 steps; "
    assert told in capsys.readouterr().out


def test_a_run_with_other_settings_is_refused_and_kept(quick, tmp_path, capsys):
    run = tmp_path / "run"
    trains(run, *quick)
    before = contents(run)
    capsys.readouterr()
    message = refused(capsys, "train", "--out", run, *quick, "--norm", "pre", "--warmup", "9")
    assert message == f"{run} is a run with other settings: --norm was post, is pre; " + (
        "--warmup was 2, is 9"
    )
    assert contents(run) == before
    settings = json.loads((run / "settings.json").read_text())
    del settings["options"]["norm"]  # as of a run that is older than the option
    (run / "settings.json").write_text(json.dumps(settings))
    trains(run, *quick, "--steps", "5")


@pytest.mark.usefixtures("unchecked")  # decodes the dev set twice
def test_other_sentences_under_the_same_name_are_refused_and_the_same_elsewhere_are_not(
    files, few, quick, tmp_path, capsys
):
    run, before = tmp_path / "run", [Path(file).read_bytes() for file in files]
    trains(run, *quick, "--dev", files[1], files[0])
    lines = [gzip.decompress(data).decode().splitlines() for data in before]
    for file, side, last in zip(files, lines, ("I never r", "eadI NEVER READ"), strict=True):
        write_lines(file, [*side[:-1], last])
    capsys.readouterr()
    message = refused(capsys, "train", "--out", run, *quick)
    assert message == f"{run} is a run with other settings: " + (
        "the sentences to dev on are not those that it began with; "
        "the sentences to train on are not those that it began with"
    )
    moved = [tmp_path / "moved.src.gz", tmp_path / "moved.tgt.gz"]
    for file, data in zip(moved, before, strict=True):
        file.write_bytes(data)
    moved = [str(file) for file in moved]
    trains(run, *quick, "--train", *moved, "--dev", *reversed(moved), "--test", *few)


def test_two_commands_do_not_train_in_one_folder(quick, tmp_path, capsys, asked):
    run = tmp_path / "run"
    run.mkdir()
    with held_elsewhere(run):
        message = refused(capsys, "train", "--out", run, *quick)
    assert message == f"another process is training in {run}"
    assert os.listdir(run) == [LOCK]
    assert asked == []


def test_of_two_that_begin_at_once_in_a_folder_one_is_refused(quick, tmp_path, capsys, monkeypatch):
    run, seen = tmp_path / "run", []

    def meanwhile(seed):  # when ours has read its sentences, and its folder was new
        monkeypatch.undo()
        trains(run, *quick, "--vocab-size", "290")
        seen.append(contents(run))

    monkeypatch.setattr(train, "seed_everything", meanwhile)
    told = refused(capsys, "train", "--out", run, *quick)
    assert told == f"another process has begun a run in {run}"
    assert [contents(run)] == seen


def test_that_checkpoints_are_gone_is_told(quick, tmp_path, capsys):
    run = tmp_path / "run"
    trains(run, *quick)
    for path in checkpoints(run):
        path.unlink()
    capsys.readouterr()
    trains(run, *quick)
    assert capsys.readouterr().out.startswith(f"{run} holds no checkpoint: it begins at step 1\n")


def test_the_last_step_of_a_linear_decay_is_settled_when_it_begins(quick, tmp_path, capsys):
    linear = [*quick, "--schedule", "linear"]
    trains(tmp_path / "run", *linear)
    capsys.readouterr()
    message = refused(capsys, "train", "--out", tmp_path / "run", *linear, "--steps", "5")
    assert message.endswith("--steps was 4, is 5")


def test_a_folder_of_other_things_is_refused_and_kept(quick, tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / "link").symlink_to("nowhere")
    before = contents(tmp_path)
    for out in (tmp_path, tmp_path / "link", tmp_path / "thesis.tex"):
        message = refused(capsys, "train", "--out", out, *quick)
        assert message == f"--out must be a new folder or that of a run, got {out}"
    assert contents(tmp_path) == before


def test_an_empty_folder_is_as_good_as_a_new_one(quick, tmp_path, monkeypatch, capsys):
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    trains(".", *quick, "--steps", "1")
    (tmp_path / "run/settings.json").write_text("[1]")
    capsys.readouterr()
    message = refused(capsys, "train", "--out", ".", *quick)
    assert message.startswith("settings.json is not of a training run: ")


def test_trains_on_files_with_byte_pairs(quick, tmp_path, capsys):
    run = tmp_path / "run"
    sizes = ["--d-model", "24", "--n-heads", "3", "--d-ff", "40"]
    sizes += ["--n-encoder-layers", "1", "--n-decoder-layers", "3", "--dropout", "0.2"]
    kind = ["--norm", "pre", "--position", "rotary"]
    trains(run, *quick, *sizes, *kind)
    assert "train: 40 pairs kept, 0 left out; 0 of" in capsys.readouterr().out
    config = load_transformer(checkpoints(run)[-1]).config
    source, target = load(run).tokenizers
    assert source is target
    assert len(source) == config.src_vocab_size == config.tgt_vocab_size == 300
    for line in ("the black dog sleep", "THE BLACK DOG SLEEP"):  # learned from both languages
        assert len(source.encode(line)) < len(line)
    assert config.share_embeddings
    assert (config.norm, config.position) == ("pre", "rotary")
    assert (config.d_model, config.n_heads, config.d_ff) == (24, 3, 40)
    assert (config.n_encoder_layers, config.n_decoder_layers) == (1, 3)
    assert (config.dropout, config.max_len) == (0.2, 99)
    assert not (run / "results.json").exists()


def test_measures_on_dev_and_test_files(files, few, quick, tmp_path, capsys):
    run = tmp_path / "run"
    measuring = ["--lowercase", "--beam-size", "1", "--tokenize", "char"]
    trains(run, *quick, "--dev", *files[::-1], "--test", *few, *measuring)
    results = json.loads((run / "results.json").read_text())
    assert [results[name]["sentences"] for name in ("dev", "test")] == [40, 3]
    assert results["test"]["decoding"] == "greedy"
    assert "case:lc|eff:no|tok:char" in results["test"]["BLEU signature"]
    assert "case:lc" in results["test"]["chrF signature"]
    printed = capsys.readouterr().out
    assert f"BLEU: {results['test']['BLEU']:.2f}  greedy; nrefs:1|case:lc|" in printed
    trained_on = load(run).tokenizers[0]
    assert trained_on.decode(trained_on.encode("THE")) == "THE"
    assert len(trained_on.encode("the cat")) < len(trained_on.encode("THE CAT"))


def test_the_options_of_training_are_handed_on(quick, tmp_path, asked):
    wanted = {"smoothing": 0.3, "clip_norm": 2.5, "accumulate": 3, "seed": 7, "precision": "bf16"}
    wanted |= {"keep": 5, "save_every": 6}
    words = [str(word) for name, value in wanted.items() for word in (f"--{name}", value)]
    words = [word.replace("_", "-") for word in words]
    assert main(["train", "--out", str(tmp_path / "run"), *quick, *words, "--compile"]) == 130
    wanted |= {"compiled": True, "evaluate_every": 6, "progress": False}
    assert {name: asked[0][name] for name in wanted} == wanted


def test_the_optimizer_is_as_asked_and_a_run_goes_on_with_the_same(quick, tmp_path, asked, capsys):
    run = tmp_path / "run"
    options = ["--optimizer", "adamw", "--weight-decay", "0.25"]
    assert main(["train", "--out", str(run), *quick, *options]) == 130
    assert main(["train", "--out", str(tmp_path / "paper"), *quick]) == 130
    adamw, paper = (call["optimizer"] for call in asked)
    assert type(adamw) is torch.optim.AdamW
    assert adamw.defaults["weight_decay"] == 0.25
    assert (type(paper), paper.defaults["betas"]) == (torch.optim.Adam, (0.9, 0.98))
    for call in asked:
        of_model = {id(p) for p in call["model"].parameters()}
        assert {id(p) for p in call["optimizer"].param_groups[0]["params"]} == of_model
    capsys.readouterr()
    message = refused(capsys, "train", "--out", run, *quick)
    assert message.endswith("--optimizer was adamw, is None; --weight-decay was 0.25, is None")


@pytest.mark.parametrize("optimizer", [[], ["--optimizer", "sgd", "--weight-decay", "0.1"]])
def test_the_same_command_goes_on_and_ends_as_if_it_had_not_stopped(optimizer, quick, tmp_path):
    options = [*quick, *optimizer]
    whole = trains(tmp_path / "whole", *options)
    trains(tmp_path / "run", *options, "--steps", "3")
    assert trains(tmp_path / "run", *options) == whole


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_optimizer_that_is_offered_trains(name):
    layer = torch.nn.Linear(2, 3)
    before = layer.weight.clone()
    optimizer = OPTIMIZERS[name](layer.parameters())
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert not torch.equal(layer.weight, before)


@pytest.mark.usefixtures("unchecked")  # decodes
def test_a_run_that_has_diverged_ends_with_its_results(quick, few, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(evaluate, "evaluate_loss", lambda model, batches: 1000.0)
    run = tmp_path / "run"
    trains(run, *quick, "--dev", *few, "--beam-size", "1")
    assert "loss: 1000.0000 nats a token, perplexity inf" in capsys.readouterr().out
    results = json.loads((run / "results.json").read_text(), parse_constant=pytest.fail)
    assert results["dev"]["perplexity"] is None
    assert results["dev"]["loss"] == 1000


def test_the_number_of_epochs_gives_that_of_steps(files, few, tmp_path):
    options = ["--train", *files, *QUICK, *BYTE_PAIRS, "--epochs", "1.3", "--dev", *few]
    state = trains(tmp_path / "run", *options)
    assert len(state["losses"]) == 7  # 40 sentences by 8, times 1.3, is 6.5
    assert json.loads((tmp_path / "run/results.json").read_text())["steps"] == 7


def test_a_seed_settles_the_corpus_the_first_weights_and_the_order(quick, tmp_path, asked):
    digests, orders = [], []
    for i, seed in enumerate(("0", "1", "1")):
        torch.manual_seed(i)
        run = tmp_path / str(i)
        assert main(["train", "--out", str(run), *GRAMMAR, "--seed", seed]) == 130
        digests.append(read_settings(run).digests)
        assert main(["train", "--out", str(run / "files"), *quick, "--seed", seed]) == 130
        orders.append(asked.pop()["batches"].indices(0))  # of the same sentences
    assert digests[1] == digests[2]
    assert all(digests[0][name] != digests[1][name] for name in ("train", "dev"))
    weights = [told["model"].output.weight for told in asked]
    assert torch.equal(weights[1], weights[2])
    assert not torch.equal(weights[0], weights[1])
    assert orders[0] != orders[1] == orders[2]


@pytest.mark.parametrize(
    ("options", "rates"),
    [
        (["--peak", "0.1"], [0.05, 0.1, 0.1 * (2 / 3) ** 0.5, 0.1 * (2 / 4) ** 0.5]),
        (["--peak", "0.1", "--schedule", "linear"], [0.05, 0.1, 0.1 * 2 / 3, 0.1 / 3]),
        ([], [64**-0.5 * min(n**-0.5, n * 2**-1.5) for n in (1, 2, 3, 4)]),  # the paper's
    ],
)
def test_the_schedule_is_as_asked(options, rates, quick, tmp_path, asked):
    assert main(["train", "--out", str(tmp_path / "run"), *quick, *options]) == 130
    assert [asked[0]["schedule"](n) for n in (1, 2, 3, 4)] == pytest.approx(rates)


@pytest.fixture
def worse_and_worse(monkeypatch):
    """A dev set on which the first checkpoint is the best, as when a model learns by heart."""
    losses = iter([2.0, 3.0, 4.0])
    monkeypatch.setattr(train, "evaluate_loss", lambda model, batches: next(losses))


@pytest.mark.usefixtures("worse_and_worse")
def test_the_best_checkpoint_is_kept_and_measured(quick, few, tmp_path):
    run = tmp_path / "run"
    trains(run, *quick, "--dev", *few, "--steps", "6", "--keep", "1")
    assert [step_of(path) for path in checkpoints(run)] == [2, 6]
    assert json.loads((run / "results.json").read_text())["checkpoint"] == "step 2"
    weights = load(run).model.state_dict()
    best = load_transformer(checkpoints(run)[0]).state_dict()
    assert all(torch.equal(weights[name], best[name]) for name in best)


def test_bad_lines_are_an_error_or_a_counted_skip_as_asked(files, quick, tmp_path, capsys):
    with gzip.open(files[0], "ab") as src, gzip.open(files[1], "ab") as tgt:
        src.write(b"\nbad \xff\n" + b"long " * 300 + b"\n")
        tgt.write(b"empty\nbytes\nline\n")
    message = refused(capsys, "train", "--out", tmp_path / "strict", *quick)
    assert message == f"{files[0]}, line 41: empty"
    assert not (tmp_path / "strict").exists()
    trains(tmp_path / "lenient", *quick, "--on-bad", "skip")
    printed = capsys.readouterr().out
    assert "41 pairs kept, 2 left out (1 empty, 1 not UTF-8)" in printed
    assert "40 pairs kept, 1 left out (1 over 99 tokens)" in printed


def refusals(tmp_path):
    """Options, and how the line begins that refuses them."""
    missing, folder = str(tmp_path / "no.de"), str(tmp_path)
    short, long = (
        write_lines(tmp_path / name, ["a"] * n) for name, n in (("short", 9), ("long", 10))
    )
    yield ["--train", missing, missing], f"{missing}: No such file or directory"
    yield ["--train", folder, folder], f"{folder}: Is a directory"
    yield ["--test", missing, missing], f"{missing}: No such file or directory"
    yield ["--train", short, long], "src_path and tgt_path must have as many lines as each other"
    again = write_lines(tmp_path / "again", ["b"] * 10)
    yield ["--train", long, again, "--vocab-size", "100"], "vocab_size must be at least 260"
    yield ["--train", long, long], f"the source and the target must be two files, got {long} as"
    copy = [write_lines(tmp_path / "copy", ["a"] * 10), again]
    for name in ("--dev", "--test"):
        same = f"{name} must be other sentences than --train, got the same"
        yield ["--train", long, again, name, *copy], same
    yield ["--weight-decay", "1"], "--weight-decay goes with --optimizer"
    yield ["--optimizer", "rprop", "--weight-decay", "1"], "--weight-decay: rprop has none"
    yield ["--length-penalty", "1e308"], "length_penalty must be between -"
    yield ["--n-heads", "3"], "d_model must be a multiple of n_heads, got 64 and 3"
    yield ["--d-model", "12", "--position", "rotary"], "d_k must be even"
    yield ["--precision", "fp16"], "precision must be bf16 or fp32 on cpu, got 'fp16'"
    yield ["--schedule", "linear", "--warmup", "9"], "warmup must be at most n_steps = 4, got 9"
    yield ["--beam-size", "9999"], "beam_size must be at most 300, the size of the target's"
    yield ["--max-len", "4"], f"{tmp_path / 'src.gz'}, {tmp_path / 'tgt.gz'}: pair 1 must fit max_"


def test_what_cannot_be_trained_is_refused_in_a_line_and_leaves_nothing_behind(
    quick, tmp_path, capsys
):
    for options, message in refusals(tmp_path):
        before = contents(tmp_path)
        line = refused(capsys, "train", "--out", tmp_path / "a/run", *quick, *options)
        assert line.startswith(message)
        assert contents(tmp_path) == before
        assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("options", [["--dev", "a", "b"], ["--lowercase"]])
def test_the_grammar_corpus_is_as_it_is(options, tmp_path, capsys):
    message = refused(capsys, "train", "--out", tmp_path / "run", *options)
    assert message == f"{options[0]} goes with --train; the grammar corpus is as it is"


@pytest.mark.usefixtures("unchecked")  # decodes
def test_a_full_disk_leaves_what_was_there_and_is_told_in_a_line(quick, few, tmp_path, capsys):
    run, results, new = (tmp_path / name for name in ("run", "results.json", "new"))
    with largest_file(100):
        message = refused(capsys, "train", "--out", run, *quick, "--dev", *few)
    assert message == f"{run}/settings.json: File too large"
    assert os.listdir(run) == [LOCK]
    trains(run, *quick, "--dev", *few)
    results.write_text(old := '{"run": "a", "decoding": "greedy"}')
    before = contents(run)
    capsys.readouterr()
    with largest_file(100):  # of what is measured at the end; nothing is left to be learned
        assert refused(capsys, "train", "--out", run, *quick, "--dev", *few).startswith(str(run))
        words = ["evaluate", run, *few, "--device", "cpu", "--json", results]
        assert refused(capsys, *words) == f"{results}: File too large"
    size = checkpoints(run)[-1].stat().st_size // 3  # of the weights, without Adam's moments
    with largest_file(size // 2):
        message = refused(capsys, "export", run, "--to", "marian", new)
    assert message == f"{new}/model.safetensors: File too large"
    assert {path.name for path in new.iterdir()} == {"tokenizer.json", "tokenizer_config.json"}
    assert results.read_text() == old
    assert contents(run) == before


@dataclass(frozen=True)
class Younger(TransformerConfig):
    """With more fields, of the types that a field may have."""

    n_wings: int | None = None
    feathers: bool = True
    span: float = 2.5
    colour: Literal["red", "blue"] = "red"


def test_a_new_field_of_the_model_is_an_option_by_itself(monkeypatch):
    parser = argparse.ArgumentParser()
    train_options.add_model(parser, Younger)
    monkeypatch.setattr(train_options, "TransformerConfig", Younger)
    words = ["--n-wings", "2", "--no-feathers", "--span", "3", "--colour", "blue"]
    for given, wanted in ((words, (2, False, 3.0, "blue")), ([], (None, True, 2.5, "red"))):
        args = parser.parse_args(given, argparse.Namespace(train=None))
        config = train_options.model_config(args, src_vocab_size=9, tgt_vocab_size=9)
        assert (config.n_wings, config.feathers, config.span, config.colour) == wanted
        assert config.d_model == 128  # of the preset
    shown = " ".join(parser.format_help().split())
    assert "--span X default: 2.5" in shown
    assert "--n-wings N" in shown
    assert "--colour {red,blue} default: red" in shown
    with pytest.raises(SystemExit):
        parser.parse_args(["--span", "inf"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--batch-size", "2", "--max-tokens", "9"], "not allowed with"),
        (["--position", "nowhere"], "invalid choice: 'nowhere' (choose from 'sinusoidal'"),
        (["--epochs", "nan"], "--epochs: must be positive, got nan"),
        (["--warmup", "0"], "--warmup: must be a whole number from 1 to 2147483647, got 0"),
        (["--tokenize", "moses"], "invalid choice: 'moses' (choose from '13a', 'char', "),
        (["--smoothing", "1"], "must be at least 0 and below 1, got 1"),
        (["--clip-norm", "0"], "must be positive, got 0"),
        (["--seed", "-1"], "--seed: must be a whole number from 0 to 9223372036854775807, got -1"),
        (["--device", "cuda:99"], "--device: must be cpu"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_line(
    options, message, monkeypatch, capsys, tmp_path
):
    monkeypatch.setattr(train, "fit", None)  # they are not to come that far
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--out", str(tmp_path / "run"), *options])
    assert stopped.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("transformer train: ")
    assert message in line
    assert not (tmp_path / "run").exists()


def test_a_device_is_one_that_is_here(monkeypatch):
    monkeypatch.setattr("transformer.commands.options.default_device", lambda: torch.device("xpu"))
    monkeypatch.setattr("torch.accelerator.device_count", lambda: 2)
    for name in ("cpu", "xpu", "xpu:1"):
        assert device(name) == torch.device(name)
    for name in ("xpu:2", "cuda", "meta", "nowhere"):
        with pytest.raises(argparse.ArgumentTypeError, match=f"or xpu:0 to xpu:1; got '{name}'"):
            device(name)


# How commands end


@pytest.fixture
def fails_with(monkeypatch, tmp_path):
    """The status of a command in which ``error`` comes up."""

    def fails_with(error, *options):
        def fail(*args, **kwargs):
            raise error

        monkeypatch.setattr(train, "grammar_pairs", fail)
        return main(["train", "--out", str(tmp_path / "run"), *options])

    return fails_with


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FloatingPointError("the loss of step 9 is nan"), "the loss of step 9 is nan"),
        (ValueError("x must be one,\ngot two"), "x must be one, got two"),
        (OSError(errno.ENOSPC, "No space left", "a/b"), "a/b: No space left"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 bytes\nat: x.cpp"),
            "out of memory; a smaller batch or model needs less "
            "(DefaultCPUAllocator: can't allocate memory: 9 bytes)",
        ),
        (
            torch.OutOfMemoryError("CUDA out of memory.\nTried"),
            "out of memory; a smaller batch or model needs less (CUDA out of memory.)",
        ),
    ],
)
def test_what_files_and_numbers_lead_to_is_told_in_a_line(error, message, fails_with, capsys):
    assert fails_with(error) == 2
    assert capsys.readouterr().err == f"transformer train: {message}\n"
    with pytest.raises(type(error)):
        fails_with(error, "--debug")


@pytest.mark.parametrize("error", [RuntimeError("x"), KeyError("x")])
def test_an_error_of_the_program_keeps_its_traceback(error, fails_with):
    with pytest.raises(type(error)):
        fails_with(error)


def test_an_interrupt_before_the_first_step_says_so(quick, tmp_path, asked, capsys):
    assert main(["train", "--out", str(tmp_path / "run"), *quick]) == 130
    line = "transformer train: stopped; nothing was saved; the same command goes on\n"
    assert capsys.readouterr().err == line


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_saves_the_step_and_says_so(quick, tmp_path, monkeypatch, capsys):
    def stopped(model, batches, **options):
        def stops(i):
            if i == 2:
                signal.raise_signal(signal.SIGINT)
            return batches(i)

        return fit(model, stops, **options)

    monkeypatch.setattr(train, "fit", stopped)
    run = tmp_path / "run"
    assert main(["train", "--out", str(run), *quick, "--save-every", "99"]) == 130
    told = f"transformer train: stopped; step 3 is saved in {run}; the same command goes on\n"
    assert capsys.readouterr().err == told
    assert [step_of(path) for path in checkpoints(run)] == [3]
    monkeypatch.undo()
    assert len(trains(run, *quick)["losses"]) == 4


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_ends_a_command_from_outside_ends_it_after_a_save(number, quick, tmp_path):
    run = tmp_path / "run"
    options = [*quick, "--steps", "99999", "--save-every", "50000"]
    options.remove("--quiet")
    command = [sys.executable, "-m", "transformer", "train", "--out", str(run), *options]
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as process:
        told = b""
        while b"loss=" not in told:  # the bar's, when steps are done
            told += (read := process.stderr.read(64))
            assert read, told
        process.send_signal(number)
        process.stderr.read()
    assert process.returncode == -number
    [step] = [step_of(path) for path in checkpoints(run)]
    assert 1 <= step < 50000


def test_nothing_is_lost_where_standard_error_is_full(
    trained, quick, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(Full(), write_through=True))
    quick.remove("--quiet")
    trains(tmp_path / "run", *quick)
    capsys.readouterr()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"the cat\n\xff\nthe dog\n")))
    assert main(["translate", str(trained[0]), "--on-bad", "skip", "--device", "cpu"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    with pytest.raises(SystemExit, match="2"):
        main(["train"])
    assert main(["train", "--out", str(tmp_path)]) == 2


def test_a_closed_pipe_ends_in_silence(trained):
    run, _ = trained
    command = [sys.executable, "-m", "transformer", "translate", str(run), "--batch-size", "1"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, cwd=ROOT, env=BUFFERED, **pipes) as process:
        process.stdout.close()
        process.stdin.write(b"the cat\n" * 9)
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_two_processes_under_torchrun_learn_as_one_with_twice_the_batch(quick, few, tmp_path):
    # at the paper's rate for so short a warm-up, what rounding differs in grows from step to step
    options = [*quick, "--dev", *few, "--steps", "8", "--dropout", "0", "--peak", "1e-3"]
    one = trains(tmp_path / "one", *options, "--batch-size", "16")
    command = [*TORCHRUN, "-m", "transformer", "train", "--out", str(tmp_path / "two")]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    two = state_of(tmp_path / "two")
    assert one["losses"] == pytest.approx(two["losses"], abs=1e-4)
    assert done.stdout.count("train: 40 pairs") == 1
    assert done.stdout.count("parameters on cpu") == 1
    assert json.loads((tmp_path / "two/results.json").read_text())["steps"] == 8


def test_under_torchrun_a_refusal_is_told_once(quick, tmp_path, capfd, monkeypatch):
    command = [*TORCHRUN, "-m", "transformer", "train", "--out", str(tmp_path / "run"), *quick]
    done = subprocess.run([*command, "--n-heads", "3"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.count("transformer train: d_model must be a multiple of n_heads") == 1
    assert "transformer/commands" not in done.stderr  # no traceback of ours
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(SystemExit):
        main(["train", "--out", "x", "--steps", "none"])
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ([], (16, 4)),  # as many sentences a step as before, of four lengths
        (["--batch-size", "8"], (8, 1)),
        (["--max-tokens", "9999"], (40, 1)),
        (["--accumulate", "2"], (16, 2)),
    ],
)
def test_a_step_has_batches_of_several_lengths_unless_their_size_is_given(
    options, sizes, files, tmp_path, asked
):
    given = [*QUICK[:5], *BYTE_PAIRS, *options]
    assert main(["train", "--out", str(tmp_path / "run"), "--train", *files, *given]) == 130
    batches = asked[0]["batches"]
    n_sentences = max(len(batches(i).src) for i in range(len(batches)))
    assert (n_sentences, asked[0]["accumulate"]) == sizes


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_closed_stream_stops_nothing(closed, monkeypatch):
    monkeypatch.setattr(sys, closed, None)
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--help"])
    assert stopped.value.code == 0
