// Writes the golden corpus of messages: what Apache Kafka's own serializers make of every message in every version.
//
//     java -cp 'JARS/*' tests/golden/protocol/Corpus.java JARS | gzip -9n > tests/golden/protocol/messages.jsonl.gz
//
// One line per message, version and variant: the bytes in base64, and Kafka's JSON rendering of the same values.
// Variants: default (a new object), full (everything set), null (null wherever it may be), tags (full, with two unknown
// tagged fields in every struct). Values are counted up, so that no two neighbours are equal.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.internal.MemoryRecords;

public class Corpus {
    static final String[] ARTIFACTS = {"kafka-clients", "kafka-metadata", "kafka-group-coordinator",
        "kafka-transaction-coordinator", "kafka-share-coordinator", "kafka-storage", "kafka-raft"};
    static final ObjectMapper JSON = new ObjectMapper();
    static long count;

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (Class<?> type : messages(new File(args[0]))) {
            Schema[] schemas = (Schema[]) type.getField("SCHEMAS").get(null);
            for (int version = 0; version < schemas.length; version++) {
                if (schemas[version] == null) continue;
                for (String variant : new String[] {"default", "full", "null", "tags"}) {
                    if (variant.equals("tags") && !isFlexible(schemas[version])) continue;
                    out.println(line(type, schemas[version], (short) version, variant));
                }
            }
        }
        out.flush();
    }

    static List<Class<?>> messages(File folder) throws Exception {
        TreeSet<String> names = new TreeSet<>();
        for (String artifact : ARTIFACTS) {
            for (File file : folder.listFiles()) {
                if (!file.getName().matches(artifact + "-[0-9.]+\\.jar")) continue;
                try (JarFile jar = new JarFile(file)) {
                    for (JarEntry entry : java.util.Collections.list(jar.entries())) {
                        String name = entry.getName();
                        if (name.endsWith(".class") && !name.contains("$")
                                && name.matches(".*/(message|metadata|generated)/[A-Za-z0-9]+\\.class")) {
                            names.add(name.substring(0, name.length() - 6).replace('/', '.'));
                        }
                    }
                }
            }
        }
        List<Class<?>> found = new ArrayList<>();
        for (String name : names) {
            Class<?> type = Class.forName(name);
            if (ApiMessage.class.isAssignableFrom(type) && !Modifier.isAbstract(type.getModifiers())) found.add(type);
        }
        return found;
    }

    static String line(Class<?> type, Schema schema, short version, String variant) throws Exception {
        count = 0;
        ApiMessage message = (ApiMessage) type.getConstructor().newInstance();
        if (!variant.equals("default")) fill(message, schema, variant, 0);
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        ObjectNode node = JSON.createObjectNode();
        node.put("name", type.getSimpleName());
        node.put("version", version);
        node.put("variant", variant);
        node.put("bytes", Base64.getEncoder().encodeToString(bytes));
        Method write = Class.forName(type.getName() + "JsonConverter").getMethod("write", type, short.class);
        if (!variant.equals("tags")) node.set("values", (JsonNode) write.invoke(null, message, version));
        return JSON.writeValueAsString(node);
    }

    static boolean isFlexible(Schema schema) {
        for (BoundField field : schema.fields()) if (field.def.type instanceof TaggedFields) return true;
        return false;
    }

    static void fill(Message message, Schema schema, String variant, int depth) throws Exception {
        for (BoundField field : schema.fields()) {
            if (field.def.type instanceof TaggedFields tagged) {
                for (var one : tagged.fields().values()) set(message, one.name, one.type, variant, depth);
                if (variant.equals("tags")) {
                    message.unknownTaggedFields().add(new RawTaggedField(100, new byte[] {1, 2, 3}));
                    message.unknownTaggedFields().add(new RawTaggedField(20000, new byte[200]));
                }
            } else {
                set(message, field.def.name, field.def.type, variant, depth);
            }
        }
    }

    static void set(Message message, String name, Type type, String variant, int depth) throws Exception {
        String wanted = name.replace("_", "").toLowerCase();
        for (Field field : message.getClass().getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) || !field.getName().toLowerCase().equals(wanted)) continue;
            field.setAccessible(true);
            boolean isNull = variant.equals("null") && type.isNullable();
            field.set(message, isNull ? null : value(field, type, variant, depth));
            return;
        }
        throw new IllegalStateException(message.getClass() + " has no " + name);
    }

    @SuppressWarnings("unchecked")
    static Object value(Field field, Type type, String variant, int depth) throws Exception {
        if (!type.isArray()) return one(field.getType(), type, variant, depth);
        Type element = type.arrayElementType().get();
        Collection<Object> items;
        Class<?> of;
        if (field.getType() == List.class) {
            items = new ArrayList<>();
            of = (Class<?>) ((ParameterizedType) field.getGenericType()).getActualTypeArguments()[0];
        } else {
            items = (Collection<Object>) field.getType().getConstructor().newInstance();
            of = (Class<?>) ((ParameterizedType) field.getType().getGenericSuperclass()).getActualTypeArguments()[0];
        }
        int size = depth == 0 ? 2 : 1;
        for (int i = 0; i < size; i++) items.add(one(of, element, variant, depth + 1));
        return items;
    }

    static Object one(Class<?> java, Type type, String variant, int depth) throws Exception {
        count++;
        long big = count * 1_000_003L * (count % 2 == 0 ? -1 : 1);
        if (Message.class.isAssignableFrom(java)) {
            Message inner = (Message) java.getConstructor().newInstance();
            fill(inner, (Schema) type, variant, depth + 1);
            return inner;
        }
        if (type == Type.UINT16) return (int) (65535 - count);
        if (type == Type.UNSIGNED_INT32) return 4_294_967_295L - count;
        if (java == boolean.class || java == Boolean.class) return count % 2 == 0;
        if (java == byte.class || java == Byte.class) return (byte) (count % 2 == 0 ? -count : count);
        if (java == short.class || java == Short.class) return (short) (count % 2 == 0 ? -300 - count : 300 + count);
        if (java == int.class || java == Integer.class) return (int) big;
        if (java == long.class || java == Long.class) return big * 1_000_003L;
        if (java == double.class) return count + 0.25;
        if (java == String.class) return count % 3 == 0 ? "ü" + "x".repeat(130) + count : "s" + count;
        if (java == Uuid.class) return new Uuid(big, count);
        byte[] bytes = ("b" + count).getBytes(StandardCharsets.UTF_8);
        if (java == byte[].class) return bytes;
        if (java == ByteBuffer.class) return ByteBuffer.wrap(bytes);
        return MemoryRecords.readableRecords(ByteBuffer.wrap(("records " + count).repeat(20).getBytes(StandardCharsets.UTF_8)));
    }
}
