"""Node configurations that are good, and changes that break them with what we say about it.

The rule tests hold our words against them; the peer test asks Apache Kafka whether it refuses them too.
"""

COMBINED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
}
BROKER_ONLY = {
    "process.roles": "broker",
    "node.id": "2",
    "listeners": "PLAINTEXT://localhost:9092",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
}
CONTROLLER_ONLY = {
    "process.roles": "controller",
    "node.id": "1",
    "listeners": "CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
}

# The settings of the sample file that comes with Apache Kafka 4.
SAMPLE = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
#log.flush.interval.messages=10000
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


Broken = tuple[dict[str, str], dict[str, str], str]

# Kafka reads these files and fails a moment later, when it forms the quorum or binds the port.
REFUSED_LATER_BY_KAFKA: list[Broken] = [
    (COMBINED, {"controller.quorum.voters": "1@0.0.0.0:9093"}, "controller.quorum.voters: 0.0.0.0"),
    (
        COMBINED,
        {"listeners": "PLAINTEXT://a:99999,CONTROLLER://a:9093"},
        "listeners: 'PLAINTEXT://a:99999' is not a listener",
    ),
]

BROKEN: list[Broken] = [
    (COMBINED, {"broker.id": "2"}, "broker.id: 2 differs from node.id 1"),
    (COMBINED, {"controller.quorum.voters": ""}, "controller.quorum.voters: neither it nor"),
    (
        COMBINED,
        {"controller.quorum.voters": "2@localhost:9093"},
        "controller.quorum.voters: node.id 1 has the controller role",
    ),
    (BROKER_ONLY, {"node.id": "1"}, "controller.quorum.voters: node.id 1 is only a broker"),
    (
        COMBINED,
        {"listeners": "PLAINTEXT://localhost:9092"},
        "controller.listener.names: CONTROLLER is not among the listeners",
    ),
    (
        COMBINED,
        {"listeners": "PLAINTEXT://a:1,PLAINTEXT://b:2,CONTROLLER://c:3"},
        "listeners: two listeners have the same name",
    ),
    (COMBINED, {"listeners": "PLAINTEXT://a:9093,CONTROLLER://a:9093"}, "listeners: port 9093 is used twice"),
    (COMBINED, {"listeners": "nonsense,CONTROLLER://a:9093"}, "listeners: 'nonsense' is not a listener"),
    (
        COMBINED,
        {"listeners": "OTHER://a:9092,CONTROLLER://a:9093"},
        "listeners: no security protocol is known for the listener OTHER",
    ),
    (
        COMBINED,
        {"listener.security.protocol.map": "PLAINTEXT:PLAIN"},
        "listener.security.protocol.map: 'PLAIN' of PLAINTEXT",
    ),
    (COMBINED, {"listeners": "CONTROLLER://localhost:9093"}, "listeners: none is left for clients"),
    (COMBINED, {"advertised.listeners": "SSL://a:9092"}, "advertised.listeners: SSL is not among the listeners"),
    (
        COMBINED,
        {"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"},
        "advertised.listeners: PLAINTEXT://0.0.0.0:9092 cannot be reached",
    ),
    (
        COMBINED,
        {"listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://a:9093"},
        "advertised.listeners: PLAINTEXT://0.0.0.0:9092",
    ),
    (COMBINED, {"advertised.listeners": "what"}, "advertised.listeners: 'what' is not a listener"),
    (COMBINED, {"inter.broker.listener.name": "SSL"}, "inter.broker.listener.name: SSL is not advertised"),
    (
        COMBINED,
        {"inter.broker.listener.name": "NONE"},
        "inter.broker.listener.name: NONE is not in listener.security.protocol.map",
    ),
    (
        COMBINED,
        {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
        "inter.broker.listener.name: give it or security.inter.broker.protocol",
    ),
    (
        BROKER_ONLY,
        {"listeners": "PLAINTEXT://a:1,CONTROLLER://a:2"},
        "listeners: CONTROLLER://a:2 belongs to controllers",
    ),
    (BROKER_ONLY, {"controller.quorum.auto.join.enable": "true"}, "controller.quorum.auto.join.enable: only a node"),
    (
        BROKER_ONLY,
        {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"},
        "controller.listener.names: CONTROLLER has no entry in listener.security.protocol.map",
    ),
    (
        CONTROLLER_ONLY,
        {"listeners": "PLAINTEXT://a:1,CONTROLLER://a:2"},
        "listeners: PLAINTEXT://a:1 is not in controller.listener",
    ),
    (COMBINED, {"early.start.listeners": "LATE"}, "early.start.listeners: LATE is not among"),
    (COMBINED, {"cordoned.log.dirs": "/elsewhere"}, "cordoned.log.dirs: /elsewhere is not among log.dirs"),
    (COMBINED, {"cordoned.log.dirs": "*,/a"}, "cordoned.log.dirs: * means all"),
    (COMBINED, {"log.retention.ms": "0"}, "log.retention.ms: 0 is not allowed"),
    (COMBINED, {"log.retention.hours": "0"}, "log.retention.hours: 0 is not allowed"),
    (COMBINED, {"log.roll.ms": "0"}, "log.roll.ms: 0 is not allowed: 1 or more"),
    (COMBINED, {"log.cleaner.threads": "128"}, "log.cleaner.dedupe.buffer.size: 134217728 is not allowed"),
    (COMBINED, {"replica.fetch.wait.max.ms": "40000"}, "replica.socket.timeout.ms: 30000 is not allowed"),
    (COMBINED, {"queued.max.request.bytes": "1000"}, "queued.max.request.bytes: 1000 is not allowed"),
    (COMBINED, {"max.connections.per.ip": "0"}, "max.connections.per.ip: 0 is allowed only"),
    (COMBINED, {"max.connections.per.ip.overrides": "host"}, "max.connections.per.ip.overrides: 'host' is not a pair"),
    (
        COMBINED,
        {"connection.failed.authentication.delay.ms": "600000"},
        "connection.failed.authentication.delay.ms: 600000",
    ),
    (COMBINED, {"group.coordinator.rebalance.protocols": "consumer"}, "group.coordinator.rebalance.protocols: classic"),
    (COMBINED, {"group.consumer.session.timeout.ms": "1"}, "group.consumer.session.timeout.ms: 1 is not allowed: from"),
    (
        COMBINED,
        {"group.consumer.assignors": "uniform,com.example.Mine"},
        "group.consumer.assignors: com.example.Mine is no assignor of this version, which has uniform and range",
    ),
    (COMBINED, {"group.share.assignors": "com.example.Mine"}, "group.share.assignors: com.example.Mine is no"),
    (COMBINED, {"group.share.max.share.sessions": "1"}, "group.share.max.share.sessions: 1 is not allowed"),
    (
        COMBINED,
        {
            "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "inter.broker.listener.name": "PLAINTEXT",
        },
        "sasl.mechanism.inter.broker.protocol: GSSAPI is not in sasl.enabled.mechanisms",
    ),
]
