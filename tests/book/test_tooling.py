"""Numbers that stand in two places are the same in both."""

import json
import re
import tomllib
from itertools import chain

import yaml

from tools.chapters import ROOT


def pins():
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==(\S+)$", text, flags=re.M)), text


def test_requirements_end_in_the_package_and_pin_all_that_it_names():
    pinned, text = pins()
    assert text.rstrip().endswith("\n-e .[chapters]")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    assert {re.match(r"[\w.-]+", name)[0] for name in wanted} - {"transformer-book"} <= set(pinned)


def test_the_citation_names_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == project["version"]
    assert citation["license"] == "MIT"


def test_ruff_is_the_same_everywhere():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert hooks[0]["rev"] == f"v{pins()[0]['ruff']}"


def test_biome_is_the_same_everywhere_and_comes_from_no_machine():
    wanted = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    text = (ROOT / "package-lock.json").read_text(encoding="utf-8")
    locked = json.loads(text)["packages"]
    (version,) = wanted.values()
    assert {package["version"] for name, package in locked.items() if name} == {version}
    assert all(package["integrity"] for name, package in locked.items() if name)
    assert '"resolved"' not in text  # which would name the registry that wrote the file
    assert locked[""]["devDependencies"] == wanted
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    (hook,) = (repo for repo in hooks if "biome" in repo["repo"])
    assert hook["rev"] == f"v{version}"
    assert hook["hooks"][0]["additional_dependencies"] == [f"@biomejs/biome@{version}"]


def test_workflows_are_yaml_and_test_both_ends_of_the_range():
    workflows = {
        p.stem: yaml.safe_load(p.read_text(encoding="utf-8"))
        for p in (ROOT / ".github/workflows").iterdir()
    }
    tested = workflows["tests"]["jobs"]["ranges"]["strategy"]["matrix"]["include"]
    assert [job["python"] for job in tested] == ["3.11", "3.11", "3.12", "3.13"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = next(d for d in project["dependencies"] if d.startswith("torch>="))
    assert tested[0]["torch"] == oldest.replace(">=", "==") + ".0"
