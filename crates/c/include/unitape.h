/*
 * unitape.h - the tape for C and everything that can call C.
 *
 * A tape is a directory with an append-only log in it: one publication writes, any number of subscriptions read,
 * in the same process or in others, in place and without a word to the writer. Messages are bytes under a topic.
 *
 *     unitape_publication *prices;
 *     if (unitape_publication_open("day/prices", NULL, &prices) != UNITAPE_OK)
 *         die(unitape_last_error());
 *     unitape_publication_offer(prices, 1, "EURUSD 1.0850", 13, NULL);
 *     unitape_publication_close(prices);
 *
 * Errors. A function gives a negative code when it has failed, and unitape_last_error() says why, where, and what
 * to do. After an error nothing was published, and the handle can be used on unless the code says otherwise.
 *
 * Handles. They are opaque, and closed once by the function of their kind. Pointers must be null where that is
 * allowed, or valid; a handle that was closed must not be used.
 *
 * Threads. A handle may go from thread to thread, but one thread at a time uses it (a mutex of yours, or one thread
 * that owns it). Different handles, of the same tape too, know nothing of each other and need no care. The last
 * error belongs to the thread. After fork() only the parent uses the handles of before.
 *
 * Signals. A write into a mapping for which the disk or the shared memory has no room is a signal (SIGBUS); the
 * tape reserves what it maps, so it does not come unless somebody cuts the files of a tape.
 *
 * Built by `cargo build --release -p unitape-c`: link with -lunitape_c (libunitape_c.so, or libunitape_c.a with
 * -lpthread -ldl -lm). C99 or C++98 and later, little-endian or not, 64 bits.
 */
#ifndef UNITAPE_H
#define UNITAPE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------- version, errors */

/* Version of this header. A library with another unitape_abi() does not fit: check it once at the start. */
#define UNITAPE_ABI 1

/* Version of the library's functions and structs. */
uint32_t unitape_abi(void);

/* Version of the library, such as "0.1.0". */
const char *unitape_version(void);

/* Codes. New ones may come; treat one that you do not know as UNITAPE_E_OTHER. */
enum {
    UNITAPE_OK = 0,                    /* done */
    UNITAPE_E_NULL = -1,               /* a pointer that must not be null is */
    UNITAPE_E_ARGUMENT = -2,           /* a value that this header does not allow */
    UNITAPE_E_MISUSE = -3,             /* a call that the state does not allow, such as while a claim is open */
    UNITAPE_E_PANIC = -4,              /* a mistake of ours, caught: the handle can only be closed */
    UNITAPE_E_OTHER = -5,              /* another error, see unitape_last_error() */
    UNITAPE_E_IO = -10,                /* the system refused */
    UNITAPE_E_DISK_FULL = -11,         /* no room; what is committed stays readable, and trying again is allowed */
    UNITAPE_E_DAMAGE = -12,            /* a file is not what it must be; what is durable is compared with its checksums */
    UNITAPE_E_NOT_A_TAPE = -13,        /* nothing, or something else, is in the directory */
    UNITAPE_E_FOREIGN_VERSION = -14,   /* a tape of a version that this library does not know */
    UNITAPE_E_FOREIGN_TAPE = -15,      /* a file of another tape, such as a cursor */
    UNITAPE_E_LOCKED = -16,            /* somebody else has the tape or the gate; the message says who */
    UNITAPE_E_OPTION = -17,            /* an option or a name that cannot be used */
    UNITAPE_E_BAD_UNIT = -18,          /* too long for a frame or a segment, or not whole frames */
    UNITAPE_E_CLAIM_ABANDONED = -19,   /* close the publication and open it again */
    UNITAPE_E_CLAIMS_OUTSTANDING = -20, /* claims are out, of which this header has one at a time: not met in C */
    UNITAPE_E_RECORDER_BEHIND = -21,   /* the window of hot segments is full: the disk is too slow; try again */
    UNITAPE_E_RETAINED = -22,          /* retention has removed that place; the message says where the tape begins */
    UNITAPE_E_NO_FRAME = -23,          /* no committed frame starts at that position */
    UNITAPE_E_NOT_DURABLE = -24,       /* it did not become durable in time */
    UNITAPE_E_DURABILITY_FAILED = -25, /* a flush has failed; the message says what becomes of it */
    UNITAPE_E_NO_RECORDER = -26,       /* nobody runs who could make it durable */
    UNITAPE_E_BEYOND_END = -27,        /* the tape does not reach that position yet */
    UNITAPE_E_NOT_REMOVED = -28,       /* retention could not remove what its limits say; nothing was removed */
    UNITAPE_E_CLOCK = -29,             /* the clock is behind what the tape knows */
    UNITAPE_E_GATED = -31,             /* a reader that is waited for has not come far enough in time; try again */
    UNITAPE_E_DROPPED = -32,           /* not published, for nobody: a reader is too far behind, its gate says drop */
    UNITAPE_E_NO_GATE = -33,           /* no gate of that name; the publication declares it in its options */
    UNITAPE_E_REWOUND = -36,           /* the tape was cut back before the place of this reader, which continues there */
    UNITAPE_E_FENCED = -37,            /* a later writer has opened the tape: close this publication */
    UNITAPE_E_OLD_EPOCH = -38,         /* the writer would have an epoch less than epoch_min: an older copy of the tape */
    UNITAPE_E_FORKED = -39,            /* a child of the process that opened it used it: open a tape where it is written */
    UNITAPE_E_HOT = -40                /* hot segments of another tape, or that others may write to; see the message */
};

