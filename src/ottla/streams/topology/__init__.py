"""The topology as data, whoever made it: the DSL or the Processor API (`topology`).

`graph` holds sources, processors, sinks and stores by name; what a processor does is an `operations` value, or a class
of the user's (`processor`). From the graph alone come Java's text of it (`describe`), the types between nodes
(`node_types`), serdes where none were named (`serde_defaults`) and the partitions that internal topics need
(`partition_counts`).
"""
