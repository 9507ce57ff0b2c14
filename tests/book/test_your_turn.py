"""What the reader is told: nothing yet, wrong and how, or right; and that "run all" goes on."""

import functools
import math

import numpy as np
import pytest
import torch

from transformer_book.your_turn import Question, YourTurn, is_empty


def average(x, weights):
    return weights @ x


INPUTS = [
    (torch.randn(n, 2, generator=torch.Generator().manual_seed(n)), torch.full((3, n), 1 / n))
    for n in (5, 1, 2)
]


@pytest.fixture
def told(capsys):
    """What a check says of an attempt."""

    def told(attempt, check=None):
        (check or YourTurn("Your turn 9.1", average, INPUTS))(attempt)
        return capsys.readouterr().out

    return told


def test_nothing_written_is_said_so_and_nothing_else(told):
    def head_only(x, weights):
        """(S, d), (T, S) -> (T, d)"""
        ...

    def with_pass(x, weights):
        pass

    def with_gaps(x, weights):
        total = ...
        return total @ x

    def returns_dots(x, weights):
        return ...

    for attempt in (head_only, with_pass, with_gaps, returns_dots):
        said = told(attempt)
        assert said.startswith("○ Your turn 9.1: not written yet")
        assert len(said.splitlines()) == 1


def test_what_is_right_gets_a_tick(told):
    assert told(lambda x, weights: (weights[:, :, None] * x).sum(1)) == (
        "✓ Your turn 9.1: right on 3 inputs\n"
    )

    def indexed_with_dots(x, weights):
        return weights[..., :] @ x

    assert told(indexed_with_dots).startswith("✓")


def test_later_cells_run_with_what_is_right(capsys):
    check = YourTurn("Your turn 9.1", average, INPUTS)

    def used(mean):
        chosen = check.use(mean, average)
        said = capsys.readouterr().out
        assert said.startswith("→ From here on this page runs with ")
        assert ("your mean." in said) == (chosen is mean)
        assert chosen in (mean, average)
        return said.strip().partition("because ")[2]

    def mean(x, weights):
        return (weights[:, :, None] * x).sum(1)

    assert not used(mean)

    def mean(x, weights):
        """(S, d), (T, S) -> (T, d)"""
        ...

    assert used(mean) == "nothing is written yet."

    def mean(x, weights):
        total = ...
        return total @ x

    assert used(mean) == "nothing is written yet."

    def mean(x, weights):
        return x[:1].expand(3, 2)

    assert used(mean) == "yours is not right yet."
    # such a cell that was run before, and is run again: the name is the solution's
    assert check.use(average, average) is average
    assert capsys.readouterr().out.endswith("because nothing is written yet.\n")


@pytest.mark.parametrize(
    ("way", "why"),
    [
        (lambda y: y.tolist(), "yours gives float where a tensor is needed."),
        (lambda y: y.detach(), "no gradient comes through yours."),
        (lambda y: y.double(), "yours gives torch.float64 where torch.float32 is needed."),
        (lambda y: list(y), "yours gives its parts in another form."),
        (lambda y: torch.tensor(y.numpy()), "yours stops where gradients are asked for (Run"),
    ],
)
def test_what_is_right_but_cannot_be_trained_is_not_used(way, why, capsys):
    check = YourTurn("Your turn 9.1", average, INPUTS)

    def mean(x, weights):
        return way(weights @ x)

    check(mean)
    assert capsys.readouterr().out.startswith("✓")
    assert check.use(mean, average) is average
    assert capsys.readouterr().out.partition("because ")[2].startswith(why)
    only_tensors_count = check.use(mean, average, trained=False) is mean
    assert only_tensors_count == ("gradient" in why)


