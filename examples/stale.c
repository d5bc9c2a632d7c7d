// SPDX-License-Identifier: MIT
/* stale.c - memory is used after it was freed, when it has another owner
 *
 *     stale             prints "Hello, world: the balance is 1819043144, it should be 500", exit status 1
 *
 * The account's memory was freed and allocated again for a text.  Which function wrote over the balance,
 * and which one had freed it?
 *
 *     tbdq 'goto first forward func_exit 1 where func==new_account'     retval: the account's address
 *     tbdq 'goto last backward store 1 where addr==ADDRESS'             copy_text, long after
 *     tbdq 'goto current backward func_enter 1 where func==free and arg0==ADDRESS'     the mistake
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct account {
    int balance;
    int number;
    char owner[24];
};

__attribute__((noinline)) struct account *new_account(int number);
__attribute__((noinline)) char *copy_text(const char *text);
__attribute__((noinline)) void close_account(struct account *account);

struct account *new_account(int number)
{
    struct account *account = malloc(sizeof(*account));

    if (!account)
        exit(2);
    account->balance = 500;
    account->number = number;
    return account;
}

char *copy_text(const char *text)
{
    char *copy = malloc(sizeof(struct account));

    if (copy)
        strcpy(copy, text);
    return copy;
}

/* The bug: the caller goes on with it. */
void close_account(struct account *account)
{
    free(account);
}

int main(void)
{
    struct account *volatile account = new_account(7);
    char *greeting;

    close_account(account);
    greeting = copy_text("Hello, world");
    printf("%s: the balance is %d, it should be 500\n", greeting, account->balance);
    return account->balance == 500 ? 0 : 1;
}
