// Says of every file in a directory whether Apache Kafka takes it as a node's configuration.

import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;

import kafka.server.KafkaConfig;

public class NodeFiles {
    public static void main(String[] args) throws Exception {
        List<Path> files;
        try (var found = Files.list(Path.of(args[0]))) {
            files = found.sorted().toList();
        }
        for (Path file : files) {
            Properties properties = new Properties();
            try (InputStream input = Files.newInputStream(file)) {
                properties.load(input);
            }
            String answer;
            try {
                KafkaConfig.fromProps(properties, false);
                answer = "taken";
            } catch (RuntimeException refused) {
                answer = "refused " + String.valueOf(refused.getMessage()).replace('\n', ' ');
            }
            System.out.println(file.getFileName() + " " + answer);
        }
    }
}
