import io
import json
import math
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.testing import assert_close
from tqdm import tqdm

from tests.package.checkpoint_files import read_about
from tests.package.copying import copy_batch
from tests.package.limits import Full
from tests.package.unchecked import unchecked
from tools.chapters import ROOT
from transformer import tensors, training
from transformer.config import TransformerConfig
from transformer.data.batches import Batch, TextBatch
from transformer.model import Transformer
from transformer.training import (
    TrainingStep,
    best_checkpoint,
    checkpoints,
    count_labels,
    evaluate_loss,
    fit,
    linear_schedule,
    load_checkpoint,
    paper_optimizer,
    paper_schedule,
    smoothed_cross_entropy,
    warmup_schedule,
)

V = 12
QUIET = {"device": torch.device("cpu"), "progress": False}
FLAT = {"schedule": lambda step: 1e-3, **QUIET}


def model(seed=0, **changes):
    torch.manual_seed(seed)
    sizes = {"d_model": 16, "d_ff": 32, "max_len": 16, "n_heads": 2}
    return Transformer(TransformerConfig.tiny(V, V, **{**sizes, **changes}))


def batches(i, size=8):
    g = torch.Generator().manual_seed(i)
    return copy_batch(size, V, min_len=3, max_len=6, generator=g)


def weights(m, *, without=""):
    named = {name: p.detach().clone() for name, p in m.named_parameters()}
    return {name: p for name, p in named.items() if not (without and name.endswith(without))}


class Bigrams(torch.nn.Module):
    """Predicts a token from the one before it: the least that learns from text alone."""

    def __init__(self, pad_id=0):
        super().__init__()
        self.pad_id = pad_id
        g = torch.Generator().manual_seed(0)
        self.table = torch.nn.Parameter(torch.randn(V, V, generator=g))

    def forward(self, tokens):
        return self.table[tokens]


def smoothing_by_loops(logits, labels, epsilon, pad_id=0):
    total = 0.0
    for row, label in zip(logits.flatten(0, 1), labels.flatten().tolist(), strict=True):
        if label == pad_id:
            continue
        log_p = (row - row.exp().sum().log()).tolist()
        q = [epsilon / len(log_p) + (1 - epsilon) * (w == label) for w in range(len(log_p))]
        total -= sum(a * b for a, b in zip(q, log_p, strict=True))
    return total


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
def test_smoothed_cross_entropy_equals_plain_loops(epsilon):
    g = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 5, V, generator=g, dtype=torch.float64)
    labels = torch.randint(0, V, (3, 5), generator=g)
    labels[1, 2:] = 0
    loss = smoothed_cross_entropy(logits, labels, smoothing=epsilon)
    assert loss.item() == pytest.approx(smoothing_by_loops(logits, labels, epsilon), abs=1e-9)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_loss_of_extreme_half_precision_logits_is_finite(dtype):
    logits = torch.full((1, 3, V), -6e4, dtype=dtype)
    logits[..., 4] = 6e4
    logits.requires_grad_()
    loss = smoothed_cross_entropy(logits, torch.tensor([[4, 5, 6]]))
    assert loss.isfinite()
    (gradient,) = torch.autograd.grad(loss, logits)
    assert gradient.isfinite().all()


def test_a_tenth_is_smoothed_unless_it_is_said_and_never_all(unchecked):
    logits, labels = torch.randn(2, 3, V), torch.tensor([[1, 2, 0], [3, 4, 5]])
    tenth = smoothed_cross_entropy(logits, labels, smoothing=0.1)
    assert smoothed_cross_entropy(logits, labels) == tenth
    for share in (1.0, -0.1):
        with pytest.raises(ValueError, match=f"smoothing must be at least 0 .* got {share}"):
            smoothed_cross_entropy(logits, labels, smoothing=share)


def test_a_batch_of_padding_alone_costs_nothing():
    assert smoothed_cross_entropy(torch.randn(2, 3, V), torch.zeros(2, 3, dtype=torch.long)) == 0


def test_paper_schedule_equals_its_formula():
    rate = paper_schedule(512, warmup=4000)
    for step in (1, 10, 3999, 4000, 4001, 100_000):
        expected = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert rate(step) == pytest.approx(expected, rel=1e-12)
    assert max(range(1, 9000), key=rate) == 4000
    assert rate(4000) == pytest.approx((512 * 4000) ** -0.5)
    assert [paper_schedule(512)(step) for step in (1, 9999)] == [rate(1), rate(9999)]


def test_warmup_schedule_peaks_where_and_as_it_says():
    rate = warmup_schedule(3e-3, warmup=50)
    assert max(range(1, 300), key=rate) == 50
    assert rate(50) == pytest.approx(3e-3)
    assert rate(25) == pytest.approx(1.5e-3)
    assert rate(200) == pytest.approx(1.5e-3)


def test_linear_schedule_goes_up_and_down_in_straight_lines():
    rate = linear_schedule(0.8, warmup=4, n_steps=10)
    expected = [0.2, 0.4, 0.6, 0.8, *(0.8 * n / 7 for n in (6, 5, 4, 3, 2, 1))]
    assert [rate(n) for n in range(1, 11)] == pytest.approx(expected)
    assert rate(11) == rate(12) == rate(99) == 0  # which would not learn
    assert linear_schedule(0.8, warmup=10, n_steps=10)(10) == pytest.approx(0.8)


