"""ksqlDB's language on ottla's streams: a statement becomes the same topology that the DSL makes.

The way of a statement: `lexer` (text to tokens, with places) → `parser` (tokens to `tree`: a frozen dataclass for each
kind of statement and expression) → `analysis` (names, types, keys, formats: one rule, one file; refusals have a code, a
place, and say what would work) → `compile` (the typed query, told to `StreamsBuilder`: there is no second runner and no
second expression tree) → whoever runs topologies. `records` has what reads and writes the rows of a source. `catalog`
knows which sources, types and queries there are; it decides and replays, and is rebuilt from the log of statements.
`functions` and `formats` are declared one by one. `testing` runs statements over records in this process, without
broker and Spark.

Key and value are different places. What lands in the record's key is said by `analysis.keys` alone.
"""
