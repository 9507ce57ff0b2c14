"""Multi30k, captions of photographs in German and in English, found or fetched (chapter 11)."""

import hashlib
import os
import sys
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen

from tqdm import tqdm

from transformer.data.parallel import read_parallel
from transformer.files import replace_file

VARIABLE = "MULTI30K"
COMMIT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"
SOURCE = f"https://raw.githubusercontent.com/multi30k/dataset/{COMMIT}/data/task1/raw"
PARTS = {"train": "train", "dev": "val", "test": "test_2016_flickr"}  # as its files call them
FILES = {  # bytes, SHA-256
    "train.de.gz": (637044, "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6"),
    "train.en.gz": (568929, "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f"),
    "val.de.gz": (24681, "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a"),
    "val.en.gz": (21650, "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28"),
    "test_2016_flickr.de.gz": (
        22890,
        "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    ),
    "test_2016_flickr.en.gz": (
        21077,
        "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    ),
}


class Multi30k(NamedTuple):
    """Pairs (German, English) as they were written, with capitals and full stops."""

    train: list[tuple[str, str]]  # 29,000
    dev: list[tuple[str, str]]  # 1,014
    test: list[tuple[str, str]]  # 1,000


class DataMissing(OSError):
    """A file of Multi30k is not there, is another one, or could not be fetched."""


def multi30k(
    folder: str | Path | None = None,
    *,
    download: bool = True,
    source: str = SOURCE,
    timeout: float = 30.0,
    progress: bool = True,
) -> Multi30k:
    """Task 1 of Elliott et al. (2016), with the test set of 2016; chapter 11.

    The files lie in ``folder``, else in the one that the variable ``MULTI30K`` names, else in the
    user's cache, into which those that it lacks are fetched from ``source``. The SHA-256 of each
    is checked. The server may be silent for ``timeout`` seconds.

    The English captions are those of Flickr30k, Young et al. (2014). The data has no licence file;
    its README speaks of research and education that are not commercial. It is no part of this
    project, whose licence does not cover it.

    Raises DataMissing, which names the file and its folder or address.
    """
    if not timeout > 0:
        raise ValueError(f"timeout must be positive, got {timeout}")
    if given := folder or os.environ.get(VARIABLE):
        place = Path(given).absolute()
        if faults := _faults(place):
            name = "folder" if folder else f"the variable {VARIABLE}"
            wanted = f"{name} must name a folder with Multi30k's {len(FILES)} files"
            raise DataMissing(f"{wanted}, got {place}: {next(iter(faults.values()))}")
    else:
        place = _cache() / "transformer-book" / "multi30k"
        if faults := _faults(place):
            if not download:
                raise _missing(f"{next(iter(faults.values()))} in {place}", source)
            _fetch(list(faults), place, source, timeout, progress)
    read = {
        ours: read_parallel(place / f"{theirs}.de.gz", place / f"{theirs}.en.gz")[0]
        for ours, theirs in PARTS.items()
    }
    return Multi30k(**read)


def _cache() -> Path:
    """The user's cache, where this system has it."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path.home() / ".cache"


def _faults(folder: Path) -> dict[str, str]:
    """The files that ``folder`` lacks, or holds another of, and what is wrong with each."""
    faults = {}
    for name in FILES:
        path = folder / name
        if fault := _fault(name, path.read_bytes()) if path.is_file() else f"there is no {name}":
            faults[name] = fault
    return faults


def _fault(name: str, data: bytes) -> str | None:
    (size, wanted), got = FILES[name], hashlib.sha256(data).hexdigest()
    if got == wanted:
        return None
    is_, should = f"{len(data):,} bytes of SHA-256 {got:.16}…", f"{size:,} of {wanted:.16}…"
    return f"{name} is cut off, or another file: got {is_}, wanted {should}"


def _missing(what: str, source: str) -> DataMissing:
    advice = f"Fetch its {len(FILES)} files from {source} and set {VARIABLE} to their folder"
    return DataMissing(f"Multi30k is missing: {what}. {advice}.")


def _fetch(names: list[str], folder: Path, source: str, timeout: float, progress: bool) -> None:
    """A file has its name only when it is whole and right."""
    total = sum(FILES[name][0] for name in names)
    silence: dict[str, Any] = {} if progress else {"disable": True}  # else TQDM_DISABLE decides
    with tqdm(total=total, desc="Multi30k", unit="B", unit_scale=True, **silence) as bar:
        for name in names:
            try:
                data = b"".join(_received(f"{source}/{name}", FILES[name][0], timeout, bar))
                fault = _fault(name, data)
                if fault is None:
                    folder.mkdir(parents=True, exist_ok=True)
                    replace_file(folder / name, data)
            except (OSError, HTTPException) as error:
                if isinstance(error, HTTPError):  # which is an open answer, too
                    error.close()
                raise _missing(f"{name} could not be fetched: {error}", source) from error
            if fault:
                raise _missing(fault, source)


def _received(address: str, size: int, timeout: float, bar: tqdm) -> Iterator[bytes]:
    """What the server sends, and no more than a byte over ``size``."""
    left = size + 1
    with urlopen(address, timeout=timeout) as answer:
        while part := answer.read(min(left, 1 << 16)):
            left -= len(part)
            bar.update(len(part))
            yield part
