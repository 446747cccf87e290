"""Which replica a client in a rack should read from (KIP-392), by the rule of Kafka's rack-aware selector."""

from ottla.replication.leader import Brokers, PartitionLeader


def preferred_replica(leader: PartitionLeader, brokers: Brokers, rack: str, fetch_offset: int) -> int:
    """The id of a follower to read from instead; -1 if the leader itself is best."""
    own = brokers.registered.get(leader.broker_id)
    if own is not None and own.rack == rack:
        return -1
    best, best_rank = -1, (-1, 0, 0)
    for follower in leader.followers.values():
        broker = brokers.registered.get(follower.id)
        if broker is None or broker.fenced or broker.rack != rack or follower.id not in leader.isr:
            continue  # one out of sync would fall ever further behind what its reader wants
        if not 0 <= follower.log_start_offset <= fetch_offset <= follower.log_end_offset:
            continue
        rank = (follower.log_end_offset, follower.caught_up_at, -follower.id)
        if best < 0 or rank > best_rank:
            best, best_rank = follower.id, rank
    return best
