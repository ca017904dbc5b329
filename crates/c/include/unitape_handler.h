/*
 * unitape_handler.h - market data by FAST for C: subscribe to products, be called when their books change.
 *
 *     static void on_market(void *context, const unitape_market *m) { ... }
 *
 *     unitape_handler *handler;
 *     if (unitape_handler_open("venue.toml", &handler) != UNITAPE_OK)
 *         die(unitape_last_error());
 *     unitape_handler_subscribe(handler, UNITAPE_SUBSCRIBE_GROUP, "BUND", on_market, my_context);
 *     unitape_handler_listen(handler, NULL, 0);
 *     for (;;)
 *         if (unitape_handler_poll(handler) < 0)
 *             die(unitape_last_error());
 *
 * The handler has no thread: callbacks are called by the thread that gives it packets, and must return (no longjmp, no
 * exception) and not use the handler they are called by; the functions they may use are listed below. Errors, handles
 * and threads are as in unitape.h. The configuration is a mapping with a table [fast], see docs/formats-fast.md.
 */
#ifndef UNITAPE_HANDLER_H
#define UNITAPE_HANDLER_H

#include "unitape.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A handler of market data. */
typedef struct unitape_handler unitape_handler;

/* A book to look at, for as long as the callback runs that it was given to. */
typedef struct unitape_book unitape_book;

/* No instrument, no product, no sequence, no trade id, not published. */
#define UNITAPE_NO_NUMBER UINT32_MAX
#define UNITAPE_NO_SEQUENCE UINT64_MAX

/* Sides. */
enum { UNITAPE_SIDE_BUY = 0, UNITAPE_SIDE_SELL = 1 };

/* What became of a level. */
enum { UNITAPE_LEVEL_ADD = 0, UNITAPE_LEVEL_CHANGE = 1, UNITAPE_LEVEL_DELETE = 2 };

/* A level of a book. */
typedef struct unitape_level {
    int64_t px;           /* price, in units of 1e-9 */
    int64_t qty;          /* quantity: qty * 10^qty_exponent */
    int32_t qty_exponent; /* ... */
    uint32_t orders;      /* how many orders; UNITAPE_NO_NUMBER where the venue does not publish it */
} unitape_level;

/* A level that changed. */
typedef struct unitape_level_change {
    unitape_level level; /* as it became, or as it was before it was taken out */
    uint32_t side;       /* UNITAPE_SIDE_... */
    uint32_t action;     /* UNITAPE_LEVEL_... */
    uint32_t depth;      /* its place from the best, from 1, when it changed */
    uint32_t reserved;   /* 0 */
} unitape_level_change;

/* What a callback reports. */
enum {
    UNITAPE_MARKET_BOOK = 1,       /* the book has changed: changes, book, flags; once a message and instrument */
    UNITAPE_MARKET_TRADE = 2,      /* a trade: px, qty, side of the aggressor or UNITAPE_NO_NUMBER, id */
    UNITAPE_MARKET_STATE = 3,      /* a state: code or text as it came, phase; without instrument: of the product */
    UNITAPE_MARKET_STALE = 4,      /* the book is not to be trusted from here on */
    UNITAPE_MARKET_RECOVERED = 5,  /* it is again; UNITAPE_MARKET_BOOK follows */
    UNITAPE_MARKET_INSTRUMENT = 6, /* the instrument is new, or its data changed; text: the venue's id */
    UNITAPE_MARKET_GAP = 7,        /* missing on both lines: from, to; with product messages, without packets */
    UNITAPE_MARKET_REFUSED = 8     /* a packet or message cannot be used; text: code and reason */
};

enum {
    UNITAPE_MARKET_SNAPSHOT = 1, /* the message is a snapshot, or had to wait for one */
    UNITAPE_MARKET_CLEARED = 2,  /* the book was emptied before these changes: they are all it has */
    UNITAPE_MARKET_IS_STALE = 4  /* the book is not to be trusted */
};

