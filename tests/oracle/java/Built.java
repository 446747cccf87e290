// Builds a topology with Kafka Streams' DSL from the steps of a case. Each step takes what earlier steps gave a name.

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.BiFunction;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.BranchedKStream;
import org.apache.kafka.streams.kstream.CogroupedKStream;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Initializer;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.SessionWindowedCogroupedKStream;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.TimeWindowedCogroupedKStream;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.UnlimitedWindows;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.ValueJoinerWithKey;
import org.apache.kafka.streams.kstream.ValueMapperWithKey;
import org.apache.kafka.streams.kstream.ValueTransformerWithKeySupplier;
import org.apache.kafka.streams.kstream.internals.AbstractStream;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorSupplier;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

@SuppressWarnings({"unchecked", "rawtypes"})
final class Built {
    private final StreamsBuilder builder = new StreamsBuilder();
    private final Map<String, Object> made = new HashMap<>();
    private final List<JsonNode> afterwards = new ArrayList<>();

    static Topology topology(JsonNode steps, Properties settings) {
        Built built = new Built();
        for (JsonNode step : steps) built.add(step);
        Topology topology = built.builder.build(settings);
        for (JsonNode step : built.afterwards) add(topology, step);
        return topology;
    }

    private static String text(JsonNode step, String field) {
        return Options.text(step, field);
    }

    private void add(JsonNode step) {
        String op = text(step, "op");
        if (op.startsWith("add_")) {
            afterwards.add(step);
            return;
        }
        Object result = switch (op) {
            case "stream" -> builder.stream(texts(step.get("topics")), Options.consumed(step));
            case "table" -> builder.table(text(step, "topic"), Options.consumed(step), Options.materialized(step));
            case "global_table" -> step.path("materialized").hasNonNull("store")
                ? builder.globalTable(text(step, "topic"), Options.consumed(step), Options.materialized(step))
                : builder.globalTable(text(step, "topic"), Options.consumed(step)); // 4.3.1 does not take an unnamed store here
            case "store" -> builder.addStateStore(store(step));
            default -> {
                Object in = made.get(text(step, "in"));
                if (in instanceof KStream stream) yield onStream(op, stream, step);
                if (in instanceof KTable table) yield onTable(op, table, step);
                if (in instanceof KGroupedStream grouped) yield onGrouped(op, grouped, step);
                if (in instanceof KGroupedTable grouped) yield onGroupedTable(op, grouped, step);
                if (in instanceof TimeWindowedKStream windowed) yield onWindowed(op, windowed, step);
                if (in instanceof SessionWindowedKStream windowed) yield onSessions(op, windowed, step);
                if (in instanceof CogroupedKStream cogrouped) yield onCogrouped(op, cogrouped, step);
                if (in instanceof TimeWindowedCogroupedKStream windowed) yield onWindowedCogrouped(windowed, step);
                if (in instanceof SessionWindowedCogroupedKStream windowed) yield onSessionsCogrouped(windowed, step);
                throw new IllegalArgumentException("nothing to take from: " + step);
            }
        };
        if (step.hasNonNull("out")) made.put(text(step, "out"), result);
    }

    private static List<String> texts(JsonNode list) {
        List<String> found = new ArrayList<>();
        list.forEach(item -> found.add(item.asText()));
        return found;
    }

    private static IllegalArgumentException unknown(JsonNode step) {
        return new IllegalArgumentException("no such step: " + step);
    }

    private static boolean named(JsonNode step) {
        return step.hasNonNull("name");
    }

