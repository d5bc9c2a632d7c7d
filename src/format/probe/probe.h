// SPDX-License-Identifier: MIT
/* probe.h - what `tbd probe` and an armed program say to each other
 *
 * The consumer connects to the keeper of an armed program (hooks/probes/keeper.h), at the abstract Unix
 * address of TBD_PROBE_ADDRESS, and sends packets: OPEN, then CODE, PLACE and TAKE as often as it likes, also
 * after START.  Each is answered by one struct tbd_probe_reply.  The reply to OPEN carries a descriptor of the
 * session's memory, which the keeper has made: struct tbd_probe_shared, maps, rings.  The session ends
 * with STOP, or when either side closes the connection.
 *
 * Both sides check everything that comes from the other one: sizes, places, numbers.  Code goes forward only:
 * every skip leads to a later instruction, so its length bounds its time. */
#ifndef TBD_FORMAT_PROBE_H
#define TBD_FORMAT_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#define TBD_PROBE_VERSION      2u
#define TBD_PROBE_MAGIC        0x65626f7270646274ull /* "tbdprobe" */
#define TBD_PROBE_PACKET_BYTES 32768u
/* Without its leading zero: the number of the process' pid namespace, and its pid there. */
#define TBD_PROBE_ADDRESS "tbd-armed-%lu-%u"
/* Where a consumer listens that follows the process to the programs that it executes: they wait for it. */
#define TBD_PROBE_FOLLOW_ADDRESS "tbd-follow-%lu-%u"
#define TBD_PROBE_ADDRESS_BYTES  64u

#define TBD_PROBE_MAX_CODE   16384u  /* instructions of a session */
#define TBD_PROBE_MAX_USES   262144u /* places of a session, one for each piece of code there */
#define TBD_PROBE_MAX_MAPS   32u
#define TBD_PROBE_REGISTERS  16u
#define TBD_PROBE_KEY_BYTES  256u /* of a map's key at most */
#define TBD_PROBE_TEXT_BYTES 128u /* of a text at most */
#define TBD_PROBE_RECORD_MAX 1024u
#define TBD_PROBE_FRAMES     16u /* of a stack */
#define TBD_PROBE_SHARDS     4u  /* copies of each map: its value is their sum */
#define TBD_PROBE_RINGS      16u
#define TBD_PROBE_RING_BYTES (256u << 10) /* a power of two */
#define TBD_PROBE_PER_PACKET 1024u

/* ---- packets ---- */

enum tbd_probe_kind {
    TBD_PROBE_OPEN = 1,
    TBD_PROBE_CODE,  /* count instructions follow */
    TBD_PROBE_PLACE, /* count places follow */
    TBD_PROBE_TAKE,  /* count places follow, whose probes are taken away */
    TBD_PROBE_GUARD, /* count places follow: system calls that change masks and handlers */
    TBD_PROBE_START, /* hits count from now on */
    TBD_PROBE_STOP,  /* the reply comes when no thread is in a probe any more */
    TBD_PROBE_LEAVE, /* instead of OPEN: the keeper ends */
    TBD_PROBE_GUARD_FIRST, /* as GUARD, and before it: where a thread that blocks signals does not come to unblock them */
    TBD_PROBE_RUN, /* instead of OPEN: the keeper runs the consumer's program as its child (struct tbd_probe_run) */
};

struct tbd_probe_head {
    uint32_t kind;
    uint32_t count;
};

enum tbd_probe_map_kind {
    TBD_PROBE_COUNT = 1,
    TBD_PROBE_SUM,
    TBD_PROBE_AVG, /* count, sum */
    TBD_PROBE_MIN,
    TBD_PROBE_MAX,
    TBD_PROBE_STATS, /* count, sum, min, max */
    TBD_PROBE_HIST,  /* 65 powers of two: [0] negative, [1] zero, [n + 2] 2^n to 2^(n+1) - 1 */
    TBD_PROBE_LHIST, /* below, steps, above */
    TBD_PROBE_KINDS
};

#define TBD_PROBE_HIST_WORDS  66u
#define TBD_PROBE_LHIST_STEPS 1000u /* at most */

