/* What the messages of the example hold: a price that anybody can compute from its number, so that it can be checked. */
#ifndef PRICE_H
#define PRICE_H

#include <stdint.h>

#define TOPIC_EURUSD 1

/* 24 bytes, in the order of this machine: tapes stay among machines of one kind, or their users agree on more. */
struct price {
    uint64_t number; /* from 0 */
    int64_t bid;     /* in 1e-9 */
    int64_t ask;
};

static void price_of(uint64_t number, struct price *price)
{
    price->number = number;
    price->bid = 1085000000 + (int64_t)(number * 7919 % 1000) * 10000;
    price->ask = price->bid + 20000;
}

#endif
