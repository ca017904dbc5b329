/*
 * Publishes prices: one copied, one written in place, then ten in a batch, and so on. A second run continues after
 * the last price on the tape.
 *
 * With `wait` or `drop` it has a gate for the reader `risk` (risk.c), which must not be left behind, not even while it
 * is away: it waits for that reader, or leaves prices out and counts them.
 *
 *     publisher DIR COUNT [wait|drop]
 */
#include "unitape.h"

#include "price.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what)
{
    fprintf(stderr, "publisher: %s: %s\n", what, unitape_last_error());
    exit(1);
}

/* Whether a price is left out for the sake of the reader with the gate; any other error is the end. */
static int is_dropped(int32_t code, const char *what)
{
    if (code == UNITAPE_OK)
        return 0;
    if (code != UNITAPE_E_DROPPED)
        die(what);
    return 1;
}

/* Publishes the next prices, at most `left`; gives how many. */
static uint64_t publish(unitape_publication *prices, uint64_t number, uint64_t left)
{
    struct price price;
    void *place;
    uint64_t i;

    switch (number % 12) {
    case 0: /* The simplest way: the bytes are copied onto the tape. */
        price_of(number, &price);
        is_dropped(unitape_publication_offer(prices, TOPIC_EURUSD, &price, sizeof price, NULL), "offer");
        return 1;
    case 1: /* Without the copy: the price is made where it will stand. */
        if (is_dropped(unitape_publication_claim(prices, TOPIC_EURUSD, sizeof price, &place), "claim"))
            return 1;
        price_of(number, (struct price *)place);
        if (unitape_publication_commit(prices, NULL) != UNITAPE_OK)
            die("commit");
        return 1;
    default: /* Many at once: seen together, and cheaper. */
        if (unitape_publication_batch(prices) != UNITAPE_OK)
            die("batch");
        for (i = 0; i < left && (i == 0 || (number + i) % 12 != 0); ++i) {
            price_of(number + i, &price);
            is_dropped(unitape_publication_push(prices, TOPIC_EURUSD, &price, sizeof price), "push");
        }
        if (unitape_publication_commit(prices, NULL) != UNITAPE_OK)
            die("commit");
        return i;
    }
}

int main(int argc, char **argv)
{
    unitape_publication *prices;
    unitape_options options;
    unitape_gate gate = {"risk", 64 << 10, 0, UNITAPE_GATE_WAIT, 1, 0};
    unitape_gate_standing standing;
    uint64_t first, count, done = 0;

    if (argc < 3 || argc > 4 || (argc == 4 && strcmp(argv[3], "wait") != 0 && strcmp(argv[3], "drop") != 0)) {
        fprintf(stderr, "usage: publisher DIR COUNT [wait|drop]\n");
        return 2;
    }
    if (unitape_abi() != UNITAPE_ABI) {
        fprintf(stderr, "publisher: this library is not of the header's version\n");
        return 1;
    }
    count = strtoull(argv[2], NULL, 10);

    unitape_options_init(&options, sizeof options);
    options.backing = UNITAPE_BACKING_HOT; /* in shared memory, recorded to the directory meanwhile */
    options.segment_bytes = 4 << 20;
    options.window_segments = 4;
    if (argc == 4) {
        if (strcmp(argv[3], "drop") == 0)
            gate.policy = UNITAPE_GATE_DROP;
        else
            gate.timeout_ns = UNITAPE_FOREVER;
        options.gates = &gate;
        options.gate_count = 1;
    }
    if (unitape_publication_open(argv[1], &options, &prices) != UNITAPE_OK)
        die("open");
    if (unitape_publication_end(prices, NULL, &first) != UNITAPE_OK)
        die("end");
    while (done < count)
        done += publish(prices, first + done, count - done);
    if (argc == 4) {
        if (unitape_publication_gate(prices, "risk", &standing) != UNITAPE_OK)
            die("gate");
        printf("%llu left out for risk\n", (unsigned long long)standing.dropped.count);
    }
    if (unitape_publication_close(prices) != UNITAPE_OK)
        die("close");
    printf("%llu prices, from number %llu\n", (unsigned long long)count, (unsigned long long)first);
    return 0;
}
