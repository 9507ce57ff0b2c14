"""One evening: the page, the files that its reader owns, and what its words say of the stages."""

import contextlib
import io
import os
import re
import runpy
from pathlib import Path

import nbformat
import pytest
import torch

from tools.chapters import code_cells
from tools.evening import PAGE, files, pairs
from tools.evening import STAGES as STAGE_FILES
from transformer import Transformer, TransformerConfig
from transformer_book.evening import file_of
from transformer_book.experiments import evening as stages
from transformer_book.experiments.evening import LONGER, STAGES, evening
from transformer_book.experiments.experiment import Plan
from transformer_book.experiments.imports import imports_of_cell

NOTEBOOK = nbformat.read(PAGE, as_version=4)
TEXT = "\n\n".join(cell.source for cell in NOTEBOOK.cells if cell.cell_type == "markdown")
STANDARD = {"math", "random", "os", "pathlib", "urllib.request"}
SIZES = {"d_model": 64, "n_heads": 4, "n_encoder_layers": 2, "n_decoder_layers": 2, "d_ff": 128}


def cell(name):
    (found,) = (each for each in NOTEBOOK.cells if each.id == name)
    return found


def is_drawing(each):
    """It isn't for the reader to type."""
    return each.source.startswith("# @title Drawing")


def run(name, folder, change=("", "")):
    """What a file defines when it is started, beside the pairs; and what it prints."""
    said, before = io.StringIO(), Path.cwd()
    (folder / "pairs.tsv").write_text(pairs(), encoding="utf-8")
    text = (PAGE.parent / name).read_text(encoding="utf-8").replace(*change)
    (folder / name).write_text(text, encoding="utf-8")
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(said):
            names = runpy.run_path(name, run_name="__main__")
    finally:
        os.chdir(before)
    return names, said.getvalue()


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """The finished file, with the steps of the page's last stage but one: the page has its own."""
    shorter = "train(Transformer, n_steps=1200)", "train(Transformer)"
    assert PAGE.with_name("translator.py").read_text(encoding="utf-8").count(shorter[0]) == 1
    return run("translator.py", tmp_path_factory.mktemp("evening"), shorter)


def test_the_files_are_what_the_page_has_written_last():
    for name, text in files().items():
        assert (PAGE.parent / name).read_text(encoding="utf-8") == text, "run make chapters"


def test_the_pairs_are_the_books():
    assert PAGE.with_name("pairs.tsv").read_text(encoding="utf-8") == pairs()


def test_no_new_sentence_is_known():
    lines = pairs().splitlines()
    assert len(lines[12_000:]) == 600
    assert not {*lines[:12_000]} & {*lines[12_000:]}


def test_a_file_holds_the_last_of_each_name_and_nothing_that_it_does_not_need():
    source = file_of("writer", "report(train(Translator))")
    assert "class Dictionary" not in source
    assert "class Translator" in source
    assert "cross_attention" not in source
    final = file_of("final", "report(train(Transformer))")
    assert final.count("class Embedding") == 1
    assert "* math.sqrt(d_model)" in final
    assert "n_layers = 2" in final
    assert "n_layers = 1" not in final
    assert "# new" not in final
    assert "Your turn" not in final
    with pytest.raises(ValueError, match=r"^until must be the id of a code cell in one_evening"):
        file_of("no such cell", "")


def test_the_finished_file_says_what_the_page_says(translator):
    lines, pages = translator[1].splitlines(), cell("scale").outputs[0].text.splitlines()
    number = re.compile(r"(?:loss|right) ([\d.]+)")

    def words(text):  # what a model that still errs writes is another sentence on another machine
        return [number.sub("", line).split(" → ")[0] for line in text]

    assert words(lines) == words(pages)
    at_start, *_, at_end = losses = [float(number.search(line)[1]) for line in lines[:4]]
    assert at_start == pytest.approx(float(number.search(pages[0])[1]), abs=0.02)
    assert losses == sorted(losses, reverse=True)
    assert at_end < 0.2
    assert int(re.search(r"right (\d+) %", lines[4])[1]) > 60


