// The processors that a case can name; tests/oracle/processors.py has the same ones.

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.Cancellable;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.TimestampedKeyValueStoreWithHeaders;
import org.apache.kafka.streams.state.TimestampedWindowStoreWithHeaders;
import org.apache.kafka.streams.state.ValueTimestampHeaders;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

final class Processors {
    private Processors() {}

    static Processor<Object, Object, Object, Object> of(JsonNode spec) {
        return switch (spec.get("kind").asText()) {
            case "put-get" -> new PutGet(spec);
            case "put-if-absent" -> new PutIfAbsent(spec);
            case "range" -> new Range(spec);
            case "window" -> new Window(spec);
            case "keep-headers" -> new KeepHeaders(spec);
            case "versions" -> new Versions(spec);
            case "headers" -> new AddHeader();
            case "times" -> new Times();
            case "child" -> new Child(spec);
            case "clock" -> new Clock(spec);
            case "record" -> new PairOfRecord(spec);
            default -> throw new IllegalArgumentException("no such processor: " + spec);
        };
    }

    static FixedKeyProcessor<Object, Object, Object> fixed(JsonNode spec) {
        return switch (spec.get("kind").asText()) {
            case "count" -> new Count(spec);
            case "times" -> new FixedTimes();
            case "stamp" -> new Stamp(spec);
            case "record" -> new OfRecord(spec);
            default -> throw new IllegalArgumentException("no such processor of values: " + spec);
        };
    }

    static ValueTransformerWithKey<Object, Object, Object> transformer(JsonNode spec) {
        return switch (spec.get("kind").asText()) {
            case "marked" -> new Marked(spec);
            case "changed" -> new Changed(spec);
            default -> throw new IllegalArgumentException("no such transformer: " + spec);
        };
    }

    /** Tells key and value; of deleted rows too, if they are to be kept. */
    private static final class Marked implements ValueTransformerWithKey<Object, Object, Object> {
        private final boolean kept;

        Marked(JsonNode spec) {
            kept = spec.path("kept").asBoolean();
        }

        @Override
        public void init(org.apache.kafka.streams.processor.ProcessorContext context) {}

        @Override
        public Object transform(Object key, Object value) {
            return value == null && !kept ? null : Functions.text(key) + "<" + Functions.text(value) + ">";
        }

        @Override
        public void close() {}
    }

    /** How often a row has changed, by a store. */
    private static final class Changed implements ValueTransformerWithKey<Object, Object, Object> {
        private final String name;
        private KeyValueStore<Object, Object> store;

        Changed(JsonNode spec) {
            name = spec.get("store").asText();
        }

        @Override
        public void init(org.apache.kafka.streams.processor.ProcessorContext context) {
            store = context.getStateStore(name);
        }

        @Override
        public Object transform(Object key, Object value) {
            Object before = store.get(key);
            String now = String.valueOf(before == null ? 1 : Integer.parseInt(Functions.text(before)) + 1);
            store.put(key, now);
            return value == null ? null : Functions.text(value) + "#" + now;
        }

        @Override
        public void close() {}
    }

    /** Puts the value under the key and tells what was there. */
    private static final class PutGet extends ContextualProcessor<Object, Object, Object, Object> {
        private final String name;
        private KeyValueStore<Object, Object> store;

