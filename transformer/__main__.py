"""``python -m transformer train | translate | evaluate``, and the same under torchrun."""

import sys

if __name__ == "__main__":
    try:
        from transformer.commands import main  # takes a moment, which Ctrl-C may end

        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
