// SPDX-License-Identifier: MIT
// args: '' 'a b' "quote'd" --weird=\$x -- "tab	end"
// env: EMPTY= LONG=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
/* Arguments, environment and auxiliary vector reach the program unchanged. */
#include "check.h"
#include <sys/auxv.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        printf("[%s]\n", argv[i]);
    printf("%s|%zu|%s\n", getenv("EMPTY"), strlen(getenv("LONG")), getenv("NOT_SET") ? "set" : "not set");
    CHECK(getauxval(AT_PAGESZ) == 4096 && getauxval(AT_RANDOM) != 0 && argv[argc] == NULL);
    CHECK(setenv("MINE", "1", 1) == 0 && strcmp(getenv("MINE"), "1") == 0 && unsetenv("MINE") == 0);
    return 0;
}
