"""The exam: right files pass in any style, wrong ones are told what is wrong, all end."""

import inspect
import os
import re

import nbformat
import pytest
import torch

from tests.book.exam_files import (
    OVER,
    PAGE,
    PRE,
    WAITING,
    WRONG_FILES,
    edited,
    right_files,
    solution,
)
from tools.chapters import ROOT, code_cells
from transformer.config import TransformerConfig
from transformer.model import Transformer
from transformer.multihead import MultiHeadAttention
from transformer_book.exam.__main__ import main
from transformer_book.exam.allowed import objection
from transformer_book.exam.flaws import CHANGES, HEADS, SUMS, flawed_heads, model_flaws
from transformer_book.exam.functions import AVERAGES, MASKS, OF_THE_LOSS, PADDING, PAST, POSITIONS
from transformer_book.exam.parts import PARTS, answers
from transformer_book.exam.reader import WITH_YOUR_WEIGHTS
from transformer_book.exam.report import Result
from transformer_book.exam.runner import PATIENCE, exam, examine, parts_named
from transformer_book.exam.training_questions import DECODINGS, LOSSES
from transformer_book.exam.worker import load
from transformer_book.experiments.translator import SENTENCES

RIGHT = right_files()
WITHOUT_TRAINING = PARTS[:-1]
NOTEBOOK = nbformat.read(PAGE, as_version=4)
TEXT = "\n\n".join(cell.source for cell in NOTEBOOK.cells if cell.cell_type == "markdown")


@pytest.fixture(autouse=True)
def _unchecked(unchecked):
    """Annotations are checked where one file is asked by itself."""


def asked(source, folder, parts=WITHOUT_TRAINING):
    path = folder / "mine.py"
    path.write_text(source, encoding="utf-8")
    return answers(load(path), parts)


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_file_passes_in_any_style(name, tmp_path):
    results = list(asked(RIGHT[name], tmp_path))
    assert [(r.part, r.text) for r in results if r.mark != "✓"] == []
    said = {r.part: r.text for r in results}
    assert said["Transformer, the numbers"] == said["MultiHeadAttention"] == WITH_YOUR_WEIGHTS
    order = "pre-LN" if name.startswith("pre") else "post-LN"
    assert said["EncoderLayer"].startswith(order)
    assert said["DecoderLayer"].startswith(order)


def test_weights_that_cannot_be_read_are_told_and_no_error(tmp_path):
    source = edited(
        solution(),
        ("self.W_o = nn.Linear(d_model, d_model)",
         "sizes = d_model // n_heads, d_model\n"
         "        self.out = nn.ModuleList(nn.Linear(*sizes) for _ in range(n_heads))"),
        ("return self.W_o(answers.transpose(1, 2).flatten(2))",
         "return sum(out(answers[:, i]) for i, out in enumerate(self.out))"),
    )  # fmt: skip
    results = {r.part: r for r in asked(source, tmp_path)}
    assert {r.mark for r in results.values()} == {"✓"}
    told = {name for name, r in results.items() if from_outside("") in r.text}
    layers = {"EncoderLayer", "DecoderLayer"}
    assert told == {"MultiHeadAttention", "Transformer, the numbers"} | layers


def test_a_model_without_the_classes_for_its_layers_is_judged_from_outside(tmp_path):
    source = solution()
    for name in ("EncoderLayer", "DecoderLayer"):
        source = source.replace(name, f"My{name}")
    results = {r.part: (r.mark, r.text) for r in asked(source, tmp_path)}
    assert results["EncoderLayer"] == ("○", "mine.py has no EncoderLayer yet")
    said = from_outside("which is which without EncoderLayer")
    assert results["Transformer, the numbers"] == ("✓", said)


def test_pre_ln_needs_a_last_norm(tmp_path):
    (wrong,) = (r for r in asked(edited(solution(), *PRE), tmp_path) if r.mark == "✗")
    assert wrong.part == "Transformer, the numbers"
    assert wrong.text.startswith("right but for the last norm of a stack\n")


