// SPDX-License-Identifier: MIT
/* cpu_features.c - see cpu_features.h
 *
 * Zydis says to which instruction set an instruction belongs, by length for vectors ("AVX512F_512"): the
 * length is left out, as a processor's features have none. */
#include "query/session/cpu_features.h"

#include "format/reading/trace_keys.h"
#include "format/reading/window_read.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <string.h>

/* Beginnings of the names of instruction sets that x86-64-v3 lacks and programs use. */
static const char *const beyond[] = { "AVX512",   "AMX",       "VAES",  "VPCLMULQDQ", "GFNI",
                                      "AVX_GFNI", "AVX_VNNI",  "SHA",   "AES",        "PCLMULQDQ",
                                      "AVXAES",   "ADOX_ADCX", "SSE4A", "XOP",        "FMA4",
                                      "TBM",      NULL };

static bool is_beyond(const char *set)
{
    for (size_t i = 0; beyond[i] != NULL; i++) {
        if (strncmp(set, beyond[i], strlen(beyond[i])) == 0)
            return true;
    }
    return false;
}

/* "AVX512F_512" is AVX512F, "AVX512_BF16_128" AVX512_BF16. */
static size_t name_length(const char *set)
{
    static const char *const forms[] = { "_128", "_256", "_512", "_128N", "_SCALAR", "_KOP", NULL };
    size_t length = strlen(set);

    for (size_t i = 0; forms[i] != NULL; i++) {
        size_t form = strlen(forms[i]);

        if (length > form && strcmp(set + length - form, forms[i]) == 0)
            return length - form;
    }
    return length;
}

/* The place of the set in `out`, which is new at *count; `max` if there is no space. */
static size_t place_of(const char *set, struct tbd_cpu_feature out[TBD_CPU_FEATURES_MAX],
                       size_t *count)
{
    size_t length = name_length(set), at = 0;

    if (length >= sizeof(out->name))
        length = sizeof(out->name) - 1;
    while (at < *count &&
           (strlen(out[at].name) != length || memcmp(out[at].name, set, length) != 0))
        at++;
    if (at == *count && at < TBD_CPU_FEATURES_MAX) {
        out[at] = (struct tbd_cpu_feature){ .blocks = 0 };
        memcpy(out[at].name, set, length);
        ++*count;
    }
    return at;
}

static void add_block(const ZydisDecoder *decoder, const struct tbd_block *block,
                      struct tbd_cpu_feature out[TBD_CPU_FEATURES_MAX], size_t *count)
{
    uint32_t seen = 0;

    for (size_t at = 0; at < block->def.code_bytes;) {
        ZydisDecodedInstruction insn;
        const char *set;
        size_t place;

        if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder, NULL, block->code + at,
                                                        block->def.code_bytes - at, &insn)))
            return;
        at += insn.length;
        set = ZydisISASetGetString(insn.meta.isa_set);
        if (set == NULL || !is_beyond(set))
            continue;
        place = place_of(set, out, count);
        if (place == TBD_CPU_FEATURES_MAX || (seen >> place & 1) != 0)
            continue;
        seen |= 1u << place;
        out[place].blocks++;
    }
}

/* By id: does the block need more than x86-64-v3? */
static uint8_t *needing_blocks(const struct tbd_trace *trace, const ZydisDecoder *decoder)
{
    uint32_t count = tbd_trace_block_count(trace);
    uint8_t *needs = calloc((size_t)count + 1, 1);

    for (uint32_t id = 1; needs != NULL && id <= count; id++) {
        struct tbd_cpu_feature features[TBD_CPU_FEATURES_MAX];
        const struct tbd_block *block = tbd_trace_block(trace, id);
        size_t found = 0;

        if (block != NULL)
            add_block(decoder, block, features, &found);
        needs[id] = found != 0;
    }
    return needs;
}

static bool has_needing(const struct tbd_window *window, const uint8_t *needs, uint32_t count)
{
    for (size_t i = 0; i < window->block_summary_count; i++) {
        const struct tbd_block_summary *summary = &window->block_summaries[i];

        if (summary->id <= count && summary->count != 0 && needs[summary->id] != 0)
            return true;
    }
    return false;
}

