"""Chapter 15's stored experiments: the language, its training, the law, and what is stored."""

import copy
import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import nn

from transformer.family import DecoderOnly
from transformer.runtime import default_device
from transformer_book.experiments import Plan
from transformer_book.experiments.chapter_15.experts import Experts
from transformer_book.experiments.chapter_15.experts_in_text import small_model
from transformer_book.experiments.chapter_15.looking_back import FromZero, Handed
from transformer_book.experiments.family import (
    BATCH_TOKENS,
    CHANGES,
    SIZES,
    Language,
    LanguageBatches,
    Law,
    ScalingRun,
    best_sizes,
    block_config,
    block_results,
    bootstrap,
    excess_loss,
    experiment,
    fit_law,
    language,
    learning,
    power_of,
    results,
    scaling,
    scaling_model,
    scaling_runs,
    train_on_language,
)
from transformer_book.experiments.family.experiment import ENDS, curve
from transformer_book.experiments.family.language import N_SYMBOLS
from transformer_book.experiments.family.learning import Training
from transformer_book.experiments.family.models import BASE, count_embedding, count_parameters
from transformer_book.experiments.runs import Run, Stored, write


def one_after_another(n):
    """c = a + b mod n, for sure."""
    a, b = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    return Language(np.eye(n)[(a + b) % n])


def test_text_follows_the_probabilities():
    text = one_after_another(5).write(20, 9, seed=[0])
    assert text.shape == (20, 9)
    symbols = text - 1
    assert (symbols[:, 2:] == (symbols[:, :-2] + symbols[:, 1:-1]) % 5).all()
    made = Language.of_order(2, n_symbols=3, seed=1)
    symbols = made.write(4000, 12, seed=[0]).numpy() - 1
    for c in range(3):
        follows = symbols[(symbols[:, 4] == 0) & (symbols[:, 5] == 2), 6]
        assert (follows == c).mean() == pytest.approx(made.probabilities[0, 2, c], abs=0.05)


@pytest.mark.parametrize("order", [1, 2])
def test_a_row_begins_as_text_without_end_goes_on(order):
    made = Language.of_order(order, n_symbols=3, seed=1)
    symbols = made.write(20_000, 8, seed=[0]).numpy() - 1
    for at in (0, 6):
        found = np.histogramdd(symbols[:, at : at + order], bins=[np.arange(4) - 0.5] * order)[0]
        np.testing.assert_allclose(found / len(symbols), made.contexts, atol=0.015)


def test_the_entropy_is_that_of_long_text():
    assert Language(np.full((4, 4, 4), 0.25)).entropy == pytest.approx(math.log(4))
    for order in (1, 2):
        made = Language.of_order(order, n_symbols=3, seed=1)
        s = made.write(2000, 50, seed=[0]).numpy() - 1
        places = [s[:, i : 48 + i] for i in range(3)][2 - order :]
        told = -np.log(made.probabilities[tuple(places)])
        assert made.entropy == pytest.approx(told.mean(), abs=0.01)


@pytest.mark.parametrize(
    ("order", "entropy", "first"),
    [(1, 4.0676330, [12, 10, 16, 207, 5, 33]), (2, 2.8179008, [5, 7, 3, 12, 43, 2])],
)
def test_the_language_is_the_same_on_every_machine(order, entropy, first):
    made = language(order)
    assert made.probabilities.shape == (N_SYMBOLS[order],) * (order + 1)
    np.testing.assert_allclose(made.probabilities.sum(axis=-1), 1)
    assert made.entropy == pytest.approx(entropy, abs=1e-6)
    assert LanguageBatches(0, order=order)(70).tokens[0, :6].tolist() == first


def test_a_batch_depends_on_its_number_and_the_seed_alone():
    batches = LanguageBatches(3)
    third, later = batches(3).tokens, batches(64).tokens
    assert torch.equal(batches(3).tokens, third)
    assert not torch.equal(third, later)
    assert not torch.equal(third, batches(4).tokens)
    assert not torch.equal(third, LanguageBatches(4)(3).tokens)


