"""What a follower makes of its leader's bytes: copied as they are, as many at once as a segment takes.

Offsets and epochs are the leader's; what producers and epochs have to remember is read from the headers on the way.
"""

from typing import Final

from ottla.protocol import batch as b
from ottla.storage import admission, recovery
from ottla.storage.answers import Appended, Rejected
from ottla.storage.log import Log

_HEADER_SIZE: Final = b.HEADER_SIZE


def append_as_follower(log: Log, batches: b.Buffer, leader_epoch: int, now: int) -> Appended | Rejected:
    """Takes batches as the leader wrote them: offsets and epochs are kept, gaps are allowed.

    A batch of a later epoch than `leader_epoch` and what follows it are left out: the sender had lost the lead.
    """
    log.latch.check()
    view = memoryview(batches)
    run: list[b.BatchHeader] = []
    run_start = position = greatest = 0
    try:
        if len(log.segments) == 1 and not log.active.size:
            _begin_with(log, view, now)
        first, last = -1, log.log_end_offset - 1
        while position + _HEADER_SIZE <= len(view):
            header = b.read_header(view, position)
            if position and header.size > len(view) - position:
                break  # the leader's answer ends anywhere; the rest of this batch comes with the next one
            batch = view[position : position + header.size]
            refused = admission.misreplicated(header, batch, last)
            if refused is not None:
                return refused
            if header.leader_epoch > leader_epoch:
                break
            size = position - run_start + header.size
            if run and log.active.is_full(size, header.last_offset, greatest, log.config, now):
                _write_run(log, view[run_start:position], run, now)
                run, run_start = [], position
            greatest = max(greatest, header.max_timestamp) if run else header.max_timestamp
            run.append(header)
            first = header.base_offset if first < 0 else first
            last, position = header.last_offset, position + header.size
        if run:
            _write_run(log, view[run_start:position], run, now)
    except OSError as error:
        log.append_failed(error)
    return Appended(first, last, -1, log.log_start_offset)


def _begin_with(log: Log, view: memoryview, now: int) -> None:
    """Records were deleted in the middle of the batch that the leader's log begins with: it is copied as a whole,
    so that this log, which is empty yet, begins where the batch does."""
    header = b.read_header(view) if len(view) >= _HEADER_SIZE else None
    if header is not None and header.base_offset < log.log_end_offset <= header.last_offset:
        log.begin_at(header.base_offset, now)


def _write_run(log: Log, data: memoryview, run: list[b.BatchHeader], now: int) -> None:
    assert run[0].base_offset >= log.log_end_offset, "a copied batch would lie over one that is there"
    segment = log.active
    greatest = max(header.max_timestamp for header in run)
    if segment.is_full(len(data), run[-1].last_offset, greatest, log.config, now):
        segment = log.roll_to(now, run[0].base_offset)
    for header in run:
        if header.leader_epoch > log.epochs.latest:
            log.epochs.assign(header.leader_epoch, header.base_offset)
    segment.append_run(data, run, log.config.index_interval_bytes)
    producers = log.known_producers or log.load_producers()
    log.log_end_offset = run[-1].last_offset + 1
    position = 0
    for header in run:
        if header.producer_id >= 0:
            txn = recovery.replay(producers, data[position : position + header.size], header)
            if txn is not None:
                log.note_aborted(txn)
        position += header.size
