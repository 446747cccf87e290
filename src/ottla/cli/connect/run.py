"""`ottla connect run FILE.json`: one connector without a worker."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.cli.connect.remote import connector_file
from ottla.cli.failures import Failure
from ottla.cli.output import note
from ottla.cli.parser import Arguments
from ottla.cli.reach import DEFAULT_BOOTSTRAP, client_settings

if TYPE_CHECKING:
    from ottla.connect.jobs.spec import JobSpec

DEFAULTS: Final = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
"""As of the worker of `ottla start`."""
LOOK_S: Final = 0.2


def _see_modules_beside(path: str) -> None:
    """So that `connector.class` may be `weather:Weather`; Spark's workers find them by the environment."""
    folder = str(Path.cwd() if path == "-" else Path(path).absolute().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = folder if not before else f"{folder}{os.pathsep}{before}"


def spec_of(arguments: Arguments, path: str, directory: str = "", *, group: str = "", once: bool = False) -> "JobSpec":
    """Of the connector in a file, as a job without a worker."""
    from ottla.client.reach import secured
    from ottla.connect.catalogue import ANY_MODULE
    from ottla.connect.definitions import ConfigError
    from ottla.connect.jobs.spec import JobSpec
    from ottla.connect.providers import LOCAL, Providers

    _see_modules_beside(path)
    name, config = connector_file(path)
    given = {key: None if value is None else str(value) for key, value in config.items()}
    providers = Providers(LOCAL)
    try:
        texts, secrets = providers.resolve(given), providers.secrets(given)
    except ConfigError as error:
        raise Failure(str(error)) from error
    name = name or Path(path).stem
    client = client_settings(arguments)
    named = arguments.optional("bootstrap") or os.environ.get("OTTLA_BOOTSTRAP")
    return JobSpec(
        name=name,
        config=texts,
        bootstrap=named or client.get("bootstrap.servers") or DEFAULT_BOOTSTRAP,
        group_id=group,
        offsets_topic=texts.get("offsets.storage.topic") or "connect-offsets",
        directory=directory,
        defaults=DEFAULTS,
        client=secured(client),
        tasks=int(texts.get("tasks.max") or "1"),
        once=once,
        modules=ANY_MODULE,
        secrets=secrets,
    )


def unheeded(spec: "JobSpec") -> tuple[str, ...]:
    """Keys that change nothing; a config that cannot be judged fails when it is started, and says why."""
    from ottla.connect.providers import Providers
    from ottla.connect.validation import Judge, NotJudged

    try:
        return Judge(DEFAULTS, Providers({}), catalogue=spec.plugins()).judge(spec.config).unheeded
    except NotJudged:
        return ()


def run(arguments: Arguments) -> int:
    from ottla.connect.jobs.runner import ENTRY, job_name
    from ottla.pipelines.host import Host
    from ottla.pipelines.job import CannotStart, Job

    directory = arguments.optional("state_dir") or tempfile.mkdtemp(prefix="ottla-connect-run-")
    spec = spec_of(
        arguments, arguments.text("file"), directory, group=arguments.text("group"), once=arguments.flag("once")
    )
    name = spec.name
    host = Host(f"ottla connect {name}", arguments.text("master"))
    note(f"{name}: brokers at {spec.bootstrap}; Ctrl-C stops it")
    if strange := unheeded(spec):
        note(f"{name}: these keys change nothing: {', '.join(strange)}")
    try:
        host.start(Job(job_name(name), ENTRY, asdict(spec)), again=False)
        while not host.wait(job_name(name), LOOK_S):
            pass
    except KeyboardInterrupt:
        host.close()
        return 0
    except CannotStart as error:
        raise Failure(str(error)) from error
    failure = host.failure(job_name(name))
    if failure is not None:
        from ottla.pipelines.failures import told

        raise Failure(f"{name} failed: {told(failure)}") from failure
    note(f"{name}: {told_counts(host.progress(job_name(name)).get('counts', {}))}")
    return 0


def told_counts(counts: Mapping[str, int]) -> str:
    """What became of the records."""
    said = f"{counts.get('read', 0):,} records read, {counts.get('written', 0):,} written"
    failed, letters = counts.get("failed", 0), counts.get("letters", 0)
    if not failed:
        return said
    kept = f"{letters:,} dead letter{'' if letters == 1 else 's'}" if letters else "left out"
    return f"{said}, {failed:,} no good: {kept}"
