"""The families that a node serves: name, type, help. Where Kafka has a name for it, that is used, as the JMX exporter's
usual rules spell it; lags and offsets are named as kafka_exporter does."""

from typing import Final

from ottla.metrics.text import COUNTER, GAUGE, SUMMARY, UNTYPED, Family


def _gauge(name: str, text: str) -> Family:
    return Family(name, GAUGE, text)


def _counter(name: str, text: str) -> Family:
    return Family(name, COUNTER, text)


# ---- records and requests of clients, by topic; without a label for all topics together

_TOPIC: Final = "kafka_server_brokertopicmetrics_"
MESSAGES_IN: Final = _counter(f"{_TOPIC}messagesin_total", "Records appended by clients and coordinators.")
BYTES_IN: Final = _counter(f"{_TOPIC}bytesin_total", "Bytes of records appended by clients and coordinators.")
BYTES_OUT: Final = _counter(f"{_TOPIC}bytesout_total", "Bytes of records sent to clients.")
PRODUCES: Final = _counter(f"{_TOPIC}totalproducerequests_total", "Produce requests, for each partition they name.")
FETCHES: Final = _counter(f"{_TOPIC}totalfetchrequests_total", "Fetch requests, for each partition they look at.")
FAILED_PRODUCES: Final = _counter(f"{_TOPIC}failedproducerequests_total", "Produce requests refused, by partition.")
FAILED_FETCHES: Final = _counter(f"{_TOPIC}failedfetchrequests_total", "Fetch requests failed, by partition.")
REPLICATION_BYTES_IN: Final = _counter(f"{_TOPIC}replicationbytesin_total", "Bytes of records copied from leaders.")
REPLICATION_BYTES_OUT: Final = _counter(f"{_TOPIC}replicationbytesout_total", "Bytes of records sent to followers.")

# ---- replicas

_REPLICAS: Final = "kafka_server_replicamanager_"
LEADERS: Final = _gauge(f"{_REPLICAS}leadercount", "Partitions that this broker leads.")
PARTITIONS: Final = _gauge(f"{_REPLICAS}partitioncount", "Replicas on this broker.")
UNDER_REPLICATED: Final = _gauge(f"{_REPLICAS}underreplicatedpartitions", "Led here with replicas out of sync.")
UNDER_MIN_ISR: Final = _gauge(f"{_REPLICAS}underminisrpartitioncount", "Led here with fewer in sync than required.")
AT_MIN_ISR: Final = _gauge(f"{_REPLICAS}atminisrpartitioncount", "Led here with just as many in sync as required.")
OFFLINE_REPLICAS: Final = _gauge(f"{_REPLICAS}offlinereplicacount", "Replicas here whose log cannot be used.")
REASSIGNING: Final = _gauge(f"{_REPLICAS}reassigningpartitions", "Led here and on their way to other brokers.")
ISR_SHRINKS: Final = _counter(f"{_REPLICAS}isrshrinks_total", "Times that a replica went out of sync.")
ISR_EXPANDS: Final = _counter(f"{_REPLICAS}isrexpands_total", "Times that a replica came back in sync.")
FAILED_ISR_UPDATES: Final = _counter(f"{_REPLICAS}failedisrupdates_total", "Changes that the controller refused.")

_PARTITION: Final = "kafka_cluster_partition_"
PARTITION_UNDER_REPLICATED: Final = _gauge(f"{_PARTITION}underreplicated", "1 with replicas out of sync.")
PARTITION_IN_SYNC: Final = _gauge(f"{_PARTITION}insyncreplicascount", "Replicas in sync.")
PARTITION_REPLICAS: Final = _gauge(f"{_PARTITION}replicascount", "Replicas.")
PARTITION_UNDER_MIN_ISR: Final = _gauge(f"{_PARTITION}underminisr", "1 with fewer in sync than required.")
PARTITION_AT_MIN_ISR: Final = _gauge(f"{_PARTITION}atminisr", "1 with just as many in sync as required.")

