// SPDX-License-Identifier: MIT
/* stream_maker.c - see stream_maker.h */
#include "stream_maker.h"

#include "base/hash.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHUNKS     8u
#define DEFS       4096u
#define HEAP_BYTES (4u << 20)

static size_t page_up(size_t bytes)
{
    return (bytes + 4095) & ~(size_t)4095;
}

static void require(bool good)
{
    if (!good)
        abort();
}

/* ---- lower half ---- */

/* Any order will do, as long as a slot is free when it is filled. */
static uint32_t slot_of(uint32_t number)
{
    return number * 5 % CHUNKS;
}

static uint8_t *entries_of(const struct maker *m)
{
    return m->bytes + m->head->chunks_offset + (size_t)slot_of(m->number) * TBD_CHUNK_STRIDE;
}

static void open_chunk(struct maker *m)
{
    struct tbd_chunk *chunk = &m->head->chunks[m->number % CHUNKS];

    while (!m->alone && m->number - __atomic_load_n(&m->head->released, __ATOMIC_ACQUIRE) >= CHUNKS)
        usleep(200);
    *chunk = (struct tbd_chunk){ .first_time = m->time,
                                 .entry_count = TBD_COUNT_OPEN,
                                 .slot = slot_of(m->number) };
    if (m->chunk_entries && m->chunk_entries < 1000)
        chunk->entries_offset = TBD_ENTRIES_BYTES - 1000 * 4;
    m->entries = 0;
    m->operands = 0;
}

void maker_open(struct maker *m, uint32_t chunk_entries)
{
    size_t defs = page_up(sizeof(struct tbd_stream_head));
    size_t heap = defs + page_up(DEFS * sizeof(struct tbd_block_def));
    size_t chunks = heap + HEAP_BYTES;

    *m = (struct maker){ .fd = memfd_create("stream", MFD_CLOEXEC),
                         .chunk_entries = chunk_entries,
                         .size = chunks + (size_t)CHUNKS * TBD_CHUNK_STRIDE };
    require(m->fd >= 0 && !ftruncate(m->fd, (off_t)m->size));
    m->bytes = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
    require(m->bytes != MAP_FAILED);
    m->head = (struct tbd_stream_head *)(void *)m->bytes;
    *m->head = (struct tbd_stream_head){
        .magic = TBD_STREAM_MAGIC,
        .version = TBD_STREAM_VERSION,
        .chunk_count = CHUNKS,
        .defs_offset = defs,
        .heap_offset = heap,
        .chunks_offset = chunks,
        .total_bytes = m->size,
        .def_capacity = DEFS,
        .chunk_stride = TBD_CHUNK_STRIDE,
        .heap_capacity = HEAP_BYTES,
        .window_blocks = 1000,
        .hook_set = TBD_HOOKS_PLAY,
        .pid = (uint32_t)getpid(),
    };
    open_chunk(m);
}

void maker_close(struct maker *m)
{
    munmap(m->bytes, m->size);
    close(m->fd);
}

uint32_t maker_define(struct maker *m, struct tbd_block_def *def, const struct tbd_op *ops,
                      const uint8_t *code)
{
    struct tbd_stream_head *head = m->head;
    uint8_t *heap = m->bytes + head->heap_offset;

    def->ops_offset = (head->heap_used + 7) & ~7ull;
    def->code_offset = def->ops_offset + def->op_count * sizeof(*ops);
    def->code_hash = tbd_hash64(code, def->code_bytes);
    memcpy(heap + def->ops_offset, ops, def->op_count * sizeof(*ops));
    memcpy(heap + def->code_offset, code, def->code_bytes);
    head->heap_used = def->code_offset + def->code_bytes;
    memcpy(m->bytes + head->defs_offset + head->def_count * sizeof(*def), def, sizeof(*def));
    __atomic_store_n(&head->def_count, head->def_count + 1, __ATOMIC_RELEASE);
    return head->def_count;
}

