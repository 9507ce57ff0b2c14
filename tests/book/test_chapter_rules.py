"""Each rule of a chapter, broken once in a small chapter that keeps all of them."""

import nbformat
import pytest

from tests.book import chapter_rules
from tests.book.chapter_rules import chapter_of, rules_for
from tools.chapters import tidy
from tools.ledger import claims, ledger
from transformer_book.claims import Claim

WORDS = "The model of the book in grey; the parts of this chapter are lit."
SVG = "<svg xmlns='http://www.w3.org/2000/svg' class='drawing' aria-label='{}'/>"
HINT = "<details>\n<summary>Hint</summary>\n\nAdd.\n</details>"
BEFORE = """
text  | # 3. Small
text  | {long}
code  | set-up       | remove-cell |
code  | imports      | hide-cell   | # @title Imports¶import torch
code  | map          | hide-input  | # @title The map | svg
text  | ## 3.1 One
code  | drawn        | hide-input  | # @title Drawing: one | svg
text  | **Figure 3.1.** One.
code  | plotted      | hide-input  | # @title Plot: two¶plt.plot() | png
text  | **Figure 3.2.** Two.
code  | lesson       |             | claim("one", x == 1, "identity") | claim: one
code  | proof        | hide-cell   | # @title Checked here: two | claim: two
code  | your-turn-add |            | def add(): ... | ○ Your turn 3.1: not written yet
text  | {hint}
code  | solution-your-turn-add | hide-cell | # @title Solution: add | ✓ Your turn 3.1: right
code  | use-add      |             | add = check.use(add, solved) | → From here on
text  | ## 3.2 The translator so far
text  | ## Summary
text  | ## Exercises
"""
EXERCISE = """
text  | **Exercise 3.{n}.** Do it.
code  | exercise-3-{n} |           | def do(): ...       | ○ Exercise 3.{n}: not written yet
code  | solution-3-{n} | hide-cell | # @title Solution 3.{n} | ✓ Exercise 3.{n}: right
"""
AFTER = """
text  | ## Further reading
"""


def output_of(shown):
    if shown == "svg":
        return nbformat.v4.new_output("display_data", {"image/svg+xml": SVG.format(WORDS)})
    if shown == "png":
        return nbformat.v4.new_output("display_data", {"image/png": "AAAA"})
    if shown.startswith("claim: "):
        made = Claim(shown.removeprefix("claim: "), "identity")
        return nbformat.v4.new_output("display_data", made._repr_mimebundle_())
    return nbformat.v4.new_output("stream", text=shown + "\n")


def small_chapter():
    """A chapter that keeps every rule."""
    rows = BEFORE + "".join(EXERCISE.format(n=n + 1) for n in range(4)) + AFTER
    cells = []
    for n, row in enumerate(rows.strip().splitlines()):
        kind, *rest = (part.strip() for part in row.split("|")) if row else ("",)
        if kind == "text":
            source = rest[0].format(long="word " * 2000, hint=HINT)
            cells.append(nbformat.v4.new_markdown_cell(source, id=f"text-{n}"))
        elif kind == "code":
            name, tags, source, *shown = rest
            cells.append(
                nbformat.v4.new_code_cell(
                    source.replace("¶", "\n"),
                    id=name,
                    metadata={"tags": tags.split()} if tags else {},
                    outputs=[output_of(each) for each in shown],
                )
            )
    notebook = nbformat.v4.new_notebook(cells=cells)
    cell(notebook, "plotted").metadata["mystnb"] = {"image": {"alt": "A line that falls. " * 3}}
    tidy(notebook)
    return nbformat.from_dict(notebook)


def cell(notebook, name):
    return next(each for each in notebook.cells if each.id == name)


def complaints(notebook):
    return {rule.__name__: found for rule in rules_for(notebook) if (found := list(rule(notebook)))}


BROKEN = {}


def breaks(rule, *said):
    """Registers a way to break one rule and no other, with what is to be said of it."""

    def register(change):
        BROKEN[change.__name__] = (change, rule, list(said))
        return change

    return register


def replaced(notebook, name, old, new):
    cell(notebook, name).source = cell(notebook, name).source.replace(old, new)


def prints(notebook, name, *texts):
    cell(notebook, name).outputs = [output_of(text) for text in texts]


def drop(notebook, name):
    notebook.cells.remove(cell(notebook, name))


def text_after(notebook, name):
    return notebook.cells[notebook.cells.index(cell(notebook, name)) + 1]


