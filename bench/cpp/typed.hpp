// The record of typed values that all FIX peers make of a message; field by field that of `typed.rs` of the bench, and
// the same bytes. Prices and quantities are floats here: the bits of the double, exponent 0.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

constexpr unsigned PARTS = 4;

/// Copies text that fits.
template <size_t N> bool put(char (&to)[N], const std::string& text) {
    if (text.size() > N) return false;
    std::memcpy(to, text.data(), text.size());
    return true;
}

inline int64_t bits(double value) {
    int64_t out;
    std::memcpy(&out, &value, sizeof out);
    return out;
}

inline uint64_t words(const char (&text)[16]) {
    uint64_t both[2];
    std::memcpy(both, text, sizeof both);
    return both[0] ^ both[1];
}

/// One entry of a group: a party, or a market data entry. As it is in memory it is written.
struct __attribute__((packed)) Part {
    int64_t number = 0, price = 0, change = 0, time_ns = 0;
    char id[16] = {};
    uint8_t price_exponent = 0, change_exponent = 0;
    char kind = 0, action = 0;

    uint64_t sum() const {
        char text[16];
        std::memcpy(text, id, sizeof text);
        uint32_t small = uint32_t(uint8_t(kind)) << 16 | uint32_t(uint8_t(action)) << 24;
        return words(text) + uint64_t(number) + uint64_t(price) + (uint64_t(change) << 1) + uint64_t(time_ns) +
               (uint64_t(small) << 8);
    }
};
static_assert(sizeof(Part) == 52, "as in typed.rs");

/// The values of a message.
struct __attribute__((packed)) Typed {
    char msg_type[8] = {};
    int64_t sequence = 0, sent_ns = 0, transacted_ns = 0, price = 0, quantity = 0;
    char id[16] = {}, symbol[16] = {}, account[16] = {};
    uint32_t fields = 0, stated = 0, entries = 0;
    char side = 0;
    uint8_t price_exponent = 0, quantity_exponent = 0;
    Part parts[PARTS];
    char unused[9] = {};

    /// All but the number of fields, which only the compared pass counts.
    uint64_t sum() const {
        uint64_t type;
        char texts[3][16];
        std::memcpy(&type, msg_type, sizeof type);
        std::memcpy(texts, id, sizeof texts);
        uint64_t sum = type + uint64_t(sequence) + uint64_t(sent_ns) + uint64_t(transacted_ns) + uint64_t(price) +
                       uint64_t(quantity) + words(texts[0]) + words(texts[1]) + words(texts[2]) +
                       (uint64_t(stated) << 40) + (uint64_t(uint8_t(side)) << 16);
        for (unsigned n = 0; n < entries; n++) sum = (sum << 1 | sum >> 63) + parts[n].sum();
        return sum;
    }
};
static_assert(sizeof(Typed) == 120 + PARTS * 52, "as in typed.rs");
