import gc
import signal

import pytest
import torch

from tests.package import unchecked as annotations


@pytest.fixture
def unchecked():
    """Switch the run-time check of annotations off, so that a test meets the code's own errors."""
    with annotations.unchecked():
        yield


@pytest.fixture(autouse=True)
def _seeded():
    """What a test draws without a seed of its own depends on no test before it."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _checked_with_the_first_seed(request):
    """Of a test that runs with several seeds, the first run checks the annotations."""
    if getattr(getattr(request.node, "callspec", None), "params", {}).get("seed", 0):
        request.getfixturevalue("unchecked")


@pytest.fixture
def ctrl_c():
    """Ctrl-C raises KeyboardInterrupt, also in tests that run in the background.

    It would be lost inside what hypothesis has Python call at every garbage collection.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    callbacks = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = callbacks
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def hf():
    """Hugging Face's transformers, without bars and warnings."""
    import transformers

    transformers.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()
    return transformers
