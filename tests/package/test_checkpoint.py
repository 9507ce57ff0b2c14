import copy
import math
import multiprocessing
import os
import pickle
import shutil
import signal

import pytest
import torch
from torch.testing import assert_close

from tests.package.checkpoint_files import change_about, read_about, write_about
from tests.package.copying import copy_batch
from tests.package.limits import held_elsewhere, kill_before, largest_file
from transformer.config import TransformerConfig
from transformer.files import LOCK
from transformer.model import Transformer
from transformer.training import (
    average_checkpoints,
    best_checkpoint,
    checkpoints,
    fit,
    load_checkpoint,
    load_transformer,
    save_checkpoint,
)
from transformer.training.checkpoint import step_of
from transformer.training.objective import paper_optimizer

V = 12
SAME = {"rtol": 0, "atol": 0}  # to the bit
BIAS, ROW = "encoder.layers.0.feed_forward.W_1.bias", "decoder.layers.0.feed_forward.W_2.weight"


def model(seed=0, **changes):
    torch.manual_seed(seed)
    sizes = {"d_model": 16, "d_ff": 16, "n_heads": 2, "max_len": 8, "dropout": 0.2}
    layers = {"n_encoder_layers": 1, "n_decoder_layers": 1}
    return Transformer(TransformerConfig(V, V, **{**sizes, **layers, **changes}))


def batches(i):
    return copy_batch(4, V, min_len=2, max_len=4, generator=torch.Generator().manual_seed(i))


def train(run, m, n_steps, **options):
    cpu = torch.device("cpu")
    usual = {"schedule": lambda n: 1e-3, "save_every": 2, "progress": False, "device": cpu}
    return fit(m, batches, n_steps=n_steps, run=run, **usual | options)


def save(run, m, step, state=None, **options):
    optimizer = paper_optimizer(m.parameters())
    return save_checkpoint(run, m, optimizer, step=step, state=state or {}, **options)


def contents(run):
    """Every file in ``run`` and what is in it, but for the lock, which is empty."""
    return {p.name: p.read_bytes() for p in run.iterdir() if p.is_file() and p.name != LOCK}


def learnt(file):
    """All numbers in a checkpoint that training made."""
    about = read_about(file)
    return about["model"], about["optimizer"]["state_dict"]["state"], about["state"]["losses"]


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    m, run = model(), tmp_path_factory.mktemp("once") / "run"
    train(run, m, 6)
    return m, run


@pytest.fixture
def trained(once, tmp_path):
    """A model after six steps and the folder of its run, both to be changed at will."""
    m, run = once
    return copy.deepcopy(m), shutil.copytree(run, tmp_path / "run")


def train_until_killed(run, n_steps, number):
    kill_before(number, run)
    train(run, model(), n_steps, save_every=1, keep=1)


def test_killed_at_any_moment_of_a_save_it_ends_in_the_same_bits(tmp_path):
    # a fork server: what it forks has torch imported, with what the first update would import,
    # and has done nothing with it
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__, "torch._dynamo"])
    start, whole = tmp_path / "start", tmp_path / "whole"
    train(start, model(), 2, save_every=1, keep=1)
    train(whole, model(), 4)
    expected = learnt(whole / "step-00000004.pt")
    number, saved = 0, set()
    while True:
        number, run = number + 1, shutil.copytree(start, tmp_path / f"killed-{number}")
        process = processes.Process(target=train_until_killed, args=(run, 3, number))
        process.start()
        process.join()
        there = checkpoints(run)
        saved.add(tuple(path.stem[-1] for path in there))
        if process.exitcode == 0:
            break  # it does no more than that
        assert process.exitcode == -signal.SIGKILL
        assert there, "what was saved before is lost"
        for path in there:  # whatever stands there is whole
            load_checkpoint(path, model(seed=1))
        train(run, model(), 4)
        assert_close(learnt(run / "step-00000004.pt"), expected, **SAME)
        assert list(run.glob(".*")) == [run / LOCK], "something is left"
    assert saved == {("2",), ("2", "3"), ("3",)}


def test_restores_weights_moments_step_and_state(trained, tmp_path):
    m, run = trained
    saved, other = checkpoints(run)[-1], model(seed=1)
    optimizer = paper_optimizer(other.parameters())
    step, state = load_checkpoint(saved, other, optimizer)
    assert (step, len(state["losses"])) == (6, 6)
    assert_close(dict(other.named_parameters()), dict(m.named_parameters()), **SAME)
    again = save_checkpoint(tmp_path / "again", other, optimizer, step=6, state=state)
    assert_close(learnt(again), learnt(saved), **SAME)
    loaded = load_transformer(saved)
    assert loaded.config == m.config
    assert not loaded.training
    assert loaded.output.weight is loaded.src_embedding.tokens.weight
    assert_close(loaded(*batches(99)), m.eval()(*batches(99)), **SAME)