def test_what_is_wrong_gets_the_smallest_input_that_shows_it(told):
    # right for a single row, where the average is the row
    said = told(lambda x, weights: x[:1].expand(3, 2)).splitlines()
    assert said[0] == "✗ Your turn 9.1: not right yet. The smallest input that shows it:"
    assert said[1].strip().startswith("x: [[")
    assert said[1].endswith("shape (2, 2)")
    assert said[2].strip() == "weights: [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]   shape (3, 2)"
    assert said[3].strip().startswith("expected: [[")
    assert said[3].endswith("shape (3, 2)")
    assert said[4].strip().startswith("you gave: [[")
    assert said[4].endswith("shape (3, 2)")
    assert said[5].strip() == "6 of 6 numbers differ"


@pytest.mark.parametrize(
    ("attempt", "why"),
    [
        (lambda x, weights: (weights @ x).T, "the shape should be (3, 2), not (2, 3)"),
        (lambda x, weights: "x", "a tensor is expected, not str"),
        (lambda x, weights: [[1.0], [2.0, 3.0]], "a tensor is expected, not list"),
        (lambda x, weights: weights @ x * math.nan, "6 of 6 numbers differ"),
        (lambda x, weights: print(end=""), "nothing came back: does the last line say return?"),
        (lambda x, weights: weights @ y, "NameError: name 'y' is not defined (line 1 of <lambda>)"),
        (lambda x: x, "TypeError: "),
        (lambda x, weights: x @ weights, "RuntimeError: mat1 and mat2 shapes cannot be multiplied"),
    ],
)  # fmt: skip
def test_every_way_to_be_wrong_is_named(told, attempt, why):
    said = told(attempt)
    assert said.startswith("✗")
    assert why in said


def test_a_function_without_names_for_its_arguments(told):
    said = told(torch.mul)
    assert "argument 1: [[" in said
    assert "your code stopped: RuntimeError" in said


def add_one(x, weights):
    x += 1
    return weights @ x - 1


def empty_the_list(rows):
    total = sum(rows[0])
    rows[0].clear()
    return total


def test_a_function_that_changes_its_argument_is_told_which(told):
    before = [x.clone() for x, _ in INPUTS]
    answer = told(add_one)
    assert answer.startswith("✗")
    assert answer.splitlines()[-1].strip() == "right, but it changes x itself: work on a copy"
    assert told(add_one, YourTurn("Your turn 9.1", average, INPUTS, in_place=True)).startswith("✓")
    assert all(torch.equal(a, x) for a, (x, _) in zip(before, INPUTS, strict=True))


@pytest.mark.parametrize(
    ("given", "change"),
    [
        ([[1, 2]], empty_the_list),
        ({"a": [1, 2]}, lambda values: values.pop("a")[0] + 2),
        (([1, 2],), empty_the_list),
        ({1, 2}, lambda values: values.pop() + values.pop()),
        (["c", "a"], lambda values: values.sort() or 3),
        ([2, 1.5], lambda values: values.reverse() or 3),
        (np.array([1, 2]), lambda values: values.put(0, 3) or 3),
        ([torch.tensor([1, 2])], lambda values: int(values[0].neg_().neg().sum())),
    ],
)
def test_no_copy_is_left_out_however_deep(told, given, change):
    before = repr(given)
    check = YourTurn("Your turn 9.4", lambda values: 3, [(given,)])
    assert told(change, check).splitlines()[-1].strip().startswith("right, but it changes ")
    assert repr(given) == before


def test_a_task_can_forbid_large_tensors(told):
    def pieces(x, weights):
        return torch.stack([sum(w * row for w, row in zip(ws, x, strict=True)) for ws in weights])

    check = YourTurn("Your turn 9.1", average, INPUTS, most_numbers=lambda x, weights: 6)
    assert told(pieces, check).startswith("✓")
    at_once = told(lambda x, weights: (weights[:, :, None] * x).sum(1), check)
    last = at_once.splitlines()[-1].strip()
    assert last == "right, but it makes a tensor of 12 numbers: 6 are enough"


