"""What the controller decides: an answer, and records of the metadata log that make it true."""

from ottla.model import core
from ottla.model.core import ReplyT_co
from ottla.protocol.codec import MetadataRecord


class Decision(core.Decision[ReplyT_co, MetadataRecord]):
    __slots__ = ()
