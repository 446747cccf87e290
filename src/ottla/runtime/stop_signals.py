"""What ends a server in good order."""

import signal


def stop_signals() -> tuple[signal.Signals, ...]:
    """SIGHUP is a terminal that was closed; under nohup it is ignored already, and stays so."""
    stopping = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    return tuple(each for each in stopping if signal.getsignal(each) is not signal.SIG_IGN)
