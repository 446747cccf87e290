"""`ottla streams describe`, `explain` and `package`: what an application is, without running it."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import sys
from typing import Final

from ottla.cli.failures import Failure
from ottla.cli.output import note
from ottla.cli.parser import Arguments
from ottla.cli.streams.app import app_of

OK: Final = 0


def describe(arguments: Arguments) -> int:
    app, _ = app_of(arguments)
    sys.stdout.write(app.topology.describe())
    return OK


def explain(arguments: Arguments) -> int:
    from ottla.pipelines.installed import CannotRun

    app, _ = app_of(arguments)
    try:
        print(app.explain().rstrip("\n"))
    except CannotRun as error:
        raise Failure(str(error)) from error
    return OK


def package(arguments: Arguments) -> int:
    from pathlib import Path

    from ottla.streams import archive
    from ottla.streams.app_file import AppFileError, load

    try:
        app, module = load(arguments.text("file"))
    except AppFileError as error:
        raise Failure(str(error)) from error
    target = Path(arguments.optional("output_file") or f"{app.application_id}.zip")
    try:
        archive.write(
            target,
            module,
            more_files=[Path(path) for path in arguments.texts("add")],
            more_packages=arguments.texts("with_package"),
            bare=arguments.flag("bare"),
        )
    except archive.CannotArchive as error:
        raise Failure(str(error)) from error
    note(f"{target}: {target.stat().st_size / 1e6:.1f} MB")
    note(f"  ottla streams run {target} --master spark://HOST:7077 --state-dir URL")
    note(
        f"  or: unzip {target} {archive.MAIN} && spark-submit --archives {target}#{archive.UNPACKED_AS} {archive.MAIN}"
    )
    return OK
