// SPDX-License-Identifier: MIT
// links: tbd_format tbd_base
/* The example in docs/FORMAT.md is a trace: readers read what the page shows. */
#include "format/trace/trace.h"

#include "folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char folder[FOLDER_BYTES];

/* Not by __FILE__: compilers are called with relative paths, too, by ccache for instance. */
static FILE *open_doc(void)
{
    return fopen(TBD_SOURCE_DIR "/docs/FORMAT.md", "r");
}

/* "0010  40 00 ..." */
static void write_line(const char *line, FILE *out)
{
    unsigned byte;
    int used;

    for (line += 4; sscanf(line, " %2x%n", &byte, &used) == 1; line += used)
        fputc((int)byte, out);
}

static int unpack_example(void **state)
{
    FILE *doc = open_doc();
    FILE *out = NULL;
    char line[512];
    char name[32];
    char path[128];

    (void)state;
    if (!doc || !folder_make(folder, "doc"))
        return -1;
    while (fgets(line, sizeof(line), doc)) {
        if (sscanf(line, "```hexdump %31s", name) == 1) {
            snprintf(path, sizeof(path), "%s/%s", folder, name);
            out = fopen(path, "wb");
            if (!out)
                return -1;
        } else if (out && line[0] == '`') {
            fclose(out);
            out = NULL;
        } else if (out) {
            write_line(line, out);
        }
    }
    fclose(doc);
    return 0;
}

static int remove_example(void **state)
{
    (void)state;
    return folder_remove(folder) ? 0 : -1;
}

static void example_of_the_documentation_opens(void **state)
{
    struct tbd_error why = { 0 };
    const struct tbd_trace_info *info;
    const struct tbd_region *regions;
    const struct tbd_block *block;
    struct tbd_trace *trace;
    size_t count;

    (void)state;
    if (tbd_trace_open(folder, &trace, &why))
        print_message("%s at %llu: %s\n", why.file, (unsigned long long)why.offset, why.detail);
    assert_non_null(trace);
    info = tbd_trace_info(trace);
    assert_string_equal(info->program, "/bin/true");
    assert_string_equal(info->argv[0], "true");
    assert_int_equal(info->argc, 1);
    assert_string_equal(info->cwd, "/tmp");
    assert_int_equal(info->window_blocks, 1048576);
    assert_true(info->finished);
    assert_int_equal(info->end.how, TBD_ENDED_EXIT);
    assert_int_equal(tbd_trace_window_count(trace), 0);
    assert_int_equal(tbd_trace_block_count(trace), 1);
    block = tbd_trace_block(trace, 1);
    assert_int_equal(block->def.start, 0x401000);
    assert_int_equal(block->code[0], 0x55);
    assert_int_equal(block->ops[0].kind, TBD_OP_STORE);
    assert_int_equal(block->ops[0].add, -8);
    assert_int_equal(block->ops[1].kind, TBD_OP_RET);
    assert_int_equal(tbd_trace_regions(trace, 0, &regions, &count, &why), TBD_OK);
    assert_int_equal(count, 1);
    assert_int_equal(regions[0].start, 0x401000);
    tbd_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(example_of_the_documentation_opens),
    };

    return cmocka_run_group_tests(tests, unpack_example, remove_example);
}
