import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Transactions of Java's own producer: one scenario for each word on the command line, one line of output for each. */
public final class Transactions {
    private final String bootstrap;
    private final String topic;

    private Transactions(String bootstrap, String topic) {
        this.bootstrap = bootstrap;
        this.topic = topic;
    }

    public static void main(String[] args) throws Exception {
        Transactions run = new Transactions(args[0], args[1]);
        for (int at = 2; at < args.length; at++) {
            String[] scenario = args[at].split("=");
            System.out.println(scenario[0] + " " + run.play(scenario[0], scenario.length > 1 ? Integer.parseInt(scenario[1]) : 0));
        }
    }

    private String play(String scenario, int count) throws Exception {
        switch (scenario) {
            case "alternate": return alternate(count);
            case "fence": return fence();
            case "empty": return empty();
            case "offsets": return offsets();
            case "read": return String.join(",", read("read_committed", count));
            default: throw new IllegalArgumentException(scenario);
        }
    }

    private KafkaProducer<String, String> producer(String transactionalId) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("transactional.id", transactionalId);
        p.put("linger.ms", 0);
        p.put("key.serializer", StringSerializer.class.getName());
        p.put("value.serializer", StringSerializer.class.getName());
        return new KafkaProducer<>(p);
    }

    /** Every third transaction is aborted; each writes to both partitions. */
    private String alternate(int count) {
        try (KafkaProducer<String, String> producer = producer(topic + "-alternate")) {
            producer.initTransactions();
            for (int i = 0; i < count; i++) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic, 0, null, (i % 3 == 2 ? "aborted-" : "a") + i));
                producer.send(new ProducerRecord<>(topic, 1, null, (i % 3 == 2 ? "aborted-" : "b") + i));
                if (i % 3 == 2) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        return "done";
    }

    private String fence() {
        try (KafkaProducer<String, String> old = producer(topic + "-fence");
             KafkaProducer<String, String> fresh = producer(topic + "-fence")) {
            old.initTransactions();
            old.beginTransaction();
            old.send(new ProducerRecord<>(topic, 0, null, "aborted-by-fence"));
            old.flush();
            fresh.initTransactions();
            fresh.beginTransaction();
            fresh.send(new ProducerRecord<>(topic, 0, null, "fresh"));
            fresh.commitTransaction();
            try {
                old.commitTransaction();
                return "not fenced";
            } catch (ProducerFencedException e) {
                return "fenced";
            }
        }
    }

    /** Ends of transactions in which nothing was written. */
    private String empty() {
        try (KafkaProducer<String, String> producer = producer(topic + "-empty")) {
            producer.initTransactions();
            for (int i = 0; i < 3; i++) {
                producer.beginTransaction();
                producer.abortTransaction();
                producer.beginTransaction();
                producer.commitTransaction();
            }
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, "after-empty"));
            producer.commitTransaction();
        }
        return "done";
    }

    private String offsets() {
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaProducer<String, String> producer = producer(topic + "-offsets");
             KafkaConsumer<String, String> consumer = consumer("read_committed", topic + "-group")) {
            ConsumerGroupMetadata group = new ConsumerGroupMetadata(topic + "-group");
            producer.initTransactions();
            List<String> seen = new ArrayList<>();
            for (long offset : new long[] {3, 5}) {
                producer.beginTransaction();
                producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(offset)), group);
                if (offset == 5) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
                seen.add(String.valueOf(consumer.committed(java.util.Set.of(partition)).get(partition).offset()));
            }
            return String.join(",", seen);
        }
    }

    private KafkaConsumer<String, String> consumer(String isolation, String group) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("group.id", group);
        p.put("isolation.level", isolation);
        p.put("auto.offset.reset", "earliest");
        p.put("enable.auto.commit", "false");
        p.put("key.deserializer", StringDeserializer.class.getName());
        p.put("value.deserializer", StringDeserializer.class.getName());
        return new KafkaConsumer<>(p);
    }

    private List<String> read(String isolation, int count) {
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer(isolation, topic + "-reader")) {
            consumer.assign(List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1)));
            consumer.seekToBeginning(consumer.assignment());
            long end = System.currentTimeMillis() + 60_000;
            while (values.size() < count && System.currentTimeMillis() < end) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    values.add(record.value());
                }
            }
        }
        values.sort(null);
        return values;
    }
}
