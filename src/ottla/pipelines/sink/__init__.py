"""Rows of Spark into topics, one transaction for each micro-batch.

`sink` runs a batch from the driver: `transaction` says who may write and how it ends, `markers` which batch is out.
Tasks pack rows into chunks before the shuffle (`packing`) and write them behind it (`writer`): `encoding` makes record
batches of whole columns, `delivery` keeps several requests under way. `exactly_once` is all this as one function for
`foreachBatch`.
"""
