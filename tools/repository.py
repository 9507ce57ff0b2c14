"""Name the repository everywhere: ``make repository URL=https://github.com/OWNER/NAME``.

``_config.yml`` holds the address; the chapters' set-up cells, the README, the package's metadata
and the site's own address repeat it, and ``tests/test_repository.py`` holds them equal.
"""

import re
import subprocess
import sys

from tools.chapters import ROOT, repository

ADDRESS = re.compile(r"https://github\.com/([A-Za-z0-9_-]+)/([A-Za-z0-9._-]+?)(?:\.git)?/?")


def parts(url: str) -> tuple[str, str]:
    """Owner and name; raises ValueError for anything but a repository on GitHub."""
    match = ADDRESS.fullmatch(url)
    if not match:
        raise ValueError(f"URL must look like https://github.com/OWNER/NAME, got {url!r}")
    return match[1], match[2]


def renamed(text: str, old: tuple[str, str], new: tuple[str, str]) -> str:
    """``text`` with the repository, and the address of its Pages site, under their new names."""
    text = text.replace(f"{old[0]}/{old[1]}", f"{new[0]}/{new[1]}")
    return text.replace(f"{old[0]}.github.io/{old[1]}", f"{new[0]}.github.io/{new[1]}")


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
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.suffix == ".png" or not path.is_file():
            continue
        text = path.read_bytes().decode()
        if (after := renamed(text, old, new)) != text:
            temporary = path.with_name(path.name + ".new")
            temporary.write_bytes(after.encode())
            temporary.replace(path)
            print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
