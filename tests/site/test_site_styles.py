"""The one style sheet and the one script: what no page can use goes, and nothing else."""

import re

import lxml.html
import pytest
import tinycss2
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from tools.chapters import ROOT
from website.extensions.bundles import IN_TURN, SCRIPTS, SHEETS, all_pages, join_scripts
from website.extensions.lean_styles import Pages, lean
from website.extensions.lean_values import without_unasked
from website.extensions.theme import NAME

PAGE = """<html data-theme="light"><body><main id="place"><p class="used one">a
<a href="x.html">b</a> <em>c</em></p><ul class="list"><li>d</li></ul>
<input type="search"></main></body></html>"""
SCRIPT = """p.classList.add("given"); box.append(make("dl", "")); p.dataset.state = p.dataset.theme;
document.querySelector(".sought").innerHTML = `<dt class="${x}">`;"""


def with_page(css, page=PAGE, script=SCRIPT):
    pages = Pages(css)
    pages.add_page(lxml.html.document_fromstring(page), page)
    pages.add_script(script)
    pages.names |= pages.given
    return pages


def leaned(css, ours=False, page=PAGE):
    rules = tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True)
    return lean(rules, with_page(css, page), ours)


def test_a_rule_that_no_page_uses_goes_and_one_that_a_page_uses_stays():
    css = ".used, .unused > p { color: red } .unused { x: y } p:not(.unused) { a: b }"
    css += " #place { x: z } #gone { x: z }"
    left = leaned(css)
    assert left.split("\n") == [".used{color: red}", "p:not(.unused){a: b}", "#place{x: z}"]


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param("main > p.used.one a[href^=http]:visited::before", id="a place, in any state"),
        pytest.param("ul.list ~ .used, em + a, li:nth-child(7)", id="siblings in any order"),
        pytest.param('[data-state="off"] .used, main[data-state] li', id="what a script changes"),
        pytest.param("main .given > a, .list dl li, em > dt", id="what a script makes"),
        pytest.param("input[type=search]::placeholder, #place li", id="an attribute, an id"),
        pytest.param(":root, *, ::selection, html[data-theme=light]", id="what is on each page"),
    ],
)
def test_a_selector_stays_if_it_can_select(selector):
    assert leaned(f"{selector} {{ a: b }}", ours=True)  # ours: not one of them goes


@pytest.mark.parametrize(
    "selector",
    [
        "main > a",
        "li p",
        ".used.list",
        "h4",
        "p#place",
        "[data-bs-theme=dark]",
        "input[type=range]",
        ".sought",  # a script looks for it, and gives it to nothing
        ".given h4",
        "#gone.given",
        ".list + h4",
        "ul ~ p > li",
    ],
)
def test_a_selector_goes_if_nothing_is_there_to_select(selector):
    assert leaned(f"{selector}, em {{ a: b }}") == "em{a: b}"
    with pytest.raises(ExtensionError, match="of a style sheet of ours"):
        leaned(f"{selector}, em {{ a: b }}", ours=True)


def test_rules_inside_of_media_go_too():
    assert leaned("@media print { .gone { a: b } }") == ""
    assert ".used{a: b}" in leaned("@media print { .used { a: b } }")


def test_parts_of_fields_that_the_book_has_not_go():
    for part in ("file-selector-button", "-webkit-date-and-time-value", "-webkit-color-swatch"):
        css = f"em::{part} {{ a: b }} em::placeholder {{ a: b }}"
        assert leaned(css) == "em::placeholder{a: b}"


def test_the_text_s_fonts_come_with_a_server_s_first_answer():
    """Which is ten packets of 1,460 bytes; the head of the answer has some of them."""
    for font in (ROOT / "website" / "static" / "fonts").glob("serif*.woff2"):
        assert font.stat().st_size < 14_200, font.name


def test_the_icon_font_goes_and_our_icons_stay():
    page = '<p class="fa-bars">'
    css = '@font-face { font-family: Font Awesome\\ 6 Free; src: url("x") } .fa-bars { --icon: x }'
    assert leaned(css, page=page) == ""
    assert ".fa-bars{--icon: x}" in leaned(css, ours=True, page=page)


def test_a_style_sheet_that_cannot_be_read_stops_the_build():
    with pytest.raises(ExtensionError, match="cannot be read"):
        leaned("p { color: red } }")


def test_a_rule_of_ours_that_no_page_uses_stops_the_build():
    assert leaned(".used, p { a: b }", ours=True) == ".used,p{a: b}"
    with pytest.raises(ExtensionError, match=r"no page has \.gone of a style sheet of ours"):
        leaned("@media print { .used, .gone { a: b } }", ours=True)