def test_the_optimizer_is_the_papers():
    (group,) = paper_optimizer([torch.nn.Parameter(torch.zeros(1))]).param_groups
    assert (group["betas"], group["eps"], group["lr"]) == ((0.9, 0.98), 1e-9, 0.0)
    assert group["weight_decay"] == 0


def test_one_step_is_adam_on_the_mean_loss_of_the_tokens():
    fitted, plain = model(dropout=0.0), model(dropout=0.0)
    history = fit(fitted, batches, n_steps=2, clip_norm=None, smoothing=0.3, **FLAT)
    adam = torch.optim.Adam(plain.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
    for i, seen in enumerate(history.losses):
        src, tgt = batches(i)
        labels = tgt[:, 1:]
        loss = smoothing_by_loops(logits := plain(src, tgt[:, :-1]), labels, 0.3)
        assert seen == pytest.approx(float(loss) / int((labels != 0).sum()), rel=1e-5)
        F.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=0, label_smoothing=0.3
        ).backward()
        adam.step()
        adam.zero_grad()
    # a bias of the keys adds the same to all scores of a query: Adam enlarges a gradient of noise
    fitted, plain = (weights(m, without="W_k.bias") for m in (fitted, plain))
    assert_close(fitted, plain, rtol=0, atol=1e-6)


def test_a_given_optimizer_makes_the_steps_with_the_rates_of_its_groups():
    def of_two_groups(m):
        groups = [{"params": [m.table], "lr": 1e-2}, {"params": [m.more], "lr": 1e-3}]
        return torch.optim.AdamW(groups, weight_decay=0.5)

    def text(i):
        return TextBatch(batches(i).tgt)

    fitted, plain = Noisy(1, dropout=0.0), Noisy(1, dropout=0.0)
    fit(fitted, text, n_steps=3, optimizer=of_two_groups(fitted), clip_norm=None, **QUIET)
    adam = of_two_groups(plain)
    for i in range(3):
        tokens = text(i).tokens
        logits, labels = plain(tokens[:, :-1]), tokens[:, 1:]
        loss = smoothed_cross_entropy(logits, labels) / count_labels(labels)
        adam.zero_grad()
        loss.backward()
        adam.step()
    assert_close(weights(fitted), weights(plain), rtol=0, atol=1e-6)


def test_a_schedule_is_of_the_fastest_group_and_the_others_keep_their_share():
    def rates(own, schedule):
        m, seen = Noisy(), []
        groups = [{"params": [p], "lr": lr} for p, lr in zip(m.parameters(), own, strict=True)]
        optimizer = torch.optim.SGD(groups)
        optimizer.register_step_pre_hook(
            lambda opt, *_: seen.append([group["lr"] for group in opt.param_groups])
        )
        options = {"n_steps": 2, "optimizer": optimizer, "schedule": schedule}
        fit(m, lambda i: TextBatch(batches(i).tgt), **options, **QUIET)
        return seen

    assert rates((0.5, 2.0), lambda n: n / 8) == [[1 / 32, 1 / 8], [1 / 16, 1 / 4]]
    assert rates((0.0, 0.0), lambda n: n / 8) == [[1 / 8, 1 / 8], [1 / 4, 1 / 4]]
    assert rates((0.5, 2.0), None) == [[0.5, 2.0], [0.5, 2.0]]


def test_weights_that_the_optimizer_does_not_move_count_for_no_clipping():
    m, norms = Noisy(), []
    optimizer = torch.optim.SGD([m.more], lr=0.0)
    optimizer.register_step_pre_hook(lambda *_: norms.append(m.more.grad.norm().item()))
    fit(
        m,
        lambda i: TextBatch(batches(0).tgt),
        n_steps=3,
        optimizer=optimizer,
        schedule=lambda n: 0.0,
        clip_norm=1e-4,
        **QUIET,
    )
    assert norms == pytest.approx([1e-4] * 3, rel=1e-3)


def strange(*known):
    return torch.optim.Adam([*known, torch.nn.Parameter(torch.zeros(1))])


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda m: None, "schedule must be given to the paper's Adam, optimizer=None, got None"),
        (lambda m: strange(), "optimizer must move parameters of the model alone, .* in Adam"),
        (lambda m: strange(*m.parameters()), "optimizer must move parameters of the model alone"),
        (lambda m: torch.optim.LBFGS(m.parameters()), "optimizer must .* got LBFGS: wants a clos"),
        (lambda m: torch.optim.SparseAdam(m.parameters()), "dense gradients, got SparseAdam"),
        (lambda m: torch.optim.SGD, "optimizer must be made of torch.optim or None, got <class"),
    ],
)
def test_an_optimizer_that_cannot_be_used_is_refused_by_name(make, message):
    m, asked = model(), []
    with pytest.raises((ValueError, TypeError), match=message):
        fit(m, asked.append, n_steps=1, optimizer=make(m), **QUIET)
    assert asked == []


def test_accumulated_batches_make_the_step_of_their_union():
    # of unequal numbers of tokens, so that a mean of means would be seen
    together, in_pieces = model(dropout=0.0), model(dropout=0.0)

    def whole(i):
        parts = [batches(2 * i), batches(2 * i + 1)]
        return Batch(*(torch.cat(tensors) for tensors in zip(*parts, strict=True)))

    one = fit(together, whole, n_steps=3, **FLAT)
    two = fit(in_pieces, batches, n_steps=3, accumulate=2, **FLAT)
    assert count_labels(batches(0).labels) != count_labels(batches(1).labels)
    assert one.losses == pytest.approx(two.losses, rel=1e-5)
    together, in_pieces = (weights(m, without="W_k.bias") for m in (together, in_pieces))
    assert_close(together, in_pieces, rtol=0, atol=1e-5)


