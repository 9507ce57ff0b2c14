import os
import resource

import pytest

from transformer.files import replace_file


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
