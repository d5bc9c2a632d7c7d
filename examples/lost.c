// SPDX-License-Identifier: MIT
/* lost.c - a function fails once in a thousand calls and the failure is dropped on the way up
 *
 *     lost              prints "999 of 1000 records stored", exit status 1
 *
 * Which call failed, with which arguments, and who ignored it?
 *
 *     tbdq 'goto first forward func_exit 1 where func==store_record and signed(retval)<0'
 *     tbdq 'goto current backward func_enter 1 where func==store_record'      arg0: the record's key
 *     tbdq 'goto first forward func_enter 1 where stack=<**,main,store_all,store_record> and arg0==577'
 */
#include <stdio.h>

static unsigned char used[1024];
unsigned stored;

__attribute__((noinline)) long store_record(unsigned key, unsigned slot);
__attribute__((noinline)) void store_all(unsigned count);

/* 0, or -1 if the slot is taken. */
long store_record(unsigned key, unsigned slot)
{
    if (used[slot])
        return -1;
    used[slot] = (unsigned char)(key | 1);
    stored++;
    return 0;
}

/* The bug: nobody looks at the result. */
void store_all(unsigned count)
{
    for (unsigned key = 0; key < count; key++)
        store_record(key, key == 577 ? 311 : key);
}

int main(void)
{
    store_all(1000);
    printf("%u of 1000 records stored\n", stored);
    return stored == 1000 ? 0 : 1;
}
