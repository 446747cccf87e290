"""Which Spark operator each node of a topology becomes, and why. Pure: data in, data out, no Spark.

`planner` cuts the topology at repartition topics and decides for each part: columns and an aggregate of Spark's
(`aggregates`, where `columns` finds nothing in the way), a Python stage without state, or tasks with state (`plain`).
`plan` is the result, which `explain` prints.
"""
