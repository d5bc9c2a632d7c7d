// SPDX-License-Identifier: MIT
// libs: pthread
// flags: -fexceptions -rdynamic
/* backtrace() through our own frames, cleanup handlers run by forced unwinding. */
#include "check.h"
#include <execinfo.h>
#include <unwind.h>

static int cleaned;

static void on_cleanup(int *p) { cleaned += *p; }

__attribute__((noinline)) static int depth_of(int n)
{
    void *frames[100];
    int result = n > 0 ? depth_of(n - 1) : backtrace(frames, 100);

    __asm__ volatile("" : "+r"(result));
    return result;
}

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context, void *count)
{
    ++*(int *)count;
    return _Unwind_GetIP(context) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

int main(void)
{
    int count = 0, first = depth_of(0);

    for (int i = 0; i < 30; i++) {
        __attribute__((cleanup(on_cleanup))) int value = i;

        CHECK(depth_of(i) == first + i);
    }
    _Unwind_Backtrace(count_frame, &count);
    CHECK(count >= 3 && cleaned == 435);
    printf("cleaned %d\n", cleaned);
    return 0;
}
