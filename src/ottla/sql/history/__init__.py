"""SQL over what topics hold already: one SELECT of Spark's, with all that Spark has (ORDER BY, CTE, OVER, any join).

`text` finds which streams, tables and topics a SELECT names and how far each is read, without Spark; `frames` makes a
data frame of each; `history` puts the two together. A topic's end is that of the moment when it is first read: what
comes later is not seen. Bounds: `FROM orders BETWEEN '2026-11-01' AND '2026-11-02'` by record time, or `FROM orders
BETWEEN 100 AND 200` by offset in every partition, both ends included.
"""
