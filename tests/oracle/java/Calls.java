// Functions that live in Python: a name "call:N" is asked over stdout and answered over stdin, between the cases. Values
// are texts that mean nothing here, tests/oracle/calls.py reads them. Equal questions have equal answers and are asked once.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.Windowed;

final class Calls {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Deque<String> cases = new ArrayDeque<>();
    private static final Map<List<Object>, JsonNode> answered = new HashMap<>();
    private static BufferedReader lines;
    private static PrintStream out;

    private Calls() {}

    static void over(BufferedReader lines, PrintStream out) {
        Calls.lines = lines;
        Calls.out = out;
    }

    /** Also forgets what was answered: the next case has functions of its own. */
    static String nextCase() throws IOException {
        answered.clear();
        return cases.isEmpty() ? lines.readLine() : cases.poll();
    }

    static boolean is(String name) {
        return name != null && name.startsWith("call:");
    }

    static JsonNode ask(String name, Object... arguments) {
        List<Object> question = new ArrayList<>(Arrays.asList(arguments));
        question.add(name);
        JsonNode known = answered.get(question);
        if (known == null) {
            known = asked(name, arguments);
            answered.put(question, known);
        }
        if (known.hasNonNull("error")) throw new SerializationException(known.get("error").asText());
        return known.get("answer");
    }

    private static JsonNode asked(String name, Object... arguments) {
        ObjectNode question = JSON.createObjectNode();
        question.put("call", name);
        ArrayNode list = question.putArray("arguments");
        for (Object each : arguments) {
            if (each instanceof Windowed<?> windowed) {
                list.addArray().add((String) windowed.key()).add(windowed.window().start()).add(windowed.window().end());
            } else {
                list.addPOJO(each);
            }
        }
        try {
            out.println(JSON.writeValueAsString(question));
            out.flush();
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith("{\"answer\"")) return JSON.readTree(line);
                cases.add(line);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        throw new IllegalStateException("nobody answers " + name);
    }

    static String text(String name, Object... arguments) {
        JsonNode answer = ask(name, arguments);
        return answer.isNull() ? null : answer.asText();
    }

    static Serde<String> serde(String name) {
        return Serdes.serdeFrom(
            (topic, data) -> data == null ? null : text(name, "write", topic, data).getBytes(StandardCharsets.ISO_8859_1),
            (topic, data) -> data == null ? null : text(name, "read", topic, new String(data, StandardCharsets.ISO_8859_1)));
    }

    /** The text as it is. */
    static Serde<String> latin() {
        return Serdes.serdeFrom(
            (topic, data) -> data == null ? null : data.getBytes(StandardCharsets.ISO_8859_1),
            (topic, data) -> data == null ? null : new String(data, StandardCharsets.ISO_8859_1));
    }
}
