package unitape;

import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import net.openhft.affinity.Affinity;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramIterationValue;

/**
 * One of the two processes of a messaging measurement: {@code aeron|chronicle} and the arguments of a task. The loops
 * are those of {@code bench/side}, line by line; only warm-up is longer, by what the driver asks for.
 */
public final class Side {
    private Side() {}

    /** What a process is told to do. */
    record Task(boolean first, boolean roundTrip, Path shared, Path dir, long count, long warm, String flavour) {
        static Task parse(String[] arguments) {
            if (arguments.length != 8) {
                throw new IllegalArgumentException(
                        "PEER first|second rtt|one-way SHARED DIR COUNT WARM FLAVOUR");
            }
            return new Task(
                    arguments[1].equals("first"),
                    arguments[2].equals("rtt"),
                    Path.of(arguments[3]),
                    Path.of(arguments[4]),
                    Long.parseLong(arguments[5]),
                    Long.parseLong(arguments[6]),
                    arguments[7]);
        }
    }

    public static void main(String[] arguments) {
        endWithParent();
        try {
            Task task = Task.parse(arguments);
            Words words = new Words(task.shared());
            try (Link link = open(arguments[0], task)) {
                System.out.println(task.first() ? first(task, words, link) : second(task, words, link));
                System.out.flush();
            }
        } catch (Throwable e) {
            e.printStackTrace();
            System.exit(1);
        }
        // Threads of a peer's own would keep the process alive.
        System.exit(0);
    }

    /** Ends this process when the one that started it, which holds the other end of stdin, is gone. */
    private static void endWithParent() {
        Thread watcher = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    // Nothing is ever written there.
                }
            } catch (java.io.IOException e) {
                // As good as the end of it.
            }
            Runtime.getRuntime().halt(1);
        });
        watcher.setDaemon(true);
        watcher.start();
    }

    private static Link open(String peer, Task task) throws Exception {
        return switch (peer) {
            case "aeron" -> new AeronLink(task);
            case "chronicle" -> new ChronicleLink(task);
            default -> throw new IllegalArgumentException(peer + " is neither aeron nor chronicle");
        };
    }

    private static String first(Task task, Words words, Link link) throws Exception {
        System.out.println("up");
        System.out.flush();
        await(words, 0, 1, null);
        link.connect();
        await(words, 0, 2, link);
        Affinity.setAffinity(0);
        Seen seen = new Seen();
        if (task.roundTrip()) {
            // The same method warms up and measures, so that it is the same code.
            roundTrips(link, seen, 0, new long[(int) task.warm()]);
            long[] times = new long[(int) task.count()];
            java.util.Arrays.fill(times, 1);
            System.gc();
            long cpu = cpu();
            long since = System.nanoTime();
            roundTrips(link, seen, task.warm(), times);
            long wall = System.nanoTime() - since;
            cpu = cpu() - cpu;
            seen.check();
            return line(seen, wall, cpu, times);
        }
        burst(words, link, 0, task.warm());
        Thread.sleep(300);
        long cpu = cpu();
        long since = System.nanoTime();
        burst(words, link, task.warm(), task.warm() + task.count());
        return line(seen, System.nanoTime() - since, cpu() - cpu, new long[0]);
    }

    private static void roundTrips(Link link, Seen seen, long number, long[] times) throws Exception {
        long last = System.nanoTime();
        for (int i = 0; i < times.length; i++) {
            link.send(number + i);
            while (!link.poll(seen)) {
                link.idle();
            }
            long now = System.nanoTime();
            times[i] = now - last;
            last = now;
        }
    }

    private static void burst(Words words, Link link, long from, long until) throws Exception {
        for (long number = from; number < until; number++) {
            link.send(number);
        }
        await(words, 1, until, link);
    }

    private static String second(Task task, Words words, Link link) throws Exception {
        words.set(0, 1);
        link.connect();
        Affinity.setAffinity(1);
        words.set(0, 2);
        Seen seen = new Seen();
        long all = task.warm() + task.count();
        if (task.roundTrip()) {
            answer(link, seen, all);
        } else {
            drain(link, seen, task.warm());
            words.set(1, seen.count);
            drain(link, seen, all);
            words.set(1, seen.count);
        }
        seen.check();
        return line(seen, 0, 0, new long[0]);
    }

    private static void answer(Link link, Seen seen, long all) throws Exception {
        for (long number = 0; number < all; number++) {
            while (!link.poll(seen)) {
                link.idle();
            }
            link.send(number);
        }
    }

    private static void drain(Link link, Seen seen, long until) throws Exception {
        while (seen.count < until) {
            if (!link.poll(seen)) {
                link.idle();
            }
        }
    }

    private static void await(Words words, int word, long value, Link link) throws Exception {
        while (words.get(word) < value) {
            if (link == null) {
                Thread.sleep(1);
            } else {
                link.idle();
            }
        }
    }

    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }

    /** The line of JSON that a process ends with. */
    private static String line(Seen seen, long wall, long cpu, long[] times) {
        Histogram histogram = new Histogram(60_000_000_000L, 3);
        for (long time : times) {
            histogram.recordValue(Math.min(Math.max(time, 1), 60_000_000_000L));
        }
        StringBuilder text = new StringBuilder();
        text.append("{\"seen\":").append(seen.count);
        text.append(",\"sum\":").append(Long.toUnsignedString(seen.sum));
        text.append(",\"wall_ns\":").append(wall);
        text.append(",\"cpu_ns\":").append(cpu);
        text.append(",\"latencies\":[");
        String between = "";
        for (HistogramIterationValue value : histogram.recordedValues()) {
            text.append(between).append('[').append(value.getValueIteratedTo());
            text.append(',').append(value.getCountAtValueIteratedTo()).append(']');
            between = ",";
        }
        return text.append("]}").toString();
    }
}
