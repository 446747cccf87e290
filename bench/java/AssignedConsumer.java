import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads a topic from its beginning with Apache's consumer and the settings of ConsumerPerformance, but with assigned
 * partitions instead of a group, so that a server without groups can be measured. Prints ConsumerPerformance's line.
 */
public class AssignedConsumer {
    public static void main(String[] args) {
        Map<String, String> options = new HashMap<>();
        for (int i = 0; i + 1 < args.length; i += 2) {
            options.put(args[i], args[i + 1]);
        }
        long wanted = Long.parseLong(options.get("--num-records"));
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(options.get("--bootstrap-server"))) {
            List<TopicPartition> partitions = consumer.partitionsFor(options.get("--topic")).stream()
                .map(p -> new TopicPartition(p.topic(), p.partition()))
                .collect(Collectors.toList());
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            partitions.forEach(consumer::position);
            read(consumer, wanted);
        }
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String bootstrap) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("enable.auto.commit", "false");
        settings.put("receive.buffer.bytes", "2097152");
        settings.put("max.partition.fetch.bytes", "1048576");
        settings.put("check.crcs", "false");
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static void read(KafkaConsumer<byte[], byte[]> consumer, long wanted) {
        long records = 0;
        long bytes = 0;
        long began = System.nanoTime();
        long lastRecord = began;
        while (records < wanted && System.nanoTime() - lastRecord < 10_000_000_000L) {
            ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofMillis(100));
            if (!polled.isEmpty()) {
                lastRecord = System.nanoTime();
            }
            for (ConsumerRecord<byte[], byte[]> record : polled) {
                records++;
                bytes += record.value().length;
            }
        }
        double seconds = (System.nanoTime() - began) / 1e9;
        double megabytes = bytes / 1048576.0;
        System.out.printf("0, 0, %.4f, %.4f, %d, %.4f, 0, %d, %.4f, %.4f%n", megabytes, megabytes / seconds, records,
            records / seconds, Math.round(seconds * 1000), megabytes / seconds, records / seconds);
    }
}