def of_the_package(model, n_english, n_french):
    """The package's Transformer with the weights of the reader's."""
    theirs = Transformer(
        TransformerConfig(n_english, n_french, **SIZES, dropout=0.0, share_embeddings=False)
    )
    own = {}
    for name, weight in model.state_dict().items():
        name = re.sub(r"embedding\.rows\.", "embedding.tokens.", name)
        name = re.sub(r"^(encoder|decoder)\.(\d)", r"\1.layers.\2", name)
        name = re.sub(r"norm_(\d)", r"residual_\1.norm", name)
        if head := re.search(r"heads\.\d\.", name):  # of each matrix, the heads' rows in order
            whole = name.replace(head[0], "")
            weight = torch.cat([own[whole], weight]) if whole in own else weight
            name = whole
        own[name] = weight
    theirs.load_state_dict(own)
    return theirs.eval()


def test_weight_for_weight_it_is_the_books_transformer(translator):
    names, _ = translator
    model = names["model"].eval()
    theirs = of_the_package(model, len(names["english"]), len(names["french"]))
    sources, targets = zip(*names["test_pairs"], strict=True)
    src = names["padded"](sources, names["english"])
    tgt = names["padded"](targets, names["french"], names["BOS"])
    with torch.no_grad():
        ours, packages = model(src, tgt), theirs(src, tgt)
    words = tgt != 0  # where padding asks, the answers mean nothing
    assert ours[words].abs().max() > 5
    assert (ours[words] - packages[words]).abs().max() < 1e-4
    assert (ours[words] - packages[words].roll(1, 0)).abs().max() > 1


@pytest.mark.parametrize("name", STAGE_FILES)
def test_the_file_of_each_stage_trains_and_reports(name, tmp_path):
    (tmp_path / "evening").mkdir()
    _, said = run(f"evening/{name}.py", tmp_path, ("n_steps=400", "n_steps=4"))
    assert re.fullmatch(r"(step \d: loss [\d.]+\n){4}600 new .*\n(  .* → .*\n){4}", said)
    links = re.findall(r"\]\((evening/[^)]*)\)", TEXT)
    assert links == [f"evening/{each}.py" for each in STAGE_FILES]


def test_the_gpt_writes_as_it_stands(tmp_path):
    names, said = run("gpt.py", tmp_path)
    lines = said.splitlines()[4:]
    assert len(lines) == 9
    assert all(line.startswith("the black cat") for line in lines[6:])
    known = {source for source, _ in names["train_pairs"]}
    many = names["write"](names["gpt"], "", 200)
    assert sum(line not in known for line in many) > 100
    assert "Decoder" not in PAGE.with_name("gpt.py").read_text(encoding="utf-8")


def test_imports_nothing_but_pytorch_and_the_standard_library():
    cells = [each for each in code_cells(NOTEBOOK) if not is_drawing(each)]
    found = {one.module for each in cells for one in imports_of_cell(each.source)}
    assert found <= STANDARD | {"torch", "torch.nn", "torch.nn.functional"}


def test_two_sentences_are_apart_where_their_translations_are_not_the_same(monkeypatch):
    names = {
        "test_pairs": [("one", "un"), ("two", "deux")],
        "train": lambda new, **_: new(),
        "translate": lambda known, sentences: [known.get(text) for text in sentences],
        "loss_of": lambda _, pairs: torch.tensor(float(len(pairs))),
    }
    monkeypatch.setattr(stages, "names_of", lambda _: names)
    for more, apart in (({}, 0.0), ({stages.MIRRORED[0]: "le chien"}, 1.0)):
        known, plan = {"one": "un"} | more, Plan(0.1, 0, (1,), sweep=False)
        ((_, found),) = stages.learn(STAGES["attention"], lambda known=known: known, plan)
        assert found == {"right": 0.5, "loss": 2.0, "apart": apart}