_LOG: Final = "kafka_log_log_"
LOG_SIZE: Final = _gauge(f"{_LOG}size", "Bytes of a log.")
LOG_SEGMENTS: Final = _gauge(f"{_LOG}numlogsegments", "Segments of a log.")
LOG_START: Final = _gauge(f"{_LOG}logstartoffset", "First offset of a log.")
LOG_END: Final = _gauge(f"{_LOG}logendoffset", "The offset behind the last one of a log.")
OFFLINE_DIRECTORIES: Final = _gauge("kafka_log_logmanager_offlinelogdirectorycount", "Log directories that failed.")
DIRECTORY_OFFLINE: Final = _gauge("kafka_log_logmanager_logdirectoryoffline", "1 for a log directory that failed.")
UNCLEANABLE: Final = _gauge(
    "kafka_log_logcleanermanager_uncleanable_partitions_count", "Logs that compaction leaves alone, as it failed there."
)
CLEANING: Final = _gauge("ottla_log_cleaner_running", "Logs that are being compacted now.")

# ---- requests and connections

_REQUEST: Final = "kafka_network_requestmetrics_"
REQUESTS: Final = _counter(f"{_REQUEST}requests_total", "Requests, by API and version.")
REQUEST_ERRORS: Final = _counter(f"{_REQUEST}errors_total", "Answers that tell an error of the request as a whole.")
REQUEST_TIMES: Final = Family(
    f"{_REQUEST}totaltimems", SUMMARY, "Milliseconds from a request's arrival to its answer; quantiles are of late."
)
HANDLER_IDLE: Final = _gauge(
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", "Share of time in which the loop had no work."
)
NETWORK_IDLE: Final = _gauge(
    "kafka_network_socketserver_networkprocessoravgidle_percent", "Share of time in which the loop had no work."
)
_SOCKETS: Final = "kafka_server_socket_server_metrics_"
CONNECTIONS: Final = _gauge(f"{_SOCKETS}connection_count", "Open connections.")
SOCKET_BYTES_IN: Final = _counter(f"{_SOCKETS}incoming_byte_total", "Bytes received.")
SOCKET_BYTES_OUT: Final = _counter(f"{_SOCKETS}outgoing_byte_total", "Bytes sent.")
PURGATORY: Final = _gauge("kafka_server_delayedoperationpurgatory_purgatorysize", "Requests that wait.")
FETCH_SESSIONS: Final = _gauge("kafka_server_fetchsessioncache_numincrementalfetchsessions", "Fetch sessions.")
DISK_READ: Final = _gauge("kafka_server_kafkaserver_linux_disk_read_bytes", "Bytes this process had read from disks.")
DISK_WRITTEN: Final = _gauge("kafka_server_kafkaserver_linux_disk_write_bytes", "Bytes it had written to disks.")
BROKER_STATE: Final = _gauge("kafka_server_kafkaserver_brokerstate", "1 starting, 2 fenced, 3 running.")

# ---- the control plane

_CONTROLLER: Final = "kafka_controller_kafkacontroller_"
ACTIVE_CONTROLLERS: Final = _gauge(f"{_CONTROLLER}activecontrollercount", "1 on the active controller.")
OFFLINE_PARTITIONS: Final = _gauge(f"{_CONTROLLER}offlinepartitionscount", "Partitions without a leader.")
IMBALANCED: Final = _gauge(f"{_CONTROLLER}preferredreplicaimbalancecount", "Not led by the preferred replica.")
FENCED_BROKERS: Final = _gauge(f"{_CONTROLLER}fencedbrokercount", "Registered brokers that are fenced.")
ACTIVE_BROKERS: Final = _gauge(f"{_CONTROLLER}activebrokercount", "Registered brokers that are not fenced.")
GLOBAL_TOPICS: Final = _gauge(f"{_CONTROLLER}globaltopiccount", "Topics of the cluster.")
GLOBAL_PARTITIONS: Final = _gauge(f"{_CONTROLLER}globalpartitioncount", "Partitions of the cluster.")
APPLIED_OFFSET: Final = _gauge(f"{_CONTROLLER}lastappliedrecordoffset", "Metadata applied here.")
COMMITTED_OFFSET: Final = _gauge(f"{_CONTROLLER}lastcommittedrecordoffset", "Metadata known here to be committed.")
UNCLEAN_ELECTIONS: Final = _counter(
    "kafka_controller_controllerstats_uncleanleaderelections_total", "Leaders elected that were not in sync."
)
_METADATA: Final = "kafka_server_brokermetadatametrics_"
METADATA_OFFSET: Final = _gauge(f"{_METADATA}last_applied_record_offset", "Metadata applied here.")
METADATA_TIMESTAMP: Final = _gauge(f"{_METADATA}last_applied_record_timestamp", "When that metadata was written.")