def test_a_step_on_padding_alone_costs_nothing_and_breaks_nothing():
    tokens = torch.tensor([[1, 0, 0]])
    history = fit(m := model(), lambda i: Batch(tokens, tokens), n_steps=2, **FLAT)
    assert history.losses == [0.0, 0.0]
    assert_close(weights(m), weights(model()), rtol=0, atol=0)


def test_the_losses_of_steps_keep_no_graph():
    about = {"clip_norm": 1.0, "accumulate": 2, "seed": 0, "precision": "fp32", "compiled": False}
    about |= {"schedule": lambda n: 1e-3, "smoothing": 0.1, "device": torch.device("cpu")}
    m = model()
    step = TrainingStep(m, batches, optimizer=paper_optimizer(m.parameters()), **about)
    step(1)
    assert [loss.requires_grad for loss in step.losses] == [False]


def test_what_is_left_of_an_interrupted_step_does_no_harm():
    clean, dirty = model(), model()
    dirty(*batches(9)).sum().backward()
    one, two = (fit(m, batches, n_steps=2, **FLAT) for m in (clean, dirty))
    assert one.losses == two.losses
    assert_close(weights(clean), weights(dirty), rtol=0, atol=0)


@pytest.mark.parametrize("pad_id", [0, 3])
def test_text_without_a_source_is_learned_too(pad_id):
    def text(i):
        tokens = batches(i).tgt
        return TextBatch(torch.where(tokens == 0, pad_id, tokens))

    fitted, plain = Bigrams(pad_id), Bigrams(pad_id)
    history = fit(fitted, text, n_steps=3, clip_norm=None, **FLAT)
    adam = torch.optim.Adam(plain.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
    for i, seen in enumerate(history.losses):
        tokens = text(i).tokens
        logits, labels = plain(tokens[:, :-1]), tokens[:, 1:]
        n_labels = int((labels != pad_id).sum())
        expected = float(smoothing_by_loops(logits, labels, 0.1, pad_id)) / n_labels
        assert seen == pytest.approx(expected, rel=1e-5)
        F.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=pad_id, label_smoothing=0.1
        ).backward()
        adam.step()
        adam.zero_grad()
    assert_close(weights(fitted), weights(plain), rtol=0, atol=1e-6)
    logits, labels = plain(tokens[:, :-1]), tokens[:, 1:]
    expected = float(smoothing_by_loops(logits, labels, 0.0, pad_id)) / n_labels
    assert evaluate_loss(fitted, [text(2)]) == pytest.approx(expected, rel=1e-5)


def test_labels_are_what_is_not_padding():
    labels = torch.tensor([[5, 6, 2], [7, 0, 0]])
    assert [count_labels(labels, pad_id=pad_id) for pad_id in (0, 7, 9)] == [4, 5, 6]
    assert count_labels(labels) == 4
    assert type(count_labels(labels)) is int


def test_narrow_labels_are_labels():
    g = torch.Generator().manual_seed(0)
    logits, labels = torch.randn(2, 3, V, generator=g), torch.tensor([[1, 2, 0], [3, 4, 5]])
    assert smoothed_cross_entropy(logits, labels.int()) == smoothed_cross_entropy(logits, labels)


def test_frozen_parameters_stay_and_training_goes_on(tmp_path):
    def frozen():
        m = model()
        m.encoder.layers[0].requires_grad_(False)
        return m

    whole, first, second = frozen(), frozen(), frozen()
    fit(whole, batches, n_steps=4, **FLAT)
    fit(first, batches, n_steps=2, run=tmp_path, **FLAT)
    fit(second, batches, n_steps=4, run=tmp_path, **FLAT)
    assert_close(weights(second), weights(whole), rtol=0, atol=0)
    still = [n for n, p in weights(whole).items() if torch.equal(p, weights(frozen())[n])]
    assert still == [n for n, p in whole.named_parameters() if not p.requires_grad]


def test_an_evaluation_that_fails_loses_nothing_and_a_tensor_is_a_number(tmp_path):
    def fails(m):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fit(model(), batches, n_steps=2, run=tmp_path, evaluate=fails, **FLAT)
    assert [p.name for p in checkpoints(tmp_path)] == ["step-00000002.pt"]
    history = fit(
        model(), batches, n_steps=3, run=tmp_path, evaluate=lambda m: torch.tensor(2.0), **FLAT
    )
    assert history.evaluations == {3: 2.0}


def test_weights_of_which_one_is_not_finite_are_not_saved(tmp_path):
    m = model()
    m.unused = torch.nn.Parameter(torch.tensor([math.nan]))
    with pytest.raises(FloatingPointError, match="after step 1 a weight is not finite"):
        fit(m, batches, n_steps=1, run=tmp_path, **FLAT)
    assert checkpoints(tmp_path) == []


def test_an_infinite_loss_stops_training_too():
    m = Bigrams()
    with torch.no_grad():
        m.table[:, 3:] = -math.inf  # words that are to be predicted, and cannot be
    with pytest.raises(FloatingPointError, match="the loss of step 1 is inf"):
        fit(m, lambda i: TextBatch(batches(i).tgt), n_steps=1, smoothing=0.0, **FLAT)


