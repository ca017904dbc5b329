package unitape;

import com.prowidesoftware.swift.io.RJEReader;
import com.prowidesoftware.swift.io.parser.SwiftParser;
import com.prowidesoftware.swift.model.SwiftMessage;
import com.prowidesoftware.swift.model.Tag;
import com.prowidesoftware.swift.model.field.Field;
import com.prowidesoftware.swift.model.field.Field13C;
import com.prowidesoftware.swift.model.field.Field19A;
import com.prowidesoftware.swift.model.field.Field28C;
import com.prowidesoftware.swift.model.field.Field32A;
import com.prowidesoftware.swift.model.field.Field33B;
import com.prowidesoftware.swift.model.field.Field36B;
import com.prowidesoftware.swift.model.field.Field60F;
import com.prowidesoftware.swift.model.field.Field61;
import com.prowidesoftware.swift.model.field.Field62F;
import com.prowidesoftware.swift.model.field.Field64;
import com.prowidesoftware.swift.model.field.Field90B;
import com.prowidesoftware.swift.model.field.Field98A;
import java.io.IOException;
import java.io.OutputStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Calendar;

/**
 * Prowide Core as a peer of {@code swift typed}: an RJE file to messages, fields, and components as BigDecimal, Calendar,
 * Long or text. What it writes for comparison is what {@code swift.rs} of the peers makes of our slow twin's values:
 * numbers by a letter and eight bytes, text as it is, without line ends.
 */
final class Prowide implements Worker.Peer {
    private static final long DAY_MS = 86_400_000L;

    private final boolean every;
    private final String input;
    private OutputStream sink;
    private long sum;

    /** A case: {@code every} field, or those with {@code amounts} and dates. The zone of the JVM has to be UTC. */
    Prowide(String what, Path input) throws IOException {
        every = what.equals("every");
        this.input = Files.readString(input, StandardCharsets.ISO_8859_1);
    }

    @Override
    public String name() {
        try {
            String core = Worker.version("com.prowidesoftware", "pw-swift-core", SwiftMessage.class);
            return "Prowide Core " + core;
        } catch (IOException e) {
            return "Prowide Core";
        }
    }

    @Override
    public Worker.Pass pass(OutputStream to) throws IOException {
        var pass = new Worker.Pass();
        sink = to;
        sum = 0;
        var reader = new RJEReader(input);
        while (reader.hasNext()) {
            String text = reader.next();
            SwiftMessage message = new SwiftParser(text).message();
            if (message == null || message.getBlock4() == null) {
                // Blanks behind the last one are no message.
                pass.faults += text.isBlank() ? 0 : 1;
                continue;
            }
            for (Tag tag : message.getBlock4().getTags()) {
                if (every) {
                    every(tag);
                } else {
                    amountsAndDates(tag);
                }
            }
            pass.messages++;
        }
        pass.sum = sum;
        return pass;
    }

    private void amountsAndDates(Tag tag) throws IOException {
        switch (tag.getName()) {
            case "32A" -> {
                var field = new Field32A(tag);
                day(field.getDateAsCalendar());
                amount(field.getAmountAsBigDecimal());
            }
            case "33B" -> amount(new Field33B(tag).getAmountAsBigDecimal());
            case "98A" -> day(new Field98A(tag).getDateAsCalendar());
            case "90B" -> amount(new Field90B(tag).getPriceAsBigDecimal());
            case "36B" -> amount(new Field36B(tag).getQuantityAsBigDecimal());
            case "19A" -> amount(new Field19A(tag).getAmountAsBigDecimal());
            case "60F" -> {
                var field = new Field60F(tag);
                day(field.getDateAsCalendar());
                amount(field.getAmountAsBigDecimal());
            }
            case "61" -> {
                var field = new Field61(tag);
                day(field.getValueDateAsCalendar());
                entryDay(field.getEntryDateAsCalendar());
                amount(field.getAmountAsBigDecimal());
            }
            case "62F" -> {
                var field = new Field62F(tag);
                day(field.getDateAsCalendar());
                amount(field.getAmountAsBigDecimal());
            }
            case "64" -> {
                var field = new Field64(tag);
                day(field.getDateAsCalendar());
                amount(field.getAmountAsBigDecimal());
            }
            default -> {}
        }
    }

