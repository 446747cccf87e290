"""Counters, windows and histograms, and the text in which Prometheus reads them.

Theory of operation. Whoever does the work counts it: a plain integer in an object that hangs beside what is counted
(`counts`), on the topic, the route, the listener or the quorum, so that nothing is looked up by name or label on the
way of a record. Counting takes an addition; nothing is done per record, as batches say in their headers how many they
hold. Counters only rise. Everything else (a rate, an average, a quantile, a share of idle time) is the difference of
two looks at such counters, and is worked out when somebody asks for it (`window`), never on a timer.

Names are data (`names`): one row per family with its type and its help, in the spelling of the JMX exporter rules that
Kafka's usual dashboards and alerts are written for, and of kafka_exporter. `text` writes families in Prometheus' format
as pieces that are small enough for a loop that has other things to do.

A core: no loop, no clock, no disk. Time is an argument, in milliseconds unless a name says otherwise.
"""
