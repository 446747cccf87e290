"""The host's entry: `ottla.connect.jobs.start:start`, with a JobSpec as arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.connect.jobs.query import ConnectorWork, Delivering, stopped
from ottla.connect.jobs.sink_query import SinkDelivery
from ottla.connect.jobs.source_query import SourceDelivery
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.plugins import PluginType
from ottla.connect.providers import masked
from ottla.connect.spi import ConfigRefused
from ottla.pipelines.job import CannotStart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENTRY = "ottla.connect.jobs.start:start"


def start(spark: SparkSession, arguments: Mapping[str, Any]) -> ConnectorWork:
    """Raises CannotStart, ConnectorStopped: without secrets, since the host logs it."""
    spec = JobSpec.of(arguments)
    try:
        return ConnectorWork(spark, spec, delivery(spec))
    except ConfigRefused as error:
        raise CannotStart(masked(str(error), spec.secrets)) from error
    except CannotStart:
        raise
    except Exception as error:  # a connector may raise anything when it is made
        raise stopped(error, spec.secrets) from error


def delivery(spec: JobSpec) -> Delivering:
    """Raises ConfigRefused."""
    if spec.plugin().PLUGIN_TYPE is PluginType.SOURCE:
        return SourceDelivery(spec)
    return SinkDelivery(spec)
