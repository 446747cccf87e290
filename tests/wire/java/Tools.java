// Runs the main methods of Apache's command line tools, one after the other, in one JVM: a line of JSON in, a line out.
// {"tool": class, "args": [...], "input": text} -> {"code": exit code, "out": text, "err": text}
// tests/support/jvm.py is the other end.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.Exit;

public class Tools {
    static class Exited extends RuntimeException {}

    static Integer exitCode;
    static final List<Runnable> hooks = new ArrayList<>();

    // Some tools catch all that comes out of exit(), and exit again: the first time counts.
    static void exit(int code) {
        if (exitCode == null) exitCode = code;
        throw new Exited();
    }

    static int run(String tool, String[] args) {
        exitCode = null;
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) args);
        } catch (InvocationTargetException e) {
            if (exitCode == null) {
                e.getCause().printStackTrace();
                exitCode = 1;
            }
        } catch (ReflectiveOperationException e) {
            e.printStackTrace();
            exitCode = 127;
        }
        hooks.forEach(Runnable::run);
        hooks.clear();
        return exitCode == null ? 0 : exitCode;
    }

    public static void main(String[] ignored) throws Exception {
        Exit.setExitProcedure((code, message) -> exit(code));
        Exit.setHaltProcedure((code, message) -> exit(code));
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        ObjectMapper json = new ObjectMapper();
        InputStream stdin = System.in;
        PrintStream stdout = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(stdin, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode call = json.readTree(line);
            List<String> args = new ArrayList<>();
            call.get("args").forEach(arg -> args.add(arg.asText()));
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            System.setIn(new ByteArrayInputStream(call.get("input").asText().getBytes(StandardCharsets.UTF_8)));
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
            int code = run(call.get("tool").asText(), args.toArray(new String[0]));
            System.out.flush();
            System.err.flush();
            stdout.println(json.writeValueAsString(Map.of(
                "code", code,
                "out", out.toString(StandardCharsets.UTF_8),
                "err", err.toString(StandardCharsets.UTF_8))));
            stdout.flush();
        }
    }
}
