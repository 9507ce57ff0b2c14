"""pytest without its start: a process that has imported what tests import, and forks for each run.

``python tests/warm.py`` reads a run from each line of its input, as JSON: pytest's words and the
file for what it prints. It answers with pytest's exit status, or ``null`` where the run took too
long. Nothing of this project is imported before the fork, so that each run meets its files as they
are then; and no plugin of pytest's, which pytest wants to import by itself.
"""

import contextlib
import json
import os
import signal
import sys
import time
import traceback

# as in conftest.py, which the forked process reads too late for what is imported here
os.environ |= {"OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1", "TOKENIZERS_PARALLELISM": "false"}

import coverage  # noqa: F401
import jsonschema  # noqa: F401
import jupyter_client.manager  # noqa: F401
import matplotlib.pyplot  # noqa: F401
import nbformat  # noqa: F401
import pytest
import torch._dynamo  # noqa: F401
import zmq.asyncio  # noqa: F401


def run(words: list[str], printed: str) -> None:
    """In the forked process: does not return."""
    os.setsid()
    to = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(to, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        status = int(pytest.main(words))
    except BaseException:
        traceback.print_exc()
        status = 3  # an error inside of pytest
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def serve(limit: float) -> None:
    for line in sys.stdin:
        words, printed = json.loads(line)
        if not (child := os.fork()):
            run(words, printed)
        end, status = time.monotonic() + limit, None
        while status is None and time.monotonic() < end:
            time.sleep(0.05)
            done, left = os.waitpid(child, os.WNOHANG)
            status = os.waitstatus_to_exitcode(left) if done else None
        with contextlib.suppress(ProcessLookupError):  # with what it started and left behind
            os.killpg(child, signal.SIGKILL)
        if status is None:
            os.waitpid(child, 0)
        print(json.dumps(status), flush=True)


if __name__ == "__main__":  # and not where a test starts a process, which imports this file, too
    sys.path.remove(os.path.dirname(os.path.abspath(__file__)))
    serve(float(sys.argv[1]))
