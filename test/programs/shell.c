// SPDX-License-Identifier: MIT
/* system and popen: children of the usual kind, also a pipe to a filter. */
#include "check.h"
#include <stdlib.h>
#include <sys/wait.h>

int main(void)
{
    char line[100];
    FILE *f;
    int lines = 0;

    CHECK(WEXITSTATUS(system("exit 3")) == 3);
    f = popen("printf 'a\\nb\\nc\\n'; exit 2", "r");
    CHECK(f != NULL);
    while (fgets(line, sizeof(line), f) != NULL)
        lines++;
    CHECK(lines == 3 && WEXITSTATUS(pclose(f)) == 2);
    fflush(stdout);
    f = popen("cat", "w");
    CHECK(f != NULL && fputs("through cat\n", f) >= 0 && pclose(f) == 0);
    puts("shell ok");
    return 0;
}
