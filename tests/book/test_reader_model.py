"""The model that the reader puts together in chapter 8 goes through the chapters after it."""

import ast

import pytest
import torch
from torch import nn

from transformer_book.experiments import Plan, chapter
from transformer_book.experiments.translator import (
    SENTENCES,
    corpus,
    experiment,
    my_model,
    my_weights,
    trained,
    write,
)
from transformer_book.experiments.translator import trained_models as weights
from transformer_book.notebooks import cells_of, chapter_path, run_cells

PARTS = ("MyEmbedding", "MyEncoderLayer", "MyDecoderLayer", "MyTransformer")
FOLDS = ("my-model*",)


def definitions(number, ids=None):
    """The classes and functions of a chapter's cells, as Python without comments and docstrings."""
    cells = chapter(number, *(ids or ["*"]))
    trees = (ast.parse(source) for name, source in cells.sources() if name != "set-up")
    nodes = (node for tree in trees for node in tree.body)
    made = [node for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    return {node.name: ast.unparse(node) for node in made}


def made(number):
    """The reader's model as a chapter after the eighth holds it, untrained."""
    path = chapter_path(number)
    wanted = [cell for cell in cells_of(path) if cell.startswith(("imports", "my-model"))]
    names = run_cells(path, wanted)
    return names["MyTransformer"](len(corpus().english), len(corpus().french))


@pytest.mark.parametrize("number", [9, 10])
def test_the_folds_hold_the_model_of_chapter_8(number):
    here, eighth = definitions(number, FOLDS), definitions(8)
    assert here == {name: eighth[name] for name in PARTS}


@pytest.mark.parametrize("number", [9, 10])
def test_the_stored_weights_fit_it_and_translate(number):
    model = made(number)
    model.load_state_dict(my_weights())
    wanted = ["le chat noir dort", "le chien voit le chat", "le chat voit le chien"]
    said = write(model, SENTENCES)
    assert said[:3] == wanted
    assert said[3] == "la vieille reine ne voit pas souvent les chats noirs"


def test_the_packages_post_ln_transformer_is_its_twin():
    mine = made(9)
    mine.load_state_dict(my_weights())
    src, tgt = torch.randint(4, 200, (2, 3, 7), generator=torch.Generator().manual_seed(0))
    src[1, 5:] = tgt[2, 4:] = 0  # padding
    words = tgt != 0  # what the two make of padding is never read
    both = my_model()(src, tgt)[words], mine(src, tgt)[words]
    torch.testing.assert_close(*both, rtol=1e-4, atol=1e-4)


def test_its_weights_are_no_seed_of_the_stored_translators():
    with pytest.raises(ValueError, match=r"seed must be one of \[0, 1, 2, 3, 4, 5, 6, 7, 8, 9\]"):
        trained(10)


def test_it_is_kept_by_the_names_that_it_has(monkeypatch, tmp_path):
    def learn(model, plan, n_steps):
        model.bias.data.fill_(plan.lr)
        return {"exact": 1.0}

    monkeypatch.setattr(weights, "WEIGHTS", tmp_path / "weights")
    monkeypatch.setattr(experiment, "learn", learn)
    model = nn.Linear(2, 3)
    plan = Plan(0.25, 0, (9,), sweep=False)
    assert experiment.learn_and_keep_mine(model, plan, 9) == {"exact": 1.0}
    found = my_weights()
    assert found["bias"].tolist() == [0.25] * 3
    assert found["weight"].dtype == torch.float32
    assert torch.equal(found["weight"], model.weight.half().float())


def test_the_arm_makes_the_model_of_the_page():
    arm = experiment.trained.arms()["MyTransformer, trained longer"]
    assert set(arm.make().state_dict()) == set(my_weights())
    assert (arm.steps, arm.seeds, arm.chapter) == ((2000,), (0,), 9)