def test_a_known_mistake_is_named_and_no_other(told):
    mistakes = {
        "that is the sum": lambda x, weights: x.sum(0).expand(3, 2),
        "that is the last row": lambda x, weights: x[-1:].expand(3, 2),
    }
    check = YourTurn("Your turn 9.2", average, INPUTS, mistakes=mistakes)
    said = told(lambda x, weights: x.sum(0, keepdim=True).repeat(3, 1), check)
    assert said.splitlines()[-1].strip() == "hint: that is the sum"
    assert "hint" not in told(lambda x, weights: weights @ x + 7, check)
    with pytest.raises(ValueError, match="mistakes must differ from right somewhere"):
        YourTurn("Your turn 9.2", average, INPUTS, mistakes={"none": average})
    with pytest.raises(ValueError, match="inputs must hold at least one"):
        YourTurn("Your turn 9.2", average, [])


def test_several_outputs_and_plain_ones(told):
    check = YourTurn("Your turn 9.3", lambda n: (float(n), "word"), [(1,), (2,)])
    assert told(lambda n: (n + 1e-7, "word"), check).startswith("✓")
    assert told(lambda n: [n, "word"], check).startswith("✓")
    assert "it differs" in told(lambda n: (n, "words"), check)
    assert "the number differs" in told(lambda n: (n + 0.1, "word"), check)
    assert "2 things are expected" in told(lambda n: n, check)
    assert "2 things are expected" in told(lambda n: (n,), check)
    assert "2 things are expected" in told(lambda n: (n, "word", n), check)
    assert "a number is expected, not str" in told(lambda n: ("1", "word"), check)


def test_of_several_outputs_each_is_shown_as_far_as_it_can_be_read(told):
    check = YourTurn("Your turn 9.3", lambda n: ([0.5], torch.ones(2) / 3, torch.ones(25)), [(1,)])
    lines = told(lambda n: 1, check).splitlines()
    assert lines[2].strip() == "expected: [0.5], [0.33, 0.33], …"


# what is right in more than one type: what is expected, what came, and whether it says the same
X = torch.tensor([[0.5, 1.5]])
TYPES = [
    (X, X.tolist(), True),
    (X, X.numpy(), True),
    (X, X.double(), True),
    (X, [X[0]], True),
    (X, torch.tensor([[0.5, 1.6]]), False),
    (X > 1, [[False, True]], True),
    (X > 1, (X > 1).numpy(), True),
    (X > 1, [[0, 1]], False),
    ((X > 1).float(), X > 1, True),
    ((X > 1).float(), (X > 1).long(), True),
    ((X > 1).long(), X > 1, False),
    ((X > 1).long(), (X > 1).float(), False),
    ((X > 1).long(), [[0, 1]], True),
    ((X[0], X[0]), torch.cat([X, X]), True),
    ([X[0], X[0]], (X[0].tolist(), X[0].numpy()), True),
    ((X[0], X[0]), torch.cat([X, X, X]), False),
    (0.5, np.float32(0.5), True),
    (0.5, torch.tensor([0.5]), True),
    (1.0, True, False),
    (3, np.int64(3), True),
    (3, torch.tensor(3), True),
    (3, 3.0, True),
    (3, 3.01, False),
    (1, True, False),
    (True, 1, False),
    (torch.tensor(0.5), 0.5, True),
    (["a", "b"], ("a", "b"), True),
    (["a", "b"], np.array(["a", "b"]), True),
    (["a", "b"], ["b", "a"], False),
    (("a", "b"), ["a", "b"], True),
    (("a", "b"), np.array(["a", "b"]), True),
    (("a", "b"), "ab", False),
    (math.inf, math.inf, True),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "came", "right"), TYPES)
def test_the_type_of_an_answer_matters_where_it_says_something_else(told, expected, came, right):
    check = YourTurn("Your turn 9.3", lambda n: expected, [(1,)])
    assert told(lambda n: came, check).startswith("✓" if right else "✗")


# What a number may be off by: 1e-4 near nothing, 1e-3 of a large one.
@pytest.mark.parametrize(
    ("expected", "off", "right"),
    [(0.0, 9e-5, True), (0.0, 1.1e-4, False), (1e4, 9.0, True), (1e4, 11.0, False)],
)
@pytest.mark.parametrize("kind", [float, lambda x: torch.tensor([x], dtype=torch.float64)])
def test_how_far_a_number_may_be_off(told, expected, off, right, kind):
    check = YourTurn("Your turn 9.3", lambda n: kind(expected), [(1,)])
    assert told(lambda n: kind(expected + off), check).startswith("✓" if right else "✗")
    strict = YourTurn("Your turn 9.3", lambda n: kind(expected), [(1,)], tolerance=1e-6)
    assert told(lambda n: kind(expected + off), strict).startswith("✗")


