"""ottla beside Apache Kafka 4.3.1: the same workloads, interleaved, on one machine. `python -m bench` runs them all."""
