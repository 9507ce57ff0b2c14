import copy
import json
import math
import multiprocessing
import os
import random
import resource
import shutil
import signal
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from tests.package.copying import copy_batch
from transformer.config import TransformerConfig
from transformer.files import LOCK, only_writer
from transformer.model import Transformer
from transformer.training import (
    average_checkpoints,
    best_checkpoint,
    checkpoint,
    checkpoints,
    fit,
    load_checkpoint,
    load_transformer,
    save_checkpoint,
)
from transformer.training.checkpoint import step_of
from transformer.training.objective import paper_optimizer

FILES = ("model.safetensors", "optimizer.safetensors", "state.json")
V, KILLS = 12, 24


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


def train_in_a_process(run, n_steps):
    torch.set_num_threads(1)
    train(run, model(), n_steps)


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


def test_killed_at_random_moments_it_ends_in_the_same_bits(tmp_path):
    # a fork server: what it forks has torch imported, with what the first update would import,
    # and has done nothing with it
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__, "torch._dynamo"])
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    rng, kills = random.Random(0), 0
    while kills < KILLS:
        process = processes.Process(target=train_in_a_process, args=(broken, 10**6))
        process.start()
        before = [p.name for p in checkpoints(broken)]
        more, patience = rng.randrange(6), time.monotonic() + 60
        while more and process.is_alive() and time.monotonic() < patience:
            names = [p.name for p in checkpoints(broken)]
            if names[-1:] != before[-1:]:
                before, more = names, more - 1
            time.sleep(0.0005)
        time.sleep(rng.random() * 0.02)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL, "it ended before it was killed"
        kills += 1
        for saved in checkpoints(broken):  # whatever stands there is whole
            load_checkpoint(saved, model(seed=1))
    n_steps = step_of(checkpoints(broken)[-1]) + 11
    for run in (whole, broken):
        process = processes.Process(target=train_in_a_process, args=(run, n_steps))
        process.start()
        process.join()
        assert process.exitcode == 0
    assert sorted(contents(whole)) == sorted(contents(broken))
    last = [checkpoints(run)[-1] for run in (whole, broken)]
    assert [p.name for p in last] == [f"step-{n_steps:08d}"] * 2
    for name in FILES[:2]:
        one, two = (load_file(p / name) for p in last)
        assert_close(one, two, rtol=0, atol=0)
    losses = [json.loads((p / FILES[2]).read_text())["state"]["losses"] for p in last]
    assert losses[0] == losses[1]
    assert len(losses[0]) == n_steps > 4 * KILLS


def test_restores_weights_moments_step_and_state(trained, tmp_path):
    m, run = trained
    (saved,) = checkpoints(run)[-1:]
    other = model(seed=1)
    optimizer = paper_optimizer(other.parameters())
    step, state = load_checkpoint(saved, other, optimizer)
    assert step == 6
    assert len(state["losses"]) == 6
    assert_close(dict(other.named_parameters()), dict(m.named_parameters()), rtol=0, atol=0)
    again = save_checkpoint(tmp_path / "again", other, optimizer, step=6, state=state)
    assert contents(again) == contents(saved)


def test_tables_that_are_shared_stay_shared(trained):
    _, run = trained
    m = load_transformer(checkpoints(run)[-1])
    assert m.output.weight is m.src_embedding.tokens.weight
    names = load_file(checkpoints(run)[-1] / FILES[0]).keys()
    assert "output.weight" not in names
    assert len(names) == len(list(m.named_parameters()))


def test_load_transformer_makes_the_model_anew(trained):
    m, run = trained
    loaded = load_transformer(checkpoints(run)[-1])
    assert loaded.config == m.config
    assert not loaded.training
    batch = batches(99)
    assert_close(loaded(*batch), m.eval()(*batch), rtol=0, atol=0)


def test_keeps_the_latest_and_leaves_other_files_alone(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "notes.txt").write_text("mine")
    (run / "step-best").mkdir()
    for left in (".writing-123", ".removing-step-00000001"):
        (run / left).mkdir()
        (run / left / "state.json").write_text("{}")
    train(run, model(), 7)
    found = sorted(p.name for p in run.iterdir())
    assert found == [LOCK, "notes.txt", "step-00000006", "step-00000007", "step-best"]


