"""Draws ``static/social-card.png``, which other sites show beside a link to the book.

python -m website.social_card
"""

import base64

from transformer_book.drawings.model_map import model_map
from website import ROOT
from website.browser import chromium

CARD = ROOT / "website" / "static" / "social-card.png"
PAGE = """<!DOCTYPE html><meta charset="utf-8"><style>
@font-face {{ font-family: Card; font-weight: 600; src: url({bold}) }}
@font-face {{ font-family: Card; font-weight: 400; src: url({plain}) }}
body {{ align-items: center; background: #fff; display: flex; font-family: Card, serif;
  height: 630px; margin: 0; width: 1200px }}
div {{ padding-left: 72px; width: 620px }}
h1 {{ color: #1f2429; font-size: 72px; font-weight: 600; line-height: 1.1; margin: 0 0 30px }}
p {{ color: #56606a; font-size: 31px; line-height: 1.4; margin: 0 }}
p.tick {{ background: #ecf6f1; border-left: 5px solid #006b4a; color: #1f2429; font-size: 27px;
  margin-top: 34px; padding: 12px 20px }}
b {{ color: #006b4a; font-family: sans-serif }}
svg {{ height: auto; margin: 0 48px 0 auto; width: 470px }}
</style><div><h1>The Transformer, executed</h1>
<p>Built part by part. Every claim is run on the page that makes it.</p>
<p class="tick"><b>✓</b> attention equals its plain loops</p></div>{drawing}"""


def in_line(font: str) -> str:
    data = (CARD.parent / "fonts" / f"{font}.woff2").read_bytes()
    return f"data:font/woff2;base64,{base64.b64encode(data).decode()}"


def draw_card() -> int:
    drawing = model_map("self-attention", "masked self-attention", "cross-attention")._repr_svg_()
    fonts = {"bold": in_line("serif-bold"), "plain": in_line("serif")}
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1200, "height": 630})
        page.set_content(PAGE.format(drawing=drawing, **fonts))
        page.evaluate("document.fonts.ready.then(() => null)")
        page.screenshot(path=CARD)
    return 0
