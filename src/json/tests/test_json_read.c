#include "base/arena.h"
#include "json/tests/test_doc.h"

#include <string.h>

static void prints_what_it_read_with_order_and_numbers_kept(void **state)
{
    static const char *const texts[] = {
        "null",
        "true",
        "false",
        "\"\"",
        "[]",
        "{}",
        "0",
        "-0",
        "1.0",
        "1E+2",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
        "123456789012345678901234567890",
        "0.1000000000000000055511151231257827021181583404541015625",
        "1e400",
        "{\"z\":1,\"a\":{\"\":[]},\"m\":[1,[2,[3]],{}]}",
        "\"\\u0000\\u0001\\b\\f\\n\\r\\t\\\"\\\\/\"",
        "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"",
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(texts); i++)
        assert_str(print(parse(texts[i])), texts[i]);
}

static void reads_as(const char *text, dv_str expected)
{
    struct dv_err err;
    dv_str value;

    assert_ok(dv_json_as_str(parse(text), &value, &err), &err);
    assert_int_equal(value.n, expected.n); /* they may hold NUL */
    assert_memory_equal(value.p, expected.p, value.n);
}

static void unescapes_strings(void **state)
{
    (void)state;
    reads_as("\"\\u0041\\u00e4\\u20AC\"", DV_STR("A\xc3\xa4\xe2\x82\xac"));
    reads_as("\"\\ud83d\\ude00\"", DV_STR("\xf0\x9f\x98\x80"));
    reads_as("\"a\\u0000b\"", DV_STR("a\0b"));
    reads_as("\"\\/\\\\\\\"\"", DV_STR("/\\\""));
    /* half a pair is U+FFFD, as Go reads it */
    reads_as("\"\\ud83d\"", DV_STR("\xef\xbf\xbd"));
    reads_as("\"\\ude00x\"", DV_STR("\xef\xbf\xbdx"));
    reads_as("\"\\ud83d\\ud83d\\ude00\"", DV_STR("\xef\xbf\xbd\xf0\x9f\x98\x80"));
    reads_as("\"\\ud83d\\n\"", DV_STR("\xef\xbf\xbd\n"));
    reads_as("\"\xc3\xa4 long enough for a whole word \\n\"",
             DV_STR("\xc3\xa4 long enough for a whole word \n"));
}

