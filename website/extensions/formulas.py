"""Formulas, set when the site is built: TeX to MathML, which browsers draw without a script.

Temml (``vendor/temml``, MIT) translates; mini-racer is the JavaScript engine that it runs in, so
that nothing but Python is needed. A formula that Temml cannot read stops the build.
"""

import json
from functools import cache
from pathlib import Path

from docutils import nodes
from py_mini_racer import JSEvalException, MiniRacer
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

TEMML = Path(__file__).parent / "vendor" / "temml" / "temml.min.js"


@cache
def engine() -> MiniRacer:
    racer = MiniRacer()
    racer.eval(TEMML.read_text(encoding="utf-8"))
    return racer


@cache
def mathml(tex: str, display: bool = False) -> str:
    """The element ``<math>`` for a formula. Raises ExtensionError if Temml cannot read it."""
    options = json.dumps({"displayMode": display, "throwOnError": True})
    try:
        return str(engine().eval(f"temml.renderToString({json.dumps(tex)}, {options})"))
    except JSEvalException as error:
        why = str(error).splitlines()[0]  # the rest is Temml, all of it
        raise ExtensionError(f"the formula {tex!r} cannot be set: {why}") from None


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    formula = mathml(node.astext())
    translator.body.append(formula.replace("<math", '<math class="notranslate"', 1))
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """The formula first, then its number, which a style sheet may put on the same line."""
    body = translator.body
    body.append(translator.starttag(node, "div", CLASS="math notranslate nohighlight"))
    formula = mathml(node.astext().strip(), display=True)
    # by the name of its frames for tables the theme's script has a wide one scroll by keyboard
    body.append(f'<div class="book-formula pst-scrollable-table-container">{formula}</div>')
    if node["number"]:
        body.append(f'<span class="eqno">({get_node_equation_number(translator, node)})')
        translator.add_permalink_ref(node, "Link to this equation")
        body.append("</span>")
    body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
