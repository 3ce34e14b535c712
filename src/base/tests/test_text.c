#include "support/dvtest.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/key.h"
#include "base/num.h"
#include "base/path.h"

static void an_error_carries_each_level(void **state)
{
    struct dv_err err;

    (void)state;
    assert_false(dv_fail_errno(&err, ENOENT, "open %s", "/a"));
    assert_false(dv_wrap(&err, "CDI spec %d", 3));
    assert_int_equal(err.code, DV_NOT_FOUND);
    assert_string_equal(err.msg, "CDI spec 3: open /a: No such file or directory");
}

static void reads_percent_escapes(void **state)
{
    (void)state;
    assert_int_equal(dv_percent_byte(DV_STR("a%2Fb"), 1), '/');
    assert_int_equal(dv_percent_byte(DV_STR("%00"), 0), 0);
    assert_int_equal(dv_percent_byte(DV_STR("%fF"), 0), 255);
    assert_int_equal(dv_percent_byte(DV_STR("a%2Fb"), 0), -1);
    assert_int_equal(dv_percent_byte(DV_STR("%2g"), 0), -1);
    assert_int_equal(dv_percent_byte(DV_STR("%2"), 0), -1);
    assert_int_equal(dv_percent_byte(DV_STR("%"), 0), -1);
    assert_int_equal(dv_percent_byte(DV_STR(""), 5), -1);
}

static void knows_hexadecimal_digits(void **state)
{
    static const char digits[] = "0123456789abcdef";

    (void)state;
    for (int c = -128; c < 128; c++) {
        const char *at = c > 0 ? strchr(digits, dv_to_lower((char)c)) : NULL;

        assert_int_equal(dv_hex_value((char)c), at ? at - digits : -1);
    }
}

static void a_forked_child_has_random_numbers_of_its_own(void **state)
{
    uint64_t of_child = 0;
    int ends[2];
    int status;
    pid_t child;

    (void)state;
    (void)dv_random_u64(); /* there are numbers that a child could go on with */
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        of_child = dv_random_u64();
        _exit(write(ends[1], &of_child, sizeof(of_child)) != sizeof(of_child));
    }
    assert_int_equal(read(ends[0], &of_child, sizeof(of_child)), sizeof(of_child));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(of_child != dv_random_u64());
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void random_uuids_have_their_form_and_differ(void **state)
{
    char a[DV_UUID_BYTES];
    char b[DV_UUID_BYTES];

    (void)state;
    for (int k = 0; k < 100; k++) {
        dv_str uuid = dv_random_uuid(a);

        assert_string_not_equal(dv_random_uuid(b).p, a);
        assert_int_equal(uuid.n, 36);
        assert_int_equal(a[14], '4');
        assert_non_null(strchr("89ab", a[19]));
        for (size_t i = 0; i < uuid.n; i++)
            assert_true(i == 8 || i == 13 || i == 18 || i == 23
                            ? a[i] == '-'
                            : dv_is_hex(a[i]) && !dv_is_upper(a[i]));
    }
}

