package unitape;

import java.nio.file.Path;
import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.wire.DocumentContext;

/** Chronicle Queue: a queue each way, messages written in place as raw bytes, tailers that spin. */
final class ChronicleLink implements Link {
    /** As large as what is sent in one measurement, so that no new block is mapped on the way. */
    private static final long BLOCK = 256L << 20;

    private final Side.Task task;
    private ChronicleQueue out;
    private ChronicleQueue back;
    private ExcerptAppender appender;
    private ExcerptTailer tailer;
    private final long[] words = new long[12];
    private final int rest;

    ChronicleLink(Side.Task task) {
        this.task = task;
        Bytes<?> template = Bytes.wrapForRead(Seen.template());
        for (int i = 0; i < words.length; i++) {
            words[i] = template.readLong();
        }
        rest = template.readInt();
        if (task.first() || task.roundTrip()) {
            out = queue(task.dir().resolve(task.first() ? "there" : "back"));
            appender = out.createAppender();
        }
        if (!task.first()) {
            tail("there");
        }
    }

    private static ChronicleQueue queue(Path path) {
        return ChronicleQueue.singleBuilder(path).blockSize(BLOCK).build();
    }

    private void tail(String name) {
        back = queue(task.dir().resolve(name));
        tailer = back.createTailer().toStart();
    }

    @Override
    public void connect() {
        if (task.first() && task.roundTrip()) {
            tail("back");
        }
    }

    @Override
    public void send(long number) {
        try (DocumentContext document = appender.writingDocument()) {
            Bytes<?> bytes = document.wire().bytes();
            bytes.writeLong(number);
            for (int i = 1; i < words.length; i++) {
                bytes.writeLong(words[i]);
            }
            bytes.writeInt(rest);
        }
    }

    @Override
    public boolean poll(Seen seen) {
        try (DocumentContext document = tailer.readingDocument()) {
            if (!document.isPresent()) {
                return false;
            }
            Bytes<?> bytes = document.wire().bytes();
            long length = bytes.readRemaining();
            long number = bytes.readLong();
            long sum = number;
            for (int i = 1; i < 12; i++) {
                sum += bytes.readLong();
            }
            sum += Integer.toUnsignedLong(bytes.readInt());
            seen.take(length, number, sum);
            return true;
        }
    }

    @Override
    public void close() {
        if (back != null) {
            back.close();
        }
        if (out != null) {
            out.close();
        }
    }
}