class Knows(nn.Module):
    """The language itself, with ``share`` of what it expects on <pad>."""

    def __init__(self, order, share=0.0):
        super().__init__()
        self.order, self.share = order, nn.Parameter(torch.tensor(share))

    def forward(self, tokens):
        symbols, n = tokens.cpu().numpy() - 1, N_SYMBOLS[self.order]
        p = np.full((*tokens.shape, n + 1), 1e-9)  # where too little is known
        before = [symbols[:, i : symbols.shape[1] - self.order + 1 + i] for i in range(self.order)]
        p[:, self.order - 1 :, 1:] = language(self.order).probabilities[tuple(before)]
        p *= 1 - self.share.item()
        p[..., 0] = self.share.item()
        return torch.from_numpy(p).log().float().to(tokens.device)


@pytest.mark.parametrize("order", [1, 2])
def test_excess_is_what_a_model_does_not_know(order):
    assert excess_loss(Knows(order), order=order) == pytest.approx(0, abs=1e-6)
    half = excess_loss(Knows(order, share=0.5), order=order)
    assert half == pytest.approx(math.log(2), abs=1e-5)


def test_who_knows_nothing_is_above_the_entropy_by_the_rest():
    model = scaling_model(8).to(default_device())
    with torch.no_grad():
        model.output.weight.zero_()  # which expects all alike
    rest = math.log(N_SYMBOLS[1] + 1) - language().entropy
    assert excess_loss(model) == pytest.approx(rest, abs=0.03)


def test_one_way_has_many_ends(monkeypatch):
    monkeypatch.setattr(learning, "WARMUP", 4)

    def new():
        torch.manual_seed(0)
        return scaling_model(8)

    way = Training(new(), lr=0.01, seed=5)
    way.run(8)
    before = copy.deepcopy(way.model.state_dict())
    end = way.finished(10)
    assert all(torch.equal(x, before[name]) for name, x in way.model.state_dict().items())
    assert len(way.losses) == 8
    assert end.optimizer.param_groups[0]["lr"] == pytest.approx(0.01 / 3)
    way.run(10)
    assert way.optimizer.param_groups[0]["lr"] == 0.01
    way = Training(new(), lr=0.01, seed=0)
    way.run(1)
    assert way.optimizer.param_groups[0]["lr"] == 0.01 / 4  # the warm-up rises in a line
    assert excess_loss(way.model) != excess_loss(end.model)
    model, losses = train_on_language(new(), lr=0.01, seed=5, n_steps=10)
    assert losses == torch.stack(end.losses).tolist()
    assert losses[-1] < losses[0]
    assert excess_loss(model) == excess_loss(end.model)
    with pytest.raises(ValueError, match="lr must be"):
        train_on_language(new(), lr=0.0, seed=0, n_steps=1)


@pytest.mark.parametrize("name", CHANGES)
def test_each_change_has_as_many_parameters(name):
    config = block_config(name)
    assert count_parameters(DecoderOnly(config)) == pytest.approx(110_336, rel=0.002)
    kept = dataclasses.asdict(BASE) | CHANGES[name] | {"d_ff": config.d_ff}
    assert dataclasses.asdict(config) == kept


def test_all_changes_are_the_block_of_today():
    assert CHANGES["all"] == {
        **{"norm_kind": "rms", "feed_forward": "swiglu", "position": "rotary"},
        **{"n_key_heads": 2, "bias": False},
    }


LAW = Law(E=2.0, A=9.0, alpha=0.4, B=300.0, beta=0.5)


