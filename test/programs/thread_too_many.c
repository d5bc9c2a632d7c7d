// SPDX-License-Identifier: MIT
// libs: pthread
// end: detached
// missing: too many threads
/* More threads at a time than are followed: all of them go on natively, from a barrier or before it. */
#define COUNT 1000
#include "thread_many.c"
