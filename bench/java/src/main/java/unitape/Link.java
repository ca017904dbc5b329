package unitape;

/** A way to the other process and back; the twin of the trait of this name in {@code bench/side}. */
interface Link extends AutoCloseable {
    /** Called when the other process has opened its side as well. */
    void connect() throws Exception;

    /** Sends the message with this number; waits where there is no room. */
    void send(long number) throws Exception;

    /** Takes what is there, if anything: one message or more, each shown to {@code seen}. */
    boolean poll(Seen seen) throws Exception;

    /** Between two looks that found nothing. */
    default void idle() throws Exception {
        Thread.onSpinWait();
    }
}
