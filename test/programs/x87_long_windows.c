// SPDX-License-Identifier: MIT
// libs: pthread
// cpu: xsave
/* x87_pointers.c in windows that do not end before its code goes away. */
#include "x87_pointers.c"