@breaks("it_has_a_map", "no cell map draws the model")
def an_empty_map(notebook):
    cell(notebook, "map").outputs = []


@breaks("it_begins_with_its_question", "no text follows its title: it opens with code")
def imports_before_the_question(notebook):
    notebook.cells.insert(1, notebook.cells.pop(2))


@breaks("it_begins_with_its_question", "text-0: its question asks nothing")
def a_question_that_asks_nothing(notebook):
    notebook.cells[0].source += "\n\n**The question.** One sees.\n\nDoes one?"


@breaks("tags_are_known", "lesson: is tagged hide-output")
def an_unknown_tag(notebook):
    cell(notebook, "lesson").metadata.tags = ["hide-output"]


@breaks("tags_are_known", "set-up: is tagged nbval-ignore-output")
def a_tag_on_set_up(notebook):
    cell(notebook, "set-up").metadata.tags.append("nbval-ignore-output")


@breaks("tags_are_known", "proof: is tagged remove-cell")
def a_removed_cell(notebook):
    cell(notebook, "proof").metadata.tags.append("remove-cell")


@breaks("tags_are_known", "proof: hide-cell hides the input, too")
def folded_twice(notebook):
    cell(notebook, "proof").metadata.tags.append("hide-input")


@breaks("folds_say_what_is_in_them", "proof: is folded without # @title in its first line")
def no_title(notebook):
    replaced(notebook, "proof", "# @title ", "# ")


@breaks(
    "folds_say_what_is_in_them",
    "proof: its fold does not say 'Checked here: three': run make chapters",
)
def another_title(notebook):
    replaced(notebook, "proof", "two", "three")


@breaks(
    "folds_say_what_is_in_them",
    "proof: its fold does not say 'Checked here: two': run make chapters",
)
def open_on_colab(notebook):
    del cell(notebook, "proof").metadata["cellView"]


@breaks("folds_say_what_is_in_them", "proof: its title has 73 letters, 72 at most")
def a_long_title(notebook):
    replaced(notebook, "proof", "two", "two" + "o" * 56)
    tidy(notebook)


@breaks("cells_are_short", "lesson: has 13 lines, 12 at most")
def a_long_lesson(notebook):
    cell(notebook, "lesson").source += "\n#" * 12


@breaks("cells_are_short", "proof: has 26 lines, 25 at most")
def a_long_proof(notebook):
    cell(notebook, "proof").source += "\n#" * 25


@breaks("open_cells_plot_and_import_nothing", "lesson: plots in an open cell")
def an_open_plot(notebook):
    cell(notebook, "lesson").source += "\nplt.plot()"


@breaks("open_cells_plot_and_import_nothing", "lesson: imports in an open cell")
def an_open_import(notebook):
    cell(notebook, "lesson").source += "\nimport math"


@breaks("open_cells_plot_and_import_nothing", "lesson: imports in an open cell")
def an_open_import_of_a_name(notebook):
    cell(notebook, "lesson").source += "\nfrom math import pi"


@breaks("imports_are_folded", "no folded cell imports")
def no_imports(notebook):
    drop(notebook, "imports")


@breaks("imports_are_folded", "no folded cell imports")
def open_imports(notebook):
    cell(notebook, "imports").metadata.pop("tags")
    cell(notebook, "imports").source = "x = 1"


@breaks(
    "imports_are_folded",
    "proof: imports in a fold of its own: its first line is to be '# @title Imports, continued'",
)
def imports_with_another_name(notebook):
    cell(notebook, "proof").source = "# @title More imports, continued\nimport math"
    tidy(notebook)


@breaks("drawings_have_words", "drawn: shows other than one drawing of transformer_book.drawings")
def two_drawings(notebook):
    cell(notebook, "drawn").outputs *= 2


@breaks("drawings_have_words", "drawn: shows other than one drawing of transformer_book.drawings")
def a_plot_as_svg(notebook):
    data = cell(notebook, "drawn").outputs[0].data
    data["image/svg+xml"] = data["image/svg+xml"].replace("class='drawing' ", "")


@breaks("drawings_have_words", "drawn: draws without the tag hide-input")
def a_hidden_drawing(notebook):
    cell(notebook, "drawn").metadata.tags = ["hide-cell"]


@breaks("drawings_have_words", "drawn: its drawing says too little of itself: 'A box'")
def a_drawing_without_words(notebook):
    cell(notebook, "drawn").outputs[0].data["image/svg+xml"] = SVG.format("A box")
    tidy(notebook)