    private void every(Tag tag) throws IOException {
        Field field = tag.asField();
        if (field instanceof Field32A f) {
            day(f.getDateAsCalendar());
            text(f.getCurrency());
            amount(f.getAmountAsBigDecimal());
        } else if (field instanceof Field33B f) {
            text(f.getCurrency());
            amount(f.getAmountAsBigDecimal());
        } else if (field instanceof Field98A f) {
            text(f.getQualifier());
            day(f.getDateAsCalendar());
        } else if (field instanceof Field90B f) {
            texts(field, 1, 3);
            amount(f.getPriceAsBigDecimal());
        } else if (field instanceof Field36B f) {
            texts(field, 1, 2);
            amount(f.getQuantityAsBigDecimal());
        } else if (field instanceof Field19A f) {
            texts(field, 1, 3);
            amount(f.getAmountAsBigDecimal());
        } else if (field instanceof Field60F f) {
            balance(f.getDCMark(), f.getDateAsCalendar(), f.getCurrency(), f.getAmountAsBigDecimal());
        } else if (field instanceof Field61 f) {
            day(f.getValueDateAsCalendar());
            entryDay(f.getEntryDateAsCalendar());
            texts(field, 3, 4);
            amount(f.getAmountAsBigDecimal());
            texts(field, 6, 10);
        } else if (field instanceof Field62F f) {
            balance(f.getDCMark(), f.getDateAsCalendar(), f.getCurrency(), f.getAmountAsBigDecimal());
        } else if (field instanceof Field64 f) {
            balance(f.getDCMark(), f.getDateAsCalendar(), f.getCurrency(), f.getAmountAsBigDecimal());
        } else if (field instanceof Field13C f) {
            text(f.getComponent1());
            number('T', f.getComponent2AsCalendar().getTimeInMillis() / 1000);
            text(f.getComponent3());
            number('T', f.getComponent4AsCalendar().getTimeInMillis() / 1000);
        } else if (field instanceof Field28C f) {
            number('N', f.getComponent1AsLong());
            number('N', f.getComponent2AsLong());
        } else if (field != null) {
            // Of a security, the word in front of its number is a component too; it is none of ours.
            boolean word = "35B".equals(tag.getName()) && "ISIN".equals(field.getComponent(1));
            texts(field, word ? 2 : 1, field.componentsSize());
        } else {
            throw new IllegalArgumentException("no field is known for " + tag.getName());
        }
    }

    private void balance(String mark, Calendar day, String currency, BigDecimal amount) throws IOException {
        text(mark);
        day(day);
        text(currency);
        amount(amount);
    }

    private void texts(Field field, int first, int last) throws IOException {
        for (int n = first; n <= last; n++) {
            text(field.getComponent(n));
        }
    }

    /** What a value does not have is null. */
    private void text(String text) throws IOException {
        if (text == null || text.isEmpty()) {
            return;
        }
        sum = Long.rotateLeft(sum, 1) + (text.length() ^ (long) text.charAt(0) << 32);
        if (sink != null) {
            for (int n = 0; n < text.length(); n++) {
                if (text.charAt(n) != '\r' && text.charAt(n) != '\n') {
                    sink.write(text.charAt(n));
                }
            }
        }
    }

    private void amount(BigDecimal amount) throws IOException {
        number('A', amount.unscaledValue().longValueExact() << 6 | amount.scale());
    }

    private void day(Calendar day) throws IOException {
        number('D', Math.floorDiv(day.getTimeInMillis(), DAY_MS));
    }

    /** Of no year, by itself. */
    private void entryDay(Calendar day) throws IOException {
        number('D', (day.get(Calendar.MONTH) + 1) * 100L + day.get(Calendar.DAY_OF_MONTH));
    }

    private void number(char kind, long number) throws IOException {
        sum = Long.rotateLeft(sum, 1) + number;
        if (sink != null) {
            sink.write(kind);
            for (int shift = 0; shift < 64; shift += 8) {
                sink.write((int) (number >> shift));
            }
        }
    }
}