/* Phases of trading, as the configuration says that states are. */
enum {
    UNITAPE_PHASE_PRE = 0,
    UNITAPE_PHASE_OPEN = 1,
    UNITAPE_PHASE_AUCTION = 2,
    UNITAPE_PHASE_FIXING = 3,
    UNITAPE_PHASE_HALT = 4,
    UNITAPE_PHASE_CLOSE = 5
};

/* An event; valid while the callback runs. Fields that an event does not have are as empty as they can be. */
typedef struct unitape_market {
    uint32_t what;                       /* UNITAPE_MARKET_... */
    uint32_t flags;                      /* UNITAPE_MARKET_SNAPSHOT, ... */
    uint32_t instrument;                 /* a number that stays; UNITAPE_NO_NUMBER for none */
    uint32_t product;                    /* likewise */
    uint32_t channel;                    /* of the configuration, from 0 */
    uint32_t phase;                      /* UNITAPE_PHASE_...; UNITAPE_NO_NUMBER for none */
    uint64_t sequence;                   /* of the message; UNITAPE_NO_SEQUENCE for none */
    int64_t ts_event;                    /* the venue's time, nanoseconds since 1970 */
    int64_t ts_recv;                     /* when the packet was received */
    int64_t px;                          /* in units of 1e-9 */
    int64_t qty;                         /* qty * 10^qty_exponent */
    int32_t qty_exponent;                /* ... */
    uint32_t side;                       /* UNITAPE_SIDE_..., UNITAPE_NO_NUMBER for none */
    uint64_t id;                         /* of the trade; UNITAPE_NO_SEQUENCE for none */
    uint64_t from;                       /* the first that is missing */
    uint64_t to;                         /* the last */
    uint64_t code;                       /* of a state that is a number */
    const char *text;                    /* no zero at its end; null for none */
    size_t text_length;                  /* bytes of it */
    const unitape_level_change *changes; /* in order */
    size_t change_count;                 /* how many */
    const unitape_book *book;            /* the whole depth; null for none */
} unitape_market;

/* Called with each event of what it was subscribed with; gaps and refusals go to all. */
typedef void (*unitape_market_callback)(void *context, const unitape_market *market);

/* Opens a handler by a configuration; UNITAPE_E_OPTION says what is wrong with it, and in which line. */
int32_t unitape_handler_open(const char *config, unitape_handler **handler);

/* Closes it. Null is allowed and does nothing. */
int32_t unitape_handler_close(unitape_handler *handler);

/* What is subscribed. */
enum {
    UNITAPE_SUBSCRIBE_ALL = 0,       /* everything; the name is null */
    UNITAPE_SUBSCRIBE_PRODUCT = 1,   /* a product, by its id or name */
    UNITAPE_SUBSCRIBE_GROUP = 2,     /* a group of products */
    UNITAPE_SUBSCRIBE_INSTRUMENT = 3 /* an instrument, by its id or symbol */
};

/*
 * Subscribes: `callback` is called with `context` and each event. Best before the first packet: data published while
 * nobody subscribed are not known, and the book is stale until the venue sends it again. Two subscriptions that cover
 * the same event both get it.
 */
int32_t unitape_handler_subscribe(unitape_handler *handler, uint32_t what, const char *name,
                                  unitape_market_callback callback, void *context);

/* Ends all subscriptions of this name: how many there were. */
int32_t unitape_handler_unsubscribe(unitape_handler *handler, uint32_t what, const char *name);

/*
 * Takes all packets of a file: a capture (pcap, pcapng) when `channel` is null; otherwise packets with four bytes of length
 * before each, the lowest first, that were sent to the channel of this name (a capture itself records where packets
 * were sent, and is refused then). Returns how many packets there were.
 */
int64_t unitape_handler_replay(unitape_handler *handler, const char *file, const char *channel);

/* Takes a packet that was sent to `address` ("224.0.50.1:59001") and received at `ts_recv`. */
int32_t unitape_handler_packet(unitape_handler *handler, const char *address, const void *bytes, size_t length,
                               int64_t ts_recv);