    private Object onStream(String op, KStream<Object, Object> stream, JsonNode step) {
        String f = text(step, "f");
        switch (op) {
            case "filter":
                return named(step) ? stream.filter((k, v) -> Functions.test(f, k, v), Options.named(step)) : stream.filter((k, v) -> Functions.test(f, k, v));
            case "filter_not":
                return named(step) ? stream.filterNot((k, v) -> Functions.test(f, k, v), Options.named(step)) : stream.filterNot((k, v) -> Functions.test(f, k, v));
            case "map_values": {
                ValueMapperWithKey<Object, Object, Object> mapper = (k, v) -> Functions.value(f, k, v);
                return named(step) ? stream.mapValues(mapper, Options.named(step)) : stream.mapValues(mapper);
            }
            case "flat_map_values": {
                ValueMapperWithKey<Object, Object, Iterable<Object>> mapper = (k, v) -> Functions.many(f, k, v);
                return named(step) ? stream.flatMapValues(mapper, Options.named(step)) : stream.flatMapValues(mapper);
            }
            case "select_key":
                return named(step) ? stream.selectKey((k, v) -> Functions.key(f, k, v), Options.named(step)) : stream.selectKey((k, v) -> Functions.key(f, k, v));
            case "map":
                return named(step) ? stream.map((k, v) -> pair(step, k, v), Options.named(step)) : stream.map((k, v) -> pair(step, k, v));
            case "flat_map":
                return named(step) ? stream.flatMap((k, v) -> pairs(step, k, v), Options.named(step)) : stream.flatMap((k, v) -> pairs(step, k, v));
            case "peek":
                return named(step) ? stream.peek((k, v) -> { }, Options.named(step)) : stream.peek((k, v) -> { });
            case "foreach":
                if (named(step)) stream.foreach((k, v) -> { }, Options.named(step));
                else stream.foreach((k, v) -> { });
                return null;
            case "print":
                stream.print(Options.printed(step));
                return null;
            case "merge": {
                KStream<Object, Object> other = (KStream<Object, Object>) made.get(text(step, "other"));
                return named(step) ? stream.merge(other, Options.named(step)) : stream.merge(other);
            }
            case "split":
                split(stream, step);
                return null;
            case "repartition":
                return stream.repartition(Options.repartitioned(step));
            case "to":
                stream.to(text(step, "topic"), Options.produced(step));
                return null;
            case "to_dynamic":
                stream.to((k, v, context) -> text(step, "prefix") + Functions.key(f, k, v), Options.produced(step));
                return null;
            case "to_table":
                return named(step) ? stream.toTable(Options.named(step), Options.materialized(step)) : stream.toTable(Options.materialized(step));
            case "group_by_key":
                return stream.groupByKey(Options.grouped(step));
            case "group_by":
                return stream.groupBy((k, v) -> Functions.key(text(step, "key_f"), k, v), Options.grouped(step));
            case "join", "left_join", "outer_join":
                return join(op, stream, step);
            case "process": {
                ProcessorSupplier<Object, Object, Object, Object> supplier = () -> Processors.of(step.get("processor"));
                String[] stores = texts(step.path("stores")).toArray(new String[0]);
                return named(step) ? stream.process(supplier, Options.named(step), stores) : stream.process(supplier, stores);
            }
            case "process_values": {
                FixedKeyProcessorSupplier<Object, Object, Object> supplier = () -> Processors.fixed(step.get("processor"));
                String[] stores = texts(step.path("stores")).toArray(new String[0]);
                return named(step) ? stream.processValues(supplier, Options.named(step), stores) : stream.processValues(supplier, stores);
            }
            default:
                throw unknown(step);
        }
    }

    private static KeyValue<Object, Object> pair(JsonNode step, Object key, Object value) {
        return KeyValue.pair(Functions.key(text(step, "key_f"), key, value), Functions.value(text(step, "value_f"), key, value));
    }

    private static Iterable<KeyValue<Object, Object>> pairs(JsonNode step, Object key, Object value) {
        List<KeyValue<Object, Object>> found = new ArrayList<>();
        for (Object item : Functions.many(text(step, "f"), key, value)) found.add(pair(step, key, item));
        return found;
    }

    private Branched<Object, Object> branch(JsonNode branch) {
        String out = text(branch, "out");
        return Branched.withConsumer(stream -> made.put(out, stream), text(branch, "name"));
    }

    private void split(KStream<Object, Object> stream, JsonNode step) {
        BranchedKStream<Object, Object> branches = named(step) ? stream.split(Options.named(step)) : stream.split();
        for (JsonNode each : step.get("branches")) {
            branches = branches.branch((k, v) -> Functions.test(text(each, "f"), k, v), branch(each));
        }
        if (step.hasNonNull("default")) branches.defaultBranch(branch(step.get("default")));
        else branches.noDefaultBranch();
    }

