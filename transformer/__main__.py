"""``python -m transformer train | translate | evaluate``, and the same under torchrun."""

import signal
import sys

if __name__ == "__main__":
    from transformer.commands import main  # takes a moment, which Ctrl-C may end

    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # of the package, while it loads
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
