"""How the site gets the translator: on the pages that ask for it, and on no other."""

import json
import re
import subprocess
import sys

import pytest

from tools.chapters import ROOT
from transformer.data.grammar.vocabularies import SOURCE_WORDS, TARGET_WORDS
from transformer.data.tokens import SPECIALS
from transformer_book.drawings.colours import style_sheet
from transformer_book.experiments.translator.data import MAX_LEN
from website.extensions.page_parts import (
    ELEMENTS,
    FOLDER,
    FROM_A_FILE,
    IMPORTED,
    PARTS,
    SHARED,
    SITE,
    preloads,
)
from website.extensions.translator_files import EXAMPLES, STORED, translator_words
from website.hosting import serve

SETTINGS = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
extensions = ["website.extensions.page_parts"]
html_theme = "basic"
templates_path = ["_templates"]
"""
COMMON = {ELEMENTS, *SHARED}
# As much of the book's theme as a part needs.
SCHEME = (ROOT / "website/theme/scheme.js").read_text(encoding="utf-8")
LAYOUT = f"""{{% extends "!layout.html" %}}{{% block extrahead %}}
<script>{{% raw %}}{SCHEME}{{% endraw %}}</script>
{{% for room in rooms %}}<style>{{{{ room }}}}</style>{{% endfor %}}{{% endblock %}}"""
WITH = """With
====

.. raw:: html

   <div class="book-translator" data-size="small"><p>Here runs the translator.</p></div>