    private Object join(String op, KStream<Object, Object> stream, JsonNode step) {
        ValueJoinerWithKey<Object, Object, Object, Object> joiner = (k, l, r) -> Functions.join(text(step, "f"), k, l, r);
        Object other = made.get(text(step, "other"));
        if (other instanceof KStream right) {
            return switch (op) {
                case "join" -> stream.join(right, joiner, Options.joinWindows(step), Options.streamJoined(step));
                case "left_join" -> stream.leftJoin(right, joiner, Options.joinWindows(step), Options.streamJoined(step));
                default -> stream.outerJoin(right, joiner, Options.joinWindows(step), Options.streamJoined(step));
            };
        }
        if (other instanceof KTable right) {
            return op.equals("join") ? stream.join(right, joiner, Options.joined(step)) : stream.leftJoin(right, joiner, Options.joined(step));
        }
        GlobalKTable<Object, Object> right = (GlobalKTable<Object, Object>) other;
        String key = text(step, "key_f");
        if (named(step)) {
            return op.equals("join")
                ? stream.join(right, (k, v) -> Functions.key(key, k, v), joiner, Options.named(step))
                : stream.leftJoin(right, (k, v) -> Functions.key(key, k, v), joiner, Options.named(step));
        }
        return op.equals("join")
            ? stream.join(right, (k, v) -> Functions.key(key, k, v), joiner)
            : stream.leftJoin(right, (k, v) -> Functions.key(key, k, v), joiner);
    }

    private Object onTable(String op, KTable<Object, Object> table, JsonNode step) {
        String f = text(step, "f");
        boolean stored = step.hasNonNull("materialized");
        switch (op) {
            case "filter":
                if (stored && named(step)) return table.filter((k, v) -> Functions.test(f, k, v), Options.named(step), Options.materialized(step));
                if (stored) return table.filter((k, v) -> Functions.test(f, k, v), Options.materialized(step));
                return named(step) ? table.filter((k, v) -> Functions.test(f, k, v), Options.named(step)) : table.filter((k, v) -> Functions.test(f, k, v));
            case "filter_not":
                if (stored && named(step)) return table.filterNot((k, v) -> Functions.test(f, k, v), Options.named(step), Options.materialized(step));
                if (stored) return table.filterNot((k, v) -> Functions.test(f, k, v), Options.materialized(step));
                return named(step) ? table.filterNot((k, v) -> Functions.test(f, k, v), Options.named(step)) : table.filterNot((k, v) -> Functions.test(f, k, v));
            case "map_values": {
                ValueMapperWithKey<Object, Object, Object> mapper = (k, v) -> Functions.value(f, k, v);
                if (stored && named(step)) return table.mapValues(mapper, Options.named(step), Options.materialized(step));
                if (stored) return table.mapValues(mapper, Options.materialized(step));
                return named(step) ? table.mapValues(mapper, Options.named(step)) : table.mapValues(mapper);
            }
            case "to_stream":
                if (step.hasNonNull("key_f")) {
                    String key = text(step, "key_f");
                    return named(step) ? table.toStream((k, v) -> Functions.key(key, k, v), Options.named(step)) : table.toStream((k, v) -> Functions.key(key, k, v));
                }
                return named(step) ? table.toStream(Options.named(step)) : table.toStream();
            case "group_by":
                return table.groupBy((k, v) -> pair(step, k, v), Options.grouped(step));
            case "transform_values": {
                ValueTransformerWithKeySupplier<Object, Object, Object> supplier = () -> Processors.transformer(step.get("transformer"));
                String[] stores = texts(step.path("stores")).toArray(new String[0]);
                if (stored && named(step)) return table.transformValues(supplier, Options.materialized(step), Options.named(step), stores);
                if (stored) return table.transformValues(supplier, Options.<KeyValueStore<Bytes, byte[]>>materialized(step), stores);
                return named(step) ? table.transformValues(supplier, Options.named(step), stores) : table.transformValues(supplier, stores);
            }
            case "join", "left_join", "outer_join":
                return step.hasNonNull("key_f") ? foreignKeyJoin(op, table, step) : join(op, table, step);
            case "serded":
                return serded(table, Options.serde(step, "value"));
            case "suppress": {
                Suppressed until = Options.suppressed(step);
                return table.suppress(named(step) ? until.withName(text(step, "name")) : until);
            }
            default:
                throw unknown(step);
        }
    }

