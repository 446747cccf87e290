"""Taking a port; and why an address cannot be listened on, in words that say what to do."""

import errno
import socket

_MAPPED = "::ffff:"


def listening_socket(host: str, port: int, backlog: int) -> socket.socket:
    """Without a host on every interface, for IPv6 and IPv4 alike as Java does it, or for IPv4 where there is nothing
    else. Raises OSError."""
    every = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if every or ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if every:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.setblocking(False)
        sock.bind((host, port))
        sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    return sock


def plain_address(address: str) -> str:
    """A socket for both families tells IPv4 addresses as ::ffff:127.0.0.1; limits and logs are about 127.0.0.1."""
    return address.removeprefix(_MAPPED) if "." in address else address


def refusal(error: OSError, host: str, port: int) -> str:
    where = f"cannot listen on {host or 'every interface'}:{port}"
    if error.errno == errno.EADDRINUSE:
        return (
            f"{where}: another process does. Stop it, or choose another port with --port N "
            "(with a file: in its listeners)"
        )
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return (
            f"{where}: {host} is not an address of this machine. Choose one that is with --host ADDRESS (with a file: "
            "in its listeners; what clients are to call it stands in advertised.listeners)"
        )
    if error.errno == errno.EACCES:
        return f"{where}: this user may not take port {port}. Choose one from 1024 on with --port N or in listeners"
    return f"{where}: {error.strerror or error}"