"""


BUILD = """
import sys
from sphinx.cmd.build import build_main
source, *builders = sys.argv[1:]
for name in builders:
    if build_main(["-q", "-W", "-b", name, source, f"{source}/{name}"]):
        sys.exit(f"{name} fails")
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A site of two pages and the same as one page, by one process: folders by builder."""
    source = tmp_path_factory.mktemp("book")
    (source / "conf.py").write_text(SETTINGS, encoding="utf-8")
    (source / "_templates").mkdir()
    (source / "_templates" / "layout.html").write_text(LAYOUT)
    (source / "index.rst").write_text("Without\n=======\n\n.. toctree::\n\n   with\n")
    (source / "with.rst").write_text(WITH)
    builders = ("html", "singlehtml")
    subprocess.run([sys.executable, "-c", BUILD, source, *builders], check=True)
    return {name: source / name for name in builders}


@pytest.fixture(scope="module")
def site(built):
    return built["html"]


@pytest.fixture(scope="module")
def parts(site):
    (folder,) = (site / "_static").glob(f"{FOLDER}*")
    return folder


@pytest.fixture(scope="module")
def base(site):
    server, base = serve(site)
    yield base
    server.shutdown()
    server.server_close()


@pytest.fixture
def page(browser):
    page = browser.new_page()
    page.set_default_timeout(5000)
    yield page
    page.close()


def test_the_part_is_on_the_page_that_asks_for_it_and_on_no_other(site, parts):
    page = (site / "with.html").read_text(encoding="utf-8")
    assert f'import {{ whenNear }} from "./_static/{parts.name}/when_near.js"' in page
    assert 'whenNear(".book-translator", "translator/view.js", ["beams_kept.js", ' in page
    assert f'href="_static/{parts.name}/translator/translator.css?v=' in page
    head = page[: page.index("</head>")]
    assert (ROOT / "website/parts/translator/room.css").read_text(encoding="utf-8") in head
    assert f"_static/{parts.name}/{FROM_A_FILE}" in page
    sheet = (parts / "translator" / "translator.css").read_text(encoding="utf-8")
    assert sheet.startswith(style_sheet(".translator", 'html[data-theme="dark"] .translator'))
    other = (site / "index.html").read_text(encoding="utf-8")
    assert "translator/" not in other
    assert FROM_A_FILE not in other
    assert "when_near" not in other


def test_the_browser_is_told_of_each_module_at_once(page, base, parts):
    asked, place = [], f"{base}_static/{parts.name}/"
    page.on("request", lambda r: asked.append(r.url.removeprefix(place)))
    page.goto(f"{base}with.html")
    page.locator(".translator").wait_for()
    told = page.locator("link[rel=modulepreload]").evaluate_all("all => all.map((e) => e.href)")
    told = [url.removeprefix(place) for url in told]
    ours = ("translator/", *COMMON)
    loaded = [url for url in asked if url.endswith(".js") and url.startswith(ours)]
    assert sorted([*told, "translator/view.js"]) == sorted(loaded)
    assert set(told) >= COMMON


# Observers are called in the order in which they were made: when this one is, the page's has been.
SEEN = """() => new Promise((done) => new IntersectionObserver(done, { rootMargin: "600px" })
    .observe(document.querySelector(".book-translator")))"""


def test_a_part_that_is_far_away_is_not_fetched_until_the_reader_comes_near(page, site, base):
    far = "<div style='height: 9000px'></div>"
    page_with_room = (
        (site / "with.html").read_text(encoding="utf-8").replace("<body>", f"<body>{far}")
    )
    (site / "far.html").write_text(page_with_room, encoding="utf-8")
    asked = []
    page.on("request", lambda r: asked.append(r.url))
    with page.expect_request("**/when_near.js"):  # though this first screen has nothing to paint
        page.goto(f"{base}far.html")
    page.wait_for_load_state("networkidle")
    page.evaluate(SEEN)
    assert not [url for url in asked if "translator/" in url and url.endswith(".js")]
    page.locator(".book-translator").scroll_into_view_if_needed()
    page.locator(".translator").wait_for()
    assert [url for url in asked if url.endswith("translator/view.js")]


def test_a_part_that_does_not_come_says_so(page, base):
    page.route("**/view.js", lambda route: route.abort())
    page.goto(f"{base}with.html")
    page.get_by_text("This part could not be fetched").wait_for()
    said = page.locator(".book-translator").inner_text()  # what is not seen is not in it
    assert said.startswith("Here runs the translator.")
    assert said.endswith("could not be fetched; load the page again to try anew.")


def test_a_figure_brings_its_own_modules_and_no_other_ones(parts):
    part, static = PARTS["book-living"], parts
    told = preloads(part, '<div class="book-living" data-figure="clocks">', static)
    names = ("clocks", "drawing", "living", "turns")
    own = {f"living/{name}.js" for name in names}
    assert sorted(told) == sorted({ELEMENTS, "numbers.js"} | own)
    assert preloads(part, "", static) == []


def test_no_module_imports_what_the_site_has_not(parts):
    scripts = [path for part in PARTS.values() for path in (parts / part.folder).glob("*.js")]
    assert len(scripts) > 20
    missing = [
        (script.name, name)
        for script in scripts
        for name in IMPORTED.findall(script.read_text(encoding="utf-8"))
        if not (script.parent / name).is_file()
    ]
    assert missing == []


def test_the_weights_are_those_of_the_package_to_the_byte(parts):
    stored = parts / "translator" / "weights.safetensors"
    assert stored.read_bytes() == STORED.read_bytes()
    assert stored.stat().st_size < 1_000_000


def test_the_words_are_those_of_the_package_in_the_order_of_their_ids(parts):
    module = (parts / "translator" / "words.js").read_text(encoding="utf-8")
    words = json.loads(module.split("export default ")[1].rstrip(";\n"))
    assert words["grammar"] == json.loads(json.dumps(translator_words()["grammar"]))
    assert words["ids"] == dict(zip(("pad", "bos", "eos", "unk"), range(4), strict=True))
    assert (words["maxLen"], words["examples"]) == (MAX_LEN, list(EXAMPLES))
    assert abs(1000 * words["kilobytes"] - STORED.stat().st_size) <= 500
    assert words["english"] == [*SPECIALS, *SOURCE_WORDS]
    assert words["french"] == [*SPECIALS, *TARGET_WORDS]
    assert all(set(line.split()) <= set(SOURCE_WORDS) for line in words["examples"])
    assert set().union(*words["grammar"]["words"].values()) == set(SOURCE_WORDS)


def test_other_editions_keep_what_stands_inside(built):
    page = (built["singlehtml"] / "index.html").read_text(encoding="utf-8")
    assert "<p>Here runs the translator.</p>" in page
    assert "translator/" not in page
    assert FROM_A_FILE not in page


def test_a_page_that_is_opened_as_a_file_says_why_nothing_runs(page, site):
    page.goto((site / "with.html").as_uri())
    said = page.locator(".book-translator").inner_text()  # what is not seen is not in it
    assert said.startswith("Here runs the translator.")
    assert said.endswith("serve the site with make serve instead.")


def test_the_script_for_pages_opened_as_files_knows_every_part():
    script = (SITE / FROM_A_FILE).read_text(encoding="utf-8")
    assert all(f".{name}" in script for name in PARTS)


@pytest.mark.parametrize(
    "path",
    [
        *sorted((SITE / "translator").glob("*.js")),
        *(SITE / name for name in SHARED),
        ROOT / "transformer_book" / "explorer" / ELEMENTS,
    ],
    ids=lambda path: path.name,
)
def test_no_module_is_longer_than_250_lines_or_names_another_host(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 250
    assert "//" not in re.sub(r"^\s*//.*|(?<=[;,{}\])]) // .*|/\*\*.*", "", text, flags=re.M)
