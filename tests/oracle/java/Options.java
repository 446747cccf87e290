// Reads the option objects of a step: what is absent there stays unset here.

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.processor.UsePartitionTimeOnInvalidTimestamp;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;

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
            case "session" -> new WindowedSerdes.SessionWindowedSerde<>(Serdes.String());
            default -> {
                if (!name.startsWith("windowed:")) throw new IllegalArgumentException("no such serde: " + name);
                yield new WindowedSerdes.TimeWindowedSerde<>(Serdes.String(), Long.parseLong(name.substring("windowed:".length())));
            }
        };
    }

    static Named named(JsonNode step) {
        return Named.as(text(step, "name"));
    }

    private static TimestampExtractor extractor(String name) {
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
        return Joined.with(serde(options, "key"), serde(options, "value"), serde(options, "other"), text(options, "name"));
    }

    static StreamJoined streamJoined(JsonNode step) {
        JsonNode options = step.path("stream_joined");
        StreamJoined joined = StreamJoined.with(serde(options, "key"), serde(options, "value"), serde(options, "other"));
        if (options.hasNonNull("name")) joined = joined.withName(text(options, "name"));
        if (options.hasNonNull("store")) joined = joined.withStoreName(text(options, "store"));
        return joined;
    }

    static JoinWindows joinWindows(JsonNode step) {
        Duration before = millis(step, "before");
        Duration after = millis(step, "after");
        JoinWindows windows = step.has("grace")
            ? JoinWindows.ofTimeDifferenceAndGrace(before.compareTo(after) > 0 ? before : after, millis(step, "grace"))
            : JoinWindows.ofTimeDifferenceWithNoGrace(before.compareTo(after) > 0 ? before : after);
        return windows.before(before).after(after);
    }

    static Duration millis(JsonNode step, String field) {
        return Duration.ofMillis(step.get(field).asLong());
    }

    static <S extends StateStore> Materialized<Object, Object, S> materialized(JsonNode step) {
        JsonNode options = step.path("materialized");
        Serde key = serde(options, "key");
        Serde value = serde(options, "value");
        Materialized<Object, Object, S> materialized = options.hasNonNull("store")
            ? Materialized.<Object, Object, S>as(text(options, "store")).withKeySerde(key).withValueSerde(value)
            : Materialized.<Object, Object, S>with(key, value);
        if (options.hasNonNull("retention")) materialized.withRetention(millis(options, "retention"));
        if (options.hasNonNull("logging") && !options.get("logging").asBoolean()) materialized.withLoggingDisabled();
        if (options.path("type").asText().equals("memory")) materialized.withStoreType(new BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers());
        return materialized;
    }
}
