import java.io.File;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.properties.MetaProperties;
import org.apache.kafka.metadata.properties.MetaPropertiesVersion;
import org.apache.kafka.metadata.properties.PropertiesUtils;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Lets Apache Kafka's own log write a directory: the same appends as tests/golden/storage/test_files.py makes. */
public class KafkaFiles {
    static final long NOW = 1_700_000_000_000L;

    public static void main(String[] args) throws Exception {
        Path root = Path.of(args[0]);
        log(root.resolve("orders-0").toFile());
        checkpoints(root);
        System.exit(0);
    }

    static void checkpoints(Path root) throws Exception {
        LogDirFailureChannel failures = new LogDirFailureChannel(1);
        Map<TopicPartition, Long> offsets = new LinkedHashMap<>();
        offsets.put(new TopicPartition("orders", 0), 85L);
        new OffsetCheckpointFile(root.resolve("recovery-point-offset-checkpoint").toFile(), failures).write(offsets);
        new CleanShutdownFileHandler(root.toString()).write(42L);
        PropertiesUtils.writePropertiesFile(new MetaProperties.Builder()
            .setVersion(MetaPropertiesVersion.V1).setClusterId("6PMpHYL9QkeyXRj9Nrp4KA").setNodeId(1)
            .setDirectoryId(Uuid.fromString("AAECAwQFBgcICQoLDA0ODw")).build().toProperties(),
            root.resolve("meta.properties").toString(), false);
    }

    static void log(File dir) throws Exception {
        Map<String, String> config = Map.of("segment.bytes", "1048576", "internal.segment.bytes", "3000", "index.interval.bytes", "300",
            "message.timestamp.after.max.ms", String.valueOf(Long.MAX_VALUE));
        Time time = Time.SYSTEM;
        Scheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        UnifiedLog log = UnifiedLog.create(dir, new LogConfig(config), 0L, 0L, scheduler, new BrokerTopicStats(), time,
            900000, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 600000, new LogDirFailureChannel(1), true,
            Optional.of(new Uuid(0x0102030405060708L, 0x090A0B0C0D0E0F10L)));
        int sequence = 0;
        for (int i = 0; i < 40; i++) {
            SimpleRecord[] records = {record(i, "v" + i), record(i + 1, "w")};
            append(log, MemoryRecords.withIdempotentRecords(Compression.NONE, 5L, (short) 0, sequence, records), 1 + i / 10);
            sequence += 2;
        }
        append(log, transactional(6L), 9);
        marker(log, 6L, ControlRecordType.ABORT);
        append(log, transactional(7L), 9);
        append(log, transactional(8L), 9);
        marker(log, 7L, ControlRecordType.ABORT);
        log.close();
    }

    static SimpleRecord record(int at, String value) {
        return new SimpleRecord(NOW + at, "k".getBytes(), value.getBytes());
    }

    static MemoryRecords transactional(long producerId) {
        return MemoryRecords.withTransactionalRecords(Compression.NONE, producerId, (short) 0, 0, record(0, "t"));
    }

    static void append(UnifiedLog log, MemoryRecords records, int epoch) {
        log.appendAsLeader(records, epoch, AppendOrigin.CLIENT, org.apache.kafka.server.common.RequestLocal.noCaching(),
            VerificationGuard.SENTINEL, (short) 0);
    }

    static void marker(UnifiedLog log, long producerId, ControlRecordType type) {
        MemoryRecords records = MemoryRecords.withEndTransactionMarker(NOW, producerId, (short) 0,
            new EndTransactionMarker(type, 0));
        log.appendAsLeader(records, 9, AppendOrigin.COORDINATOR, org.apache.kafka.server.common.RequestLocal.noCaching(),
            VerificationGuard.SENTINEL, (short) 0);
    }
}
