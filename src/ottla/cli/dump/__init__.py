"""Readers of Kafka's files for `ottla dump-log`. They share nothing with `ottla.storage`: a check must not believe."""
