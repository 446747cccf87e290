"""Files of a folder or of a store that speaks S3, written and read back: JSON lines, CSV, Avro, Parquet, raw bytes.

`config` has the keys of Confluent's S3 connector, `partitioners` say into which folder a record goes, `formats` what a
file holds, `stores` where files lie and how one appears whole or not at all, `sink` puts them together. `source` is
the way back: `places` which file is next and how far each was read, `contents` what a file holds.

Delivery: a file is named after the first offset in it (`orders+0+0000000042.json`). A batch that comes again begins at
the same offset and writes over what is named alike; what is not, since it ends elsewhere, was noted (`notes`) and is
deleted first: every record is there once. What a micro-batch holds is out at its end; `rotate.interval.ms` says how
long one gathers records that do not fill a file. Files of a batch appear in the order of their offsets, so a
source that reads meanwhile finds each behind the one before; its position lies in the transaction of its records.
"""
