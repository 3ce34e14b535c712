#include "json/tests/test_doc.h"

static void prints(const char *text, struct dv_json_style style, const char *printed)
{
    assert_str(print_style(parse(text), &style), printed);
}

static void each_style_prints_in_its_way(void **state)
{
    (void)state;
    prints(" { \"b\" : [ 1 , { } , [ ] ] , \"a\" : null } ", (struct dv_json_style){0},
           "{\"b\":[1,{},[]],\"a\":null}");
    prints("{\"b\":[1,{},[]],\"a\":{\"c\":\"d\"}}", (struct dv_json_style){.indent = 4},
           "{\n    \"b\": [\n        1,\n        {},\n        []\n    ],\n    \"a\": {\n"
           "        \"c\": \"d\"\n    }\n}");
    prints("[[1]]", (struct dv_json_style){.indent = 2}, "[\n  [\n    1\n  ]\n]");
    prints("[]", (struct dv_json_style){.indent = 2}, "[]");
    prints("{\"b\":{\"d\":1,\"c\":2},\"a10\":3,\"a2\":4,\"\":5}",
           (struct dv_json_style){.sort_keys = true},
           "{\"\":5,\"a10\":3,\"a2\":4,\"b\":{\"c\":2,\"d\":1}}");
    prints("[\"<a href='x'>&\\u2028\\u2029\\u2027\"]", (struct dv_json_style){.escape_html = true},
           "[\"\\u003ca href='x'\\u003e\\u0026\\u2028\\u2029\xe2\x80\xa7\"]");
    prints("[\"<&>\\u2028\"]", (struct dv_json_style){0}, "[\"<&>\xe2\x80\xa8\"]");
    prints("{\"<\":\"\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f\\/\"}",
           (struct dv_json_style){.escape_html = true},
           "{\"\\u003c\":\"\\b\\f\\n\\r\\t\\u0000\\u001f\x7f/\"}");
}

static void a_part_is_printed_without_its_key(void **state)
{
    (void)state;
    assert_str(print(dv_json_first(parse("{\"a\":{\"b\":1},\"c\":2}"))), "{\"b\":1}");
}

static void printing_sorted_leaves_the_document_as_it_was(void **state)
{
    const struct dv_json_style sorted = {.sort_keys = true};
    struct dv_json *doc = parse("{\"b\":1,\"a\":2}");

    (void)state;
    assert_str(print_style(doc, &sorted), "{\"a\":2,\"b\":1}");
    assert_str(print(doc), "{\"b\":1,\"a\":2}");
}

static void printing_stops_at_the_ceiling(void **state)
{
    const struct dv_json_style pretty = {.indent = 100};
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_json *doc = parse("[[[[\"a string that is longer than the buffer\"]]]]");
    struct dv_err err;

    (void)state;
    dv_buf_init(&buf, 20);
    dv_json_print(doc, NULL, &buf);
    assert_false(dv_buf_check(&buf, "document", &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "document");
    dv_buf_clear(&buf);
    dv_json_print(doc, &pretty, &buf);
    assert_false(dv_buf_check(&buf, "document", &err));
    assert_true(buf.n <= 20);
}

/* A state file of the kubelet: its bytes come back, whatever is in its strings. */
static void a_state_file_is_reproduced_byte_for_byte(void **state)
{
    const struct dv_json_style go = {.escape_html = true};
    const char *text =
        "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"6f\\u003c\\u0026\",\"Container"
        "Name\":\"c\\u2028\\b\",\"ResourceName\":\"v.example/gpu\",\"DeviceIDs\":"
        "{\"-1\":[\"d\xc3\xa4\x7f\"],\"0\":null,\"10\":[],\"2\":[\"d\\\\\"]},"
        "\"AllocResp\":\"CgA=\"}],\"RegisteredDevices\":{}},\"Checksum\":4107457226}";

    (void)state;
    assert_str(print_style(parse(text), &go), text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(each_style_prints_in_its_way),
        doc_test(a_part_is_printed_without_its_key),
        doc_test(printing_sorted_leaves_the_document_as_it_was),
        doc_test(printing_stops_at_the_ceiling),
        doc_test(a_state_file_is_reproduced_byte_for_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
