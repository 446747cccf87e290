// Prints Kafka's error table: code, name, whether it is retriable.

import org.apache.kafka.common.errors.RetriableException;

public class Errors {
    public static void main(String[] args) {
        for (var error : org.apache.kafka.common.protocol.Errors.values()) {
            System.out.println(error.code() + " " + error.name() + " " + (error.exception() instanceof RetriableException));
        }
    }
}
