// SPDX-License-Identifier: MIT
/* stale_flag.c - a price is taken from a cache that should have been dropped
 *
 * The branch in price_of() is wrong because a flag is.  stale_flag.tbdq asks when the flag was set,
 * and what has changed since. */
#include <stdio.h>

static int prices[4] = { 10, 20, 30, 40 };
static int cached, is_cached;

static int price_of(int item)
{
    if (!is_cached) {
        cached = prices[item];
        is_cached = 1;
    }
    return cached;
}

static void set_price(int item, int price)
{
    prices[item] = price;
#ifdef FIXED
    is_cached = 0;
#endif
}

int main(void)
{
    int before = price_of(2);
    int after;

    set_price(2, 35);
    after = price_of(2);
    printf("%d, then %d\n", before, after);
    return after != 35;
}
