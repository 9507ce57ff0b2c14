"""A page of fewer letters is the same page: for a parser, and letter by letter in its code."""

import lxml.html
import pytest

from website.extensions.lean_pages import lean_page


def seen(page):
    """What a browser makes of a page: elements, attributes, and words but for their indents."""
    tree = lxml.html.document_fromstring(page)
    found = []
    for element in tree.iter():
        kept = element.tag == "pre" or element.xpath("boolean(ancestor::pre)")
        texts = [element.text or "", element.tail or ""]
        outer = element.getparent() is not None and element.xpath("boolean(ancestor::pre)")
        texts[0] = texts[0] if kept else " ".join(texts[0].split())
        texts[1] = texts[1] if outer else " ".join(texts[1].split())
        found.append((element.tag, dict(element.attrib), *texts))
    return found


PAGE = """<!DOCTYPE html>
<html lang="en">
  <body class="a b" id="x1">

    <p title="two words">one
      <a class="c" href="d.html#e-1">two</a>
      <img alt="a &quot;b&quot;" src="x.svg" />
    </p>
    <pre class="code">
  first <span class="k">if</span>  x == "y":

      <span class="s">'<b class="z">'</b></span> &lt;span class="q"&gt; <span class="u v">w</span>
</pre>
    <textarea>  class="t"

  u</textarea>
  </body>
</html>
"""


def test_a_lean_page_has_the_same_elements_words_and_code():
    lean = lean_page(PAGE)
    assert seen(lean) == seen(PAGE)
    assert lean_page(lean) == lean


def test_a_lean_page_has_no_indents_and_its_code_no_quotes_around_a_name():
    lean = lean_page(PAGE)
    assert '<p title="two words">one\n<a class="c" href="d.html#e-1">two</a>\n<img' in lean
    assert '<span class=k>if</span>  x == "y":\n\n      <span class=s>' in lean


@pytest.mark.parametrize(
    ("code", "wanted"),
    [("<span></span>a = 1", "a = 1"), ("<span></span>\na", "<span></span>\na"), ("\n\na", "\n\na")],
    ids=["a line", "an empty line", "as it is"],
)
def test_code_begins_with_its_first_line(code, wanted):
    assert lean_page(f"<pre>{code}</pre>") == f"<pre>{wanted}</pre>"


def test_notes_in_scripts_and_styles_stay_in_the_source():
    page = "<script>\n// a note\nlet a = ' // no note ';\n</script>\n"
    page += "<style>\n/* a\n   note */\n  p { color: red; }\n</style>"
    lean = "<script>let a=' // no note ';</script>\n<style>p { color: red; }</style>"
    assert lean_page(page) == lean