_RAFT: Final = "kafka_server_raftmetrics_"
RAFT_STATE: Final = Family(f"{_RAFT}current_state", UNTYPED, "The role in the quorum, as a label.")
RAFT_LEADER: Final = _gauge(f"{_RAFT}current_leader", "The leader of the quorum; -1 if it is not known.")
RAFT_EPOCH: Final = _gauge(f"{_RAFT}current_epoch", "The epoch of the quorum.")
RAFT_VOTE: Final = _gauge(f"{_RAFT}current_vote", "Whom this node voted for in this epoch; -1 for nobody.")
RAFT_HIGH_WATERMARK: Final = _gauge(f"{_RAFT}high_watermark", "Committed up to here; -1 if it is not known.")
RAFT_LOG_END: Final = _gauge(f"{_RAFT}log_end_offset", "The end of the metadata log here.")
RAFT_LOG_END_EPOCH: Final = _gauge(f"{_RAFT}log_end_epoch", "The epoch of the last record of the metadata log here.")
RAFT_COMMIT_AVG: Final = _gauge(f"{_RAFT}commit_latency_avg", "Milliseconds from append to commit, of late.")
RAFT_COMMIT_MAX: Final = _gauge(f"{_RAFT}commit_latency_max", "The longest there was, in milliseconds.")
RAFT_APPEND_RATE: Final = _gauge(f"{_RAFT}append_records_rate", "Records a second appended as leader, of late.")
RAFT_FETCH_RATE: Final = _gauge(f"{_RAFT}fetch_records_rate", "Records a second fetched from the leader, of late.")
RAFT_VOTERS: Final = _gauge(f"{_RAFT}number_of_voters", "Voters of the quorum.")
_CHANNEL: Final = "kafka_server_raftchannelmetrics_"
RAFT_BYTES_IN: Final = _counter(f"{_CHANNEL}incoming_byte_total", "Bytes of answers from other members of the quorum.")
RAFT_BYTES_OUT: Final = _counter(f"{_CHANNEL}outgoing_byte_total", "Bytes of requests to other members of the quorum.")
RAFT_REQUESTS: Final = _counter(f"{_CHANNEL}request_total", "Requests to other members of the quorum.")
RAFT_RESPONSES: Final = _counter(f"{_CHANNEL}response_total", "Answers from other members of the quorum.")

# ---- quotas: the names that jmx_exporter's own example gives them, labels too

_QUOTA: Final = "kafka_server_quota_"
QUOTA_BYTES: Final = _gauge(f"{_QUOTA}byte_rate", "Bytes a second that a client with a quota produces or fetches.")
QUOTA_TIME: Final = _gauge(f"{_QUOTA}request_time", "Per cent of this node's time that a client with a quota takes.")
QUOTA_TOKENS: Final = _gauge(f"{_QUOTA}tokens", "Partitions that a client with a quota may change at once.")
QUOTA_THROTTLE: Final = _gauge(f"{_QUOTA}throttle_time", "Milliseconds for which a client is held, of late.")

