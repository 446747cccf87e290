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


def refusal(error: OSError, host: str, port: int, setting: str = "listeners") -> str:
    """`setting` is where the address was chosen; what is for clients has options of the command line as well."""
    where = f"cannot listen on {host or 'every interface'}:{port}"
    by_option = setting == "listeners"
    if error.errno == errno.EADDRINUSE:
        how = "with --port N (with a file: in its listeners)" if by_option else f"in {setting}"
        return f"{where}: another process does. Stop it, or choose another port {how}"
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        how = (
            "with --host ADDRESS (with a file: in its listeners; what clients are to call it stands in "
            "advertised.listeners)"
            if by_option
            else f"in {setting}"
        )
        return f"{where}: {host} is not an address of this machine. Choose one that is {how}"
    if error.errno == errno.EACCES:
        how = "with --port N or in listeners" if by_option else f"in {setting}"
        return f"{where}: this user may not take port {port}. Choose one from 1024 on {how}"
    return f"{where}: {error.strerror or error}"
