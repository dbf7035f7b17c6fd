"""What every test needs of its surroundings."""

import os
import signal

import pytest
from hypothesis import settings

# A busy machine takes long over any example.
settings.register_profile("busy", deadline=None)
settings.load_profile("busy")


def pytest_configure():
    # The command line would take as many threads as it finds idle processors, and results of
    # different numbers of them differ in their last bits.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # A shell starts background jobs with Ctrl-C ignored, and children inherit that: the
    # tests that interrupt a command would wait for a signal that never arrives.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """No test reads or fills the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUPERCONEXT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