@pytest.mark.parametrize(("bad", "seen"), [(1, 10), (13, 20)])
def test_a_loss_that_is_not_finite_is_seen_within_ten_steps_and_its_step_is_named(bad, seen):
    asked, m = [], Bigrams()

    def spoilt(i):
        asked.append(i)
        if i == bad - 1:
            with torch.no_grad():
                m.table[:, 3:] = math.nan
        return TextBatch(batches(i).tgt)

    with pytest.raises(FloatingPointError, match=f"the loss of step {bad} is nan"):
        fit(m, spoilt, n_steps=99, **FLAT)
    assert len(asked) == seen


def test_a_run_may_lie_in_folders_that_are_not_there_yet(tmp_path):
    fit(model(), batches, n_steps=1, run=tmp_path / "all" / "runs" / "one", **FLAT)
    assert len(checkpoints(tmp_path / "all" / "runs" / "one")) == 1


def test_fewer_steps_than_are_done_and_a_file_for_a_folder_are_refused(tmp_path):
    fit(model(), batches, n_steps=3, run=tmp_path / "run", **FLAT)
    with pytest.raises(ValueError, match=r"n_steps must be at least the 3 done in .*run, got 2"):
        fit(model(), batches, n_steps=2, run=tmp_path / "run", **FLAT)
    (tmp_path / "file").write_text("mine")
    asked = []
    with pytest.raises(OSError, match="file"):
        fit(model(), asked.append, n_steps=2, run=tmp_path / "file", **FLAT)
    assert asked == []


def test_long_gradients_are_cut_to_clip_norm():
    m, norms = model(), []
    step = torch.optim.Adam.step

    class Watched(torch.optim.Adam):
        def step(self, *args, **options):
            grads = [p.grad for group in self.param_groups for p in group["params"]]
            norms.append(torch.cat([g.flatten() for g in grads]).norm().item())
            return step(self, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim, "Adam", Watched)
        fit(m, batches, n_steps=2, clip_norm=0.01, **FLAT)
        fit(m, batches, n_steps=2, clip_norm=1e4, **FLAT)
        fit(m, batches, n_steps=2, clip_norm=None, **FLAT)
    assert norms[:2] == pytest.approx([0.01, 0.01], rel=1e-3)
    assert min(norms[2:]) > 0.02


def test_gradients_are_cut_after_they_are_unscaled(tmp_path, monkeypatch):
    # float16 on a CPU, where ``precision`` refuses it: the scale of the gradients is a GPU's
    monkeypatch.setattr("transformer.training.step.autocast_dtype", lambda *_: torch.float16)
    fit(model(), batches, n_steps=1, clip_norm=0.01, run=tmp_path, **FLAT)
    about = read_about(checkpoints(tmp_path)[-1])
    first = [p["exp_avg"].flatten() for p in about["optimizer"]["state_dict"]["state"].values()]
    assert torch.cat(first).norm().item() == pytest.approx((1 - 0.9) * 0.01, rel=1e-3)


def test_the_scale_of_half_precision_gradients_grows_and_is_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr("transformer.training.step.autocast_dtype", lambda *_: torch.float16)

    def scaler():
        return read_about(checkpoints(tmp_path)[-1])["state"]["scaler"]

    fit(model(), batches, n_steps=2, run=tmp_path, **FLAT)
    assert scaler()["_growth_tracker"] == 2  # updates since the scale was last changed
    fit(model(), batches, n_steps=5, run=tmp_path, **FLAT)
    assert scaler()["_growth_tracker"] == 5


def test_a_run_goes_on_in_another_precision(tmp_path, monkeypatch):
    fit(model(), batches, n_steps=2, run=tmp_path, **FLAT)
    monkeypatch.setattr("transformer.training.step.autocast_dtype", lambda *_: torch.float16)
    assert len(fit(model(), batches, n_steps=3, run=tmp_path, **FLAT).losses) == 3


def test_each_process_draws_its_own_dropout(monkeypatch):
    curves = []
    for rank in (0, 1, 0):
        monkeypatch.setattr("transformer.training.step.rank", lambda rank=rank: rank)
        curves.append(fit(model(dropout=0.3), batches, n_steps=2, **FLAT).losses)
    assert curves[0] == curves[2] != curves[1]


def test_the_schedule_is_asked_for_each_step_from_one_on():
    asked = []
    fit(model(), batches, n_steps=3, schedule=lambda n: asked.append(n) or 0.0, **QUIET)
    assert asked == [1, 2, 3]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("bad", [-1e-3, math.nan, math.inf, None])
def test_a_learning_rate_that_no_step_can_use_is_refused(bad):
    m = model()
    fit(m, batches, n_steps=1, **FLAT)
    before = weights(m)
    with pytest.raises(ValueError, match=f"schedule must give .*, got {bad} for step 1"):
        fit(m, batches, n_steps=1, schedule=lambda n: bad, **QUIET)
    assert_close(weights(m), before, rtol=0, atol=0)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model": nn.DataParallel(nn.Linear(1, 1))},
            "model must have a pad_id, got DataParallel: ",
        ),
        ({"batches": [0]}, "batches must be a function .*, got a list"),
        ({"batches": lambda i: (0, 1)}, "batches must give .*, got a tuple"),
        ({"schedule": 1e-3}, "schedule must be a function .*, got 0.001"),
    ],
)
def test_what_is_of_another_kind_is_refused_by_name(changes, message):
    with pytest.raises(TypeError, match=message):
        fit(**{"model": model(), "batches": batches, "n_steps": 1} | FLAT | changes)
    if "model" in changes:
        with pytest.raises(TypeError, match=message):
            evaluate_loss(changes["model"], [])


