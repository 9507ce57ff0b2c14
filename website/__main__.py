"""The site's door: what is made of the built site, or for it."""

import sys
from pkgutil import resolve_name

# A verb loads its own module alone, for a browser and PDF are needed by one each.
VERBS = {
    "check": "website.checks.site_check:main",
    "serve": "website.server:serve_until_stopped",
    "pdf": "website.editions.pdf:publish_pdf",
    "epub": "website.editions.epub:publish_epub",
    "card": "website.social_card:draw_card",
    "depths": "website.depths:write_depths",
    "runs": "website.small_runs:write_runs",
}
USAGE = f"usage: python -m website {{{', '.join(VERBS).replace('serve', 'serve PORT')}}}"


def main(arguments: list[str]) -> int:
    """Does what the verb says; the status of the program."""
    verb, *values = arguments or [""]
    if verb in VERBS and len(values) == (verb == "serve"):
        return resolve_name(VERBS[verb])(*values)
    print(USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