struct tbd_probe_map {
    uint32_t kind;      /* enum tbd_probe_map_kind */
    uint32_t key_bytes; /* a multiple of 8; 0: one value */
    uint32_t capacity;  /* keys; a power of two */
    uint32_t steps;     /* LHIST */
    int64_t low;        /* LHIST: the first step begins there */
    uint64_t width;     /* LHIST: of a step */
};

#define TBD_PROBE_DROP  1u /* a record that finds all rings full is lost, and counted */
#define TBD_PROBE_TRAPS 2u /* no probe becomes a jump */

struct tbd_probe_open {
    struct tbd_probe_head head; /* count: maps */
    uint32_t version;
    uint32_t flags;
    struct tbd_probe_map maps[TBD_PROBE_MAX_MAPS];
};

struct tbd_probe_place {
    uint64_t address;
    uint32_t code; /* index of the first instruction */
    uint32_t reserved;
};

/* Why a probe cannot be placed. */
enum tbd_probe_refusal {
    TBD_PROBE_OK = 0,
    TBD_PROBE_BAD_PACKET,    /* not as described here */
    TBD_PROBE_OTHER_VERSION, /* of this format */
    TBD_PROBE_BUSY,          /* there is a session already */
    TBD_PROBE_NO_MEMORY,
    TBD_PROBE_BAD_CODE,
    TBD_PROBE_NOT_CODE,       /* nothing executable is mapped there */
    TBD_PROBE_NO_INSTRUCTION, /* the bytes do not decode */
    TBD_PROBE_RAISES,         /* it raises a signal itself: ud2, int3, hlt */
    TBD_PROBE_UNSUPPORTED,    /* a far transfer, int 0x80, a branch through gs */
    TBD_PROBE_OURS,           /* code of the engine */
    TBD_PROBE_UNWRITABLE,     /* the kernel does not let us write there */
    TBD_PROBE_SIGNAL_BLOCKED, /* a thread blocks SIGTRAP */
    TBD_PROBE_TRACED,         /* a debugger has the process */
    TBD_PROBE_SHADOW_STACK,
    TBD_PROBE_STARVED, /* a thread that wants to run does not get a processor, so it is not known whether it blocks SIGTRAP */
    TBD_PROBE_NOT_RUN, /* the consumer's program cannot be run */
    TBD_PROBE_AWAY, /* the keeper is not there while the process is taken over: its deputy answers */
    TBD_PROBE_REFUSALS
};

/* Comes with TBD_PROBE_RUN_FDS descriptors, of which the first four become the child's 0 to 3.  Texts follow, each with its NUL: arguments,
 * then the environment. */
struct tbd_probe_run {
    struct tbd_probe_head head; /* count: how many texts */
    uint32_t arguments;         /* how many of them are arguments */
    uint32_t reserved;
};

enum tbd_probe_run_fd {
    TBD_PROBE_RUN_INPUT,
    TBD_PROBE_RUN_OUTPUT,
    TBD_PROBE_RUN_MESSAGES,
    TBD_PROBE_RUN_STATUS,  /* it writes its exit status there, one byte */
    TBD_PROBE_RUN_PROGRAM, /* its file */
    TBD_PROBE_RUN_FOLDER,  /* its current one */
    TBD_PROBE_RUN_FDS,
};
#define TBD_PROBE_RUN_TEXTS 16u

struct tbd_probe_reply {
    uint32_t refusal; /* enum tbd_probe_refusal */
    uint32_t index; /* of the place or instruction that is refused; those before it are accepted */
    uint64_t
        detail; /* OPEN: bytes of the shared memory; SIGNAL_BLOCKED: the thread; START: how many probes are jumps */
};

/* ---- code ---- */

/* d, a, b name registers of the interpreter.  A value that cannot be read makes the hit unknown: its
 * code ends there, and it is counted (tbd_probe_shared.unknown). */
