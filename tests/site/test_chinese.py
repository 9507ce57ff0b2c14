"""The Chinese edition: the pieces of a page, what becomes of them, and what is found wrong."""

import copy
import json

import lxml.html
import pytest
from sphinx.application import Sphinx

from transformer_book.claims import MIME
from website import chinese, words
from website.extensions import chinese as extension
from website.extensions.chinese import translated
from website.translation import FOLDER, Piece, faults, pieces_of, read, replace, synced, write

FILES = sorted(FOLDER.rglob("*.md"))
SVG = (
    "<svg><text x='1'>weight</text><text>the <tspan>the last &lt;step&gt;&#x27;s</tspan></text>"
    "<g>weight</g></svg>"
)
CODE = """# A comment that says
# more than a name.
x = 1  # it has three words
y = '# no comment here'"""
FOLD = {"code_prompt_show": "Plot: two", "image": {"alt": "Two rows."}}


def cell(kind, key, source, outputs=(), **mystnb):
    metadata = {"mystnb": mystnb} if mystnb else {}
    return {"cell_type": kind, "id": key, "source": source, "metadata": metadata} | (
        {"outputs": [{"data": data} for data in outputs]} if kind == "code" else {}
    )


NOTEBOOK = {
    "cells": [
        cell("markdown", "title", "# 3. A title"),
        cell("code", "plot", "draw()", [{"image/svg+xml": [SVG]}], **FOLD),
        cell("code", "run", CODE, [{MIME: {"text": "two are two"}, "text/plain": "✓ two are two"}]),
    ]
}
CHINESE = {
    ("cell", "# 3. A title"): "# 3. 标题",
    ("fold", "Plot: two"): "画图：两个",
    ("alt", "Two rows."): "两行。",
    (
        "words",
        "weight\nthe\nthe last <step>'s",
    ): "weight ⇒ 权重\nthe last <step>'s ⇒ 最后 <一步> 的",
    ("comment", "A comment that says more than a name."): "这条注释说的，不只是一个名字。",
    ("comment", "it has three words"): "有三个词",
    ("claim", "two are two"): "二就是二",
}


def in_chinese(english):
    return [
        Piece(piece.kind, piece.key, piece.english, CHINESE.get((piece.kind, piece.english), ""))
        for piece in pieces_of(english)
    ]


@pytest.fixture
def speaking(monkeypatch):
    """A process that speaks Chinese, with one claim in it."""
    monkeypatch.setattr(words, "_spoken", ["zh_CN"])
    monkeypatch.setattr(words, "claims", lambda: {"a <b> is c_d": "甲 <b> 是 c_d"})
    monkeypatch.setattr(extension, "claims", words.claims)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_written_is_what_is_read(path, tmp_path):
    pieces = read(path)
    assert pieces
    write(pieces, tmp_path / "again.md")
    assert (tmp_path / "again.md").read_text("utf-8") == path.read_text("utf-8")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_translations_have_the_formulas_code_and_links_of_the_english(path):
    """Numbers may be in words, which a program doesn't read: ``zh check`` shows them."""
    found = [f for piece in read(path) if not piece.stale for f in faults(piece)]
    assert [fault for fault in found if not fault.startswith("numbers")] == []


def test_a_piece_is_read_as_it_was_written(tmp_path):
    pieces = [
        Piece("cell", "a", "One.\n\nTwo."),
        Piece("part", "b", "<!-- x -->", "一\n\n二", True),
    ]
    pieces += [Piece("claim", "", "$a$ is b", "甲")]
    write(pieces, tmp_path / "new" / "page.md")
    assert read(tmp_path / "new" / "page.md") == pieces
    assert read(tmp_path / "none.md") == []


def test_each_place_of_a_notebook_that_has_words_is_a_piece():
    pieces = pieces_of(json.dumps(NOTEBOOK))
    assert [(piece.kind, piece.english) for piece in pieces] == [*CHINESE][:4] + [*CHINESE][4:]


def test_chinese_stands_where_the_english_stood_and_nothing_else_is_changed():
    english = json.dumps(NOTEBOOK)
    made = json.loads(translated(english, in_chinese(english)))
    title, plot, run = made["cells"]
    assert title["source"] == "# 3. 标题"
    shown = plot["metadata"]["mystnb"]
    assert (shown["code_prompt_show"], shown["image"]["alt"]) == ("画图：两个", "两行。")
    drawn = "<svg><text x='1'>权重</text><text>the <tspan>最后 &lt;一步&gt; 的</tspan></text>"
    assert plot["outputs"][0]["data"]["image/svg+xml"] == f"{drawn}<g>weight</g></svg>"
    assert run["source"] == CODE.replace(
        "A comment that says\n# more than a name.", "这条注释说的，不只是一个名字。"
    ).replace("it has three words", "有三个词")
    rest = copy.deepcopy(NOTEBOOK)
    rest["cells"][0] = title
    rest["cells"][1] |= {"metadata": plot["metadata"], "outputs": plot["outputs"]}
    rest["cells"][2]["source"] = run["source"]
    assert made == rest


