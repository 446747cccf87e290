"""Every name that Strimzi's dashboards and alerts ask a broker, a controller or kafka_exporter for.

Taken from packaging/examples/metrics of Strimzi: the expressions of the panels, the queries of the variables, and the
rules. What comes from the JVM, the container or the kubelet is not a node's to serve.
"""

from typing import Final

KAFKA_DASHBOARD: Final = (
    "kafka_cluster_partition_atminisr",
    "kafka_cluster_partition_replicascount",
    "kafka_cluster_partition_underminisr",
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_log_log_size",
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "kafka_server_brokertopicmetrics_bytesin_total",
    "kafka_server_brokertopicmetrics_bytesout_total",
    "kafka_server_brokertopicmetrics_failedfetchrequests_total",
    "kafka_server_brokertopicmetrics_failedproducerequests_total",
    "kafka_server_brokertopicmetrics_messagesin_total",
    "kafka_server_brokertopicmetrics_totalfetchrequests_total",
    "kafka_server_brokertopicmetrics_totalproducerequests_total",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "kafka_server_kafkaserver_linux_disk_read_bytes",
    "kafka_server_kafkaserver_linux_disk_write_bytes",
    "kafka_server_replicamanager_leadercount",
    "kafka_server_replicamanager_partitioncount",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_server_socket_server_metrics_connection_count",
    "process_cpu_seconds_total",
    "process_open_fds",
)
KRAFT_DASHBOARD: Final = (
    "kafka_server_raftchannelmetrics_incoming_byte_total",
    "kafka_server_raftchannelmetrics_outgoing_byte_total",
    "kafka_server_raftchannelmetrics_request_total",
    "kafka_server_raftchannelmetrics_response_total",
    "kafka_server_raftmetrics_append_records_rate",
    "kafka_server_raftmetrics_commit_latency_avg",
    "kafka_server_raftmetrics_current_epoch",
    "kafka_server_raftmetrics_current_leader",
    "kafka_server_raftmetrics_current_state",
    "kafka_server_raftmetrics_current_vote",
    "kafka_server_raftmetrics_fetch_records_rate",
    "kafka_server_raftmetrics_high_watermark",
    "kafka_server_raftmetrics_log_end_offset",
    "process_open_fds",
)
EXPORTER_DASHBOARD: Final = (
    "kafka_cluster_partition_atminisr",
    "kafka_cluster_partition_underminisr",
    "kafka_consumergroup_current_offset",
    "kafka_consumergroup_lag",
    "kafka_exporter_build_info",
    "kafka_topic_partition_current_offset",
    "kafka_topic_partition_in_sync_replica",
    "kafka_topic_partition_leader_is_preferred",
    "kafka_topic_partition_oldest_offset",
    "kafka_topic_partition_replicas",
    "kafka_topic_partition_under_replicated_partition",
    "kafka_topic_partitions",
)
GROUPS_DASHBOARD: Final = ("kafka_consumergroup_lag", "kafka_consumergroup_members")
"""strimzi-kafka-consumer-groups-lag.json."""
ALERTS: Final = (
    "kafka_consumergroup_lag",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_log_logmanager_offlinelogdirectorycount",
    "kafka_server_replicamanager_underminisrpartitioncount",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_topic_partition_current_offset",
    "kafka_topic_partition_under_replicated_partition",
)
KAFKA_EXPORTER: Final = (
    "kafka_broker_info",
    "kafka_brokers",
    "kafka_consumergroup_current_offset",
    "kafka_consumergroup_current_offset_sum",
    "kafka_consumergroup_lag",
    "kafka_consumergroup_lag_sum",
    "kafka_consumergroup_members",
    "kafka_topic_partition_current_offset",
    "kafka_topic_partition_in_sync_replica",
    "kafka_topic_partition_leader",
    "kafka_topic_partition_leader_is_preferred",
    "kafka_topic_partition_oldest_offset",
    "kafka_topic_partition_replicas",
    "kafka_topic_partition_under_replicated_partition",
    "kafka_topic_partitions",
)
"""What kafka_exporter itself serves of brokers, topics and groups."""

ASKED_FOR: Final = {
    "strimzi-kafka.json": KAFKA_DASHBOARD,
    "strimzi-kraft.json": KRAFT_DASHBOARD,
    "strimzi-kafka-exporter.json": EXPORTER_DASHBOARD,
    "strimzi-kafka-consumer-groups-lag.json": GROUPS_DASHBOARD,
    "alert rules": ALERTS,
    "kafka_exporter": KAFKA_EXPORTER,
}
