/*
 * Quotes over a ring tape, of which only the newest count. The writer never waits; unitape_ring_reader_losses counts
 * the quotes that a reader lost.
 *
 *     quotes write PATH COUNT      PATH is a file, best below /dev/shm
 *     quotes read PATH COUNT       from the oldest that is left, until quote number COUNT - 1 is read or lost
 */
#include "unitape.h"

#include "price.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what)
{
    fprintf(stderr, "quotes: %s: %s\n", what, unitape_last_error());
    exit(1);
}

static void write_quotes(const char *path, uint64_t count)
{
    unitape_ring *ring;
    struct price price;
    uint64_t number, first;

    if (unitape_ring_open(path, 64 << 10, &ring) != UNITAPE_OK)
        die("open");
    if (unitape_ring_end(ring, NULL, &first) != UNITAPE_OK)
        die("end");
    for (number = first; number < first + count; ++number) {
        price_of(number, &price);
        if (unitape_ring_offer(ring, TOPIC_EURUSD, &price, sizeof price, NULL) != UNITAPE_OK)
            die("offer");
    }
    if (unitape_ring_close(ring) != UNITAPE_OK)
        die("close");
    printf("%llu quotes, from number %llu\n", (unsigned long long)count, (unsigned long long)first);
}

static void read_quotes(const char *path, uint64_t count)
{
    unitape_ring_reader *ring;
    unitape_losses losses = {0, 0, 0};
    unitape_frame frame;
    struct price price, wanted;
    uint64_t first, next, seen = 0;
    int32_t code;

    if (unitape_ring_reader_open(path, UNITAPE_START_OLDEST, 0, &ring) != UNITAPE_OK)
        die("open");
    /* A quote's number is that of its frame: nothing else is on this ring. */
    if (unitape_ring_reader_position(ring, NULL, &first) != UNITAPE_OK)
        die("position");
    while (first + seen + losses.events < count) {
        code = unitape_ring_reader_next(ring, &frame);
        if (code == UNITAPE_E_OVERRUN) {
            /* Not the end: this reader was too slow, and continues with the oldest quote that is left. */
            if (unitape_ring_reader_losses(ring, &losses) != UNITAPE_OK)
                die("losses");
        } else if (code < 0) {
            die("next");
        } else if (code == 0) {
            if (unitape_ring_reader_wait(ring, UNITAPE_WAIT_BALANCED, 1000000000) < 0)
                die("wait");
        } else {
            next = first + seen + losses.events;
            memcpy(&price, frame.bytes, sizeof price);
            price_of(next, &wanted);
            if (frame.length != sizeof price || memcmp(&price, &wanted, sizeof price) != 0) {
                fprintf(stderr, "quotes: position %llu: not quote %llu\n", (unsigned long long)frame.position,
                        (unsigned long long)next);
                exit(1);
            }
            seen += 1;
        }
    }
    printf("%llu quotes read, %llu lost in %llu overruns\n", (unsigned long long)seen,
           (unsigned long long)losses.events, (unsigned long long)losses.overruns);
    unitape_ring_reader_close(ring);
}

int main(int argc, char **argv)
{
    if (argc != 4 || (strcmp(argv[1], "write") != 0 && strcmp(argv[1], "read") != 0)) {
        fprintf(stderr, "usage: quotes write|read PATH COUNT\n");
        return 2;
    }
    if (strcmp(argv[1], "write") == 0)
        write_quotes(argv[2], strtoull(argv[3], NULL, 10));
    else
        read_quotes(argv[2], strtoull(argv[3], NULL, 10));
    return 0;
}
