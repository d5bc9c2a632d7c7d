// SPDX-License-Identifier: MIT
/* mode.c - see mode.h */
#include "hooks/boot/mode.h"

#include "base/assert.h"
#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/instructions/decoder.h"
#include "hooks/instructions/slot.h"
#include "hooks/stream/recording.h"

#define EVERYTHING (TBD_HOOKS_PLAY | TBD_HOOKS_FULL | TBD_HOOK_LOADS | TBD_HOOK_NOTES)

// clang-format off
static const struct tbd_mode modes[TBD_MODE_COUNT] = {
    [TBD_MODE_TRACED]  = { "traced",  TBD_TURNS_LOCK,  TBD_CODE_TRANSLATED, TBD_EVENTS_STREAM,  EVERYTHING,     false, true },
    [TBD_MODE_LATER]   = { "later",   TBD_TURNS_LOCK,  TBD_CODE_TRANSLATED, TBD_EVENTS_STREAM,  EVERYTHING,     true,  true },
    [TBD_MODE_PATCHED] = { "patched", TBD_TURNS_ALONE, TBD_CODE_TRANSLATED, TBD_EVENTS_NOWHERE, TBD_HOOKS_NONE, false, true },
    [TBD_MODE_REPLAY]  = { "replay",  TBD_TURNS_LOG,   TBD_CODE_TRANSLATED, TBD_EVENTS_STREAM,  EVERYTHING,     false, true },
    [TBD_MODE_NATIVE]  = { "native",  TBD_TURNS_LOCK,  TBD_CODE_OWN,        TBD_EVENTS_STREAM,  EVERYTHING,     true,  true },
    [TBD_MODE_FREE]    = { "free",    TBD_TURNS_ALL,   TBD_CODE_TRANSLATED, TBD_EVENTS_NOWHERE, TBD_HOOKS_NONE, false, true },
    [TBD_MODE_CRASH]   = { "crash",   TBD_TURNS_ALL,   TBD_CODE_TRANSLATED, TBD_EVENTS_RINGS,   TBD_HOOK_BLOCKS, false, true },
    [TBD_MODE_ARMED]   = { "armed",   TBD_TURNS_ALL,   TBD_CODE_OWN,        TBD_EVENTS_NOWHERE, TBD_HOOKS_NONE, false, true },
    [TBD_MODE_CONTEXT] = { "context", TBD_TURNS_ALL,   TBD_CODE_TRANSLATED, TBD_EVENTS_NOWHERE, TBD_HOOKS_NONE, false, true },
};
// clang-format on

static const struct tbd_mode *entered;
static const struct tbd_patcher_callbacks *callbacks;

const struct tbd_mode *tbd_mode_row(enum tbd_mode_kind kind)
{
    return &modes[kind];
}

/* The organizer then works beside the program; with fewer it takes the program's time. */
#define ENOUGH_PROCESSORS 3u
#define MASK_WORDS        128u

static unsigned count_processors(void)
{
    uint64_t mask[MASK_WORDS] = { 0 };
    long bytes = tbd_sys3(__NR_sched_getaffinity, 0, sizeof(mask), tbd_sys_pointer(mask));
    unsigned count = 0;

    for (long i = 0; !tbd_sys_failed(bytes) && i < bytes / 8; i++)
        for (uint64_t left = mask[i]; left; left &= left - 1)
            count++;
    return count ? count : ENOUGH_PROCESSORS;
}

static uint64_t processors_of(const struct tbd_options *options)
{
    return options->processors ? options->processors : count_processors();
}

/* Windows that shall keep events or counts must have them first. */
static bool leaves_choice(const struct tbd_options *options)
{
    return options->count == TBD_COUNT_AUTO && options->lean != TBD_LEAN_NEVER &&
           !options->level3 && !options->level2;
}

static bool counts_later(const struct tbd_options *options)
{
    return options->mode == TBD_MODE_LATER || options->count == TBD_COUNT_LATER ||
           (leaves_choice(options) && processors_of(options) < ENOUGH_PROCESSORS);
}

static bool plays_natively(const struct tbd_options *options)
{
    return options->hooks == TBD_HOOKS_PLAY &&
           (options->mode == TBD_MODE_NATIVE ||
            (options->mode == TBD_MODE_AUTO && !options->of_blocks));
}

enum tbd_mode_kind tbd_mode_of(const struct tbd_options *options)
{
    if (options->mode != TBD_MODE_AUTO && modes[options->mode].turns == TBD_TURNS_ALL)
        return (enum tbd_mode_kind)options->mode;
    if (plays_natively(options))
        return TBD_MODE_NATIVE;
    if (options->hooks == TBD_HOOKS_NONE || options->mode == TBD_MODE_PATCHED)
        return TBD_MODE_PATCHED;
    /* without all hooks no replay brings the same events */
    return options->hooks == TBD_HOOKS_PLAY && counts_later(options) ? TBD_MODE_LATER
                                                                     : TBD_MODE_TRACED;
}

void tbd_mode_enter(enum tbd_mode_kind kind, uint64_t hooks, const struct tbd_mode_parts *parts)
{
    TBD_INVARIANT("MODE-1", modes[kind].exists && !entered);
    entered = &modes[kind];
    callbacks = parts->callbacks;
    tbd_recording.hooks =
        entered->events == TBD_EVENTS_RINGS ? TBD_HOOKS_NONE : hooks & entered->hooks;
    tbd_next_others = parts->next_others;
    tbd_leaving_init(parts->leaving);
}

const struct tbd_mode *tbd_mode(void)
{
    return entered;
}

const char *tbd_mode_start_code(const struct tbd_codegen_config *config, bool is_copied)
{
    struct tbd_decoder_api decoder;
    const char *wrong = tbd_decoder_load(&decoder, is_copied);

    if (wrong)
        return wrong;
    tbd_patcher_set_decoder(&decoder);
    tbd_slot_init(&decoder, callbacks->reserve_area);
    return tbd_patcher_init(callbacks, config) ? NULL : "cannot reserve memory for translated code";
}
