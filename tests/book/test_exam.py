"""The exam: right files pass in any style, wrong ones are told what is wrong, all end."""

import inspect
import os
import re

import nbformat
import pytest

from tests.book.exam_files import (
    BY_HEAD,
    LAST_NORMS,
    PAGE,
    PRE,
    WAITING,
    WRONG_FILES,
    edited,
    right_files,
    solution,
)
from tools.chapters import ROOT, code_cells
from transformer.model import DecoderLayer
from transformer_book.exam import flaws, functions, runner
from transformer_book.exam.__main__ import main
from transformer_book.exam.allowed import objection
from transformer_book.exam.modules import WITH_YOUR_WEIGHTS
from transformer_book.exam.parts import PARTS, answer
from transformer_book.exam.report import FILE, Result
from transformer_book.exam.runner import NAMED, PATIENCE, exam, examine, parts_named
from transformer_book.exam.training_questions import DECODINGS
from transformer_book.exam.weights import NAMES
from transformer_book.exam.worker import load
from transformer_book.experiments.translator import SENTENCES

RIGHT = right_files()
WITHOUT_TRAINING = [name for name, part in PARTS.items() if not part.trains]
NUMBERS = "Transformer, the numbers"
NOTEBOOK = nbformat.read(PAGE, as_version=4)
TEXT = "\n\n".join(cell.source for cell in NOTEBOOK.cells if cell.cell_type == "markdown")


@pytest.fixture(autouse=True)
def _unchecked(unchecked):
    """Annotations are checked where one file is asked by itself."""


def written(source, folder):
    path = folder / "mine.py"
    path.write_text(source, encoding="utf-8")
    return path


def asked(source, folder, names=WITHOUT_TRAINING):
    mine, spoilt_by = load(written(source, folder)), {}
    return [answer(mine, name, spoilt_by) for name in names]


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_file_passes_in_any_style(name, tmp_path):
    results = asked(RIGHT[name], tmp_path)
    assert [(r.part, r.text) for r in results if r.mark != "✓"] == []
    said = {r.part: r.text for r in results}
    assert said["Transformer, the numbers"] == said["MultiHeadAttention"] == WITH_YOUR_WEIGHTS
    order = "pre-LN" if name.startswith("pre") else "post-LN"
    assert said["EncoderLayer"].startswith(order)
    assert said["DecoderLayer"].startswith(order)


BARE_W_O = (
    ("self.W_o = nn.Linear(d_model, d_model)",
     "self.W_o = nn.Parameter(torch.randn(d_model, d_model))"),
    ("self.W_o(answers.transpose(1, 2).flatten(2))",
     "answers.transpose(1, 2).flatten(2) @ self.W_o"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("edits", "missing"),
    [
        (BARE_W_O, "an nn.Linear called W_o in your MultiHeadAttention"),
        ((("W_k", "keys"),), "W_k in your MultiHeadAttention"),
        ((("self.norm_1", "self.norm"),), "norm_1 in your EncoderLayer"),
        (((".encoder", ".layers"),), "encoder in your Transformer"),
    ],
)
def test_weights_without_the_tables_names_are_asked_for(edits, missing, tmp_path):
    source = edited(solution(), *edits)
    results = asked(source, tmp_path)
    assert {r.mark for r in results} == {"✓", "○"}
    texts = {r.text for r in results if r.mark == "○"}
    assert {f"looks for {missing}. Call it so, or say in book_names" in text for text in texts}
    assert not any("waits" in text for text in texts)
    assert results[11].part == "Transformer, the numbers"
    assert results[11].mark == "○"


BEHAVIOUR = {  # what a wrong file is told -> what it is told where the weights have other names
    "by a view straight to": "answers to others moved",
    "does it reach your attention?": "does it reach your attention?",
    "future leaks": "future leaks",
    "one <pad> more": "one <pad> more",
}
WRONG = [
    pytest.param(part, text, edits, id=f"{part}: {text}")
    for part, files in WRONG_FILES.items()
    for text, *edits in files
]


@pytest.mark.parametrize("text", BEHAVIOUR)
def test_behaviour_is_asked_without_any_names(text, tmp_path):
    ((part, edits),) = (wrong.values[::2] for wrong in WRONG if text in wrong.values[1])
    source = edited(solution(), *edits).replace("W_k", "keys")
    first = next(r for r in asked(source, tmp_path) if r.mark == "✗")
    assert first.part == part
    assert BEHAVIOUR[text] in first.text


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("{'Wq': self.W_q}", "names 'Wq', which is not in the table of the exam's page"),
        ("{'W_q': self.q}", "{'W_q': self.q}\n    AttributeError"),
        ("{'W_q': self.W_q.weight[:4]}", "W_q.weight has the shape (4, 8); (8, 8) is wanted"),
    ],
)
def test_wrong_book_names_are_told(names, text, tmp_path):
    method = f"    def book_names(self):\n        return {names}\n\n    def split(self, x)"
    source = edited(solution(), ("    def split(self, x)", method))
    (result,) = asked(source, tmp_path, parts_named("MultiHeadAttention"))
    assert result.mark == "✗"
    assert text in result.text


