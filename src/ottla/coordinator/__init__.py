"""Coordinators: groups and transactions, each a core over one partition of an internal topic.

Theory of operation. A shard (`shard` has its shape) decides a command at a given time into a reply, records in Kafka's
own formats (`records`) and effects; it is changed by `replay` alone, so that the log makes it again after a restart. A
reply that must wait for other members is parked under a token which a later decision answers. What a shard keeps beside
its records, such as deadlines, it changes through `undo`: a log that refuses the records of a command takes them back,
and nothing has happened. Who reads the clock, appends and sends is `runtime.coordinator`.
"""
