package unitape;

/** What came in so far: how many messages, the sum of their words, and how many were not those expected. */
final class Seen {
    static final int MESSAGE_BYTES = 100;

    long count;
    long sum;
    private long wrong;

    /** What a message has behind its number. */
    static byte[] template() {
        byte[] template = new byte[MESSAGE_BYTES];
        for (int at = 8; at < MESSAGE_BYTES; at++) {
            template[at] = (byte) at;
        }
        return template;
    }

    /** A message that came in: its length, its number, and the sum of all its words, the last of half the size. */
    void take(long length, long number, long words) {
        if (length != MESSAGE_BYTES || number != count) {
            wrong++;
        }
        count++;
        sum += words;
    }

    void check() {
        if (wrong > 0) {
            throw new IllegalStateException(wrong + " of " + count + " messages came out of order or not whole");
        }
    }
}
