"""Connectors of the house, one file each. The rows here import nothing: code is loaded when a connector asks for it."""

from ottla.connect.plugins import Plugin, PluginType

_ROOM = "ottla.connect.connectors"
_MIRROR = "org.apache.kafka.connect.mirror"
"""Mirroring is a room above this one, and loaded by name as every other connector."""

PLUGINS = (
    Plugin(
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
        PluginType.SOURCE,
        f"{_ROOM}.file_source:FileStreamSource",
    ),
    Plugin(
        "org.apache.kafka.connect.file.FileStreamSinkConnector",
        PluginType.SINK,
        f"{_ROOM}.file_sink:FileStreamSink",
    ),
    Plugin(
        "io.confluent.kafka.connect.datagen.DatagenConnector",
        PluginType.SOURCE,
        f"{_ROOM}.datagen:Datagen",
        ("datagen",),
    ),
    Plugin(
        "io.confluent.connect.http.HttpSinkConnector",
        PluginType.SINK,
        f"{_ROOM}.http_sink:HttpSink",
        ("io.aiven.kafka.connect.http.HttpSinkConnector", "http-sink"),
    ),
    Plugin(
        "io.confluent.connect.jdbc.JdbcSinkConnector",
        PluginType.SINK,
        f"{_ROOM}.jdbc.sink:JdbcSink",
        (
            "io.aiven.connect.jdbc.JdbcSinkConnector",
            "io.debezium.connector.jdbc.JdbcSinkConnector",
            "jdbc-sink",
        ),
    ),
    Plugin(
        "io.confluent.connect.jdbc.JdbcSourceConnector",
        PluginType.SOURCE,
        f"{_ROOM}.jdbc.source:JdbcSource",
        ("io.aiven.connect.jdbc.JdbcSourceConnector", "jdbc-source"),
    ),
    Plugin(
        "io.debezium.connector.postgresql.PostgresConnector",
        PluginType.SOURCE,
        f"{_ROOM}.postgresql.source:PostgresSource",
        ("postgres-cdc",),
    ),
    Plugin(
        "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector",
        PluginType.SINK,
        f"{_ROOM}.elasticsearch.sink:ElasticsearchSink",
        (
            "io.aiven.connect.elasticsearch.ElasticsearchSinkConnector",
            "io.aiven.kafka.connect.opensearch.OpensearchSinkConnector",
        ),
    ),
    Plugin(
        "io.confluent.connect.s3.S3SinkConnector",
        PluginType.SINK,
        f"{_ROOM}.files.sink:FilesSink",
        ("io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector", "files-sink"),
    ),
    Plugin(
        "io.confluent.connect.s3.source.S3SourceConnector",
        PluginType.SOURCE,
        f"{_ROOM}.files.source:FilesSource",
        ("files-source",),
        splits=True,
    ),
    Plugin(
        "io.delta.connect.DeltaSinkConnector",
        PluginType.SINK,
        f"{_ROOM}.tables.delta:DeltaSink",
        ("delta-sink",),
    ),
    Plugin(
        "org.apache.iceberg.connect.IcebergSinkConnector",
        PluginType.SINK,
        f"{_ROOM}.tables.iceberg:IcebergSink",
        ("io.tabular.iceberg.connect.IcebergSinkConnector", "iceberg-sink"),
    ),
    Plugin(f"{_MIRROR}.MirrorSourceConnector", PluginType.SOURCE, "ottla.mirror.source_connector:MirrorSource"),
    Plugin(
        f"{_MIRROR}.MirrorCheckpointConnector", PluginType.SOURCE, "ottla.mirror.checkpoint_connector:MirrorCheckpoint"
    ),
    Plugin(
        f"{_MIRROR}.MirrorHeartbeatConnector", PluginType.SOURCE, "ottla.mirror.heartbeat_connector:MirrorHeartbeat"
    ),
)