/*
 * Why the last call of this thread that failed has failed, with the place and what to do; "" before the first.
 * Stays valid until the next call of this thread that fails.
 */
const char *unitape_last_error(void);

/* "DISK_FULL" for UNITAPE_E_DISK_FULL, and so on; "?" for a code that does not exist. */
const char *unitape_code_name(int32_t code);

/* -------------------------------------------------------------------------------------------------- publication */

/* The one writing end of a tape. */
typedef struct unitape_publication unitape_publication;

enum {
    UNITAPE_BACKING_FILE = 0, /* segments in the tape's directory: for batch, and where latency does not matter */
    UNITAPE_BACKING_HOT = 1   /* segments in shared memory, copied to the directory by a recorder: for live feeds */
};

enum {
    UNITAPE_RECORDER_THREAD = 0,  /* a thread of this process records a hot tape */
    UNITAPE_RECORDER_EXTERNAL = 1 /* a process of its own does */
};

enum {
    UNITAPE_TRUNCATE_DAMAGE = 1, /* cut the tape at damage beyond the durable position instead of refusing it */
    UNITAPE_NO_PREFAULT = 2      /* do not touch pages of a file ahead of the writer */
};

enum {
    UNITAPE_GATE_WAIT = 0, /* wait for the reader, at most timeout_ns, then UNITAPE_E_GATED: nothing was published */
    UNITAPE_GATE_DROP = 1  /* UNITAPE_E_DROPPED at once: the message is not published, for nobody, and counted */
};

/*
 * A gate: a critical reader that the publication must not leave behind; never by default. The reader attaches under
 * the name (unitape_gate_attach) and says how far it has come. One that never came, has detached or has died holds
 * nobody up, unless it is required.
 */
typedef struct unitape_gate {
    const char *reader;   /* name of the reader: letters, digits, - and _ */
    uint64_t ahead_bytes; /* how far the publication may be ahead of what the reader has dealt with; at least 64 */
    uint64_t timeout_ns;  /* of UNITAPE_GATE_WAIT: how long; 0: 1 s */
    uint32_t policy;      /* UNITAPE_GATE_... */
    uint32_t required;    /* 1: also while the reader is not there, from where it was last; otherwise 0 */
    uint64_t reserved;    /* 0 */
} unitape_gate;

/*
 * How a tape is opened for publishing. Set it with unitape_options_init, then change what should be otherwise:
 *
 *     unitape_options options;
 *     unitape_options_init(&options, sizeof options);
 *     options.backing = UNITAPE_BACKING_HOT;
 *
 * Zero in a field means its default. Later versions add fields at the end; `size` says which ones you have.
 */