enum tbd_probe_op {
    TBD_PROBE_END = 1,
    TBD_PROBE_IMM,      /* d = imm, sign-extended */
    TBD_PROBE_IMM_HIGH, /* upper half of d = imm */
    TBD_PROBE_REG, /* d = the program's register imm: 0-15 in the order of the stream, 16 rip, 17 rflags */
    TBD_PROBE_LOAD, /* d = *(a + imm), b: 1, 2, 4, 8 bytes, + 16: signed */
    TBD_PROBE_ADD,
    TBD_PROBE_SUB,
    TBD_PROBE_MUL,
    TBD_PROBE_DIV, /* signed; by zero: unknown */
    TBD_PROBE_MOD,
    TBD_PROBE_AND,
    TBD_PROBE_OR,
    TBD_PROBE_XOR,
    TBD_PROBE_SHL,
    TBD_PROBE_SHR, /* logical */
    TBD_PROBE_SAR,
    TBD_PROBE_EQ,
    TBD_PROBE_NE,
    TBD_PROBE_LT, /* signed */
    TBD_PROBE_LE,
    TBD_PROBE_BELOW, /* unsigned */
    TBD_PROBE_BELOW_EQ,
    TBD_PROBE_NOT,       /* d = !a */
    TBD_PROBE_INVERT,    /* d = ~a */
    TBD_PROBE_NEGATE,    /* d = -a */
    TBD_PROBE_EXTEND,    /* d = a cut to b bytes (1, 2, 4), + 16: signed */
    TBD_PROBE_SKIP,      /* to instruction index + 1 + imm */
    TBD_PROBE_SKIP_ZERO, /* if a is 0 */
    TBD_PROBE_NSECS,     /* d = CLOCK_MONOTONIC */
    TBD_PROBE_TID,
    TBD_PROBE_PID,
    TBD_PROBE_CPU,
    TBD_PROBE_KEY,       /* appends a to the key */
    TBD_PROBE_KEY_TEXT,  /* the text at a, imm bytes (a multiple of 8), zeros after its end */
    TBD_PROBE_KEY_COMM,  /* 16 bytes */
    TBD_PROBE_KEY_STACK, /* imm addresses of 8 bytes, zeros after the last */
    TBD_PROBE_PUT,       /* a into map imm under the key, which is then empty */
    TBD_PROBE_RECORD,    /* begins a record with number imm */
    TBD_PROBE_FIELD,
    TBD_PROBE_FIELD_TEXT,
    TBD_PROBE_FIELD_COMM,
    TBD_PROBE_FIELD_STACK,
    TBD_PROBE_SEND,
    TBD_PROBE_EXIT,    /* the consumer is asked to end the session */
    TBD_PROBE_REAL,    /* d = a, b, which are bits of doubles; imm: enum tbd_probe_real_op */
    TBD_PROBE_TO_REAL, /* d = a as a double; imm: enum tbd_probe_real_kind */
    TBD_PROBE_VECTOR,  /* d = half b of the low 16 bytes of vector register imm; only in triggers */
    TBD_PROBE_PAUSE,   /* SIGSTOP to the process, at this thread */
    TBD_PROBE_AWAIT, /* this thread waits until the consumer has looked what the process has mapped */
    TBD_PROBE_CONTEXT, /* d = the calling context's value (base/calling.h); not known: unknown */
    TBD_PROBE_OPS
};

/* It leaves nothing anywhere but in a register of the interpreter, or skips, or ends. */
static inline bool tbd_probe_only_computes(unsigned op)
{
    return op <= TBD_PROBE_CPU || (op >= TBD_PROBE_REAL && op <= TBD_PROBE_VECTOR);
}

enum tbd_probe_real_op {
    TBD_PROBE_REAL_ADD,
    TBD_PROBE_REAL_SUB,
    TBD_PROBE_REAL_MUL,
    TBD_PROBE_REAL_DIV,
    TBD_PROBE_REAL_EQ, /* 0 or 1, as the others that follow */
    TBD_PROBE_REAL_NE,
    TBD_PROBE_REAL_LT,
    TBD_PROBE_REAL_LE,
    TBD_PROBE_REAL_OPS
};

enum tbd_probe_real_kind {
    TBD_PROBE_REAL_SIGNED, /* a number of 64 bits */
    TBD_PROBE_REAL_UNSIGNED,
    TBD_PROBE_REAL_FLOAT, /* the low half has a float */
    TBD_PROBE_REAL_KINDS
};

#define TBD_PROBE_VECTORS 16

