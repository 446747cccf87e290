"""The one door to Kafka's messages: `messages.ProduceRequest` and the rest, each imported when it is first asked for.

A node needs perhaps fifty of some 270 modules and the command line five, so nothing is loaded ahead. What is here at
once is small: which API keys and versions exist, and which class stands for which record.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.protocol.codec import DecodeError as DecodeError
from ottla.protocol.codec import EncodeError as EncodeError
from ottla.protocol.codec import Message as Message

if TYPE_CHECKING:
    # generated: imports
    from ottla.protocol._generated.abort_transaction_record import AbortTransactionRecord as AbortTransactionRecord
    from ottla.protocol._generated.access_control_entry_record import AccessControlEntryRecord as AccessControlEntryRecord
    from ottla.protocol._generated.add_offsets_to_txn_request import AddOffsetsToTxnRequest as AddOffsetsToTxnRequest
    from ottla.protocol._generated.add_offsets_to_txn_response import AddOffsetsToTxnResponse as AddOffsetsToTxnResponse
    from ottla.protocol._generated.add_partitions_to_txn_request import AddPartitionsToTxnRequest as AddPartitionsToTxnRequest
    from ottla.protocol._generated.add_partitions_to_txn_response import AddPartitionsToTxnResponse as AddPartitionsToTxnResponse
    from ottla.protocol._generated.add_raft_voter_request import AddRaftVoterRequest as AddRaftVoterRequest
    from ottla.protocol._generated.add_raft_voter_response import AddRaftVoterResponse as AddRaftVoterResponse
    from ottla.protocol._generated.allocate_producer_ids_request import AllocateProducerIdsRequest as AllocateProducerIdsRequest
    from ottla.protocol._generated.allocate_producer_ids_response import AllocateProducerIdsResponse as AllocateProducerIdsResponse
    from ottla.protocol._generated.alter_client_quotas_request import AlterClientQuotasRequest as AlterClientQuotasRequest
    from ottla.protocol._generated.alter_client_quotas_response import AlterClientQuotasResponse as AlterClientQuotasResponse
    from ottla.protocol._generated.alter_configs_request import AlterConfigsRequest as AlterConfigsRequest
    from ottla.protocol._generated.alter_configs_response import AlterConfigsResponse as AlterConfigsResponse
    from ottla.protocol._generated.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest as AlterPartitionReassignmentsRequest
    from ottla.protocol._generated.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse as AlterPartitionReassignmentsResponse
    from ottla.protocol._generated.alter_partition_request import AlterPartitionRequest as AlterPartitionRequest
    from ottla.protocol._generated.alter_partition_response import AlterPartitionResponse as AlterPartitionResponse
    from ottla.protocol._generated.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest as AlterReplicaLogDirsRequest
    from ottla.protocol._generated.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse as AlterReplicaLogDirsResponse
    from ottla.protocol._generated.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest as AlterShareGroupOffsetsRequest
    from ottla.protocol._generated.alter_share_group_offsets_response import AlterShareGroupOffsetsResponse as AlterShareGroupOffsetsResponse
    from ottla.protocol._generated.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest as AlterUserScramCredentialsRequest
    from ottla.protocol._generated.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse as AlterUserScramCredentialsResponse
    from ottla.protocol._generated.api_versions_request import ApiVersionsRequest as ApiVersionsRequest
    from ottla.protocol._generated.api_versions_response import ApiVersionsResponse as ApiVersionsResponse
    from ottla.protocol._generated.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest as AssignReplicasToDirsRequest
    from ottla.protocol._generated.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse as AssignReplicasToDirsResponse
    from ottla.protocol._generated.begin_quorum_epoch_request import BeginQuorumEpochRequest as BeginQuorumEpochRequest
    from ottla.protocol._generated.begin_quorum_epoch_response import BeginQuorumEpochResponse as BeginQuorumEpochResponse
    from ottla.protocol._generated.begin_transaction_record import BeginTransactionRecord as BeginTransactionRecord
    from ottla.protocol._generated.broker_heartbeat_request import BrokerHeartbeatRequest as BrokerHeartbeatRequest
    from ottla.protocol._generated.broker_heartbeat_response import BrokerHeartbeatResponse as BrokerHeartbeatResponse
    from ottla.protocol._generated.broker_registration_change_record import BrokerRegistrationChangeRecord as BrokerRegistrationChangeRecord
    from ottla.protocol._generated.broker_registration_request import BrokerRegistrationRequest as BrokerRegistrationRequest
    from ottla.protocol._generated.broker_registration_response import BrokerRegistrationResponse as BrokerRegistrationResponse
    from ottla.protocol._generated.clear_elr_record import ClearElrRecord as ClearElrRecord
    from ottla.protocol._generated.client_quota_record import ClientQuotaRecord as ClientQuotaRecord
    from ottla.protocol._generated.config_record import ConfigRecord as ConfigRecord
    from ottla.protocol._generated.consumer_group_current_member_assignment_key import ConsumerGroupCurrentMemberAssignmentKey as ConsumerGroupCurrentMemberAssignmentKey
    from ottla.protocol._generated.consumer_group_current_member_assignment_value import ConsumerGroupCurrentMemberAssignmentValue as ConsumerGroupCurrentMemberAssignmentValue
    from ottla.protocol._generated.consumer_group_describe_request import ConsumerGroupDescribeRequest as ConsumerGroupDescribeRequest
    from ottla.protocol._generated.consumer_group_describe_response import ConsumerGroupDescribeResponse as ConsumerGroupDescribeResponse
    from ottla.protocol._generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest as ConsumerGroupHeartbeatRequest
    from ottla.protocol._generated.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse as ConsumerGroupHeartbeatResponse
    from ottla.protocol._generated.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey as ConsumerGroupMemberMetadataKey
    from ottla.protocol._generated.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue as ConsumerGroupMemberMetadataValue
    from ottla.protocol._generated.consumer_group_metadata_key import ConsumerGroupMetadataKey as ConsumerGroupMetadataKey
    from ottla.protocol._generated.consumer_group_metadata_value import ConsumerGroupMetadataValue as ConsumerGroupMetadataValue
    from ottla.protocol._generated.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey as ConsumerGroupPartitionMetadataKey
    from ottla.protocol._generated.consumer_group_partition_metadata_value import ConsumerGroupPartitionMetadataValue as ConsumerGroupPartitionMetadataValue
    from ottla.protocol._generated.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey as ConsumerGroupRegularExpressionKey
    from ottla.protocol._generated.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue as ConsumerGroupRegularExpressionValue
    from ottla.protocol._generated.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey as ConsumerGroupTargetAssignmentMemberKey
    from ottla.protocol._generated.consumer_group_target_assignment_member_value import ConsumerGroupTargetAssignmentMemberValue as ConsumerGroupTargetAssignmentMemberValue
    from ottla.protocol._generated.consumer_group_target_assignment_metadata_key import ConsumerGroupTargetAssignmentMetadataKey as ConsumerGroupTargetAssignmentMetadataKey
    from ottla.protocol._generated.consumer_group_target_assignment_metadata_value import ConsumerGroupTargetAssignmentMetadataValue as ConsumerGroupTargetAssignmentMetadataValue
    from ottla.protocol._generated.consumer_protocol_assignment import ConsumerProtocolAssignment as ConsumerProtocolAssignment
    from ottla.protocol._generated.consumer_protocol_subscription import ConsumerProtocolSubscription as ConsumerProtocolSubscription
    from ottla.protocol._generated.control_record_type_schema import ControlRecordTypeSchema as ControlRecordTypeSchema
    from ottla.protocol._generated.controller_registration_request import ControllerRegistrationRequest as ControllerRegistrationRequest
    from ottla.protocol._generated.controller_registration_response import ControllerRegistrationResponse as ControllerRegistrationResponse
    from ottla.protocol._generated.create_acls_request import CreateAclsRequest as CreateAclsRequest
    from ottla.protocol._generated.create_acls_response import CreateAclsResponse as CreateAclsResponse
    from ottla.protocol._generated.create_delegation_token_request import CreateDelegationTokenRequest as CreateDelegationTokenRequest
    from ottla.protocol._generated.create_delegation_token_response import CreateDelegationTokenResponse as CreateDelegationTokenResponse
    from ottla.protocol._generated.create_partitions_request import CreatePartitionsRequest as CreatePartitionsRequest
    from ottla.protocol._generated.create_partitions_response import CreatePartitionsResponse as CreatePartitionsResponse
    from ottla.protocol._generated.create_topics_request import CreateTopicsRequest as CreateTopicsRequest
    from ottla.protocol._generated.create_topics_response import CreateTopicsResponse as CreateTopicsResponse
    from ottla.protocol._generated.default_principal_data import DefaultPrincipalData as DefaultPrincipalData
    from ottla.protocol._generated.delegation_token_record import DelegationTokenRecord as DelegationTokenRecord
    from ottla.protocol._generated.delete_acls_request import DeleteAclsRequest as DeleteAclsRequest
    from ottla.protocol._generated.delete_acls_response import DeleteAclsResponse as DeleteAclsResponse
    from ottla.protocol._generated.delete_groups_request import DeleteGroupsRequest as DeleteGroupsRequest
    from ottla.protocol._generated.delete_groups_response import DeleteGroupsResponse as DeleteGroupsResponse
    from ottla.protocol._generated.delete_records_request import DeleteRecordsRequest as DeleteRecordsRequest
    from ottla.protocol._generated.delete_records_response import DeleteRecordsResponse as DeleteRecordsResponse
    from ottla.protocol._generated.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest as DeleteShareGroupOffsetsRequest
    from ottla.protocol._generated.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponse as DeleteShareGroupOffsetsResponse
    from ottla.protocol._generated.delete_share_group_state_request import DeleteShareGroupStateRequest as DeleteShareGroupStateRequest
    from ottla.protocol._generated.delete_share_group_state_response import DeleteShareGroupStateResponse as DeleteShareGroupStateResponse
    from ottla.protocol._generated.delete_topics_request import DeleteTopicsRequest as DeleteTopicsRequest
    from ottla.protocol._generated.delete_topics_response import DeleteTopicsResponse as DeleteTopicsResponse
    from ottla.protocol._generated.describe_acls_request import DescribeAclsRequest as DescribeAclsRequest
    from ottla.protocol._generated.describe_acls_response import DescribeAclsResponse as DescribeAclsResponse
    from ottla.protocol._generated.describe_client_quotas_request import DescribeClientQuotasRequest as DescribeClientQuotasRequest
    from ottla.protocol._generated.describe_client_quotas_response import DescribeClientQuotasResponse as DescribeClientQuotasResponse
    from ottla.protocol._generated.describe_cluster_request import DescribeClusterRequest as DescribeClusterRequest
    from ottla.protocol._generated.describe_cluster_response import DescribeClusterResponse as DescribeClusterResponse
    from ottla.protocol._generated.describe_configs_request import DescribeConfigsRequest as DescribeConfigsRequest
    from ottla.protocol._generated.describe_configs_response import DescribeConfigsResponse as DescribeConfigsResponse
    from ottla.protocol._generated.describe_delegation_token_request import DescribeDelegationTokenRequest as DescribeDelegationTokenRequest
    from ottla.protocol._generated.describe_delegation_token_response import DescribeDelegationTokenResponse as DescribeDelegationTokenResponse
    from ottla.protocol._generated.describe_groups_request import DescribeGroupsRequest as DescribeGroupsRequest
    from ottla.protocol._generated.describe_groups_response import DescribeGroupsResponse as DescribeGroupsResponse
    from ottla.protocol._generated.describe_log_dirs_request import DescribeLogDirsRequest as DescribeLogDirsRequest
    from ottla.protocol._generated.describe_log_dirs_response import DescribeLogDirsResponse as DescribeLogDirsResponse
    from ottla.protocol._generated.describe_producers_request import DescribeProducersRequest as DescribeProducersRequest
    from ottla.protocol._generated.describe_producers_response import DescribeProducersResponse as DescribeProducersResponse
    from ottla.protocol._generated.describe_quorum_request import DescribeQuorumRequest as DescribeQuorumRequest
    from ottla.protocol._generated.describe_quorum_response import DescribeQuorumResponse as DescribeQuorumResponse
    from ottla.protocol._generated.describe_share_group_offsets_request import DescribeShareGroupOffsetsRequest as DescribeShareGroupOffsetsRequest
    from ottla.protocol._generated.describe_share_group_offsets_response import DescribeShareGroupOffsetsResponse as DescribeShareGroupOffsetsResponse
    from ottla.protocol._generated.describe_topic_partitions_request import DescribeTopicPartitionsRequest as DescribeTopicPartitionsRequest
    from ottla.protocol._generated.describe_topic_partitions_response import DescribeTopicPartitionsResponse as DescribeTopicPartitionsResponse
    from ottla.protocol._generated.describe_transactions_request import DescribeTransactionsRequest as DescribeTransactionsRequest
    from ottla.protocol._generated.describe_transactions_response import DescribeTransactionsResponse as DescribeTransactionsResponse
    from ottla.protocol._generated.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest as DescribeUserScramCredentialsRequest
    from ottla.protocol._generated.describe_user_scram_credentials_response import DescribeUserScramCredentialsResponse as DescribeUserScramCredentialsResponse
    from ottla.protocol._generated.elect_leaders_request import ElectLeadersRequest as ElectLeadersRequest
    from ottla.protocol._generated.elect_leaders_response import ElectLeadersResponse as ElectLeadersResponse
    from ottla.protocol._generated.end_quorum_epoch_request import EndQuorumEpochRequest as EndQuorumEpochRequest
    from ottla.protocol._generated.end_quorum_epoch_response import EndQuorumEpochResponse as EndQuorumEpochResponse
    from ottla.protocol._generated.end_transaction_record import EndTransactionRecord as EndTransactionRecord
    from ottla.protocol._generated.end_txn_marker import EndTxnMarker as EndTxnMarker
    from ottla.protocol._generated.end_txn_request import EndTxnRequest as EndTxnRequest
    from ottla.protocol._generated.end_txn_response import EndTxnResponse as EndTxnResponse
    from ottla.protocol._generated.envelope_request import EnvelopeRequest as EnvelopeRequest
    from ottla.protocol._generated.envelope_response import EnvelopeResponse as EnvelopeResponse
    from ottla.protocol._generated.expire_delegation_token_request import ExpireDelegationTokenRequest as ExpireDelegationTokenRequest
    from ottla.protocol._generated.expire_delegation_token_response import ExpireDelegationTokenResponse as ExpireDelegationTokenResponse
    from ottla.protocol._generated.feature_level_record import FeatureLevelRecord as FeatureLevelRecord
    from ottla.protocol._generated.fence_broker_record import FenceBrokerRecord as FenceBrokerRecord
    from ottla.protocol._generated.fetch_request import FetchRequest as FetchRequest
    from ottla.protocol._generated.fetch_response import FetchResponse as FetchResponse
    from ottla.protocol._generated.fetch_snapshot_request import FetchSnapshotRequest as FetchSnapshotRequest
    from ottla.protocol._generated.fetch_snapshot_response import FetchSnapshotResponse as FetchSnapshotResponse
    from ottla.protocol._generated.find_coordinator_request import FindCoordinatorRequest as FindCoordinatorRequest
    from ottla.protocol._generated.find_coordinator_response import FindCoordinatorResponse as FindCoordinatorResponse
    from ottla.protocol._generated.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest as GetTelemetrySubscriptionsRequest
    from ottla.protocol._generated.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse as GetTelemetrySubscriptionsResponse
    from ottla.protocol._generated.group_metadata_key import GroupMetadataKey as GroupMetadataKey
    from ottla.protocol._generated.group_metadata_value import GroupMetadataValue as GroupMetadataValue
    from ottla.protocol._generated.heartbeat_request import HeartbeatRequest as HeartbeatRequest
    from ottla.protocol._generated.heartbeat_response import HeartbeatResponse as HeartbeatResponse
    from ottla.protocol._generated.incremental_alter_configs_request import IncrementalAlterConfigsRequest as IncrementalAlterConfigsRequest
    from ottla.protocol._generated.incremental_alter_configs_response import IncrementalAlterConfigsResponse as IncrementalAlterConfigsResponse
    from ottla.protocol._generated.init_producer_id_request import InitProducerIdRequest as InitProducerIdRequest
    from ottla.protocol._generated.init_producer_id_response import InitProducerIdResponse as InitProducerIdResponse
    from ottla.protocol._generated.initialize_share_group_state_request import InitializeShareGroupStateRequest as InitializeShareGroupStateRequest
    from ottla.protocol._generated.initialize_share_group_state_response import InitializeShareGroupStateResponse as InitializeShareGroupStateResponse
    from ottla.protocol._generated.join_group_request import JoinGroupRequest as JoinGroupRequest
    from ottla.protocol._generated.join_group_response import JoinGroupResponse as JoinGroupResponse
    from ottla.protocol._generated.kraft_version_record import KRaftVersionRecord as KRaftVersionRecord
    from ottla.protocol._generated.leader_change_message import LeaderChangeMessage as LeaderChangeMessage
    from ottla.protocol._generated.leave_group_request import LeaveGroupRequest as LeaveGroupRequest
    from ottla.protocol._generated.leave_group_response import LeaveGroupResponse as LeaveGroupResponse
    from ottla.protocol._generated.legacy_offset_commit_key import LegacyOffsetCommitKey as LegacyOffsetCommitKey
    from ottla.protocol._generated.legacy_offset_commit_value import LegacyOffsetCommitValue as LegacyOffsetCommitValue
    from ottla.protocol._generated.list_config_resources_request import ListConfigResourcesRequest as ListConfigResourcesRequest
    from ottla.protocol._generated.list_config_resources_response import ListConfigResourcesResponse as ListConfigResourcesResponse
    from ottla.protocol._generated.list_groups_request import ListGroupsRequest as ListGroupsRequest
    from ottla.protocol._generated.list_groups_response import ListGroupsResponse as ListGroupsResponse
    from ottla.protocol._generated.list_offsets_request import ListOffsetsRequest as ListOffsetsRequest
    from ottla.protocol._generated.list_offsets_response import ListOffsetsResponse as ListOffsetsResponse
    from ottla.protocol._generated.list_partition_reassignments_request import ListPartitionReassignmentsRequest as ListPartitionReassignmentsRequest
    from ottla.protocol._generated.list_partition_reassignments_response import ListPartitionReassignmentsResponse as ListPartitionReassignmentsResponse
    from ottla.protocol._generated.list_transactions_request import ListTransactionsRequest as ListTransactionsRequest
    from ottla.protocol._generated.list_transactions_response import ListTransactionsResponse as ListTransactionsResponse
    from ottla.protocol._generated.metadata_request import MetadataRequest as MetadataRequest
    from ottla.protocol._generated.metadata_response import MetadataResponse as MetadataResponse
    from ottla.protocol._generated.no_op_record import NoOpRecord as NoOpRecord
    from ottla.protocol._generated.offset_commit_key import OffsetCommitKey as OffsetCommitKey
    from ottla.protocol._generated.offset_commit_request import OffsetCommitRequest as OffsetCommitRequest
    from ottla.protocol._generated.offset_commit_response import OffsetCommitResponse as OffsetCommitResponse
    from ottla.protocol._generated.offset_commit_value import OffsetCommitValue as OffsetCommitValue
    from ottla.protocol._generated.offset_delete_request import OffsetDeleteRequest as OffsetDeleteRequest
    from ottla.protocol._generated.offset_delete_response import OffsetDeleteResponse as OffsetDeleteResponse
    from ottla.protocol._generated.offset_fetch_request import OffsetFetchRequest as OffsetFetchRequest
    from ottla.protocol._generated.offset_fetch_response import OffsetFetchResponse as OffsetFetchResponse
    from ottla.protocol._generated.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest as OffsetForLeaderEpochRequest
    from ottla.protocol._generated.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse as OffsetForLeaderEpochResponse
    from ottla.protocol._generated.partition_change_record import PartitionChangeRecord as PartitionChangeRecord
    from ottla.protocol._generated.partition_record import PartitionRecord as PartitionRecord
    from ottla.protocol._generated.produce_request import ProduceRequest as ProduceRequest
    from ottla.protocol._generated.produce_response import ProduceResponse as ProduceResponse
    from ottla.protocol._generated.producer_ids_record import ProducerIdsRecord as ProducerIdsRecord
    from ottla.protocol._generated.producer_snapshot import ProducerSnapshot as ProducerSnapshot
    from ottla.protocol._generated.push_telemetry_request import PushTelemetryRequest as PushTelemetryRequest
    from ottla.protocol._generated.push_telemetry_response import PushTelemetryResponse as PushTelemetryResponse
    from ottla.protocol._generated.quorum_state_data import QuorumStateData as QuorumStateData
    from ottla.protocol._generated.read_share_group_state_request import ReadShareGroupStateRequest as ReadShareGroupStateRequest
    from ottla.protocol._generated.read_share_group_state_response import ReadShareGroupStateResponse as ReadShareGroupStateResponse
    from ottla.protocol._generated.read_share_group_state_summary_request import ReadShareGroupStateSummaryRequest as ReadShareGroupStateSummaryRequest
    from ottla.protocol._generated.read_share_group_state_summary_response import ReadShareGroupStateSummaryResponse as ReadShareGroupStateSummaryResponse
    from ottla.protocol._generated.register_broker_record import RegisterBrokerRecord as RegisterBrokerRecord
    from ottla.protocol._generated.register_controller_record import RegisterControllerRecord as RegisterControllerRecord
    from ottla.protocol._generated.remote_log_segment_metadata_record import RemoteLogSegmentMetadataRecord as RemoteLogSegmentMetadataRecord
    from ottla.protocol._generated.remote_log_segment_metadata_snapshot_record import RemoteLogSegmentMetadataSnapshotRecord as RemoteLogSegmentMetadataSnapshotRecord
    from ottla.protocol._generated.remote_log_segment_metadata_update_record import RemoteLogSegmentMetadataUpdateRecord as RemoteLogSegmentMetadataUpdateRecord
    from ottla.protocol._generated.remote_partition_delete_metadata_record import RemotePartitionDeleteMetadataRecord as RemotePartitionDeleteMetadataRecord
    from ottla.protocol._generated.remove_access_control_entry_record import RemoveAccessControlEntryRecord as RemoveAccessControlEntryRecord
    from ottla.protocol._generated.remove_delegation_token_record import RemoveDelegationTokenRecord as RemoveDelegationTokenRecord
    from ottla.protocol._generated.remove_raft_voter_request import RemoveRaftVoterRequest as RemoveRaftVoterRequest
    from ottla.protocol._generated.remove_raft_voter_response import RemoveRaftVoterResponse as RemoveRaftVoterResponse
    from ottla.protocol._generated.remove_topic_record import RemoveTopicRecord as RemoveTopicRecord
    from ottla.protocol._generated.remove_user_scram_credential_record import RemoveUserScramCredentialRecord as RemoveUserScramCredentialRecord
    from ottla.protocol._generated.renew_delegation_token_request import RenewDelegationTokenRequest as RenewDelegationTokenRequest
    from ottla.protocol._generated.renew_delegation_token_response import RenewDelegationTokenResponse as RenewDelegationTokenResponse
    from ottla.protocol._generated.request_header import RequestHeader as RequestHeader
    from ottla.protocol._generated.response_header import ResponseHeader as ResponseHeader
    from ottla.protocol._generated.sasl_authenticate_request import SaslAuthenticateRequest as SaslAuthenticateRequest
    from ottla.protocol._generated.sasl_authenticate_response import SaslAuthenticateResponse as SaslAuthenticateResponse
    from ottla.protocol._generated.sasl_handshake_request import SaslHandshakeRequest as SaslHandshakeRequest
    from ottla.protocol._generated.sasl_handshake_response import SaslHandshakeResponse as SaslHandshakeResponse
    from ottla.protocol._generated.share_acknowledge_request import ShareAcknowledgeRequest as ShareAcknowledgeRequest
    from ottla.protocol._generated.share_acknowledge_response import ShareAcknowledgeResponse as ShareAcknowledgeResponse
    from ottla.protocol._generated.share_fetch_request import ShareFetchRequest as ShareFetchRequest
    from ottla.protocol._generated.share_fetch_response import ShareFetchResponse as ShareFetchResponse
    from ottla.protocol._generated.share_group_current_member_assignment_key import ShareGroupCurrentMemberAssignmentKey as ShareGroupCurrentMemberAssignmentKey
    from ottla.protocol._generated.share_group_current_member_assignment_value import ShareGroupCurrentMemberAssignmentValue as ShareGroupCurrentMemberAssignmentValue
    from ottla.protocol._generated.share_group_describe_request import ShareGroupDescribeRequest as ShareGroupDescribeRequest
    from ottla.protocol._generated.share_group_describe_response import ShareGroupDescribeResponse as ShareGroupDescribeResponse
    from ottla.protocol._generated.share_group_heartbeat_request import ShareGroupHeartbeatRequest as ShareGroupHeartbeatRequest
    from ottla.protocol._generated.share_group_heartbeat_response import ShareGroupHeartbeatResponse as ShareGroupHeartbeatResponse
    from ottla.protocol._generated.share_group_member_metadata_key import ShareGroupMemberMetadataKey as ShareGroupMemberMetadataKey
    from ottla.protocol._generated.share_group_member_metadata_value import ShareGroupMemberMetadataValue as ShareGroupMemberMetadataValue
    from ottla.protocol._generated.share_group_metadata_key import ShareGroupMetadataKey as ShareGroupMetadataKey
    from ottla.protocol._generated.share_group_metadata_value import ShareGroupMetadataValue as ShareGroupMetadataValue
    from ottla.protocol._generated.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey as ShareGroupStatePartitionMetadataKey
    from ottla.protocol._generated.share_group_state_partition_metadata_value import ShareGroupStatePartitionMetadataValue as ShareGroupStatePartitionMetadataValue
    from ottla.protocol._generated.share_group_target_assignment_member_key import ShareGroupTargetAssignmentMemberKey as ShareGroupTargetAssignmentMemberKey
    from ottla.protocol._generated.share_group_target_assignment_member_value import ShareGroupTargetAssignmentMemberValue as ShareGroupTargetAssignmentMemberValue
    from ottla.protocol._generated.share_group_target_assignment_metadata_key import ShareGroupTargetAssignmentMetadataKey as ShareGroupTargetAssignmentMetadataKey
    from ottla.protocol._generated.share_group_target_assignment_metadata_value import ShareGroupTargetAssignmentMetadataValue as ShareGroupTargetAssignmentMetadataValue
    from ottla.protocol._generated.share_snapshot_key import ShareSnapshotKey as ShareSnapshotKey
    from ottla.protocol._generated.share_snapshot_value import ShareSnapshotValue as ShareSnapshotValue
    from ottla.protocol._generated.share_update_key import ShareUpdateKey as ShareUpdateKey
    from ottla.protocol._generated.share_update_value import ShareUpdateValue as ShareUpdateValue
    from ottla.protocol._generated.snapshot_footer_record import SnapshotFooterRecord as SnapshotFooterRecord
    from ottla.protocol._generated.snapshot_header_record import SnapshotHeaderRecord as SnapshotHeaderRecord
    from ottla.protocol._generated.streams_group_current_member_assignment_key import StreamsGroupCurrentMemberAssignmentKey as StreamsGroupCurrentMemberAssignmentKey
    from ottla.protocol._generated.streams_group_current_member_assignment_value import StreamsGroupCurrentMemberAssignmentValue as StreamsGroupCurrentMemberAssignmentValue
    from ottla.protocol._generated.streams_group_describe_request import StreamsGroupDescribeRequest as StreamsGroupDescribeRequest
    from ottla.protocol._generated.streams_group_describe_response import StreamsGroupDescribeResponse as StreamsGroupDescribeResponse
    from ottla.protocol._generated.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest as StreamsGroupHeartbeatRequest
    from ottla.protocol._generated.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse as StreamsGroupHeartbeatResponse
    from ottla.protocol._generated.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey as StreamsGroupMemberMetadataKey
    from ottla.protocol._generated.streams_group_member_metadata_value import StreamsGroupMemberMetadataValue as StreamsGroupMemberMetadataValue
    from ottla.protocol._generated.streams_group_metadata_key import StreamsGroupMetadataKey as StreamsGroupMetadataKey
    from ottla.protocol._generated.streams_group_metadata_value import StreamsGroupMetadataValue as StreamsGroupMetadataValue
    from ottla.protocol._generated.streams_group_target_assignment_member_key import StreamsGroupTargetAssignmentMemberKey as StreamsGroupTargetAssignmentMemberKey
    from ottla.protocol._generated.streams_group_target_assignment_member_value import StreamsGroupTargetAssignmentMemberValue as StreamsGroupTargetAssignmentMemberValue
    from ottla.protocol._generated.streams_group_target_assignment_metadata_key import StreamsGroupTargetAssignmentMetadataKey as StreamsGroupTargetAssignmentMetadataKey
    from ottla.protocol._generated.streams_group_target_assignment_metadata_value import StreamsGroupTargetAssignmentMetadataValue as StreamsGroupTargetAssignmentMetadataValue
    from ottla.protocol._generated.streams_group_topology_key import StreamsGroupTopologyKey as StreamsGroupTopologyKey
    from ottla.protocol._generated.streams_group_topology_value import StreamsGroupTopologyValue as StreamsGroupTopologyValue
    from ottla.protocol._generated.sync_group_request import SyncGroupRequest as SyncGroupRequest
    from ottla.protocol._generated.sync_group_response import SyncGroupResponse as SyncGroupResponse
    from ottla.protocol._generated.topic_record import TopicRecord as TopicRecord
    from ottla.protocol._generated.transaction_log_key import TransactionLogKey as TransactionLogKey
    from ottla.protocol._generated.transaction_log_value import TransactionLogValue as TransactionLogValue
    from ottla.protocol._generated.txn_offset_commit_request import TxnOffsetCommitRequest as TxnOffsetCommitRequest
    from ottla.protocol._generated.txn_offset_commit_response import TxnOffsetCommitResponse as TxnOffsetCommitResponse
    from ottla.protocol._generated.unfence_broker_record import UnfenceBrokerRecord as UnfenceBrokerRecord
    from ottla.protocol._generated.unregister_broker_record import UnregisterBrokerRecord as UnregisterBrokerRecord
    from ottla.protocol._generated.unregister_broker_request import UnregisterBrokerRequest as UnregisterBrokerRequest
    from ottla.protocol._generated.unregister_broker_response import UnregisterBrokerResponse as UnregisterBrokerResponse
    from ottla.protocol._generated.update_features_request import UpdateFeaturesRequest as UpdateFeaturesRequest
    from ottla.protocol._generated.update_features_response import UpdateFeaturesResponse as UpdateFeaturesResponse
    from ottla.protocol._generated.update_raft_voter_request import UpdateRaftVoterRequest as UpdateRaftVoterRequest
    from ottla.protocol._generated.update_raft_voter_response import UpdateRaftVoterResponse as UpdateRaftVoterResponse
    from ottla.protocol._generated.user_scram_credential_record import UserScramCredentialRecord as UserScramCredentialRecord
    from ottla.protocol._generated.vote_request import VoteRequest as VoteRequest
    from ottla.protocol._generated.vote_response import VoteResponse as VoteResponse
    from ottla.protocol._generated.voters_record import VotersRecord as VotersRecord
    from ottla.protocol._generated.write_share_group_state_request import WriteShareGroupStateRequest as WriteShareGroupStateRequest
    from ottla.protocol._generated.write_share_group_state_response import WriteShareGroupStateResponse as WriteShareGroupStateResponse
    from ottla.protocol._generated.write_txn_markers_request import WriteTxnMarkersRequest as WriteTxnMarkersRequest
    from ottla.protocol._generated.write_txn_markers_response import WriteTxnMarkersResponse as WriteTxnMarkersResponse
    from ottla.protocol._generated.zk_migration_state_record import ZkMigrationStateRecord as ZkMigrationStateRecord
    # end: imports
    pass


class Api(NamedTuple):
    key: int
    name: str
    min_version: int
    max_version: int
    """What the schemas have; see `stable_max` for what may be advertised."""
    first_flexible: int | None
    listeners: tuple[str, ...]
    """broker, controller or both."""
    latest_unstable: bool

    @property
    def stable_max(self) -> int:
        return self.max_version - self.latest_unstable

    @property
    def request(self) -> str:
        return self.name + "Request"

    @property
    def response(self) -> str:
        return self.name + "Response"

    def is_flexible(self, version: int) -> bool:
        return self.first_flexible is not None and version >= self.first_flexible


API: dict[int, Api] = {
    # generated: apis
    0: Api(0, "Produce", 3, 13, 9, ("broker",), False),
    1: Api(1, "Fetch", 4, 18, 12, ("broker", "controller"), False),
    2: Api(2, "ListOffsets", 1, 11, 6, ("broker",), False),
    3: Api(3, "Metadata", 0, 13, 9, ("broker",), False),
    8: Api(8, "OffsetCommit", 2, 10, 8, ("broker",), False),
    9: Api(9, "OffsetFetch", 1, 10, 6, ("broker",), False),
    10: Api(10, "FindCoordinator", 0, 6, 3, ("broker",), False),
    11: Api(11, "JoinGroup", 0, 9, 6, ("broker",), False),
    12: Api(12, "Heartbeat", 0, 4, 4, ("broker",), False),
    13: Api(13, "LeaveGroup", 0, 5, 4, ("broker",), False),
    14: Api(14, "SyncGroup", 0, 5, 4, ("broker",), False),
    15: Api(15, "DescribeGroups", 0, 6, 5, ("broker",), False),
    16: Api(16, "ListGroups", 0, 5, 3, ("broker",), False),
    17: Api(17, "SaslHandshake", 0, 1, None, ("broker", "controller"), False),
    18: Api(18, "ApiVersions", 0, 5, 3, ("broker", "controller"), False),
    19: Api(19, "CreateTopics", 2, 7, 5, ("broker", "controller"), False),
    20: Api(20, "DeleteTopics", 1, 6, 4, ("broker", "controller"), False),
    21: Api(21, "DeleteRecords", 0, 2, 2, ("broker",), False),
    22: Api(22, "InitProducerId", 0, 6, 2, ("broker",), True),
    23: Api(23, "OffsetForLeaderEpoch", 2, 4, 4, ("broker",), False),
    24: Api(24, "AddPartitionsToTxn", 0, 5, 3, ("broker",), False),
    25: Api(25, "AddOffsetsToTxn", 0, 4, 3, ("broker",), False),
    26: Api(26, "EndTxn", 0, 5, 3, ("broker",), False),
    27: Api(27, "WriteTxnMarkers", 1, 2, 1, ("broker",), False),
    28: Api(28, "TxnOffsetCommit", 0, 5, 3, ("broker",), False),
    29: Api(29, "DescribeAcls", 1, 3, 2, ("broker", "controller"), False),
    30: Api(30, "CreateAcls", 1, 3, 2, ("broker", "controller"), False),
    31: Api(31, "DeleteAcls", 1, 3, 2, ("broker", "controller"), False),
    32: Api(32, "DescribeConfigs", 1, 4, 4, ("broker", "controller"), False),
    33: Api(33, "AlterConfigs", 0, 2, 2, ("broker", "controller"), False),
    34: Api(34, "AlterReplicaLogDirs", 1, 2, 2, ("broker",), False),
    35: Api(35, "DescribeLogDirs", 1, 5, 2, ("broker",), False),
    36: Api(36, "SaslAuthenticate", 0, 2, 2, ("broker", "controller"), False),
    37: Api(37, "CreatePartitions", 0, 3, 2, ("broker", "controller"), False),
    38: Api(38, "CreateDelegationToken", 1, 3, 2, ("broker", "controller"), False),
    39: Api(39, "RenewDelegationToken", 1, 2, 2, ("broker", "controller"), False),
    40: Api(40, "ExpireDelegationToken", 1, 2, 2, ("broker", "controller"), False),
    41: Api(41, "DescribeDelegationToken", 1, 3, 2, ("broker", "controller"), False),
    42: Api(42, "DeleteGroups", 0, 2, 2, ("broker",), False),
    43: Api(43, "ElectLeaders", 0, 2, 2, ("broker", "controller"), False),
    44: Api(44, "IncrementalAlterConfigs", 0, 1, 1, ("broker", "controller"), False),
    45: Api(45, "AlterPartitionReassignments", 0, 1, 0, ("broker", "controller"), False),
    46: Api(46, "ListPartitionReassignments", 0, 0, 0, ("broker", "controller"), False),
    47: Api(47, "OffsetDelete", 0, 0, None, ("broker",), False),
    48: Api(48, "DescribeClientQuotas", 0, 1, 1, ("broker",), False),
    49: Api(49, "AlterClientQuotas", 0, 1, 1, ("broker", "controller"), False),
    50: Api(50, "DescribeUserScramCredentials", 0, 0, 0, ("broker", "controller"), False),
    51: Api(51, "AlterUserScramCredentials", 0, 0, 0, ("broker", "controller"), False),
    52: Api(52, "Vote", 0, 2, 0, ("controller",), False),
    53: Api(53, "BeginQuorumEpoch", 0, 1, 1, ("controller",), False),
    54: Api(54, "EndQuorumEpoch", 0, 1, 1, ("controller",), False),
    55: Api(55, "DescribeQuorum", 0, 2, 0, ("broker", "controller"), False),
    56: Api(56, "AlterPartition", 2, 3, 0, ("controller",), False),
    57: Api(57, "UpdateFeatures", 0, 2, 0, ("broker", "controller"), False),
    58: Api(58, "Envelope", 0, 0, 0, ("controller",), False),
    59: Api(59, "FetchSnapshot", 0, 1, 0, ("controller",), False),
    60: Api(60, "DescribeCluster", 0, 2, 0, ("broker", "controller"), False),
    61: Api(61, "DescribeProducers", 0, 0, 0, ("broker",), False),
    62: Api(62, "BrokerRegistration", 0, 4, 0, ("controller",), False),
    63: Api(63, "BrokerHeartbeat", 0, 2, 0, ("controller",), False),
    64: Api(64, "UnregisterBroker", 0, 0, 0, ("broker", "controller"), False),
    65: Api(65, "DescribeTransactions", 0, 0, 0, ("broker",), False),
    66: Api(66, "ListTransactions", 0, 2, 0, ("broker",), False),
    67: Api(67, "AllocateProducerIds", 0, 0, 0, ("controller",), False),
    68: Api(68, "ConsumerGroupHeartbeat", 0, 1, 0, ("broker",), False),
    69: Api(69, "ConsumerGroupDescribe", 0, 1, 0, ("broker",), False),
    70: Api(70, "ControllerRegistration", 0, 0, 0, ("controller",), False),
    71: Api(71, "GetTelemetrySubscriptions", 0, 0, 0, ("broker",), False),
    72: Api(72, "PushTelemetry", 0, 0, 0, ("broker",), False),
    73: Api(73, "AssignReplicasToDirs", 0, 0, 0, ("controller",), False),
    74: Api(74, "ListConfigResources", 0, 1, 0, ("broker",), False),
    75: Api(75, "DescribeTopicPartitions", 0, 0, 0, ("broker",), False),
    76: Api(76, "ShareGroupHeartbeat", 1, 1, 0, ("broker",), False),
    77: Api(77, "ShareGroupDescribe", 1, 1, 0, ("broker",), False),
    78: Api(78, "ShareFetch", 1, 2, 0, ("broker",), False),
    79: Api(79, "ShareAcknowledge", 1, 2, 0, ("broker",), False),
    80: Api(80, "AddRaftVoter", 0, 1, 0, ("controller", "broker"), False),
    81: Api(81, "RemoveRaftVoter", 0, 0, 0, ("controller", "broker"), False),
    82: Api(82, "UpdateRaftVoter", 0, 0, 0, ("controller",), False),
    83: Api(83, "InitializeShareGroupState", 0, 0, 0, ("broker",), False),
    84: Api(84, "ReadShareGroupState", 0, 0, 0, ("broker",), False),
    85: Api(85, "WriteShareGroupState", 0, 1, 0, ("broker",), False),
    86: Api(86, "DeleteShareGroupState", 0, 0, 0, ("broker",), False),
    87: Api(87, "ReadShareGroupStateSummary", 0, 1, 0, ("broker",), False),
    88: Api(88, "StreamsGroupHeartbeat", 0, 0, 0, ("broker",), False),
    89: Api(89, "StreamsGroupDescribe", 0, 0, 0, ("broker",), False),
    90: Api(90, "DescribeShareGroupOffsets", 0, 1, 0, ("broker",), False),
    91: Api(91, "AlterShareGroupOffsets", 0, 0, 0, ("broker",), False),
    92: Api(92, "DeleteShareGroupOffsets", 0, 0, 0, ("broker",), False),
    # end: apis
}

_MODULES: dict[str, str] = {
    # generated: modules
    "AbortTransactionRecord": "abort_transaction_record",
    "AccessControlEntryRecord": "access_control_entry_record",
    "AddOffsetsToTxnRequest": "add_offsets_to_txn_request",
    "AddOffsetsToTxnResponse": "add_offsets_to_txn_response",
    "AddPartitionsToTxnRequest": "add_partitions_to_txn_request",
    "AddPartitionsToTxnResponse": "add_partitions_to_txn_response",
    "AddRaftVoterRequest": "add_raft_voter_request",
    "AddRaftVoterResponse": "add_raft_voter_response",
    "AllocateProducerIdsRequest": "allocate_producer_ids_request",
    "AllocateProducerIdsResponse": "allocate_producer_ids_response",
    "AlterClientQuotasRequest": "alter_client_quotas_request",
    "AlterClientQuotasResponse": "alter_client_quotas_response",
    "AlterConfigsRequest": "alter_configs_request",
    "AlterConfigsResponse": "alter_configs_response",
    "AlterPartitionReassignmentsRequest": "alter_partition_reassignments_request",
    "AlterPartitionReassignmentsResponse": "alter_partition_reassignments_response",
    "AlterPartitionRequest": "alter_partition_request",
    "AlterPartitionResponse": "alter_partition_response",
    "AlterReplicaLogDirsRequest": "alter_replica_log_dirs_request",
    "AlterReplicaLogDirsResponse": "alter_replica_log_dirs_response",
    "AlterShareGroupOffsetsRequest": "alter_share_group_offsets_request",
    "AlterShareGroupOffsetsResponse": "alter_share_group_offsets_response",
    "AlterUserScramCredentialsRequest": "alter_user_scram_credentials_request",
    "AlterUserScramCredentialsResponse": "alter_user_scram_credentials_response",
    "ApiVersionsRequest": "api_versions_request",
    "ApiVersionsResponse": "api_versions_response",
    "AssignReplicasToDirsRequest": "assign_replicas_to_dirs_request",
    "AssignReplicasToDirsResponse": "assign_replicas_to_dirs_response",
    "BeginQuorumEpochRequest": "begin_quorum_epoch_request",
    "BeginQuorumEpochResponse": "begin_quorum_epoch_response",
    "BeginTransactionRecord": "begin_transaction_record",
    "BrokerHeartbeatRequest": "broker_heartbeat_request",
    "BrokerHeartbeatResponse": "broker_heartbeat_response",
    "BrokerRegistrationChangeRecord": "broker_registration_change_record",
    "BrokerRegistrationRequest": "broker_registration_request",
    "BrokerRegistrationResponse": "broker_registration_response",
    "ClearElrRecord": "clear_elr_record",
    "ClientQuotaRecord": "client_quota_record",
    "ConfigRecord": "config_record",
    "ConsumerGroupCurrentMemberAssignmentKey": "consumer_group_current_member_assignment_key",
    "ConsumerGroupCurrentMemberAssignmentValue": "consumer_group_current_member_assignment_value",
    "ConsumerGroupDescribeRequest": "consumer_group_describe_request",
    "ConsumerGroupDescribeResponse": "consumer_group_describe_response",
    "ConsumerGroupHeartbeatRequest": "consumer_group_heartbeat_request",
    "ConsumerGroupHeartbeatResponse": "consumer_group_heartbeat_response",
    "ConsumerGroupMemberMetadataKey": "consumer_group_member_metadata_key",
    "ConsumerGroupMemberMetadataValue": "consumer_group_member_metadata_value",
    "ConsumerGroupMetadataKey": "consumer_group_metadata_key",
    "ConsumerGroupMetadataValue": "consumer_group_metadata_value",
    "ConsumerGroupPartitionMetadataKey": "consumer_group_partition_metadata_key",
    "ConsumerGroupPartitionMetadataValue": "consumer_group_partition_metadata_value",
    "ConsumerGroupRegularExpressionKey": "consumer_group_regular_expression_key",
    "ConsumerGroupRegularExpressionValue": "consumer_group_regular_expression_value",
    "ConsumerGroupTargetAssignmentMemberKey": "consumer_group_target_assignment_member_key",
    "ConsumerGroupTargetAssignmentMemberValue": "consumer_group_target_assignment_member_value",
    "ConsumerGroupTargetAssignmentMetadataKey": "consumer_group_target_assignment_metadata_key",
    "ConsumerGroupTargetAssignmentMetadataValue": "consumer_group_target_assignment_metadata_value",
    "ConsumerProtocolAssignment": "consumer_protocol_assignment",
    "ConsumerProtocolSubscription": "consumer_protocol_subscription",
    "ControlRecordTypeSchema": "control_record_type_schema",
    "ControllerRegistrationRequest": "controller_registration_request",
    "ControllerRegistrationResponse": "controller_registration_response",
    "CreateAclsRequest": "create_acls_request",
    "CreateAclsResponse": "create_acls_response",
    "CreateDelegationTokenRequest": "create_delegation_token_request",
    "CreateDelegationTokenResponse": "create_delegation_token_response",
    "CreatePartitionsRequest": "create_partitions_request",
    "CreatePartitionsResponse": "create_partitions_response",
    "CreateTopicsRequest": "create_topics_request",
    "CreateTopicsResponse": "create_topics_response",
    "DefaultPrincipalData": "default_principal_data",
    "DelegationTokenRecord": "delegation_token_record",
    "DeleteAclsRequest": "delete_acls_request",
    "DeleteAclsResponse": "delete_acls_response",
    "DeleteGroupsRequest": "delete_groups_request",
    "DeleteGroupsResponse": "delete_groups_response",
    "DeleteRecordsRequest": "delete_records_request",
    "DeleteRecordsResponse": "delete_records_response",
    "DeleteShareGroupOffsetsRequest": "delete_share_group_offsets_request",
    "DeleteShareGroupOffsetsResponse": "delete_share_group_offsets_response",
    "DeleteShareGroupStateRequest": "delete_share_group_state_request",
    "DeleteShareGroupStateResponse": "delete_share_group_state_response",
    "DeleteTopicsRequest": "delete_topics_request",
    "DeleteTopicsResponse": "delete_topics_response",
    "DescribeAclsRequest": "describe_acls_request",
    "DescribeAclsResponse": "describe_acls_response",
    "DescribeClientQuotasRequest": "describe_client_quotas_request",
    "DescribeClientQuotasResponse": "describe_client_quotas_response",
    "DescribeClusterRequest": "describe_cluster_request",
    "DescribeClusterResponse": "describe_cluster_response",
    "DescribeConfigsRequest": "describe_configs_request",
    "DescribeConfigsResponse": "describe_configs_response",
    "DescribeDelegationTokenRequest": "describe_delegation_token_request",
    "DescribeDelegationTokenResponse": "describe_delegation_token_response",
    "DescribeGroupsRequest": "describe_groups_request",
    "DescribeGroupsResponse": "describe_groups_response",
    "DescribeLogDirsRequest": "describe_log_dirs_request",
    "DescribeLogDirsResponse": "describe_log_dirs_response",
    "DescribeProducersRequest": "describe_producers_request",
    "DescribeProducersResponse": "describe_producers_response",
    "DescribeQuorumRequest": "describe_quorum_request",
    "DescribeQuorumResponse": "describe_quorum_response",
    "DescribeShareGroupOffsetsRequest": "describe_share_group_offsets_request",
    "DescribeShareGroupOffsetsResponse": "describe_share_group_offsets_response",
    "DescribeTopicPartitionsRequest": "describe_topic_partitions_request",
    "DescribeTopicPartitionsResponse": "describe_topic_partitions_response",
    "DescribeTransactionsRequest": "describe_transactions_request",
    "DescribeTransactionsResponse": "describe_transactions_response",
    "DescribeUserScramCredentialsRequest": "describe_user_scram_credentials_request",
    "DescribeUserScramCredentialsResponse": "describe_user_scram_credentials_response",
    "ElectLeadersRequest": "elect_leaders_request",
    "ElectLeadersResponse": "elect_leaders_response",
    "EndQuorumEpochRequest": "end_quorum_epoch_request",
    "EndQuorumEpochResponse": "end_quorum_epoch_response",
    "EndTransactionRecord": "end_transaction_record",
    "EndTxnMarker": "end_txn_marker",
    "EndTxnRequest": "end_txn_request",
    "EndTxnResponse": "end_txn_response",
    "EnvelopeRequest": "envelope_request",
    "EnvelopeResponse": "envelope_response",
    "ExpireDelegationTokenRequest": "expire_delegation_token_request",
    "ExpireDelegationTokenResponse": "expire_delegation_token_response",
    "FeatureLevelRecord": "feature_level_record",
    "FenceBrokerRecord": "fence_broker_record",
    "FetchRequest": "fetch_request",
    "FetchResponse": "fetch_response",
    "FetchSnapshotRequest": "fetch_snapshot_request",
    "FetchSnapshotResponse": "fetch_snapshot_response",
    "FindCoordinatorRequest": "find_coordinator_request",
    "FindCoordinatorResponse": "find_coordinator_response",
    "GetTelemetrySubscriptionsRequest": "get_telemetry_subscriptions_request",
    "GetTelemetrySubscriptionsResponse": "get_telemetry_subscriptions_response",
    "GroupMetadataKey": "group_metadata_key",
    "GroupMetadataValue": "group_metadata_value",
    "HeartbeatRequest": "heartbeat_request",
    "HeartbeatResponse": "heartbeat_response",
    "IncrementalAlterConfigsRequest": "incremental_alter_configs_request",
    "IncrementalAlterConfigsResponse": "incremental_alter_configs_response",
    "InitProducerIdRequest": "init_producer_id_request",
    "InitProducerIdResponse": "init_producer_id_response",
    "InitializeShareGroupStateRequest": "initialize_share_group_state_request",
    "InitializeShareGroupStateResponse": "initialize_share_group_state_response",
    "JoinGroupRequest": "join_group_request",
    "JoinGroupResponse": "join_group_response",
    "KRaftVersionRecord": "kraft_version_record",
    "LeaderChangeMessage": "leader_change_message",
    "LeaveGroupRequest": "leave_group_request",
    "LeaveGroupResponse": "leave_group_response",
    "LegacyOffsetCommitKey": "legacy_offset_commit_key",
    "LegacyOffsetCommitValue": "legacy_offset_commit_value",
    "ListConfigResourcesRequest": "list_config_resources_request",
    "ListConfigResourcesResponse": "list_config_resources_response",
    "ListGroupsRequest": "list_groups_request",
    "ListGroupsResponse": "list_groups_response",
    "ListOffsetsRequest": "list_offsets_request",
    "ListOffsetsResponse": "list_offsets_response",
    "ListPartitionReassignmentsRequest": "list_partition_reassignments_request",
    "ListPartitionReassignmentsResponse": "list_partition_reassignments_response",
    "ListTransactionsRequest": "list_transactions_request",
    "ListTransactionsResponse": "list_transactions_response",
    "MetadataRequest": "metadata_request",
    "MetadataResponse": "metadata_response",
    "NoOpRecord": "no_op_record",
    "OffsetCommitKey": "offset_commit_key",
    "OffsetCommitRequest": "offset_commit_request",
    "OffsetCommitResponse": "offset_commit_response",
    "OffsetCommitValue": "offset_commit_value",
    "OffsetDeleteRequest": "offset_delete_request",
    "OffsetDeleteResponse": "offset_delete_response",
    "OffsetFetchRequest": "offset_fetch_request",
    "OffsetFetchResponse": "offset_fetch_response",
    "OffsetForLeaderEpochRequest": "offset_for_leader_epoch_request",
    "OffsetForLeaderEpochResponse": "offset_for_leader_epoch_response",
    "PartitionChangeRecord": "partition_change_record",
    "PartitionRecord": "partition_record",
    "ProduceRequest": "produce_request",
    "ProduceResponse": "produce_response",
    "ProducerIdsRecord": "producer_ids_record",
    "ProducerSnapshot": "producer_snapshot",
    "PushTelemetryRequest": "push_telemetry_request",
    "PushTelemetryResponse": "push_telemetry_response",
    "QuorumStateData": "quorum_state_data",
    "ReadShareGroupStateRequest": "read_share_group_state_request",
    "ReadShareGroupStateResponse": "read_share_group_state_response",
    "ReadShareGroupStateSummaryRequest": "read_share_group_state_summary_request",
    "ReadShareGroupStateSummaryResponse": "read_share_group_state_summary_response",
    "RegisterBrokerRecord": "register_broker_record",
    "RegisterControllerRecord": "register_controller_record",
    "RemoteLogSegmentMetadataRecord": "remote_log_segment_metadata_record",
    "RemoteLogSegmentMetadataSnapshotRecord": "remote_log_segment_metadata_snapshot_record",
    "RemoteLogSegmentMetadataUpdateRecord": "remote_log_segment_metadata_update_record",
    "RemotePartitionDeleteMetadataRecord": "remote_partition_delete_metadata_record",
    "RemoveAccessControlEntryRecord": "remove_access_control_entry_record",
    "RemoveDelegationTokenRecord": "remove_delegation_token_record",
    "RemoveRaftVoterRequest": "remove_raft_voter_request",
    "RemoveRaftVoterResponse": "remove_raft_voter_response",
    "RemoveTopicRecord": "remove_topic_record",
    "RemoveUserScramCredentialRecord": "remove_user_scram_credential_record",
    "RenewDelegationTokenRequest": "renew_delegation_token_request",
    "RenewDelegationTokenResponse": "renew_delegation_token_response",
    "RequestHeader": "request_header",
    "ResponseHeader": "response_header",
    "SaslAuthenticateRequest": "sasl_authenticate_request",
    "SaslAuthenticateResponse": "sasl_authenticate_response",
    "SaslHandshakeRequest": "sasl_handshake_request",
    "SaslHandshakeResponse": "sasl_handshake_response",
    "ShareAcknowledgeRequest": "share_acknowledge_request",
    "ShareAcknowledgeResponse": "share_acknowledge_response",
    "ShareFetchRequest": "share_fetch_request",
    "ShareFetchResponse": "share_fetch_response",
    "ShareGroupCurrentMemberAssignmentKey": "share_group_current_member_assignment_key",
    "ShareGroupCurrentMemberAssignmentValue": "share_group_current_member_assignment_value",
    "ShareGroupDescribeRequest": "share_group_describe_request",
    "ShareGroupDescribeResponse": "share_group_describe_response",
    "ShareGroupHeartbeatRequest": "share_group_heartbeat_request",
    "ShareGroupHeartbeatResponse": "share_group_heartbeat_response",
    "ShareGroupMemberMetadataKey": "share_group_member_metadata_key",
    "ShareGroupMemberMetadataValue": "share_group_member_metadata_value",
    "ShareGroupMetadataKey": "share_group_metadata_key",
    "ShareGroupMetadataValue": "share_group_metadata_value",
    "ShareGroupStatePartitionMetadataKey": "share_group_state_partition_metadata_key",
    "ShareGroupStatePartitionMetadataValue": "share_group_state_partition_metadata_value",
    "ShareGroupTargetAssignmentMemberKey": "share_group_target_assignment_member_key",
    "ShareGroupTargetAssignmentMemberValue": "share_group_target_assignment_member_value",
    "ShareGroupTargetAssignmentMetadataKey": "share_group_target_assignment_metadata_key",
    "ShareGroupTargetAssignmentMetadataValue": "share_group_target_assignment_metadata_value",
    "ShareSnapshotKey": "share_snapshot_key",
    "ShareSnapshotValue": "share_snapshot_value",
    "ShareUpdateKey": "share_update_key",
    "ShareUpdateValue": "share_update_value",
    "SnapshotFooterRecord": "snapshot_footer_record",
    "SnapshotHeaderRecord": "snapshot_header_record",
    "StreamsGroupCurrentMemberAssignmentKey": "streams_group_current_member_assignment_key",
    "StreamsGroupCurrentMemberAssignmentValue": "streams_group_current_member_assignment_value",
    "StreamsGroupDescribeRequest": "streams_group_describe_request",
    "StreamsGroupDescribeResponse": "streams_group_describe_response",
    "StreamsGroupHeartbeatRequest": "streams_group_heartbeat_request",
    "StreamsGroupHeartbeatResponse": "streams_group_heartbeat_response",
    "StreamsGroupMemberMetadataKey": "streams_group_member_metadata_key",
    "StreamsGroupMemberMetadataValue": "streams_group_member_metadata_value",
    "StreamsGroupMetadataKey": "streams_group_metadata_key",
    "StreamsGroupMetadataValue": "streams_group_metadata_value",
    "StreamsGroupTargetAssignmentMemberKey": "streams_group_target_assignment_member_key",
    "StreamsGroupTargetAssignmentMemberValue": "streams_group_target_assignment_member_value",
    "StreamsGroupTargetAssignmentMetadataKey": "streams_group_target_assignment_metadata_key",
    "StreamsGroupTargetAssignmentMetadataValue": "streams_group_target_assignment_metadata_value",
    "StreamsGroupTopologyKey": "streams_group_topology_key",
    "StreamsGroupTopologyValue": "streams_group_topology_value",
    "SyncGroupRequest": "sync_group_request",
    "SyncGroupResponse": "sync_group_response",
    "TopicRecord": "topic_record",
    "TransactionLogKey": "transaction_log_key",
    "TransactionLogValue": "transaction_log_value",
    "TxnOffsetCommitRequest": "txn_offset_commit_request",
    "TxnOffsetCommitResponse": "txn_offset_commit_response",
    "UnfenceBrokerRecord": "unfence_broker_record",
    "UnregisterBrokerRecord": "unregister_broker_record",
    "UnregisterBrokerRequest": "unregister_broker_request",
    "UnregisterBrokerResponse": "unregister_broker_response",
    "UpdateFeaturesRequest": "update_features_request",
    "UpdateFeaturesResponse": "update_features_response",
    "UpdateRaftVoterRequest": "update_raft_voter_request",
    "UpdateRaftVoterResponse": "update_raft_voter_response",
    "UserScramCredentialRecord": "user_scram_credential_record",
    "VoteRequest": "vote_request",
    "VoteResponse": "vote_response",
    "VotersRecord": "voters_record",
    "WriteShareGroupStateRequest": "write_share_group_state_request",
    "WriteShareGroupStateResponse": "write_share_group_state_response",
    "WriteTxnMarkersRequest": "write_txn_markers_request",
    "WriteTxnMarkersResponse": "write_txn_markers_response",
    "ZkMigrationStateRecord": "zk_migration_state_record",
    # end: modules
}


class Classes(Mapping[int, type[Message]]):
    """Record type to class; a class is imported when its type is first asked for."""

    __slots__ = ("_names",)

    def __init__(self, names: dict[int, str]) -> None:
        self._names = names

    def __getitem__(self, key: int) -> type[Message]:
        return named(self._names[key])

    def __iter__(self) -> Iterator[int]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


METADATA_RECORDS = Classes(
    {
        # generated: metadata
        0: "RegisterBrokerRecord",
        1: "UnregisterBrokerRecord",
        2: "TopicRecord",
        3: "PartitionRecord",
        4: "ConfigRecord",
        5: "PartitionChangeRecord",
        7: "FenceBrokerRecord",
        8: "UnfenceBrokerRecord",
        9: "RemoveTopicRecord",
        10: "DelegationTokenRecord",
        11: "UserScramCredentialRecord",
        12: "FeatureLevelRecord",
        14: "ClientQuotaRecord",
        15: "ProducerIdsRecord",
        17: "BrokerRegistrationChangeRecord",
        18: "AccessControlEntryRecord",
        19: "RemoveAccessControlEntryRecord",
        20: "NoOpRecord",
        21: "ZkMigrationStateRecord",
        22: "RemoveUserScramCredentialRecord",
        23: "BeginTransactionRecord",
        24: "EndTransactionRecord",
        25: "AbortTransactionRecord",
        26: "RemoveDelegationTokenRecord",
        27: "RegisterControllerRecord",
        28: "ClearElrRecord",
        # end: metadata
    }
)
"""What the metadata log holds."""

REMOTE_LOG_RECORDS = Classes(
    {
        # generated: remote log
        0: "RemoteLogSegmentMetadataRecord",
        1: "RemoteLogSegmentMetadataUpdateRecord",
        2: "RemotePartitionDeleteMetadataRecord",
        3: "RemoteLogSegmentMetadataSnapshotRecord",
        # end: remote log
    }
)
"""What __remote_log_metadata holds."""

GROUP_RECORDS = {
    # generated: kafka-group-coordinator
    0: ("LegacyOffsetCommitKey", "LegacyOffsetCommitValue"),
    1: ("OffsetCommitKey", "OffsetCommitValue"),
    2: ("GroupMetadataKey", "GroupMetadataValue"),
    3: ("ConsumerGroupMetadataKey", "ConsumerGroupMetadataValue"),
    4: ("ConsumerGroupPartitionMetadataKey", "ConsumerGroupPartitionMetadataValue"),
    5: ("ConsumerGroupMemberMetadataKey", "ConsumerGroupMemberMetadataValue"),
    6: ("ConsumerGroupTargetAssignmentMetadataKey", "ConsumerGroupTargetAssignmentMetadataValue"),
    7: ("ConsumerGroupTargetAssignmentMemberKey", "ConsumerGroupTargetAssignmentMemberValue"),
    8: ("ConsumerGroupCurrentMemberAssignmentKey", "ConsumerGroupCurrentMemberAssignmentValue"),
    10: ("ShareGroupMemberMetadataKey", "ShareGroupMemberMetadataValue"),
    11: ("ShareGroupMetadataKey", "ShareGroupMetadataValue"),
    12: ("ShareGroupTargetAssignmentMetadataKey", "ShareGroupTargetAssignmentMetadataValue"),
    13: ("ShareGroupTargetAssignmentMemberKey", "ShareGroupTargetAssignmentMemberValue"),
    14: ("ShareGroupCurrentMemberAssignmentKey", "ShareGroupCurrentMemberAssignmentValue"),
    15: ("ShareGroupStatePartitionMetadataKey", "ShareGroupStatePartitionMetadataValue"),
    16: ("ConsumerGroupRegularExpressionKey", "ConsumerGroupRegularExpressionValue"),
    17: ("StreamsGroupMetadataKey", "StreamsGroupMetadataValue"),
    19: ("StreamsGroupMemberMetadataKey", "StreamsGroupMemberMetadataValue"),
    20: ("StreamsGroupTargetAssignmentMetadataKey", "StreamsGroupTargetAssignmentMetadataValue"),
    21: ("StreamsGroupTargetAssignmentMemberKey", "StreamsGroupTargetAssignmentMemberValue"),
    22: ("StreamsGroupCurrentMemberAssignmentKey", "StreamsGroupCurrentMemberAssignmentValue"),
    23: ("StreamsGroupTopologyKey", "StreamsGroupTopologyValue"),
    # end: kafka-group-coordinator
}
"""What __consumer_offsets holds: record type to the class names of key and value."""

TRANSACTION_RECORDS = {
    # generated: kafka-transaction-coordinator
    0: ("TransactionLogKey", "TransactionLogValue"),
    # end: kafka-transaction-coordinator
}
"""The same for __transaction_state."""

SHARE_RECORDS = {
    # generated: kafka-share-coordinator
    0: ("ShareSnapshotKey", "ShareSnapshotValue"),
    1: ("ShareUpdateKey", "ShareUpdateValue"),
    # end: kafka-share-coordinator
}
"""The same for __share_group_state."""


def named(name: str) -> type[Message]:
    """The class of that name; KeyError if Kafka has none."""
    found = globals().get(name)
    if found is None:
        found = getattr(import_module("ottla.protocol._generated." + _MODULES[name]), name)
        globals()[name] = found
    cls: type[Message] = found
    return cls


def request_class(key: int) -> type[Message]:
    """KeyError for a key that Kafka does not have, or no longer has."""
    return named(API[key].request)


def response_class(key: int) -> type[Message]:
    return named(API[key].response)


def __getattr__(name: str) -> Any:
    try:
        return named(name)
    except KeyError:
        raise AttributeError(f"Kafka has no message called {name}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
