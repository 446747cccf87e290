"""Why a worker cannot start, in one place that imports nothing."""


class ConnectCannotStart(Exception):
    """The text says what is in the way, and what to do."""


class StartFailed(ConnectCannotStart):
    """Something about this worker, or the brokers."""


class WrongTopic(ConnectCannotStart):
    """Workers cannot keep their state in this topic."""
