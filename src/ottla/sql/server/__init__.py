"""A server of SQL: statements of many clients, kept in a topic, and queries that run.

`log` is the topic of statements: one partition, read from its beginning when a server starts and followed from then on.
What stands in it is the truth: a statement is decided twice, once before it is written (so that a wrong one never is)
and once when it is read, at the offset that names its query; only reading changes the catalog. Several servers with one
service id have one catalog therefore.

`engine` does what a statement asks for: it makes topics, writes rows (INSERT VALUES), and tells what there is
(`entities`). `results` computes queries of clients in this process, without Spark: rows of a topic one by one, or by
the driver that tests have where a query keeps state. `views` hold the newest row of each key of a table that was asked
for. `persistent` has queries that write topics run by a Spark host, which is started with the first of them.
"""