def test_a_checkpoint_gives_up_its_name_before_its_files(tmp_path, monkeypatch):
    removed, remove = [], checkpoint.remove

    def noted(path):
        removed.append(path.name)
        remove(path)

    monkeypatch.setattr(checkpoint, "remove", noted)
    train(tmp_path, model(), 6)
    assert removed == [".removing-step-00000002"]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_checkpoint_is_refused_by_name_and_nothing_changes(trained, file, share):
    _, run = trained
    path = checkpoints(run)[-1] / file
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    assert_refused(run, rf"step-00000006/{file}")


@pytest.mark.parametrize("file", FILES)
def test_a_missing_file_is_refused_by_name(trained, file):
    _, run = trained
    (checkpoints(run)[-1] / file).unlink()
    assert_refused(run, rf"No such file.*step-00000006/{file}", FileNotFoundError)


def assert_refused(run, message, error=ValueError):
    before, m = contents(run), model(seed=1)
    weights = {name: p.detach().clone() for name, p in m.named_parameters()}
    with pytest.raises(error, match=message):
        train(run, m, 8)
    assert contents(run) == before
    assert_close(dict(m.named_parameters()), weights, rtol=0, atol=0)


ABOUT = b'{"format": "transformer.training.checkpoint 1", "step": %s, "config": %s, "state": %s}'
NO_CHECKPOINT = "state.json is not a checkpoint of this package: "
FOREIGN = {
    "pickle": ("state.json", b"\x80\x04\x95\x10\x00.", NO_CHECKPOINT),
    "other json": ("state.json", b'{"format": "x"}', f"{NO_CHECKPOINT}.*format"),
    "a step of text": (
        "state.json",
        ABOUT % (b'"6"', b"{}", b"{}"),
        f"{NO_CHECKPOINT}.*its step must be of type int",
    ),
    "a step that is true": (
        "state.json",
        ABOUT % (b"true", b"{}", b"{}"),
        f"{NO_CHECKPOINT}.*its step must be of type int",
    ),
    "the step of another folder": (
        "state.json",
        ABOUT % (b"5", b"{}", b"{}"),
        "state.json must be of step 6, as its folder, got 5",
    ),
    "a config that is a list": (
        "state.json",
        ABOUT % (b"6", b"[]", b"{}"),
        f"{NO_CHECKPOINT}its config is no object",
    ),
    "a state that is a list": (
        "state.json",
        ABOUT % (b"6", b"{}", b"[]"),
        f"{NO_CHECKPOINT}.*its state must be of type dict",
    ),
    "brackets without end": ("state.json", b"[" * 10**5, f"{NO_CHECKPOINT}RecursionError"),
    "a list": ("state.json", b"[1]", NO_CHECKPOINT),
    "a torch file": (
        "model.safetensors",
        b"PK\x03\x04" + b"\0" * 99,
        "model.safetensors is damaged",
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_checkpoint_is_refused_by_name(trained, kind):
    _, run = trained
    file, data, message = FOREIGN[kind]
    (checkpoints(run)[-1] / file).write_bytes(data)
    assert_refused(run, message)


def test_another_models_checkpoint_is_refused_by_what_differs(trained):
    _, run = trained
    saved, before = checkpoints(run)[-1], contents(run)
    with pytest.raises(
        ValueError, match="of another model: d_ff is 16, not 32; norm is post, not pre"
    ):
        load_checkpoint(saved, model(d_ff=32, norm="pre"))
    changes = {"d_ff": 32, "norm": "pre", "dropout": 0.0, "max_len": 9, "n_heads": 4}
    shown = "d_ff is 16, not 32; dropout is 0.2, not 0.0; max_len is 8, not 9; and 2 more"
    with pytest.raises(ValueError, match=f"of another model: {shown}$"):
        load_checkpoint(saved, model(**changes))
    with pytest.raises(ValueError, match="of another model"):
        load_checkpoint(saved, torch.nn.Linear(2, 2))
    tensors = load_file(saved / FILES[0])
    tensors["decoder.layers.0.feed_forward.W_1.bias"] = torch.zeros(3)
    del tensors["encoder.layers.0.feed_forward.W_1.bias"]
    save_file(tensors, saved / FILES[0])
    message = r"model.safetensors is of another model: .*bias is \(3,\), not \(16,\); enc.*None"
    with pytest.raises(ValueError, match=message):
        load_checkpoint(saved, model())
    assert contents(run).keys() == before.keys()


def test_a_tensor_of_another_shape_is_refused(trained):
    _, run = trained
    file = checkpoints(run)[-1] / FILES[0]
    tensors = load_file(file)
    name = "encoder.layers.0.feed_forward.W_1.bias"
    save_file(tensors | {name: torch.zeros(1)}, file)  # which would broadcast
    assert_refused(run, rf"model.safetensors is of another model: {name} is \(1,\), not \(16,\)$")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_weights_that_are_not_finite_are_refused_by_name(trained, value):
    _, run = trained
    file = checkpoints(run)[-1] / FILES[0]
    tensors = load_file(file)
    tensors["encoder.layers.0.feed_forward.W_1.bias"][3] = value
    save_file(tensors, file)
    assert_refused(run, r"step-00000006/model.safetensors must hold finite .* in enc.*W_1\.bias")
    with pytest.raises(ValueError, match="must hold finite numbers"):
        load_transformer(checkpoints(run)[-1])


@pytest.mark.parametrize("file", FILES)
def test_what_cannot_be_read_is_not_called_damaged(trained, file):
    _, run = trained
    path = checkpoints(run)[-1] / file
    path.unlink()
    path.mkdir()
    assert_refused(run, rf"Is a directory: .*step-00000006/{file}", IsADirectoryError)


@pytest.mark.parametrize("file", FILES)  # of which each is larger than those written before it
def test_a_full_disk_leaves_the_checkpoints_that_are_there(trained, file):
    m, run = trained
    before, saved, optimizer = contents(run), checkpoints(run)[-1], paper_optimizer(m.parameters())
    _, state = load_checkpoint(saved, m, optimizer)
    most, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((saved / file).stat().st_size - 1, hard))
    try:
        with pytest.raises(OSError, match=r"step-00000009 was not saved: .*File too large"):
            save_checkpoint(run, m, optimizer, step=9, state=state)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    assert contents(run) == before


def test_the_disk_holds_all_files_before_they_have_their_name(tmp_path, monkeypatch):
    seen, rename = [], os.rename
    monkeypatch.setattr("transformer.files.flush", lambda path: seen.append(path.name))
    monkeypatch.setattr(os, "rename", lambda *paths: seen.append("renamed") or rename(*paths))
    m = model()
    save_checkpoint(tmp_path / "run", m, paper_optimizer(m.parameters()), step=1, state={})
    assert seen == [*FILES, "renamed", "run"]


def save_evaluated(run, values, **options):
    """A checkpoint at each step of ``values``, with what the evaluation gave up to then."""
    m, given = model(), {}
    for step, value in values.items():
        given |= {} if value is None else {str(step): value}
        optimizer = paper_optimizer(m.parameters())
        save_checkpoint(run, m, optimizer, step=step, state={"evaluations": given}, **options)
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
    one = average_checkpoints(paths[:1])
    assert_close(dict(one.named_parameters()), loaded[0], rtol=0, atol=0)


def test_only_checkpoints_of_one_model_have_an_average(trained, tmp_path):
    _, run = trained
    train(tmp_path / "other", model(d_ff=8), 2)
    paths = [*checkpoints(run), *checkpoints(tmp_path / "other")]
    with pytest.raises(ValueError, match="other/step-00000002 is of another model: d_ff is 8, not"):
        average_checkpoints(paths)
    with pytest.raises(ValueError, match="paths must hold at least one checkpoint, got none"):
        average_checkpoints([])


def test_no_checkpoint_is_there_before_it_is_whole(tmp_path, monkeypatch):
    seen = []

    def watched(tensors, file):
        save_file(tensors, file)
        seen.append(checkpoints(tmp_path))

    monkeypatch.setattr(checkpoint, "save_tensors", watched)
    m = model()
    path = save_checkpoint(tmp_path, m, paper_optimizer(m.parameters()), step=1, state={})
    assert seen == [[], []]
    assert checkpoints(tmp_path) == [path]


def test_what_json_cannot_hold_is_not_half_written(tmp_path):
    m = model()
    optimizer = paper_optimizer(m.parameters())
    with pytest.raises(TypeError, match="not JSON serializable"):
        save_checkpoint(tmp_path, m, optimizer, step=1, state={"x": {1, 2}})
    assert checkpoints(tmp_path) == []


def test_a_step_that_is_saved_already_is_not_overwritten(trained):
    m, run = trained
    before = contents(run)
    with pytest.raises(OSError, match="step-00000006"):
        save_checkpoint(run, m, paper_optimizer(m.parameters()), step=6, state={})
    assert {k: v for k, v in contents(run).items() if not k.startswith(".")} == before


def test_checkpoints_are_ordered_by_step_not_by_letter(tmp_path):
    for step in (99_999_999, 100_000_000, 5):
        os.makedirs(tmp_path / f"step-{step:08d}")
    assert [int(p.name[5:]) for p in checkpoints(tmp_path)] == [5, 99_999_999, 100_000_000]
    assert checkpoints(tmp_path / "nowhere") == []


@pytest.mark.parametrize(("name", "value"), [("keep", 0), ("keep", -1), ("step", 0), ("step", -1)])
def test_bad_numbers_are_refused_before_anything_is_removed(trained, name, value):
    m, run = trained
    before = contents(run)
    options = {"step": 9, "state": {}, name: value}
    with pytest.raises(ValueError, match=f"{name} must be positive, got {value}"):
        save_checkpoint(run, m, paper_optimizer(m.parameters()), **options)
    assert contents(run) == before


def test_a_checkpoint_older_than_a_field_of_the_config_is_of_its_default(trained):
    m, run = trained
    file = checkpoints(run)[-1] / "state.json"
    about = json.loads(file.read_text())
    for name in ("norm", "n_key_heads", "norm_kind", "feed_forward", "bias", "rope_theta"):
        del about["config"][name]
    file.write_text(json.dumps(about))
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


def test_a_failed_save_leaves_nothing_behind(tmp_path):
    m = model()
    with pytest.raises(TypeError):
        save_checkpoint(tmp_path, m, paper_optimizer(m.parameters()), step=1, state={"x": {1}})
    assert list(tmp_path.iterdir()) == []


# What no training leaves is refused before anything has changed


def change_state(run, change):
    """Edits the object of the last checkpoint's state.json."""
    file = checkpoints(run)[-1] / FILES[2]
    about = json.loads(file.read_text())
    change(about)
    file.write_text(json.dumps(about))


STATES = {
    "no losses": (lambda s: s.pop("losses"), "a list in state.losses, got None"),
    "losses by name": (lambda s: s.update(losses={}), r"a list in state.losses, got {}"),
    "too few losses": (lambda s: s["losses"].pop(), "6 finite numbers, .* in state.losses, got 5"),
    "too many losses": (lambda s: s["losses"].append(1.0), "6 finite numbers, .* got 7"),
    "a loss of text": (lambda s: s["losses"].__setitem__(3, "1"), "6 finite numbers, one a step"),
    "a loss that is true": (lambda s: s["losses"].__setitem__(3, True), "6 finite numbers"),
    "a loss of NaN": (lambda s: s["losses"].__setitem__(3, math.nan), "6 finite numbers"),
    "no evaluations": (lambda s: s.pop("evaluations"), "a dict in state.evaluations, got None"),
    "evaluations in a row": (lambda s: s.update(evaluations=[1]), "a dict in state.evaluations"),
    "an evaluation of text": (
        lambda s: s.update(evaluations={"2": "x"}),
        "numbers, by steps from 1 to 6 in state.evaluations, got {'2': 'x'}",
    ),
    "an evaluation to come": (lambda s: s.update(evaluations={"7": 1.0}), ".*steps from 1 to 6"),
    "an evaluation of step 0": (lambda s: s.update(evaluations={"0": 1.0}), ".*steps from 1 to 6"),
    "an evaluation of no step": (lambda s: s.update(evaluations={"x": 1.0}), ".*steps from 1 to 6"),
    "no scaler": (lambda s: s.pop("scaler"), "a dict in state.scaler, got None"),
    "a scaler of text": (lambda s: s.update(scaler="x"), "a dict in state.scaler, got 'x'"),
    "half a scaler": (lambda s: s.update(scaler={"scale": 1.0}), "the numbers of a GradScaler"),
}
SCALER = {
    **{"scale": 65536.0, "growth_factor": 2.0, "backoff_factor": 0.5},
    **{"growth_interval": 2000, "_growth_tracker": 3},
}


@pytest.mark.parametrize("kind", STATES)
def test_a_state_that_no_training_leaves_is_refused_by_its_key(trained, kind):
    _, run = trained
    change, message = STATES[kind]
    change_state(run, lambda about: change(about["state"]))
    assert_refused(run, f"step-00000006/state.json must hold {message}")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("scale", value) for value in (0.0, math.nan, math.inf)),
        *(("growth_factor", "2"), ("backoff_factor", -0.5), ("x", 1.0)),
    ],
)
def test_a_scale_that_no_training_leaves_is_refused(trained, key, value):
    _, run = trained
    change_state(run, lambda about: about["state"].update(scaler={**SCALER, key: value}))
    assert_refused(run, "state.json must hold the numbers of a GradScaler")


