// Reads the option objects of a step: what is absent there stays unset here.

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Printed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StreamPartitioner;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.processor.UsePartitionTimeOnInvalidTimestamp;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;

@SuppressWarnings({"unchecked", "rawtypes"})
final class Options {
    private Options() {}

    static String text(JsonNode options, String field) {
        return options.hasNonNull(field) ? options.get(field).asText() : null;
    }

    static Serde serde(JsonNode options, String field) {
        String name = text(options, field);
        if (name == null) return null;
        return switch (name) {
            case "string" -> Serdes.String();
            case "long" -> Serdes.Long();
            case "int" -> Serdes.Integer();
            case "double" -> Serdes.Double();
            case "bytes" -> Serdes.ByteArray();
            case "latin" -> Calls.latin();
            case "session" -> new WindowedSerdes.SessionWindowedSerde<>(Serdes.String());
            default -> {
                if (Calls.is(name)) yield Calls.serde(name);
                if (name.startsWith("session:")) yield new WindowedSerdes.SessionWindowedSerde<>(Calls.serde(name.substring("session:".length())));
                if (name.contains(":call:")) {
                    String[] parts = name.split(":", 3);
                    yield new WindowedSerdes.TimeWindowedSerde<>(Calls.serde(parts[2]), Long.parseLong(parts[1]));
                }
                if (!name.startsWith("windowed:")) throw new IllegalArgumentException("no such serde: " + name);
                yield new WindowedSerdes.TimeWindowedSerde<>(Serdes.String(), Long.parseLong(name.substring("windowed:".length())));
            }
        };
    }

    static Named named(JsonNode step) {
        return Named.as(text(step, "name"));
    }

    private static TimestampExtractor extractor(String name) {
        if (Calls.is(name)) return (record, partitionTime) -> Calls.ask(name, record.key(), record.value(), record.timestamp()).asLong();
        return switch (name) {
            case "value" -> (record, partitionTime) -> record.value() instanceof String value && value.matches("[0-9]+") ? Long.parseLong(value) : -1;
            case "value-or-partition" -> new UsePartitionTimeOnInvalidTimestamp() {
                @Override
                public long extract(org.apache.kafka.clients.consumer.ConsumerRecord<Object, Object> record, long partitionTime) {
                    return record.value() instanceof String value && value.matches("[0-9]+") ? Long.parseLong(value) : partitionTime;
                }
            };
            default -> throw new IllegalArgumentException("no such extractor: " + name);
        };
    }

    static Consumed consumed(JsonNode step) {
        JsonNode options = step.path("consumed");
        Consumed consumed = Consumed.with(serde(options, "key"), serde(options, "value"));
        if (options.hasNonNull("name")) consumed = consumed.withName(text(options, "name"));
        if (options.hasNonNull("extractor")) consumed = consumed.withTimestampExtractor(extractor(text(options, "extractor")));
        return consumed;
    }

    static Produced produced(JsonNode step) {
        JsonNode options = step.path("produced");
        Produced produced = Produced.with(serde(options, "key"), serde(options, "value"));
        return options.hasNonNull("name") ? produced.withName(text(options, "name")) : produced;
    }

    static Grouped grouped(JsonNode step) {
        JsonNode options = step.path("grouped");
        return Grouped.with(text(options, "name"), serde(options, "key"), serde(options, "value"));
    }

    static Repartitioned repartitioned(JsonNode step) {
        JsonNode options = step.path("repartitioned");
        Repartitioned repartitioned = Repartitioned.with(serde(options, "key"), serde(options, "value"));
        if (options.hasNonNull("name")) repartitioned = repartitioned.withName(text(options, "name"));
        if (options.hasNonNull("partitions")) repartitioned = repartitioned.withNumberOfPartitions(options.get("partitions").asInt());
        return repartitioned;
    }

    static Joined joined(JsonNode step) {
        JsonNode options = step.path("joined");
        Joined joined = Joined.with(serde(options, "key"), serde(options, "value"), serde(options, "other"), text(options, "name"));
        return options.hasNonNull("grace") ? joined.withGracePeriod(millis(options, "grace")) : joined;
    }

