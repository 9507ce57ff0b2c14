"""Numbers that stand in two places are the same in both."""

import re
import subprocess
import sys
import tomllib
from collections import Counter
from itertools import chain

import nbformat
import yaml

from tools.chapters import NOTEBOOKS, ROOT, code_cells


def test_requirements_end_in_the_package_and_pin_all_that_it_names():
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    pinned = set(re.findall(r"^([\w.-]+)==\S+$", text, flags=re.M))
    assert text.rstrip().endswith("\n-e .[chapters]")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    assert {re.match(r"[\w.-]+", name)[0] for name in wanted} - {"transformer-book"} <= pinned


def test_biome_comes_from_no_machine_s_own_registry():
    assert '"resolved"' not in (ROOT / "package-lock.json").read_text(encoding="utf-8")


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


def test_not_every_reason_to_skip_is_allowed(pytestconfig):
    conftest = pytestconfig.pluginmanager.get_plugin(str(ROOT / "conftest.py"))
    assert not conftest.MAY_LACK.search("it is slow")


def test_the_gate_has_all_its_parts():
    gate = (ROOT / ".ci/run").read_text(encoding="utf-8")
    parts = re.findall(r"^(?:make|\.venv/bin/python -m) [^#\n]*[^#\s]", gate, re.M)
    soft = ".venv/bin/python -m pytest -n 0 tests/package/soft_cuda/check.py"
    every = ["make lint", "make types", "make test", soft, "make book pdf epub zh site-check"]
    assert parts == every
