"""Numbers that stand in two places are the same in both."""

import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from itertools import chain

import nbformat
import yaml

from tools.chapters import NOTEBOOKS, ROOT, code_cells


def pins():
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==(\S+)$", text, flags=re.M)), text


def test_requirements_end_in_the_package_and_pin_all_that_it_names():
    pinned, text = pins()
    assert text.rstrip().endswith("\n-e .[chapters]")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    assert {re.match(r"[\w.-]+", name)[0] for name in wanted} - {"transformer-book"} <= set(pinned)


def test_biome_is_the_same_everywhere_and_comes_from_no_machine():
    (wanted,) = json.loads((ROOT / "package.json").read_text("utf-8"))["devDependencies"].values()
    locked = (ROOT / "package-lock.json").read_text(encoding="utf-8")
    versions = {p["version"] for name, p in json.loads(locked)["packages"].items() if name}
    assert versions == {wanted}
    assert '"resolved"' not in locked  # which would name the registry that wrote the file
    assert f"rev: v{wanted} " in (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")


def test_every_python_and_the_oldest_torch_that_we_promise_are_tested():
    text = (ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8")
    tested = yaml.safe_load(text)["jobs"]["ranges"]["strategy"]["matrix"]["include"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    promised = [line.rpartition(" ")[2] for line in project["classifiers"]]
    assert sorted({job["python"] for job in tested}) == promised
    assert project["requires-python"] == f">={promised[0]}"
    oldest = next(d for d in project["dependencies"] if d.startswith("torch>="))
    assert {"python": promised[0], "torch": oldest.replace(">=", "==") + ".0"} in tested


def test_make_test_collects_every_cell_of_every_notebook():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    command = re.search(r"^test:.*\n\t\$\(RUN\) (.+)$", makefile, re.M)[1]
    asked = [sys.executable, *command.split(), "--collect-only", "-q", "-n0", "--ignore-glob=*.py"]
    said = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    cells = {path.name: len(code_cells(nbformat.read(path, as_version=4))) for path in NOTEBOOKS}
    assert Counter(re.findall(r"^chapters/(\S+)::Cell \d+$", said, re.M)) == cells
