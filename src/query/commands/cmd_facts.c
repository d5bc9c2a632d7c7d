// SPDX-License-Identifier: MIT
/* cmd_facts.c - facts: what the system said about a program when it died (mode=crash)
 *
 * The file is hostile: a head that is not one ends the reading, and text is escaped when it is printed. */
#include "query/commands/commands.h"
#include "query/output/output.h"

#include "base/safe_stream.h"
#include "format/files/trace_dir.h"
#include "format/trace/trace_handle.h"
#include "format/writer/system_facts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct fact_head {
    char name[32];
    size_t bytes;
    bool is_cut;
};

/* "NAME BYTES" or "NAME BYTES cut" */
static bool read_head(FILE *file, struct fact_head *head)
{
    char line[80], cut[8] = "";
    int items;

    *head = (struct fact_head){ .bytes = 0 };
    if (fgets(line, sizeof(line), file) == NULL)
        return false;
    items = sscanf(line, "%31s %zu %7s", head->name, &head->bytes, cut);
    head->is_cut = strcmp(cut, "cut") == 0;
    return items >= 2 && head->bytes <= TBD_FACT_MAX_BYTES;
}

static void print_text(const struct fact_head *head, const char *text, FILE *out)
{
    fprintf(out, "== %s%s\n%s%s", tbd_shown(head->name), head->is_cut ? " (cut)" : "", text,
            head->bytes != 0 && text[head->bytes - 1] == '\n' ? "" : "\n");
}

static void print_fact(const struct tbd_command_run *run, const struct fact_head *head,
                       const char *text)
{
    json_t *object;

    if (!run->session->json) {
        print_text(head, text, run->out);
        return;
    }
    object = json_object();
    json_object_set_new(object, "type", json_string("fact"));
    json_object_set_new(object, "name", tbd_output_text(head->name));
    json_object_set_new(object, "cut", json_boolean(head->is_cut));
    json_object_set_new(object, "text", tbd_output_text(text));
    tbd_output_line(object, run->out);
}

static bool print_wanted(const struct tbd_command_run *run, FILE *file, char *text)
{
    struct fact_head head;
    bool found = false;

    while (read_head(file, &head)) {
        size_t count = fread(text, 1, head.bytes, file);

        text[count] = '\0';
        for (size_t i = 0; i < count; i++)
            text[i] = text[i] == '\0' ? ' ' : text[i];
        if (count != head.bytes || getc(file) != '\n')
            break;
        if (run->argc != 0 && strcmp(run->argv[0], head.name) != 0)
            continue;
        print_fact(run, &head, text);
        found = true;
    }
    return found;
}

enum tbd_exit tbd_command_facts(struct tbd_command_run *run)
{
    char *text = malloc(TBD_FACT_MAX_BYTES + 1);
    FILE *file;
    bool found;

    if (run->argc > 1 || text == NULL) {
        free(text);
        return run->argc > 1 ? tbd_command_usage(run, "facts takes one name, or none")
                             : tbd_command_no_memory();
    }
    file = tbd_dir_text(tbd_trace_dir(run->session->trace).fd, TBD_FACTS_FILE);
    found = file != NULL && print_wanted(run, file, text);
    if (file != NULL)
        fclose(file);
    free(text);
    if (!found)
        fprintf(stderr, "tbdq: %s\n",
                file == NULL ? "there are no facts of the system: only crash dumps have them"
                             : "there is no such fact: `facts` shows all");
    return found ? TBD_EXIT_FOUND : TBD_EXIT_NOT_FOUND;
}