def test_paper_is_light_whatever_the_screen_is(browser):
    css = 'html[data-theme="light"] p { color: rgb(1, 1, 1) }'
    css += 'html[data-theme="dark"] p { color: rgb(9, 9, 9) }'
    page = browser.new_page()
    colours = {}
    for scheme in ("dark", "light", "auto"):
        page.set_content(f'<html data-theme="{scheme}"><style>{leaned(css)}</style><p>a</p></html>')
        for medium in ("screen", "print"):
            page.emulate_media(media=medium)
            found = page.evaluate("getComputedStyle(document.querySelector('p')).color")
            colours[scheme, medium] = found
    page.close()
    dark = colours.pop(("dark", "screen"))
    assert dark == "rgb(9, 9, 9)"
    assert set(colours.values()) == {"rgb(1, 1, 1)"}  # without JavaScript it stays auto


def test_a_value_that_nothing_asks_for_goes():
    css = ":root{--a:1px;--b:var(--a);--c:2;--d:var(--e);--e:3} p{width:var(--b);margin:0}"
    css += "@media print{:root{--a:2px;--gone:1}} .x{--gone:2} @font-face{src:url(x;y)}"
    left = without_unasked(css, {"--c"})
    assert left.split("\n") == [
        ":root{--a:1px;--b:var(--a);--c:2}",
        "p{width:var(--b);margin:0}",
        "@media print{:root{--a:2px}}",
        "@font-face{src:url(x;y)}",
    ]


def test_a_motion_that_no_animation_names_goes():
    css = ".a{animation:x 1s,z-2 1s}@keyframes x{to{a:b}}@keyframes z{to{a:b}}@keyframes z-2{}"
    assert re.findall("@keyframes ([^{]+)", without_unasked(css, set())) == ["x", "z-2"]


def test_no_rule_is_about_whatever_comes_after_something():
    assert leaned("p + * { a: b } p ~ :first-child { a: b }") == ""
    assert leaned("p ~ p.used { a: b } p + ::before { c: d }").count("{") == 2
    with pytest.raises(ExtensionError, match=r"p \+ \* is about whatever comes after something"):
        leaned("p + * { a: b }", ours=True)


def test_what_scripts_say_and_no_page_gets_has_no_rule_and_a_page_that_has_it_stops_the_build():
    pages = Pages("")
    pages.add_script("element.classList.add('tooltip', 'shown', 'ab')")
    assert pages.given >= {"shown"}
    assert not pages.given & {"tooltip", "ab"}
    with pytest.raises(ExtensionError, match="NEVER has tooltip, and so has a page"):
        pages.add_page(lxml.html.fromstring('<p class="a tooltip">'), "")
    assert leaned("html:not([data-theme]) p { a: b }") == ""  # each page has one


def test_the_names_on_all_pages_are_known_but_not_those_of_the_themes_templates(tmp_path):
    static = tmp_path / "_static"
    for name in (*SCRIPTS, *IN_TURN, "search.js"):
        path = static / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"x.classList.add('from-{path.stem}')")
    (tmp_path / "a.html").write_text("<p class='one two' id=three>class='text'")
    (static / "macros.html").write_text("<p class='template'>")
    (static / "parts-1" / "living").mkdir(parents=True)
    (static / "parts-1" / "living" / "mask.js").write_text("make('dl', 'from-mask') + '--line'")
    pages = all_pages(tmp_path, static, "")
    assert {"one", "two", "three", "from-doctools", "from-place", "from-search"} <= pages.names
    assert not {"text", "template"} & pages.names
    assert "from-mask" not in pages.names  # which has a style sheet of its own
    assert "dl" in pages.made
    assert "--line" in pages.asked


class Everything:
    """For a style sheet of which nothing goes."""

    def __contains__(self, name):
        return True


INDEX = """# A

Text, *more* and `code`.

```{note}
A note with [a link](one.md).
```

| a | b |
|---|---|
| 1 | 2 |

- one
- two

> Said.

```python
print("x")
```

```{toctree}
one
```
"""
SHOWN = """css => {
  document.querySelector("style.tried")?.remove();
  const style = Object.assign(document.createElement("style"), { className: "tried" });
  style.textContent = css;
  document.head.append(style);
  const all = [...document.querySelectorAll("html, body, body *")];
  const names = [...getComputedStyle(document.body)].filter((name) => !name.startsWith("--"));
  return all.flatMap((element) => ["", "::before", "::after"].map((part) => {
    const style = getComputedStyle(element, part || null);
    const looks = names.map((name) => style.getPropertyValue(name)).join();
    return `${element.tagName}.${element.className}${part} ${looks}`;
  }));
}"""
# As readers and scripts change a page: a menu that is open, a copied cell, a sidebar that is shut.
CHANGED = """() => {
  for (const menu of document.querySelectorAll("details.dropdown")) menu.open = true;
  for (const block of document.querySelectorAll("div.highlight"))
    block.insertAdjacentHTML("beforeend", '<button class="copybtn success">Copy</button>');
  document.getElementById("pst-primary-sidebar").classList.add("pst-sidebar-hidden");
  document.body.classList.add("scrolled");
}"""


