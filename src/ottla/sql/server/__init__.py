"""A server of SQL: statements of many clients, kept in a topic, and queries that run.

`log` is the topic of statements: one partition, read from its beginning when a server starts and followed from then on.
What stands in it is the truth: a statement is decided twice, once before it is written (so that a wrong one never is)
and once when it is read, at the offset that names its query; only reading changes the catalog (`replaying`). Several
servers with one service id have one catalog therefore.

`engine` does what a statement asks for: `topics` are made, rows encoded (`writing`) and sent (INSERT VALUES), `telling`
says what there is (as `entities`; EXTENDED by `measuring`), `asserting` waits for what should be, `connectors` asks a
Connect worker. `selecting` has the queries of clients, which are computed in this process without Spark: rows of a
topic one by one, or by the driver that tests have where a query keeps state (`results`); history in the order of time
(`merging`). All of that is done in slices by threads, so that the loop answers others meanwhile, and has limits.
`views` hold the newest row of each key of a table that was asked for; `asked` finds the keys in a condition, and
`prepared` remembers the rest of the query, understood and compiled, for the next one who asks it. `looking` finds
topics that nobody declared, for queries of clients and DESCRIBE; the catalog never has them. `printing` is PRINT.
`persistent` has queries that write topics run by a Spark host, which is started with the first of them; so are SELECTs
over history (`history`), whose rows come back by a file. What push queries find wrong with records goes to the
`processing_log`.
"""