def test_a_model_without_the_classes_for_its_layers_is_judged_all_the_same(tmp_path):
    source = solution()
    for name in ("EncoderLayer", "DecoderLayer"):
        source = source.replace(name, f"My{name}")
    results = {r.part: (r.mark, r.text) for r in asked(source, tmp_path)}
    assert results["EncoderLayer"] == ("○", "mine.py has no EncoderLayer yet")
    assert results["Transformer, the numbers"] == ("✓", WITH_YOUR_WEIGHTS)


def test_last_norms_of_another_name_are_asked_for(tmp_path):
    norms = [(old, new.replace("encoder_norm", "last")) for old, new in LAST_NORMS]
    (result,) = asked(edited(solution(), *PRE, *norms), tmp_path, parts_named(NUMBERS))
    assert result.mark == "○"
    assert "encoder_norm" in result.text


def test_pre_ln_needs_a_last_norm(tmp_path):
    (wrong,) = (r for r in asked(edited(solution(), *PRE), tmp_path) if r.mark == "✗")
    assert wrong.part == "Transformer, the numbers"
    assert wrong.text.startswith("right but for the last norm of a stack\n")


@pytest.mark.parametrize(("part", "text", "edits"), WRONG)
def test_a_wrong_file_is_told_what_is_wrong_and_where_to_look(part, text, edits, tmp_path):
    source = edited(solution(), *edits)
    first, *others = [r for r in asked(source, tmp_path) if r.mark != "✓"]
    assert (first.part, first.mark) == (part, "✗")
    assert text in first.text
    assert len(first.text.splitlines()) > 1 or "wanted" in first.text
    hints = re.findall(r"Look at this: (.*)", first.text)
    assert len(hints) <= 1
    assert not hints or text in hints[0]
    last = first.text.splitlines()[-1]  # a mistake in both kinds of layers is told of both
    assert {r.text.splitlines()[-1] for r in others if r.mark == "✗"} <= {last}


def test_each_known_mistake_has_a_file():
    for part, hints in {
        "attention": [*functions.AVERAGES, *functions.MASKS], "causal_mask": functions.PAST,
        "padding_mask": functions.PADDING, "positions": functions.POSITIONS,
        "MultiHeadAttention": flaws.HEADS, "Layer": [*flaws.SUMS, *flaws.ANYWHERE],
        "Transformer, ": flaws.MODEL, "loss": functions.LOSSES, "greedy_decode": DECODINGS,
    }.items():  # fmt: skip
        texts = [text for name in WRONG_FILES if part in name for text, *_ in WRONG_FILES[name]]
        for hint in hints:
            forms = [hint.format(where) for where in flaws.WHERE[DecoderLayer]]
            assert any(text in form for text in texts for form in forms), hint


@pytest.mark.parametrize(("wrong", "waiting", "edits"), [(a, b, edits) for a, b, *edits in WAITING])
def test_what_is_made_of_a_wrong_part_waits_for_it(wrong, waiting, edits, tmp_path):
    source = edited(solution(), *edits)
    results = {r.part: r for r in asked(source, tmp_path)}
    assert next(part for part, r in results.items() if r.mark == "✗") == wrong
    text = f"waits for {wrong}, which is not right yet"
    assert {part: r.text for part, r in results.items() if r.mark == "○"} == dict.fromkeys(
        waiting, text
    )
    (alone,) = asked(source, tmp_path, parts_named(max(waiting, key=len)))  # and nothing else
    assert (alone.mark, alone.text) == ("○", text)


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
        ("MultiHeadAttention", "Multihead"),
        ("MultiHeadAttention", "MultiHeadAttn"),
        ("attention", "Attention"),
        ("EncoderLayer", "encoder_layer"),
        ("train_step", "train"),
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


