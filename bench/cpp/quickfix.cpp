// QuickFIX as a peer of the FIX cases: bytes to typed records by its own parser, messages, groups and fields.
//
//     quickfix orders|jse plain|validating DICTIONARIES INPUT

#include "typed.hpp"
#include "worker.hpp"

#include <quickfix/DataDictionary.h>
#include <quickfix/Fields.h>
#include <quickfix/Message.h>
#include <quickfix/Parser.h>

#include <algorithm>
#include <memory>

namespace {

constexpr int64_t DAY_NS = int64_t(86'400) * 1'000'000'000;

int64_t nanos(const FIX::DateTime& time) {
    return (time.m_date - FIX::DateTime::JULIAN_19700101) * DAY_NS + time.m_time;
}

/// Its reader of a stream, given as much at a time as its sockets read.
class Messages {
  public:
    explicit Messages(const std::string& input) : input(input) {}

    bool next(std::string& message) {
        while (!parser.readFixMessage(message)) {
            if (at == input.size()) return false;
            size_t size = std::min(size_t(BUFSIZ), input.size() - at);
            parser.addToStream(input.data() + at, size);
            at += size;
        }
        return true;
    }

  private:
    const std::string& input;
    size_t at = 0;
    FIX::Parser parser;
};

/// Fields that a reader asks for again and again; values are copied into them.
struct Order {
    FIX::Price price;
    FIX::OrderQty quantity;
    FIX::Side side;
    FIX::ClOrdID id;
    FIX::Symbol symbol;
    FIX::Account account;
    FIX::TransactTime transacted;
    FIX::NoPartyIDs count;
    FIX::PartyID party;
    FIX::PartyIDSource source;
    FIX::PartyRole role;

    void read(const FIX::Message& message, Typed& typed, bool& good) {
        if (message.getFieldIfSet(price)) typed.price = bits(price.getValue());
        if (message.getFieldIfSet(quantity)) typed.quantity = bits(quantity.getValue());
        if (message.getFieldIfSet(side)) typed.side = side.getValue();
        if (message.getFieldIfSet(id)) good &= put(typed.id, id.getString());
        if (message.getFieldIfSet(symbol)) good &= put(typed.symbol, symbol.getString());
        if (message.getFieldIfSet(account)) good &= put(typed.account, account.getString());
        if (message.getFieldIfSet(transacted)) typed.transacted_ns = nanos(transacted.getValue());
        if (!message.getFieldIfSet(count)) return;
        typed.stated = uint32_t(count.getValue());
        typed.entries = uint32_t(message.groupCount(FIX::FIELD::NoPartyIDs));
        if (typed.entries != typed.stated || typed.entries > PARTS) {
            good = false;
            typed.entries = 0;
        }
        for (unsigned n = 0; n < typed.entries; n++) {
            const FIX::FieldMap& entry = message.getGroupRef(int(n + 1), FIX::FIELD::NoPartyIDs);
            Part& part = typed.parts[n];
            if (entry.getFieldIfSet(party)) good &= put(part.id, party.getString());
            if (entry.getFieldIfSet(source)) part.kind = source.getValue();
            if (entry.getFieldIfSet(role)) part.number = role.getValue();
        }
    }
};

struct MarketData {
    FIX::ApplSeqNum sequence;
    FIX::NoMDEntries count;
    FIX::MDUpdateAction action;
    FIX::Symbol symbol;
    FIX::MDEntryType type;
    FIX::MDEntryPx price;
    FIX::NetChgPrevDay change;
    FIX::MDEntryTime time;
    FIX::RptSeq number;

    void read(const FIX::Message& message, Typed& typed, bool& good) {
        if (message.getFieldIfSet(sequence)) typed.sequence = sequence.getValue();
        if (!message.getFieldIfSet(count)) return;
        typed.stated = uint32_t(count.getValue());
        typed.entries = uint32_t(message.groupCount(FIX::FIELD::NoMDEntries));
        if (typed.entries != typed.stated || typed.entries > PARTS) {
            good = false;
            typed.entries = 0;
        }
        for (unsigned n = 0; n < typed.entries; n++) {
            const FIX::FieldMap& entry = message.getGroupRef(int(n + 1), FIX::FIELD::NoMDEntries);
            Part& part = typed.parts[n];
            if (entry.getFieldIfSet(action)) part.action = action.getValue();
            if (entry.getFieldIfSet(symbol)) good &= put(part.id, symbol.getString());
            if (entry.getFieldIfSet(type)) part.kind = type.getValue();
            if (entry.getFieldIfSet(price)) part.price = bits(price.getValue());
            if (entry.getFieldIfSet(change)) part.change = bits(change.getValue());
            if (entry.getFieldIfSet(time)) part.time_ns = FIX::DateTime(time.getValue()).m_time;
            if (entry.getFieldIfSet(number)) part.number = number.getValue();
        }
    }
};

/// The dictionaries of a case: of the session, and of the application where that is another.
struct Dictionaries {
    FIX::DataDictionary session;
    std::unique_ptr<FIX::DataDictionary> other;

    const FIX::DataDictionary& application() const { return other ? *other : session; }
};

template <class Body, bool COUNTED, class Each>
Pass pass_over(const std::string& input, const Dictionaries& with, bool validating, Each each) {
    Pass pass;
    Messages messages(input);
    Body body;
    FIX::Message message;
    FIX::MsgType type;
    FIX::MsgSeqNum sequence;
    FIX::SendingTime sent;
    for (std::string text; messages.next(text);) {
        bool good = true;
        Typed typed;
        try {
            // True: the length and the checksum must be right.
            message.setString(text, true, &with.session, &with.application());
            if (validating) with.session.validate(message);
            const FIX::Header& header = message.getHeader();
            if (header.getFieldIfSet(type)) good &= put(typed.msg_type, type.getString());
            if (header.getFieldIfSet(sequence)) typed.sequence = sequence.getValue();
            if (header.getFieldIfSet(sent)) typed.sent_ns = nanos(sent.getValue());
            body.read(message, typed, good);
        } catch (const FIX::Exception&) {
            pass.faults++;
            continue;
        }
        if (COUNTED) {
            size_t fields = message.getHeader().totalFields() + message.totalFields() + message.getTrailer().totalFields();
            typed.fields = uint32_t(fields);
        }
        pass.faults += !good;
        pass.messages++;
        pass.sum += typed.sum();
        each(typed);
    }
    return pass;
}

template <class Body> void run(const std::string& input, const Dictionaries& with, bool validating) {
    auto values = [&](Sink& sink) {
        return pass_over<Body, true>(input, with, validating, [&](const Typed& typed) {
            sink(reinterpret_cast<const char*>(&typed), sizeof typed);
        });
    };
    auto plain = [&] { return pass_over<Body, false>(input, with, validating, [](const Typed&) {}); };
    serve("QuickFIX " PEER_VERSION, values, plain);
}

} // namespace

int main(int count, char** arguments) try {
    if (count != 5) throw std::runtime_error("four arguments are wanted");
    std::string what = arguments[1], how = arguments[2], dictionaries = arguments[3], input = file_bytes(arguments[4]);
    if (what == "orders") {
        Dictionaries with{FIX::DataDictionary(dictionaries + "/FIX44.xml"), nullptr};
        run<Order>(input, with, how == "validating");
    } else {
        std::unique_ptr<FIX::DataDictionary> other(new FIX::DataDictionary(dictionaries + "/FIX50SP2.xml"));
        Dictionaries with{FIX::DataDictionary(dictionaries + "/FIXT11.xml"), std::move(other)};
        run<MarketData>(input, with, false);
    }
} catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
}
