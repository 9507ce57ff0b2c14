import errno
import fcntl
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.package.limits import held_elsewhere, largest_file
from tools.chapters import ROOT
from transformer.files import LOCK, only_writer, replace_file


def test_text_is_utf_8_and_bytes_are_as_they_are(tmp_path):
    replace_file(tmp_path / "a", "né\n")
    assert (tmp_path / "a").read_bytes() == b"n\xc3\xa9\n"
    replace_file(str(tmp_path / "a"), b"\xff\r\n")
    assert (tmp_path / "a").read_bytes() == b"\xff\r\n"
    assert os.listdir(tmp_path) == ["a"]


def test_the_disk_holds_a_file_before_it_has_its_name(tmp_path, monkeypatch):
    seen = []
    real = os.replace
    monkeypatch.setattr(os, "replace", lambda *a: seen.append("named") or real(*a))
    monkeypatch.setattr(os, "fsync", lambda descriptor: seen.append("flushed"))
    replace_file(tmp_path / "a", "new")
    assert seen == ["flushed", "named", "flushed"]


@pytest.mark.parametrize("error", [OSError("no space"), KeyboardInterrupt()])
def test_what_stops_a_rename_leaves_nothing_behind(error, tmp_path, monkeypatch):
    def fails(source, target):
        raise error

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(type(error)):
        replace_file(tmp_path / "a", "new")
    assert os.listdir(tmp_path) == []


def test_a_full_disk_leaves_the_old_file_and_is_named(tmp_path):
    file = tmp_path / "a"
    file.write_text("old")
    with largest_file(10), pytest.raises(OSError, match=rf"File too large: '{file}'"):
        replace_file(file, "n" * 11)
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_new_file_can_be_read_by_whom_the_system_lets(tmp_path):
    before = os.umask(0o027)
    try:
        replace_file(tmp_path / "a", "new")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


HOLD = """
import sys
import time
from transformer.files import only_writer
with only_writer(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_that_is_held_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "sleep", None)
    with (
        held_elsewhere(tmp_path),
        pytest.raises(BlockingIOError, match=f"^another process is training in {tmp_path}$"),
        only_writer(tmp_path),
    ):
        pass


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENOLCK])
def test_where_the_disk_has_no_locks_a_file_is_one(number, tmp_path, monkeypatch):
    def fails(*args):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", fails)
    for _ in range(2):
        with only_writer(tmp_path), ThreadPoolExecutor() as pool:
            wanted = f"^another process is training in {tmp_path}$"
            with pytest.raises(BlockingIOError, match=wanted):
                pool.submit(only_writer(tmp_path).__enter__).result()
    with only_writer(tmp_path / "deep/new"), only_writer(tmp_path / "deep/new"):
        pass


def test_the_lock_of_a_process_that_was_killed_is_free(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as process:
        assert process.stdout.readline() == b"held\n"
        with (
            pytest.raises(BlockingIOError, match=f"^another process is training in {tmp_path}$"),
            only_writer(tmp_path),
        ):
            pass
        process.kill()
    for folder in (str(tmp_path), tmp_path):
        with only_writer(folder):
            assert os.listdir(tmp_path) == [LOCK]