def test_an_optimizer_that_would_never_learn_is_refused():
    m = model()
    with pytest.raises(ValueError, match=r"schedule must be given .*, got None"):
        fit(m, batches, n_steps=1, optimizer=paper_optimizer(m.parameters()), **QUIET)


def test_pytorchs_own_schedule_takes_ours():
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = torch.optim.lr_scheduler.LambdaLR(optimizer, paper_schedule(64, warmup=3))
    assert theirs.get_last_lr() == [0.0]  # it asks for step 0 first
    optimizer.step()
    theirs.step()
    assert theirs.get_last_lr() == [paper_schedule(64, warmup=3)(1)]


def test_the_same_seed_gives_the_same_curve_and_leaves_the_callers_generator():
    curves = []
    for seed, drawn_before in ((0, 0), (0, 5), (1, 0)):
        m = model(dropout=0.3)
        torch.rand(drawn_before)
        state = torch.get_rng_state()
        curves.append(fit(m, batches, n_steps=4, seed=seed, **FLAT).losses)
        assert torch.equal(torch.get_rng_state(), state)
    assert curves[0] == curves[1]
    assert curves[0] != curves[2]


def test_dropout_differs_from_step_to_step():
    m = model(dropout=0.5).eval()  # which is how load_transformer gives it
    same = fit(m, lambda i: batches(0), n_steps=20, schedule=lambda n: 0.0, **QUIET)
    assert len(set(same.losses)) == 20


def test_evaluate_loss_is_the_plain_cross_entropy_of_all_tokens():
    m = model(dropout=0.5)
    data = [batches(i, size) for i, size in ((0, 3), (1, 9))]
    total = 0.0
    m.eval()
    for src, tgt in data:
        total += smoothing_by_loops(m(src, tgt[:, :-1]), tgt[:, 1:], 0.0)
    m.train()
    expected = float(total) / sum(count_labels(batch.labels) for batch in data)
    assert evaluate_loss(m, data) == pytest.approx(expected, rel=1e-5)
    assert m.training
    assert all(p.grad is None for p in m.parameters())


def test_evaluations_come_when_asked_for_and_at_the_end():
    seen = []

    def evaluate(m):
        seen.append((m.training, torch.is_grad_enabled()))
        return float(len(seen))

    m = model()
    history = fit(m, batches, n_steps=7, evaluate=evaluate, evaluate_every=3, **FLAT)
    assert history.evaluations == {3: 1.0, 6: 2.0, 7: 3.0}
    assert seen == [(False, False)] * 3
    assert len(history.losses) == 7
    history = fit(model(), batches, n_steps=4, save_every=2, evaluate=evaluate, **FLAT)
    assert list(history.evaluations) == [4]


@pytest.mark.usefixtures("unchecked")  # for its many steps
def test_bfloat16_on_a_cpu_trains_nearly_as_float32_does():
    curves = {}
    for precision in ("auto", "fp32", "bf16"):
        m = model(dropout=0.0)
        curves[precision] = fit(m, batches, n_steps=8, precision=precision, **FLAT).losses
        assert all(p.dtype == torch.float32 for p in m.parameters())
    assert curves["auto"] == curves["fp32"] != curves["bf16"]
    assert curves["bf16"] == pytest.approx(curves["fp32"], rel=0.02)


COMPILED = """
import functools
import torch
# what PyTorch makes of the one graph on this processor is PyTorch's, and a minute of a compiler
torch.compile = functools.partial(torch.compile, backend="aot_eager")
from tests.package.test_training import FLAT, batches, fit, model, weights
small = {"dropout": 0.0, "n_encoder_layers": 1, "n_decoder_layers": 1}
plain, compiled = model(**small), model(**small)
one = fit(plain, batches, n_steps=3, **FLAT)
two = fit(compiled, batches, n_steps=3, compiled=True, **FLAT)
torch.testing.assert_close(one.losses, two.losses, rtol=1e-4, atol=0)
plain, compiled = (weights(m, without="W_k.bias") for m in (plain, compiled))
torch.testing.assert_close(plain, compiled, rtol=0, atol=1e-4)
assert torch._dynamo.utils.counters["graph_break"] == {}
assert torch._dynamo.utils.counters["stats"]["unique_graphs"] > 0
"""


def test_compiled_training_is_the_same_training_in_one_graph():
    # in a process of its own: the run-time check of annotations is not made to be compiled
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


WITHOUT_COMPILER = """
from tests.package.test_training import FLAT, batches, fit, model
try:
    fit(model(), batches, n_steps=1, compiled=True, **FLAT)
except ValueError as error:
    print(error)
"""


def test_where_no_compiler_is_it_is_told_in_a_sentence(tmp_path):
    nowhere = {"PATH": "", "CXX": "/no-such-compiler", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_COMPILER],
        cwd=ROOT, env={**os.environ, **nowhere}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.startswith("compiled must be False here, where torch.compile fails: ")
    assert "/no-such-compiler" in done.stdout