@pytest.fixture(scope="module")
def small_site(tmp_path_factory):
    """A small book in the book's theme."""
    source = tmp_path_factory.mktemp("styled")
    (source / "index.md").write_text(INDEX)
    (source / "one.md").write_text("# One\n\n## Two\n\nText.\n\n### Three\n\n1. a\n2. b")
    names = ("myst_nb", "sphinx_copybutton", "sphinx_design", "sphinx_book_theme")
    settings = {
        "extensions": [*names, "website.extensions.visitors", "website.extensions.theme"],
        "html_theme": NAME,
        "html_logo": str(ROOT / "website" / "static" / "logo.svg"),
        "html_context": {"rooms": []},
        "html_static_path": [str(ROOT / "website" / "static")],
        "html_theme_options": {"use_download_button": True},
        "nb_execution_mode": "off",
    }
    out = source / "_build"
    Sphinx(source, None, out, out / "doctrees", "html", settings, status=None).build()
    return out


@pytest.fixture(scope="module")
def sheets(small_site):
    """What of all style sheets the site is given, and all of them."""
    static = small_site / "_static"
    texts = [(static / name).read_text(encoding="utf-8") for name in SHEETS]
    pages = all_pages(small_site, static, "".join(texts))
    every = Pages("")
    every.names, every.use = Everything(), lambda selector: True
    made = []
    for some in (pages, every):
        parsed = (tinycss2.parse_stylesheet(t, skip_comments=True) for t in texts)
        rules = ([rule for rule in sheet if rule.type != "whitespace"] for sheet in parsed)
        made.append("\n".join(lean(sheet, some, ours=False) for sheet in rules))
    return without_unasked(made[0], pages.asked), made[1]


def test_a_page_looks_the_same_without_what_is_left_out(small_site, sheets, browser):
    left, every = sheets
    assert len(left) < len(every) / 3
    page = browser.new_page(reduced_motion="reduce")
    for name in ("index", "search"):
        page.goto((small_site / f"{name}.html").as_uri())
        page.wait_for_selector(".book-late", state="detached")  # or more comes in between
        for n, (width, scheme, medium) in enumerate(
            ((1280, "light", "screen"), (390, "dark", "screen"), (800, "dark", "print"))
        ):
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(media=medium)
            page.evaluate("scheme => { document.documentElement.dataset.theme = scheme }", scheme)
            if n == 1:
                page.evaluate(CHANGED)
            with_all, with_less = (page.evaluate(SHOWN, css) for css in (every, left))
            assert with_less == with_all
    page.close()


def test_a_menu_opens_without_a_script_and_shuts_with_one(small_site, sheets, browser):
    page, thrown = browser.new_page(viewport={"width": 1280, "height": 800}), []
    page.on("pageerror", lambda error: thrown.append(error))
    page.set_default_timeout(5000)
    page.goto((small_site / "index.html").as_uri())
    page.add_style_tag(content=sheets[0])
    menu = page.locator(".dropdown-download-buttons")
    button, inside = menu.locator("summary"), menu.locator(".dropdown-menu")
    button.click()
    inside.wait_for()
    left, right = (part.bounding_box() for part in (inside, button))
    assert left["x"] + left["width"] <= 1280
    assert left["y"] >= right["y"] + right["height"] - 1
    button.click()
    inside.wait_for(state="hidden")
    menus = (ROOT / "website" / "static" / "menus.js").read_text(encoding="utf-8")
    page.add_script_tag(content=menus)
    for leave in (
        lambda: page.keyboard.press("Escape"),
        lambda: page.mouse.click(640, 700),
        lambda: page.locator(".theme-switch-button").focus(),
    ):
        button.click()
        inside.wait_for()
        leave()
        inside.wait_for(state="hidden")
    page.close()
    assert thrown == []


def test_the_scripts_that_ask_how_the_page_looks_run_in_tasks_of_their_own(small_site, browser):
    page = browser.new_page()
    page.goto((small_site / "one.html").as_uri())
    run = "script => { (0, eval)(script); return typeof bookTabStops; }"
    assert page.evaluate(run, join_scripts(small_site / "_static")) == "undefined"
    page.wait_for_function("typeof bookTabStops === 'function'")
    page.close()


def test_the_contents_have_one_mark_that_of_what_is_read(small_site, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((small_site / "one.html").as_uri())
    page.add_style_tag(content="article :is(p, ol) { padding-bottom: 2000px }")
    page.add_script_tag(content=join_scripts(small_site / "_static"))
    links = "[...document.querySelectorAll('#pst-page-toc-nav a')]"
    marked = f"{links}.filter((a) => a.ariaCurrent || a.matches('.active')).map((a) => a.hash)"
    page.evaluate("document.getElementById('two').scrollIntoView()")
    page.wait_for_function(f"{marked}.length")
    for name in ("two", "three", "two"):
        # into the middle of it, where its heading is out of sight
        page.evaluate("name => scrollTo(0, document.getElementById(name).offsetTop + 900)", name)
        page.wait_for_function(f"{links}.find((a) => a.ariaCurrent)?.hash === '#{name}'")
        page.wait_for_timeout(100)
        assert page.evaluate(marked) == [f"#{name}"]
    page.close()
