// SPDX-License-Identifier: MIT
/* probe_make.c - see probe_make.h */
#include "hooks/probes/probe_make.h"

#include "base/arena.h"
#include "base/linux.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/probes/jump.h"
#include "patcher/native_patch.h"

#define STUBS_BYTES  (256ull << 20)
#define PROBES_BYTES (192ull << 20)

static struct tbd_arena stubs, probes;

bool tbd_probe_make_begin(void)
{
    return tbd_arena_init(&stubs, STUBS_BYTES) && tbd_arena_init(&probes, PROBES_BYTES) &&
           !tbd_sys_failed(
               tbd_sys_mprotect(tbd_sys_pointer(stubs.start), STUBS_BYTES, TBD_PROT_RWX));
}

void *tbd_probe_memory(size_t bytes)
{
    return tbd_arena_alloc(&probes, bytes, 64);
}

void tbd_probe_memory_back(void *last)
{
    tbd_arena_rewind(&probes, (uint8_t *)last);
}

/* ---- the code as it was ---- */

/* The byte at `address`, if it is one of a jump. */
static void undo_jump(uint64_t address, uint8_t *byte)
{
    for (unsigned i = 0; i < TBD_JUMP_BYTES; i++) {
        const struct tbd_probe *probe = tbd_probe_find(address - i);

        if (probe && probe->is_jump && *byte == probe->jump->bytes[i]) {
            *byte = probe->jump->original[i];
            return;
        }
    }
}

size_t tbd_probe_read_code(int memory, uint64_t address, uint8_t *out, size_t bytes)
{
    size_t got = tbd_native_read(memory, address, out, bytes);

    for (size_t i = 0; i < got; i++) {
        const struct tbd_probe *probe = tbd_probe_find(address + i);

        undo_jump(address + i, &out[i]);
        if (probe && probe->is_placed && out[i] == TBD_NATIVE_TRAP)
            out[i] = probe->step.first;
    }
    return got;
}

/* ---- probes ---- */

static enum tbd_probe_refusal refusal_of(enum tbd_step_refusal refusal)
{
    switch (refusal) {
    case TBD_STEP_OK: return TBD_PROBE_OK;
    case TBD_STEP_RAISES: return TBD_PROBE_RAISES;
    case TBD_STEP_NO_MEMORY: return TBD_PROBE_NO_MEMORY;
    case TBD_STEP_UNSUPPORTED:
    default: return TBD_PROBE_UNSUPPORTED;
    }
}

static enum tbd_probe_refusal make_probe(uint64_t address, const uint8_t *code, size_t got,
                                         struct tbd_probe **out)
{
    struct tbd_probe *probe =
        (struct tbd_probe *)tbd_arena_alloc(&probes, sizeof(*probe), _Alignof(struct tbd_probe));
    uint8_t *stub = (uint8_t *)tbd_arena_alloc(&stubs, TBD_STEP_STUB_BYTES, 64);
    struct tbd_emit emit = { .at = stub };
    struct tbd_insn insn;
    enum tbd_probe_refusal refusal = TBD_PROBE_NO_INSTRUCTION;

    if (!probe || !stub)
        return TBD_PROBE_NO_MEMORY;
    emit.end = stub + TBD_STEP_STUB_BYTES;
    memset(probe, 0, sizeof(*probe)); /* a refused one may have been here */
    if (tbd_decode(&insn, address, code, got))
        refusal = refusal_of(tbd_step_make(&probe->step, &insn, &emit));
    if (refusal != TBD_PROBE_OK) {
        tbd_arena_rewind(&stubs, stub);
        tbd_probe_memory_back(probe);
        return refusal;
    }
    tbd_arena_rewind(&stubs, emit.at);
    memcpy(probe->bytes, code, probe->step.length);
    *out = probe;
    return tbd_probe_add(probe) ? TBD_PROBE_OK : TBD_PROBE_NO_MEMORY;
}

enum tbd_probe_refusal tbd_probe_make(int memory, uint64_t address, struct tbd_probe **out)
{
    uint8_t code[TBD_PROBE_INSN_BYTES];
    struct tbd_probe *probe = tbd_probe_find(address);
    size_t got = tbd_probe_read_code(memory, address, code, sizeof(code));

    if (!got)
        return TBD_PROBE_NOT_CODE;
    if (probe && got >= probe->step.length && memcmp(code, probe->bytes, probe->step.length) == 0) {
        *out = probe;
        return TBD_PROBE_OK;
    }
    return make_probe(address, code, got, out);
}