@pytest.mark.parametrize("name", WRONG_FILES)
def test_a_wrong_file_is_told_what_is_wrong_and_where_to_look(name, tmp_path):
    wrong = WRONG_FILES[name]
    source = edited(solution(), OVER, *wrong.also, (wrong.old, wrong.new))
    first = next(r for r in asked(source, tmp_path) if r.mark != "✓")
    assert (first.part, first.mark) == (wrong.part, "✗")
    assert wrong.text in first.text
    assert len(first.text.splitlines()) > 1 or "wanted" in first.text
    hints = re.findall(r"Look at this: (.*)", first.text)
    assert len(hints) <= 1
    assert not hints or wrong.text in hints[0]


def test_each_known_mistake_has_a_file_and_another_piece_of_text():
    tables = [AVERAGES, MASKS, PAST, PADDING, POSITIONS, OF_THE_LOSS, HEADS, SUMS, CHANGES]
    tables += [dict(model_flaws(Transformer(TransformerConfig.tiny(9, 9)))), LOSSES, DECODINGS]
    for table in tables:
        for hint in table:
            pieces = [f.text for f in WRONG_FILES.values() if f.text in hint.format("self-attention")]
            assert pieces, hint


@pytest.mark.parametrize("name", WAITING)
def test_what_is_made_of_a_wrong_part_waits_for_it_and_is_not_called_right(name, tmp_path):
    wrong, edits, waiting = WAITING[name]
    source = edited(solution(), *edits)
    results = {r.part: r for r in asked(source, tmp_path)}
    assert next(part for part, r in results.items() if r.mark == "✗") == wrong
    said = "○", f"waits for {wrong}, which is not right yet"
    assert dict.fromkeys(waiting, said) == {
        part: (r.mark, r.text) for part, r in results.items() if r.mark == "○"
    }
    (alone,) = asked(source, tmp_path, parts_named(waiting[-1]))  # when nothing else was asked
    assert (alone.mark, alone.text) == said


def test_what_is_not_written_is_no_error_and_the_rest_is_asked(tmp_path):
    assert {r.mark for r in asked("# nothing yet\n", tmp_path, PARTS)} == {"○"}
    source = """
from torch import nn

def attention(q, k, v, mask=None):
    ...

def causal_mask(T):
    return [[s <= t for s in range(T)] for t in range(T)]

class Transformer(nn.Module):
    pass
"""
    marks = {r.part: r.mark for r in asked(source, tmp_path, PARTS)}
    assert [part for part, mark in marks.items() if mark != "○"] == ["causal_mask"]
    assert marks["causal_mask"] == "✓"


@pytest.mark.parametrize(
    ("name", "yours"),
    [
        ("MultiHeadAttention", "MHA"),
        ("MultiHeadAttention", "Multihead"),
        ("MultiHeadAttention", "MultiHeadAttn"),
        ("attention", "Attention"),
        ("EncoderLayer", "encoder_layer"),
        ("loss", "loss_of"),
        ("train_step", "train"),
        ("greedy_decode", "greedy"),
    ],
)
def test_a_name_that_is_near_is_told(name, yours, tmp_path):
    source = re.sub(rf"\b{name}\b", yours, solution())
    (result,) = asked(source, tmp_path, parts_named(name)[:1])
    assert (result.mark, result.text) == ("○", f"mine.py has no {name} yet (it has {yours})")


def test_a_file_of_the_same_size_and_second_is_read_anew(tmp_path):
    file = tmp_path / "mine.py"
    for number in (1, 2):
        file.write_text(f"number = {number}\n", encoding="utf-8")
        os.utime(file, (1, 1))
        assert load(file).module.number == number
    with pytest.raises(ValueError, match="path must be that of a Python file"):
        load(tmp_path / "mine.txt")


def test_no_other_part_and_nothing_imported_counts_as_near(tmp_path):
    for name in (part.name for part in WITHOUT_TRAINING if "," not in part.name):
        source = re.sub(rf"\b{name}\b", "another", solution())
        source += f"\nfrom statistics import mean as {name}_\n\ndef translate(): return 1\n"
        (result,) = asked(source, tmp_path, parts_named(name)[:1])
        assert (result.mark, result.text) == ("○", f"mine.py has no {name} yet")


