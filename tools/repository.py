"""Name the repository everywhere: ``make repository URL=https://github.com/OWNER/NAME``.

``_config.yml`` holds the address; the chapters' set-up cells, the README, the package's metadata
and the site's own address repeat it, and ``tests/book/test_repository.py`` holds them equal.
"""

import re
import subprocess
import sys

from tools.set_up import ROOT, repository
from transformer.files import replace_file

ADDRESS = re.compile(r"https://github\.com/(\w[\w-]*)/([\w-][\w.-]*?)(?:\.git)?/?")


def parts(url: str) -> tuple[str, str]:
    """Owner and name; raises ValueError for anything but a repository on GitHub."""
    match = ADDRESS.fullmatch(url)
    if not match:
        raise ValueError(f"URL must look like https://github.com/OWNER/NAME, got {url!r}")
    return match[1], match[2]


def renamed(text: str, old: tuple[str, str], new: tuple[str, str]) -> str:
    """``text`` with the repository, and the address of its Pages site, under their new names."""
    for between in ("/", ".github.io/"):
        whole = rf"(?<![\w.-]){re.escape(between.join(old))}(?![\w-])"
        text = re.sub(whole, between.join(new), text)
    return text


def main(url: str) -> int:
    try:
        new = parts(url)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    old = parts(repository())
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    changed = {}
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        data = path.read_bytes() if path.is_file() else b""
        if b"\0" in data:
            continue  # a picture, a font, weights
        text = data.decode()
        if (after := renamed(text, old, new)) != text:
            changed[path] = after
    for path, after in changed.items():  # all were read: none is written if one cannot be
        replace_file(path, after)
        print(path.relative_to(ROOT).as_posix())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
