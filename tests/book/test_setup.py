"""What make says when something that it needs is missing: one clear sentence."""

import os
import shutil
import subprocess
import sys

import pytest

from tools.chapters import ROOT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="make and sh are not Windows's")


@pytest.fixture
def set_up(tmp_path):
    for name in ("Makefile", "requirements.txt", "pyproject.toml", "tools/setup.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)

    def run(python, **environment):
        return subprocess.run(
            ["sh", "tools/setup.sh"],
            cwd=tmp_path, env=os.environ | {"PYTHON": str(python)} | environment,
            capture_output=True, text=True,
        )  # fmt: skip

    run.folder = tmp_path
    return run


def pretender(folder, *answers):
    """A program that stands for python: succeeds, but for commands that contain a given text."""
    script = folder / "python-pretender"
    cases = "".join(f"*'{text}'*) {answer} ;;\n" for text, answer in answers)
    script.write_text(f'#!/bin/sh\ncase "$*" in\n{cases}esac\n', encoding="utf-8")
    script.chmod(0o755)
    return script


def test_what_is_missing_is_named(set_up):
    old = (("version_info < (3, 11)", "exit 1"), ("--version", "echo Python 3.9.2"))
    (set_up.folder / "requirements.txt").write_text("transformer-book-needs-this==1\n", "utf-8")
    offline = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_CONFIG_FILE": os.devnull}
    offline |= {"PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": ""}
    for python, said in (
        (lambda: "python-not-there", "Python was not found as 'python-not-there': install Python"),
        (lambda: pretender(set_up.folder, *old), "Python 3.9.2 is too old: the book needs Python"),
        (lambda: pretender(set_up.folder, ("ensurepip", "exit 1")), "This Python has no venv"),
        (lambda: sys.executable, "No network: pip could not reach its package index"),
    ):
        result = set_up(python(), **offline)
        assert result.returncode == 1
        assert result.stderr.startswith(said)
        assert len(result.stderr.splitlines()) == 1
        assert not (set_up.folder / ".venv" / "ready").exists()
