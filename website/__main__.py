"""The site's door: what is made of the built site, or for it."""

import sys

USAGE = "usage: python -m website {check, serve PORT, pdf, epub, card, depths, runs}"


def main(arguments: list[str]) -> int:
    """Each verb loads its own module, for a browser and PDF are needed by one each."""
    match arguments:
        case ["check"]:
            from website.checks.site_check import main as check

            return check()
        case ["serve", port]:
            from website import SITE
            from website.server import serve_until_stopped

            return serve_until_stopped(SITE, port)
        case ["pdf"]:
            from website.editions.pdf import publish_pdf

            return publish_pdf()
        case ["epub"]:
            from website.editions.epub import publish_epub

            return publish_epub()
        case ["card"]:
            from website.social_card import draw_card

            return draw_card()
        case ["depths"]:
            from website.depths import write_depths

            return write_depths()
        case ["runs"]:
            from website.small_runs import write_runs

            return write_runs()
    print(USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
