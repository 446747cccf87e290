"""The keys, under the names that Confluent's S3 connector gives them."""

from typing import Annotated, Literal

from msgspec import Meta

from ottla.connect import spi


class StoreConfig(spi.Config, kw_only=True):
    """Where files lie and what they hold: the sink's and the source's."""

    directory: Annotated[str, Meta(description="The folder of files that lie on this machine.")] = ""
    s3_bucket_name: Annotated[str, Meta(description="The bucket of files that lie in a store.")] = ""
    s3_region: Annotated[str, Meta(description="Of the bucket.")] = "us-east-1"
    store_url: Annotated[str, Meta(description="Of a store that is not Amazon's, as http://host:9000.")] = ""
    aws_access_key_id: Annotated[str, Meta(description="Who asks; else what the surroundings say.")] = ""
    aws_secret_access_key: Annotated[spi.Secret, Meta(description="His secret.")] = ""
    topics_dir: Annotated[str, Meta(description="The folder under which each topic has one.")] = "topics"
    format_class: Annotated[
        str, Meta(description="JsonFormat, AvroFormat, ParquetFormat, ByteArrayFormat or CsvFormat.")
    ] = "io.confluent.connect.s3.format.json.JsonFormat"
    format_bytearray_extension: Annotated[str, Meta(description="Of files of raw bytes.")] = ".bin"
    format_bytearray_separator: Annotated[str, Meta(description="Behind each record of such a file.")] = "\n"
    file_delim: Annotated[str, Meta(description="Between the parts of a file's name.")] = "+"


class FilesConfig(StoreConfig, kw_only=True):
    """The sink's."""

    s3_compression_type: Annotated[Literal["none", "gzip"], Meta(description="Of JSON, CSV and raw bytes.")] = "none"
    avro_codec: Annotated[Literal["null", "deflate", "snappy"], Meta(description="Of Avro files.")] = "null"
    parquet_codec: Annotated[
        Literal["none", "gzip", "snappy", "lz4", "zstd"], Meta(description="Of Parquet files.")
    ] = "snappy"
    flush_size: Annotated[int, Meta(ge=1, description="Records in one file, at most.")] = 100_000
    flush_size_bytes: Annotated[int, Meta(ge=1, description="Bytes in one file, about, before it is compressed.")] = (
        128 << 20
    )
    rotate_interval_ms: Annotated[
        int, Meta(ge=-1, description="How long records are gathered, unless flush.size is reached; -1: as they come.")
    ] = -1
    rotate_schedule_interval_ms: Annotated[int, Meta(ge=-1, description="The same: both go by the clock.")] = -1
    partitioner_class: Annotated[
        str,
        Meta(
            description="DefaultPartitioner, FieldPartitioner, TimeBasedPartitioner, HourlyPartitioner, "
            "DailyPartitioner."
        ),
    ] = "io.confluent.connect.storage.partitioner.DefaultPartitioner"
    partition_field_name: Annotated[tuple[str, ...], Meta(description="Fields for FieldPartitioner.")] = ()
    partition_duration_ms: Annotated[int, Meta(description="Times are rounded down to it.")] = -1
    path_format: Annotated[str, Meta(description="Folders for TimeBasedPartitioner, as 'year'=YYYY/'month'=MM.")] = ""
    locale: Annotated[str, Meta(description="Taken; names of months are English.")] = "en"
    timezone: Annotated[str, Meta(description="Of folders by time, as Europe/Prague.")] = "UTC"
    timestamp_extractor: Annotated[
        Literal["Wallclock", "Record", "RecordField"], Meta(description="Which time a record has.")
    ] = "Record"
    timestamp_field: Annotated[str, Meta(description="For RecordField.")] = "timestamp"
    filename_offset_zero_pad_width: Annotated[int, Meta(ge=0, le=20, description="Digits of the offset.")] = 10
    behavior_on_null_values: Annotated[
        Literal["fail", "ignore"], Meta(description="What happens to records without a value.")
    ] = "fail"


class FilesSourceConfig(StoreConfig, kw_only=True):
    """The source's."""

    mode: Annotated[
        Literal["RESTORE_BACKUP", "GENERIC"],
        Meta(description="Files as the sink names them, to the topic of their folder; or any, by topic.regex.list."),
    ] = "RESTORE_BACKUP"
    topic_regex_list: Annotated[
        tuple[str, ...], Meta(description="For GENERIC: topic:regex of paths, the first that matches counts.")
    ] = ()
    s3_poll_interval_ms: (
        Annotated[int, Meta(ge=1, description="Between looks for new files; else a minute, and a second for a folder.")]
        | None
    ) = None
    record_batch_max_size: (
        Annotated[int, Meta(ge=1, description="Records of one read; else as many as go quickly.")] | None
    ) = None
    task_batch_size: Annotated[int, Meta(ge=1, description="Files opened in one read, at most.")] = 1_000
    file_discovery_starting_timestamp: Annotated[
        int, Meta(ge=0, description="Files that were last written before it, in ms since 1970, are left out.")
    ] = 0
    file_settle_ms: Annotated[
        int, Meta(ge=0, description="So long after its last write a file that is not whole may still become so.")
    ] = 10_000
    file_max_bytes: Annotated[int, Meta(ge=1, description="Of one file, also when it is unpacked.")] = 1 << 30