typedef struct unitape_options {
    uint32_t size;              /* set by unitape_options_init */
    uint32_t backing;           /* UNITAPE_BACKING_... */
    uint64_t segment_bytes;     /* a power of two, 64 MiB; an existing tape keeps its own */
    const char *hot_dir;        /* of a hot tape: where; a directory of its own in shared memory */
    uint32_t window_segments;   /* of a hot tape: segments in shared memory at once, 8; the recorder's leeway */
    uint32_t recorder;          /* of a hot tape: UNITAPE_RECORDER_... */
    uint64_t sync_bytes;        /* flush after this many bytes; 0 in both: when the publication closes */
    uint64_t sync_interval_ns;  /* ... or after this time, whichever comes first */
    uint64_t retain_bytes;      /* keep about this much of the tape's end; 0: all. Whole segments go, oldest first, */
    uint64_t retain_age_ns;     /* ... or segments finished within this time; 0: all */
    uint64_t retain_days;       /* ... or on the last N days of UTC, today included; 0: all */
    uint64_t retain_notice_ns;  /* time between announcement and removal, 1 s; see unitape_subscription_lag */
    uint64_t retain_cursor_bytes; /* keep segments that named subscriptions have not read, up to this; 0: none */
    uint64_t prefault_bytes;    /* how far ahead pages of a file are touched, 8 MiB */
    uint64_t recorder_wait_ns;  /* wait so long for a recorder that is behind, 5 s, then UNITAPE_E_RECORDER_BEHIND */
    uint64_t flags;             /* UNITAPE_TRUNCATE_DAMAGE, UNITAPE_NO_PREFAULT */
    const unitape_gate *gates;  /* readers that must not be left behind; copied when the publication opens */
    uint64_t gate_count;        /* how many; 0: none */
    uint64_t epoch_min;         /* the least epoch that the publication may have, else UNITAPE_E_OLD_EPOCH; 0: any */
} unitape_options;

/* Sets all fields to their defaults. `size` is sizeof(unitape_options). */
int32_t unitape_options_init(unitape_options *options, size_t size);

/*
 * Opens the tape in `dir` for publishing: makes it if there is none, with the directories above it, or continues
 * at its end, recovering what a publisher that was killed has left. `options` may be null: all defaults.
 */
int32_t unitape_publication_open(const char *dir, const unitape_options *options, unitape_publication **publication);

/*
 * Flushes everything to the disk, waits for the recorder, and ends the publication. A claim or batch that is open
 * is given up. The handle is gone whatever this returns, but for UNITAPE_E_MISUSE; after an error the tape is as
 * if the process had been killed, and opening it again recovers it. Null is allowed and does nothing. In a child that
 * was forked from the process that opened it: UNITAPE_E_FORKED, and the publication of the parent continues.
 */
int32_t unitape_publication_close(unitape_publication *publication);

/*
 * Publishes `length` bytes under a topic: copied onto the tape, seen by all subscriptions when this returns. No
 * system call, lock or allocation while it fits the segment. `position` may be null.
 */
int32_t unitape_publication_offer(unitape_publication *publication, uint32_t topic, const void *bytes, size_t length,
                                  uint64_t *position);

/*
 * The same without the copy: gives out the place on the tape where the message will stand, `length` bytes of zeros
 * (aligned to 16). Write into it, then unitape_publication_commit or unitape_publication_abort; not another byte of
 * the tape, and not after that. One claim at a time. A process that dies meanwhile leaves nothing behind.
 */
int32_t unitape_publication_claim(unitape_publication *publication, uint32_t topic, size_t length, void **bytes);

/*
 * Begins a batch: messages that are pushed one after the other and seen together, which spares the cache lines
 * between publisher and subscribers. End it with unitape_publication_commit or unitape_publication_abort.
 */
int32_t unitape_publication_batch(unitape_publication *publication);

/* Adds a message to the open batch. After an error the batch is as before. */
int32_t unitape_publication_push(unitape_publication *publication, uint32_t topic, const void *bytes, size_t length);

/*
 * Publishes the claim or the batch that is open. `position`, of the (first) message, may be null. Nothing is open
 * afterwards, also after an error, when nothing was published.
 */
int32_t unitape_publication_commit(unitape_publication *publication, uint64_t *position);

/* Gives up the claim or the batch that is open: it never was. Allowed when nothing is open. */
int32_t unitape_publication_abort(unitape_publication *publication);

/*
 * Publishes frames of any kind, such as events: `unit` is some whole frames of 64-byte lines, each with an unstamped
 * header word (unitape_frame_header), the last one with UNITAPE_FRAME_LAST. docs/formats-events.md and
 * docs/formats-tape.md describe the contents of frames. UNITAPE_E_BAD_UNIT for frames of the tape's account, which
 * unitape writes itself: kinds 3 to 15 and 40, events (kinds 16 to 45) whose source is not 0, and frames whose flag
 * UNITAPE_FRAME_META is not that of their kind.
 */
int32_t unitape_publication_append(unitape_publication *publication, const void *unit, size_t length,
                                   uint64_t *position);

/* Where the next message will stand, and how many frames that are not bookkeeping were published before it. Each may
 * be null. Not while a claim or a batch is open. */
int32_t unitape_publication_end(unitape_publication *publication, uint64_t *position, uint64_t *ordinal);

