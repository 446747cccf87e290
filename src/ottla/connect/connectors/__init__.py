"""Connectors of the house, one file each. The rows here import nothing: code is loaded when a connector asks for it."""

from ottla.connect.plugins import Plugin, PluginType

_ROOM = "ottla.connect.connectors"

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
)