def test_no_other_part_and_nothing_imported_counts_as_near(tmp_path):
    for name in (name for name in WITHOUT_TRAINING if "," not in name):
        source = re.sub(rf"\b{name}\b", "another", solution())
        source += f"\nfrom statistics import mean as {name}_\n\ndef translate(): return 1\n"
        (result,) = asked(source, tmp_path, parts_named(name)[:1])
        assert (result.mark, result.text) == ("○", f"mine.py has no {name} yet")


def test_what_waits_for_the_transformer_says_so(tmp_path):
    source = edited(solution(), ("        for layer in self.encoder:", "        src.no\n"))
    source = source.replace("            memory = layer(memory, src_mask)\n", "")
    results = asked(source, tmp_path, PARTS)
    marks = {r.part: (r.mark, r.text) for r in results}
    mark, text = marks["Transformer"]
    assert mark == "✗"
    assert re.search(r"your code stopped in line \d+, src\.no\n    AttributeError: ", text)
    rest = [marks[name] for name in marks if name.startswith("Transformer, ")]
    waits = "○", "waits for Transformer, which is not right yet"
    assert [*rest, marks["translation"]] == [waits] * 5


@pytest.mark.parametrize(
    ("line", "text"),
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
        ("import torch.nn as nn\nx = nn.functional.flex_attention", "line 2: it takes PyTorch's"),
    ],
)
def test_what_is_not_yours_is_refused_in_a_sentence(line, text, tmp_path):
    sentence = objection(written(line, tmp_path))
    assert sentence.startswith("mine.py")
    assert text in sentence
    assert "\n" not in sentence
    assert "None" not in sentence


def test_a_notebook_is_refused_in_a_sentence(tmp_path):
    said = objection(tmp_path / "mine.ipynb")
    assert said.startswith("mine.ipynb is a notebook, and the exam reads a Python file")


def test_what_is_yours_is_not_refused(tmp_path):
    for source in RIGHT.values():
        assert objection(written(source, tmp_path)) == ""
    source = "import math, torch\nclass Transformer: pass\nself.Transformer = Transformer()"
    assert objection(written(source, tmp_path)) == ""


def test_the_right_file_trains_and_translates(tmp_path, monkeypatch):
    """In half of the steps; the page takes all of them."""
    monkeypatch.setattr("transformer_book.exam.translation.N_STEPS", 500)
    mine, lines = load(written(solution(), tmp_path)), []
    mine.tell = lines.append
    result = answer(mine, "translation", {})
    assert result.mark == "✓"
    share = re.fullmatch(r"  200 new sentences: right (\d+) %", lines[-1])
    assert int(share[1]) >= 60
    assert "  the dog sees the cat → le chien voit le chat" in lines
    assert [line.partition(" → ")[0].strip() for line in lines if "→" in line] == [*SENTENCES]


def test_what_learns_nothing_is_told_after_the_training(tmp_path, monkeypatch):
    """A few steps teach nothing."""
    monkeypatch.setattr("transformer_book.exam.translation.N_STEPS", 60)
    result = answer(load(written(solution(), tmp_path)), "translation", {})
    assert result.mark == "✗"
    assert result.text.startswith("of 200 new sentences fewer than 30 % are right\n")
    assert "The loss has hardly fallen" in result.text


def test_what_takes_too_long_costs_itself_and_what_is_made_of_it(tmp_path, monkeypatch, capsys):
    head = "def causal_mask(T):\n"
    source = edited(solution(), (head, f"{head}    while T: pass\n"))

    def seconds_for(name, patience):
        return 0.0 if name in ("causal_mask", "translation") else None

    monkeypatch.setattr(runner, "seconds_for", seconds_for)
    names = ["attention", "causal_mask", "positions", "Transformer, the future"]
    results = examine(written(source, tmp_path), names)
    assert [r.mark for r in results] == ["✓", "○", "✓", "○"]
    assert "a loop never ends, or your computer was too busy" in results[1].text
    assert results[3].text == "waits for causal_mask, which is not right yet"
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "✓ attention: right on 10 inputs"
    assert lines[-1] == "2 of 4 right, 2 not there yet"
    (training,) = examine(written(solution(), tmp_path), ["translation"])  # on a busy computer
    assert training.mark == "○"


def test_one_waits_longer_while_it_trains():
    assert runner.seconds_for("positions", 2.0) == runner.seconds_for(FILE, 2.0) == 2.0
    assert runner.seconds_for("translation", 2.0) > 2.0


