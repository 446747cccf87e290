"""Where nodes stand on the network, and how the links between them are cut.

`Loopback` needs nothing and cuts nothing. `Namespaces` gives each node a network namespace of its own behind one bridge
(root and iproute2; `proxies` does without root). A link is cut in one direction by a permanent neighbour entry that no
host answers to: packets leave and nobody takes them, so neither side gets an error, as with a pulled cable.
"""

import ipaddress
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import Final, Protocol

from tests.support.nodes import free_ports

CLIENTS: Final = 0
"""The number that stands for the machine of the clients where nodes are numbered from 1."""
_NOBODY: Final = "02:00:00:00:00:00"
_serial = itertools.count()


class Network(Protocol):
    can_cut: bool

    def address(self, node: int) -> tuple[str, int, int]:
        """Host, client port, controller port: where the node listens."""

    def advertised(self, node: int) -> tuple[str, int, int]:
        """Where others reach it."""

    def started(self, node: int, pid: int) -> None:
        """Tells that this process is that node now."""

    def prefix(self, node: int) -> list[str]:
        """What a command line must begin with to run at that node's place."""

    def cut(self, source: int, target: int) -> None:
        """From now on nothing gets from `source` to `target`; the other direction is another cut."""

    def heal(self) -> None:
        """All links work again."""

    def close(self) -> None: ...


class Loopback:
    can_cut = False

    def __init__(self, nodes: int) -> None:
        self._ports = free_ports(2 * nodes)

    def address(self, node: int) -> tuple[str, int, int]:
        return "127.0.0.1", self._ports[2 * node - 2], self._ports[2 * node - 1]

    def advertised(self, node: int) -> tuple[str, int, int]:
        return self.address(node)

    def started(self, node: int, pid: int) -> None:
        pass

    def prefix(self, node: int) -> list[str]:
        return []

    def cut(self, source: int, target: int) -> None:
        raise AssertionError("links on the loopback device cannot be cut: build the cluster with links of its own")

    def heal(self) -> None:
        pass

    def close(self) -> None:
        pass


class Namespaces:
    can_cut = True

    def __init__(self, nodes: int) -> None:
        self._nodes = range(1, nodes + 1)
        self._tag = f"ot{os.getpid() % 100_000}{chr(ord('a') + next(_serial) % 26)}"
        self._subnet = _unused_subnet()
        self._cuts: list[tuple[int, int]] = []
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def _build(self) -> None:
        _ip("link", "add", self._tag, "type", "bridge")
        _ip("addr", "add", f"{self._host(CLIENTS)}/24", "dev", self._tag)
        _ip("link", "set", self._tag, "up")
        for node in self._nodes:
            name, outside = self._namespace(node), f"{self._tag}v{node}"
            _ip("netns", "add", name)
            _ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", outside, "master", self._tag, "up")
            _ip("-n", name, "addr", "add", f"{self._host(node)}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "set", "eth0", "up")

    def address(self, node: int) -> tuple[str, int, int]:
        return self._host(node), 9092, 9093

    def advertised(self, node: int) -> tuple[str, int, int]:
        return self.address(node)

    def started(self, node: int, pid: int) -> None:
        pass

    def prefix(self, node: int) -> list[str]:
        # Not `ip netns exec`: that gives the node a copy of all mounts as well, which keeps the disk of another node
        # mounted when its power is cut.
        return ["nsenter", f"--net=/run/netns/{self._namespace(node)}"]

    def cut(self, source: int, target: int) -> None:
        entry = [self._host(target), "lladdr", _NOBODY, "nud", "permanent", "dev", self._device(source)]
        _ip(*self._inside(source), "neigh", "replace", *entry)
        self._cuts.append((source, target))

    def heal(self) -> None:
        for source, target in self._cuts:
            _ip(*self._inside(source), "neigh", "del", self._host(target), "dev", self._device(source))
        self._cuts.clear()

    def close(self) -> None:
        for node in self._nodes:
            subprocess.run(["ip", "netns", "del", self._namespace(node)], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", self._tag], capture_output=True, check=False)

    def _namespace(self, node: int) -> str:
        return f"{self._tag}n{node}"

    def _inside(self, node: int) -> list[str]:
        return [] if node == CLIENTS else ["-n", self._namespace(node)]

    def _device(self, node: int) -> str:
        return self._tag if node == CLIENTS else "eth0"

    def _host(self, node: int) -> str:
        return str(self._subnet[254 if node == CLIENTS else node])


def namespaces_work() -> bool:
    return os.geteuid() == 0 and all(shutil.which(tool) for tool in ("ip", "nsenter"))


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr.strip()}"


def _unused_subnet() -> ipaddress.IPv4Network:
    listed = subprocess.run(["ip", "-o", "-4", "addr"], capture_output=True, text=True, check=True).stdout
    used = [ipaddress.ip_interface(line.split()[3]).network for line in listed.splitlines()]
    return next(candidate for candidate in _candidates() if not any(candidate.overlaps(known) for known in used))


def _candidates() -> Iterator[ipaddress.IPv4Network]:
    return (ipaddress.IPv4Network(f"10.213.{number}.0/24") for number in range(256))