def test_hidden_code_keeps_its_comments_and_a_solution_does_not():
    code = cell("code", "a", CODE, code_prompt_show="Drawing: a")
    code["metadata"]["tags"] = ["hide-input"]
    kinds = lambda cell: [piece.kind for piece in pieces_of(json.dumps({"cells": [cell]}))]  # noqa: E731
    assert kinds(code) == ["fold"]
    code["metadata"]["mystnb"]["code_prompt_show"] = "Solution 3.1"
    assert kinds(code) == ["fold", "comment", "comment"]


def test_a_changed_piece_keeps_its_chinese_and_says_that_it_is_old():
    before = [Piece("cell", "a", "It is so.", "是这样。"), Piece("cell", "b", "Gone.", "没了。")]
    before += [Piece("claim", "", "the model wins in 9 of 10", "模型十次赢九次")]
    now = [Piece("cell", "a", "It isn't so."), Piece("cell", "new", "Something new.")]
    now += [Piece("claim", "", "the model wins in 8 of 10")]
    old, new, claim = synced(now, before)
    assert old == Piece("cell", "a", "It isn't so.", "是这样。", stale=True)
    assert new == now[1]
    assert (claim.chinese, claim.stale) == ("模型十次赢九次", True)
    assert synced(now[:1], [old]) == [old]  # and stays so until somebody takes the mark out
    page = json.dumps({"cells": [cell("markdown", "a", "It isn't so.")]})
    for piece in (before[0], old):
        assert "是这样。\\n\\n*（这一段的英文已有改动" in translated(page, [piece])
    assert "英文" not in translated(page, [Piece("cell", "a", "It isn't so.", "不是。")])


def test_a_piece_with_another_name_keeps_its_chinese():
    before = [Piece("cell", "old-id", "A word asks all the words.", "每个词都问。")]
    (found,) = synced([Piece("cell", "new-id", "A word asks all the words.")], before)
    assert found == Piece("cell", "new-id", "A word asks all the words.", "每个词都问。")


ENGLISH = "## 3.2 Heads\n\nOf $n$ rows `f(x)` takes 96 %, see [A](#sec-3.1)."


@pytest.mark.parametrize(
    ("chinese", "fault"),
    [
        ("## 3.2 头\n\n`f(x)` 从 $n$ 行里取 96 %，见 [A](#sec-3.1)。", None),
        ("## 3.2 头\n\n`f(x)` 从 $m$ 行里取 96 %，见 [A](#sec-3.1)。", "formulas"),
        ("## 3.2 头\n\n`f(y)` 从 $n$ 行里取 96 %，见 [A](#sec-3.1)。", "code"),
        ("## 3.2 头\n\n`f(x)` 从 $n$ 行里取 96 %，见 [A](#sec-3.2)。", "links"),
        ("## 3.3 头\n\n`f(x)` 从 $n$ 行里取 96 %，见 [A](#sec-3.1)。", "headings"),
        ("## 3.2 头\n\n`f(x)` 从 $n$ 行里取 69 %，见 [A](#sec-3.1)。", "numbers"),
        ("## 3.2 头\n\n`f(x)` 从 $n$ 行里取 96 %, 见 [A](#sec-3.1)。", None),
        ("## 3.2 头\n\n`f(x)` 从 $n$ 行里,取 96 %，见 [A](#sec-3.1)。", "half-width"),
        ("## 3.2 头\n\n`f(x)` 从 $n$ 行里取96 %，见 [A](#sec-3.1)。", "no blank"),
        ("## 3.2 头\n\n`f(x)` 从 $n$ 行里\n取 96 %，见 [A](#sec-3.1)。", "a line break"),
        ("## 3.2 头\n\n`f(x)` 从 $n$ *行*里取 96 %，见 [A](#sec-3.1)。", "Chinese does not slant"),
        ("## 3.2 头\n\n**记。**`f(x)` 从 $n$ 行里取 96 %，见 [A](#sec-3.1)。", None),
        ("## 3.2 头\n\n**记。**从 `f(x)` 的 $n$ 行里取 96 %，见 [A](#sec-3.1)。", "Markdown"),
    ],
)
def test_what_may_not_differ_and_what_chinese_type_does_not_do(chinese, fault):
    found = [*faults(Piece("cell", "a", ENGLISH, chinese))]
    assert not found if fault is None else found[0].startswith(fault)


