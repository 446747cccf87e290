"""What a connector should do: create, delete, pause, resume, stop, restart."""

from ottla.cli.connect.remote import Remote, connector_file, connector_path
from ottla.cli.failures import Failure
from ottla.cli.parser import Arguments


def create(arguments: Arguments) -> int:
    """Creates it, or changes its config if it is there already."""
    path = arguments.text("file")
    name, config = connector_file(path)
    name = arguments.optional("name") or name
    if not name:
        raise Failure(f'{path} names no connector: give it a "name", or use --name')
    remote = Remote.of(arguments)
    before = name in remote.ask("GET", "/connectors")
    body = {**config, "name": name}
    if before:
        remote.ask("PUT", connector_path(name, "/config"), body)
        print(f"{name} is changed")
        return 0
    state = arguments.optional("state")
    remote.ask("POST", "/connectors", {"name": name, "config": body, **({"initial_state": state} if state else {})})
    print(f"{name} is created")
    return 0


def delete(arguments: Arguments) -> int:
    return _each(arguments, "DELETE", "", "deleted")


def pause(arguments: Arguments) -> int:
    return _each(arguments, "PUT", "/pause", "pausing")


def resume(arguments: Arguments) -> int:
    return _each(arguments, "PUT", "/resume", "going on")


def stop(arguments: Arguments) -> int:
    return _each(arguments, "PUT", "/stop", "stopping")


def restart(arguments: Arguments) -> int:
    remote = Remote.of(arguments)
    for name in arguments.texts("name"):
        remote.ask(
            "POST", connector_path(name, "/restart"), None, includeTasks=True, onlyFailed=arguments.flag("only_failed")
        )
        print(f"{name} is restarting")
    return 0


def _each(arguments: Arguments, method: str, rest: str, done: str) -> int:
    remote = Remote.of(arguments)
    for name in arguments.texts("name"):
        remote.ask(method, connector_path(name, rest))
        print(f"{name} is {done}")
    return 0