def test_a_scale_that_a_training_leaves_is_not_refused(trained):
    _, run = trained
    change_state(run, lambda about: about["state"].update(scaler=SCALER))
    train(run, model(seed=1), 7)


def change_tensor(run, file, name, tensor):
    path = checkpoints(run)[-1] / file
    save_file(load_file(path) | {name: tensor}, path)


BIAS = "encoder.layers.0.feed_forward.W_1.bias"


@pytest.mark.parametrize(
    ("key", "tensor", "message"),
    [
        ("exp_avg", torch.full((16,), math.nan), "must hold finite numbers, got others in"),
        ("exp_avg_sq", torch.full((16,), math.inf), "must hold finite numbers, got others in"),
        ("exp_avg_sq", torch.tensor([1.0] * 15 + [-1e-9]), "must hold no negative number in"),
        ("exp_avg", torch.zeros(16, dtype=torch.int32), "is of another model: "),
        ("exp_avg", torch.zeros(1), "is of another model: "),
        ("step", torch.tensor(1e30), "must hold a number of steps in"),
        ("step", torch.tensor(-1.0), "must hold a number of steps in"),
        ("step", torch.tensor(0.5), "must hold a number of steps in"),
        ("step", torch.tensor(True), "is of another model: "),
    ],
)
def test_moments_that_no_adam_has_are_refused(trained, key, tensor, message):
    _, run = trained
    change_tensor(run, FILES[1], f"{BIAS}:{key}", tensor)
    assert_refused(run, rf"step-00000006/optimizer.safetensors {message}.*W_1\.bias:{key}")
    m = model(seed=1)
    optimizer, weights = paper_optimizer(m.parameters()), copy.deepcopy(m.state_dict())
    with pytest.raises(ValueError, match=message):
        load_checkpoint(checkpoints(run)[-1], m, optimizer)
    assert optimizer.state_dict()["state"] == {}
    assert_close(m.state_dict(), weights, rtol=0, atol=0)


