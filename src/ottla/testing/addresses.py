"""Where the nodes of a test's cluster listen: ports that are theirs until the cluster stops."""

import socket
from collections.abc import Iterable, Mapping
from typing import Final

from ottla.net.listening import refusal
from ottla.net.peer import Address
from ottla.node.node import StartFailed

HOST: Final = "127.0.0.1"
_COPIES: Final = 3
_DECIDED_BY_THEMSELVES: Final = ("process_roles", "controller_listener_names")


class Addresses:
    """Two ports for each node, one for clients and one for controllers. The first of those for clients may be given,
    the others follow on it. Raises StartFailed for one that somebody else has."""

    def __init__(self, nodes: int, first_port: int | None) -> None:
        self._ports: dict[int, tuple[_Port, _Port]] = {}
        try:
            for node_id in range(1, nodes + 1):
                self._ports[node_id] = (_Port(first_port + node_id - 1 if first_port else 0), _Port(0))
        except StartFailed:
            self.release()
            raise

    def release(self) -> None:
        for ports in self._ports.values():
            for port in ports:
                port.release()

    def of(self, node_ids: Iterable[int]) -> frozenset[Address]:
        return frozenset(Address(HOST, port.number) for node_id in node_ids for port in self._ports[node_id])

    def settings(self, node_id: int, given: Mapping[str, str]) -> dict[str, str]:
        broker, controller = self._ports[node_id]
        for_clients, for_controllers = f"PLAINTEXT://{HOST}:{broker.number}", f"CONTROLLER://{HOST}:{controller.number}"
        if len(self._ports) == 1:
            return {"listeners": _with_controller(given.get("listeners", for_clients), for_controllers, given)}
        copies = min(_COPIES, len(self._ports))
        return {
            "node_id": str(node_id),
            "listeners": f"{for_clients},{for_controllers}",
            "controller_quorum_voters": ",".join(
                f"{other}@{HOST}:{port.number}" for other, (_, port) in self._ports.items()
            ),
            "default_replication_factor": str(copies),
            "min_insync_replicas": str(copies // 2 + 1),
            "offsets_topic_replication_factor": str(copies),
            "transaction_state_log_replication_factor": str(copies),
            "transaction_state_log_min_isr": str(copies // 2 + 1),
        }


def _with_controller(listeners: str, for_controllers: str, given: Mapping[str, str]) -> str:
    """Who says where clients are listened to need not know that a controller listens as well."""
    if "CONTROLLER://" in listeners.upper() or any(name in given for name in _DECIDED_BY_THEMSELVES):
        return listeners
    return f"{listeners},{for_controllers}"


class _Port:
    """Bound but not listened on, so that a node can take it again and again. 0: a free one."""

    def __init__(self, number: int) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((HOST, number))
        except OSError as error:
            self._socket.close()
            raise StartFailed(refusal(error, HOST, number)) from error
        self.number: int = self._socket.getsockname()[1]

    def release(self) -> None:
        self._socket.close()