# ---- groups

_GROUPS: Final = "kafka_coordinator_group_groupmetadatamanager_"
GROUPS: Final = _gauge(f"{_GROUPS}numgroups", "Groups that this broker coordinates.")
GROUP_OFFSETS: Final = _gauge(f"{_GROUPS}numoffsets", "Offsets that they have committed.")
GROUPS_BY_STATE: Final = _gauge(
    "kafka_coordinator_group_groupcoordinatormetrics_groupcount", "Groups that this broker coordinates."
)

# ---- kafka_exporter: told once in a cluster, by the leader, the coordinator or the active controller

BROKERS: Final = _gauge("kafka_brokers", "Brokers that are not fenced.")
BROKER_INFO: Final = _gauge("kafka_broker_info", "Where a broker listens, as labels.")
TOPIC_PARTITIONS: Final = _gauge("kafka_topic_partitions", "Partitions of a topic.")
_EXPORTED: Final = "kafka_topic_partition_"
CURRENT_OFFSET: Final = _gauge(f"{_EXPORTED}current_offset", "The offset that consumers may read up to.")
OLDEST_OFFSET: Final = _gauge(f"{_EXPORTED}oldest_offset", "The first offset that is kept.")
LEADER: Final = _gauge(f"{_EXPORTED}leader", "The broker that leads; -1 if none does.")
REPLICAS: Final = _gauge(f"{_EXPORTED}replicas", "Replicas.")
IN_SYNC: Final = _gauge(f"{_EXPORTED}in_sync_replica", "Replicas in sync.")
IS_PREFERRED: Final = _gauge(f"{_EXPORTED}leader_is_preferred", "1 if the preferred replica leads.")
EXPORTED_UNDER_REPLICATED: Final = _gauge(f"{_EXPORTED}under_replicated_partition", "1 with replicas out of sync.")
_LAG: Final = "kafka_consumergroup_"
GROUP_OFFSET: Final = _gauge(f"{_LAG}current_offset", "What a group has committed.")
GROUP_OFFSET_SUM: Final = _gauge(f"{_LAG}current_offset_sum", "The same, over the partitions of a topic.")
GROUP_LAG: Final = _gauge(f"{_LAG}lag", "Records behind what a group has committed.")
GROUP_LAG_SUM: Final = _gauge(f"{_LAG}lag_sum", "The same, over the partitions of a topic.")
GROUP_MEMBERS: Final = _gauge(f"{_LAG}members", "Members of a group.")
EXPORTER_INFO: Final = _gauge("kafka_exporter_build_info", "Which program serves kafka_exporter's names, as labels.")

# ---- the process

CPU_SECONDS: Final = _counter("process_cpu_seconds_total", "Processor time, user and system together.")
RESIDENT: Final = _gauge("process_resident_memory_bytes", "Resident memory.")
VIRTUAL: Final = _gauge("process_virtual_memory_bytes", "Virtual memory.")
OPEN_FDS: Final = _gauge("process_open_fds", "Open file descriptors.")
MAX_FDS: Final = _gauge("process_max_fds", "File descriptors that may be open.")
START_TIME: Final = _gauge("process_start_time_seconds", "When the process began, in seconds since 1970.")
THREADS: Final = _gauge("process_threads", "Threads of the process.")
PYTHON_INFO: Final = _gauge("python_info", "The interpreter, as labels.")
GC_COLLECTIONS: Final = _counter("python_gc_collections_total", "Garbage collections.")
GC_COLLECTED: Final = _counter("python_gc_objects_collected_total", "Objects that they found.")
GC_UNCOLLECTABLE: Final = _counter("python_gc_objects_uncollectable_total", "Objects that they could not free.")
BUILD_INFO: Final = _gauge("ottla_build_info", "The version of this node, as a label.")
LEFT_OUT: Final = _gauge(
    "ottla_metrics_left_out", "Partitions without series of their own, see ottla.metrics.max.partitions."
)
