"""DescribeCluster: the brokers, or (from version 1) the controllers, and how to reach them.

Versions 0 to 2. 1 may ask for controllers (KIP-919); 2 for fenced brokers too (KIP-1073).
"""

from ottla.broker.front.session import Session
from ottla.broker.handlers.k03_metadata import NOT_ASKED
from ottla.broker.services import ControllerServices, Services
from ottla.metadata.image import MetadataImage
from ottla.model.errors import Errors
from ottla.model.permissions import CLUSTER_NAME, Resource
from ottla.protocol.messages import DescribeClusterRequest, DescribeClusterResponse

BROKERS = 1
CONTROLLERS = 2


def handle(
    services: Services | ControllerServices, session: Session, request: DescribeClusterRequest, version: int
) -> DescribeClusterResponse:
    here = BROKERS if isinstance(services, Services) else CONTROLLERS
    if request.endpoint_type not in (BROKERS, CONTROLLERS):
        return DescribeClusterResponse(
            error_code=Errors.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"endpoint type {request.endpoint_type} is unknown",
        )
    if request.endpoint_type != here:
        # Each kind of listener describes its own kind (KIP-919).
        other = "broker's: ask a controller's" if here == BROKERS else "controller's: ask a broker's"
        return DescribeClusterResponse(
            error_code=Errors.MISMATCHED_ENDPOINT_TYPE,
            error_message=f"this listener is a {other} listener",
            endpoint_type=here,
        )
    control_plane = services.control_plane
    operations = NOT_ASKED
    if request.include_cluster_authorized_operations:
        operations = session.client.operations(Resource.CLUSTER, CLUSTER_NAME)
    return DescribeClusterResponse(
        endpoint_type=here,
        cluster_id=control_plane.image.cluster_id,
        controller_id=services.broker_id if isinstance(services, Services) else control_plane.leader_id,
        brokers=_brokers(control_plane.image, session, fenced_too=request.include_fenced_brokers)
        if here == BROKERS
        else _controllers(control_plane.image, session),
        cluster_authorized_operations=operations,
    )


def _brokers(
    image: MetadataImage, session: Session, *, fenced_too: bool
) -> list[DescribeClusterResponse.DescribeClusterBroker]:
    return [
        DescribeClusterResponse.DescribeClusterBroker(
            broker_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack, is_fenced=broker.fenced
        )
        for broker in image.brokers.values()
        if (fenced_too or not broker.fenced) and (endpoint := broker.listener(session.client.listener)) is not None
    ]


def _controllers(image: MetadataImage, session: Session) -> list[DescribeClusterResponse.DescribeClusterBroker]:
    return [
        DescribeClusterResponse.DescribeClusterBroker(
            broker_id=controller.id, host=endpoint.host, port=endpoint.port, rack=None
        )
        for controller in image.controllers.values()
        for endpoint in controller.listeners
        if endpoint.name == session.client.listener
    ]
