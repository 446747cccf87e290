"""`ottla connect run FILE.json`: one connector without a worker."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Final

from ottla.cli.connect.remote import connector_file
from ottla.cli.failures import Failure
from ottla.cli.output import note
from ottla.cli.parser import Arguments
from ottla.cli.reach import DEFAULT_BOOTSTRAP

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


def run(arguments: Arguments) -> int:
    from ottla.connect.jobs.runner import ENTRY, job_name
    from ottla.connect.jobs.spec import JobSpec
    from ottla.connect.providers import Providers
    from ottla.pipelines.host import Host
    from ottla.pipelines.job import CannotStart, Job

    path = arguments.text("file")
    _see_modules_beside(path)
    name, config = connector_file(path)
    texts = {key: None if value is None else str(value) for key, value in config.items()}
    name = name or Path(path).stem
    directory = arguments.optional("state_dir") or tempfile.mkdtemp(prefix=f"ottla-{job_name(name)}-")
    spec = JobSpec(
        name=name,
        config=Providers({}).resolve(texts),
        bootstrap=arguments.optional("bootstrap") or os.environ.get("OTTLA_BOOTSTRAP") or DEFAULT_BOOTSTRAP,
        group_id=arguments.text("group"),
        offsets_topic=texts.get("offsets.storage.topic") or "connect-offsets",
        directory=directory,
        defaults=DEFAULTS,
        tasks=int(texts.get("tasks.max") or "1"),
        once=arguments.flag("once"),
    )
    host = Host(f"ottla connect {name}", arguments.text("master"))
    note(f"{name}: brokers at {spec.bootstrap}; Ctrl-C stops it")
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
    counts = host.progress(job_name(name)).get("counts", {})
    note(f"{name}: {counts.get('read', 0):,} records read, {counts.get('written', 0):,} written")
    return 0
