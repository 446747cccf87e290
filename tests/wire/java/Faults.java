// The writer and the reader of the fault tests: lines in, lines out, the same as those of go/faults.go, which says which.
// tests/faults/clients.py is the other end.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Faults {
    static final BufferedReader IN = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

    /** How to log in, where one has to. */
    static Map<String, Object> loggingIn() {
        Map<String, Object> settings = new HashMap<>();
        String file = System.getenv("OTTLA_CLIENT_CONFIG");
        if (file == null) return settings;
        Properties said = new Properties();
        try (java.io.Reader reader = java.nio.file.Files.newBufferedReader(java.nio.file.Path.of(file))) {
            said.load(reader);
        } catch (java.io.IOException problem) {
            throw new java.io.UncheckedIOException(problem);
        }
        said.forEach((name, value) -> settings.put((String) name, value));
        return settings;
    }

    // As a careful user has it, with short backoffs: what is measured is the cluster and not the client's patience.
    static Map<String, Object> careful(String bootstrap, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(more);
        settings.put("bootstrap.servers", bootstrap);
        settings.putAll(loggingIn());
        settings.put("socket.connection.setup.timeout.ms", 1000);
        settings.put("request.timeout.ms", 10_000);
        settings.put("reconnect.backoff.ms", 20);
        settings.put("reconnect.backoff.max.ms", 200);
        settings.put("retry.backoff.ms", 20);
        settings.put("retry.backoff.max.ms", 200);
        return settings;
    }

    static String value(String payload) {
        return payload.substring(0, payload.indexOf(' '));
    }

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static void write(String bootstrap, String topic, String acks) throws Exception {
        Map<String, Object> settings = careful(bootstrap, Map.of(
            "acks", acks,
            "enable.idempotence", acks.equals("all"),
            "linger.ms", 2,
            "delivery.timeout.ms", 120_000,
            "max.block.ms", 120_000));
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (String line = IN.readLine(); line != null; line = IN.readLine()) {
                String[] words = line.split(" ", 3);
                producer.send(new ProducerRecord<>(topic, Integer.valueOf(words[1]), null, words[2]), (done, error) ->
                    say(error == null
                        ? "ok " + value(words[2]) + " " + done.offset()
                        : "failed " + value(words[2]) + " " + String.valueOf(error).replace('\n', ' ')));
            }
        }
    }

    static KafkaConsumer<String, String> assigned(String bootstrap, List<TopicPartition> places, String start) {
        Map<String, Object> settings = careful(bootstrap, Map.of(
            "enable.auto.commit", false,
            "auto.offset.reset", "earliest",
            "isolation.level", "read_committed",
            "fetch.max.wait.ms", 100,
            "default.api.timeout.ms", 10_000));
        var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        consumer.assign(places);
        if (start.equals("begin")) {
            consumer.seekToBeginning(places);
            return consumer;
        }
        while (true) {
            try {
                consumer.endOffsets(places).forEach((place, end) -> consumer.seek(place, Math.max(0, end - Long.parseLong(start))));
                return consumer;
            } catch (RetriableException e) { // no leader at the moment
                continue;
            }
        }
    }

    static void read(String bootstrap, String topic, int partitions) throws Exception {
        List<TopicPartition> places = IntStream.range(0, partitions).mapToObj(p -> new TopicPartition(topic, p)).toList();
        KafkaConsumer<String, String> consumer = null;
        for (String line = IN.readLine(); line != null; line = IN.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("assign")) {
                if (consumer != null) consumer.close();
                consumer = assigned(bootstrap, places, words[1]);
                say("assigned");
                continue;
            }
            StringBuilder answer = new StringBuilder("polled");
            for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(Long.parseLong(words[1]))))
                answer.append(' ').append(r.partition()).append(':').append(r.offset()).append(':').append(value(r.value()));
            say(answer.toString());
        }
        if (consumer != null) consumer.close();
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("write")) write(args[1], args[2], args[3]);
        else read(args[1], args[2], Integer.parseInt(args[3]));
    }
}
