"""How an application ends that cannot go on."""

from ottla.pipelines.job import CannotStart


class StreamsFailed(Exception):
    """A query failed. The text says where: which node, which record."""


class StreamsFenced(StreamsFailed, CannotStart):
    """The application runs elsewhere under the same id: this run must not come back by itself."""