def test_training_in_pieces_gives_the_same_weights_and_history(tmp_path):
    whole, first, second = (model(dropout=0.3) for _ in range(3))
    options = {"save_every": 4, "evaluate": lambda m: 1.5, "evaluate_every": 5, **FLAT}
    expected = fit(whole, batches, n_steps=11, **options)
    fit(first, batches, n_steps=6, run=tmp_path, **options)
    assert [p.name for p in checkpoints(tmp_path)] == [
        "step-00000004.pt",
        "step-00000006.pt",
    ]
    got = fit(second, batches, n_steps=11, run=tmp_path, **options)
    assert got.losses == expected.losses
    assert {5, 10, 11} < got.evaluations.keys()
    assert_close(weights(second), weights(whole), rtol=0, atol=0)
    third = model(seed=5, dropout=0.3)
    assert fit(third, batches, n_steps=11, run=tmp_path, **options) == got
    assert_close(weights(third), weights(whole), rtol=0, atol=0)


def whole_run(n_steps, **options):
    """The weights and losses of training that nothing interrupts."""
    m = model(dropout=0.3)
    with unchecked():
        history = fit(m, batches, n_steps=n_steps, **FLAT, **options)
    return weights(m), history.losses


def interrupted_at(number, function):
    """``function``, which Ctrl-C meets when it is first asked for ``number``."""
    asked = []

    def called(i):
        asked.append(i)
        if i == number and asked.count(i) == 1:
            raise KeyboardInterrupt
        return function(i)

    return called


@pytest.mark.parametrize(
    ("where", "number", "done"),
    [
        ("batches", 0, 0),
        ("batches", 8, 4),  # the first of two batches of step 5
        ("batches", 9, 4),  # the second
        ("schedule", 5, 4),  # where gradients are there, and the weights have not moved
        ("schedule", 6, 5),  # of which there is a checkpoint already
    ],
)
def test_an_interrupt_saves_the_last_whole_step(where, number, done, tmp_path):
    functions = {"batches": batches, "schedule": FLAT["schedule"]}
    functions[where] = interrupted_at(number, functions[where])
    options = {"n_steps": 9, "run": tmp_path, "accumulate": 2, "save_every": 5, **QUIET}
    first, second = model(dropout=0.3), model(seed=1 if done else 0, dropout=0.3)
    with pytest.raises(KeyboardInterrupt):
        fit(first, **functions, **options)
    assert [p.name for p in checkpoints(tmp_path)] == [f"step-{done:08d}.pt"] * (done > 0)
    expected = whole_run(done, accumulate=2)[0] if done else weights(model())
    assert_close(weights(first), expected, rtol=0, atol=0)
    history = fit(second, **functions, **options)
    expected, losses = whole_run(9, accumulate=2)
    assert_close(weights(second), expected, rtol=0, atol=0)
    assert history.losses == losses


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, OSError("no sentences"), MemoryError])
def test_whatever_ends_training_the_whole_steps_are_saved(error, tmp_path):
    def text(i):
        if i == 4:
            raise error
        return TextBatch(batches(i).tgt)

    m = Noisy()
    with pytest.raises(type(error) if isinstance(error, OSError) else error):
        fit(m, text, n_steps=9, run=tmp_path, **FLAT)
    [saved] = checkpoints(tmp_path)
    assert saved.name == "step-00000004.pt"
    load_checkpoint(saved, kept := Noisy(seed=1))
    assert_close(weights(m), weights(kept), rtol=0, atol=0)


def test_a_signal_that_waited_for_what_failed_does_not_stop_the_save(tmp_path, monkeypatch):
    def fails(i):
        if i < 4:
            return TextBatch(batches(i).tgt)
        monkeypatch.setattr(
            "transformer.training.loop.uninterrupted", interrupted
        )  # for the first to come
        raise RuntimeError("connection closed by peer")

    def interrupted():
        monkeypatch.undo()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(Noisy(), fails, n_steps=9, run=tmp_path, **FLAT)
    assert [p.name for p in checkpoints(tmp_path)] == ["step-00000004.pt"]


def test_half_an_update_is_not_saved(tmp_path):
    m = Noisy()
    optimizer = torch.optim.SGD(m.parameters(), lr=0.1)

    def fails(optimizer, *_):
        with torch.no_grad():
            m.table += 1
        if optimizer.state.setdefault(m.table, {}).setdefault("n", 0) == 2:
            raise MemoryError
        optimizer.state[m.table]["n"] += 1

    optimizer.register_step_pre_hook(fails)
    options = {"optimizer": optimizer, "run": tmp_path, **QUIET}
    with pytest.raises(MemoryError):
        fit(m, lambda i: TextBatch(batches(i).tgt), n_steps=9, **options)
    assert checkpoints(tmp_path) == []


def test_training_does_not_need_somewhere_to_tell_of_it(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(Full(), write_through=True))
    options = {"schedule": FLAT["schedule"], "evaluate": lambda m: 1.0, "device": "cpu"}
    history = fit(Noisy(), lambda i: TextBatch(batches(i).tgt), n_steps=12, **options)
    assert len(history.losses) == 12


def test_an_interrupted_evaluation_loses_nothing(tmp_path):
    def evaluate(m):
        raise KeyboardInterrupt

    for every in (3, 5):  # when a checkpoint is not due, and when it is
        options = {"run": tmp_path / f"{every}", "save_every": 5, **FLAT}
        m = model(dropout=0.3)
        with pytest.raises(KeyboardInterrupt):
            fit(m, batches, n_steps=9, evaluate=evaluate, evaluate_every=every, **options)
        assert m.training
        assert [p.name for p in checkpoints(options["run"])] == [f"step-0000000{every}.pt"]
        history = fit(model(seed=1, dropout=0.3), batches, n_steps=9, **options)
        assert history.losses == whole_run(9)[1]


