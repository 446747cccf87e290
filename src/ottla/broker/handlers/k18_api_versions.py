"""ApiVersions: the greeting. It says what this listener serves and which features are finalized.

Versions 0 to 4. 3 is flexible, but for the answer's header, and says which software asks (KIP-511); 4 may be told of
features that start at level 0 (KAFKA-17011). To a later version the answer is a 0 that says which there are
(KIP-511).
"""

import re
from functools import lru_cache

from ottla.broker.front.dispatch import API_VERSIONS, Routes
from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.metadata.features import SUPPORTED, UNSERVED
from ottla.model.errors import Errors
from ottla.protocol.messages import ApiVersionsRequest, ApiVersionsResponse

PRODUCE = 0
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
SAYS_SOFTWARE = 3
READS_ZERO_MINIMUM = 4


def handle(services: Services, session: Session, request: ApiVersionsRequest, version: int) -> ApiVersionsResponse:
    if version >= SAYS_SOFTWARE:
        name, software_version = request.client_software_name, request.client_software_version
        if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(software_version)):
            return ApiVersionsResponse(error_code=Errors.INVALID_REQUEST)
        session.client = session.client._replace(software_name=name, software_version=software_version)
    return ApiVersionsResponse(
        api_keys=_keys(session.routes),
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(name=feature, min_version=low, max_version=high)
            for feature, (low, high) in sorted(SUPPORTED.items())
            # Old Java clients cannot read a supported range that starts at 0 (KAFKA-17011).
            if feature not in UNSERVED and (low > 0 or version >= READS_ZERO_MINIMUM)
        ],
        finalized_features_epoch=max(0, services.control_plane.image.offset),
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name=feature, max_version_level=level, min_version_level=level)
            for feature, level in sorted(services.control_plane.finalized_features.items())
            if level > 0 and feature not in UNSERVED
        ],
    )


def unsupported(routes: Routes) -> ApiVersionsResponse:
    """The answer to a version we do not know, in version 0: it lists the versions of this request and of no other, and
    the client comes again with one of them (KIP-511)."""
    greeting = [entry for entry in _keys(routes) if entry.api_key == API_VERSIONS]
    return ApiVersionsResponse(error_code=Errors.UNSUPPORTED_VERSION, api_keys=greeting)


@lru_cache(maxsize=8)  # every connection asks, and a node has few listeners
def _keys(routes: Routes) -> list[ApiVersionsResponse.ApiVersion]:
    return [
        ApiVersionsResponse.ApiVersion(
            api_key=key,
            # KAFKA-18659: librdkafka before 2.11.1 stops compressing when Produce does not start at 0.
            min_version=0 if key == PRODUCE else low,
            max_version=high,
        )
        for key, low, high in routes.served()
    ]
