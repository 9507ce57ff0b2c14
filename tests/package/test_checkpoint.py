import copy
import json
import math
import multiprocessing
import os
import pickle
import shutil
import signal
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from tests.package.copying import copy_batch
from tests.package.limits import largest_file
from transformer.config import TransformerConfig
from transformer.files import LOCK, only_writer
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
from transformer.training.objective import paper_optimizer

FILES = ("model.safetensors", "optimizer.safetensors", "state.json")
V = 12


def model(seed=0, **changes):
    torch.manual_seed(seed)
    sizes = {"d_model": 16, "d_ff": 16, "n_heads": 2, "max_len": 8, "dropout": 0.2}
    layers = {"n_encoder_layers": 1, "n_decoder_layers": 1}
    return Transformer(TransformerConfig(V, V, **{**sizes, **layers, **changes}))


def batches(i):
    return copy_batch(4, V, min_len=2, max_len=4, generator=torch.Generator().manual_seed(i))


def train(run, m, n_steps, **options):
    cpu = torch.device("cpu")
    options = {"save_every": 2, "progress": False, "device": cpu, **options}
    return fit(m, batches, n_steps=n_steps, schedule=lambda n: 1e-3, run=run, **options)


def save(run, m, step, state=None, **options):
    optimizer = paper_optimizer(m.parameters())
    return save_checkpoint(run, m, optimizer, step=step, state=state or {}, **options)


def contents(run):
    """Every file below ``run`` and what is in it, but for the lock, which is empty."""
    files = (p for p in run.rglob("*") if p.is_file() and p.name != LOCK)
    return {str(p.relative_to(run)): p.read_bytes() for p in files}


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
    """Trains, and is killed before the ``number``-th thing that it does to a file of ``run``."""
    left = number

    def count(event, arguments):
        nonlocal left
        if any(isinstance(x, str | Path) and str(run) in str(x) for x in arguments):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    train(run, model(), n_steps, save_every=1, keep=1)


def test_killed_at_any_moment_of_a_save_it_ends_in_the_same_bits(tmp_path):
    # a fork server: what it forks has torch imported, with what the first update would import,
    # and has done nothing with it
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__, "torch._dynamo"])
    start, whole = tmp_path / "start", tmp_path / "whole"
    train(start, model(), 2, save_every=1, keep=1)
    train(whole, model(), 4)
    number, saved = 0, set()
    while True:
        number, run = number + 1, shutil.copytree(start, tmp_path / f"killed-{number}")
        process = processes.Process(target=train_until_killed, args=(run, 3, number))
        process.start()
        process.join()
        if process.exitcode == 0:
            break  # it does no more than that
        assert process.exitcode == -signal.SIGKILL
        there = checkpoints(run)
        assert there, "what was saved before is lost"
        for path in there:  # whatever stands there is whole
            load_checkpoint(path, model(seed=1))
        saved.add(tuple(path.name[-1] for path in there))
        train(run, model(), 4)
        for file in FILES:
            assert (
                contents(run)[f"step-00000004/{file}"] == contents(whole)[f"step-00000004/{file}"]
            )
        assert not list(run.glob(".[!l]*")), "something is left"
    assert saved == {("2",), ("2", "3"), ("3",)}


def test_restores_weights_moments_step_and_state(trained, tmp_path):
    m, run = trained
    saved, other = checkpoints(run)[-1], model(seed=1)
    optimizer = paper_optimizer(other.parameters())
    step, state = load_checkpoint(saved, other, optimizer)
    assert (step, len(state["losses"])) == (6, 6)
    assert_close(dict(other.named_parameters()), dict(m.named_parameters()), rtol=0, atol=0)
    again = save_checkpoint(tmp_path / "again", other, optimizer, step=6, state=state)
    assert contents(again) == contents(saved)
    loaded = load_transformer(saved)
    assert loaded.config == m.config
    assert not loaded.training
    assert_close(loaded(*batches(99)), m.eval()(*batches(99)), rtol=0, atol=0)


def test_moments_go_to_the_parameters_that_they_are_of_in_every_group(tmp_path):
    m, other = model(), model(seed=1)

    def groups(of):
        named = dict(of.named_parameters())
        few = [named.pop(name) for name in ("output.weight", BIAS) if name in named]
        return torch.optim.Adam([{"params": few}, {"params": list(named.values())}], lr=1e-3)

    first, second = groups(m), groups(other)
    m(*batches(0)).sum().backward()
    first.step()
    load_checkpoint(save_checkpoint(tmp_path, m, first, step=1, state={}), other, second)
    for mine, theirs in zip(m.parameters(), other.parameters(), strict=True):
        assert_close(second.state[theirs], first.state[mine], rtol=0, atol=0)


