/*
 * Publishes prices: one copied, one written in place, then ten in a batch, and so on. A second run goes on behind the
 * last price that is on the tape.
 *
 *     publisher DIR COUNT
 */
#include "unitape.h"

#include "price.h"

#include <stdio.h>
#include <stdlib.h>

static void die(const char *what)
{
    fprintf(stderr, "publisher: %s: %s\n", what, unitape_last_error());
    exit(1);
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
        if (unitape_publication_offer(prices, TOPIC_EURUSD, &price, sizeof price, NULL) != UNITAPE_OK)
            die("offer");
        return 1;
    case 1: /* Without the copy: the price is made where it will stand. */
        if (unitape_publication_claim(prices, TOPIC_EURUSD, sizeof price, &place) != UNITAPE_OK)
            die("claim");
        price_of(number, (struct price *)place);
        if (unitape_publication_commit(prices, NULL) != UNITAPE_OK)
            die("commit");
        return 1;
    default: /* Many at once: seen together, and cheaper. */
        if (unitape_publication_batch(prices) != UNITAPE_OK)
            die("batch");
        for (i = 0; i < left && (i == 0 || (number + i) % 12 != 0); ++i) {
            price_of(number + i, &price);
            if (unitape_publication_push(prices, TOPIC_EURUSD, &price, sizeof price) != UNITAPE_OK)
                die("push");
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
    uint64_t first, count, done = 0;

    if (argc != 3) {
        fprintf(stderr, "usage: publisher DIR COUNT\n");
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
    if (unitape_publication_open(argv[1], &options, &prices) != UNITAPE_OK)
        die("open");
    if (unitape_publication_end(prices, NULL, &first) != UNITAPE_OK)
        die("end");
    while (done < count)
        done += publish(prices, first + done, count - done);
    if (unitape_publication_close(prices) != UNITAPE_OK)
        die("close");
    printf("%llu prices, from number %llu\n", (unsigned long long)count, (unsigned long long)first);
    return 0;
}
