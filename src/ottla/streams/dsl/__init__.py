"""Kafka Streams' DSL. A `StreamsBuilder` remembers what was said (`draft`) and numbers it as Kafka does; `build` makes
a topology of it. Streams (`kstream`), tables (`ktable`) and what was grouped (`grouped`) are handles of steps of the
draft; `options` are the values that go along, such as serdes and names.
"""
