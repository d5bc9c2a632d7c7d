// SPDX-License-Identifier: MIT
// links: tbd_hooks_host
/* The table of modes: every row says everything, the parts fit together, options choose those that exist, and a mode is
 * entered once.  What entering starts in the engine is written down by the functions here. */
#include "hooks/boot/mode.h"

#include "base/assert.h"
#include "hooks/instructions/decoder.h"
#include "hooks/instructions/slot.h"
#include "hooks/stream/recording.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ALL_HOOKS (TBD_HOOKS_PLAY | TBD_HOOKS_FULL | TBD_HOOK_LOADS | TBD_HOOK_NOTES)

/* ---- the engine's parts ---- */

struct tbd_recording tbd_recording;
tbd_next_others_function tbd_next_others;
static const struct tbd_leaving *leaving;
static const char *decoder_wrong;
static const struct tbd_patcher_callbacks *patcher_callbacks;
static bool patcher_has_memory = true;

void tbd_leaving_init(const struct tbd_leaving *wanted)
{
    leaving = wanted;
}

const char *tbd_decoder_load(struct tbd_decoder_api *api, bool is_copied)
{
    (void)is_copied;
    memset(api, 0, sizeof(*api));
    return decoder_wrong;
}

void tbd_patcher_set_decoder(const struct tbd_decoder_api *api)
{
    (void)api;
}

void tbd_slot_init(const struct tbd_decoder_api *functions,
                   uint64_t (*reserve)(uint64_t lo, uint64_t hi, uint64_t bytes))
{
    (void)functions;
    (void)reserve;
}

bool tbd_patcher_init(const struct tbd_patcher_callbacks *callbacks,
                      const struct tbd_codegen_config *config)
{
    (void)config;
    patcher_callbacks = callbacks;
    return patcher_has_memory;
}

/* ---- rows ---- */

static void each_row(void (*check)(enum tbd_mode_kind kind, const struct tbd_mode *mode))
{
    for (int kind = 0; kind < TBD_MODE_COUNT; kind++)
        check((enum tbd_mode_kind)kind, tbd_mode_row((enum tbd_mode_kind)kind));
}

static void check_whole(enum tbd_mode_kind kind, const struct tbd_mode *mode)
{
    assert_true(mode->name[0] != '\0' && memchr(mode->name, '\0', sizeof(mode->name)) != NULL);
    for (int other = 0; other < (int)kind; other++)
        assert_string_not_equal(mode->name, tbd_mode_row((enum tbd_mode_kind)other)->name);
    assert_in_range(mode->turns, TBD_TURNS_ALONE, TBD_TURNS_ALL);
    assert_in_range(mode->code, TBD_CODE_TRANSLATED, TBD_CODE_OWN);
    assert_in_range(mode->events, TBD_EVENTS_NOWHERE, TBD_EVENTS_RINGS);
    assert_int_equal(mode->hooks & ~ALL_HOOKS, 0);
}

static void every_row_says_everything(void **state)
{
    (void)state;
    each_row(check_whole);
}

static void check_fits(enum tbd_mode_kind kind, const struct tbd_mode *mode)
{
    /* Only translated code reports, and what is reported goes somewhere. */
    if (mode->hooks != TBD_HOOKS_NONE) {
        assert_true(mode->code == TBD_CODE_TRANSLATED || kind == TBD_MODE_NATIVE); /* its stops */
        assert_int_not_equal(mode->events, TBD_EVENTS_NOWHERE);
        assert_true(mode->hooks & TBD_HOOK_BLOCKS); /* time counts block entries */
    }
    /* What leaves records out says so to its reader, in the stream, and can bring them all back. */
    if (mode->omits_records)
        assert_true(mode->events == TBD_EVENTS_STREAM && mode->hooks == ALL_HOOKS);
    /* One stream has one writer at a time; who writes at the same time has rings. */
    if (mode->turns == TBD_TURNS_ALL)
        assert_int_not_equal(mode->events, TBD_EVENTS_STREAM);
    else
        assert_int_not_equal(mode->events, TBD_EVENTS_RINGS);
    /* Without events nobody sees whose turn it is. */
    if (mode->events == TBD_EVENTS_NOWHERE)
        assert_true(mode->turns == TBD_TURNS_ALONE || mode->turns == TBD_TURNS_ALL);
    if (mode->turns == TBD_TURNS_ALONE)
        assert_int_equal(mode->events, TBD_EVENTS_NOWHERE);
    assert_int_equal(mode->turns == TBD_TURNS_LOG, kind == TBD_MODE_REPLAY);
}

static void its_parts_fit_together(void **state)
{
    (void)state;
    each_row(check_fits);
}

