#include "test_resource_patch.h"

#include "resource/patch.h"
#include "support/docs.h"
#include "support/dvtest.h"
#include "json/json.h"

#define REFUSED "the server rejected our request due to an error in our request"

static const struct {
    const char *doc;
    const char *patch;
    const char *wanted;
} good[] = {
    {"{a: 1}",                    "[{op: add, path: /b, value: 2}]",           "{a: 1, b: 2}"          },
    {"{a: 1}",                    "[{op: add, path: /a, value: {x: y}}]",      "{a: {x: y}}"           },
    {"{a: 1}",                    "[{op: add, path: /b}]",                     "{a: 1, b: null}"       },
    {"{a: [1, 2]}",               "[{op: add, path: /a/1, value: 9}]",         "{a: [1, 9, 2]}"        },
    {"{a: [1, 2]}",               "[{op: add, path: /a/2, value: 9}]",         "{a: [1, 2, 9]}"        },
    {"{a: [1, 2]}",               "[{op: add, path: /a/-, value: 9}]",         "{a: [1, 2, 9]}"        },
    {"{a: [1, 2]}",               "[{op: add, path: /a/-1, value: 9}]",        "{a: [1, 2, 9]}"        },
    {"{a: {b: [{c: 1}]}}",        "[{op: replace, path: /a/b/0/c, value: 2}]", "{a: {b: [{c: 2}]}}"    },
    {"{a: [1, 2]}",               "[{op: replace, path: /a/-1, value: 9}]",    "{a: [1, 9]}"           },
    {"{a: 1}",                    "[{op: replace, path: /b, value: 2}]",       "{a: 1, b: 2}"          },
    {"{a: 1}",                    "[{op: replace, path: '', value: {b: 2}}]",  "{b: 2}"                },
    {"{a: 1, b: 2}",              "[{op: remove, path: /a}]",                  "{b: 2}"                },
    {"{a: [1, 2, 3]}",            "[{op: remove, path: /a/1}]",                "{a: [1, 3]}"           },
    {"{a/b: 1, 'm~n': 2, '': 3}",
     "[{op: remove, path: /a~1b}, {op: replace, path: "
     "/m~0n, value: 5}, {op: replace, path: /, value: 6}]",                    "{'m~n': 5, '': 6}"     },
    {"{a: {b: 1}, c: {}}",        "[{op: move, from: /a/b, path: /c/d}]",      "{a: {}, c: {d: 1}}"    },
    {"{a: [1, 2, 3]}",            "[{op: move, from: /a/0, path: /a/2}]",      "{a: [2, 3, 1]}"        },
    {"{a: {b: 1}}",               "[{op: copy, from: /a, path: /c}]",          "{a: {b: 1}, c: {b: 1}}"},
    {"{a: {b: 1}}",               "[{op: copy, from: /a, path: /a/c}]",        "{a: {b: 1, c: {b: 1}}}"},
    {"{a: {}}",                   "[{op: copy, from: /a/x, path: /b}]",        "{a: {}, b: null}"      },
    {"{a: 1, b: [{c: 1.0}]}",     "[{op: test, path: /b/0, value: {c: 1}}]",   "{a: 1, b: [{c: 1}]}"   },
    {"{a: 1}",                    "[{op: test, path: /b, value: null}]",       "{a: 1}"                },
    {"{a: 1}",                    "[{op: test, path: '', value: {a: 1}}]",     "{a: 1}"                },
    {"{a: 1}",                    "[]",                                        "{a: 1}"                },
    {"{a: 1}",                    "null",                                      "{a: 1}"                },
};

static void operations_change_the_document(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(good); i++) {
        struct dv_json *doc = parse_yaml(good[i].doc);
        struct dv_json *got;
        struct dv_err err;

        got = dv_patch_json(doc, parse_yaml(good[i].patch), arena, &err);
        assert_ok(got, &err);
        assert_doc(got, good[i].wanted);
        assert_doc(doc, good[i].doc);
    }
}