def test_what_waits_for_the_transformer_says_so(tmp_path):
    source = edited(solution(), ("        for layer in self.encoder:", "        src.no\n"))
    source = source.replace("            memory = layer(memory, src_mask)\n", "")
    results = list(asked(source, tmp_path, PARTS))
    marks = {r.part: (r.mark, r.text) for r in results}
    mark, text = marks["Transformer"]
    assert mark == "✗"
    assert re.search(r"your code stopped in line \d+, src\.no\n    AttributeError: ", text)
    rest = [marks[name] for name in marks if name.startswith("Transformer, ")]
    assert rest == [("○", "waits until your Transformer runs")] * 4
    assert marks["translation"][1].startswith("waits until nothing above is wrong")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import transformer", "the book's own"),
        ("from transformer_book.exam import exam", "the book's own"),
        ("def f():\n    from transformer.attention import attention", "line 2: it imports"),
        ("import numpy as np", "it imports numpy"),
        ("from .mine import attention", "it imports .mine"),
        ("from torch import nn\nnn.MultiheadAttention(8, 2)", "finished MultiheadAttention"),
        ("import torch\nmodel = torch.nn.Transformer", "finished Transformer"),
        ("from torch.nn import TransformerEncoderLayer as L", "finished TransformerEncoderLayer"),
        (
            "import torch.nn.functional as F\nF.scaled_dot_product_attention",
            "line 2: it takes PyTorch's finished scaled_dot_product_attention",
        ),
        ("def f(:", "Python cannot read this"),
        ("x = '\0'", "Python cannot read this"),
    ],
)
def test_what_is_not_yours_is_refused_in_a_sentence(line, said):
    sentence = objection(line, "mine.py")
    assert sentence.startswith("mine.py")
    assert said in sentence
    assert "\n" not in sentence


def test_what_is_yours_is_not_refused():
    for source in RIGHT.values():
        assert objection(source, "mine.py") == ""
    own = "import math, torch\nclass Transformer: pass\nself.Transformer = Transformer()"
    assert objection(own, "mine.py") == ""


def test_the_right_file_trains_and_translates(tmp_path, monkeypatch):
    """In half of the steps; the page takes all of them."""
    monkeypatch.setattr("transformer_book.exam.translation.N_STEPS", 500)
    told = []
    (result,) = answers(
        load(_written(solution(), tmp_path)), parts_named("translation"), tell=told.append
    )
    assert result.mark == "✓"
    share = re.fullmatch(r"  200 new sentences: right ≈ (\d+) %", told[-1])
    assert int(share[1]) >= 60
    assert "  the dog sees the cat → le chien voit le chat" in told
    assert [line.partition(" → ")[0].strip() for line in told if "→" in line] == [*SENTENCES]


def test_what_learns_nothing_is_told_after_the_training(tmp_path, monkeypatch):
    """A few steps teach nothing; and what is not written is lent."""
    monkeypatch.setattr("transformer_book.exam.translation.N_STEPS", 60)
    source = solution().replace("def train_step", "def another_name")
    told = []
    (result,) = answers(
        load(_written(source, tmp_path)), parts_named("translation"), tell=told.append
    )
    assert result.mark == "✗"
    assert result.text.startswith("of 200 new sentences fewer than 30 % are right\n")
    assert "The loss has hardly fallen" in result.text
    assert "  (You have no train_step yet, so it takes the book's.)" in told


def _written(source, folder):
    path = folder / "mine.py"
    path.write_text(source, encoding="utf-8")
    return path


def test_an_endless_loop_costs_its_own_part_alone(tmp_path, capsys):
    head = "def causal_mask(T):\n"
    source = edited(solution(), (head, f"{head}    while T: pass\n"))
    parts = [part for part in PARTS if part.name in ("attention", "causal_mask", "positions")]
    results = sit(_written(source, tmp_path), parts, patience=3)
    assert [r.mark for r in results] == ["✓", "✗", "✓"]
    assert "Is there a loop that never ends?" in results[1].text
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "✓ attention: right on 9 inputs"
    assert said[-1] == "2 of 3 right, 1 wrong"


