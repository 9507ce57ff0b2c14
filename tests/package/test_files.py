import fcntl
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.package.limits import largest_file
from tools.chapters import ROOT
from transformer.files import LOCK, holds_only, only_writer, remove_leftovers, replace_file


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
    assert seen == ["flushed", "named"]


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


def test_what_a_killed_process_left_is_no_content_and_goes(tmp_path, monkeypatch):
    with monkeypatch.context() as killed:
        killed.setattr(os, "replace", lambda *_: None)
        killed.setattr("pathlib.Path.unlink", lambda *_: None)
        for name in ("a.json", "b.json"):
            replace_file(tmp_path / name, "new")
    with only_writer(tmp_path):
        pass
    (tmp_path / "a.json").touch()
    assert len(os.listdir(tmp_path)) == 4
    assert holds_only(tmp_path, "a.json")
    assert not holds_only(tmp_path)
    remove_leftovers(tmp_path, "a*")
    assert len(os.listdir(tmp_path)) == 3
    remove_leftovers(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [LOCK, "a.json"]
    (tmp_path / ".mine").touch()
    assert not holds_only(tmp_path, "a.json")
    assert holds_only(tmp_path / "nowhere")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("a.json", "link"):  # neither of which can be a folder
        assert not holds_only(tmp_path / name)


HOLD = """
import sys
from transformer.files import only_writer
with only_writer(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_where_the_disk_has_no_locks_a_file_is_one(tmp_path, monkeypatch):
    def fails(*args):
        raise OSError("no locks available")

    monkeypatch.setattr(fcntl, "flock", fails)
    for _ in range(2):
        with only_writer(tmp_path), ThreadPoolExecutor() as pool:
            wanted = f"^another process is training in {tmp_path}$"
            with pytest.raises(BlockingIOError, match=wanted):
                pool.submit(only_writer(tmp_path).__enter__).result()
    with only_writer(tmp_path / "deep/new"), only_writer(tmp_path / "deep/new"):
        pass


def test_a_lock_is_not_waited_for_and_is_free_when_its_process_was_killed(tmp_path, monkeypatch):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as process:
        assert process.stdout.readline() == b"held\n"
        monkeypatch.setattr(time, "sleep", None)
        with (
            pytest.raises(BlockingIOError, match=f"^another process is training in {tmp_path}$"),
            only_writer(tmp_path),
        ):
            pass
        process.kill()
    for folder in (str(tmp_path), tmp_path):
        with only_writer(folder):
            assert os.listdir(tmp_path) == [LOCK]