def test_a_word_that_the_picture_has_not_is_a_fault():
    assert [*faults(Piece("words", "a", "weight\nstep", "step ⇒ 步\nwait ⇒ 等"))]
    assert not [*faults(Piece("words", "a", "weight\nstep", "step ⇒ 步"))]


def test_a_script_whose_english_has_changed_is_stale_below_the_new_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(chinese, "ROOT", tmp_path)
    (tmp_path / "website/parts").mkdir(parents=True)
    (tmp_path / "website/parts/a.js").write_text('one();\nsay("The word asks twice");\nlast();\n')
    same = Piece("script", "parts/a.js", "one();", "一();")
    assert chinese.script_of_today(same) == same
    changed = Piece("script", "parts/a.js", 'say("The word asks");', 'say("词在问");')
    english = 'say("The word asks twice");'
    assert chinese.script_of_today(changed) == Piece(
        "script", "parts/a.js", english, 'say("词在问");', stale=True
    )


def test_scripts_speak_chinese_in_their_copies_alone(tmp_path, monkeypatch, speaking):
    monkeypatch.setattr(extension, "FOLDER", tmp_path)
    pieces = [Piece("script", "parts/a.js", '"asks"', '"在问"')]
    pieces += [Piece("script", "parts/a.js", '"looks"', '"在看"', stale=True)]
    write(pieces, tmp_path / "scripts/all.md")
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy/a.js").write_text('say("asks", "looks", "asks");')
    extension.say_in_scripts(tmp_path / "copy", "parts/")
    said = (tmp_path / "copy/a.js").read_text(encoding="utf-8")
    assert said == 'say("在问", "looks", "在问");'


