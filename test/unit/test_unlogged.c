// SPDX-License-Identifier: MIT
// links: tbd_format tbd_base
/* Messages that are in no log, after the segments of coded records (format/coding/unlogged.c). */
#include "format/coding/unlogged.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct scene {
    struct tbd_buffer content;
    size_t segments; /* bytes */
};

static void put_message(struct tbd_buffer *out, uint32_t kind, uint32_t bytes, uint8_t fill)
{
    struct tbd_message head = { kind, bytes };
    uint8_t payload[256];

    memset(payload, 0, sizeof(payload));
    payload[160] = fill; /* after the fixed part */
    tbd_buffer_put(out, &head, sizeof(head));
    tbd_buffer_put(out, payload, bytes);
}

/* Two segments' worth of other bytes, and two messages. */
static struct scene make_scene(void)
{
    struct scene scene = { .segments = 40 };
    struct tbd_buffer messages = { 0 };

    for (uint32_t i = 0; i < 10; i++)
        tbd_buffer_put(&scene.content, &i, sizeof(i));
    put_message(&messages, TBD_MSG_UNLOGGED, 160, 0);
    put_message(&messages, TBD_MSG_UNLOGGED, 176, 7);
    tbd_unlogged_put(&scene.content, &messages);
    tbd_buffer_free(&messages);
    return scene;
}

static struct tbd_reader reader_of(const struct scene *scene, size_t bytes)
{
    return (struct tbd_reader){ scene->content.bytes, scene->content.bytes + bytes, false };
}

static void messages_come_in_order_and_leave_the_segments(void **state)
{
    struct scene scene = make_scene();
    struct tbd_reader in = reader_of(&scene, scene.content.used);
    struct tbd_unlogged unlogged = { 0 };
    const struct tbd_message *first, *second;
    struct tbd_message head;

    (void)state;
    assert_true(tbd_unlogged_are_over(&unlogged)); /* nobody asks where there is none */
    first = tbd_unlogged_next(&unlogged, &in, TBD_MSG_UNLOGGED);
    assert_non_null(first);
    assert_int_equal(in.end - in.at, scene.segments);
    assert_false(tbd_unlogged_are_over(&unlogged));
    second = tbd_unlogged_next(&unlogged, &in, TBD_MSG_UNLOGGED);
    assert_non_null(second);
    memcpy(&head, second, sizeof(head));
    assert_int_equal(head.bytes, 176);
    assert_int_equal(((const uint8_t *)second)[sizeof(head) + 160], 7);
    assert_true(tbd_unlogged_are_over(&unlogged));
    assert_null(tbd_unlogged_next(&unlogged, &in, TBD_MSG_UNLOGGED));
    tbd_buffer_free(&scene.content);
}

static void without_messages_nothing_is_added(void **state)
{
    struct tbd_buffer out = { 0 }, none = { 0 };
    struct tbd_reader empty = { 0 };
    struct tbd_unlogged unlogged = { 0 };
    const uint32_t entries[3] = { 1, TBD_ENTRY_MESSAGE | TBD_MSG_SPECIAL,
                                  TBD_ENTRY_MESSAGE | TBD_MSG_UNLOGGED };

    (void)state;
    tbd_unlogged_put(&out, &none);
    assert_int_equal(out.used, 0);
    assert_null(tbd_unlogged_next(&unlogged, &empty, TBD_MSG_UNLOGGED));
    assert_false(tbd_unlogged_occur(entries, 2));
    assert_true(tbd_unlogged_occur(entries, 3));
    tbd_buffer_free(&out);
}

static void impossible_ones_are_refused(void **state)
{
    struct scene scene = make_scene();
    uint64_t sizes[] = { 0, 1, 7, 8, 170, 1u << 20, UINT64_MAX, UINT64_MAX - 7 };

    (void)state;
    for (size_t bytes = 0; bytes < scene.content.used;
         bytes++) { /* cut short: no size, or a wrong one */
        struct tbd_reader in = reader_of(&scene, bytes);
        struct tbd_unlogged unlogged = { 0 };

        for (int n = 0; n < 3 && tbd_unlogged_next(&unlogged, &in, TBD_MSG_UNLOGGED); n++)
            assert_true(in.at <= in.end && in.end <= scene.content.bytes + bytes);
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct tbd_reader in = reader_of(&scene, scene.content.used);
        struct tbd_unlogged unlogged = { 0 };

        memcpy(scene.content.bytes + scene.content.used - 8, &sizes[i], 8);
        assert_null(tbd_unlogged_next(&unlogged, &in, TBD_MSG_UNLOGGED));
    }
    tbd_buffer_free(&scene.content);
}

static void a_message_must_be_of_the_kind_and_have_its_fixed_part(void **state)
{
    const struct {
        uint32_t kind, bytes;
    } cases[] = { { TBD_MSG_SPECIAL, 160 }, { TBD_MSG_READ, 16 }, { TBD_MSG_UNLOGGED, 159 } };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scene scene = { 0 };
        struct tbd_buffer messages = { 0 };
        struct tbd_unlogged unlogged = { 0 };
        struct tbd_reader in;

        put_message(&messages, cases[i].kind, cases[i].bytes, 0);
        tbd_unlogged_put(&scene.content, &messages);
        in = reader_of(&scene, scene.content.used);
        assert_null(tbd_unlogged_next(&unlogged, &in, TBD_MSG_UNLOGGED));
        tbd_buffer_free(&messages);
        tbd_buffer_free(&scene.content);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_in_order_and_leave_the_segments),
        cmocka_unit_test(without_messages_nothing_is_added),
        cmocka_unit_test(impossible_ones_are_refused),
        cmocka_unit_test(a_message_must_be_of_the_kind_and_have_its_fixed_part),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
