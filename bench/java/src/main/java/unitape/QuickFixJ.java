package unitape;

import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.Iterator;
import java.util.List;
import org.apache.mina.core.buffer.IoBuffer;
import org.apache.mina.core.filterchain.IoFilter.NextFilter;
import org.apache.mina.core.session.IoSession;
import org.apache.mina.filter.codec.ProtocolDecoderOutput;
import quickfix.DataDictionary;
import quickfix.FieldMap;
import quickfix.FieldNotFound;
import quickfix.Group;
import quickfix.Message;
import quickfix.mina.message.FIXMessageDecoder;

/** QuickFIX/J as a peer of the FIX cases: bytes to typed records by its own decoder, messages, groups and fields. */
final class QuickFixJ implements Worker.Peer {
    private final boolean orders;
    private final boolean validating;
    private final byte[] input;
    private final DataDictionary session;
    private final DataDictionary application;

    QuickFixJ(String what, String flavour, Path input) throws Exception {
        orders = what.equals("orders");
        validating = flavour.equals("validating");
        this.input = Files.readAllBytes(input);
        session = new DataDictionary(orders ? "FIX44.xml" : "FIXT11.xml");
        application = orders ? session : new DataDictionary("FIX50SP2.xml");
        // Real market data has fields of a group in another order than the standard; as it is, the group would end there.
        application.setCheckUnorderedGroupFields(orders);
    }

    @Override
    public String name() {
        try {
            return "QuickFIX/J " + Worker.version("org.quickfixj", "quickfixj-core", Message.class);
        } catch (java.io.IOException e) {
            return "QuickFIX/J";
        }
    }

    @Override
    public Worker.Pass pass(OutputStream sink) throws Exception {
        var pass = new Worker.Pass();
        var buffer = Typed.buffer();
        // The decoder finds one message after the other and hands each out.
        new FIXMessageDecoder()
                .decode(
                        null,
                        IoBuffer.wrap(input),
                        new ProtocolDecoderOutput() {
                            @Override
                            public void write(Object message) {
                                take((String) message, pass, sink, buffer);
                            }

                            @Override
                            public void flush(NextFilter next, IoSession session) {}
                        });
        return pass;
    }

    private void take(String text, Worker.Pass pass, OutputStream sink, ByteBuffer buffer) {
        try {
            var message = new Message();
            // True: length, checksum and the order of header, body and trailer must be right.
            message.fromString(text, session, application, true);
            if (validating) {
                session.validate(message);
            }
            var typed = new Typed();
            FieldMap header = message.getHeader();
            typed.msgType = header.getString(35);
            typed.sentNs = nanos(header.getUtcTimeStamp(52));
            boolean good = orders ? order(message, typed) : marketData(message, typed);
            pass.faults += good && message.getException() == null ? 0 : 1;
            pass.messages++;
            pass.sum += typed.sum();
            if (sink != null) {
                typed.fields = fields(header) + fields(message) + fields(message.getTrailer());
                typed.write(buffer, sink);
            }
        } catch (Exception e) {
            pass.faults++;
        }
    }

    private static boolean order(Message message, Typed typed) throws FieldNotFound {
        typed.sequence = message.getHeader().getInt(34);
        typed.transactedNs = nanos(message.getUtcTimeStamp(60));
        typed.price(message.getDecimal(44));
        typed.quantity(message.getDecimal(38));
        typed.side = message.getChar(54);
        typed.id = message.getString(11);
        typed.symbol = message.getString(55);
        typed.account = message.getString(1);
        typed.stated = message.getInt(453);
        List<Group> parties = message.getGroups(453);
        if (parties.size() != typed.stated || parties.size() > typed.parts.length) {
            return false;
        }
        for (Group party : parties) {
            var part = new Typed.Part();
            part.id = party.getString(448);
            part.kind = party.getChar(447);
            part.number = party.getInt(452);
            typed.parts[typed.entries++] = part;
        }
        return true;
    }

    private static boolean marketData(Message message, Typed typed) throws FieldNotFound {
        if (message.isSetField(1181)) {
            typed.sequence = message.getInt(1181);
        }
        if (!message.isSetField(268)) {
            return true;
        }
        typed.stated = message.getInt(268);
        List<Group> entries = message.getGroups(268);
        if (entries.size() != typed.stated || entries.size() > typed.parts.length) {
            return false;
        }
        for (Group entry : entries) {
            var part = new Typed.Part();
            part.action = entry.getChar(279);
            part.id = entry.getString(55);
            part.kind = entry.getChar(269);
            if (entry.isSetField(270)) {
                part.price(entry.getDecimal(270));
            }
            if (entry.isSetField(451)) {
                part.change(entry.getDecimal(451));
            }
            if (entry.isSetField(273)) {
                part.timeNs = entry.getUtcTimeOnly(273).toNanoOfDay();
            }
            if (entry.isSetField(83)) {
                part.number = entry.getInt(83);
            }
            typed.parts[typed.entries++] = part;
        }
        return true;
    }

    private static long nanos(LocalDateTime time) {
        return time.toEpochSecond(ZoneOffset.UTC) * 1_000_000_000L + time.getNano();
    }

    /** With those of its groups. */
    private static int fields(FieldMap map) {
        int count = 0;
        for (var field = map.iterator(); field.hasNext(); field.next()) {
            count++;
        }
        for (Iterator<Integer> group = map.groupKeyIterator(); group.hasNext(); ) {
            for (Group entry : map.getGroups(group.next())) {
                count += fields(entry);
            }
        }
        return count;
    }
}
