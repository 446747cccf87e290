import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.LongAccumulator;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Apache's producer with its defaults, committing after exactly so many records: ProducerPerformance ends a transaction
 * by time only. Each producer is a thread with a transactional id of its own. All begin to count together, when the
 * last of them has done its warm-up. Prints transactions, seconds, and percentiles of one transaction in milliseconds.
 */
public class TransactionalProducer {
    private final Map<String, String> options = new HashMap<>();
    private final int producers;
    private final int warmup;
    private final int transactions;
    private final int records;
    private final byte[] value;
    private final CyclicBarrier start;
    private volatile long began;
    private final LongAccumulator ended = new LongAccumulator(Math::max, Long.MIN_VALUE);

    private TransactionalProducer(String[] args) {
        for (int i = 0; i + 1 < args.length; i += 2) {
            options.put(args[i], args[i + 1]);
        }
        producers = number("--producers");
        warmup = number("--warmup-transactions");
        transactions = number("--transactions");
        records = number("--records-per-transaction");
        value = new byte[number("--record-size")];
        new Random(7).nextBytes(value);
        start = new CyclicBarrier(producers, () -> began = System.nanoTime());
    }

    public static void main(String[] args) throws Exception {
        new TransactionalProducer(args).run();
    }

    private int number(String option) {
        return Integer.parseInt(options.get(option));
    }

    private void run() throws Exception {
        long[][] taken = new long[producers][transactions];
        Thread[] threads = new Thread[producers];
        for (int i = 0; i < producers; i++) {
            int index = i;
            threads[i] = new Thread(() -> produce(index, taken[index]));
            // Half a result is none.
            threads[i].setUncaughtExceptionHandler((thread, trouble) -> {
                trouble.printStackTrace();
                Runtime.getRuntime().halt(1);
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        double seconds = (ended.get() - began) / 1e9;
        long[] all = Arrays.stream(taken).flatMapToLong(Arrays::stream).sorted().toArray();
        System.out.printf("%d transactions, %.6f s, p50 %.3f ms, p99 %.3f ms%n", all.length, seconds,
            all[all.length / 2] / 1e6, all[all.length * 99 / 100] / 1e6);
    }

    private void produce(int index, long[] taken) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", options.get("--bootstrap-server"));
        settings.put("transactional.id", options.get("--transactional-id") + "-" + index);
        try (KafkaProducer<byte[], byte[]> producer =
                 new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            for (int i = 0; i < warmup; i++) {
                transaction(producer);
            }
            start.await();
            for (int i = 0; i < transactions; i++) {
                long before = System.nanoTime();
                transaction(producer);
                taken[i] = System.nanoTime() - before;
            }
            ended.accumulate(System.nanoTime());
        } catch (Exception trouble) {
            throw new IllegalStateException(trouble);
        }
    }

    /** A send that fails makes the commit fail. */
    private void transaction(KafkaProducer<byte[], byte[]> producer) {
        producer.beginTransaction();
        for (int i = 0; i < records; i++) {
            producer.send(new ProducerRecord<>(options.get("--topic"), value));
        }
        producer.commitTransaction();
    }
}