def test_tables_that_are_shared_stay_shared(trained):
    _, run = trained
    m = load_transformer(checkpoints(run)[-1])
    assert m.output.weight is m.src_embedding.tokens.weight
    names = load_file(checkpoints(run)[-1] / FILES[0]).keys()
    assert "output.weight" not in names
    assert len(names) == len(list(m.named_parameters()))


def test_keeps_the_latest_and_leaves_other_files_alone(tmp_path):
    run = tmp_path / "run"
    (run / "step-best").mkdir(parents=True)
    (run / "notes.txt").write_text("mine")
    for left in (".writing-123", ".removing-step-00000001"):
        (run / left).mkdir()
        (run / left / "state.json").write_text("{}")
    train(run, model(), 7)
    found = sorted(p.name for p in run.iterdir())
    assert found == [LOCK, "notes.txt", "step-00000006", "step-00000007", "step-best"]


# A file that is not what was saved is refused by its name, and nothing changes


def assert_refused(run, message, error=ValueError):
    before, m = contents(run), model(seed=1)
    weights = {name: p.detach().clone() for name, p in m.named_parameters()}
    with pytest.raises(error, match=message):
        train(run, m, 8)
    assert contents(run) == before
    assert_close(dict(m.named_parameters()), weights, rtol=0, atol=0)


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_is_cut_missing_or_cannot_be_read_is_named(trained, file):
    _, run = trained
    path = checkpoints(run)[-1] / file
    data = path.read_bytes()
    for share in (0.0, 0.01, 0.5, 0.99):
        path.write_bytes(data[: int(len(data) * share)])
        assert_refused(run, rf"step-00000006/{file} is ")
    path.unlink()
    assert_refused(run, rf"No such file.*step-00000006/{file}", FileNotFoundError)
    path.mkdir()  # which is no damage
    assert_refused(run, rf"Is a directory: .*step-00000006/{file}", IsADirectoryError)


class Trap:
    """Whoever unpickles it makes a folder."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("file", FILES)
def test_nothing_is_unpickled(trained, file, tmp_path):
    _, run = trained
    path = checkpoints(run)[-1] / file
    path.write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    assert_refused(run, rf"step-00000006/{file} is ")
    torch.save(Trap(tmp_path / "sprung"), path)
    assert_refused(run, rf"step-00000006/{file} is ")
    assert not (tmp_path / "sprung").exists()


ABOUT = b'{"format": "transformer.training.checkpoint 1", "step": %s, "config": %s, "state": %s}'


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"format": "x"}', ".*format"),
        (b"[1]", ".*format"),
        (b"[" * 10**5, "RecursionError"),
        (ABOUT % (b"true", b"{}", b"{}"), ".*its step must be of type int"),
        (ABOUT % (b"6", b"[]", b"{}"), "its config is no object"),
        (ABOUT % (b"6", b"{}", b"[]"), ".*its state must be of type dict"),
    ],
)
def test_a_foreign_state_is_refused_by_name(trained, data, message):
    _, run = trained
    (checkpoints(run)[-1] / FILES[2]).write_bytes(data)
    assert_refused(run, f"step-00000006/state.json is not a checkpoint of this package: {message}")


def test_a_checkpoint_under_another_name_is_refused(trained):
    _, run = trained
    (run / "step-00000006").rename(run / "step-00000007")
    assert_refused(run, "state.json must be of step 7, as its folder, got 6")


def test_another_models_checkpoint_is_refused_by_what_differs(trained):
    _, run = trained
    saved = checkpoints(run)[-1]
    changes = {"d_ff": 32, "norm": "pre", "dropout": 0.0, "max_len": 9, "n_heads": 4}
    shown = "d_ff is 16, not 32; dropout is 0.2, not 0.0; max_len is 8, not 9; and 2 more"
    with pytest.raises(ValueError, match=f"of another model: {shown}$"):
        load_checkpoint(saved, model(**changes))
    with pytest.raises(ValueError, match="of another model"):
        load_checkpoint(saved, torch.nn.Linear(2, 2))
    change_state(run, lambda about: about["config"].update(n_wings=2))
    assert_refused(run, "is of another model: TransformerConfig has no field n_wings")
    with pytest.raises(ValueError, match=r"holds no Transformer: .* has no field n_wings"):
        load_transformer(saved)


BIAS = "encoder.layers.0.feed_forward.W_1.bias"


def change_tensor(run, file, name, tensor):
    path = checkpoints(run)[-1] / file
    save_file(load_file(path) | {name: tensor}, path)


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (torch.zeros(1), rf"is of another model: {BIAS} is \(1,\), not \(16,\)$"),  # broadcasts
        (torch.zeros(16, dtype=torch.int32), f"is of another model: {BIAS} is int32, not float32$"),
        (torch.tensor([0.0] * 15 + [math.nan]), f"must hold finite numbers, .* in {BIAS}$"),
    ],
)
def test_weights_that_no_such_model_has_are_refused(trained, tensor, message):
    _, run = trained
    change_tensor(run, FILES[0], BIAS, tensor)
    assert_refused(run, f"step-00000006/model.safetensors {message}")
    with pytest.raises(ValueError, match=message):
        load_transformer(checkpoints(run)[-1])


@pytest.mark.parametrize(
    ("key", "tensor", "message"),
    [
        ("exp_avg", torch.full((16,), math.nan), "must hold finite numbers, got others in"),
        ("exp_avg_sq", torch.tensor([1.0] * 15 + [-1e-9]), "must hold no negative number in"),
        ("exp_avg", torch.zeros(1), "is of another model: "),
        ("step", torch.tensor(0.5), "must hold a number of steps in"),
    ],
)
def test_moments_that_no_adam_has_are_refused(trained, key, tensor, message):
    _, run = trained
    change_tensor(run, FILES[1], f"{BIAS}:{key}", tensor)
    assert_refused(run, rf"step-00000006/optimizer.safetensors {message}.*W_1\.bias:{key}")


def test_adam_may_have_taken_fewer_steps_than_the_training(trained):
    _, run = trained  # as after an overflow in half precision; and second moments may be 0
    change_tensor(run, FILES[1], f"{BIAS}:step", torch.tensor(0.0))
    change_tensor(run, FILES[1], f"{BIAS}:exp_avg_sq", torch.zeros(16))
    train(run, model(seed=1), 7)


def change_state(run, change):
    """Edits the object of the last checkpoint's state.json."""
    file = checkpoints(run)[-1] / FILES[2]
    about = json.loads(file.read_text())
    change(about)
    file.write_text(json.dumps(about))