def test_a_file_that_ends_the_process_or_does_not_run_is_told(tmp_path, capsys):
    source = "import os\ndef positions(T, d_model):\n    os._exit(3)\n"
    (result,) = examine(written(source, tmp_path), parts_named("positions"))
    assert result.text.startswith("the process ended before it had answered")
    assert examine(written("print('hello')\nraise KeyError(3)\n", tmp_path), [*PARTS]) == []
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == [
        "✗ the file: mine.py: your code stopped in line 2, raise KeyError(3)",
        "    KeyError: 3",
    ]
    assert "hello" not in lines


def test_a_misspelt_forward_is_named(tmp_path):
    before, kind, rest = solution().partition("class EncoderLayer(")
    source = before + kind + rest.replace("def forward", "def foward", 1)
    (result,) = asked(source, tmp_path, parts_named("EncoderLayer"))
    assert (result.mark, result.text) == ("○", "EncoderLayer has no forward yet (it has foward)")


def test_the_file_of_the_evening_is_told_what_to_delete(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    source = (ROOT / "chapters" / "translator.py").read_text(encoding="utf-8")
    assert examine(written(source, tmp_path), [*PARTS]) == []
    assert "delete the lines that read yours" in capsys.readouterr().out.splitlines()[-1]
    start = source.index("with open"), source.index("marks =")
    words = source.index("english = "), source.index("def loss_of")
    kept = source[: start[0]] + source[start[1] : words[0]] + source[words[1] :]
    results = {r.part: r for r in asked(kept, tmp_path)}
    assert results["causal_mask"].mark == "✓"
    assert results["attention"].text == "mine.py has no attention yet (it has Attention)"


def test_a_notebook_asks_by_name(tmp_path, capsys):
    with pytest.raises(ValueError, match=r"^file must be one that is there, got 'no\.py'"):
        exam("no.py")
    path = written("import transformer\n", tmp_path)
    with pytest.raises(ValueError, match=r"^only must be the beginning of one of attention, "):
        exam(path, only="nothing")
    assert exam(path) is None
    assert capsys.readouterr().out.startswith("✗ mine.py, line 1: it imports transformer, ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no.py"], "no.py: there is no such file"),
        (["mine.py", "--only", "nothing"], "--only must be the beginning of one of attention, "),
        (["mine.py", "--patience", "0"], "--patience must be above 0, got 0"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    written("", tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert said in capsys.readouterr().err


def test_the_command_says_by_its_status_how_it_went(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written("", tmp_path)
    right, wrong = Result("positions", "✓", ""), Result("loss", "○", "")
    outcomes, given = iter([[], [right, wrong], [right]]), []

    def instead(path, names, *, patience):
        given.append((names, patience))
        return next(outcomes)

    monkeypatch.setattr("transformer_book.exam.__main__.examine", instead)
    words = ["mine.py", "--no-training", "--patience", "9"]
    assert [main(words), main(words), main(["mine.py", "--only", "loss"])] == [2, 1, 0]
    assert given[0] == (WITHOUT_TRAINING, 9.0)
    assert given[2] == (["loss"], PATIENCE)


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
    assert {name for name, _ in rows} == {name for name in WITHOUT_TRAINING if "," not in name}
    names: dict[str, object] = {}
    exec(solution(), names)
    for name, arguments in rows:
        assert str(inspect.signature(names[name])) == f"({arguments})"


def test_the_pages_table_names_the_weights_that_are_copied():
    table = TEXT.partition("| in | it looks for |")[2].partition("\n\n")[0]
    classes = set(re.findall(r"\*\*(\w+)\*\*", table))
    assert classes == {"MultiHeadAttention", "EncoderLayer", "DecoderLayer", "Transformer"}
    names = set(re.findall(r"`(\w+)`", table))
    assert names == NAMES - {"weight", "bias"}
    assert BY_HEAD in TEXT


def test_the_page_begins_empty_and_ends_right():
    printed = {
        cell.id: "".join(o.text for o in cell.outputs if o.output_type == "stream")
        for cell in code_cells(NOTEBOOK)
    }
    empty = printed["exam-mine"].splitlines()
    assert empty[:-1] == [f"○ {name}: mine.py has no {name} yet" for name in [*PARTS][:NAMED]]
    assert empty[-1] == f"0 of {len(PARTS)} right, {len(PARTS)} not there yet"
    wrong = printed["exam-wrong"]
    assert wrong.startswith("✗ attention: ")
    assert "[[0.88]]" in wrong
    assert "[[0.98]]" in wrong
    right = printed["exam-solution"].splitlines()
    assert right[-1] == f"{len(PARTS)} of {len(PARTS)} right"
    assert "  the black cat sleeps → le chat noir dort" in right
