// Apache's own client behind one JSON object per line: {"op": ...} on stdin, {"ok": ...} or {"error": code, "detail": ...}
// on stdout. tests/support/clients/foreign.py is the other end.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Driver {
    static final ObjectMapper JSON = new ObjectMapper();
    static final long DEADLINE_MS = 60_000;

    final String bootstrap;
    final Admin admin;

    Driver(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap, "default.api.timeout.ms", 60_000, "request.timeout.ms", 30_000));
    }

    Object run(JsonNode c) throws Exception {
        String topic = c.path("topic").asText();
        TopicPartition place = new TopicPartition(topic, c.path("partition").asInt());
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        switch (c.get("op").asText()) {
            case "create_topic":
                NewTopic fresh = new NewTopic(topic, c.get("partitions").asInt(), (short) c.get("replication_factor").asInt());
                return admin.createTopics(List.of(fresh.configs(configs(c)))).all().get();
            case "delete_topic":
                return admin.deleteTopics(List.of(topic)).all().get();
            case "list_topics":
                return admin.listTopics().names().get();
            case "create_partitions":
                return admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(c.get("total").asInt()))).all().get();
            case "partition_count":
                return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
            case "describe_topic_configs":
                Map<String, String> entries = new HashMap<>();
                for (ConfigEntry entry : admin.describeConfigs(List.of(resource)).all().get().get(resource).entries())
                    entries.put(entry.name(), entry.value());
                return entries;
            case "alter_topic_configs":
                List<AlterConfigOp> ops = new ArrayList<>();
                configs(c).forEach((k, v) -> ops.add(new AlterConfigOp(new ConfigEntry(k, v), AlterConfigOp.OpType.SET)));
                return admin.incrementalAlterConfigs(Map.of(resource, ops)).all().get();
            case "produce":
                return produce(c, place);
            case "consume":
                return consume(place, c.get("offset").asLong(), c.get("count").asInt());
            case "earliest_offset":
                return listed(place, OffsetSpec.earliest()).offset();
            case "latest_offset":
                return listed(place, OffsetSpec.latest()).offset();
            case "offset_for_time":
                long offset = listed(place, OffsetSpec.forTimestamp(c.get("timestamp").asLong())).offset();
                return offset < 0 ? null : offset;
            case "delete_records":
                RecordsToDelete before = RecordsToDelete.beforeOffset(c.get("before").asLong());
                return admin.deleteRecords(Map.of(place, before)).lowWatermarks().get(place).get().lowWatermark();
            default:
                throw new IllegalArgumentException("no such verb: " + c.get("op"));
        }
    }

    static Map<String, String> configs(JsonNode c) {
        Map<String, String> configs = new LinkedHashMap<>();
        c.get("configs").properties().forEach(e -> configs.put(e.getKey(), e.getValue().asText()));
        return configs;
    }

    ListOffsetsResult.ListOffsetsResultInfo listed(TopicPartition place, OffsetSpec spec) throws Exception {
        return admin.listOffsets(Map.of(place, spec)).partitionResult(place).get();
    }

    List<Long> produce(JsonNode c, TopicPartition place) throws Exception {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap,
            "acks", "all",
            "compression.type", c.get("codec").asText(),
            "enable.idempotence", c.get("idempotent").asBoolean(),
            "max.request.size", c.get("max_request_bytes").asInt(),
            "delivery.timeout.ms", 60_000,
            "request.timeout.ms", 30_000,
            "linger.ms", 5);
        List<Long> offsets = new ArrayList<>();
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode r : c.get("records")) {
                Long timestamp = r.get("timestamp").isNull() ? null : r.get("timestamp").asLong();
                List<Header> headers = new ArrayList<>();
                for (JsonNode h : r.get("headers")) headers.add(new RecordHeader(h.get("key").asText(), h.get("value").binaryValue()));
                sent.add(producer.send(new ProducerRecord<>(
                    place.topic(), place.partition(), timestamp, r.get("key").binaryValue(), r.get("value").binaryValue(), headers)));
            }
            for (Future<RecordMetadata> future : sent) offsets.add(future.get().offset());
        }
        return offsets;
    }

    List<Map<String, Object>> consume(TopicPartition place, long offset, int count) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap,
            "auto.offset.reset", "none",
            "enable.auto.commit", false,
            "max.partition.fetch.bytes", 20_000_000);
        List<Map<String, Object>> seen = new ArrayList<>();
        long end = System.currentTimeMillis() + DEADLINE_MS;
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(place));
            consumer.seek(place, offset);
            while (seen.size() < count) {
                if (System.currentTimeMillis() > end) throw new IllegalStateException(seen.size() + " of " + count + " records came in time");
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofSeconds(1)))
                    if (seen.size() < count) seen.add(shown(r));
            }
        }
        return seen;
    }

    static Map<String, Object> shown(ConsumerRecord<byte[], byte[]> r) {
        List<Map<String, Object>> headers = new ArrayList<>();
        for (Header h : r.headers()) {
            Map<String, Object> header = new HashMap<>();
            header.put("key", h.key());
            header.put("value", h.value());
            headers.add(header);
        }
        Map<String, Object> shown = new HashMap<>();
        shown.put("offset", r.offset());
        shown.put("timestamp", r.timestamp());
        shown.put("key", r.key());
        shown.put("value", r.value());
        shown.put("headers", headers);
        return shown;
    }

    Map<String, Object> answer(String line) {
        try {
            return Collections.singletonMap("ok", run(JSON.readTree(line)));
        } catch (OffsetOutOfRangeException e) { // the consumer's own class, not the one in the table of errors
            return Map.of("error", Errors.OFFSET_OUT_OF_RANGE.code(), "detail", String.valueOf(e));
        } catch (Exception e) {
            Throwable cause = e instanceof ExecutionException ? e.getCause() : e;
            return Map.of("error", Errors.forException(cause).code(), "detail", String.valueOf(cause));
        }
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(JSON.writeValueAsString(driver.answer(line)));
            System.out.flush();
        }
        driver.admin.close();
    }
}
