package unitape;

import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A peer in a process of its own: it does one pass over the input for each line on stdin, so that its repeats can be in
 * turn with those of others. {@code bench/peers/src/apart.rs} is the other end.
 *
 * <pre>
 * ready NAME                                                  first of all, when the input is in memory
 * values FILE  -&gt;  done WALL CPU MESSAGES FAULTS SUM   a pass that writes the values it finds to FILE
 * pass         -&gt;  done WALL CPU MESSAGES FAULTS SUM   a pass
 * </pre>
 */
public final class Worker {
    private Worker() {}

    /** What a pass over the input came to. */
    static final class Pass {
        long messages;
        long faults;
        long sum;
    }

    /** A pass; values that were found go into {@code sink} unless it is null. */
    interface Peer {
        String name();

        Pass pass(OutputStream sink) throws Exception;
    }

    private interface Work {
        Pass run() throws Exception;
    }

    /** {@code PEER CASE FLAVOUR INPUT}. */
    public static void main(String[] arguments) throws Exception {
        Path input = Path.of(arguments[3]);
        Peer peer =
                switch (arguments[0]) {
                    case "quickfixj" -> new QuickFixJ(arguments[1], arguments[2], input);
                    case "openfast" -> new OpenFast(Path.of(arguments[1]), Integer.parseInt(arguments[2]), input);
                    case "prowide" -> new Prowide(arguments[1], input);
                    default -> throw new IllegalArgumentException("no peer is called " + arguments[0]);
                };
        System.out.println("ready " + peer.name());
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            if (line.equals("pass")) {
                timed(() -> peer.pass(null));
            } else if (line.startsWith("values ")) {
                Path file = Path.of(line.substring(7));
                timed(() -> values(peer, file));
            } else {
                throw new IllegalArgumentException("no command: " + line);
            }
        }
    }

    private static Pass values(Peer peer, Path file) throws Exception {
        try (OutputStream sink = new BufferedOutputStream(Files.newOutputStream(file), 1 << 16)) {
            return peer.pass(sink);
        }
    }

    private static void timed(Work work) throws Exception {
        long cpu = cpuNs();
        long since = System.nanoTime();
        Pass pass = work.run();
        long wall = System.nanoTime() - since;
        cpu = cpuNs() - cpu;
        System.out.println(
                "done " + wall + " " + cpu + " " + pass.messages + " " + pass.faults + " " + Long.toUnsignedString(pass.sum));
    }

    private static long cpuNs() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    /** The version of the library that a class is from, by what Maven puts into its jar. */
    static String version(String group, String artifact, Class<?> from) throws IOException {
        String path = "/META-INF/maven/" + group + "/" + artifact + "/pom.properties";
        try (var stream = from.getResourceAsStream(path)) {
            if (stream != null) {
                var properties = new java.util.Properties();
                properties.load(stream);
                return properties.getProperty("version");
            }
        }
        String said = from.getPackage().getImplementationVersion();
        return said == null ? "of no known version" : said;
    }
}
