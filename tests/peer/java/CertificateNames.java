import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** For each line of hexadecimal text: "name DER", or "map RULES NAME"; the answer is hexadecimal, or "-" for a refusal. */
public class CertificateNames {
    public static void main(String[] arguments) throws Exception {
        HexFormat hex = HexFormat.of();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            String answer;
            try {
                if (words[0].equals("name")) {
                    answer = new X500Principal(hex.parseHex(words[1])).getName();
                } else {
                    String rules = new String(hex.parseHex(words[1]), StandardCharsets.UTF_8);
                    String name = new String(hex.parseHex(words[2]), StandardCharsets.UTF_8);
                    answer = SslPrincipalMapper.fromRules(rules).getName(name);
                }
            } catch (Exception refused) {
                System.out.println("-");
                continue;
            }
            System.out.println("=" + hex.formatHex(answer.getBytes(StandardCharsets.UTF_8)));
        }
    }
}