class Counting(torch.optim.SGD):
    """Counts its steps in Python, as not all do in tensors."""

    def step(self, closure=None):
        super().step(closure)
        for group in self.param_groups:
            group["weight_decay"] += 0.1  # an option that moves on by itself
            for p in group["params"]:
                self.state[p]["n_steps"] = self.state[p].get("n_steps", 0) + 1
                p.data *= 1 - 1e-3 * self.state[p]["n_steps"]


OPTIMIZERS = {
    "Adam": (torch.optim.Adam, {"fused": True}),
    "AdamW": (torch.optim.AdamW, {"weight_decay": 0.1, "amsgrad": True}),
    "NAdam": (torch.optim.NAdam, {}),
    "ASGD": (torch.optim.ASGD, {}),
    "Adafactor": (torch.optim.Adafactor, {}),
    "SGD": (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    "Adagrad": (torch.optim.Adagrad, {}),  # whose state is there before the first step
    "no state": (torch.optim.SGD, {}),
    "a count in Python": (Counting, {"momentum": 0.9}),
}


@pytest.mark.parametrize(("kind", "options"), OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_any_optimizer_goes_on_to_the_same_bits_in_every_group(kind, options, tmp_path):
    def grouped(m):
        """Two groups of different rates, not in the order of the model; one weight is in none."""
        named = dict(m.named_parameters())
        del named[BIAS]
        few = [named.pop(name) for name in ("encoder.norm.weight", ROW) if name in named]
        groups = [{"params": few, "lr": 1e-2}, {"params": list(named.values())}]
        return kind(groups, lr=1e-3, **options)

    def learn(m, n_steps, run=None):
        return train(run, m, n_steps, optimizer=grouped(m), schedule=None)

    whole, first, second = (model(seed, position="learned").double() for seed in (0, 0, 1))
    start = {name: p.detach().clone() for name, p in whole.named_parameters()}
    losses = learn(whole, 6).losses
    learn(first, 3, tmp_path)
    assert learn(second, 6, tmp_path).losses == losses
    assert_close(dict(second.named_parameters()), dict(whole.named_parameters()), **SAME)
    still = [name for name, p in whole.named_parameters() if torch.equal(p, start[name])]
    assert still == [BIAS]


def test_keeps_the_latest_and_leaves_other_files_alone(tmp_path):
    run = tmp_path / "run"
    (run / "step-best").mkdir(parents=True)
    for name in (mine := ["step-by-step.pt", ".step-00000001.pt", ".transformer-notes"]):
        (run / name).touch()
    (run / ".transformer-step-00000001.pt-1a2b3c4d").touch()  # what a killed process left
    train(run, model(), 7)
    saved = ["step-00000006.pt", "step-00000007.pt"]
    assert sorted(p.name for p in run.iterdir()) == sorted([LOCK, *mine, "step-best", *saved])


# A file that is not what was saved is refused by its name, and nothing changes


def assert_refused(run, message, error=ValueError):
    before, m = contents(run), model(seed=1)
    weights = {name: p.detach().clone() for name, p in m.named_parameters()}
    with pytest.raises(error, match=message):
        train(run, m, 8)
    assert contents(run) == before
    assert_close(dict(m.named_parameters()), weights, **SAME)


def test_a_file_that_is_cut_or_cannot_be_read_is_named(trained):
    _, run = trained
    path = checkpoints(run)[-1]
    data = path.read_bytes()
    for size in (0, 31, 32, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        assert_refused(run, r"step-00000006\.pt is damaged, or no checkpoint")
    path.unlink()
    path.symlink_to(run / "nowhere")
    assert_refused(run, r"No such file.*step-00000006\.pt", FileNotFoundError)


def test_each_bit_counts(trained):
    _, run = trained
    path = checkpoints(run)[-1]
    data = bytearray(path.read_bytes())
    for at in (0, len(data) - 1, *torch.randint(len(data), (40,)).tolist()):
        data[at] ^= 1 << at % 8
        path.write_bytes(data)
        with pytest.raises(ValueError, match=f"^{path} is damaged"):
            load_checkpoint(path, model())
        data[at] ^= 1 << at % 8
    path.write_bytes(data[1:])
    for load in (load_transformer, lambda path: average_checkpoints([path])):
        with pytest.raises(ValueError, match="is damaged"):
            load(path)


class Trap:
    """Whoever unpickles it makes a folder."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def test_nothing_is_run_from_a_file(trained, tmp_path):
    _, run = trained
    path, trap = checkpoints(run)[-1], Trap(tmp_path / "sprung")
    torch.save(trap, path)
    assert_refused(run, r"step-00000006\.pt is damaged, or no checkpoint")
    write_about(path, trap)
    assert_refused(run, "Weights only load failed", pickle.UnpicklingError)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("about", [{"format": "x"}, {"weight": torch.ones(2)}])
def test_what_is_foreign_is_refused_by_name(trained, about):
    _, run = trained
    torch.save(about, checkpoints(run)[-1])
    assert_refused(run, r"step-00000006\.pt is damaged, or no checkpoint of this version$")
    write_about(checkpoints(run)[-1], about)
    assert_refused(run, r"step-00000006\.pt must have the format 'transformer.*', got ")


def test_a_run_of_the_format_before_is_named_rather_than_begun_anew(trained):
    _, run = trained
    (run / "step-00000004.safetensors").touch()
    message = (
        r"step-00000004\.safetensors is of an earlier version of this package, and is not read"
    )
    assert_refused(run, message)
    with pytest.raises(ValueError, match=message):
        best_checkpoint(run)


def test_another_models_checkpoint_is_refused_by_what_differs(trained):
    _, run = trained
    saved = checkpoints(run)[-1]
    changes = {"d_ff": 32, "norm": "pre", "dropout": 0.0, "max_len": 9, "n_heads": 4}
    shown = "d_ff is 16, not 32; dropout is 0.2, not 0.0; max_len is 8, not 9; and 2 more"
    with pytest.raises(ValueError, match=f"of another model: {shown}$"):
        load_checkpoint(saved, model(**changes))
    with pytest.raises(ValueError, match="of another model"):
        load_checkpoint(saved, torch.nn.Linear(2, 2))
    change_about(saved, lambda about: about["config"].update(n_wings=2))
    assert_refused(run, "is of another model: .* unexpected keyword argument 'n_wings'")
    with pytest.raises(ValueError, match=r"is of another model: .* argument 'n_wings'"):
        load_transformer(saved)
    with pytest.raises(ValueError, match=r"another model: .* must be a mapping, not NoneType"):
        load_transformer(save(run, torch.nn.Linear(2, 2), 9))


def test_weights_that_no_such_model_has_are_refused(trained):
    _, run = trained
    change_about(checkpoints(run)[-1], lambda about: about["model"].update({BIAS: torch.zeros(1)}))
    message = rf"step-00000006.pt is of another model: {BIAS} is \(1,\), not \(16,\)$"
    assert_refused(run, message)  # it would broadcast
    with pytest.raises(ValueError, match=message):
        load_transformer(checkpoints(run)[-1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda m: torch.optim.AdamW(m.parameters()), "of another optimizer: Adam, not AdamW"),
        (lambda m: torch.optim.Adam(list(m.parameters())[1:]), "of another Adam: its groups"),
        (lambda m: torch.optim.Adam(reversed(list(m.parameters()))), "of another Adam: its groups"),
        (
            lambda m: torch.optim.Adam([{"params": [p]} for p in m.parameters()]),
            "of another Adam: its groups",
        ),
    ],
)
def test_a_run_goes_on_with_its_optimizer_alone(trained, make, message):
    _, run = trained
    other = model(seed=1)
    optimizer, start = make(other), copy.deepcopy(other.state_dict())
    with pytest.raises(ValueError, match=rf"step-00000006\.pt is {message}"):
        train(run, other, 8, optimizer=optimizer)
    assert_close(other.state_dict(), start, **SAME)
    assert not optimizer.state


def test_what_could_not_be_loaded_is_not_saved_over_a_good_checkpoint(trained):
    m, run = trained
    before = contents(run)
    with pytest.raises(ValueError, match=r"state and optimizer must hold tensors, .* got others$"):
        save(run, m, 9, {"x": Trap(run / "sprung")}, keep=1)
    assert contents(run) == before


def test_a_checkpoint_that_fit_did_not_save_is_not_gone_on_from(tmp_path):
    save(tmp_path, model(), 2)
    with pytest.raises(ValueError, match=r"00002\.pt was not saved by fit: it has no 'lo"):
        train(tmp_path, model(), 4)


# Saving


def test_a_full_disk_leaves_the_checkpoints_that_are_there(trained):
    m, run = trained
    before, saved, optimizer = contents(run), checkpoints(run)[-1], paper_optimizer(m.parameters())
    _, state = load_checkpoint(saved, m, optimizer)
    with (
        largest_file(saved.stat().st_size - 1),
        pytest.raises(OSError, match=r"File too large: '.*step-00000009\.pt'"),
    ):
        save_checkpoint(run, m, optimizer, step=9, state=state)
    assert contents(run) == before


def test_each_weight_keeps_its_type(tmp_path):
    m = model(position="sinusoidal").bfloat16()
    for name, module in m.named_modules():
        if name.endswith("norm"):
            module.float()
    assert len({p.dtype for p in m.parameters()}) == 2
    file = save(tmp_path, m, 2)
    for loaded in (load_transformer(file), average_checkpoints([file, file])):
        assert_close(loaded.state_dict(), m.state_dict(), **SAME)
        assert_close(loaded(*batches(99)), m.eval()(*batches(99)), **SAME)


def test_checkpoints_are_ordered_by_step_not_by_letter(tmp_path):
    for step in (99_999_999, 100_000_000, 5):
        (tmp_path / f"step-{step:08d}.pt").touch()
    assert [step_of(p) for p in checkpoints(tmp_path)] == [5, 99_999_999, 100_000_000]
    assert checkpoints(tmp_path / "nowhere") == []


@pytest.mark.parametrize(("name", "value"), [("keep", 0), ("step", -1)])
def test_bad_numbers_are_refused_before_anything_is_removed(trained, name, value):
    m, run = trained
    before = contents(run)
    with pytest.raises(ValueError, match=f"{name} must be positive, got {value}"):
        save(run, m, **{"step": 9, name: value})
    assert contents(run) == before


def test_a_checkpoint_older_than_a_field_of_the_config_is_of_its_default(trained):
    m, run = trained
    young = ("norm", "n_key_heads", "norm_kind", "feed_forward", "bias", "rope_theta")
    change_about(checkpoints(run)[-1], lambda about: [about["config"].pop(name) for name in young])
    assert load_transformer(checkpoints(run)[-1]).config == m.config
    load_checkpoint(checkpoints(run)[-1], model())


def test_buffers_that_a_model_saves_are_restored(tmp_path):
    def net():
        return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))

    trained, other = net(), net()
    trained(torch.randn(8, 3, generator=torch.Generator().manual_seed(0)))  # moves the means
    load_checkpoint(save(tmp_path, trained, 1), other)
    assert_close(other.state_dict(), trained.state_dict(), **SAME)
    assert other[1].num_batches_tracked == 1


# Of several checkpoints


def save_evaluated(run, values, **options):
    """A checkpoint at each step of ``values``, with what the evaluation gave up to then."""
    m, given = model(), {}
    for step, value in values.items():
        given |= {} if value is None else {step: value}
        save(run, m, step, {"evaluations": given}, **options)
    return [step_of(path) for path in checkpoints(run)]


def test_the_best_checkpoint_is_that_of_the_lowest_evaluation(tmp_path):
    values = {1: math.nan, 2: None, 3: 2.0, 5: 1.0, 7: 1.0, 9: 3.0}
    assert save_evaluated(tmp_path, values, keep=1) == [5, 9]
    assert best_checkpoint(tmp_path) == tmp_path / "step-00000005.pt"
    assert save_evaluated(tmp_path, {10: 0.5}, keep=2) == [9, 10]
    assert best_checkpoint(tmp_path) == tmp_path / "step-00000010.pt"


def test_where_nothing_was_evaluated_the_latest_checkpoint_is_the_best(trained, tmp_path):
    _, run = trained
    assert best_checkpoint(run) == run / "step-00000006.pt"
    with pytest.raises(ValueError, match=r"run must hold a checkpoint, got .*nowhere"):
        best_checkpoint(tmp_path / "nowhere")


def test_the_average_is_that_of_each_weight(tmp_path):
    train(tmp_path, model(), 6, keep=3)
    paths = checkpoints(tmp_path)
    average = average_checkpoints(paths)
    assert not average.training
    loaded = [dict(load_transformer(path).named_parameters()) for path in paths]
    for name, mean in average.named_parameters():
        expected = sum(named[name].double() for named in loaded) / 3
        assert_close(mean, expected.float(), **SAME)
    assert average.output.weight is average.src_embedding.tokens.weight


def test_only_checkpoints_of_one_model_have_an_average(trained, tmp_path):
    _, run = trained
    train(tmp_path / "other", model(d_ff=8), 2)
    paths = [*checkpoints(run), *checkpoints(tmp_path / "other")]
    with pytest.raises(
        ValueError, match=r"other/step-00000002.pt is of another model: d_ff is 8, not"
    ):
        average_checkpoints(paths)
    with pytest.raises(ValueError, match="paths must hold at least one checkpoint, got none"):
        average_checkpoints([])


def test_two_processes_do_not_train_in_one_folder(trained):
    _, run = trained
    with held_elsewhere(run):
        assert_refused(run, r"^another process is training in .*/run$", BlockingIOError)

    def evaluate(m):
        with pytest.raises(BlockingIOError), held_elsewhere(run):  # until training ends
            pass
        raise RuntimeError("no dev set")

    with pytest.raises(RuntimeError, match="no dev set"):
        train(run, model(), 7, evaluate=evaluate)
    with held_elsewhere(run):  # and it is let go when it fails
        pass
