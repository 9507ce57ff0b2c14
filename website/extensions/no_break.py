"""Where a line does not break: between a formula and the sign after it, a number and its %."""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

BEFORE = re.compile(r"[(\[“‘]+$")
AFTER = re.compile(r"[^\s—–\u3400-\u9fff]+")  # Chinese has no blanks
PERCENT = re.compile(r"(?<=\d)[ \N{NO-BREAK SPACE}]%")

CODE = (nodes.FixedTextElement, nodes.literal, nodes.math)


class Unbroken(SphinxPostTransform):
    default_priority = 950  # after all that makes links
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for formula in list(self.document.findall(nodes.math)):
            self._keep_signs(formula)
        for parent in self.document.findall(nodes.Element):
            if not isinstance(parent, CODE):
                for i, text in enumerate(parent.children):
                    if isinstance(text, nodes.Text) and PERCENT.search(text):
                        parent[i] = nodes.Text(PERCENT.sub("\N{NARROW NO-BREAK SPACE}%", text))

    def _keep_signs(self, formula: nodes.math) -> None:
        parent = formula.parent
        first = last = parent.index(formula)
        whole = nodes.inline("", "", classes=["book-unbroken"])
        around = [formula]
        rest: list[nodes.Node] = [whole]
        if first and isinstance(parent[first - 1], nodes.Text):
            before = parent[first - 1].astext()
            if sign := BEFORE.search(before):
                first -= 1
                around.insert(0, nodes.Text(sign[0]))
                rest.insert(0, nodes.Text(before[: sign.start()]))
        if last + 1 < len(parent) and isinstance(parent[last + 1], nodes.Text):
            after = parent[last + 1].astext()
            if sign := AFTER.match(after):
                last += 1
                around.append(nodes.Text(sign[0]))
                rest.append(nodes.Text(after[sign.end() :]))
        if len(around) > 1:
            parent[first : last + 1] = rest
            whole.extend(around)


def setup(app: Sphinx) -> None:
    app.add_post_transform(Unbroken)
