import jaxtyping
import pytest


@pytest.fixture
def unchecked():
    """Switch the run-time check of annotations off, so that a test meets the code's own errors."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
