package unitape;

import io.aeron.Aeron;
import io.aeron.CommonContext;
import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.FragmentHandler;
import java.nio.ByteOrder;
import org.agrona.BufferUtil;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.SleepingIdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Aeron IPC; the media driver lives in the first process, with the same two flavours as the C one: {@code invoker}, its
 * and the client's work done by the first process itself, and {@code thread}, one thread that sleeps when idle.
 */
final class AeronLink implements Link {
    private static final long DUTY = 4096;
    private static final int FRAGMENTS = 64;

    /** How long one may hear nothing of another: longer than anybody stops a process here. */
    private static final long PATIENCE_NS = 180_000_000_000L;

    private static final int THERE = 1001;
    private static final int BACK = 1002;

    private final Side.Task task;
    private final boolean invoked;
    private MediaDriver driver;
    private final Aeron aeron;
    private ExclusivePublication publication;
    private Subscription subscription;
    /** Messages are made a little before they are sent, as in {@code bench/side}. */
    private static final int AHEAD = 32;

    private static final int APART = 128;
    private final UnsafeBuffer messages =
            new UnsafeBuffer(BufferUtil.allocateDirectAligned(AHEAD * APART, 64));
    private Seen seen;
    private final FragmentHandler handler = (buffer, offset, length, header) -> take(buffer, offset, length);
    private int idle;

    AeronLink(Side.Task task) {
        this.task = task;
        invoked = task.flavour().equals("invoker");
        String dir = task.shared().resolve("aeron").toString();
        if (task.first()) {
            driver = MediaDriver.launch(new MediaDriver.Context()
                    .aeronDirectoryName(dir)
                    .dirDeleteOnStart(true)
                    .dirDeleteOnShutdown(true)
                    .clientLivenessTimeoutNs(PATIENCE_NS)
                    .publicationUnblockTimeoutNs(2 * PATIENCE_NS)
                    .termBufferSparseFile(false)
                    .threadingMode(invoked ? ThreadingMode.INVOKER : ThreadingMode.SHARED)
                    .sharedIdleStrategy(new SleepingIdleStrategy()));
        }
        Aeron.Context context = new Aeron.Context()
                .aeronDirectoryName(dir)
                .driverTimeoutMs(PATIENCE_NS / 1_000_000)
                .useConductorAgentInvoker(true)
                .preTouchMappedMemory(true);
        if (driver != null && invoked) {
            // The client's own invoker then does the driver's work wherever it waits for an answer.
            context.driverAgentInvoker(driver.sharedAgentInvoker());
        }
        aeron = Aeron.connect(context);
        for (int i = 0; i < AHEAD; i++) {
            messages.putBytes(i * APART, Seen.template());
            make(i);
        }
        if (task.first()) {
            ask();
        }
    }

    private void make(long number) {
        messages.putLong((int) (number % AHEAD) * APART, number, ByteOrder.LITTLE_ENDIAN);
    }

    private void ask() {
        int out = task.first() ? THERE : BACK;
        int back = task.first() ? BACK : THERE;
        if (task.roundTrip() || task.first()) {
            publication = aeron.addExclusivePublication(CommonContext.IPC_CHANNEL, out);
        }
        if (task.roundTrip() || !task.first()) {
            subscription = aeron.addSubscription(CommonContext.IPC_CHANNEL, back);
        }
    }

    private void work() {
        if (driver != null && invoked) {
            driver.sharedAgentInvoker().invoke();
        }
        aeron.conductorAgentInvoker().invoke();
    }

    @Override
    public void connect() {
        if (!task.first()) {
            ask();
        }
        while ((publication != null && !publication.isConnected())
                || (subscription != null && !subscription.isConnected())) {
            work();
            Thread.yield();
        }
    }

    @Override
    public void send(long number) {
        if (number > 0) {
            make(number - 1 + AHEAD);
        }
        int at = (int) (number % AHEAD) * APART;
        long result;
        while ((result = publication.offer(messages, at, Seen.MESSAGE_BYTES)) < 0) {
            if (result != Publication.BACK_PRESSURED && result != Publication.ADMIN_ACTION) {
                throw new IllegalStateException("offer: " + Publication.errorString(result));
            }
            work();
        }
        if (number % DUTY == 0) {
            work();
        }
    }

    @Override
    public boolean poll(Seen seen) {
        this.seen = seen;
        return subscription.poll(handler, FRAGMENTS) > 0;
    }

    private void take(DirectBuffer buffer, int offset, int length) {
        long sum = 0;
        for (int at = 0; at < 96; at += 8) {
            sum += buffer.getLong(offset + at, ByteOrder.LITTLE_ENDIAN);
        }
        sum += Integer.toUnsignedLong(buffer.getInt(offset + 96, ByteOrder.LITTLE_ENDIAN));
        seen.take(length, buffer.getLong(offset, ByteOrder.LITTLE_ENDIAN), sum);
    }

    @Override
    public void idle() {
        int often = subscription == null ? 1 << 8 : 1 << 16;
        if ((++idle & (often - 1)) == 0) {
            work();
        }
        Thread.onSpinWait();
    }

    @Override
    public void close() {
        aeron.close();
        if (driver != null) {
            driver.close();
        }
    }
}
