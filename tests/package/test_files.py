import os
import resource
import secrets
import subprocess
import sys

import pytest

from tools.chapters import ROOT
from transformer.files import LOCK, only_writer, remove, replace_file, whole_folder


def test_text_is_utf_8_and_bytes_are_as_they_are(tmp_path):
    replace_file(tmp_path / "a", "né\n")
    assert (tmp_path / "a").read_bytes() == b"n\xc3\xa9\n"
    replace_file(str(tmp_path / "a"), b"\xff\r\n")
    assert (tmp_path / "a").read_bytes() == b"\xff\r\n"
    assert os.listdir(tmp_path) == ["a"]


def test_the_disk_holds_a_file_before_it_has_its_name(tmp_path, monkeypatch):
    seen, replace = [], os.replace

    def watched(source, target):
        seen.append("renamed")
        assert os.path.dirname(source) == os.path.dirname(target)  # on one disk: at once
        replace(source, target)

    monkeypatch.setattr(os, "replace", watched)
    monkeypatch.setattr(os, "fsync", lambda descriptor: seen.append("flushed"))
    replace_file(tmp_path / "a", "new")
    assert seen == ["flushed", "renamed", "flushed"]


def test_a_full_disk_leaves_the_old_file_and_is_named(tmp_path):
    file = tmp_path / "a"
    file.write_text("old")
    most, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(OSError, match=rf"File too large: '{file}'"):
            replace_file(file, "n" * 11)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [OSError("no space"), KeyboardInterrupt()])
def test_what_stops_a_rename_leaves_nothing_behind(error, tmp_path, monkeypatch):
    def fails(source, target):
        raise error

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(type(error)):
        replace_file(tmp_path / "a", "new")
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_none_is_called_so(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"Not a directory: '.*/file/a'"):
        replace_file(tmp_path / "file" / "a", "new")
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: '.*/none/a'"):
        replace_file(tmp_path / "none" / "a", "new")
    with pytest.raises(IsADirectoryError, match=rf"Is a directory: '{tmp_path}'"):
        replace_file(tmp_path, "new")


def test_a_link_laid_in_the_way_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.setattr(secrets, "token_hex", lambda n: "drawn")
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".a.drawn").symlink_to(victim)
    with pytest.raises(FileExistsError, match=rf"File exists: '{tmp_path}/a'"):
        replace_file(tmp_path / "a", "new")
    assert victim.read_text() == "mine"
    assert not (tmp_path / "a").exists()


def test_names_on_the_way_are_drawn(tmp_path, monkeypatch):
    seen, replace = set(), os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: seen.add(str(a)) or replace(a, b))
    for _ in range(9):
        replace_file(tmp_path / "a", "new")
    assert len(seen) == 9
    assert all(os.path.basename(name).startswith(".a.") for name in seen)


def test_a_new_file_can_be_read_by_whom_the_system_lets(tmp_path):
    before = os.umask(0o027)
    try:
        replace_file(tmp_path / "a", "new")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_a_link_is_removed_and_what_it_points_to_stays(tmp_path):
    (tmp_path / "folder/deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    remove(tmp_path / "link")
    remove(tmp_path / "broken")
    assert os.listdir(tmp_path) == ["folder"]
    (tmp_path / "file").write_text("")
    remove(tmp_path / "file")
    remove(tmp_path / "folder")
    assert os.listdir(tmp_path) == []


def test_a_folder_is_not_written_through_a_link_that_lies_in_the_way(tmp_path):
    (tmp_path / "victim").mkdir()
    (tmp_path / ".writing").symlink_to(tmp_path / "victim")
    with (
        pytest.raises(OSError, match=rf"{tmp_path}/final was not saved: .*File exists"),
        whole_folder(tmp_path / "final", tmp_path / ".writing") as folder,
    ):
        (folder / "file").write_text("new")
    assert os.listdir(tmp_path / "victim") == []
    assert not (tmp_path / "final").exists()


HOLD = """
import sys, time
from transformer.files import only_writer
with only_writer(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_lock_of_a_process_that_was_killed_is_free(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
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


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / LOCK).symlink_to(victim)
    with pytest.raises(OSError, match=LOCK), only_writer(tmp_path):
        pass
    assert victim.read_text() == "mine"
