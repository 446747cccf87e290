"""Connectors in the Spark host: a source and a sink each as one Structured Streaming query.

Theory of operation. The driver looks whether there is something to do (a thread for each connector, `looking`) and puts
portions of work where Spark finds them (`feed`); Spark makes micro-batches of these, runs their tasks side by side with
those of other connectors (a session and a FAIR pool each) and stops what fails; records never pass through it. The task
that reads also converts, transforms and writes, and only a report of it goes back to the driver (`reports`).

Where a connector stands is told by Kafka alone. A source's tasks write records, dead letters and source offsets into
one transaction each, whose id is KIP-618's; the driver ends it. A sink's offsets are those of its group, committed
when the target has taken the batch, in one transaction with its dead letters; a life whose id another has taken over is
told so before it writes (`fence`). So a start asks Kafka, never Spark's checkpoint, which begins anew with each start
and only numbers batches: a crash before our commit left nothing behind, and one after it, before Spark's, leaves a
position from which the next start goes on. No marker is needed (the position is one), offsets altered by REST or by
Kafka's tools count at once, and it makes no difference which worker goes on.

`spec` is what a job is given, `chain` converts and transforms with a verdict for each record, `outgoing` writes inside
a transaction, `sizes` knows what topics take, and `letters` makes dead letters fit. `source_task` and `sink_task` run
in Spark's workers; `source_query` and `sink_query` are the driver's side, `source_planning` and `sink_planning` find
out what there is to do, and `gathering` when that is a batch. `start` is the host's entry, `runner` what a worker
calls.
"""