def planted(noise=0.0, sizes=(1e3, 4e3, 16e3, 64e3, 256e3), steps=9):
    rng = np.random.default_rng(0)
    for N in map(int, sizes):
        for D in (1e4 * 2.0 ** np.arange(steps)).astype(int).tolist():
            for seed in range(3):
                excess = LAW.loss(N, D) - language().entropy + noise * rng.standard_normal()
                yield ScalingRun(1, N, N // 2, D, seed, 0.01, float(excess), float(excess) + 1)


def test_the_fit_finds_a_law_that_was_planted():
    found = fit_law(list(planted()))
    assert dataclasses.astuple(found) == pytest.approx(dataclasses.astuple(LAW), rel=0.01)
    other = fit_law(list(planted()), count="non-embedding")
    assert pytest.approx(LAW.A * 0.5**LAW.alpha, rel=0.01) == other.A


def test_a_law_is_fitted_with_an_E_that_is_known():
    runs = list(planted(noise=0.02))
    known = fit_law(runs, E=LAW.E)
    assert known.E == LAW.E
    assert known.size_exponent == pytest.approx(LAW.size_exponent, abs=0.03)
    other = fit_law(runs, E=LAW.E - 0.3)  # the rest of the law has to make up for it
    assert other.E == LAW.E - 0.3
    assert other.alpha < known.alpha - 0.05


def test_the_fit_reads_the_way_where_it_is_asked_to():
    higher = fit_law(list(planted()), fallen=False)  # all by 1
    assert pytest.approx(LAW.E + 1, rel=0.01) == higher.E
    assert pytest.approx(LAW.alpha, rel=0.01) == higher.alpha


def test_no_best_size_where_the_lowest_loss_is_at_an_end():
    computes, sizes = best_sizes([run for run in planted() if run.n_parameters < 5000])
    assert computes.shape == sizes.shape == (0,)


def test_what_cannot_be_fitted_is_refused():
    with pytest.raises(ValueError, match="runs must be at least five, got 4"):
        fit_law(list(planted())[:4])


def test_the_bootstrap_draws_as_many_seeds_of_each_cell_and_fits_as_it_is_told(monkeypatch):
    runs = list(planted(sizes=(1e3, 4e3), steps=2))  # four cells of three seeds
    fits = []
    monkeypatch.setattr(scaling, "fit_law", lambda some, **told: fits.append((some, told)) or LAW)
    options = {"count": "non-embedding", "fallen": False, "E": 1.5}
    assert bootstrap(runs, 5, seed=7, **options) == [LAW] * 5
    rng = np.random.default_rng(7)
    for some, told in fits:
        rows = np.concatenate([3 * cell + rng.integers(3, size=3) for cell in range(4)])
        assert some == [runs[i] for i in rows]
        assert told == options


def test_between_measured_numbers_of_tokens_the_loss_is_on_a_line_over_their_logarithm():
    curve = [(100.0, 3.0), (10_000.0, 1.0)]
    assert scaling._between(curve, 1000.0) == pytest.approx(2.0)
    assert scaling._between(curve, 100.0) == 3.0
    assert scaling._between(curve, 99.0) is None


def test_best_sizes_read_the_way_where_they_are_asked_to():
    runs = [
        dataclasses.replace(run, excess_on_the_way=run.excess + 30 / run.n_parameters**0.5)
        for run in planted(steps=14)
    ]
    as_fallen = [dataclasses.replace(run, excess=run.excess_on_the_way) for run in runs]
    _, sizes = best_sizes(runs, fallen=False)
    assert sizes.tolist() == best_sizes(as_fallen)[1].tolist()
    assert sizes.tolist() != best_sizes(runs)[1].tolist()


def test_best_sizes_grow_as_the_law_says():
    computes, sizes = best_sizes(list(planted(steps=14)))
    best = (LAW.alpha * LAW.A / (LAW.beta * LAW.B)) ** (1 / (LAW.alpha + LAW.beta))
    wanted = best * (computes / 6) ** LAW.size_exponent  # Hoffmann et al. (2022), Eq. 4
    assert len(sizes) > 20
    assert np.abs(np.log(sizes / wanted)).max() < 0.35  # of sizes that are 4 times each other
    assert power_of(computes, sizes) == pytest.approx(LAW.size_exponent, abs=0.04)
    half, other = best_sizes(list(planted(steps=14)), count="non-embedding", fallen=False)
    assert half.min() == pytest.approx(computes.min() / 2, rel=0.2)
    assert power_of(half, other) == pytest.approx(LAW.size_exponent, abs=0.04)
    assert power_of(np.array([1.0, 2.0]), np.array([3.0, 24.0])) == pytest.approx(3)


def run_of(arm, lr, seed, excess):
    """A run, with half a nat more on the way."""
    return Run(
        arm=arm,
        sweep=seed >= 100,
        lr=lr,
        seed=seed,
        n_parameters=7,
        n_steps=max(excess),
        curve={n: {"excess": x, "on_the_way": x + 0.5} for n, x in excess.items()},
        seconds=2.0 + seed % 2,
        made={},
    )


def test_results_are_those_of_the_rate_that_other_seeds_chose(tmp_path, monkeypatch):
    tuned = [run_of("base", lr, 100, {9: loss}) for lr, loss in ((1.0, 0.4), (2.0, 0.3))]
    judged = [run_of("base", 2.0, seed, {9: 0.5 + seed}) for seed in (0, 1)]
    other = run_of("base", 1.0, 0, {9: 0.1})  # better, but not of the rate that was chosen
    monkeypatch.setattr(results, "BLOCKS", tmp_path / "blocks.json")
    write(results.BLOCKS, Stored({"base": {"d_ff": 5}}, (*tuned, *judged, other)))
    (row,) = block_results.__wrapped__()
    assert (row.lr, row.n_steps, row.facts["d_ff"], row.tried) == (2.0, 9, 5, {1.0: 0.4, 2.0: 0.3})
    assert (row.excess, row.mean) == ((0.5, 1.5), 1.0)
    assert row.seconds == 2.5


def test_a_scaling_run_has_the_rate_of_its_length_and_of_the_longest_on_the_way(
    tmp_path, monkeypatch
):
    runs = (
        run_of("8", 1.0, 100, {2: 0.9, 4: 0.3}),
        run_of("8", 2.0, 100, {2: 0.8, 4: 0.4}),
        run_of("8", 1.0, 0, {2: 0.95, 4: 0.35}),
        run_of("8", 2.0, 0, {2: 0.85}),
    )
    path = tmp_path / "scaling.json"
    monkeypatch.setattr(results, "SCALING", {1: path, 2: path})
    write(path, Stored({"8": {"d_model": 8, "n_embedding": 3}}, runs))
    short, long = scaling_runs.__wrapped__()
    assert (short.lr, short.excess, short.excess_on_the_way) == (2.0, 0.85, 1.45)
    assert (long.lr, long.excess, long.excess_on_the_way) == (1.0, 0.35, 0.85)
    assert (short.n_tokens, long.n_tokens) == (2 * BATCH_TOKENS, 4 * BATCH_TOKENS)
    assert long.loss == language().entropy + 0.35
    assert long.loss_on_the_way == language().entropy + 0.85
    *_, back = scaling_runs.__wrapped__(2)
    assert back.loss == language(2).entropy + 0.35
    assert back.loss_on_the_way == language(2).entropy + 0.85
    assert long.n_non_embedding == 4


def test_training_for_the_store_is_the_page_s(monkeypatch):
    monkeypatch.setattr(learning, "WARMUP", 2)

    def make():
        torch.manual_seed(3)
        return scaling_model(8)

    found = curve(make(), Plan(0.02, 3, (3, 10), sweep=False), order=1)
    model, _ = train_on_language(make(), lr=0.02, seed=3, n_steps=10)
    assert found[10]["excess"] == round(excess_loss(model), 5)
    assert list(found) == [3, 10]
    way = Training(make(), lr=0.02, seed=3)
    way.run(10)
    assert found[10]["on_the_way"] == round(excess_loss(way.model), 5)
    assert found[10]["on_the_way"] != found[10]["excess"]
    alone = curve(make(), Plan(0.02, 3, (10,), sweep=False), order=1)
    assert alone == {10: {"excess": found[10]["excess"]}}


def is_inside(rate, tried):
    return min(tried) < rate < max(tried)


def test_what_is_stored_of_the_blocks_is_complete():
    assert [row.name for row in block_results()] == list(CHANGES) == list(experiment.blocks.arms())
    for row in block_results():
        config = block_config(row.name)
        assert row.n_parameters == count_parameters(DecoderOnly(config))
        assert row.facts["d_ff"] == config.d_ff
        assert len(row.excess) == 5
        assert len(row.tried) >= 4
        assert is_inside(row.lr, row.tried)


@pytest.mark.parametrize(
    ("order", "known"), [(1, experiment.scaling), (2, experiment.scaling_back)]
)
def test_what_is_stored_of_the_sizes_is_complete(order, known):
    runs = scaling_runs(order)
    found = {(run.d_model, run.n_tokens // BATCH_TOKENS, run.seed) for run in runs}
    assert found == {(d, n_steps, seed) for d in SIZES for n_steps in ENDS for seed in range(3)}
    for name, arm in known.arms().items():
        model, runs = scaling_model(int(name), order=order), known.runs(name)
        assert {run.n_parameters for run in runs} == {count_parameters(model)}
        assert arm.about["n_embedding"] == count_embedding(model)
        assert known.wanted(arm, runs) == []
        for n_steps in ENDS:
            assert is_inside(known.rate(name, n_steps), known.tried(name, n_steps))


def test_each_place_is_handed_the_symbol_before_it_and_no_other():
    torch.manual_seed(0)
    model = Handed(BASE.replace(n_layers=1)).eval()
    for block in model.blocks:
        block.self_attention.W_o.weight.data.zero_()  # so that no head carries anything
    text = torch.tensor([[5, 6, 7, 8]])
    other = model(text) != model(torch.tensor([[5, 9, 7, 8]]))
    assert other.any(dim=-1)[0].tolist() == [False, True, True, False]


def test_positions_from_zero_are_the_base_s_and_begin_with_nothing():
    model = FromZero(BASE)
    assert not any(p.any() for p in model.embedding.positions.parameters())
    assert count_parameters(model) == count_parameters(DecoderOnly(BASE))
    moved = model(torch.tensor([[7, 7, 7]])).sum()
    moved.backward()
    assert all(p.grad.any() for p in model.embedding.positions.parameters())


def test_a_word_reads_the_sum_of_the_experts_that_were_chosen():
    torch.manual_seed(0)
    layer = Experts(4, 3, 5, k=2).eval()
    layer.advantage[3] = 9.0  # chosen by every row; it counts in the choice alone
    x = torch.randn(6, 4)
    shares = layer.router(x).softmax(dim=-1)
    rest = shares.clone()
    rest[:, 3] = -1
    second = rest.argmax(dim=-1)
    wanted = [
        shares[i, 3] * layer.experts[3](row) + shares[i, j] * layer.experts[j](row)
        for i, (row, j) in enumerate(zip(x, second.tolist(), strict=True))
    ]
    assert torch.allclose(layer(x), torch.stack(wanted), atol=1e-6)
    assert layer.counts.sum() == 12
    assert layer.counts[3] == 6


def test_experts_in_text_are_eight_of_the_block_s_own_size():
    one = DecoderOnly(block_config("all"))
    eight, wide = small_model("eight experts, one is read"), small_model("one as large as eight")
    more = [count_parameters(m) - count_parameters(one) for m in (eight, wide)]
    in_network = sum(p.numel() for p in one.blocks[0].feed_forward.parameters())
    assert more == [2 * (7 * in_network + 64 * 8), 2 * 7 * in_network]
    text = torch.randint(1, 100, (3, 8))
    assert eight(text).shape == (3, 8, 128)
