// SPDX-License-Identifier: MIT
/* dap_source.c - files, and lines in them, as the debug information names them
 *
 * Only files that the debug information of the trace's modules names are read for a client. */
#include "query/dap/dap_requests.h"

#include "query/debuginfo/dwarf_sources.h"
#include "query/output/output.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINES_MOST                                                                                 \
    100u /* lines that are looked at for one request: one without code means the next one that has some */
#define SOURCES_MAX 20000u

/* ---- files ---- */

/* The number of a path in the table; 0 without memory. */
static json_int_t number_of(struct tbd_dap *dap, const char *path)
{
    for (size_t i = 0; i < dap->source_count; i++)
        if (strcmp(dap->sources[i], path) == 0)
            return (json_int_t)i + 1;
    if (dap->source_count == SOURCES_MAX ||
        !tbd_array_grow(&dap->sources, dap->source_count, &dap->source_capacity,
                        sizeof(*dap->sources)))
        return 0;
    dap->sources[dap->source_count] = strdup(path);
    if (dap->sources[dap->source_count] == NULL)
        return 0;
    return (json_int_t)++dap->source_count;
}

/* A file that is not here is shown through its number, for which there is no text either. */
json_t *tbd_dap_source(struct tbd_dap *dap, const char *path)
{
    const char *slash = strrchr(path, '/');
    json_int_t number = number_of(dap, path);
    bool is_here = *path == '/' && access(path, R_OK) == 0;
    json_t *source =
        json_pack("{s:o, s:o, s:I}", "name", tbd_output_text(slash == NULL ? path : slash + 1),
                  "path", tbd_output_text(path), "sourceReference", is_here ? 0 : number);

    if (!is_here)
        json_object_set_new(source, "presentationHint", json_string("deemphasize"));
    return source;
}

/* "Source" as the client sends it: by path, or by number. */
static const char *path_of(struct tbd_dap *dap, const json_t *arguments)
{
    const json_t *source = json_object_get(arguments, "source");
    json_int_t number =
        tbd_dap_number(source, "sourceReference", tbd_dap_number(arguments, "sourceReference", 0));

    if (number >= 1 && (uint64_t)number <= dap->source_count)
        return dap->sources[number - 1];
    return tbd_dap_text(source, "path");
}

void tbd_dap_source_text(struct tbd_dap *dap, const json_t *arguments)
{
    const char *path = path_of(dap, arguments);
    struct tbd_source_text text;
    bool is_known = false;

    for (size_t i = 0; i < dap->source_count; i++)
        is_known |= strcmp(dap->sources[i], path) == 0;
    if (!is_known || !tbd_source_load(path, &text)) {
        tbd_dap_refuse(dap, "%s: the file is not here", path);
        return;
    }
    for (uint32_t i = 2; i <= text.line_count; i++) /* where lines were cut */
        text.bytes[text.lines[i] - text.bytes - 1] = '\n';
    tbd_dap_reply(dap, json_pack("{s:o, s:s}", "content", tbd_output_text(text.bytes), "mimeType",
                                 "text/x-c"));
    tbd_source_unload(&text);
}

struct files {
    struct tbd_dap *dap;
    json_t *list;
};

static bool add_file(void *context, const char *path)
{
    struct files *files = context;
    size_t before = files->dap->source_count;

    (void)number_of(files->dap, path);
    if (files->dap->source_count != before)
        json_array_append_new(files->list, tbd_dap_source(files->dap, path));
    return files->dap->source_count < SOURCES_MAX;
}

static enum tbd_status modules_here(struct tbd_dap *dap, const struct tbd_module **out,
                                    size_t *out_count)
{
    uint32_t window = tbd_trace_window_of(dap->session.trace, tbd_dap_at(dap).time);

    return tbd_symbols_modules(dap->session.symbols, window, out, out_count);
}

void tbd_dap_loaded_sources(struct tbd_dap *dap, const json_t *arguments)
{
    const struct tbd_module *modules;
    size_t count;
    struct files files = { dap, json_array() };
    enum tbd_status status = modules_here(dap, &modules, &count);

    (void)arguments;
    for (size_t i = 0; i < dap->source_count; i++)
        json_array_append_new(files.list, tbd_dap_source(dap, dap->sources[i]));
    for (size_t i = 0; status == TBD_OK && i < count; i++) {
        struct tbd_dwarf *dwarf = tbd_dwarf_of(modules[i].file);

        if (dwarf != NULL)
            tbd_dwarf_sources(dwarf, add_file, &files);
    }
    tbd_dap_reply(dap, json_pack("{s:o}", "sources", files.list));
}

/* ---- lines ---- */

/* Does some module have code of the file? */
static bool has_code(const struct tbd_module *modules, size_t count, const char *file)
{
    struct tbd_elf_range range;

    for (size_t i = 0; i < count; i++) {
        struct tbd_dwarf *dwarf = tbd_dwarf_of(modules[i].file);

        if (dwarf != NULL && tbd_dwarf_line_ranges(dwarf, file, 0, &range, 1) != 0)
            return true;
    }
    return false;
}