def test_adam_may_have_taken_fewer_steps_than_the_training(trained):
    _, run = trained  # as after an overflow in half precision; and second moments may be 0
    change_tensor(run, FILES[1], f"{BIAS}:step", torch.tensor(0.0))
    change_tensor(run, FILES[1], f"{BIAS}:exp_avg_sq", torch.zeros(16))
    train(run, model(seed=1), 7)


def test_weights_of_another_type_are_refused(trained):
    _, run = trained
    change_tensor(run, FILES[0], BIAS, torch.zeros(16, dtype=torch.int32))
    message = rf"model.safetensors is of another model: {BIAS} is int32, not float32$"
    assert_refused(run, message)
    with pytest.raises(ValueError, match=message):
        load_transformer(checkpoints(run)[-1])


def test_a_field_that_no_config_has_is_refused_by_name(trained):
    _, run = trained
    change_state(run, lambda about: about["config"].update(n_wings=2))
    assert_refused(run, "is of another model: TransformerConfig has no field n_wings")
    with pytest.raises(ValueError, match=r"holds no Transformer: .* has no field n_wings"):
        load_transformer(checkpoints(run)[-1])


def test_a_field_that_a_config_must_have_is_named(trained):
    _, run = trained
    change_state(run, lambda about: about["config"].pop("src_vocab_size"))
    with pytest.raises(ValueError, match="must have a value of src_vocab_size"):
        load_transformer(checkpoints(run)[-1])
    change_state(run, lambda about: about.update(config=None))
    with pytest.raises(ValueError, match="holds no Transformer: it was saved without a config"):
        load_transformer(checkpoints(run)[-1])


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"d_model": 10**9}, "needs at least .*B, and cpu has .* left|of another model"),
        ({"d_model": 2**40}, "cannot be"),
        ({"d_ff": 32}, r"model.safetensors is of another model: .*W_1\.bias is \(16,\), not \(32"),
        ({"n_encoder_layers": 10**9}, "tensors are not of .*'n_encoder_layers': 1000000000"),
        ({"max_len": 10**12}, "a model of .* parameters needs at least .* TB, and cpu has"),
        ({"d_model": "16"}, "holds no Transformer: "),
        ({"dropout": 7.0}, "holds no Transformer: dropout must be"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_sizes_are_held_against_the_file_before_memory_is_asked_for(trained, sizes, message):
    _, run = trained
    change_state(run, lambda about: about["config"].update(sizes))
    most, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, hard))
    try:
        with pytest.raises(ValueError, match=message):
            load_transformer(checkpoints(run)[-1])
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def test_evaluations_that_are_no_numbers_have_no_best(trained):
    _, run = trained
    for wrong in ([1.0], {"6": "x"}, {"6": None}, {"6": True}):
        change_state(run, lambda about, wrong=wrong: about["state"].update(evaluations=wrong))
        with pytest.raises(ValueError, match=r"state.json must hold numbers in state.evaluations"):
            best_checkpoint(run)


