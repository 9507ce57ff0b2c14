"""How the site gets the translator: on the pages that ask for it, and on no other."""

import json
import re
import subprocess
import sys

import pytest

from _ext.page_parts import FROM_A_FILE, IMPORTED, PARTS, SHARED, preloads
from _ext.translator_files import STORED, english_grammar, translator_words
from tools.chapters import ROOT
from tools.site_check import serve
from transformer.data.grammar.vocabularies import SOURCE_WORDS, TARGET_WORDS
from transformer.data.tokens import SPECIALS

SETTINGS = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "_ext")!r}]
extensions = ["page_parts"]
html_theme = "basic"
"""
ELEMENTS = ROOT / "transformer" / "book" / "explorer" / SHARED
WITH = """With
====

.. raw:: html

   <div class="book-translator" data-size="small"><p>Here runs the translator.</p></div>
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    source = tmp_path_factory.mktemp("book")
    (source / "_site").symlink_to(ROOT / "_site")
    (source / "conf.py").write_text(SETTINGS, encoding="utf-8")
    (source / "index.rst").write_text("Without\n=======\n\n.. toctree::\n\n   with\n")
    (source / "with.rst").write_text(WITH)
    return source


def built(source, builder):
    out = source / builder
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", builder, source, out]
    subprocess.run(command, check=True)
    return out


@pytest.fixture(scope="module")
def site(source):
    return built(source, "html")


def test_the_part_is_on_the_page_that_asks_for_it_and_on_no_other(site):
    page = (site / "with.html").read_text(encoding="utf-8")
    assert 'import { whenNear } from "./_static/when_near.js"' in page
    assert 'whenNear(".book-translator", "translator/view.js", ["elements.js", ' in page
    assert re.search(r'<link [^>]*href="_static/translator/translator.css\?v=\w+"', page)
    assert f"_static/{FROM_A_FILE}" in page
    other = (site / "index.html").read_text(encoding="utf-8")
    assert "translator/" not in other
    assert FROM_A_FILE not in other
    assert "when_near" not in other


def test_the_browser_is_told_of_each_module_at_once(browser, site):
    server, base = serve(site)
    page, asked = browser.new_page(), []
    page.on("request", lambda r: asked.append(r.url.removeprefix(f"{base}_static/")))
    page.goto(f"{base}with.html")
    page.locator(".translator").wait_for()
    told = page.locator("link[rel=modulepreload]").evaluate_all("all => all.map((e) => e.href)")
    told = [url.removeprefix(f"{base}_static/") for url in told]
    loaded = [
        url for url in asked if url.endswith(".js") and url.startswith(("translator/", SHARED))
    ]
    assert sorted([*told, "translator/view.js"]) == sorted(loaded)
    assert SHARED in told
    page.close()
    server.shutdown()
    server.server_close()


def test_a_part_that_is_far_away_is_not_fetched_until_the_reader_comes_near(browser, site):
    far = "<div style='height: 9000px'></div>"
    page_with_room = (
        (site / "with.html").read_text(encoding="utf-8").replace("<body>", f"<body>{far}")
    )
    (site / "far.html").write_text(page_with_room, encoding="utf-8")
    server, base = serve(site)
    page, asked = browser.new_page(), []
    page.on("request", lambda r: asked.append(r.url))
    page.goto(f"{base}far.html", wait_until="networkidle")
    assert not [url for url in asked if "translator/" in url and url.endswith(".js")]
    page.locator(".book-translator").scroll_into_view_if_needed()
    page.locator(".translator").wait_for()
    assert [url for url in asked if url.endswith("translator/view.js")]
    page.close()
    server.shutdown()
    server.server_close()


def test_a_part_that_does_not_come_says_so(browser, site):
    server, base = serve(site)
    page = browser.new_page()
    page.route("**/view.js", lambda route: route.abort())
    page.goto(f"{base}with.html", wait_until="networkidle")
    said = page.locator(".book-translator").inner_text()
    assert said.startswith("Here runs the translator.")
    assert said.endswith("could not be fetched; load the page again to try anew.")
    page.close()
    server.shutdown()
    server.server_close()


def test_a_figure_brings_its_own_modules_and_no_other_ones(site):
    part, static = PARTS["book-living"], site / "_static"
    told = preloads(part, '<div class="book-living" data-figure="clocks">', static)
    names = ("clocks", "drawing", "living", "numbers", "turns")
    assert sorted(told) == sorted([SHARED, *(f"living/{name}.js" for name in names)])
    assert preloads(part, "", static) == []


def test_no_module_imports_what_the_site_has_not(site):
    scripts = [
        path for part in PARTS.values() for path in (site / "_static" / part.folder).glob("*.js")
    ]
    assert len(scripts) > 20
    missing = [
        (script.name, name)
        for script in scripts
        for name in IMPORTED.findall(script.read_text(encoding="utf-8"))
        if not (script.parent / name).is_file()
    ]
    assert missing == []


def test_the_weights_are_those_of_the_package_to_the_byte(site):
    stored = site / "_static" / "translator" / "weights.safetensors"
    assert stored.read_bytes() == STORED.read_bytes()
    assert stored.stat().st_size < 1_000_000


def test_the_words_are_those_of_the_package_in_the_order_of_their_ids(site):
    module = (site / "_static" / "translator" / "words.js").read_text(encoding="utf-8")
    words = json.loads(module.split("export default ")[1].rstrip(";\n"))
    assert words == json.loads(json.dumps(translator_words()))
    assert words["english"] == [*SPECIALS, *SOURCE_WORDS]
    assert words["french"] == [*SPECIALS, *TARGET_WORDS]
    assert all(set(line.split()) <= set(SOURCE_WORDS) for line in words["examples"])
    assert "+" not in json.dumps(english_grammar())


def test_other_editions_keep_what_stands_inside(source):
    page = (built(source, "singlehtml") / "index.html").read_text(encoding="utf-8")
    assert "<p>Here runs the translator.</p>" in page
    assert "translator/" not in page
    assert FROM_A_FILE not in page


def test_a_page_that_is_opened_as_a_file_says_why_nothing_runs(browser, site):
    page = browser.new_page()
    page.goto((site / "with.html").as_uri())
    said = page.locator(".book-translator").inner_text()
    assert said.startswith("Here runs the translator.")
    assert said.endswith("serve the site with make serve instead.")
    page.close()


def test_the_script_for_pages_opened_as_files_knows_every_part():
    script = (ROOT / "_site" / FROM_A_FILE).read_text(encoding="utf-8")
    assert all(f".{name}" in script for name in PARTS)


@pytest.mark.parametrize(
    "path",
    [*sorted((ROOT / "_site" / "translator").glob("*.js")), ELEMENTS],
    ids=lambda path: path.name,
)
def test_no_module_is_longer_than_250_lines_or_names_another_host(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 250
    assert "//" not in re.sub(r"^\s*//.*|(?<=[;,{}\])]) // .*|/\*\*.*", "", text, flags=re.M)
