import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.connect.mirror.Checkpoint;
import org.apache.kafka.connect.mirror.Heartbeat;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.OffsetSync;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/** What MirrorMaker's own classes read of a mirror: a question per line, an answer in JSON per line. */
public class MirrorReader {
    public static void main(String[] args) throws Exception {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        ObjectMapper json = new ObjectMapper();
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            System.out.println(json.writeValueAsString(answer(line.split(" "))));
            System.out.flush();
        }
    }

    private static Object answer(String[] words) throws Exception {
        Map<String, Object> target = Map.of("bootstrap.servers", words[1]);
        return switch (words[0]) {
            case "standing" -> standing(target, words[2]);
            case "translate" -> translated(target, words[2], words[3]);
            case "syncs" -> records(words[1], words[2], record -> {
                OffsetSync sync = OffsetSync.deserializeRecord(record);
                return List.of(sync.topicPartition().toString(), sync.upstreamOffset(), sync.downstreamOffset());
            });
            case "checkpoints" -> records(words[1], words[2], record -> {
                Checkpoint point = Checkpoint.deserializeRecord(record);
                return List.of(point.consumerGroupId(), point.topicPartition().toString(), point.upstreamOffset(),
                    point.downstreamOffset(), point.metadata());
            });
            case "heartbeats" -> records(words[1], words[2], record -> {
                Heartbeat beat = Heartbeat.deserializeRecord(record);
                return List.of(beat.sourceClusterAlias(), beat.targetClusterAlias(), beat.timestamp());
            });
            default -> throw new IllegalArgumentException(words[0]);
        };
    }

    private static Object standing(Map<String, Object> target, String alias) throws Exception {
        try (MirrorClient client = new MirrorClient(target)) {
            Map<String, Object> found = new TreeMap<>();
            found.put("hops", client.replicationHops(alias));
            found.put("upstream", new TreeSet<>(client.upstreamClusters()));
            found.put("topics", new TreeSet<>(client.remoteTopics(alias)));
            found.put("checkpoints", new TreeSet<>(client.checkpointTopics()));
            found.put("heartbeats", new TreeSet<>(client.heartbeatTopics()));
            return found;
        }
    }

    private static Object translated(Map<String, Object> target, String alias, String group) throws Exception {
        Map<String, Long> found = new TreeMap<>();
        Map<TopicPartition, OffsetAndMetadata> offsets =
            RemoteClusterUtils.translateOffsets(new HashMap<>(target), alias, group, Duration.ofSeconds(30));
        offsets.forEach((place, at) -> found.put(place.toString(), at.offset()));
        return found;
    }

    private interface Reading {
        Object of(ConsumerRecord<byte[], byte[]> record);
    }

    private static List<Object> records(String bootstrap, String topic, Reading reading) {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "isolation.level", "read_committed");
        List<Object> found = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            TopicPartition place = new TopicPartition(topic, 0);
            consumer.assign(List.of(place));
            consumer.seekToBeginning(List.of(place));
            long end = consumer.endOffsets(List.of(place)).get(place);
            while (consumer.position(place) < end) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                    found.add(reading.of(record));
                }
            }
        }
        return found;
    }
}