static void paths_are_cleaned(void **state)
{
    static const struct {
        const char *path;
        const char *want;
    } cases[] = {
        {"",         "."      },
        {".",        "."      },
        {"/",        "/"      },
        {"//",       "/"      },
        {"/..",      "/"      },
        {"/a/",      "/a"     },
        {"/a/./b//", "/a/b"   },
        {"/a/../b",  "/b"     },
        {"/a/b/..",  "/a"     },
        {"/a/..",    "/"      },
        {"a/..",     "."      },
        {"a/b/../c", "a/c"    },
        {"../a",     "../a"   },
        {"a/../..",  ".."     },
        {"../../a",  "../../a"},
        {"/../../a", "/a"     },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_str(dv_path_clean(dv_str_from_c(cases[i].path), arena), cases[i].want);
}

static void absolute_paths_are_cleaned(void **state)
{
    static const struct {
        const char *path;
        const char *want;
    } cases[] = {
        {"/dev/gpu0",          "/dev/gpu0"},
        {"/dev//gpu0/",        "/dev/gpu0"},
        {"/dev/./x/../gpu0/.", "/dev/gpu0"},
        {"dev/gpu0",           "/dev/gpu0"},
        {"/../../gpu0",        "/gpu0"    },
        {"/dev/...",           "/dev/..." },
        {"",                   "/"        },
        {"/a/..",              "/"        },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_str(dv_path_clean_absolute(dv_str_from_c(cases[i].path), arena), cases[i].want);
}

static void the_directory_is_before_the_last_slash(void **state)
{
    (void)state;
    assert_str(dv_path_dir(DV_STR("/a/b")), "/a");
    assert_str(dv_path_dir(DV_STR("/a/b/")), "/a/b");
    assert_str(dv_path_dir(DV_STR("/a")), "");
    assert_str(dv_path_dir(DV_STR("a")), "");
    assert_str(dv_path_dir(DV_STR("")), "");
}

static void a_long_error_is_cut_at_a_character(void **state)
{
    struct dv_err err;
    char text[DV_ERR_MSG_BYTES + 100];
    char copy[256];

    (void)state;
    for (size_t i = 0; i + 2 <= sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xa4", 2); /* two-byte letters */
    text[sizeof(text) - 2] = '\0';
    for (int shift = 0; shift < 2; shift++) {
        (void)dv_fail(&err, DV_INTERNAL, "%s%s", shift ? "x" : "", text);
        assert_true(dv_str_is_utf8(dv_str_from_c(err.msg)));
        assert_true(dv_str_ends_with(dv_str_from_c(err.msg), DV_STR("...")));
        (void)dv_wrap(&err, "outer");
        assert_true(dv_str_starts_with(dv_str_from_c(err.msg), DV_STR("outer: ")));
        assert_true(dv_str_is_utf8(dv_str_from_c(err.msg)));
        dv_err_copy(&err, copy, sizeof(copy));
        assert_true(dv_str_is_utf8(dv_str_from_c(copy)));
        assert_true(dv_str_ends_with(dv_str_from_c(copy), DV_STR("...")));
    }
    (void)dv_fail(&err, DV_INTERNAL, "short");
    dv_err_copy(&err, copy, sizeof(copy));
    assert_string_equal(copy, "short");
}

static void codes_have_the_names_of_the_protocol(void **state)
{
    (void)state;
    assert_string_equal(dv_code_name(DV_UNAUTHENTICATED), "UNAUTHENTICATED");
    assert_string_equal(dv_code_name((enum dv_code)42), "CODE");
    assert_int_equal(dv_code_from_errno(ENOSPC), DV_RESOURCE_EXHAUSTED);
    assert_int_equal(dv_code_from_errno(12345), DV_INTERNAL);
}

static void utf8_is_judged_as_the_standard_does(void **state)
{
    static const struct {
        const char *text;
        bool is_valid;
    } cases[] = {
        {"",                      true },
        {"plain ascii, longer",   true },
        {"\xc3\xa4\xe8\xaf\x95",  true },
        {"\xf0\x9f\x98\x80",      true },
        {"\xf4\x8f\xbf\xbf",      true },
        {"\xf4\x90\x80\x80",      false}, /* past U+10FFFF */
        {"\xed\xa0\x80",          false}, /* surrogate */
        {"\xc0\xaf",              false}, /* overlong */
        {"\xe0\x80\xaf",          false},
        {"\xff",                  false},
        {"\x80",                  false},
        {"abcdefg\xc3",           false}, /* cut */
        {"abcdefgh\xe8\xaf",      false},
        {"abcdefgh12345678\xc3(", false},
        {"\xf0\x80\x80\x80",      false},
        {"12345678\xc3\xa4"
         "12345678",     true },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        if (dv_str_is_utf8(dv_str_from_c(cases[i].text)) != cases[i].is_valid)
            fail_msg("case %zu", i);
}

static void splitting_gives_every_piece(void **state)
{
    static const struct {
        const char *text;
        const char *pieces; /* joined by | */
    } cases[] = {
        {"a,b", "a|b|"},
        {"a,",  "a||" },
        {",",   "||"  },
        {"",    "|"   },
        {"abc", "abc|"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str rest = dv_str_from_c(cases[i].text);
        dv_str piece;
        struct dv_buf buf;

        dv_buf_init(&buf, 100);
        while (dv_str_split(&rest, ',', &piece)) {
            dv_buf_add(&buf, piece);
            dv_buf_add_char(&buf, '|');
        }
        assert_string_equal(dv_buf_c(&buf), cases[i].pieces);
        dv_buf_fini(&buf);
    }
}

static void comparing_and_finding_know_the_edges(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str none = {NULL, 0};

    (void)state;
    assert_true(dv_str_eq(none, DV_STR("")));
    assert_int_equal(dv_str_cmp(DV_STR("a"), DV_STR("ab")), -1);
    assert_int_equal(dv_str_cmp(DV_STR("b"), DV_STR("ab")), 1);
    assert_int_equal(dv_str_cmp(none, DV_STR("")), 0);
    assert_int_equal(dv_str_cmp(DV_STR("\xff"), DV_STR("a")), 1); /* bytes are unsigned */
    assert_int_equal(dv_str_find(DV_STR("hello"), DV_STR("lo")), 3);
    assert_int_equal(dv_str_find(DV_STR("hello"), DV_STR("x")), 5);
    assert_int_equal(dv_str_find(none, DV_STR("x")), 0);
    assert_true(dv_str_ends_with(DV_STR("a.sock"), DV_STR(".sock")));
    assert_false(dv_str_ends_with(DV_STR("k"), DV_STR(".sock")));
    assert_true(dv_str_eq_nocase(DV_STR("ToKeN"), DV_STR("tOkEn")));
    assert_str(dv_str_trim(DV_STR(" \t a b\r\n")), "a b");
    assert_str(dv_str_slice(DV_STR("abc"), 2, 99), "c");
    assert_str(dv_str_slice(DV_STR("abc"), 5, 99), "");
    assert_str(dv_str_printf(arena, "%d-%s", 1, "x"), "1-x");
    assert_str(dv_str_concat((const dv_str[]){DV_STR("a"), DV_STR_NONE, DV_STR("bc")}, 3, arena),
               "abc");
    assert_str(dv_str_concat((const dv_str[]){DV_STR_NONE}, 1, arena), "");
    assert_str(dv_str_concat(NULL, 0, arena), "");
    assert_string_equal(dv_str_to_c(dv_str_copy(DV_STR("copy"), arena), arena), "copy");
}

static void numbers_are_read_whole_or_not_at_all(void **state)
{
    static const struct {
        const char *text;
        bool u64_ok;
        uint64_t u64;
        bool i64_ok;
        int64_t i64;
    } cases[] = {
        {"0",                    true,  0,          true,  0        },
        {"18446744073709551615", true,  UINT64_MAX, false, 0        },
        {"18446744073709551616", false, 0,          false, 0        },
        {"9223372036854775807",  true,  INT64_MAX,  true,  INT64_MAX},
        {"-9223372036854775808", false, 0,          true,  INT64_MIN},
        {"-9223372036854775809", false, 0,          false, 0        },
        {"",                     false, 0,          false, 0        },
        {"-",                    false, 0,          false, 0        },
        {"+1",                   false, 0,          false, 0        },
        {" 1",                   false, 0,          false, 0        },
        {"1x",                   false, 0,          false, 0        },
        {"-0",                   false, 0,          true,  0        },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str text = dv_str_from_c(cases[i].text);
        uint64_t u = 77;
        int64_t s = 77;

        if (dv_str_to_u64(text, &u) != cases[i].u64_ok ||
            u != (cases[i].u64_ok ? cases[i].u64 : 77))
            fail_msg("u64 %s", cases[i].text);
        if (dv_str_to_i64(text, &s) != cases[i].i64_ok ||
            s != (cases[i].i64_ok ? cases[i].i64 : 77))
            fail_msg("i64 %s", cases[i].text);
    }
}

static void sizes_do_not_wrap(void **state)
{
    size_t out = 5;
    uint32_t narrow;

    (void)state;
    assert_false(dv_size_add(SIZE_MAX, 1, &out));
    assert_false(dv_size_mul(SIZE_MAX / 2 + 1, 2, &out));
    assert_int_equal(out, 5);
    assert_true(dv_size_mul(0, SIZE_MAX, &out));
    assert_true(dv_u64_add_clamped(UINT64_MAX - 1, 5) == UINT64_MAX);
    assert_false(dv_str_to_u32(DV_STR("4294967296"), &narrow));
}

static void jitter_stays_within_its_bounds(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint64_t delay = dv_jitter(1000, 200);

        assert_in_range(delay, 800, 1200);
    }
    assert_int_equal(dv_jitter(0, 200), 0);
    assert_int_equal(dv_jitter(1000, 0), 1000);
}

static void virtual_time_moves_only_when_told(void **state)
{
    struct dv_clock_virtual clock;
    char text[DV_TIME_BYTES];

    (void)state;
    dv_clock_virtual_init(&clock);
    assert_int_equal(dv_clock_now_ms(&clock.clock), 1000);
    dv_clock_virtual_advance_ms(&clock, 1234);
    assert_int_equal(dv_clock_now_ms(&clock.clock), 2234);
    dv_time_print(dv_clock_wall_ns(&clock.clock), text);
    assert_string_equal(text, "2024-01-01T00:00:01.234000Z");
    assert_true(dv_clock_now_ns(dv_clock_real()) <= dv_clock_now_ns(dv_clock_real()));
}

static void files_are_read_whole_under_a_limit(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_err err;
    dv_str text;

    (void)state;
    assert_ok(dv_file_read(DV_STR("/proc/self/comm"), 100, arena, &text, &err), &err);
    assert_true(text.n > 0);
    assert_false(dv_file_read(DV_STR("/dev/zero"), 100, arena, &text, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "/dev/zero: larger than the limit of 100 bytes");
    assert_false(dv_file_read(DV_STR("/nonexistent/x"), 100, arena, &text, &err));
    assert_err(&err, DV_NOT_FOUND, "/nonexistent/x");
    assert_false(dv_file_read(DV_STR("/"), 100, arena, &text, &err));
    assert_err(&err, DV_FAILED_PRECONDITION, "/: read: ");
}

static void keys_give_their_texts_back_and_sort_as_they_do(void **state)
{
    static const dv_str texts[] = {
        {"",     0},
        {"\0",   1},
        {"\0\0", 2},
        {"\0a",  2},
        {"a",    1},
        {"a\0b", 3},
        {"ab",   2},
        {"b",    1},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf last;

    (void)state;
    dv_buf_init(&last, 100);
    for (size_t i = 0; i < DV_COUNT(texts); i++)
        for (size_t j = 0; j < DV_COUNT(texts); j++) {
            DV_CLEANUP(dv_buf_fini) struct dv_buf key;
            dv_str rest;
            dv_str text;

            dv_buf_init(&key, 100);
            dv_key_add(&key, texts[i]);
            dv_key_add(&key, texts[j]);
            assert_true(dv_str_cmp(dv_buf_str(&last), dv_buf_str(&key)) < 0);
            rest = dv_buf_str(&key);
            assert_true(dv_key_take(&rest, arena, &text) && dv_str_eq(text, texts[i]));
            assert_true(dv_key_take(&rest, arena, &text) && dv_str_eq(text, texts[j]));
            assert_int_equal(rest.n, 0);
            rest = dv_str_slice(dv_buf_str(&key), 0, texts[i].n);
            assert_false(dv_key_take(&rest, arena, &text)); /* cut off */
            dv_buf_clear(&last);
            dv_buf_add(&last, dv_buf_str(&key));
        }
}

static void bytes_are_base64_and_back(void **state)
{
    static const struct {
        const char *text;
        dv_str bytes;
        const char *printed;
    } cases[] = {
        {"",             {"", 0},              ""        },
        {"AA==",         DV_STR_INIT("\0"),    "AA=="    },
        {"/+8=",         {"\xff\xef", 2},      "/+8="    },
        {"aGVs\r\nbG8=", DV_STR_INIT("hello"), "aGVsbG8="},
        {"YWJj",         DV_STR_INIT("abc"),   "YWJj"    },
        {"AB==",         DV_STR_INIT("\0"),    "AA=="    },
    };
    static const dv_str refused[] = {
        DV_STR_INIT("A"),      DV_STR_INIT("AA"),    DV_STR_INIT("AA="),   DV_STR_INIT("AA==="),
        DV_STR_INIT("A==="),   DV_STR_INIT("AA==A"), DV_STR_INIT("AA A"),  DV_STR_INIT("-_-_"),
        DV_STR_INIT("AAAA\0"), DV_STR_INIT("AA=A"),  DV_STR_INIT("AA=\0"), DV_STR_INIT("AAA\xc3"),
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str bytes;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

        dv_buf_init(&buf, 100);
        assert_true(dv_base64_decode(dv_str_from_c(cases[i].text), arena, &bytes));
        assert_true(dv_str_eq(bytes, cases[i].bytes));
        dv_base64_encode(bytes, &buf);
        assert_str(dv_buf_str(&buf), cases[i].printed);
    }
    for (size_t i = 0; i < DV_COUNT(refused); i++)
        assert_false(dv_base64_decode(refused[i], arena, &bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_carries_each_level),
        cmocka_unit_test(reads_percent_escapes),
        cmocka_unit_test(knows_hexadecimal_digits),
        cmocka_unit_test(a_forked_child_has_random_numbers_of_its_own),
        cmocka_unit_test(random_uuids_have_their_form_and_differ),
        cmocka_unit_test(paths_are_cleaned),
        cmocka_unit_test(absolute_paths_are_cleaned),
        cmocka_unit_test(the_directory_is_before_the_last_slash),
        cmocka_unit_test(a_long_error_is_cut_at_a_character),
        cmocka_unit_test(codes_have_the_names_of_the_protocol),
        cmocka_unit_test(utf8_is_judged_as_the_standard_does),
        cmocka_unit_test(splitting_gives_every_piece),
        cmocka_unit_test(comparing_and_finding_know_the_edges),
        cmocka_unit_test(numbers_are_read_whole_or_not_at_all),
        cmocka_unit_test(sizes_do_not_wrap),
        cmocka_unit_test(jitter_stays_within_its_bounds),
        cmocka_unit_test(virtual_time_moves_only_when_told),
        cmocka_unit_test(files_are_read_whole_under_a_limit),
        cmocka_unit_test(bytes_are_base64_and_back),
        cmocka_unit_test(keys_give_their_texts_back_and_sort_as_they_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