TRACED = [str(path) for path in Path(training.__file__).parent.glob("*.py")] + [tensors.__file__]


def interrupted_at_line(number, function):
    """Calls ``function``, with Ctrl-C at the ``number``-th line of training that it comes to."""
    seen = set()

    def trace(frame, event, _):
        code = frame.f_code
        if code.co_filename not in TRACED:
            return None
        line = code.co_filename, frame.f_lineno, frame.f_locals.get("name")  # of each tensor anew
        if event == "line" and line not in seen:
            seen.add(line)
            if len(seen) == number:
                signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


class Noisy(Bigrams):
    """Of several weights, with something random."""

    def __init__(self, seed=0, dropout=0.3):
        super().__init__()
        self.more, self.dropout = torch.nn.Parameter(torch.full((V,), float(seed))), dropout

    def forward(self, tokens):
        return F.dropout(super().forward(tokens), self.dropout) + self.more


@pytest.mark.usefixtures("ctrl_c", "unchecked")  # for its many steps
def test_interrupted_at_any_line_it_ends_in_the_same_bits(tmp_path):
    def learn(m, n_steps, run=None):
        def text(i):
            return TextBatch(batches(i).tgt)

        return fit(m, text, n_steps=n_steps, run=run, **options).losses

    options = {"save_every": 2, **FLAT}
    first, whole = tmp_path / "first", Noisy()
    learn(Noisy(), 2, first)
    losses = learn(whole, 6)
    number, n_saved, stopped = 0, set(), True
    while stopped:
        number, m = number + 1, Noisy(seed=1)
        run, start = shutil.copytree(first, tmp_path / f"{number}"), weights(m)
        stopped = interrupted_at_line(number, lambda m=m, run=run: learn(m, 5, run))
        n_saved.add(checkpoints(run)[-1].name)
        if not all(torch.equal(p, start[name]) for name, p in weights(m).items()):
            kept = Noisy()
            load_checkpoint(checkpoints(run)[-1], kept)
            assert_close(weights(m), weights(kept), rtol=0, atol=0)
        last = Noisy(seed=2)
        assert learn(last, 6, run) == losses
        assert_close(weights(last), weights(whole), rtol=0, atol=0)
    assert n_saved == {f"step-{n:08d}.pt" for n in (2, 3, 4, 5)}


def test_an_interrupt_without_a_run_leaves_whole_steps():
    m = model(dropout=0.3)
    with pytest.raises(KeyboardInterrupt):
        fit(m, interrupted_at(2, batches), n_steps=9, **FLAT)
    assert_close(weights(m), whole_run(2)[0], rtol=0, atol=0)


def test_trains_in_a_thread_of_its_own():
    with ThreadPoolExecutor() as pool:
        m = model(dropout=0.3)
        pool.submit(fit, m, batches, n_steps=2, **FLAT).result()
    assert_close(weights(m), whole_run(2)[0], rtol=0, atol=0)


