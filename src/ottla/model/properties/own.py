"""ottla's own settings: the limits Kafka leaves open, with safe defaults. Where Kafka has a name, that is used."""

from ottla.model.properties import grammar
from ottla.model.properties.property import BOOLEAN, DOUBLE, HIGH, INT, LIST, LONG, LOW, MEDIUM, STRING, Property

PROPERTIES: tuple[Property, ...] = (
    Property(
        "cluster.id",
        STRING,
        None,
        "The id a new data directory is formatted with; unset mints one, and an existing directory keeps its own.",
        MEDIUM,
    ),
    Property(
        "http.listeners",
        LIST,
        (),
        "Where the node answers /metrics, /healthz, /readyz and /version, each as http://host:port, or https:// with "
        "the key store of listener.name.https.ssl.*, else of ssl.*; none by default. Without a file it is "
        "http://127.0.0.1:9404. An address that is taken is done without.",
        MEDIUM,
        check=grammar.http_or_https_addresses,
    ),
    Property(
        "registry.listeners",
        LIST,
        (),
        "Where a schema registry beside this node answers, each as http://host:port; none by default. Without a file "
        "it is http://127.0.0.1:8081. Its own settings begin with registry. here.",
        MEDIUM,
        check=grammar.http_addresses,
    ),
    Property(
        "ottla.metrics.max.partitions",
        INT,
        10_000,
        "Partitions, topics and offsets of groups that have series of their own under /metrics, of each so many; all "
        "of them are in the sums.",
        MEDIUM,
        at_least=0,
    ),
    Property(
        "ottla.memory.bytes",
        LONG,
        268_435_456,
        "Memory the node plans with; a quarter of it is the default of queued.max.request.bytes.",
        MEDIUM,
        at_least=67_108_864,
    ),
    Property(
        "ottla.authorizer.cache.entries",
        INT,
        50_000,
        "Decisions of the authorizer that are remembered until the next change of an ACL, of all clients together.",
        LOW,
        at_least=1,
    ),
    Property(
        "ottla.audit.format",
        STRING,
        "kafka",
        "How refusals and logins are written to the logger kafka.authorizer.logger: kafka as in Kafka, json as JSON.",
        LOW,
        one_of=("kafka", "json"),
    ),
    Property(
        "ottla.max.in.flight.requests.per.connection",
        INT,
        5,
        "Unanswered requests of one connection before the node stops reading from it; a client may send more, they "
        "wait in the socket.",
        HIGH,
        at_least=1,
    ),
    Property(
        "ottla.connection.creation.rate.per.ip",
        INT,
        200,
        "New connections per second accepted from one address; more are closed at once. 0 sets no limit.",
        MEDIUM,
        at_least=0,
    ),
    Property(
        "ottla.tls.handshake.timeout.ms",
        INT,
        10_000,
        "How long a TLS handshake may take before the connection is closed.",
        MEDIUM,
        at_least=100,
    ),
    Property(
        "ottla.authentication.timeout.ms",
        INT,
        10_000,
        "Time a client has to log in on a SASL listener before its connection is closed.",
        MEDIUM,
        at_least=100,
    ),
    Property(
        "ottla.tls.half.open.handshakes.max",
        INT,
        1_000,
        "TLS handshakes under way at a time; with more, the oldest is given up.",
        MEDIUM,
        at_least=1,
    ),
    Property(
        "ottla.tls.reload.interval.ms",
        INT,
        60_000,
        "How often key and trust stores are looked at: one that was written anew is taken up without a restart.",
        MEDIUM,
        at_least=1_000,
    ),
    Property(
        "ottla.quota.buckets.max",
        INT,
        100_000,
        "Clients whose use is counted apart from each other, for each kind of quota; above it those that were not "
        "heard of for longest are forgotten.",
        LOW,
        at_least=100,
    ),
    Property(
        "ottla.sasl.oauthbearer.unsecured.tokens",
        BOOLEAN,
        False,
        "For tests, and on loopback only: OAUTHBEARER takes tokens that nobody signed, so everybody can be anybody.",
        LOW,
    ),
    Property(
        "ottla.sasl.oauthbearer.jwks.max.bytes",
        INT,
        1_048_576,
        "Largest set of signing keys that is read from sasl.oauthbearer.jwks.endpoint.url.",
        LOW,
        at_least=1_024,
    ),
    Property(
        "ottla.open.files.max",
        INT,
        0,
        "File descriptors the node uses at most; 0 takes the limit of the process. Segments beyond it are closed and "
        "reopened on use.",
        MEDIUM,
        at_least=0,
    ),
    Property(
        "ottla.write.buffer.bytes",
        INT,
        1_048_576,
        "Bytes of answers held for a slow reader before the node waits for it.",
        MEDIUM,
        at_least=4_096,
    ),
    Property(
        "ottla.slow.peer.timeout.ms",
        INT,
        60_000,
        "A peer that takes no byte of its answer for this long is disconnected.",
        MEDIUM,
        at_least=1,
    ),
    Property(
        "ottla.broker.disconnect.grace.ms",
        INT,
        300,
        "A broker whose connection to the active controller broke is fenced after this long unless it comes back, or "
        "once its address refuses connections; -1 waits for broker.session.timeout.ms.",
        HIGH,
        at_least=-1,
    ),
    Property(
        "ottla.broker.activation.grace.ms",
        INT,
        1_500,
        "How long a broker may take to find a newly elected controller before it is fenced; -1 waits for "
        "broker.session.timeout.ms. The node that led before gets ottla.broker.disconnect.grace.ms only.",
        MEDIUM,
        at_least=-1,
    ),
    Property(
        "ottla.metadata.news.wait.ms",
        INT,
        1_000,
        "Metadata that would name a leader whose connection to this broker has just broken waits this long for the "
        "controller's verdict; 0 answers at once, as Kafka does.",
        MEDIUM,
        at_least=0,
    ),
    Property(
        "ottla.quorum.reconnect.grace.ms",
        INT,
        100,
        "A voter whose connection to the quorum's leader broke asks for an election after this long, give or take a "
        "half; while connected, controller.quorum.fetch.timeout.ms counts.",
        MEDIUM,
        at_least=1,
    ),
    Property(
        "ottla.decompressed.batch.max.bytes",
        INT,
        67_108_864,
        "Largest size a batch may have after decompression, where a broker looks inside; a larger one is refused while "
        "it is being unpacked.",
        HIGH,
        at_least=1_048_576,
    ),
    Property(
        "ottla.decompression.max.ratio",
        INT,
        1_000,
        "How many times its compressed size a batch may unpack to, beyond ottla.decompression.ratio.exempt.bytes.",
        MEDIUM,
        at_least=1,
    ),
    Property(
        "ottla.decompression.ratio.exempt.bytes",
        INT,
        16_777_216,
        "Unpacked bytes up to which the ratio does not matter: by default what a producer could send in one request "
        "without compressing it.",
        LOW,
        at_least=0,
    ),
    Property(
        "ottla.producer.ids.max",
        INT,
        100_000,
        "Producer ids remembered for deduplication, and transactional ids; beyond it the one idle for longest is "
        "forgotten.",
        MEDIUM,
        at_least=1,
    ),
    Property(
        "ottla.transactions.open.max",
        INT,
        10_000,
        "Open transactions of one node; beyond it a new one has to wait, with CONCURRENT_TRANSACTIONS, until another "
        "ends.",
        MEDIUM,
        at_least=1,
    ),
    Property(
        "ottla.groups.max",
        INT,
        10_000,
        "Groups one node keeps; beyond it a new one is refused. Those that are empty and hold no offsets are "
        "forgotten before.",
        MEDIUM,
        at_least=1,
    ),
    Property(
        "ottla.disk.reserve.bytes",
        LONG,
        67_108_864,
        "Disk space held back and freed when the disk is full, so that metadata and markers can still be written; no "
        "more than a sixteenth of the disk.",
        MEDIUM,
        at_least=0,
    ),
    Property(
        "ottla.disk.low.water.bytes",
        LONG,
        1_073_741_824,
        "Produce is refused and fetch goes on when less than this is free, and less than ottla.disk.low.water.ratio.",
        HIGH,
        at_least=0,
    ),
    Property(
        "ottla.disk.low.water.ratio",
        DOUBLE,
        0.05,
        "Share of the disk that counts as low; the smaller of ratio and bytes decides, so that small disks work too.",
        MEDIUM,
        at_least=0,
        at_most=1,
    ),
    Property(
        "ottla.controlled.shutdown.timeout.ms",
        LONG,
        10_000,
        "How long a stopping broker waits for the controller to move its leaders before it goes without.",
        MEDIUM,
        at_least=0,
    ),
    Property(
        "ottla.log.level",
        STRING,
        "INFO",
        "What the node logs: messages of this level and above. While it runs, the levels of its loggers are changed as "
        "Kafka's are (KIP-412).",
        MEDIUM,
        one_of=("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"),
        ignore_case=True,
    ),
    Property(
        "ottla.log.format",
        STRING,
        "text",
        "How it logs to standard error: text, a line for people, or json, one object a line with time, level, node, "
        "logger, message and exception.",
        MEDIUM,
        one_of=("text", "json"),
        ignore_case=True,
    ),
)