void maker_turn(struct maker *m, uint32_t flags)
{
    struct tbd_chunk *chunk = &m->head->chunks[m->number % CHUNKS];

    chunk->operand_bytes = m->operands;
    chunk->flags = flags;
    chunk->entry_count = m->entries;
    m->number++;
    __atomic_store_n(&m->head->published, m->number, __ATOMIC_RELEASE);
    syscall(SYS_futex, &m->head->published, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    open_chunk(m);
}

static void make_space(struct maker *m, size_t bytes)
{
    const struct tbd_chunk *chunk = &m->head->chunks[m->number % CHUNKS];
    uint32_t limit = (TBD_ENTRIES_BYTES - chunk->entries_offset) / 4;

    if (m->chunk_entries && m->chunk_entries < limit)
        limit = m->chunk_entries;
    if (m->entries >= limit || m->operands + bytes > TBD_OPERANDS_BYTES)
        maker_turn(m, 0);
}

static void put(struct maker *m, uint32_t entry, const void *head, size_t head_bytes,
                const void *data, size_t bytes)
{
    uint8_t *entries = entries_of(m);
    uint8_t *operands = entries + TBD_ENTRIES_BYTES + 4096 + m->operands;
    uint32_t *slot =
        (uint32_t *)(void *)(entries + m->head->chunks[m->number % CHUNKS].entries_offset) +
        m->entries;

    if (head_bytes)
        memcpy(operands, head, head_bytes);
    if (bytes)
        memcpy(operands + head_bytes, data, bytes);
    __atomic_store_n(slot, entry, __ATOMIC_RELEASE);
    m->operands += (uint32_t)(head_bytes + bytes);
    m->entries++;
}

void maker_enter(struct maker *m, uint32_t id, const void *record, uint32_t bytes)
{
    make_space(m, bytes);
    put(m, id, NULL, 0, record, bytes);
    m->time++;
}

void maker_message(struct maker *m, uint32_t kind, const void *payload, size_t bytes)
{
    struct tbd_message head = { kind, (uint32_t)bytes };

    make_space(m, sizeof(head) + bytes);
    put(m, TBD_ENTRY_MESSAGE | kind, &head, sizeof(head), payload, bytes);
}

void maker_finish(struct maker *m)
{
    maker_turn(m, 0);
    __atomic_store_n(&m->head->engine_state, TBD_ENGINE_ENDED, __ATOMIC_RELEASE);
}

/* ---- the simulated program ---- */

uint64_t sim_random(struct sim *s)
{
    s->seed ^= s->seed << 13;
    s->seed ^= s->seed >> 7;
    s->seed ^= s->seed << 17;
    return s->seed;
}

static void send_region(struct sim *s, uint32_t page, uint32_t pages, uint32_t flags)
{
    struct tbd_msg_region region = {
        .start = SIM_BASE + page * 4096ull,
        .end = SIM_BASE + (page + pages) * 4096ull,
        .prot = PROT_READ | PROT_WRITE,
        .map_flags = MAP_PRIVATE,
        .flags = flags,
    };
    uint8_t payload[sizeof(region) + 1];

    memcpy(payload, &region, sizeof(region));
    payload[sizeof(region)] = 0;
    maker_message(s->maker, TBD_MSG_REGION, payload, sizeof(payload));
}

static void send_page(struct sim *s, uint32_t page, uint64_t flags)
{
    struct tbd_msg_page head = { SIM_BASE + page * 4096ull, flags };
    uint8_t payload[sizeof(head) + 4096];

    memcpy(payload, &head, sizeof(head));
    memcpy(payload + sizeof(head), s->memory + page * 4096u, 4096);
    maker_message(s->maker, TBD_MSG_PAGE, payload, sizeof(payload));
    s->known[page] = true;
}

static void send_regs(struct sim *s)
{
    uint8_t payload[sizeof(s->regs) + 64];

    s->regs.rip = s->maker->time;
    s->regs.thread = 77;
    s->regs.xsave_bytes = 64;
    memcpy(payload, &s->regs, sizeof(s->regs));
    memset(payload + sizeof(s->regs), (int)(s->maker->time & 0x7f), 64);
    maker_message(s->maker, TBD_MSG_REGS, payload, sizeof(payload));
}

static void send_start(struct sim *s)
{
    static const char strings[] = "/bin/sim\0sim\0one\0/tmp";
    struct tbd_msg_start start = {
        .pid = 4711, .tid = 77, .xsave_bytes = 64, .argc = 2, .hook_set = TBD_HOOKS_PLAY
    };
    uint8_t payload[sizeof(start) + sizeof(strings)];

    memcpy(payload, &start, sizeof(start));
    memcpy(payload + sizeof(start), strings, sizeof(strings));
    maker_message(s->maker, TBD_MSG_START, payload, sizeof(payload));
}

/* Block b: b % 5 stores; the first has its own address, others are relative to it. */
static void define_block(struct sim *s, uint32_t b)
{
    static const uint32_t sizes[] = { 8, 4, 1, 2, 32, 16, 8, 8 };
    struct tbd_block_def *def = &s->defs[b];
    uint32_t stores = b % 5;
    uint32_t at = 0;
    uint8_t code[16];

    *def = (struct tbd_block_def){ .start = 0x401000 + b * 16ull,
                                   .code_bytes = 16,
                                   .insn_count = 8,
                                   .last_insn = 12,
                                   .end = b % 3 == 2 ? TBD_END_SYSCALL : TBD_END_JUMP };
    for (uint32_t i = 0; i < stores; i++) {
        s->ops[b][i] = (struct tbd_op){ .kind = TBD_OP_STORE,
                                        .insn = (uint16_t)(i + 1),
                                        .size = sizes[(b + i) % 8],
                                        .base = 0,
                                        .data = 8 + at,
                                        .add = i * 24 };
        at += s->ops[b][i].size;
    }
    def->op_count = (uint16_t)stores;
    if (b % 7 == 3) { /* function entry after the stores */
        s->ops[b][stores] = (struct tbd_op){
            .kind = TBD_OP_CALL, .insn = 7, .data = at + 8, .base = TBD_BASE_NONE
        };
        at += 56;
        def->op_count++;
        def->end = TBD_END_CALL;
    }
    def->operand_bytes = def->op_count ? at + 8 : 0;
    for (uint32_t i = 0; i < sizeof(code); i++)
        code[i] = (uint8_t)sim_random(s);
    s->ids[b] = maker_define(s->maker, def, s->ops[b], code);
}

void sim_start(struct sim *s, struct maker *m, uint64_t seed)
{
    *s = (struct sim){ .maker = m, .seed = seed * 0x9e3779b97f4a7c15ull + 1 };
    send_start(s);
    for (uint32_t p = 0; p < SIM_PAGES; p++)
        s->mapped[p] = p < 16;
    send_region(s, 0, 8, 0);
    send_region(s, 8, 8, TBD_REGION_ANON_ZERO);
    for (uint32_t p = 0; p < 6; p++) {
        for (uint32_t i = 0; i < 4096; i++)
            s->memory[p * 4096 + i] = (uint8_t)sim_random(s);
        send_page(s, p, TBD_PAGE_IMAGE);
    }
    send_regs(s);
    for (uint32_t b = 0; b < SIM_BLOCKS; b++)
        define_block(s, b);
}

static bool is_mapped(const struct sim *s, uint64_t address, uint32_t bytes)
{
    for (uint64_t at = address; at < address + bytes; at++)
        if (at < SIM_BASE || at >= SIM_BASE + SIM_PAGES * 4096ull ||
            !s->mapped[(at - SIM_BASE) / 4096])
            return false;
    return true;
}

static struct sim_store *note_store(struct sim *s, uint64_t time, uint32_t insn, uint64_t address,
                                    uint32_t bytes)
{
    struct sim_store *store;

    if (s->store_count == s->store_capacity) {
        s->store_capacity = s->store_capacity * 2 + 256;
        s->stores = realloc(s->stores, s->store_capacity * sizeof(*s->stores));
        require(s->stores);
    }
    store = &s->stores[s->store_count++];
    *store = (struct sim_store){ .time = time, .insn = insn, .address = address, .bytes = bytes };
    return store;
}

/* Stores random bytes; returns where the old bytes are recorded. */
static const uint8_t *store(struct sim *s, uint64_t time, uint32_t insn, uint64_t address,
                            uint32_t bytes)
{
    struct sim_store *note = note_store(s, time, insn, address, bytes);

    memcpy(note->old_bytes, s->memory + (address - SIM_BASE), bytes);
    for (uint32_t i = 0; i < bytes; i++)
        s->memory[address - SIM_BASE + i] = (uint8_t)sim_random(s);
    s->dirty[(address - SIM_BASE) / 4096] = true;
    s->dirty[(address + bytes - 1 - SIM_BASE) / 4096] = true;
    return note->old_bytes;
}

static uint64_t somewhere(struct sim *s, uint32_t bytes)
{
    uint64_t address;

    do
        address = SIM_BASE + sim_random(s) % (SIM_PAGES * 4096ull);
    while (!is_mapped(s, address, bytes));
    return address;
}

static void send_syscall(struct sim *s, uint64_t number, const struct tbd_write *write,
                         const uint8_t *old_bytes, const uint8_t *new_bytes)
{
    uint8_t payload[sizeof(struct tbd_msg_syscall) + sizeof(*write) + 128];
    struct tbd_msg_syscall call = { .number = number,
                                    .result = write ? write->bytes : 0,
                                    .write_count = write ? 1 : 0 };
    size_t bytes = sizeof(call);

    memcpy(payload, &call, sizeof(call));
    if (write) {
        memcpy(payload + bytes, write, sizeof(*write));
        memcpy(payload + bytes + sizeof(*write), old_bytes, write->bytes);
        memcpy(payload + bytes + sizeof(*write) + write->bytes, new_bytes, write->bytes);
        bytes += sizeof(*write) + 2u * write->bytes;
    }
    maker_message(s->maker, TBD_MSG_SYSCALL, payload, bytes);
    s->syscalls++;
}

static void call_read(struct sim *s)
{
    struct tbd_write write = { .bytes = 1 + (uint32_t)(sim_random(s) % 60) };
    const uint8_t *old_bytes;

    write.address = somewhere(s, write.bytes);
    old_bytes = store(s, s->maker->time - 1, SIM_MESSAGE, write.address, write.bytes);
    send_syscall(s, 0, &write, old_bytes, s->memory + (write.address - SIM_BASE));
}

static void begin_page(struct sim *s, uint32_t page, bool mapped)
{
    struct sim_store *note =
        note_store(s, s->maker->time - 1, SIM_MESSAGE, SIM_BASE + page * 4096ull, 4096);

    note->remap = true;
    note->was_mapped = s->mapped[page];
    note->page = malloc(4096);
    require(note->page);
    memcpy(note->page, s->memory + page * 4096u, 4096);
    s->mapped[page] = mapped;
    s->known[page] = false;
    s->read[page] = false;
    s->dirty[page] = false;
    memset(s->memory + page * 4096u, 0, 4096);
}

/* mmap and munmap of pages 16 .. 23. */
static void call_map(struct sim *s)
{
    uint32_t page = 16 + (uint32_t)(sim_random(s) % 8);
    struct tbd_range range = { SIM_BASE + page * 4096ull, SIM_BASE + (page + 1) * 4096ull };
    bool map = !s->mapped[page] || sim_random(s) % 2;

    if (s->mapped[page] && s->dirty[page])
        send_page(s, page, TBD_PAGE_DIRTY | (s->known[page] ? 0 : TBD_PAGE_FIRST));
    else if (s->mapped[page] && s->read[page] && !s->known[page])
        send_page(s, page, TBD_PAGE_FIRST);
    send_syscall(s, map ? 9 : 11, NULL, NULL, NULL);
    maker_message(s->maker, TBD_MSG_UNMAP, &range, sizeof(range));
    begin_page(s, page, map);
    if (map)
        send_region(s, page, 1, TBD_REGION_ANON_ZERO);
}

void sim_step(struct sim *s)
{
    uint32_t b = (uint32_t)(sim_random(s) % SIM_BLOCKS);
    const struct tbd_block_def *def = &s->defs[b];
    uint64_t address = somewhere(s, 256);
    uint64_t time = s->maker->time;
    uint64_t limit = sim_random(s) % 16 ? UINT64_MAX : 1 + sim_random(s) % 4;
    uint8_t record[512] = { 0 };

    memcpy(record, &address, sizeof(address));
    for (uint32_t i = 0; i < def->op_count; i++) {
        const struct tbd_op *op = &s->ops[b][i];

        if (op->insn >= limit)
            break;
        if (op->kind == TBD_OP_STORE) {
            memcpy(record + op->data,
                   store(s, time, op->insn, address + (uint64_t)op->add, op->size), op->size);
            s->ops_stores++;
        } else {
            s->calls++;
        }
    }
    s->read[sim_random(s) % 16] = true;
    maker_enter(s->maker, s->ids[b], record, def->operand_bytes);
    if (limit != UINT64_MAX) {
        maker_message(s->maker, TBD_MSG_INTERRUPTED, &limit, sizeof(limit));
        return;
    }
    if (def->end != TBD_END_SYSCALL)
        return;
    if (sim_random(s) % 3)
        call_read(s);
    else
        call_map(s);
}

void sim_end_window(struct sim *s)
{
    struct tbd_msg_window_end end = { .time = s->maker->time };
    uint64_t read[SIM_PAGES];
    size_t reads = 0;

    for (uint32_t p = 0; p < SIM_PAGES; p++) {
        if (s->mapped[p] && (s->dirty[p] || (s->read[p] && !s->known[p])))
            send_page(s, p,
                      (s->dirty[p] ? TBD_PAGE_DIRTY : 0) | (s->known[p] ? 0 : TBD_PAGE_FIRST));
        if (s->read[p])
            read[reads++] = SIM_BASE + p * 4096ull;
        s->dirty[p] = s->read[p] = false;
    }
    maker_message(s->maker, TBD_MSG_READ_PAGES, read, reads * sizeof(*read));
    send_regs(s);
    maker_message(s->maker, TBD_MSG_WINDOW_END, &end, sizeof(end));
    maker_turn(s->maker, TBD_CHUNK_ENDS_WINDOW);
    s->windows++;
}

void sim_end(struct sim *s)
{
    struct tbd_msg_end end = { .how = TBD_ENDED_EXIT, .value = 3, .offset = TBD_END_WHOLE };
    uint8_t payload[sizeof(end) + 5];

    memcpy(payload, &end, sizeof(end));
    memcpy(payload + sizeof(end), "over", 5);
    maker_message(s->maker, TBD_MSG_END, payload, sizeof(payload));
    maker_finish(s->maker);
}

void sim_run(struct sim *s, struct maker *m, uint64_t seed, uint32_t steps, uint32_t window_steps)
{
    sim_start(s, m, seed);
    for (uint32_t i = 1; i <= steps; i++) {
        sim_step(s);
        if (i % window_steps == 0 || i == steps)
            sim_end_window(s);
    }
    sim_end(s);
}

void sim_free(struct sim *s)
{
    for (size_t i = 0; i < s->store_count; i++)
        free(s->stores[i].page);
    free(s->stores);
}
