"""Sink into files of a folder or of a store that speaks S3: JSON lines, CSV, Avro, Parquet, raw bytes.

`config` has the keys of Confluent's S3 connector, `partitioners` say into which folder a record goes, `formats` what a
file holds, `stores` where files lie and how one appears whole or not at all, `sink` puts them together.

Delivery: a file is named after the first offset in it (`orders+0+0000000042.json`). A batch that comes again begins at
the same offset and is cut at the same records, so it writes the same files over, the last one perhaps longer: every
record is there once. Nothing waits for a file to be full: what a micro-batch holds is out at its end, and
`rotate.interval.ms` says how long one gathers records.
"""
