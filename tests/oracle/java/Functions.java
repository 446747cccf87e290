// The small language of functions that a case names: the same names mean the same in tests/oracle/functions.py.
// A function never changes its arguments; null goes in as null.

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.Window;

final class Functions {
    private Functions() {}

    static String text(Object value) {
        if (value instanceof Windowed<?> windowed) {
            Window window = windowed.window();
            return "[" + text(windowed.key()) + "@" + window.start() + "/" + window.end() + "]";
        }
        return String.valueOf(value);
    }

    private static String after(String name, String prefix) {
        return name.substring(prefix.length());
    }

    static boolean test(String name, Object key, Object value) {
        if (Calls.is(name)) return Calls.ask(name, key, value).asBoolean();
        if (name.equals("all")) return true;
        if (name.equals("none")) return false;
        if (name.equals("value-null")) return value == null;
        if (name.equals("key-null")) return key == null;
        if (name.startsWith("length>")) return value != null && text(value).length() > Integer.parseInt(after(name, "length>"));
        if (name.startsWith("value>")) return value != null && ((Number) value).longValue() > Long.parseLong(after(name, "value>"));
        if (name.startsWith("starts:")) return value != null && text(value).startsWith(after(name, "starts:"));
        if (name.startsWith("key-starts:")) return key != null && text(key).startsWith(after(name, "key-starts:"));
        if (name.startsWith("fail:")) {
            if (text(value).equals(after(name, "fail:"))) throw new IllegalStateException("asked to fail");
            return true;
        }
        throw new IllegalArgumentException("no such predicate: " + name);
    }

    static Object value(String name, Object key, Object value) {
        if (Calls.is(name)) return Calls.text(name, key, value);
        if (name.equals("same")) return value;
        if (name.equals("text")) return text(value);
        if (name.equals("with-key")) return text(key) + "=" + text(value);
        if (name.equals("null")) return null;
        if (value == null) return null;
        if (name.equals("upper")) return text(value).toUpperCase();
        if (name.equals("lower")) return text(value).toLowerCase();
        if (name.equals("exclaim")) return text(value) + "!";
        if (name.equals("length")) return (long) text(value).length();
        if (name.startsWith("null-if:")) return text(value).startsWith(after(name, "null-if:")) ? null : value;
        if (name.startsWith("plus:")) return (Long) value + Long.parseLong(after(name, "plus:"));
        throw new IllegalArgumentException("no such value mapper: " + name);
    }

    static Object key(String name, Object key, Object value) {
        if (Calls.is(name)) return Calls.text(name, key, value);
        if (name.equals("key")) return key;
        if (name.equals("null")) return null;
        if (name.equals("number")) return value;
        if (name.equals("key-text")) return text(key);
        if (name.equals("value")) return value == null ? null : text(value);
        if (name.equals("first-letter")) return value == null || text(value).isEmpty() ? null : text(value).substring(0, 1);
        if (name.equals("key-upper")) return key == null ? null : text(key).toUpperCase();
        if (name.equals("key-letter")) return key == null || text(key).isEmpty() ? null : text(key).substring(0, 1);
        if (name.equals("unwindowed")) return key instanceof Windowed<?> windowed ? windowed.key() : key;
        if (name.startsWith("fail:")) {
            if (text(value).equals(after(name, "fail:"))) throw new IllegalStateException("asked to fail");
            return key("first-letter", key, value);
        }
        throw new IllegalArgumentException("no such key selector: " + name);
    }

    static List<Object> many(String name, Object key, Object value) {
        List<Object> found = new ArrayList<>();
        if (value == null) return found;
        if (Calls.is(name)) {
            for (JsonNode each : Calls.ask(name, key, value)) found.add(each.isNull() ? null : each.asText());
            return found;
        }
        if (name.equals("split-words")) {
            for (String word : text(value).split(" ")) if (!word.isEmpty()) found.add(word);
        } else if (name.equals("twice")) {
            found.add(value);
            found.add(value);
        } else if (name.equals("letters")) {
            for (char letter : text(value).toCharArray()) found.add(String.valueOf(letter));
        } else {
            throw new IllegalArgumentException("no such flat mapper: " + name);
        }
        return found;
    }

    static Object reduce(String name, Object left, Object right) {
        if (name.equals("concat")) return text(left) + text(right);
        if (name.equals("sum")) return (Long) left + (Long) right;
        if (name.equals("minus")) return (Long) left - (Long) right;
        if (name.equals("max")) return text(left).compareTo(text(right)) >= 0 ? left : right;
        if (name.equals("min")) return text(left).compareTo(text(right)) <= 0 ? left : right;
        if (name.equals("first")) return left;
        if (name.equals("last")) return right;
        if (name.equals("without")) return text(left) + "-" + text(right);
        if (name.startsWith("concat<")) {
            String both = text(left) + text(right);
            return both.length() < Integer.parseInt(after(name, "concat<")) ? both : null;
        }
        throw new IllegalArgumentException("no such reducer: " + name);
    }

    static Object initial(String name) {
        if (Calls.is(name)) return Calls.text(name);
        return switch (name) {
            case "empty" -> "";
            case "zero" -> 0L;
            case "null" -> null;
            default -> throw new IllegalArgumentException("no such initializer: " + name);
        };
    }

    static Object aggregate(String name, Object key, Object value, Object aggregate) {
        if (Calls.is(name)) return Calls.text(name, key, value, aggregate);
        if (name.equals("append")) return text(aggregate) + "+" + text(key) + text(value);
        if (name.equals("remove")) return text(aggregate) + "-" + text(key) + text(value);
        if (name.equals("sum-length")) return (aggregate == null ? 0L : (Long) aggregate) + text(value).length();
        if (name.equals("minus-length")) return (aggregate == null ? 0L : (Long) aggregate) - text(value).length();
        if (name.equals("latest")) return text(value);
        if (name.equals("earliest")) return aggregate == null ? text(value) : aggregate;
        if (name.equals("largest")) return aggregate == null || ((String) aggregate).compareTo(text(value)) < 0 ? text(value) : aggregate;
        if (name.equals("smallest")) return aggregate == null || ((String) aggregate).compareTo(text(value)) > 0 ? text(value) : aggregate;
        if (name.equals("one-more")) return (aggregate == null ? 0L : (Long) aggregate) + 1;
        if (name.equals("one-less")) return (aggregate == null ? 0L : (Long) aggregate) - 1;
        if (name.startsWith("append<")) {
            String both = text(aggregate) + text(value);
            return both.length() < Integer.parseInt(after(name, "append<")) ? both : null;
        }
        throw new IllegalArgumentException("no such aggregator: " + name);
    }

    static Object merge(String name, Object key, Object left, Object right) {
        if (Calls.is(name)) return Calls.text(name, key, left, right);
        return switch (name) {
            case "concat" -> text(left) + "&" + text(right);
            case "sum" -> (Long) left + (Long) right;
            case "latest", "earliest", "largest", "smallest" -> right == null ? left : aggregate(name, key, right, left);
            default -> throw new IllegalArgumentException("no such merger: " + name);
        };
    }

    static Object join(String name, Object key, Object left, Object right) {
        if (Calls.is(name)) return Calls.text(name, key, left, right);
        return switch (name) {
            case "pair" -> text(left) + "/" + text(right);
            case "pair-key" -> text(key) + ":" + text(left) + "/" + text(right);
            case "right" -> right;
            default -> throw new IllegalArgumentException("no such joiner: " + name);
        };
    }
}
