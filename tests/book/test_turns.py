"""What make turns says of a chapter whose reader is right, or wrong."""

import ast
import contextlib
import io

import nbformat
import pytest

from tools import running, turns
from tools.chapters import CHAPTERS, code_cells
from transformer_book.claims import Claim

IMPORTS = "import torch\nfrom transformer_book.your_turn import Question, YourTurn"
CHECKS = """\
check_mean = YourTurn(
    "Your turn 9.1",
    lambda x: x.mean(dim=0),
    [(torch.tensor([[1.0, 3.0], [2.0, 5.0]]),)],
    mistakes={"the mean over the columns": lambda x: x.mean(dim=1)},
)
check_9_1 = Question("Exercise 9.1", 12.5, mistakes={25: "that is the whole"})
check_9_2 = YourTurn("Exercise 9.2", lambda x: 2 * x, [(torch.ones(2),)])"""
TURN = '''def mean(x):
    """Rows (T, d) -> their mean (d,)."""
    ...


check_mean(mean)'''
SOLUTION = """\
# @title Solution
def total(x):
    return x.sum(dim=0)


def mean_solution(x):
    return total(x) / len(x)


check_mean(mean_solution)"""
USE = """\
mean = check_mean.use(mean, mean_solution)
claim("a mean of means", mean(torch.ones(3, 2)).tolist() == [1, 1])"""
CELLS = {
    "imports": IMPORTS,
    "check-mean": CHECKS,
    "your-turn-mean": TURN,
    "solution-your-turn-mean": SOLUTION,
    "use-mean": USE,
    "exercise-9-1": "answer = ...\ncheck_9_1(answer)",
    "solution-9-1": "check_9_1(12.5)",
    "exercise-9-2": "def twice(x): ...\n\n\ncheck_9_2(twice)",
    "solution-9-2": "def twice_solution(x):\n    return x + x\n\n\ncheck_9_2(twice_solution)",
}


async def run_here(notebook, folder):
    """As ``tools.running.execute``, but without a kernel."""
    space = {}
    for cell in code_cells(notebook):
        out, made = io.StringIO(), []

        def claim(text, holds, made=made):
            assert holds
            made.append(nbformat.v4.new_output("display_data", shown(text)))

        try:
            with contextlib.redirect_stdout(out):
                space["claim"] = claim
                exec(cell.source, space)
        except Exception as error:
            raise running.Stopped(f"cell {cell.id}: {error!r}") from error
        cell.outputs = [nbformat.v4.new_output("stream", text=out.getvalue()), *made]


def shown(text):
    return Claim(text, "theorem")._repr_mimebundle_()


@pytest.fixture
def told(tmp_path, monkeypatch, capsys):
    """What is said of the small chapter with some cells changed."""

    def told(how, claims=("a mean of means",), **changes):
        cells = {name: changes.get(name.replace("-", "_"), text) for name, text in CELLS.items()}
        code = [nbformat.v4.new_code_cell(text, id=name) for name, text in cells.items()]
        code[4].outputs = [nbformat.v4.new_output("display_data", shown(c)) for c in claims]
        nbformat.write(nbformat.v4.new_notebook(cells=code), path)
        status = turns.main([how, "chapters/09_small.ipynb"])
        first, *wrong = capsys.readouterr().out.splitlines()
        assert first.startswith(f"09_small.ipynb: {'failed' if wrong else 'ok'}, ")
        assert status == bool(wrong)
        return [line.strip() for line in wrong]

    path = tmp_path / "09_small.ipynb"
    monkeypatch.setattr(turns, "CHAPTERS", [path])
    monkeypatch.setattr(running, "execute", run_here)
    return told


@pytest.mark.parametrize("how", ["right", "wrong"])
def test_a_chapter_that_is_as_it_should_be(told, how):
    assert told(how) == []


def test_a_page_that_goes_on_with_what_it_should_not(told):
    unused = "mean = check_mean.use(lambda x: ..., mean_solution)\nclaim('a mean of means', True)"
    (line,) = told("right", use_mean=unused)
    assert line.startswith("cell use-mean says: → From here on this page runs with the solution's")
    careless = f"print('{turns.USED}your mean.')\nclaim('a mean of means', True)"
    assert told("wrong", use_mean=careless) == [f"cell use-mean says: {turns.USED}your mean."]


def test_a_cell_that_stops_and_a_claim_that_is_lost(told):
    (line,) = told("right", use_mean=f"{USE}\nmean.solved")
    assert line.startswith("cell use-mean: AttributeError(")
    said = ["cell use-mean does not claim what the committed one does"]
    assert told("right", claims=("a mean of means", "another")) == said


def test_a_check_that_takes_wrong_for_right_or_right_for_wrong(told):
    blind = f"{CHECKS}\n\n\ndef check_9_2(written):\n    print('✓ Exercise 9.2: right')"
    blind += "\n\n\ncheck_9_2.mistakes = {}"
    (line,) = told("wrong", check_mean=blind)
    assert line == "cell exercise-9-2 should print ✗, but it prints ['✓ Exercise 9.2: right']"
    refuses = SOLUTION.replace("/ len(x)", "/ 7")
    (line, use) = told(
        "right", solution_your_turn_mean=refuses, use_mean=USE.replace("== [1, 1]", "")
    )
    assert line.startswith("cell your-turn-mean should print ✓, but it prints ['✗ ")
    assert use.endswith("because yours is not right yet.")


@pytest.mark.parametrize("how", ["right", "wrong"])
@pytest.mark.parametrize("path", CHAPTERS[1:], ids=lambda path: path.stem)
def test_every_chapter_can_be_filled_in(path, how):
    notebook = nbformat.read(path, as_version=4)
    empty = {name: statements(cell) for name, cell in turns.turns(notebook).items()}
    turns.fill(notebook, how)
    assert len(empty) >= 6
    for name, cell in turns.turns(notebook).items():
        assert empty[name] < statements(cell)  # the checks still stand there, and more


def statements(cell):
    return {*map(ast.unparse, ast.parse(cell.source).body)}
