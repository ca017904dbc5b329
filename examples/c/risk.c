/*
 * A critical reader: the publisher must not leave it behind, so it attaches to the gate `risk` and says how far it has
 * come. It checks each price up to number LAST, and then waits until what it has seen survives power loss.
 *
 *     risk DIR LAST
 */
#include "unitape.h"

#include "price.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what)
{
    fprintf(stderr, "risk: %s: %s\n", what, unitape_last_error());
    exit(1);
}

struct seen {
    uint64_t next, count;
};

static int32_t take(void *context, const unitape_frame *frame)
{
    struct seen *seen = (struct seen *)context;
    struct price price, wanted;

    if (frame->kind != UNITAPE_KIND_MESSAGE || frame->topic != TOPIC_EURUSD || frame->length != sizeof price)
        return 0; /* somebody else's */
    memcpy(&price, frame->bytes, sizeof price);
    price_of(price.number, &wanted);
    /* Where the gate says drop there may be gaps, and nothing else. */
    if (price.number < seen->next || memcmp(&price, &wanted, sizeof price) != 0) {
        fprintf(stderr, "risk: position %llu: not a price behind %llu\n", (unsigned long long)frame->position,
                (unsigned long long)seen->next);
        exit(1);
    }
    seen->next = price.number + 1;
    seen->count += 1;
    return 0;
}

int main(int argc, char **argv)
{
    unitape_subscription *prices;
    unitape_gate_hold *gate;
    unitape_dropped dropped;
    unitape_lag lag;
    struct seen seen = {0, 0};
    uint64_t position, last;
    int32_t code;

    if (argc != 3) {
        fprintf(stderr, "usage: risk DIR LAST\n");
        return 2;
    }
    last = strtoull(argv[2], NULL, 10);
    if (unitape_await_tape(argv[1], UNITAPE_FOREVER) < 0)
        die("await");
    if (unitape_subscription_open(argv[1], NULL, UNITAPE_START_OLDEST, 0, &prices) != UNITAPE_OK)
        die("open");
    /* The tape is there a moment before its gates are. */
    while ((code = unitape_gate_attach(argv[1], "risk", 0, &gate)) == UNITAPE_E_NO_GATE)
        if (unitape_subscription_wait(prices, UNITAPE_WAIT_PARK, 1000000) < 0)
            die("wait");
    if (code != UNITAPE_OK)
        die("attach");
    while (seen.next <= last) {
        if (unitape_subscription_poll(prices, 100, take, &seen) < 0)
            die("poll");
        /* Dealt with, then told. Until then the publisher is at most 64 KiB ahead. */
        if (unitape_subscription_position(prices, &position, NULL) != UNITAPE_OK ||
            unitape_gate_advance(gate, position) != UNITAPE_OK)
            die("advance");
        if (unitape_subscription_wait(prices, UNITAPE_WAIT_BALANCED, 1000000000) < 0)
            die("wait");
    }
    if (unitape_gate_dropped(gate, &dropped) != UNITAPE_OK || unitape_subscription_lag(prices, &lag) != UNITAPE_OK)
        die("ask");
    unitape_gate_detach(gate);
    /* What was acted upon must not be taken back by a power loss. */
    if (unitape_subscription_wait_durable(prices, position, UNITAPE_FOREVER) != UNITAPE_OK)
        die("wait_durable");
    printf("%llu prices up to number %llu, %llu left out, %llu bytes behind\n", (unsigned long long)seen.count,
           (unsigned long long)(seen.next - 1), (unsigned long long)dropped.count, (unsigned long long)lag.bytes);
    unitape_subscription_close(prices);
    return 0;
}
