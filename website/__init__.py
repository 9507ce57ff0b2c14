"""What makes the site, the PDF and the ePub of the chapters; ``python -m website`` is the door.

It reads the chapters and the two packages, and neither of these knows of it.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html"  # where make book puts it