    static StreamJoined streamJoined(JsonNode step) {
        JsonNode options = step.path("stream_joined");
        StreamJoined joined = StreamJoined.with(serde(options, "key"), serde(options, "value"), serde(options, "other"));
        if (options.hasNonNull("name")) joined = joined.withName(text(options, "name"));
        if (options.hasNonNull("store")) joined = joined.withStoreName(text(options, "store"));
        return joined;
    }

    static TableJoined tableJoined(JsonNode step) {
        JsonNode options = step.path("table_joined");
        TableJoined joined = TableJoined.with(null, null);
        if (options.hasNonNull("partition")) {
            int number = options.get("partition").asInt();
            StreamPartitioner<Object, Void> place = (topic, key, value, partitions) -> Optional.of(Set.of(number % partitions));
            joined = joined.withPartitioner(place).withOtherPartitioner(place);
        }
        return options.hasNonNull("name") ? joined.withName(text(options, "name")) : joined;
    }

    static Printed printed(JsonNode step) {
        Printed printed = Printed.toFile("/dev/null");
        return step.hasNonNull("name") ? printed.withName(text(step, "name")) : printed;
    }

    @SuppressWarnings("deprecation")
    static JoinWindows joinWindows(JsonNode step) {
        Duration before = millis(step, "before");
        Duration after = millis(step, "after");
        if (step.path("eager").asBoolean()) return JoinWindows.of(before).before(before).after(after).grace(millis(step, "grace"));
        JoinWindows windows = step.has("grace")
            ? JoinWindows.ofTimeDifferenceAndGrace(before.compareTo(after) > 0 ? before : after, millis(step, "grace"))
            : JoinWindows.ofTimeDifferenceWithNoGrace(before.compareTo(after) > 0 ? before : after);
        return windows.before(before).after(after);
    }

    static Suppressed suppressed(JsonNode step) {
        if (!step.hasNonNull("limit")) return Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded());
        Suppressed.EagerBufferConfig full = Suppressed.BufferConfig.maxRecords(step.path("max_records").asLong(Long.MAX_VALUE));
        return Suppressed.untilTimeLimit(millis(step, "limit"), full.withMaxBytes(step.path("max_bytes").asLong(Long.MAX_VALUE)));
    }

    static Duration millis(JsonNode step, String field) {
        return Duration.ofMillis(step.get(field).asLong());
    }

    private static Materialized versioned(JsonNode options) {
        return Materialized.as(versionedStore(text(options, "store"), options));
    }

    static VersionedBytesStoreSupplier versionedStore(String name, JsonNode options) {
        return options.hasNonNull("segment")
            ? Stores.persistentVersionedKeyValueStore(name, millis(options, "history"), millis(options, "segment"))
            : Stores.persistentVersionedKeyValueStore(name, millis(options, "history"));
    }

    static <S extends StateStore> Materialized<Object, Object, S> materialized(JsonNode step) {
        JsonNode options = step.path("materialized");
        Serde key = serde(options, "key");
        Serde value = serde(options, "value");
        if (options.hasNonNull("history")) return (Materialized<Object, Object, S>) (Materialized) versioned(options).withKeySerde(key).withValueSerde(value);
        Materialized<Object, Object, S> materialized = options.hasNonNull("store")
            ? Materialized.<Object, Object, S>as(text(options, "store")).withKeySerde(key).withValueSerde(value)
            : Materialized.<Object, Object, S>with(key, value);
        if (options.hasNonNull("retention")) materialized.withRetention(millis(options, "retention"));
        if (options.hasNonNull("logging") && !options.get("logging").asBoolean()) materialized.withLoggingDisabled();
        if (options.hasNonNull("caching") && !options.get("caching").asBoolean()) materialized.withCachingDisabled();
        if (options.path("type").asText().equals("memory")) materialized.withStoreType(new BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers());
        return materialized;
    }
}
