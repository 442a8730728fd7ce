import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SNIHostName;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

/** Java's JSSE as a client. Rows on standard input; see README.md. */
public final class Peer {
    /** What one record holds. */
    private static final int LINE_BYTES = 16384;

    /** Without the end of a step; not a measure of anything. */
    private static final int PATIENCE_MS = 30_000;

    private static final char[] NO_PASSWORD = {};

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<String, String> row = new HashMap<>();
            for (String pair : line.split("\t")) {
                String[] halves = pair.split("=", 2);
                row.put(halves[0], halves[1]);
            }
            connectAll(row);
        }
    }

    private static void connectAll(Map<String, String> row) {
        int number = 0;
        try {
            SSLContext context = context(row);
            for (String sizes : row.get("echo").split(";")) {
                System.out.println(row.get("id") + "\t" + number + connect(row, context, sizes));
                number++;
            }
        } catch (IOException | GeneralSecurityException error) {
            System.out.println(row.get("id") + "\t" + number + "\tfailed=" + error.toString().replaceAll("\\s+", " "));
        }
    }

    /** One connection; what is known of it. */
    private static String connect(Map<String, String> row, SSLContext context, String sizes) throws IOException {
        String name = row.get("name");
        long before = System.currentTimeMillis();
        Socket tcp = new Socket(InetAddress.getLoopbackAddress(), Integer.parseInt(row.get("port")));
        tcp.setSoTimeout(PATIENCE_MS);
        try (SSLSocket tls = (SSLSocket) context.getSocketFactory().createSocket(tcp, name, tcp.getPort(), true)) {
            SSLParameters parameters = tls.getSSLParameters();
            parameters.setProtocols(new String[] {"TLSv" + row.get("version")});
            parameters.setEndpointIdentificationAlgorithm("HTTPS");
            if (!Character.isDigit(name.charAt(0))) {
                parameters.setServerNames(List.of(new SNIHostName(name)));
            }
            if (!row.getOrDefault("suite", "").isEmpty()) {
                parameters.setCipherSuites(new String[] {row.get("suite")});
            }
            tls.setSSLParameters(parameters);
            tls.startHandshake();
            boolean resumed = tls.getSession().getCreationTime() < before;
            int echoed = 0;
            for (String size : sizes.split(",")) {
                byte[] all = data(Integer.parseInt(size));
                echo(tls.getInputStream(), tls.getOutputStream(), all);
                echoed += all.length;
            }
            String said = "\tversion=" + tls.getSession().getProtocol().replace("TLSv", "")
                    + "\tsuite=" + tls.getSession().getCipherSuite()
                    + "\tresumed=" + (resumed ? "yes" : "no")
                    + "\techoed=" + echoed;
            tls.shutdownOutput();
            // The end after a close_notify; without one it throws.
            if (tls.getInputStream().read() != -1) {
                throw new IOException("data after the last echo");
            }
            return said + "\tclose=clean";
        }
    }

    /** Sends all, each line in a record of its own, and reads it back; up to 64 KiB under way. */
    private static void echo(InputStream in, OutputStream out, byte[] all) throws IOException {
        for (int from = 0; from < all.length; from += 4 * LINE_BYTES) {
            int to = Math.min(all.length, from + 4 * LINE_BYTES);
            for (int at = from; at < to; at += LINE_BYTES) {
                out.write(all, at, Math.min(LINE_BYTES, to - at));
            }
            byte[] got = in.readNBytes(to - from);
            if (!Arrays.equals(got, Arrays.copyOfRange(all, from, to))) {
                throw new IOException(got.length + " bytes came back of " + (to - from) + ", or others");
            }
        }
    }

    /** So many bytes in lines of at most LINE_BYTES with their newline, no two neighbours alike. */
    private static byte[] data(int count) {
        byte[] bytes = new byte[count];
        for (int i = 0; i < count; i++) {
            boolean last = i % LINE_BYTES == LINE_BYTES - 1 || i == count - 1;
            bytes[i] = (byte) (last ? '\n' : 'a' + (i * 7 + i / 251) % 26);
        }
        return bytes;
    }

    private static SSLContext context(Map<String, String> row) throws IOException, GeneralSecurityException {
        KeyStore trusted = empty();
        for (Certificate one : certificates(row.get("ca"))) {
            trusted.setCertificateEntry("ca" + trusted.size(), one);
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
        trust.init(trusted);
        KeyStore own = empty();
        if (!row.getOrDefault("cert", "").isEmpty()) {
            own.setKeyEntry("own", key(row.get("key")), NO_PASSWORD, certificates(row.get("cert")));
        }
        KeyManagerFactory keys = KeyManagerFactory.getInstance("PKIX");
        keys.init(own, NO_PASSWORD);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        return context;
    }

    private static KeyStore empty() throws IOException, GeneralSecurityException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, NO_PASSWORD);
        return store;
    }

    private static Certificate[] certificates(String path) throws IOException, GeneralSecurityException {
        byte[] pem = Files.readAllBytes(Path.of(path));
        return CertificateFactory.getInstance("X.509")
                .generateCertificates(new ByteArrayInputStream(pem))
                .toArray(new Certificate[0]);
    }

    private static PrivateKey key(String path) throws IOException, GeneralSecurityException {
        String pem = Files.readString(Path.of(path)).replaceAll("-----[A-Z ]+-----|\\s", "");
        PKCS8EncodedKeySpec spec = new PKCS8EncodedKeySpec(Base64.getDecoder().decode(pem));
        try {
            return KeyFactory.getInstance("EC").generatePrivate(spec);
        } catch (InvalidKeySpecException not) {
            return KeyFactory.getInstance("RSA").generatePrivate(spec);
        }
    }
}
