"""What ends a server in good order."""

import signal
from typing import Final

WHOLE_CLUSTER_STOPS: Final = signal.SIGUSR1
"""To a node from whoever stops all of them: too few are left for a quorum, so that it cannot hand its leaders over."""


def stop_signals() -> tuple[signal.Signals, ...]:
    """SIGHUP is a terminal that was closed; under nohup it is ignored already, and stays so."""
    stopping = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    return tuple(each for each in stopping if signal.getsignal(each) is not signal.SIG_IGN)