/* The program's user may ask for a mode that exists; replay is the driver's. */
static void check_choice(enum tbd_mode_kind kind, const struct tbd_mode *mode)
{
    static struct tbd_options options;
    char text[48], why[128] = "";
    bool chosen;

    snprintf(text, sizeof(text), "count=now,mode=%s", mode->name); /* on any machine */
    chosen = tbd_options_parse(&options, text, why, sizeof(why));
    assert_int_equal(chosen, mode->exists && kind != TBD_MODE_REPLAY);
    if (chosen)
        assert_int_equal(tbd_mode_of(&options), kind);
    else
        assert_int_equal(strstr(why, "is to come") != NULL, !mode->exists);
}

static void options_choose_what_exists(void **state)
{
    static struct tbd_options options;
    char why[128];

    (void)state;
    each_row(check_choice);
    assert_true(tbd_options_parse(&options, "window=1000,count=now", why, sizeof(why)));
    assert_int_equal(tbd_mode_of(&options), TBD_MODE_TRACED); /* it is about blocks */
    assert_true(tbd_options_parse(&options, "budget=1G,children=no", why, sizeof(why)));
    assert_int_equal(tbd_mode_of(&options), TBD_MODE_NATIVE);
    assert_true(tbd_options_parse(&options, "", why, sizeof(why)));
    assert_int_equal(tbd_mode_of(&options), TBD_MODE_NATIVE);
    assert_true(tbd_options_parse(&options, "hooks=none", why, sizeof(why)));
    assert_int_equal(tbd_mode_of(&options), TBD_MODE_PATCHED);
    assert_true(tbd_options_parse(&options, "count=later", why, sizeof(why)));
    assert_int_equal(tbd_mode_of(&options), TBD_MODE_LATER);
    assert_true(tbd_options_parse(&options, "count=now", why, sizeof(why)));
    assert_int_equal(tbd_mode_of(&options), TBD_MODE_TRACED);
    /* windows that shall keep something must have it, on any machine */
    assert_true(tbd_options_parse(&options, "lean=never", why, sizeof(why)));
    assert_int_equal(tbd_mode_of(&options), TBD_MODE_TRACED);
    assert_true(tbd_options_parse(&options, "level3=4,level2=4", why, sizeof(why)));
    assert_int_equal(tbd_mode_of(&options), TBD_MODE_TRACED);
    assert_true(tbd_options_parse(&options, "mode=later,hooks=blocks", why, sizeof(why)));
    assert_int_equal(tbd_mode_of(&options), TBD_MODE_TRACED); /* no replay brings the same events */
    assert_true(tbd_options_parse(&options, "count=now,hooks=full", why, sizeof(why)));
    assert_int_equal(tbd_mode_of(&options), TBD_MODE_TRACED);
}

/* ---- entering, which a process does once: in a child each ---- */

static const struct tbd_patcher_callbacks callbacks;
static const struct tbd_leaving leaving_parts;
static const struct tbd_mode_parts parts = { .callbacks = &callbacks, .leaving = &leaving_parts };

static void run_in_child(void (*body)(enum tbd_mode_kind), enum tbd_mode_kind kind,
                         int signal_number)
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        body(kind);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : 0, signal_number);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
}

static void expect(bool holds)
{
    if (!holds)
        _exit(1);
}

static void enter(enum tbd_mode_kind kind)
{
    static const struct tbd_codegen_config config;
    const struct tbd_mode *row = tbd_mode_row(kind);

    expect(tbd_mode() == NULL);
    tbd_mode_enter(kind, TBD_HOOKS_PLAY, &parts);
    /* what goes to rings is not in the stream */
    expect(tbd_mode() == row &&
           tbd_recording.hooks ==
               (row->events == TBD_EVENTS_RINGS ? TBD_HOOKS_NONE : TBD_HOOKS_PLAY & row->hooks));
    expect(leaving == &leaving_parts && tbd_next_others == NULL);
    decoder_wrong = "there is no decoder";
    expect(tbd_mode_start_code(&config, true) == decoder_wrong && patcher_callbacks == NULL);
    decoder_wrong = NULL;
    expect(tbd_mode_start_code(&config, true) == NULL && patcher_callbacks == &callbacks);
    patcher_has_memory = false;
    expect(strstr(tbd_mode_start_code(&config, true), "memory") != NULL);
}

static void enter_twice(enum tbd_mode_kind kind)
{
    tbd_mode_enter(kind, TBD_HOOKS_PLAY, &parts);
    tbd_mode_enter(kind, TBD_HOOKS_PLAY, &parts);
}

static void what_exists_is_entered_once(void **state)
{
    (void)state;
    for (int kind = 0; kind < TBD_MODE_COUNT; kind++) {
        if (tbd_mode_row((enum tbd_mode_kind)kind)->exists)
            run_in_child(enter, (enum tbd_mode_kind)kind, 0);
        else if (TBD_ASSERTS)
            run_in_child(enter, (enum tbd_mode_kind)kind, SIGABRT);
    }
    if (TBD_ASSERTS)
        run_in_child(enter_twice, TBD_MODE_TRACED, SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_says_everything),
        cmocka_unit_test(its_parts_fit_together),
        cmocka_unit_test(options_choose_what_exists),
        cmocka_unit_test(what_exists_is_entered_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
