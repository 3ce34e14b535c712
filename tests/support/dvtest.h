/* dvtest.h - cmocka with what it needs included first, and a few assertions of our own. */
#ifndef DV_TESTS_DVTEST_H
#define DV_TESTS_DVTEST_H

#include <setjmp.h> /* IWYU pragma: export */
#include <stdarg.h> /* IWYU pragma: export */
#include <stddef.h> /* IWYU pragma: export */
#include <stdint.h> /* IWYU pragma: export */

#include <cmocka.h> /* IWYU pragma: export */

#include "base/err.h" /* IWYU pragma: export */
#include "base/str.h" /* IWYU pragma: export */

/* Compares a dv_str with a C string and prints both when they differ. */
#define assert_str(s, expected)                                                                    \
    do {                                                                                           \
        dv_str assert_str_got = (s);                                                               \
        dv_str assert_str_want = dv_str_from_c(expected);                                          \
        if (!dv_str_eq(assert_str_got, assert_str_want))                                           \
            fail_msg("got \"%.*s\", want \"%.*s\"", DV_FMT(assert_str_got),                        \
                     DV_FMT(assert_str_want));                                                     \
    } while (0)

/* The error has this code, and this text somewhere in its message. */
#define assert_err(err, wanted_code, text)                                                         \
    do {                                                                                           \
        const struct dv_err *assert_err_got = (err);                                               \
        if (assert_err_got->code != (wanted_code) ||                                               \
            dv_str_find(dv_str_from_c(assert_err_got->msg), dv_str_from_c(text)) ==                \
                dv_str_from_c(assert_err_got->msg).n)                                              \
            fail_msg("got %s \"%s\", want %s \"...%s...\"", dv_code_name(assert_err_got->code),    \
                     assert_err_got->msg, dv_code_name(wanted_code), (text));                      \
    } while (0)

/* Fails with the error's text when the call did not succeed. */
#define assert_ok(call, err)                                                                       \
    do {                                                                                           \
        if (!(call))                                                                               \
            fail_msg("%s: %s: %s", #call, dv_code_name((err)->code), (err)->msg);                  \
    } while (0)

#endif
