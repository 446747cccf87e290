"""What went wrong with single records of queries: ksqlDB's processing log, a topic of JSON that is a stream at once.

`review` finds it, one record after another, without I/O: a key or value that cannot be read, a time that is none, an
expression that has no result (`failing`). `entries` says it in ksqlDB's shape; what records hold is left out unless
`ksql.logging.processing.rows.include` is true. Two write it: the server for push queries (`server.processing_log`), and
beside each persistent query on Spark `second_look`, which goes by what the query counted: Spark's own plan only counts
what it leaves out, so the records are read once more, by this process and only if there were any.
"""
