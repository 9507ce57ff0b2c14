"""The look at every page, with faults planted in a small site: each is found."""

import pytest

from tools import site_check
from tools.site_links import dead_links

GOOD = {
    "index.html": """<main class="bd-article"><h1>Title</h1><p>Text, <a href="b.html#place">a link
        with words</a>.</p><img src="a.svg" alt="A square."></main>""",
    "b.html": '<main class="bd-article"><h1>Other</h1><h2 id="place">Place</h2></main>',
    "a.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>',
}
PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{name}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="a.svg">
</head><body>{body}</body></html>"""
FAULTS = {
    "too little contrast": ("<p>", '<p style="color: #999; background: #fff">', "color-contrast"),
    "a dead link": ("b.html#place", "c.html", "links to c.html, which is not there"),
    "a link to no place": ("#place", "#elsewhere", "b.html has no such place"),
    "a picture without words": (' alt="A square."', "", "has no words for"),
    "a place twice": ("<h1>", '<h1 id="a"><b id="a"></b>', "has two places #a"),
    "a control without a name": ("</main>", "<button></button></main>", "breaks button-name"),
    "a formula that is not set": ("</main>", '<span class="math">x_1</span></main>', "is not set"),
    "too wide": ("<p>", '<p style="width: 2000px">', "px wide on"),
    "a missing file": ("a.svg", "z.svg", "gets 404"),
    "an error": ("</main>", "</main><script>throw Error('x')</script>", "throws"),
    "another host": ("a.svg", "http://host.invalid/a.svg", "asks for http://host.invalid/a.svg"),
}


@pytest.fixture
def looked_at(tmp_path, browser):
    """What the check says of a site with one change."""

    def look(old="", new=""):
        for name, body in GOOD.items():
            text = body.replace(old, new) if old and name == "index.html" else body
            if name.endswith(".html"):
                text = PAGE.format(name=name, body=text)
            (tmp_path / name).write_text(text, encoding="utf-8")
        server, base = site_check.serve(tmp_path)
        try:
            pages = ["b.html", "index.html"]
            return dead_links(tmp_path) + site_check.look_at_all(browser, pages, base)
        finally:
            server.shutdown()
            server.server_close()

    return look


def test_a_good_site_has_no_fault(looked_at, monkeypatch):
    monkeypatch.setattr(site_check, "KNOWN", {})
    assert looked_at() == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(looked_at, monkeypatch, fault):
    monkeypatch.setattr(site_check, "KNOWN", {})
    old, new, said = FAULTS[fault]
    found = looked_at(old, new)
    assert any(said in complaint for complaint in found), found


def test_what_is_known_is_excused_and_what_is_no_longer_found_has_to_go(looked_at, monkeypatch):
    known = {("button-name", "button"): "a reason", ("region", "#gone"): "an old reason"}
    monkeypatch.setattr(site_check, "KNOWN", known)
    found = looked_at("</main>", "<button></button></main>")
    assert found == ["KNOWN lists ('region', '#gone'), which no page has"]
