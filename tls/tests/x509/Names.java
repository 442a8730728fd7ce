import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import javax.security.auth.x500.X500Principal;

/**
 * Makes names.txt: distinguished names, DER in hex, and what Java writes of each, UTF-8 in hex. Run as "java Names.java > names.txt" by Java 21
 * or newer: older ones took every kind of string for UTF-8.
 */
public class Names {
    static final Random random = new Random(4);

    static byte[] tlv(int tag, byte[]... parts) {
        ByteArrayOutputStream value = new ByteArrayOutputStream();
        for (byte[] part : parts) value.writeBytes(part);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(tag);
        int length = value.size();
        if (length >= 256) { out.write(0x82); out.write(length >> 8); out.write(length); }
        else if (length >= 128) { out.write(0x81); out.write(length); }
        else out.write(length);
        out.writeBytes(value.toByteArray());
        return out.toByteArray();
    }

    /** Nine types with keywords, and others without: surname, serialNumber, title, emailAddress, a long arc. */
    static final String[] TYPES = {
        "550403", "550406", "550407", "550408", "550409", "55040a", "55040b", "0992268993f22c640119", "0992268993f22c640101",
        "550404", "550405", "55040c", "2a864886f70d010901", "2b06010401ffffff7f03", "88371f", "5504", "81340301",
    };
    static final int[] STRINGS = {0x0c, 0x13, 0x16, 0x14, 0x1e, 0x1b, 0x1c, 0x12, 0x04, 0x1a};
    static final String[] TEXTS = {
        "a", "", " ", "  ", "Duke", " lead", "trail ", " both ", "a  b", "#hash", "a#b", "a=b", "a,b", "a+b", "a\"b\"", "a\\b", "<a>;", "a\0b", "\r",
        "\rx\r", "a\nb", "\tx", "M\u00fcller", "\u6771\u4eac", "\ud83d\ude00", "e\u0301", "CN=x,O=y", "kafka.example.com", "*.example.com",
        "a@example.com", "O'Reilly & Sons (Ltd.)", "~!$%^&*_|{}[]`?:/", "\u0085", "\u2028", "x\u00a0", "\u00a0x",
    };
    static final byte[][] BYTES = {
        {(byte) 0xe9}, {'a', (byte) 0xff, 'b'}, {(byte) 0xc3}, {(byte) 0xc3, '('}, {(byte) 0xe2, (byte) 0x82}, {(byte) 0xe2, '(', (byte) 0xa1},
        {(byte) 0xf0, (byte) 0x9f, (byte) 0x98}, {(byte) 0xed, (byte) 0xa0, (byte) 0x80}, {(byte) 0xc0, (byte) 0x80}, {(byte) 0x80, (byte) 0x80},
        {(byte) 0xf4, (byte) 0x90, (byte) 0x80, (byte) 0x80}, {(byte) 0xf8, (byte) 0x88, (byte) 0x80, (byte) 0x80, (byte) 0x80}, {0, 'A', 0, 'b'}, {0, ' ', 0, 'A', 0, ' '}, {0, '#', 0, ',', 4, 0x36, 0},
        {(byte) 0xe0, (byte) 0x80, (byte) 0x80}, {(byte) 0xf0, (byte) 0x80, (byte) 0x80, (byte) 0x80}, {'x', (byte) 0xe2, (byte) 0x82, 'y'},
    };

    static byte[] attribute(String type, int tag, byte[] value) {
        return tlv(0x30, tlv(0x06, HexFormat.of().parseHex(type)), tlv(tag, value));
    }

    static byte[] any() {
        String type = TYPES[random.nextInt(random.nextInt(4) == 0 ? TYPES.length : 9)];
        int tag = STRINGS[random.nextInt(random.nextInt(4) == 0 ? STRINGS.length : 2)];
        byte[] value = random.nextInt(6) == 0
            ? BYTES[random.nextInt(BYTES.length)]
            : TEXTS[random.nextInt(TEXTS.length)].getBytes(StandardCharsets.UTF_8);
        return attribute(type, tag, value);
    }

    public static void main(String[] arguments) throws Exception {
        List<byte[]> names = new ArrayList<>();
        names.add(tlv(0x30));
        for (String type : TYPES) names.add(tlv(0x30, tlv(0x31, attribute(type, 0x0c, "a, b".getBytes()))));
        for (int tag : STRINGS) names.add(tlv(0x30, tlv(0x31, attribute("550403", tag, "a, b".getBytes()))));
        for (String text : TEXTS) names.add(tlv(0x30, tlv(0x31, attribute("550403", 0x0c, text.getBytes(StandardCharsets.UTF_8)))));
        for (byte[] bytes : BYTES) names.add(tlv(0x30, tlv(0x31, attribute("550403", 0x0c, bytes))));
        for (int count = 0; count < 150; count++) {
            byte[][] sets = new byte[1 + random.nextInt(4)][];
            for (int set = 0; set < sets.length; set++) {
                byte[][] attributes = new byte[random.nextInt(4) == 0 ? 1 + random.nextInt(3) : 1][];
                for (int place = 0; place < attributes.length; place++) attributes[place] = any();
                sets[set] = tlv(0x31, attributes);
            }
            names.add(tlv(0x30, sets));
        }
        for (byte[] name : names) {
            String written;
            try {
                written = new X500Principal(name).getName();
            } catch (IllegalArgumentException refused) {
                continue; // Java reads no such name.
            }
            System.out.println(HexFormat.of().formatHex(name) + " " + HexFormat.of().formatHex(written.getBytes(StandardCharsets.UTF_8)));
        }
    }
}
