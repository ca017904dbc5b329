package unitape;

import java.io.IOException;
import java.io.OutputStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** The record of typed values that all FIX peers make of a message; the same bytes as {@code typed.rs} of the bench. */
final class Typed {
    private static final int PARTS = 4;
    private static final int BYTES = 120 + PARTS * 52;

    String msgType = "";
    long sequence;
    long sentNs;
    long transactedNs;
    long price;
    long quantity;
    int priceExponent;
    int quantityExponent;
    char side;
    String id = "";
    String symbol = "";
    String account = "";
    int fields;
    int stated;
    int entries;
    final Part[] parts = new Part[PARTS];

    /** One entry of a group: a party, or a market data entry. */
    static final class Part {
        String id = "";
        long number;
        long price;
        long change;
        long timeNs;
        int priceExponent;
        int changeExponent;
        char kind;
        char action;

        void price(BigDecimal value) {
            price = value.unscaledValue().longValueExact();
            priceExponent = -value.scale();
        }

        void change(BigDecimal value) {
            change = value.unscaledValue().longValueExact();
            changeExponent = -value.scale();
        }

        private int small() {
            return priceExponent & 0xff | (changeExponent & 0xff) << 8 | kind << 16 | action << 24;
        }

        private long sum() {
            return words(id) + number + price + (change << 1) + timeNs + ((small() & 0xffff_ffffL) << 8);
        }

        private void put(ByteBuffer to) {
            to.putLong(number).putLong(price).putLong(change).putLong(timeNs);
            text(to, id, 16);
            to.putInt(small());
        }
    }

    void price(BigDecimal value) {
        price = value.unscaledValue().longValueExact();
        priceExponent = -value.scale();
    }

    void quantity(BigDecimal value) {
        quantity = value.unscaledValue().longValueExact();
        quantityExponent = -value.scale();
    }

    /** All but the number of fields, which only the compared pass counts. */
    long sum() {
        long sum =
                word(msgType, 0) + sequence + sentNs + transactedNs + price + quantity + words(id) + words(symbol)
                        + words(account) + ((long) stated << 40) + ((long) side << 16) + ((priceExponent & 0xffL) << 8)
                        + (quantityExponent & 0xffL);
        for (int n = 0; n < entries; n++) {
            sum = Long.rotateLeft(sum, 1) + parts[n].sum();
        }
        return sum;
    }

    void write(ByteBuffer buffer, OutputStream to) throws IOException {
        buffer.clear();
        Arrays.fill(buffer.array(), (byte) 0);
        text(buffer, msgType, 8);
        buffer.putLong(sequence).putLong(sentNs).putLong(transactedNs).putLong(price).putLong(quantity);
        text(buffer, id, 16);
        text(buffer, symbol, 16);
        text(buffer, account, 16);
        buffer.putInt(fields).putInt(stated).putInt(entries);
        buffer.put((byte) side).put((byte) priceExponent).put((byte) quantityExponent);
        for (int n = 0; n < entries; n++) {
            parts[n].put(buffer);
        }
        to.write(buffer.array());
    }

    static ByteBuffer buffer() {
        return ByteBuffer.allocate(BYTES).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Text that does not fit is a fault. */
    private static void text(ByteBuffer to, String text, int size) {
        if (text.length() > size) {
            throw new IllegalArgumentException(text + " is longer than " + size);
        }
        for (int n = 0; n < size; n++) {
            to.put(n < text.length() ? (byte) text.charAt(n) : 0);
        }
    }

    private static long words(String text) {
        return word(text, 0) ^ word(text, 8);
    }

    private static long word(String text, int from) {
        long word = 0;
        for (int n = Math.min(text.length(), from + 8) - 1; n >= from; n--) {
            word = word << 8 | text.charAt(n);
        }
        return word;
    }
}