/* Which of the lines from `first` on have code? */
static void find_lines(const struct tbd_module *modules, size_t count, const char *file,
                       uint32_t first, bool has[LINES_MOST])
{
    memset(has, 0, LINES_MOST * sizeof(*has));
    for (size_t i = 0; i < count; i++) {
        struct tbd_dwarf *dwarf = tbd_dwarf_of(modules[i].file);

        if (dwarf != NULL)
            tbd_dwarf_code_lines(dwarf, file, first, LINES_MOST, has);
    }
}

/* The longest end of the client's path that names a file of the debug information and can stand in a condition;
 * NULL: none does.  So sources that have moved are found, too. */
static const char *known_end(const struct tbd_module *modules, size_t count, const char *path)
{
    while (path != NULL && *path != '\0') {
        if (strpbrk(path, ",<> ") == NULL && strlen(path) < 200 && strstr(path, "..") == NULL &&
            has_code(modules, count, path))
            return path;
        path = strchr(path, '/');
        if (path != NULL)
            path++;
    }
    return NULL;
}

bool tbd_dap_line_question(struct tbd_dap *dap, const char *path, uint32_t line, uint32_t *out_line,
                           char out[512])
{
    const struct tbd_module *modules;
    const char *file;
    size_t count;
    uint32_t ahead = 0;
    bool has[LINES_MOST];

    if (line == 0 || line > UINT32_MAX - LINES_MOST ||
        modules_here(dap, &modules, &count) != TBD_OK)
        return false;
    file = known_end(modules, count, path);
    if (file == NULL)
        return false;
    find_lines(modules, count, file, line, has);
    while (ahead < LINES_MOST && !has[ahead])
        ahead++;
    if (ahead == LINES_MOST)
        return false;
    *out_line = line + ahead;
    snprintf(out, 512, "line where src=<%s,%" PRIu32 ">", file, line + ahead);
    return true;
}

void tbd_dap_breakpoint_locations(struct tbd_dap *dap, const json_t *arguments)
{
    json_int_t from_0 = dap->client.lines_from_0;
    json_int_t first = tbd_dap_number(arguments, "line", 1) + from_0;
    json_int_t last = tbd_dap_number(arguments, "endLine", first - from_0) + from_0;
    json_t *found = json_array();
    const struct tbd_module *modules;
    const char *file = NULL;
    bool has[LINES_MOST];
    size_t count;

    if (first > 0 && first <= last && first <= UINT32_MAX - LINES_MOST &&
        modules_here(dap, &modules, &count) == TBD_OK)
        file = known_end(modules, count, path_of(dap, arguments));
    if (file != NULL)
        find_lines(modules, count, file, (uint32_t)first, has);
    for (json_int_t i = 0; file != NULL && i < LINES_MOST && first + i <= last; i++)
        if (has[i])
            json_array_append_new(found, json_pack("{s:I}", "line", first + i - from_0));
    tbd_dap_reply(dap, json_pack("{s:o}", "breakpoints", found));
}

/* ---- where one can go ---- */

static void add_target(struct tbd_dap *dap, json_t *targets, const char *label, uint32_t line,
                       struct tbd_position at)
{
    if (!tbd_array_grow(&dap->targets, dap->target_count, &dap->target_capacity,
                        sizeof(*dap->targets)))
        return;
    dap->targets[dap->target_count++] = at;
    json_array_append_new(targets,
                          json_pack("{s:I, s:s, s:I}", "id", (json_int_t)dap->target_count, "label",
                                    label, "line", (json_int_t)line - dap->client.lines_from_0));
}

/* Four times that the line runs: the next, the one before, the first, the last. */
void tbd_dap_goto_targets(struct tbd_dap *dap, const json_t *arguments)
{
    struct tbd_session *session = &dap->session;
    struct {
        const char *label;
        struct tbd_position from;
        bool backward;
    } moments[] = { { "The next time", tbd_dap_at(dap), false },
                    { "The time before", tbd_dap_at(dap), true },
                    { "The first time", tbd_session_first(session), false },
                    { "The last time", tbd_session_last(session), true } };
    json_int_t wanted = tbd_dap_number(arguments, "line", 0) + dap->client.lines_from_0;
    json_t *targets;
    char question[512], label[64];
    uint32_t line;

    if (wanted <= 0 || wanted > UINT32_MAX ||
        !tbd_dap_line_question(dap, path_of(dap, arguments), (uint32_t)wanted, &line, question)) {
        tbd_dap_refuse(dap, "no code of this line is known here");
        return;
    }
    targets = json_array();
    dap->target_count = 0;
    for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
        struct tbd_nearest nearest = { .session = session,
                                       .from = moments[i].from,
                                       .backward = moments[i].backward };
        struct tbd_nearest_wish wish = { .question = question, .with_own = i == 2 };
        bool is_there;
        enum tbd_status status = tbd_nearest_look(&nearest, &wish, &is_there);

        if (status != TBD_OK) {
            json_decref(targets);
            tbd_dap_refuse_status(dap, status);
            return;
        }
        snprintf(label, sizeof(label), "%s that line %" PRIu32 " runs", moments[i].label, line);
        if (is_there)
            add_target(dap, targets, label, line, nearest.event.position);
    }
    tbd_dap_reply(dap, json_pack("{s:o}", "targets", targets));
}