/* Up to where the recorder has come; in a hot tape what is before is in files. Not while a claim or a batch is
 * open. */
int32_t unitape_publication_recorded(unitape_publication *publication, uint64_t *position);

/*
 * Waits until everything before `position` is durable: it survives power loss, not the death of this process alone,
 * which everything published does. The recorder flushes at once; all who wait share one flush. For the end of the
 * tape ask unitape_publication_end. UNITAPE_E_NOT_DURABLE when `timeout_ns` has passed. Not while a claim or a
 * batch is open.
 */
int32_t unitape_publication_wait_durable(unitape_publication *publication, uint64_t position, uint64_t timeout_ns);

/* What is before this position is durable. Not while a claim or a batch is open. */
int32_t unitape_publication_durable(unitape_publication *publication, uint64_t *position);

/* What was dropped at a gate since the publication made it. */
typedef struct unitape_dropped {
    uint64_t count; /* messages, appends or claims */
    uint64_t bytes; /* of them */
    uint64_t first; /* the first of them would have stood at this position */
    uint64_t last;  /* the last of them */
} unitape_dropped;

/* A gate as it stands. */
typedef struct unitape_gate_standing {
    uint64_t position;       /* the reader has dealt with everything before this */
    unitape_dropped dropped; /* what the reader was not sent, nor anybody else */
    uint64_t waits;          /* how often the publication waited for it */
    uint32_t alive;          /* 1: a live reader is attached; 0: none is */
    uint32_t reserved;       /* 0 */
} unitape_gate_standing;

/*
 * The gate of `reader` that this publication has declared; UNITAPE_E_NO_GATE if it has not. Not while a claim or a
 * batch is open.
 */
int32_t unitape_publication_gate(unitape_publication *publication, const char *reader, unitape_gate_standing *standing);

/* ------------------------------------------------------------------------------------------------- subscription */

/* A reading end of a tape. */
typedef struct unitape_subscription unitape_subscription;

/* Kinds of frames: messages, and what docs/formats-events.md lists. */
enum { UNITAPE_KIND_MESSAGE = 64 };

/* Flags of frames. */
enum {
    UNITAPE_FRAME_LAST = 1,     /* the unit of commit ends here; every message is one of its own */
    UNITAPE_FRAME_LATE = 2,     /* appended out of its time order */
    UNITAPE_FRAME_META = 4,     /* bookkeeping, not counted in the ordinal */
    UNITAPE_FRAME_SNAPSHOT = 8, /* part of a snapshot, not a change */
    UNITAPE_FRAME_EXT = 16,     /* an extension follows the fixed part */
    UNITAPE_FRAME_CLOCK_AHEAD = 32 /* its time leads by more than it may; the merge did not believe it */
};

/*
 * A frame, in place: the bytes are those of the tape. They stay as they are until the next call of
 * unitape_subscription_next, _poll, _wait, _seek or _close for the same subscription (and for
 * unitape_subscription_at, until its next call). They are read-only: a write is a fault.
 */
typedef struct unitape_frame {
    uint64_t position;    /* where it stands; a multiple of 64 */
    const void *bytes;    /* the message, aligned to 16; of a frame of another kind all of it */
    size_t length;        /* bytes of it */
    const void *frame;    /* the whole frame, header word first */
    size_t frame_length;  /* a multiple of 64 */
    uint32_t topic;       /* of a message; otherwise 0 */
    uint8_t kind;         /* UNITAPE_KIND_MESSAGE, or a kind of event */
    uint8_t flags;        /* UNITAPE_FRAME_... */
    uint16_t reserved;    /* 0 */
} unitape_frame;

enum {
    UNITAPE_START_OLDEST = 0, /* at the oldest frame that is there */
    UNITAPE_START_END = 1,    /* behind the newest */
    UNITAPE_START_AT = 2,     /* at `position`: that of a frame, or the one behind it */
    /* added to one of these, for a subscription: where retention has removed the place, at the oldest one there is;
     * unitape_subscription_skipped then returns what was lost. Without it that is UNITAPE_E_RETAINED. */
    UNITAPE_START_OR_OLDEST = 256
};

enum {
    UNITAPE_WAIT_BALANCED = 0, /* spin for microseconds, then yield, then sleep 50 us at a time: shared cores */
    UNITAPE_WAIT_SPIN = 1,     /* keep the core: lowest latency, for a thread that owns its core */
    UNITAPE_WAIT_PARK = 2      /* sleep early: for readers to whom a tenth of a millisecond means nothing */
};

