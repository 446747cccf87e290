"""A task: one sub-topology at work on one partition number, record by record. No I/O, no clock, no Spark.

`task` takes raw records and gives raw records. `inputs` chooses the next record as Kafka does, `nodes` connects the
`operators`, `stores` keep state over any map of bytes, `punctuation` knows which punctuator is due, `failures` asks the
handlers of the user, and `current` is what they all know of the moment. `chains` are nodes that remember nothing as one
loop, `bulk` the records that go through it together. The same code runs in the test driver and in Spark's workers.
"""
