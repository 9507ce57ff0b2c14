"""What leads to the repository or to the site's address is there once ``_config.yml`` names it."""

import re

import lxml.html
import nbformat
import pytest
from sphinx.application import Sphinx

from website import ROOT

LOST = ROOT / "website" / "templates" / "404.html"
REPOSITORY, SITE = "https://github.com/anna/a-book", "https://anna.example/book/"
SAID = """# A

Words.<span class="book-repository"> A `rocket` is [above](#a).</span> More.

<span class="book-repository">A clone.</span>
"""
COLAB = "https://colab.research.google.com/github/anna/a-book/blob/main/"


def built(folder, url, baseurl):
    """What the page of a notebook links to, in a book with these addresses; and its folder."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(SAID)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "", "language": "python"}
    nbformat.write(notebook, folder / "index.ipynb")
    settings = {
        "extensions": [
            *("myst_nb", "sphinx_book_theme", "sphinxext.opengraph", "sphinx_sitemap"),
            "website.extensions.addresses",
        ],
        "nb_execution_mode": "off",
        "myst_heading_anchors": 1,
        "html_theme": "sphinx_book_theme",
        "html_baseurl": baseurl,
        "ogp_image": "_static/card.png",
        "ogp_social_cards": {"enable": False},
        "html_theme_options": {
            "repository_url": url,
            "repository_branch": "main",
            "use_repository_button": True,
            "use_issues_button": True,
            "launch_buttons": {"colab_url": "https://colab.research.google.com"},
        },
    }
    out = folder / "out"
    Sphinx(folder, None, out, out / "doctrees", "html", settings, status=None).build()
    page = (out / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'(?:href|content|url)="(https?://[^"]+)"', page)
    paragraphs = lxml.html.fromstring(page).xpath("//article//p")
    said = [" ".join(each.text_content().split()) for each in paragraphs]
    return {each for each in links if re.search("anna|your_name|github.com/exec", each)}, said, out


def test_what_is_named_is_linked(tmp_path):
    links, said, out = built(tmp_path, REPOSITORY, SITE)
    assert said == ["Words. A rocket is above. More.", "A clone."]
    assert REPOSITORY in links
    assert any(link.startswith(f"{REPOSITORY}/issues") for link in links)
    assert any(link.startswith(COLAB) for link in links)
    assert {f"{SITE}index.html", f"{SITE}_static/card.png"} <= links
    assert f"<loc>{SITE}" in (out / "sitemap.xml").read_text(encoding="utf-8")


def test_what_is_not_named_is_not_linked(tmp_path):
    links, said, out = built(tmp_path, "https://github.com/your_name/transformer-book", "")
    assert said == ["Words. More."]
    page = (out / "index.html").read_text(encoding="utf-8")
    assert links == set()
    assert "colab" not in page
    assert "og:title" in page
    assert "og:url" not in page
    assert "card.png" not in page
    assert not (out / "sitemap.xml").exists()


@pytest.mark.parametrize("at", ["no.html", "chapters/x/no.html"])
def test_the_page_for_a_wrong_address_leads_into_the_book_from_any_depth(browser, at):
    home = "http://a.invalid/book/"
    first = {f"{home}intro.html": "The first page", f"{home}search.html?q=mask": "Found"}
    page = browser.new_page()

    def answer(route):
        there = first.get(route.request.url)
        lost = LOST.read_text(encoding="utf-8")
        route.fulfill(status=200 if there else 404, body=there or lost, content_type="text/html")

    page.route("**/*", answer)
    page.goto(home + at)
    page.wait_for_load_state("networkidle")
    page.get_by_role("searchbox").fill("mask")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.inner_text("body") == "Found"
    page.goto(home + at)
    page.wait_for_load_state("networkidle")
    with page.expect_navigation():
        page.get_by_role("link", name="The first page").first.click()
    assert page.url == f"{home}intro.html"
    page.close()
