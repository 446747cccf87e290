// One application of several, exactly once, with the defaults of Kafka Streams. Ends by SIGTERM.
// Arguments: what (see main), application id, bootstrap, state directory, input, output, and a table's topic for joins.

import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

public class StreamsApplication {
    static final Duration WINDOW = Duration.ofSeconds(10);
    static final Duration GAP = Duration.ofSeconds(1);
    static final Serde<String> STRING = Serdes.String();
    static final Serde<Long> LONG = Serdes.Long();

    static void words(KStream<String, String> lines, String output) {
        lines.flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(STRING, STRING))
            .count()
            .toStream()
            .to(output, Produced.with(STRING, LONG));
    }

    static void windows(KStream<String, String> lines, String output) {
        lines.groupByKey(Grouped.with(STRING, STRING))
            .windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, Duration.ofSeconds(1)))
            .count()
            .toStream()
            .to(output, Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, WINDOW.toMillis()), LONG));
    }

    static void sessions(KStream<String, String> lines, String output) {
        lines.groupByKey(Grouped.with(STRING, STRING))
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(GAP, Duration.ofSeconds(1)))
            .count()
            .toStream()
            .to(output, Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), LONG));
    }

    static void joined(KStream<String, String> lines, KTable<String, String> table, String output) {
        lines.join(table, (line, row) -> line + "|" + row, Joined.with(STRING, STRING, STRING))
            .to(output, Produced.with(STRING, STRING));
    }

    static void foreign(KTable<String, String> lines, KTable<String, String> table, String output) {
        lines.join(table, StreamsApplication::rowOf, (line, row) -> line + "|" + row, Materialized.with(STRING, STRING))
            .toStream()
            .to(output, Produced.with(STRING, STRING));
    }

    static String rowOf(String line) {
        return "key" + Integer.parseInt(line.substring(4, line.indexOf(' '))) % 1_000;
    }

    static void state(StreamsBuilder builder, KStream<String, String> lines, String output) {
        builder.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("seen"), STRING, LONG));
        lines.process(Seen::new, "seen").to(output, Produced.with(STRING, LONG));
    }

    static class Seen extends ContextualProcessor<String, String, String, Long> {
        KeyValueStore<String, Long> seen;

        @Override
        public void init(ProcessorContext<String, Long> context) {
            super.init(context);
            seen = context.getStateStore("seen");
        }

        @Override
        public void process(Record<String, String> record) {
            Long before = seen.get(record.key());
            long now = (before == null ? 0 : before) + record.value().length();
            seen.put(record.key(), now);
            context().forward(record.withValue(now));
        }
    }

    static Topology topology(String[] args) {
        StreamsBuilder builder = new StreamsBuilder();
        Consumed<String, String> strings = Consumed.with(STRING, STRING);
        if (args[0].equals("foreign")) {
            foreign(builder.table(args[4], strings), builder.table(args[6], strings), args[5]);
            return builder.build();
        }
        KStream<String, String> lines = builder.stream(args[4], strings);
        switch (args[0]) {
            case "words" -> words(lines, args[5]);
            case "windows" -> windows(lines, args[5]);
            case "sessions" -> sessions(lines, args[5]);
            case "state" -> state(builder, lines, args[5]);
            case "joined" -> joined(lines, builder.table(args[6], strings), args[5]);
            default -> throw new IllegalArgumentException(args[0]);
        }
        return builder.build();
    }

    public static void main(String[] args) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, args[1]);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[2]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, args[3]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        KafkaStreams streams = new KafkaStreams(topology(args), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(30))));
        streams.start();
    }
}
