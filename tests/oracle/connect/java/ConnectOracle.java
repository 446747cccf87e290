import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** Runs Kafka's transforms and converters on cases, a line of JSON each; keys and values travel in JsonConverter's envelope. */
public class ConnectOracle {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final JsonConverter ENVELOPE = new JsonConverter();

    public static void main(String[] args) throws Exception {
        ENVELOPE.configure(Map.of("schemas.enable", "true", "replace.null.with.default", "false"), false);
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = MAPPER.readTree(line);
            ObjectNode answer = MAPPER.createObjectNode();
            try {
                if (asked.has("chain")) transform(asked, answer);
                else if (asked.has("read")) read(asked, answer);
                else write(asked, answer);
            } catch (Throwable error) {
                answer.removeAll();
                answer.put("error", error.getClass().getName());
                answer.put("message", String.valueOf(error.getMessage()));
            }
            answer.set("id", asked.get("id"));
            out.println(MAPPER.writeValueAsString(answer));
        }
    }

    private static Map<String, String> config(JsonNode node) {
        Map<String, String> found = new HashMap<>();
        for (Map.Entry<String, JsonNode> each : node.properties()) found.put(each.getKey(), each.getValue().textValue());
        return found;
    }

    @SuppressWarnings("unchecked")
    private static <T> T made(String name) throws Exception {
        return (T) Class.forName(name).getDeclaredConstructor().newInstance();
    }

    private static SchemaAndValue part(JsonNode text) {
        return text == null || text.isNull() ? SchemaAndValue.NULL
            : ENVELOPE.toConnectData("t", text.textValue().getBytes(StandardCharsets.UTF_8));
    }

    private static String envelope(Schema schema, Object value) {
        byte[] found;
        try {
            found = ENVELOPE.fromConnectData("t", schema, value);
        } catch (NullPointerException error) {
            return "unwritable"; // a map of which nothing is known has no schema of keys
        }
        return found == null ? null : new String(found, StandardCharsets.UTF_8);
    }

    @SuppressWarnings({"rawtypes", "unchecked"})
    private static void transform(JsonNode asked, ObjectNode answer) throws Exception {
        List<Transformation> transforms = new ArrayList<>();
        List<Predicate> predicates = new ArrayList<>();
        for (JsonNode stage : asked.get("chain")) {
            Transformation transform = made(stage.get("class").textValue());
            transform.configure(config(stage.get("config")));
            transforms.add(transform);
            Predicate predicate = null;
            if (stage.hasNonNull("predicate")) {
                predicate = made(stage.get("predicate").get("class").textValue());
                predicate.configure(config(stage.get("predicate").get("config")));
            }
            predicates.add(predicate);
        }
        ConnectRecord record = record(asked.get("record"));
        for (int i = 0; i < transforms.size() && record != null; i++) {
            boolean negate = asked.get("chain").get(i).path("negate").asBoolean(false);
            if (predicates.get(i) == null || predicates.get(i).test(record) != negate)
                record = transforms.get(i).apply(record);
        }
        answer.put("dropped", record == null);
        if (record == null) return;
        answer.put("topic", record.topic());
        answer.put("partition", record.kafkaPartition());
        answer.put("timestamp", record.timestamp());
        answer.put("key", envelope(record.keySchema(), record.key()));
        answer.put("value", envelope(record.valueSchema(), record.value()));
        answer.put("text", String.valueOf(record.value()));
        ArrayNode headers = answer.putArray("headers");
        for (Object each : record.headers()) {
            Header header = (Header) each;
            headers.addArray().add(header.key()).add(envelope(header.schema(), header.value()));
        }
    }

    private static ConnectRecord<?> record(JsonNode given) {
        SchemaAndValue key = part(given.get("key")), value = part(given.get("value"));
        ConnectHeaders headers = new ConnectHeaders();
        for (JsonNode each : given.get("headers")) headers.add(each.get(0).textValue(), part(each.get(1)));
        Integer partition = given.get("partition").isNull() ? null : given.get("partition").intValue();
        Long timestamp = given.get("timestamp").isNull() ? null : given.get("timestamp").longValue();
        String topic = given.get("topic").textValue();
        if (given.get("offset").isNull())
            return new SourceRecord(Map.of(), Map.of(), topic, partition, key.schema(), key.value(), value.schema(), value.value(), timestamp, headers);
        return new SinkRecord(topic, partition == null ? 0 : partition, key.schema(), key.value(), value.schema(), value.value(),
            given.get("offset").longValue(), timestamp, TimestampType.CREATE_TIME, headers);
    }

    private static void read(JsonNode asked, ObjectNode answer) throws Exception {
        Object converter = converter(asked, "read");
        byte[] data = asked.get("data").isNull() ? null : Base64.getDecoder().decode(asked.get("data").textValue());
        SchemaAndValue found = converter instanceof Converter
            ? ((Converter) converter).toConnectData("t", data) : ((HeaderConverter) converter).toConnectHeader("t", "h", data);
        if (found == null) found = SchemaAndValue.NULL;
        answer.put("value", envelope(found.schema(), found.value()));
        answer.put("text", String.valueOf(found.value()));
    }

    private static void write(JsonNode asked, ObjectNode answer) throws Exception {
        Object converter = converter(asked, "write");
        SchemaAndValue given = part(asked.get("value"));
        byte[] found = converter instanceof Converter
            ? ((Converter) converter).fromConnectData("t", given.schema(), given.value())
            : ((HeaderConverter) converter).fromConnectHeader("t", "h", given.schema(), given.value());
        answer.put("data", found == null ? null : Base64.getEncoder().encodeToString(found));
    }

    private static Object converter(JsonNode asked, String key) throws Exception {
        Object converter = made(asked.get(key).textValue());
        Map<String, String> config = config(asked.get("config"));
        if (converter instanceof Converter) ((Converter) converter).configure(config, false);
        else ((HeaderConverter) converter).configure(config);
        return converter;
    }
}
