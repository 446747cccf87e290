"""What the cluster decides: the active controller, as a state machine over the metadata log.

`machine.Controller` holds the image that runs ahead of the committed one. A command (a request of Kafka's protocol,
or a chore whose time has come) goes to its decider, one module per concern: `topics`, `partitions` with `elections`,
`isr`, `reassignment`, `brokers` with `registration` and `sessions`, `configs`, `features`, `producer_ids`,
`directories`. A decider reads the image and gives a `Decision`: records, and the reply that holds once they are
committed. It changes nothing. The runner (`runtime.active`) appends the records, replays them into the image, and
answers when the quorum has committed them; if leadership is lost the whole machine is thrown away, and the next
leader makes its own from the log.

What is not in the log is known to be so: which brokers live (`sessions`) starts anew with each controller, with a
full session for everybody. `watchlist` keeps partitions that are not as they should be, so that nothing walks over
all of them. `chores` are what a controller does unasked: balance leaders, end sessions, expire.
"""
