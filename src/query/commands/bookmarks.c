// SPDX-License-Identifier: MIT
/* bookmarks.c - names for positions: lines "NAME POSITION" in the file `bookmarks` of the trace
 *
 * Bookmarks are a convenience, like the remembered position: questions work even if the file is
 * damaged. */
#include "query/commands/bookmarks.h"

#include "query/output/output.h"
#include "query/session/position_text.h"

#include "base/safe_stream.h"
#include "format/files/file.h"
#include "format/trace/trace_handle.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 64u
#define BOOKMARKS_MAX  1024u

struct bookmark {
    char name[NAME_MAX_BYTES];
    struct tbd_position position;
};

static bool read_line(struct tbd_session *session, const char *line, struct bookmark *out)
{
    int end = 0;

    out->position.offset = 0;
    if (sscanf(line, "%63[A-Za-z0-9_] %n", out->name, &end) == 1 && end != 0 &&
        tbd_position_in_window(line + end) != 0)
        return tbd_position_read(session, line + end, &out->position) == TBD_OK;
    return sscanf(line, "%63[A-Za-z0-9_] %" SCNu64 "+%" SCNu32 "%n", out->name, &out->position.time,
                  &out->position.offset, &end) >= 2;
}

static void put(struct bookmark *all, size_t *count, const struct bookmark *one)
{
    size_t at = 0;

    while (at < *count && strcmp(all[at].name, one->name) != 0)
        at++;
    if (at == BOOKMARKS_MAX)
        return;
    all[at] = *one;
    *count += at == *count;
}

/* The text of the file, which the caller frees; NULL without memory. */
static struct bookmark *read_all(struct tbd_session *session, size_t *out_count)
{
    struct bookmark *all = calloc(BOOKMARKS_MAX, sizeof(*all));
    struct bookmark one;
    char line[256];
    FILE *file = all == NULL ? NULL : tbd_dir_text(tbd_session_home(session), "bookmarks");

    *out_count = 0;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (read_line(session, line, &one))
            put(all, out_count, &one);
    }
    if (file != NULL)
        fclose(file);
    return all;
}

static bool find(struct tbd_session *session, const char *name, size_t bytes,
                 struct tbd_position *out)
{
    size_t count;
    struct bookmark *all = read_all(session, &count);
    bool found = false;

    for (size_t i = 0; all != NULL && i < count && !found; i++) {
        found = strlen(all[i].name) == bytes && memcmp(all[i].name, name, bytes) == 0;
        if (found)
            *out = all[i].position;
    }
    free(all);
    return found;
}

void tbd_bookmarks_each(struct tbd_session *session, void (*each)(void *context, const char *name),
                        void *context)
{
    size_t count;
    struct bookmark *all = read_all(session, &count);

    for (size_t i = 0; all != NULL && i < count; i++)
        each(context, all[i].name);
    free(all);
}

static size_t name_length(const char *text)
{
    size_t length = 0;

    while (isalnum((unsigned char)text[length]) || text[length] == '_')
        length++;
    return length;
}

/* A bookmark may be named as a window is. */
static size_t read_one(struct tbd_session *session, const char *text, size_t length,
                       struct tbd_position *out, enum tbd_status *io)
{
    size_t in_window = tbd_position_in_window(text);
    enum tbd_status status = in_window == 0 ? TBD_NOTFOUND : tbd_position_read(session, text, out);

    if (status == TBD_OK)
        return in_window;
    if (find(session, text + 1, length, out))
        return 1 + length;
    if (status != TBD_NOTFOUND && *io == TBD_OK)
        *io = status;
    return 0;
}

enum tbd_status tbd_bookmarks_expand(struct tbd_session *session, const char *line, char **out_text)
{
    enum tbd_status status = TBD_OK;
    size_t bytes = 0;
    FILE *out = open_memstream(out_text, &bytes);
    bool quoted = false;

    if (out == NULL)
        return TBD_NOMEM;
    for (const char *s = line; *s != '\0'; s++) {
        bool starts = s == line || isspace((unsigned char)s[-1]);
        size_t length = !quoted && starts && *s == '@' ? name_length(s + 1) : 0;
        struct tbd_position position;
        size_t used = length != 0 ? read_one(session, s, length, &position, &status) : 0;

        quoted ^= *s == '"';
        if (used != 0) {
            fprintf(out, "%" PRIu64 "+%" PRIu32, position.time, position.offset);
            s += used - 1;
        } else {
            fputc(*s, out);
        }
    }
    fclose(out);
    if (status != TBD_OK) {
        free(*out_text);
        *out_text = NULL;
    }
    return status;
}

static bool is_name(const char *text)
{
    size_t length = 0;

    while (isalnum((unsigned char)text[length]) || text[length] == '_')
        length++;
    return length != 0 && length < NAME_MAX_BYTES && text[length] == '\0';
}

static void put_text(const struct tbd_session *session, struct tbd_buffer *out,
                     const struct bookmark *all, size_t count)
{
    char line[256];

    for (size_t i = 0; i < count; i++) {
        int length = snprintf(line, sizeof(line), "%s %s\n", all[i].name,
                              tbd_position_text(session, all[i].position).text);

        tbd_buffer_put(out, line, (size_t)length);
    }
}

/* The file is made anew: of two who add one in the same moment, one may get lost. */
static enum tbd_exit add(struct tbd_command_run *run, const char *name)
{
    struct bookmark one = { .position = tbd_session_current(run->session) };
    struct tbd_buffer text = { 0 };
    enum tbd_status status = TBD_NOMEM;
    size_t count;
    struct bookmark *all = read_all(run->session, &count);

    snprintf(one.name, sizeof(one.name), "%s", name);
    if (all != NULL) {
        put(all, &count, &one);
        put_text(run->session, &text, all, count);
        if (!text.failed)
            status =
                tbd_dir_write(tbd_session_home(run->session), "bookmarks", text.bytes, text.used);
    }
    tbd_buffer_free(&text);
    free(all);
    if (status == TBD_OK)
        return TBD_EXIT_FOUND;
    fprintf(stderr, "tbdq: cannot write bookmarks: %s/bookmarks: %s\n",
            tbd_shown(run->session->info->path), tbd_status_text(status));
    return TBD_EXIT_SYSTEM;
}

enum tbd_exit tbd_command_mark(struct tbd_command_run *run)
{
    const char *name = run->argc == 0 ? "" : run->argv[0];

    name += *name == '@';
    if (run->argc != 1 || !is_name(name))
        return tbd_command_usage(run, "mark takes a name of letters, digits and _");
    return add(run, name);
}

enum tbd_exit tbd_command_marks(struct tbd_command_run *run)
{
    size_t count;
    struct bookmark *all = read_all(run->session, &count);

    if (run->argc != 0 || all == NULL) {
        free(all);
        return tbd_command_usage(run, "marks takes no arguments");
    }
    for (size_t i = 0; i < count; i++) {
        if (run->session->json) {
            json_t *object = json_object();

            json_object_set_new(object, "name", tbd_output_text(all[i].name));
            json_object_set_new(object, "time",
                                tbd_output_time(run->session, all[i].position.time));
            json_object_set_new(object, "offset", json_integer((json_int_t)all[i].position.offset));
            tbd_output_line(object, run->out);
        } else {
            fprintf(run->out, "@%s  %s\n", tbd_shown(all[i].name),
                    tbd_position_text(run->session, all[i].position).text);
        }
    }
    free(all);
    return count != 0 ? TBD_EXIT_FOUND : TBD_EXIT_NOT_FOUND;
}
