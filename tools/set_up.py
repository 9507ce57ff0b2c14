"""The first cell of each notebook, which readers of the site do not see."""

from pathlib import Path

import yaml
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]
SET_UP = """\
# One thread, as for the stored outputs. On Colab this installs the book's package, too.
import os
from importlib.util import find_spec

os.environ["OMP_NUM_THREADS"] = "1"  # read when torch is imported
if find_spec("transformer_book") is None:
    %pip install --quiet "transformer-book[chapters] @ git+{url}"
"""
SET_UP_OF_THE_EVENING = """\
# One thread, as for the stored outputs. On Colab this fetches the sentences, too.
import os
from pathlib import Path
from urllib.request import urlretrieve

os.environ["OMP_NUM_THREADS"] = "1"  # read when torch is imported
address = "{url}/raw/{branch}/chapters/pairs.tsv"
if not Path("pairs.tsv").exists():
    urlretrieve(address, "pairs.tsv")
"""


def repository() -> str:
    """The address that ``_config.yml`` names, the only place where it is set."""
    return _repository()["url"]


def _repository() -> dict[str, str]:
    return yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]


def is_evening(notebook: NotebookNode) -> bool:
    return notebook.cells[0].source.startswith("# One evening")


def set_up_source(*, evening: bool = False) -> str:
    """The source of the set-up cell, the same in every chapter."""
    return (SET_UP_OF_THE_EVENING if evening else SET_UP).format(**_repository()).rstrip()