def test_check_writes_new_english_above_the_chinese_and_stops_nobody(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(chinese, "ROOT", tmp_path)
    monkeypatch.setattr(chinese, "FOLDER", tmp_path / "zh")
    (tmp_path / "page.md").write_text("# A page\n\nIt has $n$ words.\n", encoding="utf-8")
    write(
        [Piece("part", "a-page", "# A page\n\nIt has words.", "# 一页\n\n有词。")],
        tmp_path / "zh/page.md",
    )
    gone = [Piece("part", "a", "A.", "甲。"), Piece("script", "gone.js", "a()", "甲()")]
    write(gone[:1], tmp_path / "zh/gone.md")
    write(gone[1:], tmp_path / "zh/scripts/gone.md")
    (tmp_path / "new.md").write_text("# New\n", encoding="utf-8")
    (tmp_path / "zh/new.md").touch()
    assert chinese.check() == 0
    assert read(tmp_path / "zh/gone.md") == gone[:1]  # Chinese of what is no more is not lost
    assert read(tmp_path / "zh/scripts/gone.md") == [replace(gone[1], stale=True)]
    assert read(tmp_path / "zh/new.md") == [Piece("part", "new", "# New")]
    (piece,) = read(tmp_path / "zh/page.md")
    assert (piece.english, piece.stale) == ("# A page\n\nIt has $n$ words.", True)
    assert "page: 1 of 1 pieces are in Chinese, 1 of them stale" in capsys.readouterr().out
    path = tmp_path / "zh/page.md"
    path.write_text(path.read_text("utf-8").replace("<!-- stale -->\n", ""), encoding="utf-8")
    assert chinese.check() == 1
    assert "page: part a-page: formulas: 1 and 0" in capsys.readouterr().out
    write([replace(piece, chinese="# 一页\n\n有 $n$ 个词，200 个。", stale=False)], path)
    assert chinese.check() == 0  # a number may have been a word
    assert "numbers: only English [], only Chinese ['200']" in capsys.readouterr().out


PAGES = {
    "index": "# A\n\n```{toctree}\nchapters/01_x\nglossary\nother\n```",
    "chapters/01_x": "# 1. One\n\n**The question.** Of what?\n\n## 1.1 Sums\n\n"
    "**Figure 1.1.** A picture.\n\n## Alone\n\nOne.\n\n"
    "## Plain\n\nSee [sums](#sec-1.1).\n\n## Plain\n\nAgain.\n",
    "chapters/02_y": "# 2. Two\n\n- [a \\<b> is c\\_d](#claim-a)\n\nSee chapter 1.\n",
    "glossary": "# Words\n\n```{glossary}\naxis\n轴\n  Is summed.\n\nmask\n掩码\n  Hides.\n```\n",
    "other": "# Other\n\nIn English.\n",
}
SAID = {
    "# 1. One\n\n**The question.** Of what?": "# 1. 一\n\n**问题。** 关于什么？",
    "## 1.1 Sums\n\n**Figure 1.1.** A picture.": "## 1.1 和\n\n**图 1.1** 一张图。",
    "## Alone\n\nOne.": "## 独有\n\n一。",
    "## Plain\n\nSee [sums](#sec-1.1).": "## 平常\n\n见 [1.1 节](#sec-1.1)。",
    "mask\n掩码\n  Hides.": "掩码\nmask\n  遮住。",
    "axis\n轴\n  Is summed.": "轴\naxis\n  沿着它求和。",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A small book in Chinese, in no theme; it has no translation of its page "other"."""
    source = tmp_path_factory.mktemp("zh")
    for name, text in PAGES.items():
        (source / name).parent.mkdir(exist_ok=True)
        (source / f"{name}.md").write_text(text, encoding="utf-8")
        if name != "other":
            pieces = [
                Piece(p.kind, p.key, p.english, SAID.get(p.english, "")) for p in pieces_of(text)
            ]
            write(pieces, source / f"translations/{name}.md")
    (source / "r.bib").touch()
    settings = {
        "extensions": ["myst_nb", "sphinxcontrib.bibtex"]
        + [f"website.extensions.{name}" for name in ("chinese", "book_site")],
        "bibtex_bibfiles": ["r.bib"],
        "language": "zh_CN",
        "exclude_patterns": ["translations"],
        "html_theme": "basic",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extension, "FOLDER", source / "translations")
        patch.setattr(extension, "claims", lambda: {"a <b> is c_d": "甲 <b> 是 c_d"})
        patch.setattr(words, "_spoken", ["en"])  # and as it was, when all is built
        out, trees = str(source / "html"), str(source / "trees")
        Sphinx(source, None, out, trees, "html", settings, status=None, warning=None).build()
    pages = {name: (source / "html" / f"{name}.html").read_text("utf-8") for name in PAGES}
    return {name: lxml.html.document_fromstring(page) for name, page in pages.items()}


def test_sections_figures_and_links_keep_the_english_addresses(built):
    page = built["chapters/01_x"]
    assert [head.text for head in page.iter("h1", "h2")][:4] == ["1. 一", "1.1 和", "独有", "平常"]
    assert {"sec-1.1", "fig-1.1"} <= {*page.xpath("//@id")}
    assert "alone" in page.xpath("//*[h2[starts-with(., '独有')]]/descendant-or-self::*/@id")
    assert len(page.xpath("//@id")) == len({*page.xpath("//@id")})
    assert page.xpath("//a[contains(., '1.1 节')]/@href") == ["#sec-1.1"]
    assert page.xpath("//p[@class='book-question']")
    assert "Again." in page.text_content()  # a piece without Chinese


def test_a_link_in_a_list_says_the_claim_in_chinese(built):
    assert (
        built["chapters/02_y"].xpath("string(//div[@class='body']//li)").strip() == "甲 <b> 是 c_d"
    )


def test_a_glossary_is_in_the_order_of_pinyin(built):
    assert built["glossary"].xpath("//dt/@id") == [
        "term-掩码",
        "term-mask",
        "term-轴",
        "term-axis",
    ]


def test_a_page_without_chinese_says_so_and_is_english(built):
    assert built["other"].xpath("string(//p)") == "本页没有中文版，以下是英文。"
    assert built["other"].xpath("//div[@lang='en']")
    assert not built["glossary"].xpath("//div[@lang='en']")


def test_the_build_says_its_own_words(speaking):
    assert words.said("a <b> is c_d") == "甲 <b> 是 c_d"
    assert words.said("12 claims, each tested by code") == "12 条论断，条条由代码检验"
    assert words.said("nobody has said this") == "nobody has said this"
    assert words.alphabetical("值") > words.alphabetical("掩码")


def test_english_pages_link_to_the_chinese_once_these_are_there(tmp_path):
    link = '<p class="book-language"><a data-href="zh/a.html">中文</a></p>'
    for name in ("a", "b", "zh/a"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.html").write_text(link, encoding="utf-8")
    chinese.link(tmp_path)
    linked = [(tmp_path / f"{name}.html").read_text("utf-8") for name in ("a", "b")]
    assert linked == [link.replace("data-href", "href"), link]
