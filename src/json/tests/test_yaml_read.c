#include "base/arena.h"
#include "json/tests/test_doc.h"

#include <string.h>

static void means(const char *yaml, const char *json)
{
    assert_str(print(parse_yaml(yaml)), json);
}

static void refused(const char *yaml, const char *msg)
{
    struct dv_err err;

    assert_null(dv_yaml_parse(dv_str_from_c(yaml), NULL, arena, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, msg);
}

/* Each line as kubectl 1.32 reads it. */
static void plain_scalars_mean_what_they_mean_to_kubernetes(void **state)
{
    (void)state;
    means("[yes, Yes, YES, y, Y, on, On, ON, true, True, TRUE]",
          "[true,true,true,true,true,true,true,true,true,true,true]");
    means("[no, No, NO, n, N, off, Off, OFF, false, False, FALSE]",
          "[false,false,false,false,false,false,false,false,false,false,false]");
    means("[yES, oN, tRUE, nULL, yess]", "[\"yES\",\"oN\",\"tRUE\",\"nULL\",\"yess\"]");
    means("[~, null, Null, NULL, ]", "[null,null,null,null]");
    means("a:\nb: ''", "{\"a\":null,\"b\":\"\"}");
    means("[0, 12, -12, +12, 1_000, 1_, -0]", "[0,12,-12,12,1000,1,0]");
    means("[0x1F, 0X1f, -0x10, 0o17, 0O17, 017, 0b101, -0b11, 0x_f]",
          "[31,31,-16,15,15,15,5,-3,15]");
    means("[08, 09.5, 0o8, 0xg, 0b2, 0x]", "[8,9.5,\"0o8\",\"0xg\",\"0b2\",\"0x\"]");
    means("[9223372036854775807, -9223372036854775808, 18446744073709551615]",
          "[9223372036854775807,-9223372036854775808,18446744073709551615]");
    means("[18446744073709551616, -9223372036854775809, +9223372036854775808]",
          "[18446744073709552000,-9223372036854776000,9223372036854776000]");
    means("[0xFFFFFFFFFFFFFFFF, 0x10000000000000000, -0x8000000000000000]",
          "[18446744073709551615,\"0x10000000000000000\",-9223372036854775808]");
    means("[1.5, .5, -.5, +.5, 1., 1e3, 1E-7, 1_0.5_0, .5_0]",
          "[1.5,0.5,-0.5,0.5,1,1000,1e-7,10.5,0.5]");
    means("[., .e1, 1e, 1e400, ._5, 0x1p4, 1.2.3, '-', + ]",
          "[\".\",\".e1\",\"1e\",\"1e400\",\"._5\",\"0x1p4\",\"1.2.3\",\"-\",\"+\"]");
    means("[2001-01-01, 2001-01-01T00:00:00Z, 12:30:45, 1:20]",
          "[\"2001-01-01\",\"2001-01-01T00:00:00Z\",\"12:30:45\",\"1:20\"]");
    means("[<<, =, a b, 80Gi, 100m, v1]", "[\"<<\",\"=\",\"a b\",\"80Gi\",\"100m\",\"v1\"]");
}

static void quoted_and_block_scalars_are_strings(void **state)
{
    (void)state;
    means("['yes', \"12\", '', \"~\", '.inf']", "[\"yes\",\"12\",\"\",\"~\",\".inf\"]");
    means("[\"a\\tb\\0\\x41\\u20ac\\U0001F600\", 'it''s']",
          "[\"a\\tb\\u0000A\xe2\x82\xac\xf0\x9f\x98\x80\",\"it's\"]");
    means("a: |\n  12\n   x\n\nb: >-\n  12\n  13\n\n  14\nc: |+\n  z\n\n",
          "{\"a\":\"12\\n x\\n\",\"b\":\"12 13\\n14\",\"c\":\"z\\n\\n\"}");
    means("a: plain over\n  two lines # and a comment\n", "{\"a\":\"plain over two lines\"}");
}

static void tags_demand_or_change_the_kind(void **state)
{
    (void)state;
    means("[!!str 12, !!str, ! 12, ! '12', !foo 12, !!foo 12]",
          "[\"12\",\"\",\"12\",\"12\",\"12\",\"12\"]");
    means("[!!int '12', !!int 0x10, !!float 12, !!float '1.50', !!bool 'yes', !!null '']",
          "[12,16,12,1.5,true,null]");
    means("[!!float 1e400, !!float -1e999]", "[1e400,-1e999]");
    refused("[!!timestamp 2001-01-01, !!binary aGVs bG8=]", "!!binary that is not base64");
    means("!!binary |\n  aGVs\n  bG8=\n", "\"hello\"");
    means("[!!binary aA==, !!binary aGk=, !!binary '']", "[\"h\",\"hi\",\"\"]");
    means("[!!seq {a: 1}, !!map [1], !x {}]", "[{\"a\":1},[1],{}]");
}

static void keys_become_strings(void **state)
{
    (void)state;
    means("{1: a, -5: a, 0x10: a, true: a, off: a, '1.5': a}",
          "{\"1\":\"a\",\"-5\":\"a\",\"16\":\"a\",\"true\":\"a\",\"false\":\"a\",\"1.5\":\"a\"}");
    means("{1.5: a, 1e10: a, 1000000.0: a, 3.14159265358979: a, 0.00001: a, 100000.0: a}",
          "{\"1.5\":\"a\",\"1e+10\":\"a\",\"1e+06\":\"a\",\"3.1415927\":\"a\",\"1e-05\":\"a\","
          "\"100000\":\"a\"}");
    means("{.inf: a, -.inf: a, .nan: a, 2001-01-01: a}",
          "{\".inf\":\"a\",\"-.inf\":\"a\",\".nan\":\"a\",\"2001-01-01\":\"a\"}");
    means("? a\n: b\n? |\n  c\n: d", "{\"a\":\"b\",\"c\\n\":\"d\"}");
    means("'': a", "{\"\":\"a\"}");
}

static void aliases_are_copies(void **state)
{
    (void)state;
    means("a: &x {b: [1]}\nc: *x\nd: [*x, *x]",
          "{\"a\":{\"b\":[1]},\"c\":{\"b\":[1]},\"d\":[{\"b\":[1]},{\"b\":[1]}]}");
    means("a: &x 1\nb: &x 2\nc: *x", "{\"a\":1,\"b\":2,\"c\":2}");
    means("a: &x key\n*x : &y 2\n? &z q\n: *z\nb: *y",
          "{\"a\":\"key\",\"key\":2,\"q\":\"q\",\"b\":2}");
    means("a: &i 5\n*i : a\nb: &f 1.5\n*f : b\nc: &t yes\n*t : c",
          "{\"a\":5,\"5\":\"a\",\"b\":1.5,\"1.5\":\"b\",\"c\":true,\"true\":\"c\"}");
}

/* The later one wins, also over keys before the merge: go-yaml v2 differs from the YAML 1.1 draft.
 */
static void merges_take_the_place_of_their_key(void **state)
{
    const struct dv_json_opts strict = {.refuse_duplicates = true};
    struct dv_err err;

    (void)state;
    means("a: &a {x: 2, z: 3}\nb: {<<: *a, x: 1}",
          "{\"a\":{\"x\":2,\"z\":3},\"b\":{\"z\":3,\"x\":1}}");
    means("a: &a {x: 2, z: 3}\nb: {x: 1, <<: *a}",
          "{\"a\":{\"x\":2,\"z\":3},\"b\":{\"x\":2,\"z\":3}}");
    means("a: &a {x: 2}\nb: {<<: [*a, {x: 9, w: 1}]}", "{\"a\":{\"x\":2},\"b\":{\"w\":1,\"x\":2}}");
    means("a: {<<: {x: 1}, <<: {x: 5, q: 1}, p: 0}", "{\"a\":{\"x\":5,\"q\":1,\"p\":0}}");
    means("a: &a {<<: &b {x: 1}, y1: 2}\nb: *a\nc: *b",
          "{\"a\":{\"x\":1,\"y1\":2},\"b\":{\"x\":1,\"y1\":2},\"c\":{\"x\":1}}");
    means("a: {'<<': 1}", "{\"a\":{\"<<\":1}}");
    means("a: {!!merge <<: {x: 1}, <<: {}, <<: []}", "{\"a\":{\"x\":1}}");
    assert_non_null(dv_yaml_parse(DV_STR("{x: 1, <<: {x: 2}}"), &strict, arena, &err));
    assert_null(dv_yaml_parse(DV_STR("{<<: {x: 2}, x: 1, x: 3}"), &strict, arena, &err));
}

static void refuses_what_has_no_meaning_and_says_where(void **state)
{
    (void)state;
    refused("a: .inf", "line 1, column 4: a number that is infinite or none");
    refused("a:\n- -.nan\n- .NaN", "line 3, column 3: a number that is infinite or none");
    refused("null: a", "line 1, column 1: null as a key");
    refused("a: &n ~\n*n : 1", "line 2, column 1: null as a key");
    refused("? [a]\n: b", "line 1, column 3: a key that is no scalar");
    refused("a: &s [1]\n*s : b", "line 2, column 1: a key that is no scalar");
    refused("a: *b", "line 1, column 4: no anchor \"b\"");
    refused("a: &x [*x]", "line 1, column 8: anchor \"x\" contains itself");
    refused("a: !!int foo", "line 1, column 4: \"foo\" is not what its tag !!int says");
    refused("a: !!int 1.5", "line 1, column 4: \"1.5\" is not what its tag !!int says");
    refused("a: !!bool 1", "is not what its tag !!bool says");
    refused("a: !!float x", "is not what its tag !!float says");
    refused("a: !!timestamp x", "is not what its tag !!timestamp says");
    refused("a: !!null x", "is not what its tag !!null says");
    refused("a: !!binary '*'", "line 1, column 4: !!binary that is not base64");
    refused("a: !!binary aA", "line 1, column 4: !!binary that is not base64");
    refused("a: !!binary /w==", "line 1, column 4: !!binary that holds no UTF-8 text");
    refused("a: {<<: 1}", "line 1, column 9: << needs a mapping or a sequence of mappings");
    refused("a: {<<: [{}, 1]}", "line 1, column 14: << needs a mapping or a sequence of mappings");
    refused("a: 1\n---\nb: 2", "line 3, column 1: a second document");
    refused("a: b: c", "line 1, column 5: mapping values are not allowed in this context");
    refused("a: 'x", "while scanning a quoted scalar that begins on line 1");
    refused("a:\n\t- x", "line 2, column 1: found character that cannot start any token");
    refused("a: [1, 2", "line 2, column 1: did not find expected ',' or ']'");
    refused("a: \x01", "line 1, column 4: control characters are not allowed");
    refused("a: \xc3\xa4\nb: \xff", "line 2, column 4: invalid leading UTF-8 octet");
    refused("%YAML 2.0\n--- a", "found incompatible YAML document");
}

static void refuses_a_repeated_key_when_told(void **state)
{
    const struct dv_json_opts strict = {.refuse_duplicates = true};
    struct dv_err err;

    (void)state;
    means("a: 1\nb: 2\na: 3", "{\"b\":2,\"a\":3}");
    assert_null(dv_yaml_parse(DV_STR("a: 1\nb:\n  c: 1\n  c: 2"), &strict, arena, &err));
    assert_err(&err, DV_INVALID_ARGUMENT,
               "line 4, column 6: duplicate key \"c\", first given on line 3");
    assert_null(dv_yaml_parse(DV_STR("1: a\n'1': b"), &strict, arena, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "duplicate key \"1\", first given on line 1");
}

static void knows_the_line_of_each_node(void **state)
{
    struct dv_json *doc =
        parse_yaml("# comment\nspec:\n  containers:\n  - name: x\n    image: 5\n");
    const struct dv_json *image;
    struct dv_err err;
    dv_str value;

    (void)state;
    image = dv_json_get(dv_json_at(dv_json_get(dv_json_first(doc), DV_STR("containers")), 0),
                        DV_STR("image"));
    assert_int_equal(dv_json_line(image), 5);
    assert_false(dv_json_as_str(image, &value, &err));
    assert_err(&err, DV_INVALID_ARGUMENT,
               "line 5, column 12: spec.containers[0].image: expected a string, got a number");
}

static void a_member_whose_value_is_below_is_found_at_its_key(void **state)
{
    struct dv_json *doc = parse_yaml("a: &shared\n  b: 1\nmodes:\n  - x\n\nc: *shared\nd: {\n}\n"
                                     "? e\n: - 1\nf: |\n  text\n");
    static const struct {
        const char *key;
        uint32_t line;
    } members[] = {
        {"a",     1 },
        {"modes", 3 },
        {"c",     6 },
        {"d",     7 },
        {"e",     9 },
        {"f",     11}
    };
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(members); i++)
        assert_int_equal(dv_json_line(dv_json_get(doc, dv_str_from_c(members[i].key))),
                         members[i].line);
    assert_int_equal(dv_json_line(dv_json_at(dv_json_get(doc, DV_STR("modes")), 0)), 4);
    assert_false(dv_json_fail(dv_json_get(doc, DV_STR("modes")), &err, "no such key"));
    assert_err(&err, DV_INVALID_ARGUMENT, "line 3, column 1: modes: no such key");
    assert_false(dv_json_fail(dv_json_get(doc, DV_STR("c")), &err, "no such key"));
    assert_err(&err, DV_INVALID_ARGUMENT, "line 6, column 4: c: no such key");
    assert_null(dv_yaml_parse(DV_STR("a:\n  - 1\n\na:\n  - 2\n"),
                              &(struct dv_json_opts){.refuse_duplicates = true}, arena, &err));
    assert_err(&err, DV_INVALID_ARGUMENT,
               "line 4, column 1: duplicate key \"a\", first given on line 1");
    assert_null(dv_yaml_parse(
        DV_STR("a:\n  - 1\n\na:\n  - 2\n"),
        &(struct dv_json_opts){.refuse_duplicates = true, .places_values = true}, arena, &err));
    assert_err(&err, DV_INVALID_ARGUMENT,
               "line 5, column 3: duplicate key \"a\", first given on line 2");
}

static void a_stream_gives_one_document_after_the_other(void **state)
{
    static const char *const documents[] = {"{\"a\":1}", "null", "[\"b\"]", "\"c\""};
    DV_CLEANUP(dv_yaml_stream_freep) struct dv_yaml_stream *stream = NULL;
    struct dv_json *doc;
    struct dv_err err;

    (void)state;
    stream = dv_yaml_stream_new(DV_STR("a: &x 1\n---\n---\n- b\n...\n# none\n--- c\n--- *x\n"),
                                NULL, &err);
    assert_ok(stream, &err);
    for (size_t i = 0; i < DV_COUNT(documents); i++) {
        assert_ok(dv_yaml_stream_next(stream, arena, &doc, &err), &err);
        assert_non_null(doc);
        assert_str(print(doc), documents[i]);
    }
    assert_false(dv_yaml_stream_next(stream, arena, &doc, &err)); /* anchors end with a document */
    assert_err(&err, DV_INVALID_ARGUMENT, "line 8, column 5: no anchor \"x\"");
    assert_ok(dv_yaml_stream_next(stream, arena, &doc, &err), &err);
    assert_null(doc);
}

static void nothing_at_all_is_null(void **state)
{
    (void)state;
    means("", "null");
    means("# only a comment\n", "null");
    means("---\n", "null");
    means("\xef\xbb\xbf"
          "a: 1",
          "{\"a\":1}");
}

static void keeps_within_each_limit(void **state)
{
    static const struct {
        const char *text;
        struct dv_json_opts opts;
        const char *msg; /* NULL: it fits */
    } rows[] = {
        {"[[1]]",                {.depth_max = 2}, NULL                                    },
        {"- - - 1",              {.depth_max = 2}, "more than 2 sequences and mappings"    },
        {"a: &x [1]\nb: [*x]",   {.depth_max = 3}, NULL                                    },
        {"a: &x [1]\nb: [[*x]]", {.depth_max = 3}, "line 2, column 6: aliases that expand" },
        {"[1, 2]",               {.nodes_max = 3}, NULL                                    },
        {"[1, 2, 3]",            {.nodes_max = 3}, "line 1, column 8: more values than"    },
        {"[&a [1, 2], *a]",      {.nodes_max = 7}, NULL                                    },
        {"[&a [1, 2], *a]",      {.nodes_max = 6}, "line 1, column 13: aliases that expand"},
        {"1",                    {.bytes_max = 1}, NULL                                    },
        {"12",                   {.bytes_max = 1}, "a text of 2 bytes"                     },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_err err;
        bool is_read = dv_yaml_parse(dv_str_from_c(rows[i].text), &rows[i].opts, arena, &err);

        assert_int_equal(is_read, !rows[i].msg);
        if (rows[i].msg)
            assert_err(&err, DV_RESOURCE_EXHAUSTED, rows[i].msg);
    }
}

static void a_billion_laughs_are_cut_short(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_err err;

    (void)state;
    dv_buf_init(&text, PRINT_BYTES_MAX);
    dv_buf_add(&text, DV_STR("a0: &a0 lol\n"));
    for (int i = 1; i < 10; i++) {
        dv_buf_printf(&text, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++)
            dv_buf_printf(&text, "%s*a%d", k ? "," : "", i - 1);
        dv_buf_add(&text, DV_STR("]\n"));
    }
    assert_null(dv_yaml_parse(dv_buf_str(&text), NULL, arena, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "aliases that expand to more or deeper values");
    assert_true(dv_arena_size_bytes(arena) < 64u * 1024u * 1024u);
}

static void keeps_nothing_of_the_text(void **state)
{
    char text[] = "a: [b, 12, 'c d']";
    struct dv_err err;
    struct dv_json *doc = dv_yaml_parse(dv_str_from_c(text), NULL, arena, &err);

    (void)state;
    assert_ok(doc, &err);
    memset(text, 'x', sizeof(text));
    assert_str(print(doc), "{\"a\":[\"b\",12,\"c d\"]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(plain_scalars_mean_what_they_mean_to_kubernetes),
        doc_test(quoted_and_block_scalars_are_strings),
        doc_test(tags_demand_or_change_the_kind),
        doc_test(keys_become_strings),
        doc_test(aliases_are_copies),
        doc_test(merges_take_the_place_of_their_key),
        doc_test(refuses_what_has_no_meaning_and_says_where),
        doc_test(refuses_a_repeated_key_when_told),
        doc_test(knows_the_line_of_each_node),
        doc_test(a_member_whose_value_is_below_is_found_at_its_key),
        doc_test(a_stream_gives_one_document_after_the_other),
        doc_test(nothing_at_all_is_null),
        doc_test(keeps_within_each_limit),
        doc_test(a_billion_laughs_are_cut_short),
        doc_test(keeps_nothing_of_the_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
