/* Books of a group of products, out of a capture or off the wire: depth CONFIG GROUP [FILE.pcap] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "unitape_handler.h"

enum { LEVELS = 3 };

struct seen {
    uint64_t books;
    uint64_t changes;
    uint64_t trades;
    uint32_t last;
};

static void fail(const char *what) {
    fprintf(stderr, "depth: %s: %s\n", what, unitape_last_error());
    exit(1);
}

static void print_side(const char *name, const unitape_level *levels, int64_t count) {
    int64_t i;
    printf("  %s", name);
    for (i = 0; i < count && i < LEVELS; ++i)
        printf(" %" PRId64 "@%.2f", levels[i].qty, (double)levels[i].px / 1e9);
    printf("\n");
}

static void on_market(void *context, const unitape_market *m) {
    struct seen *seen = (struct seen *)context;
    switch (m->what) {
    case UNITAPE_MARKET_BOOK: {
        unitape_level best;
        seen->books += 1;
        seen->changes += m->change_count;
        seen->last = m->instrument;
        if (unitape_book_levels(m->book, UNITAPE_SIDE_BUY, &best, 1) < 0)
            fail("levels");
        break;
    }
    case UNITAPE_MARKET_TRADE:
        seen->trades += 1;
        break;
    case UNITAPE_MARKET_STALE:
        printf("stale: instrument %" PRIu32 "\n", m->instrument);
        break;
    case UNITAPE_MARKET_RECOVERED:
        printf("recovered: instrument %" PRIu32 "\n", m->instrument);
        break;
    case UNITAPE_MARKET_GAP:
        printf("missing: %" PRIu64 " to %" PRIu64 "\n", m->from, m->to);
        break;
    case UNITAPE_MARKET_REFUSED:
        printf("refused: %.*s\n", (int)m->text_length, m->text);
        break;
    default:
        break;
    }
}

int main(int argc, char **argv) {
    struct seen seen = {0, 0, 0, UNITAPE_NO_NUMBER};
    unitape_handler *handler;
    unitape_handler_stats stats;
    unitape_channel_stats channel;
    unitape_level levels[LEVELS];
    uint32_t n, stale = 0;
    int64_t packets = 0;
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: depth CONFIG GROUP [FILE.pcap]\n");
        return 2;
    }
    if (unitape_abi() != UNITAPE_ABI)
        fail("the library is of another version than the header");
    if (unitape_handler_open(argv[1], &handler) != UNITAPE_OK)
        fail("open");
    if (unitape_handler_subscribe(handler, UNITAPE_SUBSCRIBE_GROUP, argv[2], on_market, &seen) != UNITAPE_OK)
        fail("subscribe");
    if (argc == 4) {
        packets = unitape_handler_replay(handler, argv[3], NULL);
        if (packets < 0)
            fail("replay");
    } else {
        if (unitape_handler_listen(handler, NULL, 0) != UNITAPE_OK)
            fail("listen");
        /*
         * Until nothing has come for ten seconds; a strategy would continue. Poll also when nothing came: unitape
         * gives up a missing packet by time.
         */
        int quiet = 0;
        while (quiet < 1000) {
            int64_t got;
            if (unitape_handler_wait(handler, UINT64_C(10000000)) < 0)
                fail("wait");
            got = unitape_handler_poll(handler);
            if (got < 0)
                fail("poll");
            packets += got;
            quiet = got > 0 ? 0 : quiet + 1;
        }
    }
    if (unitape_handler_get_stats(handler, &stats) != UNITAPE_OK)
        fail("stats");
    printf("%" PRId64 " packets, %" PRIu64 " books changed by %" PRIu64 " levels, %" PRIu64 " trades, %" PRIu64
           " gaps, %" PRIu64 " refused\n",
           packets, seen.books, seen.changes, seen.trades, stats.gaps, stats.refused);
    for (n = 0; unitape_handler_channel(handler, n, &channel) == 1; ++n)
        printf("channel %.*s: %" PRIu64 " on line A, %" PRIu64 " on line B, %" PRIu64 " lost\n",
               (int)channel.name_length, channel.name, channel.lines[0].packets, channel.lines[1].packets,
               channel.lost);
    if (seen.last != UNITAPE_NO_NUMBER) {
        int64_t count = unitape_handler_levels(handler, seen.last, UNITAPE_SIDE_BUY, levels, LEVELS, &stale);
        if (count < 0)
            fail("levels");
        printf("instrument %" PRIu32 "%s\n", seen.last, stale ? ", stale" : "");
        print_side("bids", levels, count);
        count = unitape_handler_levels(handler, seen.last, UNITAPE_SIDE_SELL, levels, LEVELS, NULL);
        print_side("offers", levels, count);
    }
    if (unitape_handler_close(handler) != UNITAPE_OK)
        fail("close");
    return 0;
}