/*
 * Listens to both lines of all channels. `interface` is the address of the interface by which groups are joined, null for
 * the system's choice; `buffer_bytes` room in the kernel for each line, 0 for 8 MiB.
 */
int32_t unitape_handler_listen(unitape_handler *handler, const char *interface, uint64_t buffer_bytes);

/*
 * Takes the packets that are there, at most 32 of each line: how many there were. Never waits. Call it also where none is:
 * packets that wait for a missing one are given up for it by time, and only here.
 */
int64_t unitape_handler_poll(unitape_handler *handler);

/*
 * Waits until a packet is there: 1, or 0 when `timeout_ns` has passed. Wait no longer than what waits for a missing packet
 * may, ten milliseconds unless the configuration says otherwise, and then poll either way.
 */
int32_t unitape_handler_wait(unitape_handler *handler, uint64_t timeout_ns);

/* The number of the instrument with this id or symbol: 1, or 0 where none was seen yet. */
int32_t unitape_handler_find(unitape_handler *handler, const char *name, uint32_t *instrument);

/*
 * The best levels of a side of a subscribed instrument, the best first, up to `capacity` of them. Gives how many the side
 * has, which may be more; UNITAPE_E_ARGUMENT where it is not subscribed. `stale`, which may be null, becomes 1 where the
 * book is not to be trusted, otherwise 0.
 */
int64_t unitape_handler_levels(unitape_handler *handler, uint32_t instrument, uint32_t side, unitape_level *levels,
                               size_t capacity, uint32_t *stale);

/* The same of the book that a callback was given, in that callback. */
int64_t unitape_book_levels(const unitape_book *book, uint32_t side, unitape_level *levels, size_t capacity);

/* How much was done. */
typedef struct unitape_handler_stats {
    uint64_t packets;     /* packets of all lines whose header could be read */
    uint64_t unknown;     /* packets sent to addresses of no channel */
    uint64_t refused;     /* packets and messages that could not be used */
    uint64_t gaps;        /* gaps on both lines */
    uint64_t levels;      /* levels that were applied to books */
    uint64_t passed_over; /* levels of what is not subscribed */
    uint64_t updates;     /* books that changed, by message */
    uint64_t trades;      /* trades */
    uint64_t stale;       /* instruments that became stale */
    uint64_t recovered;   /* instruments that came back */
    uint64_t faults;      /* levels that cannot be */
    uint64_t waiting;     /* levels that wait for snapshots now */
    uint64_t dropped;     /* datagrams for which the kernel had no room */
} unitape_handler_stats;

/* How much was done so far. */
int32_t unitape_handler_get_stats(unitape_handler *handler, unitape_handler_stats *stats);

/* What a line brought. */
typedef struct unitape_line_stats {
    uint64_t packets;   /* packets */
    uint64_t bytes;     /* of them */
    uint64_t first;     /* of which its copy was the first good one */
    uint64_t twice;     /* that it brought twice */
    uint64_t missed;    /* that it did not bring */
    uint64_t reordered; /* that came behind later ones */
    uint64_t corrupt;   /* that could not be decoded */
} unitape_line_stats;

/* What a channel has seen. */
typedef struct unitape_channel_stats {
    const char *name;            /* no zero at its end; valid until the handler is closed */
    size_t name_length;          /* bytes of it */
    uint64_t gaps;               /* gaps of packets that came on no line */
    uint64_t lost;               /* packets in them */
    uint64_t late;               /* packets that came when they had been given up */
    uint64_t recovered;          /* packets that one line did not bring and the other did */
    uint64_t restarts;           /* how often numbers began again */
    unitape_line_stats lines[2]; /* A and B */
} unitape_channel_stats;

/* The channel of this number, from 0: 1, or 0 if there are fewer channels. */
int32_t unitape_handler_channel(unitape_handler *handler, uint32_t channel, unitape_channel_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