def test_buffers_that_a_model_saves_are_restored(tmp_path):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    for _ in range(3):
        net(torch.randn(8, 3))  # moves the running mean and variance
    optimizer = paper_optimizer(net.parameters())
    saved = save_checkpoint(tmp_path, net, optimizer, step=1, state={})
    other = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    load_checkpoint(saved, other)
    assert_close(other.state_dict(), net.state_dict(), rtol=0, atol=0)
    assert other[1].num_batches_tracked == 3
    x = torch.randn(8, 3)
    assert_close(other.eval()(x), net.eval()(x), rtol=0, atol=0)


# Links, and other processes


@pytest.mark.parametrize("name", [".writing-1", ".removing-step-00000001", "step-00000001"])
def test_a_link_in_the_folder_of_a_run_goes_and_what_it_points_to_stays(tmp_path, name):
    run, victim = tmp_path / "run", tmp_path / "victim"
    train(tmp_path / "other", model(), 1)
    (tmp_path / "other/step-00000001").rename(victim)
    run.mkdir()
    (run / name).symlink_to(victim)
    before = contents(victim)
    m = model()
    for step in (2, 3):
        optimizer = paper_optimizer(m.parameters())
        save_checkpoint(run, m, optimizer, step=step, state={}, keep=1)
    assert [p.name for p in run.iterdir()] == ["step-00000003"]
    assert contents(victim) == before


def test_a_file_where_a_leftover_would_be_goes(tmp_path):
    (tmp_path / ".writing-1").write_text("")
    m = model()
    save_checkpoint(tmp_path, m, paper_optimizer(m.parameters()), step=1, state={})
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000001"]


def test_two_processes_do_not_train_in_one_folder(trained):
    _, run = trained
    with only_writer(run):
        error = r"^another process is training in .*/run$"
        assert_refused(run, error, BlockingIOError)
    train(run, model(seed=1), 7)


def test_the_lock_is_held_until_training_ends_and_is_let_go_when_it_fails(trained):
    _, run = trained

    def evaluate(m):
        with pytest.raises(BlockingIOError), only_writer(run):
            pass
        raise RuntimeError("no dev set")

    with pytest.raises(RuntimeError, match="no dev set"):
        train(run, model(), 7, evaluate=evaluate)
    with only_writer(run):
        pass