        PutGet(JsonNode spec) {
            name = spec.get("store").asText();
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(name);
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.key() == null) {
                context().forward(record.withValue("no key"));
                return;
            }
            Object old = record.value() == null ? store.delete(record.key()) : store.get(record.key());
            if (record.value() != null) store.put(record.key(), record.value());
            context().forward(record.withValue(Functions.text(old) + "->" + Functions.text(record.value())));
        }
    }

    private static final class PutIfAbsent extends ContextualProcessor<Object, Object, Object, Object> {
        private final String name;
        private KeyValueStore<Object, Object> store;

        PutIfAbsent(JsonNode spec) {
            name = spec.get("store").asText();
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(name);
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.key() == null) return;
            Object old = store.putIfAbsent(record.key(), record.value());
            if (old == null) context().forward(record);
        }
    }

    /** Puts, then forwards what lies between two keys. */
    private static final class Range extends ContextualProcessor<Object, Object, Object, Object> {
        private final JsonNode spec;
        private KeyValueStore<Object, Object> store;

        Range(JsonNode spec) {
            this.spec = spec;
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(spec.get("store").asText());
        }

        private Object bound(String name) {
            return spec.hasNonNull(name) ? spec.get(name).asText() : null;
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.key() != null) store.put(record.key(), record.value());
            boolean reverse = spec.path("reverse").asBoolean();
            try (KeyValueIterator<Object, Object> found = reverse
                    ? store.reverseRange(bound("from"), bound("to"))
                    : store.range(bound("from"), bound("to"))) {
                while (found.hasNext()) {
                    KeyValue<Object, Object> entry = found.next();
                    context().forward(record.withKey(entry.key).withValue(entry.value));
                }
            }
        }
    }

    /** Puts into a window store at the record's time, then forwards what is around that time. */
    private static final class Window extends ContextualProcessor<Object, Object, Object, Object> {
        private final JsonNode spec;
        private WindowStore<Object, Object> store;

        Window(JsonNode spec) {
            this.spec = spec;
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(spec.get("store").asText());
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.key() == null) return;
            long time = record.timestamp();
            store.put(record.key(), record.value(), time);
            long from = Math.max(0, time - spec.get("before").asLong());
            long to = time + spec.get("after").asLong();
            Instant first = Instant.ofEpochMilli(from);
            Instant last = Instant.ofEpochMilli(to);
            boolean backward = spec.path("backward").asBoolean();
            boolean keys = spec.has("keys");
            if (keys || spec.path("every").asBoolean()) {
                Object low = keys ? spec.get("keys").get(0).asText() : null;
                Object high = keys ? spec.get("keys").get(1).asText() : null;
                try (KeyValueIterator<Windowed<Object>, Object> found =
                        keys ? (backward ? store.backwardFetch(low, high, first, last) : store.fetch(low, high, first, last))
                             : (backward ? store.backwardFetchAll(first, last) : store.fetchAll(first, last))) {
                    while (found.hasNext()) {
                        KeyValue<Windowed<Object>, Object> entry = found.next();
                        context().forward(record.withKey((Object) entry.key.key()).withValue(Functions.text(entry.key) + Functions.text(entry.value)));
                    }
                }
                return;
            }
            try (WindowStoreIterator<Object> found = backward ? store.backwardFetch(record.key(), first, last) : store.fetch(record.key(), first, last)) {
                while (found.hasNext()) {
                    KeyValue<Long, Object> entry = found.next();
                    context().forward(record.withValue(entry.key + ":" + Functions.text(entry.value)));
                }
            }
        }
    }

    /** Puts values with their headers and tells what was there. */
    private static final class KeepHeaders extends ContextualProcessor<Object, Object, Object, Object> {
        private final JsonNode spec;
        private StateStore store;

        KeepHeaders(JsonNode spec) {
            this.spec = spec;
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(spec.get("store").asText());
        }

        private static String told(ValueTimestampHeaders<Object> found) {
            if (found == null) return "null";
            StringBuilder text = new StringBuilder(Functions.text(found.value()) + "@" + found.timestamp());
            for (Header header : found.headers()) text.append(" ").append(header.key()).append("=").append(new String(header.value(), StandardCharsets.UTF_8));
            return text.toString();
        }

        @Override
        @SuppressWarnings("unchecked")
        public void process(Record<Object, Object> record) {
            if (record.key() == null) return;
            ValueTimestampHeaders<Object> now = record.value() == null ? null : ValueTimestampHeaders.make(record.value(), record.timestamp(), new RecordHeaders(record.headers()));
            String before;
            if (store instanceof TimestampedWindowStoreWithHeaders<?, ?>) {
                TimestampedWindowStoreWithHeaders<Object, Object> windows = (TimestampedWindowStoreWithHeaders<Object, Object>) store;
                before = told(windows.fetch(record.key(), record.timestamp()));
                windows.put(record.key(), now, record.timestamp());
            } else {
                TimestampedKeyValueStoreWithHeaders<Object, Object> values = (TimestampedKeyValueStoreWithHeaders<Object, Object>) store;
                before = told(now == null ? values.delete(record.key()) : values.get(record.key()));
                if (now != null) values.put(record.key(), now);
            }
            context().forward(record.withValue(before));
        }
    }

    /** Puts a version, or deletes, or only looks; then tells what is valid now and around the record's time. */
    private static final class Versions extends ContextualProcessor<Object, Object, Object, Object> {
        private final JsonNode spec;
        private VersionedKeyValueStore<Object, Object> store;

        Versions(JsonNode spec) {
            this.spec = spec;
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(spec.get("store").asText());
        }

        private static String told(VersionedRecord<Object> found) {
            return found == null ? "null" : Functions.text(found.value()) + "@" + found.timestamp();
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.key() == null) return;
            StringBuilder text = new StringBuilder();
            if (spec.path("puts").asBoolean()) {
                if (record.value() == null && spec.path("deletes").asBoolean()) text.append(told(store.delete(record.key(), record.timestamp())));
                else text.append(store.put(record.key(), record.value(), record.timestamp()));
            }
            text.append(" now ").append(told(store.get(record.key())));
            for (JsonNode look : spec.get("looks")) {
                long time = Math.max(0, record.timestamp() + look.asLong());
                text.append(" ").append(time).append("=").append(told(store.get(record.key(), time)));
            }
            context().forward(record.withValue(text.toString()));
        }
    }

    /** Adds a header; the value tells where the record comes from. */
    private static final class AddHeader extends ContextualProcessor<Object, Object, Object, Object> {
        @Override
        public void process(Record<Object, Object> record) {
            String count = Integer.toString(record.headers().toArray().length);
            Headers headers = new RecordHeaders(record.headers()).add("n", count.getBytes(StandardCharsets.UTF_8));
            String from = context().recordMetadata().map(where -> where.topic() + "-" + where.partition() + "@" + where.offset()).orElse("nowhere");
            context().forward(record.withHeaders(headers).withValue(from + " " + Functions.text(record.value())));
        }
    }

    private static final class Times extends ContextualProcessor<Object, Object, Object, Object> {
        @Override
        public void process(Record<Object, Object> record) {
            String times = record.timestamp() + " " + context().currentStreamTimeMs() + " " + context().currentSystemTimeMs();
            context().forward(record.withValue(times).withTimestamp(record.timestamp() + 1));
        }
    }

    /** Forwards to one child by name, depending on the value; without a value to all. */
    private static final class Child extends ContextualProcessor<Object, Object, Object, Object> {
        private final JsonNode spec;

        Child(JsonNode spec) {
            this.spec = spec;
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.value() == null) context().forward(record);
            else context().forward(record, spec.get(Functions.text(record.value()).length() > 2 ? "long" : "short").asText());
        }
    }

    /** Remembers the last value per key, and forwards all of them when its time comes. */
    private static final class Clock extends ContextualProcessor<Object, Object, Object, Object> {
        private final JsonNode spec;
        private KeyValueStore<Object, Object> store;
        private Cancellable schedule;
        private int left;

        Clock(JsonNode spec) {
            this.spec = spec;
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(spec.get("store").asText());
            left = spec.path("times").asInt(1000);
            PunctuationType type = spec.get("type").asText().equals("stream") ? PunctuationType.STREAM_TIME : PunctuationType.WALL_CLOCK_TIME;
            Duration interval = Duration.ofMillis(spec.get("interval").asLong());
            schedule = spec.has("start")
                ? context.schedule(Instant.ofEpochMilli(spec.get("start").asLong()), interval, type, this::punctuate)
                : context.schedule(interval, type, this::punctuate);
        }

        private void punctuate(long time) {
            if (--left <= 0) schedule.cancel();
            context().forward(new Record<>("tick", Long.toString(time), time));
            try (KeyValueIterator<Object, Object> found = store.all()) {
                while (found.hasNext()) {
                    KeyValue<Object, Object> entry = found.next();
                    context().forward(new Record<>(entry.key, Functions.text(entry.value) + "@" + time, time));
                }
            }
            if (spec.path("clear").asBoolean()) {
                try (KeyValueIterator<Object, Object> found = store.all()) {
                    while (found.hasNext()) store.delete(found.next().key);
                }
            }
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.key() != null) store.put(record.key(), record.value());
        }
    }

    private static final class Count extends ContextualFixedKeyProcessor<Object, Object, Object> {
        private final String name;
        private KeyValueStore<Object, Object> store;

        Count(JsonNode spec) {
            name = spec.get("store").asText();
        }

        @Override
        public void init(FixedKeyProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(name);
        }

        @Override
        public void process(FixedKeyRecord<Object, Object> record) {
            if (record.key() == null) return;
            Object old = store.get(record.key());
            String now = Integer.toString(old == null ? 1 : Integer.parseInt((String) old) + 1);
            store.put(record.key(), now);
            context().forward(record.withValue(Functions.text(record.value()) + "#" + now));
        }
    }

    private static Object[] all(Object key, Object value, long time, Headers headers, Optional<RecordMetadata> from) {
        List<List<String>> told = new ArrayList<>();
        for (Header each : headers) {
            String content = each.value() == null ? null : new String(each.value(), StandardCharsets.ISO_8859_1);
            told.add(Arrays.asList(each.key(), content));
        }
        String topic = from.map(RecordMetadata::topic).orElse(null);
        return new Object[] {key, value, time, told, topic, from.map(RecordMetadata::partition).orElse(null), from.map(RecordMetadata::offset).orElse(null)};
    }

    /** A filter, or a new value, by a function that sees all of a record. */
    private static final class OfRecord extends ContextualFixedKeyProcessor<Object, Object, Object> {
        private final JsonNode spec;

        OfRecord(JsonNode spec) {
            this.spec = spec;
        }

        @Override
        public void process(FixedKeyRecord<Object, Object> record) {
            Object[] all = all(record.key(), record.value(), record.timestamp(), record.headers(), context().recordMetadata());
            JsonNode made = Calls.ask(spec.get("f").asText(), all);
            if (!spec.path("filters").asBoolean()) context().forward(record.withValue(made.isNull() ? null : made.asText()));
            else if (made.asBoolean()) context().forward(record);
        }
    }

    /** A new key and a new value, by functions that see all of a record. */
    private static final class PairOfRecord extends ContextualProcessor<Object, Object, Object, Object> {
        private final JsonNode spec;

        PairOfRecord(JsonNode spec) {
            this.spec = spec;
        }

        @Override
        public void process(Record<Object, Object> record) {
            Object[] all = all(record.key(), record.value(), record.timestamp(), record.headers(), context().recordMetadata());
            Object key = Calls.text(spec.get("key_f").asText(), all);
            context().forward(record.withKey(key).withValue(Calls.text(spec.get("value_f").asText(), all)));
        }
    }

    /** Gives records the time that a function tells; one for which there is none is left out. */
    private static final class Stamp extends ContextualFixedKeyProcessor<Object, Object, Object> {
        private final String function;

        Stamp(JsonNode spec) {
            function = spec.get("f").asText();
        }

        @Override
        public void process(FixedKeyRecord<Object, Object> record) {
            JsonNode time = record.value() == null ? null : Calls.ask(function, record.key(), record.value());
            if (time == null) context().forward(record);
            else if (time.asLong(-1) >= 0) context().forward(record.withTimestamp(time.asLong()));
        }
    }

    private static final class FixedTimes extends ContextualFixedKeyProcessor<Object, Object, Object> {
        @Override
        public void process(FixedKeyRecord<Object, Object> record) {
            context().forward(record.withValue(record.timestamp() + " " + context().currentStreamTimeMs()));
        }
    }
}
