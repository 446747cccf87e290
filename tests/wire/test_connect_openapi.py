"""A Connect worker beside its own OpenAPI document."""

import pytest

from ottla.testing import Cluster
from tests.support.connect_workers import ConnectWorker
from tests.support.documented import operations_of, probe

CALLS = """
GET / · GET /health · GET /connectors · POST /connectors · DELETE /connectors/{connector} · GET /connectors/{connector}
GET /connectors/{connector}/config · PATCH /connectors/{connector}/config · PUT /connectors/{connector}/config
GET /connectors/{connector}/status · PUT /connectors/{connector}/pause · PUT /connectors/{connector}/resume
PUT /connectors/{connector}/stop · POST /connectors/{connector}/restart · GET /connectors/{connector}/tasks
POST /connectors/{connector}/tasks · PUT /connectors/{connector}/fence
GET /connectors/{connector}/tasks/{task}/status · POST /connectors/{connector}/tasks/{task}/restart
GET /connectors/{connector}/offsets · PATCH /connectors/{connector}/offsets · DELETE /connectors/{connector}/offsets
GET /connectors/{connector}/topics · PUT /connectors/{connector}/topics/reset
GET /connector-plugins · GET /connector-plugins/{plugin}/config · PUT /connector-plugins/{plugin}/config/validate
GET /admin/loggers · GET /admin/loggers/{logger} · PUT /admin/loggers/{logger}
"""
"""Java's."""


@pytest.mark.matrix
def test_all_of_javas_calls_are_documented_and_no_request_makes_the_worker_fail() -> None:
    with Cluster(group_initial_rebalance_delay_ms=0) as brokers, ConnectWorker(brokers.bootstrap_servers) as worker:
        operations = operations_of(worker.url)
        told = {f"{each.method.upper()} {each.path}" for each in operations}
        assert told == {each for line in CALLS.strip().splitlines() for each in line.split(" · ")}
        for operation in operations:
            probe(operation)
        assert worker.ask("GET", "/health").status == 200