struct tbd_probe_insn {
    uint8_t op;
    uint8_t d;
    uint8_t a;
    uint8_t b;
    int32_t imm;
};
_Static_assert(sizeof(struct tbd_probe_insn) == 8, "eight bytes each");

/* ---- shared memory ---- */

/* A record in a ring: this, then its fields; the length is a multiple of 8.  id 0 pads the end. */
struct tbd_probe_record {
    uint32_t bytes;
    uint32_t id;
    uint64_t sequence; /* of the session: the order of records */
};

struct tbd_probe_ring {
    _Alignas(64) uint32_t owner; /* the thread that writes, 0: none */
    uint32_t reserved;
    uint64_t head;              /* bytes written; the owner stores it with release */
    _Alignas(64) uint64_t tail; /* bytes read; the consumer stores it with release */
};

struct tbd_probe_shared {
    uint64_t magic;
    uint32_t version;
    uint32_t closed;   /* futex: nobody reads any more */
    uint32_t news;     /* futex: grows with records when the consumer sleeps */
    uint32_t sleeping; /* the consumer waits for news */
    uint32_t space;    /* futex: grows when the consumer has read */
    uint32_t waiting;  /* threads that wait for space */
    uint32_t
        wants_end; /* EXIT was executed, or the consumer is about to end: no thread stops any more */
    uint32_t asked;  /* times that AWAIT was executed */
    uint32_t looked; /* futex: how many of them the consumer has answered */
    uint32_t reserved;
    uint64_t lost;     /* records, only with TBD_PROBE_DROP */
    uint64_t map_full; /* values that found no place in their map */
    _Alignas(64) uint64_t sequence;
    struct {
        _Alignas(64) uint64_t hits; /* of started probes */
        uint64_t unknown;           /* hits whose code met a value that cannot be read */
    } shard[TBD_PROBE_SHARDS];
    struct tbd_probe_ring ring[TBD_PROBE_RINGS];
};

/* An entry of a map: a state, the key, the values.  Maps are one after the other from
 * TBD_PROBE_MAPS_AT, each TBD_PROBE_SHARDS times; the rings' bytes follow, at a multiple of 4096. */
enum tbd_probe_entry_state { TBD_PROBE_FREE = 0, TBD_PROBE_CLAIMED = 1, TBD_PROBE_VALID = 2 };

#define TBD_PROBE_MAPS_AT 8192u
_Static_assert(sizeof(struct tbd_probe_shared) <= TBD_PROBE_MAPS_AT, "maps come after it");

static inline uint32_t tbd_probe_value_words(const struct tbd_probe_map *map)
{
    switch (map->kind) {
    case TBD_PROBE_AVG: return 2;
    case TBD_PROBE_STATS: return 4;
    case TBD_PROBE_HIST: return TBD_PROBE_HIST_WORDS;
    case TBD_PROBE_LHIST: return map->steps + 2;
    default: return 1;
    }
}

static inline uint64_t tbd_probe_entry_bytes(const struct tbd_probe_map *map)
{
    return 8 + map->key_bytes + 8ull * tbd_probe_value_words(map);
}

static inline uint64_t tbd_probe_shard_bytes(const struct tbd_probe_map *map)
{
    return tbd_probe_entry_bytes(map) * map->capacity;
}

/* Where map `index` begins; `index` = count: where the last one ends. */
static inline uint64_t tbd_probe_map_at(const struct tbd_probe_map *maps, uint32_t index)
{
    uint64_t at = TBD_PROBE_MAPS_AT;

    for (uint32_t i = 0; i < index; i++)
        at += tbd_probe_shard_bytes(&maps[i]) * TBD_PROBE_SHARDS;
    return at;
}

static inline uint64_t tbd_probe_rings_at(const struct tbd_probe_map *maps, uint32_t count)
{
    return (tbd_probe_map_at(maps, count) + 4095) & ~4095ull;
}

static inline uint64_t tbd_probe_shared_bytes(const struct tbd_probe_map *maps, uint32_t count)
{
    return tbd_probe_rings_at(maps, count) + (uint64_t)TBD_PROBE_RINGS * TBD_PROBE_RING_BYTES;
}

#endif
