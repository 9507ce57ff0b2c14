"""The look at every page, with faults planted in a small site: each is found."""

import io
from contextlib import redirect_stdout

import pytest

from website.browser import browser_path
from website.checks import site_check
from website.checks.links import dead_links

HOME = "https://example.org/book/"
GOOD = """<main class="bd-article"><h1>Title</h1>
<p id="text">Text, <a href="b.html#place">a link with words</a>, <a href="{home}b.html">one</a>.</p>
<img src="a.svg" alt="A square."><span class="math"><math><mi>x</mi></math></span>
<details ontoggle="requestIdleCallback(() => (document.getElementById('late').tabIndex = 0))">
<summary>A proof</summary><p>It is short.</p></details>
<div class="book-translator"></div><div id="box" style="overflow: hidden"><p>In a box.</p></div>
<div class="pst-scrollable-table-container" id="late" tabindex="-1"
style="width: 90px; overflow: auto">
<p style="width: 300px">A formula that is measured late.</p></div>
<script>document.querySelector(".book-translator").innerHTML = "<section>Here.</section>"</script>
</main>"""
PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{name}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="a.svg">
<style>html {{ color: #000; background: #fff }} button {{ width: 40px; height: 40px }}</style>
</head><body>{body}</body></html>"""
SITE = {
    "_config.yml": f"html: {{baseurl: {HOME}}}",
    "index.html": '<meta http-equiv="Refresh" content="0; url=a.html">',
    "a.html": PAGE.format(name="a", body=GOOD.format(home=HOME)),
    "b.html": PAGE.format(
        name="b", body='<main class="bd-article"><h1>Other</h1><h2 id="place">Place</h2></main>'
    ),
    "a.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>',
    "sitemap.xml": f"<urlset><url><loc>{HOME}a.html</loc></url></urlset>",
}
END = "</main>"
WIDE = '<p style="width: 900px">wide</p>'
# What is changed in the good page, all at once, to get a bad one; what is said of it, and on how
# many of the three screens.
FAULTS = {
    "too little contrast": ("Text,", '<b style="color: #999">Text</b>', "color-contrast at b:", 2),
    "a picture without words": (' alt="A square."', "", "has no words for", 3),
    "a control without a name": (END, f'<button id="no"></button>{END}', "button-name at #no:", 2),
    "a formula that is not set": (END, f'<i class="math">x_1</i>{END}', "is not set: x_1", 3),
    "a formula in error": ("<mi>x</mi>", "<merror>y</merror>", "is not set: y", 3),
    "a page too wide": (END, f"{WIDE}{END}", "px wide on", 2),
    "words cut off": ("<p>In a box.", f"{WIDE}<p>", 'px off: <div id="box"', 2),
    "a missing file": ('src="a.svg"', 'src="z.svg"', "gets 404 for", 3),
    "an error": (END, f"{END}<script>throw Error('planted')</script>", "throws planted", 3),
    "an error in the console": (END, f"{END}<script>console.error('x')</script>", "error: x", 3),
    "another host": (
        END,
        f'<iframe src="http://y.invalid/"></iframe>{END}',
        "asks for http://y",
        3,
    ),
    "what never fills in": (
        *(".innerHTML =", ".dataset.stopped ="),
        *("never fills in: book-translator", 3),
    ),
    "what scrolls and cannot be reached": (
        *("document.getElementById('late').tabIndex = 0", "0"),
        *("scrollable-region-focusable at #late:", 2),
    ),
}
# Of many words that look the same, axe-core is shown one. Others that are to blame are found, too;
# # stands for a digit that makes each case's colours its own.
MANY = "<p><span>word</span> <span>word</span> <span>word</span></p>"
BAD = "<span ID>word</span>"
CONTRAST = {
    "one of many": f'{MANY}<p style="color: ~99999#">{BAD}</p>{MANY}',
    "dark on dark": f'{MANY}<p style="background: ~22222#">{BAD}</p>',
    "dimmed with what is around it": f'{MANY}<p style="opacity: 0.3#">{BAD}</p>',
    "letters that are not large": '<p style="color: ~88888#; font-size: 40px"><span>word</span></p>'
    f'<p style="color: ~88888#">{BAD}</p>',
    "by its place": '<p class="row"><span>word</span><span ID>word</span></p>',
    "another is covered": '<div><p style="color: ~99999#" class="lid"><span>word</span></p>'
    f'<p style="color: ~99999#" class="lid">{BAD}</p></div>',
}
STYLE = """<style>.row :last-child { color: #999994 }
.lid:first-child { position: relative }
.lid:first-child::before { content: ""; position: absolute; inset: 0; background: #fff }</style>"""


def changed(text, *changes):
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def cases():
    for n, (name, text) in enumerate(CONTRAST.items()):
        yield name, text.replace("ID", f'id="case-{n}"').replace("#", f"{n:x}").replace("~", "#")


def write(folder, site):
    for name, text in site.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    """Has the program look at a site; whether it is content, and what it says."""
    try:
        browser_path()
    except SystemExit as missing:
        pytest.skip(str(missing))

    def look(site):
        folder, said = write(tmp_path_factory.mktemp("site"), site), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(said):
            patch.setattr(site_check, "ROOT", folder)
            content = site_check.main(folder) == 0
        return content, said.getvalue().splitlines()

    return look


@pytest.fixture(scope="module")
def said(check):
    """What is said of two bad pages beside the good ones."""
    body = STYLE + "".join(text for _, text in cases())
    bad = {
        "bad.html": changed(SITE["a.html"], *((old, new) for old, new, *_ in FAULTS.values())),
        "contrast.html": changed(SITE["a.html"], (END, f"{body}{END}")),
    }
    return check(SITE | bad)


def test_a_good_site_has_no_fault(check):
    assert check(SITE) == (
        True,
        ["2 pages on 3 screens: no outside host, no error, no barrier."],
    )


def test_of_good_pages_beside_bad_ones_nothing_is_said(said):
    content, lines = said
    assert not content
    assert {line.split()[0] for line in lines} == {"bad.html", "contrast.html"}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_on_each_screen_that_shows_it(said, fault):
    *_, words, n_screens = FAULTS[fault]
    found = [line for line in said[1] if line.startswith("bad.html (") and words in line]
    assert len(found) == n_screens, said[1]


@pytest.mark.parametrize(("n", "case"), list(enumerate(CONTRAST)))
def test_too_little_contrast_is_found_among_words_that_look_the_same(said, n, case):
    found = [line for line in said[1] if f"breaks color-contrast at #case-{n}:" in line]
    assert len(found) == 2, [line for line in said[1] if line.startswith("contrast")]


@pytest.mark.parametrize(
    ("file", "old", "new", "complaint"),
    [
        ("a.html", "b.html#place", "c.html", "a.html links to c.html, which is not there"),
        ("a.html", "#place", "#else", "a.html links to b.html#else, and b.html has no such place"),
        ("a.html", '"b.html#place', '"../b.html', "a.html links to ../b.html, which leads out of"),
        ("a.html", '"b.html#place', '"/b.html', "a.html links to /b.html, which leads out of"),
        ("a.html", "<h1>", '<h1 id="x"><b id="x"></b>', "a.html has two places #x"),
        ("a.html", f"{HOME}b", f"{HOME}c", f"a.html links to {HOME}c.html, which is not there"),
        ("a.html", "<head>", f"<head><meta property='og:image' content='{HOME}c'>", "not there"),
        ("index.html", "a.html", "c.html", "index.html links to c.html, which is not there"),
        ("sitemap.xml", "a.html", "c.html", f"sitemap.xml links to {HOME}c.html, which is not"),
        ("a.svg", "<svg", "<SVG", None),
    ],
)
def test_a_dead_link_is_found(tmp_path, file, old, new, complaint):
    write(tmp_path, SITE | {file: changed(SITE[file], (old, new))})
    found = dead_links(tmp_path, HOME)
    assert len(found) == (complaint is not None)
    assert all(complaint in line for line in found), found


def test_an_edition_beside_the_pages_has_to_be_linked(tmp_path):
    write(tmp_path, SITE | {"book.pdf": "x"})
    assert dead_links(tmp_path, HOME) == ["no page links to book.pdf"]
    write(tmp_path, {"b.html": changed(SITE["b.html"], (END, f'<a href="book.pdf">PDF</a>{END}'))})
    assert dead_links(tmp_path, HOME) == []
