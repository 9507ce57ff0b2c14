"""Multi30k, captions of photographs in German and in English, found or fetched (chapter 11)."""

import os
import warnings
from pathlib import Path
from typing import NamedTuple

from transformer.data.parallel import read_parallel

with warnings.catch_warnings():  # where a notebook has no ipywidgets, of bars that it could have
    warnings.filterwarnings("ignore", message="IProgress not found")
    import pooch

VARIABLE = "MULTI30K"
COMMIT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"
SOURCE = f"https://raw.githubusercontent.com/multi30k/dataset/{COMMIT}/data/task1/raw"
PARTS = {"train": "train", "dev": "val", "test": "test_2016_flickr"}  # as its files call them
FILES = {  # SHA-256
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
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
    if given := folder or os.environ.get(VARIABLE):
        place = Path(given).absolute()
        if fault := _fault(place):
            name = "folder" if folder else f"the variable {VARIABLE}"
            wanted = f"{name} must name a folder with Multi30k's {len(FILES)} files"
            raise DataMissing(f"{wanted}, got {place}: {fault}")
    else:
        place = pooch.os_cache("transformer-book") / "multi30k"
        if fault := _fault(place):
            if not download:
                raise _missing(f"{fault} in {place}", source)
            _fetch(place, source, timeout, progress)
    read = {
        ours: read_parallel(place / f"{theirs}.de.gz", place / f"{theirs}.en.gz")[0]
        for ours, theirs in PARTS.items()
    }
    return Multi30k(**read)


def _fault(folder: Path) -> str | None:
    """The fault of the first file that ``folder`` lacks or that is another one; None if none is."""
    for name, digest in FILES.items():
        if not (folder / name).is_file():
            return f"there is no {name}"
        if pooch.file_hash(str(folder / name)) != digest:
            return f"{name} is cut off, or another file: its SHA-256 is not {digest:.16}…"
    return None


def _missing(what: str, source: str) -> DataMissing:
    advice = f"Fetch its {len(FILES)} files from {source} and set {VARIABLE} to their folder"
    return DataMissing(f"Multi30k is missing: {what}. {advice}.")


def _fetch(folder: Path, source: str, timeout: float, progress: bool) -> None:
    """Fetches what is missing or wrong; a file has its name only when it is whole and right."""
    pooch.get_logger().setLevel("WARNING")
    store = pooch.create(folder, f"{source}/", registry=FILES)
    downloader = pooch.HTTPDownloader(timeout=timeout, progressbar=progress)
    for name in FILES:
        try:
            store.fetch(name, downloader=downloader)
        except (OSError, ValueError) as error:  # the second for another file
            raise _missing(f"{name} could not be fetched: {error}", source) from error