/* ---- what the index over windows says, so that few windows' files are opened ---- */

struct feature_keys {
    uint64_t *keys; /* owned, ascending; NULL: no memory */
    size_t count;
    uint64_t *masks; /* owned: of each segment, the windows that may have one of the blocks */
};

static struct feature_keys list_wanted(struct tbd_trace *trace, const uint8_t *needs,
                                       uint32_t count)
{
    size_t segments = tbd_trace_segment_count(trace);
    struct feature_keys wanted = { .keys = calloc((size_t)count + 2, sizeof(*wanted.keys)),
                                   .masks = calloc(segments + 1, sizeof(*wanted.masks)) };

    if (wanted.keys == NULL || wanted.masks == NULL)
        return wanted;
    for (uint32_t id = 1; id <= count; id++)
        if (needs[id] != 0)
            wanted.keys[wanted.count++] = tbd_key(TBD_KEY_BLOCK, id);
    wanted.keys[wanted.count++] = tbd_key(TBD_KEY_ALL_BLOCKS, 0);
    for (size_t i = 0; i < segments; i++) {
        const struct tbd_keys *keys = tbd_trace_segment(trace, i);

        wanted.masks[i] = keys == NULL ? UINT64_MAX : tbd_keys_any(keys, wanted.keys, wanted.count);
    }
    return wanted;
}

/* Is it certain that the window has none of the blocks? */
static bool index_denies(struct tbd_trace *trace, uint32_t window,
                         const struct feature_keys *wanted)
{
    const struct tbd_window_summary *summary = tbd_trace_window(trace, window);
    uint64_t end = summary->first_time + summary->blocks, known = 0;

    if (wanted->keys == NULL || wanted->masks == NULL)
        return false;
    for (size_t i = tbd_trace_segment_from(trace, summary->first_time);
         i < tbd_trace_segment_count(trace) && tbd_trace_segment_begins_before(trace, i, end + 1);
         i++) {
        const struct tbd_keys *keys = tbd_trace_segment(trace, i);
        uint64_t blocks;

        if (keys == NULL)
            return false;
        if ((tbd_keys_windows(keys, summary->first_time, summary->blocks, &blocks) &
             wanted->masks[i]) != 0)
            return false;
        known += blocks;
    }
    return known >= summary->blocks && known != 0;
}

void tbd_cpu_feature_windows(struct tbd_session *session, struct tbd_left_out *out,
                             bool *out_perhaps)
{
    uint32_t count = tbd_trace_block_count(session->trace);
    struct feature_keys wanted = { .keys = NULL };
    ZydisDecoder decoder;
    uint8_t *needs = NULL;

    *out_perhaps = false;
    if (ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
        needs = needing_blocks(session->trace, &decoder);
    if (needs != NULL)
        wanted = list_wanted(session->trace, needs, count);
    for (uint32_t i = 0; needs != NULL && i < tbd_trace_window_count(session->trace); i++) {
        struct tbd_window *window;
        struct tbd_error why;

        if (index_denies(session->trace, i, &wanted) ||
            tbd_window_load_summaries(session->trace, i, &window, &why) != TBD_OK)
            continue;
        if (has_needing(window, needs, count)) {
            tbd_left_out_add(out, i, "");
            *out_perhaps = *out_perhaps || window->is_uncounted;
        }
        tbd_window_free(window);
    }
    free(wanted.keys);
    free(wanted.masks);
    free(needs);
}

size_t tbd_cpu_features(const struct tbd_trace *trace,
                        struct tbd_cpu_feature out[TBD_CPU_FEATURES_MAX])
{
    ZydisDecoder decoder;
    size_t count = 0;

    if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
        return 0;
    for (uint32_t id = 1; id <= tbd_trace_block_count(trace); id++) {
        const struct tbd_block *block = tbd_trace_block(trace, id);

        if (block != NULL)
            add_block(&decoder, block, out, &count);
    }
    return count;
}
