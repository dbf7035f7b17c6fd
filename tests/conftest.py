"""What every test needs of its surroundings."""

import signal


def pytest_configure():
    # A shell starts background jobs with Ctrl-C ignored, and children inherit that: the
    # tests that interrupt a command would wait for a signal that never arrives.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
