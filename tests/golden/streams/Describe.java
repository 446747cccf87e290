// What Kafka Streams 4.3.1 says about the topologies of tests/rules/streams/topology/test_describe.py, written the same way there.
// java -cp 'KAFKA_LIBS/*' Describe.java > describe.txt
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.api.*;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.*;

@SuppressWarnings({"unchecked", "rawtypes"})
public class Describe {
    static final Duration SECOND = Duration.ofSeconds(1);
    static final JoinWindows WITHIN = JoinWindows.ofTimeDifferenceWithNoGrace(SECOND);
    static final TimeWindows TUMBLING = TimeWindows.ofSizeWithNoGrace(SECOND);
    static final SessionWindows SESSIONS = SessionWindows.ofInactivityGapWithNoGrace(SECOND);
    static final KeyValueMapper VALUE = (k, v) -> v;
    static final KeyValueMapper SWAPPED = (k, v) -> KeyValue.pair(v, k);
    static final ValueMapper SAME = v -> v;
    static final Predicate ALL = (k, v) -> true;
    static final ValueJoiner FIRST = (x, y) -> x;
    static final Reducer REDUCER = (x, y) -> x;
    static final Initializer ZERO = () -> 0;
    static final Aggregator LAST = (k, v, x) -> x;

    static void show(String name, Topology topology) {
        System.out.print("=== " + name + "\n" + topology.describe() + "<<<\n");
    }

    static void dsl(String name, Consumer<StreamsBuilder> said) {
        StreamsBuilder builder = new StreamsBuilder();
        said.accept(builder);
        show(name, builder.build());
    }

    static <A, B, C, D> ProcessorSupplier<A, B, C, D> processor() {
        return () -> new Processor<A, B, C, D>() {
            public void process(Record<A, B> record) { }
        };
    }

    static FixedKeyProcessorSupplier valueProcessor() {
        return () -> new FixedKeyProcessor() {
            public void process(FixedKeyRecord record) { }
        };
    }

