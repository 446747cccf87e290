"""What a node shows of itself to whoever watches it: metrics, health, version.

Everything is read where it lies when somebody asks: counters beside the code that counts (`ottla.metrics`), the rest
from the replicas, the coordinators, the quorum and the image. Each module writes the families of one concern as pieces
of text; between two pieces the loop may serve others, so a piece looks at `SLICE` things at most and takes nothing for
granted that it saw before the last one. `scrape` puts them in order. `/readyz` reads the health of the services
(`node.services`).

Several nodes are scraped into one dashboard. What kafka_exporter would tell of a whole cluster is told by one node
each: a partition by its leader, a group by its coordinator, the rest by the active controller, so that sums over the
nodes are right.
"""
