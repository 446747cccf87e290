"""Topics as rows of Spark, in batches and as a stream.

`data_source` is the Python Data Source `ottla`; `options` reads what a user asks for, `positions` asks the brokers
where that begins and ends, `offsets` is the JSON of it in Spark's checkpoint, `batch_size` says how much of a backlog
one micro-batch takes. In the tasks `columns` makes Arrow of record batches, and `origins` numbers the records of a
batch, so that a result can find the headers of the record it comes of. `connector` chooses between this source and the
Kafka connector of Spark's JVM.
"""