static void refused(const char *text, const char *msg)
{
    struct dv_err err;

    assert_null(dv_json_parse(dv_str_from_c(text), NULL, arena, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, msg);
}

static void refuses_what_is_not_json_and_says_where(void **state)
{
    (void)state;
    refused("", "line 1, column 1: expected a value, got the end of the text");
    refused(" \n ", "line 2, column 2: expected a value, got the end of the text");
    refused("{\n  \"a\": 1,\n  \"b\" 2\n}", "line 3, column 7: expected ':' after a key, got '2'");
    refused("{\"a\":1 \"b\":2}", "line 1, column 8: expected ',' or '}' after a member, got '\"'");
    refused("[1 2]", "line 1, column 4: expected ',' or ']' after an element, got '2'");
    refused("[1,]", "line 1, column 4: expected a value, got ']'");
    refused("{\"a\":1,}", "line 1, column 8: expected a key in double quotes, got '}'");
    refused("{a:1}", "line 1, column 2: expected a key in double quotes, got 'a'");
    refused("[1}", "line 1, column 3: expected ',' or ']'");
    refused("[[1]", "line 1, column 5: expected ',' or ']'");
    refused("nul", "line 1, column 1: expected a value, got 'n'");
    refused("True", "line 1, column 1: expected a value, got 'T'");
    refused("NaN", "line 1, column 1: expected a value, got 'N'");
    refused("'a'", "line 1, column 1: expected a value, got '''");
    refused("01", "line 1, column 2: expected nothing after the value, got '1'");
    refused("+1", "line 1, column 1: expected a value, got '+'");
    refused(".5", "line 1, column 1: expected a value, got '.'");
    refused("-", "line 1, column 2: expected a digit, got the end");
    refused("1.", "line 1, column 3: expected a digit after the decimal point");
    refused("1e+", "line 1, column 4: expected a digit in the exponent");
    refused("1 2", "line 1, column 3: expected nothing after the value, got '2'");
    refused("// x\n1", "line 1, column 1: expected a value, got '/'");
    refused("\xef\xbb\xbf{}", "line 1, column 1: expected a value, got '\\ufeff'");
    refused("\"abc", "line 1, column 1: a string that does not end");
    refused("[\"\xc3\xa4\xc3\xa4\", \"abc", "line 1, column 8: a string that does not end");
    refused("\"a\nb\"", "line 1, column 3: a control character in a string");
    refused("\"a\\x\"", "line 1, column 3: a backslash that begins no escape");
    refused("\"\\u12g4\"", "line 1, column 2: a \\u that four hexadecimal digits do not");
    refused("\"\\", "line 1, column 2: a backslash that begins no escape");
    refused("\"\xc3\xa4\xff\"", "line 1, column 3: a string that is not UTF-8");
    refused("\"\xc0\xaf\"", "line 1, column 2: a string that is not UTF-8");
    refused("\"\xed\xa0\x80\"", "line 1, column 2: a string that is not UTF-8");
    refused("\"\xe2\x82\"", "line 1, column 2: a string that is not UTF-8");
    refused("[1,\x01]", "line 1, column 4: expected a value, got the byte 0x01");
}

static void refuses_a_nul_byte_after_the_value(void **state)
{
    struct dv_err err;

    (void)state;
    assert_null(dv_json_parse((dv_str){"{}\0", 3}, NULL, arena, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "line 1, column 3: expected nothing after the value");
}

static void reads_bad_utf8_as_go_does_when_told(void **state)
{
    const struct dv_json_opts opts = {.replace_bad_utf8 = true};
    struct dv_err err;
    struct dv_json *doc;

    (void)state;
    doc = dv_json_parse(DV_STR("[\"a\xff\xc3\xa4\xe2\x82\"]"), &opts, arena, &err);
    assert_ok(doc, &err);
    assert_str(print(doc), "[\"a\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\"]");
    assert_null(dv_json_parse(DV_STR("[\xff]"), &opts, arena, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "column 2: expected a value, got the byte 0xff");
}

static void knows_the_line_and_column_of_each_node(void **state)
{
    const struct dv_json *doc = parse("{\n  \"\xc3\xa4\": 1, \"b\": [true,\n    \"x\"]\n}");
    const struct dv_json *b = dv_json_get(doc, DV_STR("b"));

    (void)state;
    assert_int_equal(dv_json_line(doc), 1);
    assert_int_equal(dv_json_line(dv_json_first(doc)), 2);
    assert_int_equal(dv_json_line(dv_json_at(b, 1)), 3);
}

static void of_a_repeated_key_the_last_counts_and_is_marked(void **state)
{
    const struct dv_json *doc = parse("{\"a\":1,\"b\":2,\"a\":{\"c\":3},\"a\":4}");

    (void)state;
    assert_str(print(doc), "{\"b\":2,\"a\":4}");
    assert_int_equal(dv_json_n(doc), 2);
    assert_true(dv_json_is_repeated(dv_json_get(doc, DV_STR("a"))));
    assert_false(dv_json_is_repeated(dv_json_get(doc, DV_STR("b"))));
}

static void refuses_a_repeated_key_when_told(void **state)
{
    const struct dv_json_opts opts = {.refuse_duplicates = true};
    struct dv_err err;

    (void)state;
    assert_null(
        dv_json_parse(DV_STR("{\"a\":1,\n\"b\":{\"a\":2},\n\"\\u0061\": 3}"), &opts, arena, &err));
    assert_err(&err, DV_INVALID_ARGUMENT,
               "line 3, column 11: duplicate key \"a\", first given on line 1");
}

/* Large objects are indexed; their duplicates are found by another way. */
static void large_objects_behave_as_small_ones(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    const struct dv_json_opts strict = {.refuse_duplicates = true};
    struct dv_err err;
    struct dv_json *doc;

    (void)state;
    dv_buf_init(&text, PRINT_BYTES_MAX);
    dv_buf_add_char(&text, '{');
    for (unsigned i = 0; i < 1000; i++)
        dv_buf_printf(&text, "%s\"k%u\":%u", i ? "," : "", i % 900, i);
    dv_buf_add_char(&text, '}');
    doc = dv_json_parse(dv_buf_str(&text), NULL, arena, &err);
    assert_ok(doc, &err);
    assert_int_equal(dv_json_n(doc), 900);
    for (unsigned i = 0; i < 900; i++) {
        const struct dv_json *node = dv_json_get(doc, dv_str_printf(arena, "k%u", i));
        uint64_t value;

        assert_ok(dv_json_as_u64(node, &value, &err), &err);
        assert_int_equal(value, i < 100 ? i + 900 : i);
        assert_int_equal(dv_json_is_repeated(node), i < 100);
    }
    assert_null(dv_json_get(doc, DV_STR("k900")));
    assert_null(dv_json_parse(dv_buf_str(&text), &strict, arena, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "duplicate key \"k0\"");
}

static void keeps_within_each_limit(void **state)
{
    static const struct {
        const char *text;
        struct dv_json_opts opts;
        const char *msg; /* NULL: it fits */
    } rows[] = {
        {"[[1]]",      {.depth_max = 2}, NULL                                                     },
        {"[[[1]]]",    {.depth_max = 2}, "line 1, column 3: more than 2 arrays and objects inside"},
        {"{\"a\":{}}", {.depth_max = 1}, "line 1, column 6: more than 1 arrays and objects inside"},
        {"1",          {.depth_max = 1}, NULL                                                     },
        {"[1,2]",      {.nodes_max = 3}, NULL                                                     },
        {"[1,2,3]",    {.nodes_max = 3}, "line 1, column 6: more values than are allowed"         },
        {"[1,2]",      {.bytes_max = 5}, NULL                                                     },
        {"[1,2] ",     {.bytes_max = 5}, "a text of 6 bytes: at most 5 are allowed"               },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_err err;
        bool is_read = dv_json_parse(dv_str_from_c(rows[i].text), &rows[i].opts, arena, &err);

        assert_int_equal(is_read, !rows[i].msg);
        if (rows[i].msg)
            assert_err(&err, DV_RESOURCE_EXHAUSTED, rows[i].msg);
    }
}

static void reads_as_deep_as_go_does(void **state)
{
    char text[20002];
    struct dv_err err;

    (void)state;
    memset(text, '[', 10001);
    memset(text + 10001, ']', 10001);
    assert_non_null(dv_json_parse((dv_str){text + 1, 20000}, NULL, arena, &err));
    assert_null(dv_json_parse((dv_str){text, 20002}, NULL, arena, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "line 1, column 10001: more than 10000 arrays");
}

static void takes_no_memory_for_a_text_that_is_too_large(void **state)
{
    const struct dv_json_opts opts = {.bytes_max = 10};
    size_t before = dv_arena_size_bytes(arena);
    struct dv_err err;

    (void)state;
    assert_null(dv_json_parse(DV_STR("[1,2,3,4,5,6]"), &opts, arena, &err));
    assert_int_equal(dv_arena_size_bytes(arena), before);
}

static void keeps_strings_in_the_text(void **state)
{
    const char *text = "{\"key\":\"a value\"}";
    const struct dv_json *node = dv_json_first(parse(text));
    struct dv_err err;
    dv_str value;

    (void)state;
    assert_ok(dv_json_as_str(node, &value, &err), &err);
    assert_ptr_equal(value.p, text + 8);
    assert_ptr_equal(dv_json_key(node).p, text + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(prints_what_it_read_with_order_and_numbers_kept),
        doc_test(unescapes_strings),
        doc_test(refuses_what_is_not_json_and_says_where),
        doc_test(refuses_a_nul_byte_after_the_value),
        doc_test(reads_bad_utf8_as_go_does_when_told),
        doc_test(knows_the_line_and_column_of_each_node),
        doc_test(of_a_repeated_key_the_last_counts_and_is_marked),
        doc_test(refuses_a_repeated_key_when_told),
        doc_test(large_objects_behave_as_small_ones),
        doc_test(keeps_within_each_limit),
        doc_test(reads_as_deep_as_go_does),
        doc_test(takes_no_memory_for_a_text_that_is_too_large),
        doc_test(keeps_strings_in_the_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