#define UNITAPE_FOREVER UINT64_MAX

/*
 * Waits until somebody has made the tape in `dir`, so that services may be started in any order: 1, or 0 when
 * `timeout_ns` has passed.
 */
int32_t unitape_await_tape(const char *dir, uint64_t timeout_ns);

/*
 * Subscribes to the tape in `dir`. With a `name` (letters, digits, - and _) it continues where a subscription of that
 * name has acknowledged last, and `start` is for the first time; one at a time has a name. Without one (null) it
 * begins at `start`. `position` counts for UNITAPE_START_AT alone. UNITAPE_E_RETAINED: retention has removed the place;
 * the message says where the tape begins now, and UNITAPE_START_OR_OLDEST begins there.
 * What is durable is compared with its checksums before it is given out: UNITAPE_E_DAMAGE, here and from _next, _poll,
 * _wait, _seek and _at, with the file and the positions in the message. What comes live is not, and costs nothing.
 */
int32_t unitape_subscription_open(const char *dir, const char *name, uint32_t start, uint64_t position,
                                  unitape_subscription **subscription);

/*
 * The same for a subscriber that keeps its place itself, together with what it did: `position` is that of
 * unitape_subscription_position, `epoch` that of unitape_subscription_epoch at the same time (0: unknown). If the tape
 * was cut back before that place since, the first look at the tape gives UNITAPE_E_REWOUND.
 */
int32_t unitape_subscription_resume(const char *dir, uint64_t epoch, uint64_t position,
                                    unitape_subscription **subscription);

/* The epoch of the writer whose frames this subscription reads. */
int32_t unitape_subscription_epoch(unitape_subscription *subscription, uint64_t *epoch);

/*
 * How often the tape was cut back, by a power loss or at damage, before the place of this subscription; where the
 * subscription was and where it continued, the last time. Each may be null. unitape_subscription_next, _poll and _wait
 * return UNITAPE_E_REWOUND once for each time. Reading continues with the next call, and nothing is lost.
 */
int32_t unitape_subscription_rewound(unitape_subscription *subscription, uint64_t *count, uint64_t *from, uint64_t *to);

/* Ends the subscription; nobody else notices. Null is allowed and does nothing. */
int32_t unitape_subscription_close(unitape_subscription *subscription);

/*
 * The next frame: 1, or 0 when nothing more is committed yet. UNITAPE_E_RETAINED: retention was faster than this
 * subscription; unitape_subscription_skip_to_oldest resumes and returns what was lost. UNITAPE_E_REWOUND: the tape
 * was cut back before this subscription's place; call again for the frames that the tape has from the cut on.
 */
int32_t unitape_subscription_next(unitape_subscription *subscription, unitape_frame *frame);

/*
 * Called with each frame. 0: continue; anything else: enough, this one counts as read. It must return (no longjmp, no
 * exception), and must not use the subscription it is called for.
 */
typedef int32_t (*unitape_callback)(void *context, const unitape_frame *frame);

/*
 * Hands up to `limit` frames that are there to `callback`, in order. Gives how many, or a code, when what came
 * before the error was handed over.
 */
int64_t unitape_subscription_poll(unitape_subscription *subscription, uint64_t limit, unitape_callback callback,
                                  void *context);

/*
 * Waits until a frame is there, in one of the ways of UNITAPE_WAIT_...: 1, or 0 when `timeout_ns` has passed. The
 * publisher makes no system call to wake anybody.
 */
int32_t unitape_subscription_wait(unitape_subscription *subscription, uint32_t strategy, uint64_t timeout_ns);

/*
 * Stores that everything read so far, the frame that was given last included, has been dealt with: the next
 * subscription of the name continues after it. One system call: once for many frames is often enough. What was read
 * and not acknowledged comes again, so every frame is dealt with at least once.
 */
int32_t unitape_subscription_acknowledge(unitape_subscription *subscription);

/*
 * Waits until everything before `position` survives power loss, as unitape_publication_wait_durable does: for a
 * subscriber that must not act on what a power loss could take back. After unitape_subscription_next the position
 * of unitape_subscription_position covers the frame. A user who may only read the tape cannot ask the recorder for an
 * earlier flush, and waits for the next one.
 */
int32_t unitape_subscription_wait_durable(unitape_subscription *subscription, uint64_t position, uint64_t timeout_ns);

/* What is before this position is durable. */
int32_t unitape_subscription_durable(unitape_subscription *subscription, uint64_t *position);