    static StoreBuilder store(String name) {
        return Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore(name), Serdes.String(), Serdes.String());
    }

    static Suppressed untilClosed() {
        return Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded());
    }

    public static void main(String[] arguments) {
        dsl("word_count", b -> b.stream("lines").flatMapValues(v -> List.of(v)).groupBy(VALUE)
            .count(Materialized.as("counts")).toStream().to("out"));
        dsl("word_count_unnamed", b -> b.stream("lines").flatMapValues(v -> List.of(v)).groupBy(VALUE)
            .count().toStream().to("out"));
        dsl("stateless", b -> {
            KStream s = b.stream(List.of("a", "b", "orders"));
            s.filter(ALL).filterNot(ALL, Named.as("not-this")).map(SWAPPED).peek((k, v) -> { })
                .flatMap((k, v) -> List.of()).selectKey(VALUE).mapValues(SAME).foreach((k, v) -> { });
            s.merge(b.stream("other")).to("out", Produced.as("written"));
        });
        dsl("split", b -> {
            Map<String, KStream> branches = ((KStream) b.stream("in")).split(Named.as("kind-"))
                .branch(ALL, Branched.as("big")).branch(ALL)
                .branch(ALL, Branched.withConsumer(third -> ((KStream) third).to("third"))).defaultBranch();
            branches.get("kind-big").to("big");
            branches.get("kind-2").to("second");
            branches.get("kind-0").to("rest");
            b.stream("in2").split().branch((k, v) -> true).noDefaultBranch();
        });
        dsl("tables", b -> {
            ((KTable) b.table("t")).filter(ALL).mapValues(SAME).toStream().to("out");
            ((KTable) b.table("u", Materialized.as("us"))).filterNot(ALL, Materialized.as("kept"))
                .mapValues(SAME, Materialized.with(null, null)).toStream(VALUE).to("o2");
            b.stream("s").toTable().toStream().to("o3");
            ((KStream) b.stream("s2")).selectKey(VALUE).toTable(Named.as("tt"), Materialized.as("ts"))
                .filter(ALL).toStream().to("o4");
            ((KStream) b.stream("s3")).selectKey(VALUE).toTable().toStream().to("o5");
        });
        dsl("stream_table_join", b -> {
            KTable t = b.table("t");
            KStream s = b.stream("s");
            s.join(t, FIRST).to("o1");
            s.selectKey(VALUE).leftJoin(t.filter(ALL).mapValues(SAME), FIRST).to("o2");
            KStream swapped = s.map(SWAPPED);
            swapped.join(t, FIRST, Joined.as("named-join")).to("o3");
            swapped.join(t, FIRST).to("o4");
            swapped.leftJoin(t, FIRST).to("o5");
        });
        dsl("global_table", b -> {
            b.stream("first").to("sink0");
            GlobalKTable g = b.globalTable("g");
            KStream s = b.stream("s");
            s.join(g, VALUE, FIRST)
                .leftJoin(b.globalTable("g2", Materialized.as("gs")), VALUE, FIRST, Named.as("enriched")).to("out");
            b.stream("late").to("sink2");
        });
        dsl("stream_join", b -> {
            KStream l = b.stream("l");
            KStream r = b.stream("r");
            l.join(r, FIRST, WITHIN).to("o1");
            l.leftJoin(r, FIRST, WITHIN).to("o2");
            l.outerJoin(r, FIRST, WITHIN).to("o3");
        });
        dsl("stream_join_named", b -> {
            KStream l = b.stream("l");
            KStream r = ((KStream) b.stream("r")).selectKey(VALUE);
            l.selectKey(VALUE).join(r, FIRST, WITHIN, StreamJoined.as("st").withName("jn")).to("o1");
            l.leftJoin(r, FIRST, WITHIN, StreamJoined.as("st2")).to("o2");
            l.outerJoin(r, FIRST, WITHIN, StreamJoined.with(null, null, null).withName("jo")).to("o3");
        });
        dsl("self_join", b -> {
            KStream l = ((KStream) b.stream("l")).selectKey(VALUE);
            l.join(l, FIRST, WITHIN).to("o1");
            b.stream("l").filter((k, v) -> true).to("o2");
        });
        dsl("aggregates", b -> {
            KGroupedStream g = b.stream("in").groupByKey();
            g.count().toStream().to("c");
            g.count(Materialized.with(null, null)).toStream().to("c2");
            g.reduce(REDUCER).toStream().to("r");
            g.aggregate(ZERO, LAST, Named.as("agg"), Materialized.as("store")).toStream().to("ag");
            KGroupedStream h = ((KStream) b.stream("in2")).groupBy(VALUE, Grouped.as("by-v"));
            h.count().toStream().to("d");
            h.reduce(REDUCER, Materialized.as("red")).toStream().to("d2");
        });
        dsl("windows", b -> {
            KGroupedStream g = ((KStream) b.stream("in")).groupBy(VALUE);
            g.windowedBy(TUMBLING).count().toStream().to("a");
            g.windowedBy(TUMBLING).count(Materialized.with(null, null)).suppress(untilClosed()).toStream().to("b");
            g.windowedBy(SESSIONS).count().toStream().to("c");
            g.windowedBy(SESSIONS).emitStrategy(EmitStrategy.onWindowClose())
                .aggregate(ZERO, LAST, (k, x, y) -> x, Named.as("sess"), Materialized.as("sessions"))
                .filter(ALL).suppress(untilClosed().withName("final")).mapValues(SAME).toStream().to("d");
            g.windowedBy(TUMBLING).reduce(REDUCER).toStream().to("e");
        });
        dsl("grouped_table", b -> {
            KGroupedTable g = ((KTable) b.table("t")).filter(ALL).groupBy(SWAPPED);
            g.count().toStream().to("a");
            g.reduce(REDUCER, REDUCER, Materialized.as("red")).toStream().to("b");
            g.aggregate(ZERO, LAST, LAST, Named.as("named"), Materialized.as("ag")).toStream().to("c");
            KGroupedTable h = ((KTable) b.table("t2")).groupBy(SWAPPED, Grouped.as("regroup"));
            h.count().toStream().to("d");
            h.count(Materialized.as("n2")).toStream().to("e");
        });
        dsl("repartition", b -> {
            KStream s = b.stream("in");
            s.repartition().to("a");
            s.repartition(Repartitioned.as("again")).groupByKey().count().toStream().to("b");
            s.selectKey(VALUE).repartition(Repartitioned.numberOfPartitions(4)).join(b.table("t"), FIRST).to("c");
        });
        dsl("process", b -> {
            b.addStateStore(store("ks"));
            b.addStateStore(store("unused"));
            KStream s = b.stream("in");
            s.process(processor(), "ks").groupByKey().count().toStream().to("a");
            s.processValues(valueProcessor(), Named.as("pv"), "ks").groupByKey().count().toStream().to("b");
            s.process(processor(), Named.as("pn")).mapValues(SAME).to("d");
            b.stream("x").process(processor()).to("c");
        });
        dsl("pattern", b -> {
            b.stream(Pattern.compile("topic-.*")).to("a");
            b.stream(Pattern.compile("topic-.*")).mapValues(v -> v).to("b");
            b.stream(Pattern.compile("x[0-9]+"), Consumed.as("xs")).to("c");
        });
        dsl("merged_sources", b -> {
            KStream a = b.stream("a");
            KStream other = b.stream("b");
            KStream again = b.stream("a");
            again.merge(other).join(a, FIRST, WITHIN).to("o");
            again.to("p");
            KStream kept = a.filter(ALL);
            kept.merge(again.mapValues(SAME)).merge(kept).groupByKey().count().toStream().to("q");
        });
        dsl("named_tables", b -> {
            b.table("t", Consumed.as("tab"), Materialized.as("ts")).toStream(Named.as("str")).to("o");
            b.globalTable("g", Consumed.as("glob"));
            b.stream("s", Consumed.as("src")).to("o2");
        });
        dsl("suppressed_join", b -> {
            KTable t = ((KTable) b.stream("in").groupByKey().windowedBy(TUMBLING).count()).suppress(untilClosed()).filter(ALL);
            ((KStream) b.stream("w")).join(t, FIRST).to("o");
        });
        show("processor_api", new Topology()
            .addSource("Source", "in1", "in2")
            .addSource("Other", Pattern.compile("p.*"))
            .addProcessor("P1", processor(), "Source")
            .addProcessor("P2", processor(), "Source", "Other")
            .addStateStore(store("kv"), "P1")
            .addStateStore(store("zz"), "P1", "P2")
            .addSink("Sink", "out", "P1", "P2")
            .addSource("Third", "in3")
            .addProcessor("P3", processor(), "Third")
            .connectProcessorAndStateStores("P3", "kv"));
        for (int seed = 1; seed <= (arguments.length > 0 ? Integer.parseInt(arguments[0]) : 24); seed++) random(seed);
    }

    static long state;

    static int next(int bound) {
        state = (state * 1103515245L + 12345L) & 0x7fffffffL;
        return (int) ((state >> 8) % bound);
    }

    /** Names of all kinds, in all shapes: hash order and the order of neighbours show. */
    static void random(int seed) {
        state = seed;
        Topology topology = new Topology();
        List<String> parents = new ArrayList<>();
        List<String> stores = new ArrayList<>();
        int nodes = 3 + next(40);
        for (int i = 0; i < nodes; i++) {
            int kind = parents.isEmpty() ? 0 : next(8);
            if (kind == 0) {
                String name = "SOURCE-" + next(1000) + "-" + i;
                String[] topics = new String[1 + next(4)];
                for (int j = 0; j < topics.length; j++) topics[j] = "topic-" + next(10000) + "-" + i + "-" + j;
                topology.addSource(name, topics);
                parents.add(name);
                continue;
            }
            LinkedHashSet<String> chosen = new LinkedHashSet<>();
            int count = 1 + next(3);
            for (int j = 0; j < count; j++) chosen.add(parents.get(next(parents.size())));
            String[] above = chosen.toArray(new String[0]);
            if (kind == 1) {
                topology.addSink("SINK-" + i, "out" + next(50), above);
                continue;
            }
            String name = (next(2) == 0 ? "KSTREAM-" : "p") + next(1000) + "-" + i;
            topology.addProcessor(name, processor(), above);
            parents.add(name);
            while (next(5) == 0) {
                if (!stores.isEmpty() && next(3) == 0) {
                    topology.connectProcessorAndStateStores(name, stores.get(next(stores.size())));
                } else {
                    String added = "store-" + next(1000) + "-" + stores.size();
                    stores.add(added);
                    topology.addStateStore(store(added), name);
                }
            }
        }
        show("random" + seed, topology);
    }
}