def test_the_table_is_what_five_seeds_gave():
    rows = re.findall(r"^\| (.+?) \| ([\d.]+)–([\d.]+) \| (\d+)–(\d+) \|$", TEXT, flags=re.M)
    shown = [(float(a), float(b), int(c), int(d)) for _, a, b, c, d in rows]
    stored = []
    for name in STAGES:
        assert len(evening.finals(name)) == 5
        losses, shares = evening.spread(name, "loss"), evening.spread(name, "right")
        stored.append((*(round(x, 2) for x in losses), *(round(100 * x) for x in shares)))
    assert shown == stored


def test_the_first_picture_shows_stages_of_the_table():
    shown = re.findall(r'"([^"]+)": \((\d+), (\d+)\)', cell("drawing-first").source)
    stored = [tuple(round(100 * x) for x in shares(name)) for name in STAGES]
    found = [stored.index((int(low), int(high))) for _, low, high in shown]
    assert found == sorted(found)
    assert [list(STAGES)[i] for i in found] == [
        *("a dictionary", "attention", "the plus sign", "English asks itself, added"),
        *("four heads", "feed-forward and norms", "two layers", "a smaller start", "1,200 steps"),
    ]


def test_the_check_finds_what_the_report_does_not_see(translator, monkeypatch):
    of_the_file = translator[0]["train"].__globals__

    def said(**wrong):
        out = io.StringIO()
        with monkeypatch.context() as changed, contextlib.redirect_stdout(out):
            for name, value in wrong.items():
                changed.setitem(of_the_file, name, value)
            exec(cell("check").source, dict(of_the_file))
        return out.getvalue()

    class NoBend(of_the_file["FeedForward"]):
        def forward(self, x):
            return self.W_2(self.W_1(x))

    class NoNorm(of_the_file["EncoderLayer"]):
        def forward(self, x, mask):
            return x + super().forward(x, mask)

    right = said()
    assert right == cell("check").outputs[0].text
    assert right.count("True") == 4
    assert right.endswith("never used: []\n")
    assert "moves nothing: False" in said(causal_mask=lambda T: torch.ones(T, T, dtype=torch.bool))
    assert "changes nothing: False" in said(PAD=-1)
    assert "bends: False" in said(FeedForward=NoBend)
    assert "its norm: False" in said(EncoderLayer=NoNorm)
    clocks = of_the_file["positions"]
    assert "-0.84" in said(positions=lambda T: -clocks(T))


@pytest.mark.parametrize("name", STAGES)
def test_what_the_page_prints_is_like_its_table(name):
    """nbval lets a number differ by a factor of ten: a missing plus sign costs less."""
    printed = "".join(made.text for made in cell(STAGES[name].cell).outputs)
    loss, right = re.search(r"600 new sentences: loss ([\d.]+), right (\d+) %", printed).groups()
    assert losses(name)[0] / 1.2 - 0.01 < float(loss) < 1.2 * losses(name)[1] + 0.01
    assert shares(name)[0] - 0.05 < float(right) / 100 < shares(name)[1] + 0.05


def test_the_longer_runs_are_those_of_the_text():
    low, high = ([round(100 * shares(name)[i]) for name in LONGER] for i in (0, 1))
    before, replaced, added = (f"{a}–{b} %" for a, b in zip(low, high, strict=True))
    assert f"{before} are right before the part comes, {replaced} with the part" in TEXT
    assert f"without the plus sign, and {added} with both." in TEXT


def losses(name):
    return evening.spread(name, "loss")


def shares(name):
    return evening.spread(name, "right")


def each_start_gains(*names, measure="right"):
    """Whether with each seed the measure grows from stage to stage."""
    return all(
        list(found) == sorted(set(found))
        for found in zip(*(evening.values(name, measure) for name in names), strict=True)
    )


