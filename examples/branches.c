// SPDX-License-Identifier: MIT
/* branches.c - a log line that says how it came about, in one number
 *
 *     branches          prices three orders; exit status 0
 *
 * Which discounts led to the price?
 *
 *     tbd record --mode=context --branches=price -- branches
 *     tbdq branches 0x101 --program branches --function price      the number in the line
 *
 * Without tbd the numbers are 0. */
#include <inttypes.h>
#include <stdio.h>
#include <tbd/tbd.h>

__attribute__((noinline)) void price(unsigned count, unsigned each, int is_friend);

void price(unsigned count, unsigned each, int is_friend)
{
    unsigned sum = 0;

    for (unsigned n = 0; n < count; n++) {
        sum += each;
        if (n % 4 == 3) /* every fourth at half the price */
            sum -= each / 2;
    }
    if (is_friend)
        sum -= sum / 10;
    if (sum > 1000)
        sum -= 50;
    printf("[0x%" PRIx64 "] %u of %u: %u\n", tbd_branch_context(), count, each, sum);
}

int main(void)
{
    price(3, 10, 0);
    price(9, 120, 1);
    price(40, 70, 0);
    return 0;
}