def learns_beside_another(rank, folder):
    """One of two processes; both are interrupted in step 4, at different batches."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    entered, no_sync = [], DistributedDataParallel.no_sync
    DistributedDataParallel.no_sync = lambda self: entered.append(None) or no_sync(self)
    try:
        fit(
            model(dropout=0.3),
            interrupted_at(11 - rank, lambda i: batches(2 * i + rank)),
            n_steps=6,
            accumulate=3,
            run=f"{folder}/run",
            **FLAT,
        )
    except KeyboardInterrupt:
        (folder / f"{rank}.json").write_text(json.dumps(len(entered)))


def test_two_processes_share_gradients_once_a_step_and_are_interrupted_apart(tmp_path):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "torch._dynamo"])
    processes = [
        context.Process(target=learns_beside_another, args=(rank, tmp_path)) for rank in (0, 1)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert [p.name for p in checkpoints(tmp_path / "run")] == ["step-00000003.pt"]
    assert [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1)] == [6, 6]


def test_each_evaluation_leaves_a_line_on_stderr(monkeypatch, capsys):
    class Epochs:
        def __len__(self):
            return 4

        def __call__(self, i):
            return batches(i)

    class Patient(tqdm):
        format_dict = property(lambda self: {**super().format_dict, "elapsed": 75.4})

    monkeypatch.setattr("transformer.training.loop.tqdm", Patient)
    values = iter([3.25, 2.5, 1.75])
    options = {"evaluate": lambda m: next(values), "evaluate_every": 2, "device": "cpu"}
    rates = {"schedule": lambda n: n / 1000}
    history = fit(model(), Epochs(), n_steps=5, accumulate=3, **options, **rates)
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = [line for line in re.split(r"[\r\n]+", printed.err) if line.startswith("step")]
    assert lines == [
        f"step {n}, epoch {epoch}: training loss {sum(losses) / len(losses):.3f}, "
        f"evaluation {value}, learning rate 0.00{n}, 75 s"
        for n, epoch, losses, value in (
            (2, "1.50", history.losses[:2], 3.25),
            (4, "3.00", history.losses[2:4], 2.5),
            (5, "3.75", history.losses[4:], 1.75),
        )
    ]
    assert f"loss={sum(history.losses) / 5:.3f}" in printed.err  # a mean, not the last one
    values = iter([1.0])
    fit(model(), batches, n_steps=1, progress=False, **options, **rates)
    assert capsys.readouterr() == ("", "")


def test_of_many_processes_the_first_alone_saves_and_shows_how_it_goes(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("transformer.training.loop.rank", lambda: 1)
    options = {"schedule": lambda step: 1e-3, "device": "cpu", "run": tmp_path}
    fit(model(), batches, n_steps=2, evaluate=lambda m: 1.0, **options)
    assert checkpoints(tmp_path) == []
    assert capsys.readouterr() == ("", "")


def test_no_process_goes_on_before_the_first_has_saved(tmp_path, monkeypatch):
    seen = []  # what is there where all wait for each other
    monkeypatch.setattr("transformer.training.loop.world_size", lambda: 2)
    monkeypatch.setattr(dist, "barrier", lambda: seen.append(checkpoints(tmp_path)[-1].stem[-1]))
    fit(model(), batches, n_steps=5, run=tmp_path, save_every=2, **FLAT)
    assert seen == ["2", "4", "5"]


def test_the_best_checkpoint_stays_beside_the_latest(tmp_path):
    values = iter([3.0, 1.0, math.nan, 1.0, 2.0])
    options = {"evaluate": lambda m: next(values), "evaluate_every": 2, "save_every": 2, **FLAT}
    fit(model(), batches, n_steps=10, run=tmp_path, keep=2, **options)
    names = [f"step-{n:08d}.pt" for n in (4, 8, 10)]
    assert [p.name for p in checkpoints(tmp_path)] == names
    assert best_checkpoint(tmp_path).name == "step-00000004.pt"
    values = iter([0.5])
    fit(model(), batches, n_steps=12, run=tmp_path, keep=1, **options)
    assert [p.name for p in checkpoints(tmp_path)] == ["step-00000012.pt"]
    assert best_checkpoint(tmp_path).name == "step-00000012.pt"


def test_a_loss_that_is_not_finite_stops_training_and_is_not_saved(tmp_path):
    m = model()
    with torch.no_grad():
        m.decoder.layers[0].feed_forward.W_1.bias[0] = math.nan
    with pytest.raises(FloatingPointError, match="the loss of step 1 is nan"):
        fit(m, batches, n_steps=2, run=tmp_path, save_every=1, **FLAT)
    assert checkpoints(tmp_path) == []


def test_what_is_no_module_is_refused(unchecked):
    class Almost:
        pad_id = 0

    with pytest.raises(TypeError, match=r"model must be a torch\.nn\.Module, got Almost"):
        fit(Almost(), batches, n_steps=1, **FLAT)


def test_a_sharded_model_is_not_saved_in_a_run(tmp_path):
    m = model()
    m.reshard = lambda: None  # as fully_shard gives it, which only torchrun can call
    with pytest.raises(ValueError, match=f"run must be None for a model of .* got '{tmp_path}'"):
        fit(m, batches, n_steps=1, run=tmp_path, **FLAT)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_steps": 0}, "n_steps must be positive, got 0"),
        ({"accumulate": 0}, "accumulate must be positive, got 0"),
        ({"save_every": -1}, "save_every must be positive, got -1"),
        ({"save_every": 0}, "save_every must be positive, got 0"),
        ({"keep": 0}, "keep must be positive, got 0"),
        ({"evaluate_every": 0}, "evaluate_every must be positive, got 0"),
        ({"clip_norm": 0.0}, "clip_norm must be positive or None, got 0.0"),
        ({"clip_norm": math.nan}, "clip_norm must be positive or None, got nan"),
        ({"smoothing": 1.0}, "smoothing must be at least 0 and below 1, got 1.0"),
        ({"smoothing": -0.1}, "smoothing must be at least 0 and below 1, got -0.1"),
        ({"precision": "half"}, "precision must be one of .* got 'half'"),
        ({"precision": "fp16"}, "precision must be bf16 or fp32 on cpu, got 'fp16'"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses(changes, message):
    m = model()
    before = weights(m)
    asked = []
    with pytest.raises(ValueError, match=message):
        fit(m, asked.append, **{"n_steps": 1, **FLAT, **changes})
    assert asked == []  # before anything is done
    assert_close(weights(m), before, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: paper_schedule(0), "d_model must be positive, got 0"),
        (lambda: paper_schedule(512, warmup=0), "warmup must be positive, got 0"),
        (lambda: warmup_schedule(0.0, warmup=5), "peak must be positive and finite, got 0.0"),
        (lambda: warmup_schedule(math.inf, warmup=5), "peak must be positive and finite, got inf"),
        (lambda: linear_schedule(0.0, warmup=5, n_steps=9), "peak must be positive and finite"),
        (lambda: linear_schedule(1.0, warmup=0, n_steps=9), "warmup must be positive, got 0"),
        (lambda: linear_schedule(1.0, warmup=1, n_steps=0), "n_steps must be positive, got 0"),
        (
            lambda: linear_schedule(1.0, warmup=6, n_steps=5),
            "warmup must be at most n_steps = 5, got 6",
        ),
        (
            lambda: smoothed_cross_entropy(torch.zeros(2, 3, 4), torch.zeros(2, 2).long()),
            r"labels must have shape \(2, 3\), got \(2, 2\)",
        ),
        (lambda: evaluate_loss(model(), []), "batches must hold at least one label, got none"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses_bad_schedules_and_no_data(make, message):
    with pytest.raises(ValueError, match=message):
        make()
