"""The site's door: what is made of the built site, or for it."""

import sys
from pkgutil import resolve_name

# A verb loads its own module alone, for a browser and PDF are needed by one each.
VERBS = {
    "check": "website.checks.site_check:main",
    "serve PORT": "website.server:serve_until_stopped",
    "pdf": "website.editions.pdf:publish_pdf",
    "epub": "website.editions.epub:publish_epub",
    "zh": "website.chinese:build",
    "zh check": "website.chinese:check",
    "zh pdf": "website.chinese:publish_pdf",
    "zh epub": "website.chinese:publish_epub",
    "card": "website.social_card:draw_card",
    "depths": "website.depths:write_depths",
    "runs": "website.small_runs:write_runs",
}
USAGE = f"usage: python -m website {{{', '.join(VERBS)}}}"


def main(arguments: list[str]) -> int:
    """Does what the verb says; the status of the program."""
    values = arguments[1:] if arguments[:1] == ["serve"] else []
    verb = " ".join(arguments) if not values else "serve PORT"
    if verb in VERBS and len(values) == (verb == "serve PORT"):
        return resolve_name(VERBS[verb])(*values)
    print(USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
