// What Apache Kafka Streams does with a topology and its input: a case of JSON in per line, an answer of JSON out.
// tests/oracle/kafka.py is the other end, tests/oracle/cases.py tells the format.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.errors.LogAndContinueExceptionHandler;
import org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.test.TestRecord;

@SuppressWarnings("unchecked")
public class Oracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        Path states = Files.createTempDirectory("oracle");
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int number = 0;
        Calls.over(lines, out);
        for (String line = Calls.nextCase(); line != null; line = Calls.nextCase()) {
            Path state = states.resolve(Integer.toString(number++));
            out.println(JSON.writeValueAsString(answer(JSON.readTree(line), state)));
            out.flush();
            delete(state);
        }
        delete(states);
    }

    private static void delete(Path place) throws IOException {
        if (!Files.exists(place)) return;
        try (Stream<Path> found = Files.walk(place)) {
            for (Path each : found.sorted(Comparator.reverseOrder()).toList()) Files.delete(each);
        }
    }

    private static ObjectNode answer(JsonNode asked, Path state) {
        ObjectNode answer = JSON.createObjectNode();
        answer.set("id", asked.get("id"));
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "oracle");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:9092");
        settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, asked.path("cache").asText("0"));
        settings.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, asked.path("optimization").asText("none"));
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        if (asked.path("lenient").asBoolean()) {
            settings.put(StreamsConfig.DESERIALIZATION_EXCEPTION_HANDLER_CLASS_CONFIG, LogAndContinueExceptionHandler.class.getName());
        }
        if (asked.hasNonNull("dead_letters")) {
            settings.put(StreamsConfig.ERRORS_DEAD_LETTER_QUEUE_TOPIC_NAME_CONFIG, asked.get("dead_letters").asText());
            settings.put(StreamsConfig.DESERIALIZATION_EXCEPTION_HANDLER_CLASS_CONFIG, LogAndContinueExceptionHandler.class.getName());
            settings.put(StreamsConfig.PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG, LogAndContinueProcessingExceptionHandler.class.getName());
        }
        try {
            Topology topology = Built.topology(asked.get("topology"), settings);
            answer.put("describe", topology.describe().toString());
            if (!asked.path("inputs").isEmpty()) drive(topology, settings, asked, answer);
        } catch (RuntimeException error) {
            Throwable cause = error;
            while (cause.getCause() != null) cause = cause.getCause();
            answer.put("error", cause.getClass().getSimpleName() + ": " + cause.getMessage());
        }
        return answer;
    }

    private static void drive(Topology topology, Properties settings, JsonNode asked, ObjectNode answer) {
        ArrayNode outputs = answer.putArray("outputs");
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, settings, Instant.ofEpochMilli(0))) {
            for (JsonNode input : asked.get("inputs")) {
                if (input.has("advance_wall_clock")) driver.advanceWallClockTime(Duration.ofMillis(input.get("advance_wall_clock").asLong()));
                else pipe(driver, input);
                outputs.add(drain(driver));
            }
            answer.set("stores", stores(driver, asked.path("stores")));
        }
    }

    private static void pipe(TopologyTestDriver driver, JsonNode input) {
        RecordHeaders headers = new RecordHeaders();
        for (JsonNode header : input.path("headers")) headers.add(header.get(0).asText(), bytes(header.get(1)));
        driver.createInputTopic(input.get("topic").asText(), new ByteArraySerializer(), new ByteArraySerializer())
            .pipeInput(new TestRecord<>(bytes(input.get("key")), bytes(input.get("value")), headers, input.get("timestamp").asLong()));
    }

    // All that one input brought about: by topic in the order of their names, and in order of writing within a topic.
    private static ArrayNode drain(TopologyTestDriver driver) {
        ArrayNode found = JSON.createArrayNode();
        for (String topic : new TreeSet<>(driver.producedTopicNames())) {
            TestOutputTopic<byte[], byte[]> output = driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            for (TestRecord<byte[], byte[]> record : output.readRecordsToList()) {
                ObjectNode each = found.addObject();
                each.put("topic", topic);
                each.put("key", latin(record.key()));
                each.put("value", latin(record.value()));
                each.put("timestamp", record.timestamp());
                ArrayNode headers = each.putArray("headers");
                for (Header header : record.headers()) headers.addArray().add(header.key()).add(latin(header.value()));
            }
        }
        return found;
    }

    private static byte[] bytes(JsonNode text) {
        return text == null || text.isNull() ? null : text.asText().getBytes(StandardCharsets.ISO_8859_1);
    }

    private static String latin(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.ISO_8859_1);
    }

    private static ObjectNode stores(TopologyTestDriver driver, JsonNode names) {
        ObjectNode found = JSON.createObjectNode();
        Map<String, StateStore> all = driver.getAllStateStores();
        for (JsonNode name : names) {
            StateStore store = all.get(name.asText());
            if (store instanceof KeyValueStore<?, ?> plain) found.set(name.asText(), entries(((KeyValueStore<Object, Object>) plain).all()));
            if (store instanceof WindowStore<?, ?> windows) found.set(name.asText(), entries(((WindowStore<Object, Object>) windows).all()));
            if (store instanceof SessionStore<?, ?> sessions) found.set(name.asText(), entries(((SessionStore<Object, Object>) sessions).fetch(null, null)));
        }
        return found;
    }

    private static <K> ArrayNode entries(KeyValueIterator<K, Object> iterator) {
        ArrayNode found = JSON.createArrayNode();
        try (iterator) {
            while (iterator.hasNext()) {
                KeyValue<K, Object> entry = iterator.next();
                Long timestamp = entry.value instanceof ValueAndTimestamp<?> stamped ? stamped.timestamp() : null;
                Object value = entry.value instanceof ValueAndTimestamp<?> stamped ? stamped.value() : entry.value;
                ArrayNode each = found.addArray();
                each.addPOJO(entry.key instanceof Windowed<?> || !(entry.key instanceof Number) ? Functions.text(entry.key) : entry.key);
                each.addPOJO(value instanceof Number ? value : value instanceof byte[] raw ? latin(raw) : Functions.text(value));
                each.add(timestamp);
            }
        }
        return found;
    }
}
