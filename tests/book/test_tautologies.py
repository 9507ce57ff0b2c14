"""Claims that cannot fail are refused, and those that can are not."""

import ast

import nbformat
import pytest

from tests.book.tautologies import always, conditions_that_cannot_fail

HOLD_ANYWAY = """
True
1 < 2
not False
most > 0.3 or True
True and most > 0.3
most > 0.3 or not most > 0.3
x == x
x[0] is x[0]
most <= most
len(words) >= 0
0 <= len(words)
len(words) > -1
(a - b).abs().max() >= 0
(a - b).norm() >= 0
error**2 >= 0
isinstance(x, object)
isinstance("one", str)
close(x, x)
torch.equal(x.weight, x.weight)
bool(x == x)
(x == x).all()
all([x == x, True])
all(x <= x for x in many)
True if most > 0.3 else 1 < 2
not not x == x
(y := x == x)
"""
MAY_FAIL = """
most > 0.3
x == y
not same
run(0) == run(0)
close(run(0), run(0))
len(words) > 0
len(words) >= 1
0 < len(words)
(a - b).abs().max() > 0
(a - b).max() >= 0
error**3 >= 0
most > 0.3 or least < 0.1
same and most > 0.3
isinstance(x, list)
close(x, y)
all(x < 1 for x in many)
x < x + 1
True if most > 0.3 else most < 0.1
"""


@pytest.mark.parametrize("text", HOLD_ANYWAY.strip().splitlines())
def test_what_holds_anyway_is_found(text):
    assert always(ast.parse(text, mode="eval").body)


@pytest.mark.parametrize("text", MAY_FAIL.strip().splitlines())
def test_what_may_fail_is_left_alone(text):
    assert not always(ast.parse(text, mode="eval").body)


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        ('claim("one", x == x, "identity")', ["x == x"]),
        ('claim("one", holds=True, kind="identity")', ["True"]),
        ('same = x == x\nclaim("one", same, "identity")', ["x == x"]),
        ('same = True\nfor x in y:\n    same = same and x > 0\nclaim("one", same)', []),
        ('same = True\nsame &= x > 0\nclaim("one", same)', []),
        ('same, other = True, x > 0\nclaim("one", same)', []),
        ('def holds():\n    return True\nclaim("one", holds())', []),
        ('claim("one", known_from_another_cell)', []),
        ('%pip install it\nclaim("a", a < 1)\nclaim("b", a <= a)', ["a <= a"]),
    ],
)
def test_a_name_stands_for_what_the_cell_gives_it(source, refused):
    assert conditions_that_cannot_fail(nbformat.v4.new_code_cell(source)) == refused
