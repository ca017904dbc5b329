package unitape;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.openfast.ByteVectorValue;
import org.openfast.Context;
import org.openfast.DecimalValue;
import org.openfast.FieldValue;
import org.openfast.GroupValue;
import org.openfast.Message;
import org.openfast.NumericValue;
import org.openfast.ScalarValue;
import org.openfast.SequenceValue;
import org.openfast.codec.FastDecoder;
import org.openfast.template.loader.XMLMessageTemplateLoader;

/**
 * OpenFAST as a peer of {@code fast}: messages, each with its length before it, by templates of a file, decoded one by one in
 * an order that is new in each pass, as often as it is told to, the context reset before each. What it writes for comparison is what
 * {@code fast_passes.rs} of the bench makes of our slow twin's values.
 */
final class OpenFast implements Worker.Peer {
    /** As they came. */
    private final byte[] firstInput;
    private final int[] firstFrom;
    /** In the order of the pass. */
    private byte[] input;
    private int[] from;
    private final int[] order;
    private final Context context = new Context();
    private final ByteBuffer word = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
    private final int rounds;
    private long seed = 42;

    OpenFast(Path templates, int rounds, Path input) throws IOException {
        this.rounds = rounds;
        this.input = Files.readAllBytes(input);
        var loader = new XMLMessageTemplateLoader();
        loader.setLoadTemplateIdFromAuxId(true);
        try (InputStream xml = Files.newInputStream(templates)) {
            loader.load(xml);
        }
        context.setTemplateRegistry(loader.getTemplateRegistry());
        int count = 0;
        for (int at = 4; at < this.input.length; at += 4 + length(at)) {
            count++;
        }
        from = new int[count];
        order = new int[count];
        for (int n = 0, at = 4; n < count; n++, at += 4 + length(at)) {
            from[n] = at;
        }
        firstInput = this.input;
        firstFrom = from;
    }

    private int length(int at) {
        return input[at - 4] & 0xff | (input[at - 3] & 0xff) << 8 | (input[at - 2] & 0xff) << 16 | input[at - 1] << 24;
    }

    @Override
    public String name() {
        try {
            return "OpenFAST " + Worker.version("org.openfast", "openfast", Message.class);
        } catch (IOException e) {
            return "OpenFAST";
        }
    }

    @Override
    public Worker.Pass pass(OutputStream to) throws IOException {
        var pass = new Worker.Pass();
        if (to == null) {
            permute();
        }
        for (int n = 0; n < rounds * from.length; n++) {
            int at = from[n % from.length];
            int length = length(at);
            context.reset();
            Message message = new FastDecoder(context, new ByteArrayInputStream(input, at, length)).readMessage();
            if (message == null) {
                pass.faults++;
                continue;
            }
            pass.messages++;
            pass.sum += length;
            // Once is enough to compare.
            if (to != null && n < from.length) {
                to.write('M');
                number(to, context.getTemplateId(message.getTemplate()), 4);
                fields(to, message, 1);
            }
        }
        return pass;
    }

    /** The same steps as {@code Set::permuted} of {@code fast_passes.rs}. */
    private void permute() {
        for (int n = 0; n < order.length; n++) {
            order[n] = n;
        }
        for (int i = order.length - 1; i > 0; i--) {
            seed ^= seed << 13;
            seed ^= seed >>> 7;
            seed ^= seed << 17;
            int other = (int) Long.remainderUnsigned(seed, i + 1L);
            int kept = order[i];
            order[i] = order[other];
            order[other] = kept;
        }
        var first = new byte[input.length];
        int[] places = new int[from.length];
        for (int n = 0, to = 0; n < order.length; n++) {
            int at = firstFrom[order[n]];
            int length = firstInput[at - 4] & 0xff | (firstInput[at - 3] & 0xff) << 8 | (firstInput[at - 2] & 0xff) << 16;
            System.arraycopy(firstInput, at - 4, first, to, length + 4);
            places[n] = to + 4;
            to += length + 4;
        }
        input = first;
        from = places;
    }

    private void fields(OutputStream to, GroupValue group, int first) throws IOException {
        for (int n = first; n < group.getFieldCount(); n++) {
            FieldValue value = group.getValue(n);
            if (value == null || value instanceof ScalarValue scalar && (scalar.isNull() || scalar.isUndefined())) {
                continue;
            }
            if (value instanceof SequenceValue sequence) {
                to.write('[');
                number(to, sequence.getLength(), 4);
                for (GroupValue element : sequence.getValues()) {
                    to.write('(');
                    fields(to, element, 0);
                    to.write(')');
                }
                to.write(']');
            } else if (value instanceof GroupValue inside) {
                to.write('{');
                fields(to, inside, 0);
                to.write('}');
            } else if (value instanceof DecimalValue decimal) {
                to.write('D');
                number(to, decimal.mantissa, 8);
                to.write(decimal.exponent);
            } else if (value instanceof NumericValue numeric) {
                to.write('I');
                number(to, numeric.toLong(), 8);
            } else if (value instanceof ByteVectorValue bytes) {
                text(to, 'B', bytes.getBytes());
            } else {
                text(to, 'S', value.toString().getBytes(StandardCharsets.ISO_8859_1));
            }
        }
    }

    private void text(OutputStream to, char kind, byte[] text) throws IOException {
        to.write(kind);
        number(to, text.length, 4);
        to.write(text);
    }

    private void number(OutputStream to, long number, int bytes) throws IOException {
        to.write(word.putLong(0, number).array(), 0, bytes);
    }
}
