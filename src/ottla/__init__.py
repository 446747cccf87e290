"""ottla: Apache Kafka's platform for Python people."""

__version__ = "0.1.0"