def test_a_file_that_ends_the_process_or_does_not_run_is_told(tmp_path, capsys):
    source = "import os\ndef positions(T, d_model):\n    os._exit(3)\n"
    (result,) = sit(_written(source, tmp_path), parts_named("positions"))
    assert result.text.startswith("the process ended before it had answered")
    assert sit(_written("print('hello')\nraise KeyError(3)\n", tmp_path), PARTS) == []
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == [
        "✗ the file: mine.py: your code stopped in line 2, raise KeyError(3)",
        "    KeyError: 3",
    ]
    assert "hello" not in lines


def test_a_notebook_asks_by_name(tmp_path, capsys):
    with pytest.raises(ValueError, match=r"^file must be one that is there, got 'no\.py'"):
        exam("no.py")
    path = _written("import transformer\n", tmp_path)
    with pytest.raises(ValueError, match=r"^only must be the beginning of one of attention, "):
        exam(path, only="nothing")
    assert exam(path) is None
    assert capsys.readouterr().out.startswith("✗ mine.py, line 1: it imports transformer, ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no.py"], "no.py: there is no such file"),
        (["mine.py", "--only", "nothing"], "--only must be the beginning of one of attention, "),
        (["mine.py", "--patience", "0"], "--patience must be positive, got 0"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _written("", tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert said in capsys.readouterr().err


def test_the_command_says_by_its_status_how_it_went(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _written("", tmp_path)
    right, wrong = Result("positions", "✓", ""), Result("loss", "○", "")
    outcomes, given = iter([[], [right, wrong], [right]]), []

    def instead(path, parts, *, patience):
        given.append(([part.name for part in parts], patience))
        return next(outcomes)

    monkeypatch.setattr("transformer_book.exam.__main__.sit", instead)
    words = ["mine.py", "--no-training", "--patience", "9"]
    assert [main(words), main(words), main(["mine.py", "--only", "loss"])] == [2, 1, 0]
    assert given[0] == ([part.name for part in WITHOUT_TRAINING], 9.0)
    assert given[2] == (["loss"], PATIENCE)


def test_the_command_tells_that_the_file_is_run(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "The file is run as Python code" in " ".join(capsys.readouterr().out.split())


def test_without_a_flaw_the_exams_own_heads_are_the_packages():
    torch.manual_seed(0)
    book = MultiHeadAttention(8, 2)
    x, memory = torch.randn(3, 5, 8), torch.randn(3, 7, 8)
    four = [Linear(m.weight, m.bias, True) for m in (book.W_q, book.W_k, book.W_v, book.W_o)]
    assert torch.allclose(
        flawed_heads(x, memory, four, n_heads=2), book(x, memory, memory), atol=1e-5
    )


def test_every_section_that_is_named_is_there():
    there = {
        number
        for path in (ROOT / "chapters").glob("[0-9]*.ipynb")
        for number in re.findall(r"## (\d+\.\d+) ", path.read_text(encoding="utf-8"))
    }
    named = set()
    for path in (ROOT / "transformer_book" / "exam").glob("*.py"):
        named |= set(re.findall(r"section (\d+\.\d+)", path.read_text(encoding="utf-8")))
    assert len(named) > 15
    assert named <= there


def test_the_pages_table_names_what_the_exam_asks_for():
    rows = re.findall(r"^\| \*\*(\w+)\*\* \| `\((.+?)\)`", TEXT, flags=re.MULTILINE)
    parts = [part.name for part in PARTS if "," not in part.name and not part.trains]
    assert {name for name, _ in rows} == set(parts)
    names: dict[str, object] = {}
    exec(solution(), names)
    for name, arguments in rows:
        assert str(inspect.signature(names[name])) == f"({arguments})"


def test_the_page_begins_empty_and_ends_right():
    printed = {
        cell.id: "".join(o.text for o in cell.outputs if o.output_type == "stream")
        for cell in code_cells(NOTEBOOK)
    }
    empty = printed["exam-mine"].splitlines()
    assert [line[0] for line in empty[:-1]] == ["○"] * len(PARTS)
    wrong = printed["exam-wrong"]
    assert wrong.startswith("✗ attention: ")
    assert "[[0.88]]" in wrong
    assert "[[0.98]]" in wrong
    right = printed["exam-solution"].splitlines()
    assert right[-1] == f"{len(PARTS)} of {len(PARTS)} right"
    assert "  the black cat sleeps → le chat noir dort" in right
