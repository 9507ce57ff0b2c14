"""What the reader is told: nothing yet, wrong and how, or right; and that "run all" goes on."""

import math

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
        (lambda x, weights: (weights @ x).tolist(), "a tensor is expected, not list"),
        (lambda x, weights: (weights @ x) > 0, "should be of type torch.float32, not torch.bool"),
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


def test_an_input_that_is_changed_in_place_stays_what_it_was(told):
    before = [x.clone() for x, _ in INPUTS]

    def in_place(x, weights):
        x += 1
        return weights @ x - 1

    assert told(in_place).startswith("✓")
    assert all(torch.equal(a, x) for a, (x, _) in zip(before, INPUTS, strict=True))


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
    assert "it differs" in told(lambda n: (n, "words"), check)
    assert "the number differs" in told(lambda n: (n + 0.1, "word"), check)
    assert "2 things are expected" in told(lambda n: n, check)
    assert "a number is expected, not str" in told(lambda n: ("1", "word"), check)


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
    flags = Question("Exercise 9.3", True)
    assert told(True, flags).startswith("✓")
    assert told(False, flags).startswith("✗")
    with pytest.raises(ValueError, match="mistakes must differ"):
        Question("Exercise 9.1", 12.5, mistakes={12.5: "no"})


def test_empty_means_a_docstring_and_dots():
    def written(x):
        return 1

    assert not is_empty(written)
    assert not is_empty(len)
    assert is_empty(lambda x: None)