    /** A table with a serde for its values, which the DSL gives to stores only. */
    private static Object serded(KTable<Object, Object> table, Serde<Object> serde) {
        try {
            Field field = AbstractStream.class.getDeclaredField("valueSerde");
            field.setAccessible(true);
            field.set(table, serde);
            return table;
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private Object join(String op, KTable<Object, Object> table, JsonNode step) {
        ValueJoiner<Object, Object, Object> joiner = (l, r) -> Functions.join(text(step, "f"), null, l, r);
        KTable<Object, Object> other = (KTable<Object, Object>) made.get(text(step, "other"));
        Named name = named(step) ? Options.named(step) : null;
        if (!step.hasNonNull("materialized")) {
            return switch (op) {
                case "join" -> name == null ? table.join(other, joiner) : table.join(other, joiner, name);
                case "left_join" -> name == null ? table.leftJoin(other, joiner) : table.leftJoin(other, joiner, name);
                default -> name == null ? table.outerJoin(other, joiner) : table.outerJoin(other, joiner, name);
            };
        }
        Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> kept = Options.materialized(step);
        return switch (op) {
            case "join" -> name == null ? table.join(other, joiner, kept) : table.join(other, joiner, name, kept);
            case "left_join" -> name == null ? table.leftJoin(other, joiner, kept) : table.leftJoin(other, joiner, name, kept);
            default -> name == null ? table.outerJoin(other, joiner, kept) : table.outerJoin(other, joiner, name, kept);
        };
    }

    private Object foreignKeyJoin(String op, KTable<Object, Object> table, JsonNode step) {
        ValueJoiner<Object, Object, Object> joiner = (l, r) -> Functions.join(text(step, "f"), null, l, r);
        KTable<Object, Object> other = (KTable<Object, Object>) made.get(text(step, "other"));
        BiFunction<Object, Object, Object> foreign = (k, v) -> Functions.key(text(step, "key_f"), k, v);
        Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> kept = Options.materialized(step);
        TableJoined<Object, Object> joined = Options.tableJoined(step);
        return op.equals("join") ? table.join(other, foreign, joiner, joined, kept) : table.leftJoin(other, foreign, joiner, joined, kept);
    }

    private Object onGrouped(String op, KGroupedStream<Object, Object> grouped, JsonNode step) {
        String f = text(step, "f");
        Initializer<Object> initial = () -> Functions.initial(text(step, "initial"));
        switch (op) {
            case "windowed_by":
                return windowed(grouped, step);
            case "cogroup":
                return grouped.cogroup((k, v, a) -> Functions.aggregate(f, k, v, a));
            case "count":
                return named(step) ? grouped.count(Options.named(step), counted(step)) : grouped.count(counted(step));
            case "reduce":
                return named(step)
                    ? grouped.reduce((l, r) -> Functions.reduce(f, l, r), Options.named(step), Options.materialized(step))
                    : grouped.reduce((l, r) -> Functions.reduce(f, l, r), Options.materialized(step));
            case "aggregate":
                return named(step)
                    ? grouped.aggregate(initial, (k, v, a) -> Functions.aggregate(f, k, v, a), Options.named(step), Options.materialized(step))
                    : grouped.aggregate(initial, (k, v, a) -> Functions.aggregate(f, k, v, a), Options.materialized(step));
            default:
                throw unknown(step);
        }
    }

    private static org.apache.kafka.streams.kstream.Materialized counted(JsonNode step) {
        return Options.materialized(step);
    }

    private static Object windowed(KGroupedStream<Object, Object> grouped, JsonNode step) {
        boolean onClose = step.path("emit").asText().equals("close");
        EmitStrategy emit = onClose ? EmitStrategy.onWindowClose() : EmitStrategy.onWindowUpdate();
        if (text(step, "type").equals("session")) {
            Duration gap = Options.millis(step, "gap");
            SessionWindows windows = step.has("grace")
                ? SessionWindows.ofInactivityGapAndGrace(gap, Options.millis(step, "grace"))
                : SessionWindows.ofInactivityGapWithNoGrace(gap);
            SessionWindowedKStream<Object, Object> sessions = grouped.windowedBy(windows);
            return step.has("emit") ? sessions.emitStrategy(emit) : sessions;
        }
        TimeWindowedKStream<Object, Object> windowed = switch (text(step, "type")) {
            case "sliding" -> grouped.windowedBy(sliding(step));
            case "unlimited" -> grouped.windowedBy(unlimited(step));
            default -> grouped.windowedBy(timeWindows(step));
        };
        return step.has("emit") ? windowed.emitStrategy(emit) : windowed;
    }

    private static TimeWindows timeWindows(JsonNode step) {
        Duration size = Options.millis(step, "size");
        TimeWindows windows = step.has("grace")
            ? TimeWindows.ofSizeAndGrace(size, Options.millis(step, "grace"))
            : TimeWindows.ofSizeWithNoGrace(size);
        return step.has("advance") ? windows.advanceBy(Options.millis(step, "advance")) : windows;
    }

    private static SlidingWindows sliding(JsonNode step) {
        return SlidingWindows.ofTimeDifferenceAndGrace(Options.millis(step, "size"), Options.millis(step, "grace"));
    }

    private static UnlimitedWindows unlimited(JsonNode step) {
        return UnlimitedWindows.of().startOn(Instant.ofEpochMilli(step.get("start").asLong()));
    }

    private Object onCogrouped(String op, CogroupedKStream<Object, Object> cogrouped, JsonNode step) {
        String f = text(step, "f");
        Initializer<Object> initial = () -> Functions.initial(text(step, "initial"));
        switch (op) {
            case "cogroup":
                return cogrouped.cogroup((KGroupedStream<Object, Object>) made.get(text(step, "other")), (k, v, a) -> Functions.aggregate(f, k, v, a));
            case "aggregate":
                return named(step)
                    ? cogrouped.aggregate(initial, Options.named(step), Options.materialized(step))
                    : cogrouped.aggregate(initial, Options.materialized(step));
            case "windowed_by":
                return switch (text(step, "type")) {
                    case "session" -> cogrouped.windowedBy(SessionWindows.ofInactivityGapAndGrace(Options.millis(step, "gap"), Options.millis(step, "grace")));
                    case "sliding" -> cogrouped.windowedBy(sliding(step));
                    case "unlimited" -> cogrouped.windowedBy(unlimited(step));
                    default -> cogrouped.windowedBy(timeWindows(step));
                };
            default:
                throw unknown(step);
        }
    }

    private Object onWindowedCogrouped(TimeWindowedCogroupedKStream<Object, Object> windowed, JsonNode step) {
        Initializer<Object> initial = () -> Functions.initial(text(step, "initial"));
        return named(step)
            ? windowed.aggregate(initial, Options.named(step), Options.materialized(step))
            : windowed.aggregate(initial, Options.materialized(step));
    }

    private Object onSessionsCogrouped(SessionWindowedCogroupedKStream<Object, Object> windowed, JsonNode step) {
        String merger = text(step, "merger");
        Initializer<Object> initial = () -> Functions.initial(text(step, "initial"));
        return named(step)
            ? windowed.aggregate(initial, (k, l, r) -> Functions.merge(merger, k, l, r), Options.named(step), Options.materialized(step))
            : windowed.aggregate(initial, (k, l, r) -> Functions.merge(merger, k, l, r), Options.materialized(step));
    }

    private Object onWindowed(String op, TimeWindowedKStream<Object, Object> windowed, JsonNode step) {
        String f = text(step, "f");
        Initializer<Object> initial = () -> Functions.initial(text(step, "initial"));
        switch (op) {
            case "count":
                return named(step) ? windowed.count(Options.named(step), counted(step)) : windowed.count(counted(step));
            case "reduce":
                return named(step)
                    ? windowed.reduce((l, r) -> Functions.reduce(f, l, r), Options.named(step), Options.materialized(step))
                    : windowed.reduce((l, r) -> Functions.reduce(f, l, r), Options.materialized(step));
            case "aggregate":
                return named(step)
                    ? windowed.aggregate(initial, (k, v, a) -> Functions.aggregate(f, k, v, a), Options.named(step), Options.materialized(step))
                    : windowed.aggregate(initial, (k, v, a) -> Functions.aggregate(f, k, v, a), Options.materialized(step));
            default:
                throw unknown(step);
        }
    }

    private Object onSessions(String op, SessionWindowedKStream<Object, Object> windowed, JsonNode step) {
        String f = text(step, "f");
        String merger = text(step, "merger");
        Initializer<Object> initial = () -> Functions.initial(text(step, "initial"));
        switch (op) {
            case "count":
                return named(step) ? windowed.count(Options.named(step), counted(step)) : windowed.count(counted(step));
            case "reduce":
                return named(step)
                    ? windowed.reduce((l, r) -> Functions.reduce(f, l, r), Options.named(step), Options.materialized(step))
                    : windowed.reduce((l, r) -> Functions.reduce(f, l, r), Options.materialized(step));
            case "aggregate":
                return named(step)
                    ? windowed.aggregate(initial, (k, v, a) -> Functions.aggregate(f, k, v, a), (k, l, r) -> Functions.merge(merger, k, l, r), Options.named(step), Options.materialized(step))
                    : windowed.aggregate(initial, (k, v, a) -> Functions.aggregate(f, k, v, a), (k, l, r) -> Functions.merge(merger, k, l, r), Options.materialized(step));
            default:
                throw unknown(step);
        }
    }

    private Object onGroupedTable(String op, KGroupedTable<Object, Object> grouped, JsonNode step) {
        String add = text(step, "f");
        String subtract = text(step, "subtractor");
        Initializer<Object> initial = () -> Functions.initial(text(step, "initial"));
        switch (op) {
            case "count":
                return named(step) ? grouped.count(Options.named(step), counted(step)) : grouped.count(counted(step));
            case "reduce":
                return named(step)
                    ? grouped.reduce((l, r) -> Functions.reduce(add, l, r), (l, r) -> Functions.reduce(subtract, l, r), Options.named(step), Options.materialized(step))
                    : grouped.reduce((l, r) -> Functions.reduce(add, l, r), (l, r) -> Functions.reduce(subtract, l, r), Options.materialized(step));
            case "aggregate":
                return named(step)
                    ? grouped.aggregate(initial, (k, v, a) -> Functions.aggregate(add, k, v, a), (k, v, a) -> Functions.aggregate(subtract, k, v, a), Options.named(step), Options.materialized(step))
                    : grouped.aggregate(initial, (k, v, a) -> Functions.aggregate(add, k, v, a), (k, v, a) -> Functions.aggregate(subtract, k, v, a), Options.materialized(step));
            default:
                throw unknown(step);
        }
    }

    private static StoreBuilder<?> store(JsonNode step) {
        String name = text(step, "name");
        Serde key = Options.serde(step, "key");
        Serde value = Options.serde(step, "value");
        if (text(step, "kind").equals("versioned")) {
            return Stores.versionedKeyValueStoreBuilder(Options.versionedStore(name, step), key, value);
        }
        if (text(step, "kind").equals("window")) {
            boolean duplicates = step.path("duplicates").asBoolean();
            if (step.path("headers").asBoolean()) {
                return Stores.timestampedWindowStoreWithHeadersBuilder(
                    Stores.persistentTimestampedWindowStoreWithHeaders(name, Options.millis(step, "retention"), Options.millis(step, "size"), duplicates), key, value);
            }
            return Stores.windowStoreBuilder(
                step.path("memory").asBoolean()
                    ? Stores.inMemoryWindowStore(name, Options.millis(step, "retention"), Options.millis(step, "size"), duplicates)
                    : Stores.persistentWindowStore(name, Options.millis(step, "retention"), Options.millis(step, "size"), duplicates),
                key, value);
        }
        if (step.path("headers").asBoolean()) {
            return Stores.timestampedKeyValueStoreWithHeadersBuilder(Stores.persistentTimestampedKeyValueStoreWithHeaders(name), key, value);
        }
        if (step.has("most")) return Stores.keyValueStoreBuilder(Stores.lruMap(name, step.get("most").asInt()), key, value);
        StoreBuilder<?> builder = Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(name), key, value);
        return step.path("logging").asBoolean(true) ? builder : builder.withLoggingDisabled();
    }

    // Steps of the Processor API, after the DSL's.
    private static void add(Topology topology, JsonNode step) {
        String name = text(step, "name");
        String[] parents = texts(step.path("parents")).toArray(new String[0]);
        switch (text(step, "op")) {
            case "add_source" -> topology.addSource(
                name, Options.serde(step, "key").deserializer(), Options.serde(step, "value").deserializer(), texts(step.get("topics")).toArray(new String[0]));
            case "add_processor" -> topology.addProcessor(name, () -> Processors.of(step.get("processor")), parents);
            case "add_store" -> topology.addStateStore(store(step), texts(step.path("processors")).toArray(new String[0]));
            case "add_sink" -> topology.addSink(
                name, text(step, "topic"), Options.serde(step, "key").serializer(), Options.serde(step, "value").serializer(), parents);
            default -> throw unknown(step);
        }
    }
}
