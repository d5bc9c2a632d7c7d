// SPDX-License-Identifier: MIT
/* Names of C++ and Rust as people write them. */
// links: tbd_query_text
#include "query/text/demangle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check(const char *mangled, const char *readable)
{
    char *text = tbd_demangle(mangled);

    assert_non_null(text);
    assert_string_equal(text, readable);
    free(text);
}

static void names_of_cxx(void **state)
{
    (void)state;
    check("_ZN4shop4Item4costEi", "shop::Item::cost");
    check("_ZTV6Circle", "vtable for Circle");
    assert_null(tbd_demangle("main"));
    assert_null(tbd_demangle("_Zbad"));
}

static void names_of_rust_have_neither_hash_nor_escapes(void **state)
{
    (void)state;
    check("_ZN1v4work17hdf63d0969801663fE", "v::work");
    check("_ZN1v4work17hdf63d0969801663fE.llvm.123", "v::work");
    check("_ZN43_$LT$shop..Item$u20$as$u20$shop..Priced$GT$4cost17h0123456789abcdefE",
          "<shop::Item as shop::Priced>::cost");
    check("_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17h5ad8b7f55b3bbe28E",
          "std::rt::lang_start::{{closure}}");
    check("_ZN4core3ptr45drop_in_place$LT$$RF$$u5b$u8$u5d$$C$$BP$T$GT$17h0123456789abcdefE",
          "core::ptr::drop_in_place<&[u8],*T>");
}

static void what_only_looks_like_rust_stays(void **state)
{
    (void)state;
    check("_ZN1v4work16hdf63d0969801663E", "v::work::hdf63d0969801663");
    check("_ZN1v4work17hdf63d0969801663gE", "v::work::hdf63d0969801663g");
    check("_ZN1v4wo$k17h0123456789abcdefE", "v::wo$k");
    check("_ZN1v7wo$uzz$17h0123456789abcdefE", "v::wo$uzz$");
}

static void functions_of_rust_are_found_by_the_ends_of_their_names(void **state)
{
    static const char mangled[] = "_ZN1v4work17hdf63d0969801663fE";
    char *text = tbd_demangle(mangled);

    (void)state;
    assert_true(tbd_may_be_called(mangled, "work") && tbd_is_name_for(text, "work"));
    assert_true(tbd_may_be_called(mangled, "v::work") && tbd_is_name_for(text, "v::work"));
    assert_false(tbd_is_name_for(text, "ork"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_cxx),
        cmocka_unit_test(names_of_rust_have_neither_hash_nor_escapes),
        cmocka_unit_test(what_only_looks_like_rust_stays),
        cmocka_unit_test(functions_of_rust_are_found_by_the_ends_of_their_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