SCALER = {
    **{"scale": 65536.0, "growth_factor": 2.0, "backoff_factor": 0.5},
    **{"growth_interval": 2000, "_growth_tracker": 3},
}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("losses", None, "a list in state.losses, got None"),
        ("losses", [1.0] * 5, "6 finite numbers, one a step in state.losses, got 5"),
        ("losses", [1.0] * 5 + [math.nan], "6 finite numbers"),
        ("evaluations", {"7": 1.0}, "numbers, by steps from 1 to 6 in state.evaluations"),
        ("evaluations", {"2": "x"}, "numbers, by steps from 1 to 6"),
        ("scaler", {"scale": 1.0}, "the numbers of a GradScaler"),
        ("scaler", SCALER | {"scale": 0.0}, "the numbers of a GradScaler"),
    ],
)
def test_a_state_that_no_training_leaves_is_refused_by_its_key(trained, key, value, message):
    _, run = trained
    change_state(run, lambda about: about["state"].update({key: value}))
    assert_refused(run, f"step-00000006/state.json must hold {message}")


def test_a_scale_that_a_training_leaves_is_not_refused(trained):
    _, run = trained
    change_state(run, lambda about: about["state"].update(scaler=SCALER))
    train(run, model(seed=1), 7)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"d_model": 2**40}, "cannot be"),
        ({"n_encoder_layers": 10**9}, "tensors are not of .*'n_encoder_layers': 1000000000"),
        ({"max_len": 10**12}, "a model of .* parameters needs at least .* [TP]B, and cpu has"),
    ],
)
def test_a_huge_size_is_refused_before_memory_is_asked_for(trained, sizes, message):
    _, run = trained
    change_state(run, lambda about: about["config"].update(sizes))
    with pytest.raises(ValueError, match=message):
        load_transformer(checkpoints(run)[-1])


# Saving


@pytest.mark.parametrize("file", FILES)  # of which each is larger than those written before it
def test_a_full_disk_leaves_the_checkpoints_that_are_there(trained, file):
    m, run = trained
    before, saved, optimizer = contents(run), checkpoints(run)[-1], paper_optimizer(m.parameters())
    _, state = load_checkpoint(saved, m, optimizer)
    with (
        largest_file((saved / file).stat().st_size - 1),
        pytest.raises(OSError, match=r"step-00000009 was not saved: .*File too large"),
    ):
        save_checkpoint(run, m, optimizer, step=9, state=state)
    assert contents(run) == before


