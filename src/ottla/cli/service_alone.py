"""What commands that run one service by itself share: a file, the cluster it is for, and why it cannot be.

Each stands in front of any Kafka cluster, and takes the file of the program it replaces.
"""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.cli.failures import Failure
from ottla.cli.parser import Arguments, Option, UsageError
from ottla.cli.reach import BOOTSTRAP, COMMAND_CONFIG, DEFAULT_BOOTSTRAP

if TYPE_CHECKING:
    from ottla.client.addresses import Address


def options(url: str) -> tuple[Option, ...]:
    """`url`: where the service answers unless it is told otherwise."""
    return (
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("--listen", value="URL", help=f"Where it answers. Default: {url}, or the file's."),
        Option("--override", "-o", value="NAME=VALUE", many=True, help="A setting, as in the file."),
    )


def properties_of(path: str) -> dict[str, str]:
    from ottla.model.properties.file import parse_properties

    with open(path, encoding="utf-8") as file:
        try:
            return parse_properties(file.read())
        except ValueError as error:
            raise Failure(f"{path}: {error}") from error


def brokers(arguments: Arguments, of_file: Sequence[str]) -> list[Address]:
    """By the option, the environment, the file, or on this machine. Raises ValueError."""
    from ottla.client.addresses import parse_bootstrap

    named = arguments.optional("bootstrap") or os.environ.get("OTTLA_BOOTSTRAP")
    return parse_bootstrap(named or ",".join(of_file) or DEFAULT_BOOTSTRAP)


@contextmanager
def explained(path: str | None, settings_error: type[ValueError]) -> Iterator[None]:
    """What is wrong with the settings, of which each room has its own error, or with what was typed."""
    from ottla.client.security import SecurityRefused

    try:
        yield
    except settings_error as error:
        problems = "\n".join(f"  {problem}" for problem in str(error).splitlines())
        raise Failure(f"{path or 'the settings'} cannot be used:\n{problems}") from error
    except SecurityRefused as error:
        raise Failure(str(error)) from error
    except ValueError as error:
        raise UsageError(str(error)) from error


@contextmanager
def running(what: str) -> Iterator[None]:
    from ottla.node.services import CannotStart

    try:
        yield
    except CannotStart as error:
        raise Failure(f"{what} cannot start: {error}") from error
