"""One module per workload. Each has a NAME and `run(context) -> list[Measure]`."""