def test_dots_in_what_is_right_are_no_gap(told):
    def half(x, weights):
        return weights[..., :1] @ x[:1]

    assert told(half).startswith("✗")


def test_a_wrapped_function_is_empty_if_what_it_wraps_is(told):
    def head_only(x, weights): ...

    @functools.wraps(head_only)
    def run(x, weights):
        return head_only(x.clone(), weights)

    assert told(run).startswith("○")


def test_a_question_tells_whether_and_not_what(told):
    check = Question("Exercise 9.1", 12.5, mistakes={25: "that is the whole, not the half"})
    for nothing in (None, ...):
        assert told(nothing, check).startswith("○ Exercise 9.1: no answer yet")
    assert told(12.51, check) == "✓ Exercise 9.1: right, 12.51\n"
    assert told(torch.tensor(12.5), check).startswith("✓")
    assert told(13, check) == "✗ Exercise 9.1: not 13\n"
    assert told(25, check).splitlines()[-1].strip() == "hint: that is the whole, not the half"
    assert "12.5" not in told(25, check)
    words = Question("Exercise 9.2", "rows")
    assert told(" Rows", words).startswith("✓")
    assert told("columns", words).startswith("✗")
    with pytest.raises(ValueError, match="mistakes must differ"):
        Question("Exercise 9.1", 12.5, mistakes={12.5: "no"})


@pytest.mark.parametrize(
    ("right", "answers", "others"),
    [
        (50, (50, 50.0, np.float32(50), torch.tensor(50), [[50]][0][0]), (49.5, 50.4, "50", -50)),
        (1, (1, 1.0), (True, 1.004)),
        (12.5, (12.5, 12.61, 12.39), (12.64, 12.36, -12.5, 0.0)),
        (0.001, (0.001, 0.00100999), (0.0011, 0.0)),
        ((600, 30), ((600, 30), [600, 30], np.array([600, 30]), torch.tensor([600, 30])),
         ((30, 600), (600,), 600, (600, 30, 1), (600.4, 30))),
        ("key", ("key", "keys", "Keys.", " the key"), ("query", "keyed", 3, "", "key value")),
        ("positions", ("position", "Positions!"), ("positional",)),
        ("yes", ("Yes.", True, "true"), ("no", False, "yes and no")),
        ("no", ("No", False), ("not", True)),
        ("neither", ("Neither.",), ("either",)),
        ("weights, averages, step", ("Step, weights and averages", "weights averages step"),
         ("weights, step", "weights, averages, step, loss")),
        ("masked_fill", ("masked_fill", "Masked_fill"), ("masked fill", "+ (-inf)")),
        (True, (True, "yes"), (False, 1, "no", "perhaps")),
    ],
)  # fmt: skip
def test_a_question_takes_what_says_the_same(told, right, answers, others):
    check = Question("Exercise 9.1", right)
    assert [told(answer, check)[0] for answer in answers] == ["✓"] * len(answers)
    assert [told(answer, check)[0] for answer in others] == ["✗"] * len(others)


def test_how_near_an_answer_has_to_be_can_be_said(told):
    assert told(101, Question("Exercise 9.1", 100, within=0.02)).startswith("✓")
    assert told(103, Question("Exercise 9.1", 100, within=0.02)).startswith("✗")
    assert told(0.101, Question("Exercise 9.1", 0.1, within=0.02)).startswith("✓")
    assert told(0.11, Question("Exercise 9.1", 0.1, within=0.02)).startswith("✗")


def test_empty_means_a_docstring_and_dots():
    def written(x):
        return 1

    assert not is_empty(written)
    assert not is_empty(len)
    assert is_empty(lambda x: None)