@breaks("drawings_have_words", "drawn: its text is not the drawing's: run make chapters")
def words_of_another_drawing(notebook):
    cell(notebook, "drawn").metadata.mystnb.image.alt = "Another drawing. " * 3


@breaks("drawings_have_words", "drawn: no **Figure …** in the next cell")
def a_drawing_without_caption(notebook):
    text_after(notebook, "drawn").source = "One."


@breaks("plots_have_words", "plotted: its plot has no words for those who do not see it")
def a_plot_without_words(notebook):
    del cell(notebook, "plotted").metadata.mystnb["image"]


@breaks("plots_have_words", "plotted: no **Figure …** in the next cell")
def a_plot_without_caption(notebook):
    text_after(notebook, "plotted").source = "Two."


@breaks(
    "words_in_plots_are_dark",
    "plotted: writes in figures.ORANGE, not in a figures.ink(…)",
    "plotted: writes in '#E69F00', not in a figures.ink(…)",
)
def faint_words(notebook):
    cell(notebook, "plotted").source += """
axes.text(0, 0, "dark", color=figures.ink(figures.ORANGE))
axes.text(0, 0, "dark", color=figures.BLUE)
axes.text(0, 0, "dark", color="black")
axes.plot([0, 1], color=figures.ORANGE)
axes.text(0, 0, "faint", color=figures.ORANGE)
axes.annotate("faint", (0, 0), color="#E69F00")"""


@breaks("open_ticks_are_few", "21 open ticks, 20 at most")
def many_ticks(notebook):
    prints(notebook, "lesson", *(f"claim: {n}" for n in range(20)))
    cell(notebook, "drawn").outputs += map(output_of, ("claim: drawn", "✓ Exercise 3.1: right"))
    prints(notebook, "proof", *(f"claim: {n}" for n in range(40)))


@breaks("ticks_are_claims", "proof: prints '✓ two', which no claim has made")
def a_tick_that_is_only_printed(notebook):
    prints(notebook, "proof", "one\n✓ two\n✓ Exercise 3.1: right")


@breaks("claims_can_fail", "lesson: claims what always holds: True")
def a_claim_that_cannot_fail(notebook):
    cell(notebook, "lesson").source = 'same = True\nclaim("one", same, "identity")'


@breaks("it_has_the_length_of_a_chapter", "1541 open words, not 2000 to 5000")
def few_words(notebook):
    notebook.cells[1].source = (
        "word " * 1500 + "<details><summary>More</summary>word word</details>"
    )


@breaks("it_has_the_length_of_a_chapter", "5041 open words, not 2000 to 5000")
def many_words(notebook):
    notebook.cells[1].source = "word " * 5000


@breaks(
    "it_ends_as_every_chapter",
    "ends with ['One', 'Summary', 'Exercises', 'Further reading'], not with "
    "('The translator so far', 'Summary', 'Exercises', 'Further reading')",
)
def no_translator(notebook):
    text_after(notebook, "use-add").source = ""


@breaks("the_reader_has_a_turn", "no cell your-turn-…")
def no_turn(notebook):
    drop(notebook, "your-turn-add")


@breaks("the_reader_has_a_turn", "your-turn-add: is folded")
def a_folded_turn(notebook):
    cell(notebook, "your-turn-add").source = "# @title Add"
    cell(notebook, "your-turn-add").metadata.tags = ["hide-cell"]
    tidy(notebook)


@breaks("the_reader_has_a_turn", "your-turn-add: does not print ○ … first")
def a_turn_that_is_taken(notebook):
    prints(notebook, "your-turn-add", "✓ Your turn 3.1: right")


@breaks("the_reader_has_a_turn", "your-turn-add: no cell solution-your-turn-add follows")
def a_turn_without_solution(notebook):
    drop(notebook, "solution-your-turn-add")


@breaks("the_reader_has_a_turn", "your-turn-add: no later cell runs with add: check.use(add, …)")
def a_turn_that_is_not_used(notebook):
    drop(notebook, "use-add")


@breaks("the_reader_has_a_turn", "your-turn-add: no <summary>Hint before its solution")
def a_turn_without_hint(notebook):
    text_after(notebook, "your-turn-add").source = HINT.replace("Hint", "More")


@breaks("the_reader_has_a_turn", "solution-your-turn-add: is not folded")
def an_open_solution_of_a_turn(notebook):
    cell(notebook, "solution-your-turn-add").metadata.tags = []