def test_a_save_that_fails_leaves_nothing_behind(tmp_path):
    with pytest.raises(TypeError, match="not JSON serializable"):
        save(tmp_path, model(), 1, {"x": {1, 2}})
    assert list(tmp_path.iterdir()) == []


def test_a_step_that_is_saved_already_is_not_overwritten(trained):
    m, run = trained
    before = contents(run)
    with pytest.raises(OSError, match="step-00000006"):
        save(run, m, 6)
    assert contents(run) == before


def test_checkpoints_are_ordered_by_step_not_by_letter(tmp_path):
    for step in (99_999_999, 100_000_000, 5):
        os.makedirs(tmp_path / f"step-{step:08d}")
    assert [int(p.name[5:]) for p in checkpoints(tmp_path)] == [5, 99_999_999, 100_000_000]
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
    change_state(run, lambda about: [about["config"].pop(name) for name in young])
    assert load_transformer(checkpoints(run)[-1]).config == m.config
    load_checkpoint(checkpoints(run)[-1], model())


def test_a_checkpoint_keeps_every_choice_of_its_model(tmp_path):
    choices = {"n_key_heads": 1, "norm_kind": "rms", "feed_forward": "swiglu", "bias": False}
    m = model(position="rotary", rope_theta=50.0, norm_eps=1e-3, pad_id=None, **choices)
    train(tmp_path, m, 2)
    again = load_transformer(checkpoints(tmp_path)[-1])
    assert again.config == m.config
    src = torch.randint(V, (3, 5), generator=torch.Generator().manual_seed(0))
    assert torch.equal(again(src, src), m.eval()(src, src))


def test_buffers_that_a_model_saves_are_restored(tmp_path):
    def net():
        return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))

    trained, other = net(), net()
    trained(torch.randn(8, 3, generator=torch.Generator().manual_seed(0)))  # moves the means
    load_checkpoint(save(tmp_path, trained, 1), other)
    assert_close(other.state_dict(), trained.state_dict(), rtol=0, atol=0)
    assert other[1].num_batches_tracked == 1


# Of several checkpoints


def save_evaluated(run, values, **options):
    """A checkpoint at each step of ``values``, with what the evaluation gave up to then."""
    m, given = model(), {}
    for step, value in values.items():
        given |= {} if value is None else {str(step): value}
        save(run, m, step, {"evaluations": given}, **options)
    return [int(path.name[5:]) for path in checkpoints(run)]


def test_the_best_checkpoint_is_that_of_the_lowest_evaluation(tmp_path):
    values = {1: math.nan, 2: None, 3: 2.0, 5: 1.0, 7: 1.0, 9: 3.0}
    assert save_evaluated(tmp_path, values, keep=1) == [5, 9]
    assert best_checkpoint(tmp_path) == tmp_path / "step-00000005"
    assert save_evaluated(tmp_path, {10: 0.5}, keep=2) == [9, 10]
    assert best_checkpoint(tmp_path) == tmp_path / "step-00000010"


def test_where_nothing_was_evaluated_the_latest_checkpoint_is_the_best(trained, tmp_path):
    _, run = trained
    assert best_checkpoint(run) == run / "step-00000006"
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
        assert_close(mean, expected.float(), rtol=0, atol=0)
    assert average.output.weight is average.src_embedding.tokens.weight


def test_only_checkpoints_of_one_model_have_an_average(trained, tmp_path):
    _, run = trained
    train(tmp_path / "other", model(d_ff=8), 2)
    paths = [*checkpoints(run), *checkpoints(tmp_path / "other")]
    with pytest.raises(ValueError, match="other/step-00000002 is of another model: d_ff is 8, not"):
        average_checkpoints(paths)
    with pytest.raises(ValueError, match="paths must hold at least one checkpoint, got none"):
        average_checkpoints([])


def test_two_processes_do_not_train_in_one_folder(trained):
    _, run = trained
    with only_writer(run):
        assert_refused(run, r"^another process is training in .*/run$", BlockingIOError)

    def evaluate(m):
        with pytest.raises(BlockingIOError), only_writer(run):  # until training ends
            pass
        raise RuntimeError("no dev set")

    with pytest.raises(RuntimeError, match="no dev set"):
        train(run, model(), 7, evaluate=evaluate)
    with only_writer(run):  # and it is let go when it fails
        pass