static const struct {
    const char *patch;
    enum dv_code code;
    const char *message;
} bad[] = {
    {"[{op: test, path: /a, value: 2}]",      DV_FAILED_PRECONDITION, REFUSED    },
    {"[{op: test, path: /x, value: 2}]",      DV_FAILED_PRECONDITION, REFUSED    },
    {"[{op: remove, path: /x}]",              DV_FAILED_PRECONDITION, REFUSED    },
    {"[{op: remove, path: ''}]",              DV_FAILED_PRECONDITION, REFUSED    },
    {"[{op: remove, path: /l/2}]",            DV_FAILED_PRECONDITION, REFUSED    },
    {"[{op: remove, path: /l/-3}]",           DV_FAILED_PRECONDITION, REFUSED    },
    {"[{op: replace, path: /x/y, value: 1}]", DV_FAILED_PRECONDITION, REFUSED    },
    {"[{op: replace, path: /l/2, value: 1}]", DV_FAILED_PRECONDITION, REFUSED    },
    {"[{op: add, path: /l/3, value: 1}]",     DV_FAILED_PRECONDITION, REFUSED    },
    {"[{op: add, path: /l/x, value: 1}]",     DV_FAILED_PRECONDITION, REFUSED    },
    {"[{op: add, path: /a/b, value: 1}]",     DV_FAILED_PRECONDITION, REFUSED    },
    {"[{op: add, path: a, value: 1}]",        DV_FAILED_PRECONDITION, REFUSED    },
    {"[{op: add, value: 1}]",                 DV_FAILED_PRECONDITION, REFUSED    },
    {"[{op: move, from: /x, path: /y}]",      DV_FAILED_PRECONDITION, REFUSED    },
    {"[{op: move, from: /o, path: /o/p}]",    DV_FAILED_PRECONDITION, REFUSED    },
    {"[{op: copy, from: /l/9, path: /y}]",    DV_FAILED_PRECONDITION, REFUSED    },
    {"[{op: frob, path: /a}]",                DV_FAILED_PRECONDITION, REFUSED    },
    {"[null]",                                DV_FAILED_PRECONDITION, REFUSED    },
    {"{op: add}",                             DV_INVALID_ARGUMENT,
     "error decoding patch: json: cannot unmarshal object into Go value of type "
     "[]handlers.jsonPatchOp"                                                    },
    {"[5]",                                   DV_INVALID_ARGUMENT,
     "cannot unmarshal number into Go value of type handlers.jsonPatchOp"        },
    {"[{op: 5, path: /a}]",                   DV_INVALID_ARGUMENT,
     "cannot unmarshal number into Go struct field jsonPatchOp.op of type string"},
};

static void what_does_not_apply_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(bad); i++) {
        struct dv_err err;

        assert_null(dv_patch_json(parse_yaml("{a: 1, l: [1, 2], o: {}}"), parse_yaml(bad[i].patch),
                                  arena, &err));
        assert_err(&err, bad[i].code, bad[i].message);
    }
}

static struct dv_json *repeated(const char *op, size_t n)
{
    struct dv_json *patch = dv_json_new_array(arena);
    const struct dv_json *one = parse_yaml(op);

    for (size_t i = 0; i < n; i++)
        dv_json_append(patch, dv_json_copy(one, arena));
    return patch;
}

static void there_is_a_limit_to_the_operations(void **state)
{
    struct dv_err err;

    (void)state;
    assert_ok(dv_patch_json(parse_yaml("{a: 1}"), repeated("{op: test, path: /a, value: 1}", 10000),
                            arena, &err),
              &err);
    assert_null(dv_patch_json(parse_yaml("{a: 1}"),
                              repeated("{op: test, path: /a, value: 1}", 10001), arena, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED,
               "Request entity too large: The allowed maximum operations in a JSON patch is 10000, "
               "got 10001");
}

static void copies_cannot_grow_without_end(void **state)
{
    struct dv_err err;

    (void)state;
    assert_null(dv_patch_json(parse_yaml("{a: {b: xxxxxxxxxxxxxxxxxxxx}}"),
                              repeated("{op: copy, from: /a, path: /a/c}", 1000), arena, &err));
    assert_err(&err, DV_FAILED_PRECONDITION, REFUSED);
}

static void walking_long_lists_is_bounded(void **state)
{
    struct dv_json *list = dv_json_new_array(arena);
    struct dv_json *doc = dv_json_new_object(arena);
    struct dv_err err;

    (void)state;
    for (int i = 0; i < 20000; i++)
        dv_json_append(list, dv_json_new_i64(i, arena));
    dv_json_set(doc, DV_STR("l"), list, arena);
    assert_null(
        dv_patch_json(doc, repeated("{op: replace, path: /l/19999, value: 1}", 9000), arena, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "Request entity too large");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(operations_change_the_document),     doc_test(what_does_not_apply_is_refused),
        doc_test(there_is_a_limit_to_the_operations), doc_test(copies_cannot_grow_without_end),
        doc_test(walking_long_lists_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
