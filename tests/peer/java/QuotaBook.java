// Kafka's own quota classes with a clock that is told the time: a line in, a line out. tests/peer/test_quota_arithmetic.py
// is the other end.
//   set USER CLIENT BOUND          "-" where the entity has no such part, "*" for its default; BOUND "-" removes
//   use NOW USER CLIENT BYTES      -> the throttle time
//   take back NOW USER CLIENT BYTES
//   most USER CLIENT               -> the bytes that a fetch is cut to
//   change NOW USER CLIENT PARTITIONS strict|permissive -> refused or done, and the throttle time

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

public class QuotaBook {
    static class Told implements Time {
        long now = 0;

        public long milliseconds() {
            return now;
        }

        public long nanoseconds() {
            return now * 1_000_000;
        }

        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        public void waitObject(Object on, Supplier<Boolean> holds, long until) {
            throw new UnsupportedOperationException();
        }
    }

    static Optional<ConfigEntity> user(String name) {
        return switch (name) {
            case "-" -> Optional.empty();
            case "*" -> Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY);
            default -> Optional.of(new ClientQuotaManager.UserEntity(name));
        };
    }

    static Optional<ConfigEntity> client(String name) {
        return switch (name) {
            case "-" -> Optional.empty();
            case "*" -> Optional.of(ClientQuotaManager.DEFAULT_USER_CLIENT_ID);
            default -> Optional.of(new ClientQuotaManager.ClientIdEntity(name));
        };
    }

    static Session session(String user) throws Exception {
        return new Session(new KafkaPrincipal("User", user), InetAddress.getLoopbackAddress());
    }

    public static void main(String[] args) throws Exception {
        Told time = new Told();
        Metrics metrics = new Metrics(new MetricConfig(), java.util.List.of(), time);
        ClientQuotaManagerConfig config = new ClientQuotaManagerConfig();
        ClientQuotaManager bytes = new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, time, "");
        ControllerMutationQuotaManager changes =
            new ControllerMutationQuotaManager(config, metrics, time, "", Optional.empty());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "set" -> {
                    Optional<Quota> bound =
                        words[3].equals("-") ? Optional.empty() : Optional.of(Quota.upperBound(Double.parseDouble(words[3])));
                    bytes.updateQuota(user(words[1]), client(words[2]), bound);
                    changes.updateQuota(user(words[1]), client(words[2]), bound);
                    out.append("set\n");
                }
                case "use" -> {
                    time.now = Long.parseLong(words[1]);
                    out.append(bytes.maybeRecordAndGetThrottleTimeMs(
                        session(words[2]), words[3], Double.parseDouble(words[4]), time.now)).append('\n');
                }
                case "back" -> {
                    time.now = Long.parseLong(words[1]);
                    bytes.unrecordQuotaSensor(session(words[2]), words[3], Double.parseDouble(words[4]), time.now);
                    out.append("back\n");
                }
                case "most" -> out.append(bytes.maxValueInQuotaWindow(session(words[1]), words[2])).append('\n');
                case "change" -> {
                    time.now = Long.parseLong(words[1]);
                    var quota = words[5].equals("strict")
                        ? changes.newStrictQuotaFor(session(words[2]), words[3])
                        : changes.newPermissiveQuotaFor(session(words[2]), words[3]);
                    String done = "done";
                    try {
                        quota.record(Double.parseDouble(words[4]));
                    } catch (ThrottlingQuotaExceededException refused) {
                        done = "refused";
                    }
                    out.append(done).append(' ').append(quota.throttleTime()).append('\n');
                }
                default -> throw new IllegalArgumentException(line);
            }
        }
        System.out.print(out);
        System.exit(0);
    }
}
