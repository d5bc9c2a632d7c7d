// SPDX-License-Identifier: MIT
/* tell_left_out.c - says that an answer may be incomplete, and why */
#include "query/commands/commands.h"
#include "query/output/output.h"
#include "query/output/shard.h"

#include "base/safe_stream.h"

#include <inttypes.h>

static json_t *left_out_object(const struct tbd_left_out *left)
{
    json_t *object = json_object();

    json_object_set_new(object, "incomplete", json_true());
    json_object_set_new(object, "windows", tbd_output_windows(left));
    json_object_set_new(object, "lost_end", json_boolean(left->has_lost_end));
    if (left->why[0] != '\0')
        json_object_set_new(object, "why", tbd_output_text(left->why));
    return object;
}

static void print_left_out(const struct tbd_left_out *left)
{
    fprintf(stderr, "tbdq: note: the answer may be incomplete: ");
    if (left->count != 0 || left->has_unlisted) {
        fprintf(stderr, "%s ", left->count == 1 ? "window" : "windows");
        tbd_left_out_print(left, stderr);
        fprintf(stderr, "%s%s left out", left->has_unlisted ? " and others" : "",
                left->count == 1 && !left->has_unlisted ? " was" : " were");
    }
    if (left->why[0] != '\0')
        fprintf(stderr, "; %" PRIu32 ": %s", left->first, tbd_shown(left->why));
    if (left->has_lost_end)
        fprintf(stderr, "%swhat came after the last window is lost", left->count == 0 ? "" : "; ");
    fputc('\n', stderr);
}

enum tbd_exit tbd_command_tell_left_out(const struct tbd_command_run *run, enum tbd_exit result)
{
    const struct tbd_left_out *left = &run->session->left_out;

    if (tbd_left_out_is_empty(left))
        return result;
    if (run->session->json && !tbd_shard_is_on(run->session))
        tbd_output_line(left_out_object(left), run->out);
    print_left_out(left);
    return result <= TBD_EXIT_NOT_FOUND ? TBD_EXIT_TRACE : result;
}
