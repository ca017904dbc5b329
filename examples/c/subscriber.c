/*
 * Reads prices in place and checks each, until it has seen COUNT. With a NAME, a second run continues where the first
 * one acknowledged.
 *
 *     subscriber DIR COUNT [NAME]
 */
#include "unitape.h"

#include "price.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what)
{
    fprintf(stderr, "subscriber: %s: %s\n", what, unitape_last_error());
    exit(1);
}

struct seen {
    uint64_t first, count;
};

/* Called with each frame that is there. The bytes are those on the tape. */
static int32_t take(void *context, const unitape_frame *frame)
{
    struct seen *seen = (struct seen *)context;
    const struct price *price = (const struct price *)frame->bytes;
    struct price wanted;

    if (frame->kind != UNITAPE_KIND_MESSAGE || frame->topic != TOPIC_EURUSD)
        return 0; /* somebody else's */
    if (seen->count == 0)
        seen->first = price->number;
    price_of(seen->first + seen->count, &wanted);
    if (frame->length != sizeof wanted || memcmp(price, &wanted, sizeof wanted) != 0) {
        fprintf(stderr, "subscriber: position %llu: not price %llu\n", (unsigned long long)frame->position,
                (unsigned long long)wanted.number);
        exit(1);
    }
    seen->count += 1;
    return 0;
}

int main(int argc, char **argv)
{
    unitape_subscription *prices;
    struct seen seen = {0, 0};
    const char *name = argc > 3 ? argv[3] : NULL;
    uint64_t count;
    int64_t took;

    if (argc < 3) {
        fprintf(stderr, "usage: subscriber DIR COUNT [NAME]\n");
        return 2;
    }
    count = strtoull(argv[2], NULL, 10);

    /* The process that starts first waits for the other. */
    if (unitape_await_tape(argv[1], UNITAPE_FOREVER) < 0)
        die("await");
    if (unitape_subscription_open(argv[1], name, UNITAPE_START_OLDEST, 0, &prices) != UNITAPE_OK)
        die("open");
    while (seen.count < count) {
        took = unitape_subscription_poll(prices, count - seen.count, take, &seen);
        if (took < 0)
            die("poll");
        /* What is acknowledged does not come again. Once for many frames, because it is a system call. */
        if (took > 0 && name && unitape_subscription_acknowledge(prices) != UNITAPE_OK)
            die("acknowledge");
        if (took == 0 && unitape_subscription_wait(prices, UNITAPE_WAIT_BALANCED, 1000000000) < 0)
            die("wait");
    }
    printf("%llu prices, from number %llu\n", (unsigned long long)seen.count, (unsigned long long)seen.first);
    unitape_subscription_close(prices);
    return 0;
}
