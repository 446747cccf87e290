import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

/**
 * A line is {"reader": text, "writer": text}; the answer a line with their canonical texts and their differences. With
 * "data", which the writer wrote, it also has it as the reader would write what it read; null if it cannot read it.
 */
public class AvroOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
    }

    private static ObjectNode answer(JsonNode question) {
        ObjectNode answer = JSON.createObjectNode();
        Schema reader = parsed(question.get("reader").asText(), "reader", answer);
        Schema writer = parsed(question.get("writer").asText(), "writer", answer);
        if (reader == null || writer == null) {
            return answer;
        }
        ArrayNode differences = answer.putArray("differences");
        try {
            SchemaCompatibility.checkReaderWriterCompatibility(reader, writer).getResult().getIncompatibilities().forEach(
                found -> differences.addArray().add(found.getType().name()).add(found.getLocation()).add(found.getMessage()));
        } catch (RuntimeException gaveUp) {
            differences.removeAll();
            differences.addArray().add("EXCEPTION").add("").add(gaveUp.getMessage());
        }
        if (question.has("data")) {
            try {
                answer.put("read", evolved(Base64.getDecoder().decode(question.get("data").asText()), writer, reader));
            } catch (IOException | RuntimeException unreadable) {
                answer.putNull("read");
                answer.put("why", String.valueOf(unreadable));
            }
        }
        return answer;
    }

    private static byte[] evolved(byte[] data, Schema writer, Schema reader) throws IOException {
        Object datum = new GenericDatumReader<>(writer, reader).read(null, DecoderFactory.get().binaryDecoder(data, null));
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
        new GenericDatumWriter<>(reader).write(datum, encoder);
        encoder.flush();
        return out.toByteArray();
    }

    private static Schema parsed(String text, String name, ObjectNode answer) {
        try {
            Schema schema = new Schema.Parser().parse(text);
            answer.put(name, schema.toString());
            return schema;
        } catch (RuntimeException invalid) {
            answer.putNull(name);
            answer.put(name + " error", invalid.getMessage());
            return null;
        }
    }
}
