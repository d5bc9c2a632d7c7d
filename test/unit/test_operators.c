// SPDX-License-Identifier: MIT
// links: tbd_query tbd_format
/* test_operators.c - every operator with operands of every type, as the compiler has it
 *
 * operators_program.c prints what C makes of each expression.  The same is asked as a value and as
 * a condition, with the program's variables as the file has them. */
#include "condition_value.h"
#include "folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SHOWN_MOST 20u

static char folder[FOLDER_BYTES];

struct asked {
    struct tbd_stack_memory memory;
    struct tbd_place_of place;
    struct tbd_c_scope scope;
    unsigned rows, wrong;
};

static bool read_file(void *context, uint64_t address, void *out, size_t bytes)
{
    return tbd_elf_read(context, address, out, bytes) == bytes;
}

static void start_asking(struct asked *asked, struct tbd_elf_file *file)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(file);
    size_t main_at = tbd_elf_lower_bound(file, "main");

    memset(asked, 0, sizeof(*asked));
    asked->memory = (struct tbd_stack_memory){ .read = read_file, .context = file };
    asked->place.dwarf = tbd_dwarf_of(file);
    asked->place.address = symbols->all[tbd_elf_by_name(file)[main_at]].start + 4;
    asked->place.memory = &asked->memory;
    asked->scope.place = &asked->place;
    assert_non_null(asked->place.dwarf);
    assert_true(tbd_dwarf_scopes(asked->place.dwarf, asked->place.address, &asked->place.scopes));
    asked->place.end = asked->place.scopes.count;
}

/* False: the expression has no value. */
static bool printed_value(struct asked *asked, const char *expression, uint64_t *out)
{
    struct tbd_query_error error;
    struct tbd_data data;

    return tbd_c_evaluate(&asked->scope, expression, 0, strlen(expression), &data, &error) ==
               TBD_OK &&
           data.is_known && tbd_data_scalar(&asked->place, &data, out);
}

static void check(struct asked *asked, const char *expression, const char *wanted)
{
    static const char *const asked_as[] = { "value", "condition" };

    for (int i = 0; i < 2; i++) {
        char found[24] = "none";
        uint64_t value;

        if (i == 0 ? printed_value(asked, expression, &value)
                   : condition_value(&asked->scope, expression, &value))
            snprintf(found, sizeof(found), "%lx", value);
        if (strcmp(found, wanted) != 0 && asked->wrong++ < SHOWN_MOST)
            print_error("%s as a %s: %s, not %s\n", expression, asked_as[i], found, wanted);
    }
    asked->rows++;
}

static void operators_give_what_they_give_in_c(void **state)
{
    struct tbd_elf_file *file;
    struct asked asked;
    char line[128];
    FILE *rows = popen("./made", "r");

    (void)state;
    assert_non_null(rows);
    assert_int_equal(tbd_elf_open("made", &file), TBD_OK);
    start_asking(&asked, file);
    while (fgets(line, sizeof(line), rows) != NULL) {
        char *value = strstr(line, " = ");

        assert_non_null(value);
        *value = '\0';
        value[strcspn(value + 3, "\n") + 3] = '\0';
        check(&asked, line, value + 3);
    }
    assert_int_equal(pclose(rows), 0);
    tbd_elf_close(file);
    assert_in_range(asked.rows, 35000, 60000);
    if (asked.wrong > 0)
        fail_msg("%u of %u expressions have another value in C", asked.wrong, asked.rows);
}

static int compile(void **state)
{
    (void)state;
    if (!folder_make(folder, "operators") || chdir(folder) != 0)
        return -1;
    return system("cc -w -O0 -g -no-pie -fno-pie -o made '" TBD_SOURCE_DIR
                  "/test/unit/operators_program.c'");
}

static int remove_all(void **state)
{
    (void)state;
    return folder_remove(folder) ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_give_what_they_give_in_c),
    };

    if (system("cc --version >/dev/null 2>&1") != 0)
        return 77;
    return cmocka_run_group_tests(tests, compile, remove_all);
}