/* Behind the last frame read, and how many frames that are not bookkeeping stand before that. Each may be null. */
int32_t unitape_subscription_position(unitape_subscription *subscription, uint64_t *position, uint64_t *ordinal);

/* How far a subscription is behind. */
typedef struct unitape_lag {
    uint64_t bytes;               /* of tape that are published and not read */
    uint64_t events;              /* frames that are not bookkeeping among them */
    uint64_t until_removal_bytes; /* from here back to what is gone or announced to go; 0: read on quickly */
} unitape_lag;

/*
 * How far the subscription is behind the tape's end, as its publisher's helper thread reported it last: within
 * about a millisecond. Costs the publisher nothing.
 */
int32_t unitape_subscription_lag(unitape_subscription *subscription, unitape_lag *lag);

/*
 * After UNITAPE_E_RETAINED: continues at the oldest frame that is there, and returns what was lost on the way: bytes of
 * tape, and frames that are not bookkeeping. Each may be null. Nothing moves if nothing of it is gone.
 */
int32_t unitape_subscription_skip_to_oldest(unitape_subscription *subscription, uint64_t *bytes, uint64_t *events);

/*
 * All that this subscription has skipped because retention had removed it: by unitape_subscription_skip_to_oldest, or
 * when it was opened with UNITAPE_START_OR_OLDEST (then the frames are known where the name was acknowledged by a
 * subscription, otherwise 0). Each may be null.
 */
int32_t unitape_subscription_skipped(unitape_subscription *subscription, uint64_t *bytes, uint64_t *events);

/* Goes to the frame at `position`, or to the end of the one before it. */
int32_t unitape_subscription_seek(unitape_subscription *subscription, uint64_t position);

/* The frame at `position`, a position that the tape has given out, without moving the subscription. */
int32_t unitape_subscription_at(unitape_subscription *subscription, uint64_t position, unitape_frame *frame);

/* ----------------------------------------------------------------------------------------------- named places */

/*
 * The place of the name `name` on the tape in `dir`, where the next subscription of that name will begin: 1, or 0 when
 * it has none. Subscriptions keep it by themselves; these are for looking, setting back, and giving up.
 */
int32_t unitape_cursor_load(const char *dir, const char *name, uint64_t *position);

/*
 * Sets the place: what comes before `position` has been dealt with. It counts as read in the epoch that the tape has now;
 * the first time of a name is flushed to the disk. Not while a subscription of that name is open.
 */
int32_t unitape_cursor_store(const char *dir, const char *name, uint64_t position);

/* Gives the name up: it is as if it had never been. One that is not there is no error. */
int32_t unitape_cursor_delete(const char *dir, const char *name);

/* -------------------------------------------------------------------------------------------------------- gates */

/* A reader's hold on its gate. Its process's death lets the publication continue. */
typedef struct unitape_gate_hold unitape_gate_hold;

/*
 * Attaches to the gate `reader` that the publication of the tape in `dir` has declared, as a reader that has dealt with
 * everything before `position`, usually unitape_subscription_position. UNITAPE_E_NO_GATE: it has declared none of that
 * name. UNITAPE_E_LOCKED: another reader has it.
 */
int32_t unitape_gate_attach(const char *dir, const char *reader, uint64_t position, unitape_gate_hold **hold);

/* Lets go: the publication continues without this reader, unless it is required. Null is allowed and does nothing. */
int32_t unitape_gate_detach(unitape_gate_hold *hold);

/* Says that everything before `position` has been dealt with. A store, no system call; never backwards. */
int32_t unitape_gate_advance(unitape_gate_hold *hold, uint64_t position);

/* After UNITAPE_E_REWOUND: goes back to `position`, that of unitape_subscription_position. */
int32_t unitape_gate_rewind(unitape_gate_hold *hold, uint64_t position);

/*
 * Whether the publication has seen that this reader is here: 1, or 0 before it has looked (at the latest after
 * ahead_bytes), and when no publication has the tape open with this gate.
 */
int32_t unitape_gate_is_heeded(unitape_gate_hold *hold);

/* What was dropped for this reader's sake. */
int32_t unitape_gate_dropped(unitape_gate_hold *hold, unitape_dropped *dropped);

/* ------------------------------------------------------------------------------------------------------- frames */

/*
 * The header word of a frame for unitape_publication_append, to be stored in its first eight bytes as it is. `lines`
 * is its length in lines of 64 bytes.
 */
uint64_t unitape_frame_header(uint8_t kind, uint8_t flags, uint16_t lines);

#ifdef __cplusplus
}
#endif

#endif
