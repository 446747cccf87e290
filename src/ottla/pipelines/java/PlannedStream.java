package ottla;

import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.util.Base64;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingSourceOffset;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingSourceReadLimit;
import scala.Option;

/** A stream that the driver's own Python plans, where Spark has a process for each. Offsets, and what tasks are given,
 *  are those of Spark's Python sources. */
public class PlannedStream implements MicroBatchStream, SupportsTriggerAvailableNow, ThreadFactory {
    private final Planning planning;
    private final String stream;
    private final PartitionReaderFactory tasks;
    /** Who waits for Python cannot be interrupted: this one waits, and Spark's own thread for it. */
    private final ExecutorService asking;
    private Offset start;
    private Offset end;
    private InputPartition[] planned;

    public PlannedStream(Planning planning, PartitionReaderFactory tasks) {
        this.planning = planning;
        this.tasks = tasks;
        this.stream = answer("open", planning.ask(null, "open", null, null));
        this.asking = Executors.newSingleThreadExecutor(this);
    }

    public Thread newThread(Runnable work) {
        Thread thread = new Thread(work, "ottla-planning-" + stream);
        thread.setDaemon(true);
        return thread;
    }

    private static String answer(String question, String told) {
        if (told.startsWith("!")) {
            throw new IllegalStateException("The driver could not tell " + question + ": " + told.substring(1));
        }
        return told.substring(1);
    }

    private String ask(final String question, final String first, final String second) {
        Callable call = new Callable() {
            public Object call() {
                return planning.ask(stream, question, first, second);
            }
        };
        try {
            return answer(question, (String) asking.submit(call).get());
        } catch (InterruptedException stopped) {
            throw new UncheckedIOException(new InterruptedIOException(question));
        } catch (ExecutionException failed) {
            throw new IllegalStateException("The driver could not be asked for " + question, failed.getCause());
        }
    }

    public Offset initialOffset() {
        return deserializeOffset(ask("initial", null, null));
    }

    public Offset deserializeOffset(String json) {
        return new PythonStreamingSourceOffset(json);
    }

    public Offset latestOffset() {
        throw new IllegalStateException("a stream with limits is asked with a limit");
    }

    public Offset latestOffset(Offset from, ReadLimit limit) {
        return deserializeOffset(ask("latest", from.json(), limit instanceof ReadAllAvailable ? "all" : "default"));
    }

    public ReadLimit getDefaultReadLimit() {
        return new PythonStreamingSourceReadLimit("default");
    }

    public Offset reportLatestOffset() {
        String seen = ask("seen", null, null);
        return seen.isEmpty() ? null : deserializeOffset(seen);
    }

    public void prepareForTriggerAvailableNow() {
        ask("ceiling", null, null);
    }

    public InputPartition[] planInputPartitions(Offset first, Offset last) {
        if (planned != null && first.equals(start) && last.equals(end)) {
            return planned;
        }
        String told = ask("parts", first.json(), last.json());
        String[] parts = told.isEmpty() ? new String[0] : told.split(" ");
        InputPartition[] found = new InputPartition[parts.length];
        for (int number = 0; number < parts.length; number++) {
            byte[] pickled = Base64.getDecoder().decode(parts[number]);
            found[number] = new PythonStreamingInputPartition(number, pickled, Option.empty());
        }
        start = first;
        end = last;
        planned = found;
        return found;
    }

    public PartitionReaderFactory createReaderFactory() {
        return tasks;
    }

    public void commit(Offset done) {
    }

    public void stop() {
        asking.shutdown();
        planning.ask(stream, "stop", null, null);
    }
}
