"""The composition root: settings in, a running node out. The only place that knows everybody."""

from ottla.node.node import Node, StartFailed
from ottla.node.process import new_event_loop, run

__all__ = ["Node", "StartFailed", "new_event_loop", "run"]
