package unitape;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** The page of words by which the two processes tell each other how far they are; see {@code bench/side}. */
final class Words {
    private static final int APART = 128;
    private static final VarHandle WORD =
            MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private final ByteBuffer page;

    Words(Path dir) throws IOException {
        Path path = dir.resolve("words");
        try (FileChannel file =
                FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            MappedByteBuffer mapped = file.map(FileChannel.MapMode.READ_WRITE, 0, 4096);
            page = mapped;
        }
    }

    /** Acquire: pairs with {@link #set} in the other process. */
    long get(int index) {
        return (long) WORD.getAcquire(page, index * APART);
    }

    /** Release: pairs with {@link #get} in the other process. */
    void set(int index, long value) {
        WORD.setRelease(page, index * APART, value);
    }
}