# a piece of the page's text, and whether it is so with each of five seeds
SAYS = {
    "now and then a sentence is even right": lambda: (
        losses("a dictionary")[1] < 5.75 / 2 and shares("a dictionary")[0] > 0.01
    ),
    "The loss is less than half of the writer's": lambda: (
        losses("attention")[1] < losses("a writer that hears nothing")[0] / 2
    ),
    "it doesn't get more sentences right than the dictionary did": lambda: (
        shares("attention")[1] < shares("a dictionary")[0] + 0.02
    ),
    "Both get the same French, letter for letter": lambda: (
        evening.values("attention", "apart") == (0.0,) * 5
    ),
    "it holds for every start that we tried": lambda: (
        evening.values("positions", "apart") == (1.0,) * 5
    ),
    "more sentences come out right, with a lower loss, in each of five starts": lambda: (
        each_start_gains("positions", "the plus sign")
        and each_start_gains("the plus sign", "positions", measure="loss")
    ),
    "hardly one is right": lambda: shares("French asks itself, no mask")[1] < 0.01,
    "Nothing so far has come near it": lambda: (
        losses("French asks itself, no mask")[1] < losses("the plus sign")[0] / 1.5
    ),
    "in each of five starts more of them than before the writer could look back": lambda: (
        each_start_gains("the plus sign", "the causal mask")
    ),
    "The loss is higher again by far, but now some of the 600 are right": lambda: (
        losses("the causal mask")[0] > 1.5 * losses("French asks itself, no mask")[1]
        and shares("the causal mask")[0] > 0.05
    ),
    "By the count it gets worse!": lambda: (
        losses("English asks itself, replaced")[0] > 1.1 * losses("the causal mask")[1]
    ),
    "it does much better than without": lambda: (
        losses("English asks itself, added")[1] < 0.8 * losses("English asks itself, replaced")[0]
        and shares("English asks itself, added")[0]
        > 1.4 * shares("English asks itself, replaced")[1]
    ),
    "About a third of the new sentences": lambda: (
        shares("four heads")[0] > 0.26 and shares("four heads")[1] < 0.43
    ),
    "between four and six in ten new sentences": lambda: (
        shares("feed-forward and norms")[0] > max(0.4, shares("four heads")[1])
        and shares("feed-forward and norms")[1] < 0.62
    ),
    "Both new parts have a share in that. Without the norms it's 42–49 %": lambda: (
        each_start_gains("four heads", "feed-forward alone", "feed-forward and norms")
        and [round(100 * x) for x in shares("feed-forward alone")] == [42, 49]
    ),
    "It does. One thing is left": lambda: (
        shares("two layers")[0] > shares("feed-forward and norms")[1]
    ),
    "Around four in five": lambda: (
        shares("a smaller start")[0] > 0.74 and shares("a smaller start")[1] < 0.9
    ),
    "Almost every new sentence is right": lambda: shares("1,200 steps")[0] > 0.95,
    "some three in four of the five nearest rows": lambda: all(
        0.65 < share < 0.85 for share in evening.values("1,200 steps", "kin")
    ),
    "**98 %** of 600 new sentences": lambda: shares("1,200 steps")[0] > 0.975,
}


@pytest.mark.parametrize("words", SAYS)
def test_the_text_holds_for_every_seed(words):
    assert TEXT.count(words) == 1
    assert SAYS[words]()


def test_kin_are_nouns_of_the_same_gender_and_number():
    """*cat* and *dog*, not *cats*, *queen* or *black*, however near these are."""
    words = ["cat", "dog", "queen", "cats", "black", "sad", "not"]
    rows = torch.eye(7)
    rows[:, 0] = torch.tensor([9.0, 9.0, 8.0, 8.0, 8.0, 8.0, 0.0])  # each has five that are near
    number_of = {word: i for i, word in enumerate(words)}
    assert stages.kin(rows, number_of) == pytest.approx(2 / (4 * 5))
    assert stages.kin(100 * rows, number_of) == stages.kin(rows, number_of)
    assert stages.kin(rows, {"cat": 0, "the": 1, "queen": 2}) == 0.0
