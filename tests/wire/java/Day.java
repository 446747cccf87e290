import java.io.FileReader;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A client of the secured day, in one role: writes, transacts or reads in a group. It says what it did, a line each,
 * until nothing more can be read from stdin. tests/wire/test_secured_day_elsewhere.py is the other end.
 */
public final class Day {
    private static volatile boolean ending;
    private final Properties settings = new Properties();
    private final String name;
    private final List<String> topics;

    private Day(String file, String bootstrap, String name, List<String> topics) throws IOException {
        try (FileReader reader = new FileReader(file)) {
            settings.load(reader);
        }
        settings.put("bootstrap.servers", bootstrap);
        this.name = name;
        this.topics = topics;
    }

    public static void main(String[] args) throws Exception {
        Thread listening = new Thread(Day::untilHungUp);
        listening.setDaemon(true);
        listening.start();
        Day day = new Day(args[0], args[2], args[3], Arrays.asList(args).subList(4, args.length));
        switch (args[1]) {
            case "writes": day.writes(); break;
            case "transacts": day.transacts(); break;
            default: day.reads();
        }
    }

    private static void untilHungUp() {
        try {
            while (System.in.read() >= 0) { }
        } catch (IOException gone) {
            // As well as the end.
        }
        ending = true;
    }

    private static synchronized void say(String what, String text) {
        System.out.println(what + " " + text.replace('\n', ' '));
    }

    private KafkaProducer<String, String> producer() {
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    private void writes() throws InterruptedException {
        try (KafkaProducer<String, String> producer = producer()) {
            for (int number = 1; !ending; number++) {
                String value = name + " " + number;
                producer.send(new ProducerRecord<>(topics.get(0), value), (place, trouble) ->
                    say(trouble == null ? "wrote" : "trouble", trouble == null ? value : trouble.toString()));
                Thread.sleep(20);
            }
        }
    }

    private void transacts() throws Exception {
        settings.put("transactional.id", name);
        try (KafkaProducer<String, String> producer = producer()) {
            producer.initTransactions();
            for (int number = 1; !ending; number++) {
                boolean commits = number % 3 != 0;
                List<String> values = List.of(name + " " + number + " a", name + " " + number + " b");
                producer.beginTransaction();
                for (String value : values) {
                    if (!commits) {
                        say("aborted", value);
                    }
                    producer.send(new ProducerRecord<>(topics.get(0), value));
                }
                if (commits) {
                    producer.commitTransaction();
                    values.forEach(value -> say("wrote", value));
                } else {
                    producer.abortTransaction();
                }
                Thread.sleep(20);
            }
        }
    }

    private void reads() {
        settings.put("group.id", name);
        settings.put("auto.offset.reset", "earliest");
        settings.put("isolation.level", "read_committed");
        StringDeserializer text = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, text, text)) {
            consumer.subscribe(new ArrayList<>(topics));
            while (!ending) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    say("read", record.value());
                }
            }
        }
    }
}
