"""Topologies on Spark Structured Streaming: source, sink, planner. Only this package imports pyspark."""