@breaks("the_reader_has_a_turn", "solution-your-turn-add: does not print ✓ Your turn 3.1")
def a_wrong_solution_of_a_turn(notebook):
    prints(notebook, "solution-your-turn-add", "✗ Your turn 3.1: not right\n✓ Your turn 3.12: …")


@breaks(
    "every_exercise_can_be_tried",
    "exercises, starters and solutions are ['3.1', 'solution-3-1', 'exercise-3-1', '3.2', "
    "'exercise-3-2', 'solution-3-2', '3.3', 'exercise-3-3', 'solution-3-3', '3.4', "
    "'exercise-3-4', 'solution-3-4']",
)
def a_solution_before_its_starter(notebook):
    starter = cell(notebook, "exercise-3-1")
    position = notebook.cells.index(starter)
    notebook.cells.remove(starter)
    notebook.cells.insert(position + 1, starter)


@breaks(
    "every_exercise_can_be_tried",
    "exercises, starters and solutions are ['3.1', 'exercise-3-1', 'solution-3-1', '3.2', "
    "'exercise-3-2', 'solution-3-2', '3.3', 'exercise-3-3', 'solution-3-3']",
)
def three_exercises(notebook):
    for _ in range(3):
        del notebook.cells[-2]


@breaks("every_exercise_can_be_tried", "exercise-3-2: does not print ○ Exercise 3.2 … first")
def a_starter_of_another_exercise(notebook):
    prints(notebook, "exercise-3-2", "○ Exercise 3.3: not written yet")


@breaks("every_exercise_can_be_tried", "solution-3-2: does not print ✓ Exercise 3.2")
def a_solution_that_fails(notebook):
    prints(notebook, "solution-3-2", "✗ Exercise 3.2: not right")


@breaks("every_exercise_can_be_tried", "solution-3-2: does not begin with # @title Solution 3.2")
def a_solution_with_another_title(notebook):
    replaced(notebook, "solution-3-2", "3.2", "of 3.2")
    tidy(notebook)


def test_the_small_chapter_keeps_every_rule():
    notebook = small_chapter()
    nbformat.validate(notebook)
    assert complaints(notebook) == {}


@pytest.mark.parametrize("change", BROKEN)
def test_a_broken_rule_is_found(change):
    break_it, rule, said = BROKEN[change]
    notebook = small_chapter()
    break_it(notebook)
    assert complaints(notebook) == {rule: said}


def test_every_rule_is_broken():
    rules = (
        chapter_rules.OF_EVERY_PAGE
        + chapter_rules.OF_EVERY_CHAPTER
        + chapter_rules.NOT_OF_CHAPTER_0
    )
    assert {rule.__name__ for rule in rules} == {rule for _, rule, _ in BROKEN.values()}


def test_chapter_0_has_fewer_rules():
    notebook = small_chapter()
    notebook.cells = [notebook.cells[n] for n in (0, 1, 2, 4)]
    notebook.cells[0].source = "# 0. The whole"
    assert chapter_of(notebook) == 0
    notebook.cells[1].source = "word " * 2000
    assert "2004 open words, not 400 to 2000" in str(complaints(notebook))
    notebook.cells[1].source = "word " * 500
    assert complaints(notebook) == {}
    notebook.cells[3].id = "other"
    assert list(complaints(notebook)) == ["it_has_a_map", "drawings_have_words"]


def test_a_notebook_without_a_number_needs_no_map_and_no_exercises(tmp_path):
    notebook = small_chapter()
    notebook.cells[0].source = "# Small"
    notebook.cells = [cell for cell in notebook.cells if cell.id != "map"][:-3]
    assert complaints(notebook) == {}
    nbformat.write(notebook, tmp_path / "small.ipynb")
    assert "\n## Small\n" in ledger([tmp_path / "small.ipynb"])
    assert "\n| 1 | [one](#claim-one) | identity |\n" in ledger([tmp_path / "small.ipynb"])
    cells = {cell.id: cell for cell in notebook.cells}
    cells["lesson"].source = "plt.plot()"
    cells["imports"].id = "other"
    assert list(complaints(notebook)) == [
        "open_cells_plot_and_import_nothing",
        "imports_are_folded",
    ]


def test_what_a_check_says_of_a_solution_is_no_claim(tmp_path):
    notebook = small_chapter()
    assert [made.text for made in claims(notebook)] == ["one", "two"]
    prints(notebook, "lesson", "")
    prints(notebook, "proof", "")
    nbformat.write(notebook, tmp_path / "03_small.ipynb")
    assert "## Chapter" not in ledger([tmp_path / "03_small.ipynb"])
