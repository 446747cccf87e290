"""DescribeCluster: the brokers, or (from version 1) the controllers, and how to reach them."""

from ottla.broker.handlers.k03_metadata import NOT_ASKED
from ottla.broker.security.authorizer import CLUSTER_NAME, Operation, Resource, allowed_operations
from ottla.broker.services import Services
from ottla.broker.session import Session
from ottla.model.errors import Errors
from ottla.protocol.messages import DescribeClusterRequest, DescribeClusterResponse

NEEDS = (Operation.DESCRIBE, Resource.CLUSTER)

BROKERS = 1
CONTROLLERS = 2


def handle(
    services: Services, session: Session, request: DescribeClusterRequest, version: int
) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLERS:
        # A broker listener describes brokers; controllers are asked at their own listener (KIP-919).
        return DescribeClusterResponse(
            error_code=Errors.MISMATCHED_ENDPOINT_TYPE,
            error_message="this listener is a broker's: ask a controller's listener for the controllers",
            endpoint_type=BROKERS,
        )
    if request.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=Errors.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"endpoint type {request.endpoint_type} is unknown",
        )
    image = services.control_plane.image
    operations = NOT_ASKED
    if request.include_cluster_authorized_operations:
        operations = allowed_operations(
            services.authorizer, session.principal, session.host, Resource.CLUSTER, CLUSTER_NAME
        )
    return DescribeClusterResponse(
        endpoint_type=BROKERS,
        cluster_id=image.cluster_id,
        controller_id=services.broker_id,
        brokers=[
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack, is_fenced=broker.fenced
            )
            for broker in image.brokers.values()
            if (request.include_fenced_brokers or not broker.fenced)
            and (endpoint := broker.listener(session.listener)) is not None
        ],
        cluster_authorized_operations=operations,
    )
