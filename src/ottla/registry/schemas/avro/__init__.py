"""Avro schemas, as Java Avro 1.12 understands them and Confluent's server shows them.

`parse` makes a `tree` of a text and of the types that its references bring; `render` writes a tree as canonical text,
`normal` as normalised text; `compatibility` compares two trees, and `hints` says what would have been accepted. It is
our own and not PyPI's `avro`, because everything here hangs on details of Java's: the spelling of the text that is
hashed, types that are used before they are defined, where and in which words a difference is told. Java itself is asked
in the tests.

Texts come from anywhere: depth is limited before parsing (`json_text`), everything else by a `Budget`, and what could
go deeper than the text itself (comparing, equality) keeps its own stack.
"""

from ottla.registry.schemas.avro.schema import Avro, AvroSchema

__all__ = ["Avro", "AvroSchema"]
