/* test_custom.c - schemas: what they refuse to be, and what they make of documents. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "resource/custom.h"
#include "resource/custom/schema.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "support/docs.h"
#include "json/json.h"

#define TEXT_BYTES_MAX 65536u
#define STEPS 100000u

static dv_str print(const struct dv_json *node)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_json_print(node, &(const struct dv_json_style){.sort_keys = true}, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

/* "path: detail" of each problem, one a line. */
static dv_str text_of(const struct dv_problems *problems)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < problems->n; i++)
        dv_buf_printf(&buf, "%s%.*s: %.*s", i > 0 ? "\n" : "", DV_FMT(problems->v[i].field),
                      DV_FMT(problems->v[i].detail));
    return dv_str_copy(dv_buf_str(&buf), arena);
}

static void assert_text(dv_str got, const char *wanted)
{
    if (!dv_str_eq(got, dv_str_from_c(wanted)))
        fail_msg("got\n%.*s\nwant\n%s", DV_FMT(got), wanted);
}

static const struct dv_structural *compile(const char *schema, struct dv_problems *problems)
{
    *problems = (struct dv_problems){.arena = arena};
    return dv_schema_new(parse_yaml(schema), NULL, arena, problems);
}

static const struct dv_structural *must_compile(const char *schema)
{
    struct dv_problems problems;
    const struct dv_structural *made = compile(schema, &problems);

    if (!made)
        fail_msg("%.*s", DV_FMT(text_of(&problems)));
    return made;
}

/* ---- structural schemas ---- */

static const struct {
    const char *schema;
    const char *problems;
} refused[] = {
    {"{}",                                                                                           "type: Required value: must not be empty at the root"                     },
    {"{type: string}",                                                                               "type: Invalid value: \"string\": must be object at the root"             },
    {"{type: object, properties: {a: {}}}",
     "properties[a].type: Required value: must not be empty for specified object fields"                                                                                       },
    {"{type: object, properties: {a: {type: array, items: {}}}}",
     "properties[a].items.type: Required value: must not be empty for specified array items"                                                                                   },
    {"{type: object, properties: {a: {type: array}}}",
     "properties[a].items: Required value: must be specified"                                                                                                                  },
    {"{type: object, properties: {a: {type: thing}}}",
     "properties[a].type: Unsupported value: \"thing\": supported values: \"array\", \"boolean\", "
     "\"integer\", \"number\", \"object\", \"string\""                                                                                                                         },
    {"{type: object, additionalProperties: {type: string}}",
     "additionalProperties: Forbidden: must not be used at the root"                                                                                                           },
    {"{type: object, properties: {a: {type: object, properties: {b: {type: string}}, "
     "additionalProperties: {type: string}}}}",                                                 "properties[a].additionalProperties: Forbidden: additionalProperties and properties are "
     "mutual exclusive"                                                                                                    },
    {"{type: object, $ref: x}",                                                                      "$ref: Forbidden: $ref is not supported"                                  },
    {"{type: object, properties: {a: {type: array, uniqueItems: true, items: {type: string}}}}",
     "properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime "
     "complexity becomes quadratic"                                                                                                                                            },
    {"{type: object, anyOf: [{properties: {b: {minLength: 1}}}]}",
     "anyOf[0].properties[b]: Required value: it is not defined outside of this, where the "
     "structure is"                                                                                                                                                            },
    {"{type: object, properties: {b: {type: string}}, anyOf: [{properties: {b: {type: string}}}]}",
     "anyOf[0].properties[b].type: Forbidden: must be empty to be structural"                                                                                                  },
    {"{type: object, properties: {metadata: {type: object, properties: {labels: {type: object}}}}}",
     "properties[metadata]: Forbidden: must not specify anything other than name and generateName, "
     "but metadata is implicitly specified"                                                                                                                                    },
    {"{type: object, properties: {a: {type: array, x-kubernetes-list-type: map, items: {type: "
     "object, properties: {k: {type: string}}}, x-kubernetes-list-map-keys: [k]}}}",            "properties[a].items.properties[k].default: Required value: this property is in "
     "x-kubernetes-list-map-keys, so it must have a default or be a required property"},
    {"{type: object, properties: {a: {type: string, default: 1}}}",
     "properties[a].default: Invalid value: \"integer\": properties[a].default in body must be of "
     "type string: \"integer\""                                                                                                                                                },
    {"{type: object, properties: {a: {type: string, pattern: '('}}}",
     "properties[a].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: "
     "error parsing regexp: missing closing ): `(`"                                                                                                                            },
};

static void what_is_not_structural_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(refused); i++) {
        struct dv_problems problems;

        if (compile(refused[i].schema, &problems))
            fail_msg("taken: %s", refused[i].schema);
        assert_text(text_of(&problems), refused[i].problems);
    }
}

static void a_schema_that_is_too_deep_is_refused(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_problems problems = {.arena = arena};
    struct dv_json *doc;
    struct dv_err err;

    (void)state;
    dv_buf_init(&text, TEXT_BYTES_MAX);
    for (size_t i = 0; i < DV_SCHEMA_DEPTH_MAX + 1; i++)
        dv_buf_add_c(&text, "{\"type\":\"object\",\"properties\":{\"a\":");
    dv_buf_add_c(&text, "{\"type\":\"string\"}");
    for (size_t i = 0; i < DV_SCHEMA_DEPTH_MAX + 1; i++)
        dv_buf_add_c(&text, "}}");
    doc = dv_json_parse(dv_buf_str(&text), NULL, arena, &err);
    assert_ok(doc, &err);
    assert_null(dv_schema_new(doc, NULL, arena, &problems));
    assert_int_equal(problems.n, 1);
}

/* ---- documents ---- */

#define LIST                                                                                       \
    "l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: "       \
    "{type: "                                                                                      \
    "object, required: [k], properties: {k: {type: string}, m: {type: integer, default: 3, "       \
    "maximum: 5}}}}"

static const struct {
    const char *schema; /* of the member `s` */
    const char *value;
    const char *pruned;
    const char *problems;
} values[] = {
    {"{type: object, properties: {a: {type: string}}}",                                             "{a: x, b: z}",                                     "{\"a\":\"x\"}",                         ""                                                                               },
    {"{type: object, properties: {a: {type: string, default: d}}}",                                 "{}",                                               "{\"a\":\"d\"}",                         ""                                                                               },
    {"{type: object, properties: {a: {type: string, default: d}}}",                                 "{a: null}",                                        "{\"a\":\"d\"}",
     ""                                                                                                                                                                                                                                                                           },
    {"{type: object, properties: {a: {type: string, nullable: true, default: d}}}",                 "{a: null}",
     "{\"a\":null}",                                                                                                                                                                             ""                                                                               },
    {"{type: object, properties: {a: {type: string}}}",                                             "{a: null}",                                        "{}",                                    ""                                                                               },
    {"{type: object, properties: {a: {type: object, default: {}, properties: {b: {type: integer, "
     "default: 1}}}}}",                                                                        "{}",                                               "{\"a\":{\"b\":1}}",                     ""                                                                               },
    {"{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: object}}}",
     "{a: {x: 1}, b: {l: [], z: 1.5}}",                                                                                                                 "{\"a\":{},\"b\":{\"l\":[],\"z\":1.5}}", ""                                                                               },
    {"{type: object, additionalProperties: {type: integer}}",                                       "{a: 1, b: x}",
     "{\"a\":1,\"b\":\"x\"}",                                                                                                                                                                    "s.b: Invalid value: \"string\": s.b in body must be of type integer: \"string\""},
    {"{type: object, required: [a], properties: {a: {type: string}}}",                              "{}",                                               "{}",
     "s.a: Required value"                                                                                                                                                                                                                                                        },
    {"{type: string, enum: [a, b]}",                                                                "c",                                                "\"c\"",
     "s: Unsupported value: \"c\": supported values: \"a\", \"b\""                                                                                                                                                                                                                },
    {"{type: string, maxLength: 2}",                                                                "abc",                                              "\"abc\"",                               "s: Too long: may not be more than 2 bytes"                                      },
    {"{type: string, minLength: 2}",                                                                "a",                                                "\"a\"",
     "s: Invalid value: \"a\": s in body should be at least 2 chars long"                                                                                                                                                                                                         },
    {"{type: string, pattern: 'b+'}",                                                               "abc",                                              "\"abc\"",                               ""                                                                               },
    {"{type: string, pattern: '^b+'}",                                                              "abc",                                              "\"abc\"",
     "s: Invalid value: \"abc\": s in body should match '^b+'"                                                                                                                                                                                                                    },
    {"{type: string, format: date-time}",                                                           "today",                                            "\"today\"",
     "s: Invalid value: \"today\": s in body must be of type date-time: \"today\""                                                                                                                                                                                                },
    {"{type: string, format: what-nobody-knows}",                                                   "today",                                            "\"today\"",                             ""                                                                               },
    {"{type: integer, minimum: 1, exclusiveMinimum: true}",                                         "1",                                                "1",
     "s: Invalid value: 1: s in body should be greater than 1"                                                                                                                                                                                                                    },
    {"{type: number, maximum: 1.5}",                                                                "2",                                                "2",
     "s: Invalid value: 2: s in body should be less than or equal to 1.5"                                                                                                                                                                                                         },
    {"{type: integer}",                                                                             "1.5",                                              "1.5",
     "s: Invalid value: \"number\": s in body must be of type integer: \"number\""                                                                                                                                                                                                },
    {"{type: number, multipleOf: 0.1}",                                                             "0.25",                                             "0.25",
     "s: Invalid value: 0.25: s in body should be a multiple of 0.1"                                                                                                                                                                                                              },
    {"{x-kubernetes-int-or-string: true}",                                                          "x",                                                "\"x\"",                                 ""                                                                               },
    {"{x-kubernetes-int-or-string: true}",                                                          "true",                                             "true",
     "s: Invalid value: \"boolean\": s in body must be of type integer,string: \"boolean\""                                                                                                                                                                                       },
    {"{type: array, maxItems: 1, items: {type: string}}",                                           "[a, b]",                                           "[\"a\",\"b\"]",
     "s: Too many: 2: must have at most 1 items"                                                                                                                                                                                                                                  },
    {"{type: array, minItems: 1, items: {type: string}}",                                           "[]",                                               "[]",
     "s: Invalid value: 0: s in body should have at least 1 items"                                                                                                                                                                                                                },
    {"{type: array, x-kubernetes-list-type: set, items: {type: string}}",                           "[a, b, a]",
     "[\"a\",\"b\",\"a\"]",                                                                                                                                                                      "s[2]: Duplicate value: \"a\""                                                   },
    {"{type: object, properties: {" LIST "}}",                                                      "{l: [{k: a}, {k: a, m: 7}]}",
     "{\"l\":[{\"k\":\"a\",\"m\":3},{\"k\":\"a\",\"m\":7}]}",                                                                                                                                    "s.l[1]: Duplicate value: {\"k\":\"a\"}\ns.l[1].m: Invalid value: 7: s.l[1].m in body should "
     "be less than or equal to 5"                                                                                                                                                                                    },
    {"{type: string, anyOf: [{minLength: 3}, {pattern: '^a'}]}",                                    "b",                                                "\"b\"",
     "s: Invalid value: \"\": \"s\" must validate at least one schema (anyOf)"                                                                                                                                                                                                    },
    {"{type: string, oneOf: [{minLength: 1}, {pattern: '^a'}]}",                                    "a",                                                "\"a\"",
     "s: Invalid value: \"\": \"s\" must validate one and only one schema (oneOf). Found more than "
     "one valid"                                                                                                                                                                                                                                                                  },
    {"{type: string, not: {pattern: '^a'}}",                                                        "a",                                                "\"a\"",
     "s: Invalid value: \"\": \"s\" must not validate the schema (not)"                                                                                                                                                                                                           },
    {"{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: "
     "true}",                                                                                  "{apiVersion: v1, kind: Pod, metadata: {name: x}}",
     "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\"}}",                                                                                                                   ""                                                                               },
};

static const struct dv_structural *of_member(const char *schema)
{
    return must_compile(
        dv_str_to_c(dv_str_printf(arena, "{type: object, properties: {s: %s}}", schema), arena));
}

static const struct dv_json *document(const char *value)
{
    return parse_yaml(dv_str_to_c(dv_str_printf(arena, "{s: %s}", value), arena));
}

static void documents_are_pruned_filled_in_and_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(values); i++) {
        const struct dv_structural *schema = of_member(values[i].schema);
        struct dv_problems problems = {.arena = arena};
        struct dv_json *pruned =
            dv_schema_prune(schema, document(values[i].value), true, arena, NULL);

        assert_text(print(dv_json_get(pruned, DV_STR("s"))), values[i].pruned);
        dv_schema_check(schema, pruned, NULL, NULL, STEPS, &problems);
        assert_text(text_of(&problems), values[i].problems);
    }
}

static void unknown_fields_are_told_with_their_paths(void **state)
{
    const struct dv_structural *schema = of_member("{type: object, properties: {" LIST "}}");
    struct dv_decode_notes notes = {0};

    (void)state;
    (void)dv_schema_prune(schema, parse_yaml("{s: {l: [{k: a, x: 1}], w: 2}, z: 3}"), true, arena,
                          &notes);
    assert_int_equal(notes.n, 3);
    assert_text(notes.v[0], "unknown field \"s.l[0].x\"");
    assert_text(notes.v[1], "unknown field \"s.w\"");
    assert_text(notes.v[2], "unknown field \"z\"");
}

static void defaults_that_multiply_are_refused(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf items;
    const struct dv_structural *schema;
    struct dv_problems problems;
    dv_str list;

    (void)state;
    dv_buf_init(&items, TEXT_BYTES_MAX);
    for (size_t i = 0; i < 2000; i++)
        dv_buf_add_c(&items, i > 0 ? ", {}" : "{}");
    list = dv_str_printf(arena, "[%.*s]", DV_FMT(dv_buf_str(&items)));
    schema = of_member(dv_str_to_c(
        dv_str_printf(arena,
                      "{type: array, items: {type: object, properties: {a: {type: array, default: "
                      "%.*s, items: {type: object}}}}}",
                      DV_FMT(list)),
        arena));
    assert_null(dv_schema_prune(schema, document(dv_str_to_c(list, arena)), true, arena, NULL));
    assert_null(compile(
        dv_str_to_c(dv_str_printf(arena,
                                  "{type: object, properties: {s: {type: array, default: %.*s, "
                                  "items: {type: object, properties: {a: {type: array, default: "
                                  "%.*s, items: {type: object}}}}}}}",
                                  DV_FMT(list), DV_FMT(list)),
                    arena),
        &problems));
    assert_text(problems.v[0].field, "properties[s].default");
}

/* ---- what has not changed ---- */

static const struct {
    const char *old;
    const char *value;
    const char *problems;
} updates[] = {
    {"{a: long, l: []}",    "{a: long, l: []}",                  ""                                              },
    {"{a: long, b: x}",     "{a: long, b: z}",                   ""                                              },
    {"{a: long}",           "{a: longer}",                       "s.a: Too long: may not be more than 2 bytes"   },
    {"{l: [{k: x, m: 9}]}", "{l: [{k: z, m: 1}, {k: x, m: 9}]}", ""                                              },
    {"{l: [{k: x, m: 9}]}", "{l: [{k: z, m: 9}]}",
     "s.l[0].m: Invalid value: 9: s.l[0].m in body should be less than or equal to 5"                            },
    {"{t: [long]}",         "{t: [long, x]}",                    "s.t[0]: Too long: may not be more than 2 bytes"},
};

static void problems_of_what_has_not_changed_do_not_count(void **state)
{
    const struct dv_structural *schema = of_member(
        "{type: object, properties: {a: {type: string, maxLength: 2}, b: {type: string}, " LIST
        ", t: {type: array, items: {type: string, maxLength: 2}}}}");

    (void)state;
    for (size_t i = 0; i < DV_COUNT(updates); i++) {
        struct dv_problems problems = {.arena = arena};

        dv_schema_check(schema, document(updates[i].value), document(updates[i].old), NULL, STEPS,
                        &problems);
        assert_text(text_of(&problems), updates[i].problems);
    }
}

static void a_check_that_takes_too_long_ends(void **state)
{
    const struct dv_structural *schema =
        of_member("{type: array, items: {type: string, anyOf: [{minLength: 9}, {minLength: 8}]}}");
    struct dv_problems problems = {.arena = arena};

    (void)state;
    dv_schema_check(schema, document("[a, b, c, d, e, f, g, h]"), NULL, NULL, 10, &problems);
    assert_true(problems.n > 0);
    assert_text(problems.v[problems.n - 1].detail,
                "Forbidden: it takes too long to be validated by its schema");
}

/* ---- rules ---- */

#define RULE(rule) "x-kubernetes-validations: [{rule: '" rule "'}]"

static const struct {
    const char *schema; /* of the member `s` */
    const char *old;    /* NULL: it is new */
    const char *value;
    const char *problems; /* behind "warning: " what is only warned of */
} rules[] = {
    {"{type: integer, " RULE("self > 1") "}",                                                       NULL,     "1",
     "s: Invalid value: 1: failed rule: self > 1"                                                                                                                                 },
    {"{type: integer, " RULE("self > 1") "}",                                                       NULL,     "2",                            ""                                  },
    {"{type: integer, " RULE("self > 1") "}",                                                       "1",      "1",
     "warning: s: Invalid value: 1: failed rule: self > 1"                                                                                                                        },
    {"{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: self == "
     "oldSelf, message: s is immutable}]}",                                                    "{a: x}", "{a: z}",                       "s: Invalid value: s is immutable"  },
    {"{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: self == "
     "oldSelf, message: s is immutable}]}",                                                    NULL,     "{a: z}",                       ""                                  },
    {"{type: object, properties: {a: {type: integer}, b: {type: integer}}, "
     "x-kubernetes-validations: [{rule: self.a < self.b, messageExpression: '\"a is \" + "
     "string(self.a)', reason: FieldValueForbidden, fieldPath: .a}]}",                         NULL,     "{a: 3, b: 2}",                 "s.a: Forbidden: a is 3"            },
    {"{type: object, properties: {a: {type: integer}}, " RULE("self.a > 1") "}",                    NULL,     "{}",
     "s: Invalid value: \"object\": no such key: a evaluating rule: self.a > 1"                                                                                                   },
    {"{type: object, properties: {namespace: {type: string}, a-b: {type: string}}, " RULE(
         "self.__namespace__ == self.a__dash__b") "}",
     NULL,                                                                                                    "{namespace: x, a-b: x}",       ""                                  },
    {"{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: "
     "object, required: [k], properties: {k: {type: string}, m: {type: integer}}, " RULE(
         "self.m >= oldSelf.m") "}}",
     "[{k: a, m: 2}, {k: b, m: 2}]",                                                                          "[{k: b, m: 1}, {k: a, m: 3}]",
     "s[0]: Invalid value: failed rule: self.m >= oldSelf.m"                                                                                                                      },
    {"{type: integer, x-kubernetes-validations: [{rule: '!oldSelf.hasValue() || self >= "
     "oldSelf.value()', optionalOldSelf: true}]}",                                             NULL,     "1",                            ""                                  },
    {"{type: integer, x-kubernetes-validations: [{rule: '!oldSelf.hasValue() || self >= "
     "oldSelf.value()', optionalOldSelf: true, message: it only grows}]}",                     "2",      "1",                            "s: Invalid value: 1: it only grows"},
    {"{type: number, " RULE("self / 2.0 < 1.0") "}",                                                NULL,     "1",                            ""                                  },
    {"{type: array, items: {type: integer}, " RULE(
         "self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d < 0))) || true)") "}",
     NULL,                                                                                                    "[1]",                          ""                                  },
    {"{type: object, properties: {a: {type: integer}}, " RULE("self.a > 1") "}",                    "{}",     "{}",
     "s: Invalid value: \"object\": no such key: a evaluating rule: self.a > 1"                                                                                                   },
    {"{x-kubernetes-int-or-string: true, " RULE("self + 1 > 1") "}",                                NULL,     "x",
     "s: Invalid value: \"\": 'no such overload: _+_': call arguments did not match a supported "
     "operator, function or macro signature for rule: self + 1 > 1"                                                                                                               },
    {"{type: string, " RULE("lists.range(1000000).all(x, x >= 0)") "}",                             NULL,     "x",
     "s: Invalid value: \"string\": 'operation cancelled: actual cost limit exceeded': no further "
     "validation rules will be run due to call cost exceeds limit for rule: "
     "lists.range(1000000).all(x, x >= 0)"                                                                                                                                        },
    {"{type: string, x-kubernetes-validations: [{rule: self == 'y', messageExpression: '\" no "
     "\"'}]}",                                                                                 NULL,     "x",                            "s: Invalid value: \"x\": no"       },
};

static void rules_judge_values_and_their_changes(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(rules); i++) {
        const struct dv_structural *schema = of_member(rules[i].schema);
        struct dv_problems problems = {.arena = arena};
        struct dv_problems warnings = {.arena = arena};

        dv_schema_check_rules(schema, document(rules[i].value),
                              rules[i].old ? document(rules[i].old) : NULL, NULL, &problems,
                              &warnings);
        if (warnings.n > 0)
            assert_text(dv_str_printf(arena, "warning: %.*s", DV_FMT(text_of(&warnings))),
                        rules[i].problems);
        else
            assert_text(text_of(&problems), rules[i].problems);
    }
}

static void rules_that_cost_too_much_end_the_check(void **state)
{
    const struct dv_structural *schema =
        of_member("{type: array, items: {type: integer, x-kubernetes-validations: [{rule: "
                  "'[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, "
                  "[1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, a + b + c + d > "
                  "self))))'}]}}");
    DV_CLEANUP(dv_buf_fini) struct dv_buf list;
    struct dv_problems problems = {.arena = arena};

    (void)state;
    dv_buf_init(&list, TEXT_BYTES_MAX);
    dv_buf_add_c(&list, "[0");
    for (size_t i = 0; i < 200; i++)
        dv_buf_add_c(&list, ", 0");
    dv_buf_add_c(&list, "]");
    dv_schema_check_rules(schema, document(dv_buf_c(&list)), NULL, NULL, &problems, NULL);
    assert_int_equal(problems.n, 1);
    assert_text(problems.v[0].detail, "Invalid value: \"integer\": validation failed due to "
                                      "running out of cost budget, no further "
                                      "validation rules will be run");
}

static void rules_that_do_not_compile_are_refused(void **state)
{
    struct dv_problems problems;

    (void)state;
    assert_null(compile("{type: object, " RULE("object.a") "}", &problems));
    assert_int_equal(problems.n, 1);
    assert_text(problems.v[0].field, "x-kubernetes-validations[0].rule");
    assert_null(compile("{type: object, properties: {l: {type: array, items: {type: integer, " RULE(
                            "self == oldSelf") "}}}}",
                        &problems));
    assert_text(problems.v[0].field, "properties[l].items.x-kubernetes-validations[0].rule");
}

/* ---- definitions ---- */

static void versions_are_in_the_order_of_their_maturity(void **state)
{
    static const char *const order[] = {"v10",     "v2",        "v1",  "v11beta2", "v10beta3",
                                        "v3beta1", "v12alpha1", "bar", "foo1"};

    (void)state;
    for (size_t i = 0; i + 1 < DV_COUNT(order); i++) {
        assert_true(dv_api_version_cmp(dv_str_from_c(order[i]), dv_str_from_c(order[i + 1])) < 0);
        assert_true(dv_api_version_cmp(dv_str_from_c(order[i + 1]), dv_str_from_c(order[i])) > 0);
    }
}

static struct dv_api_custom_resource_definition *definition(const char *name, const char *kind)
{
    struct dv_api_custom_resource_definition *made =
        DV_NEW(arena, struct dv_api_custom_resource_definition);

    made->metadata.name = dv_str_printf(arena, "%s.example.com", name);
    made->spec.group = DV_STR("example.com");
    made->spec.names.plural = dv_str_from_c(name);
    made->spec.names.kind = dv_str_from_c(kind);
    dv_custom_default_definition(made, arena);
    return made;
}

static bool step(struct dv_api_custom_resource_definition *made,
                 const struct dv_api_custom_resource_definition *other, bool is_ready)
{
    const struct dv_api_custom_resource_definition *all[] = {made, other};

    return dv_custom_next_status(made, all, DV_COUNT(all), is_ready,
                                 (struct dv_time){.is_set = true}, arena, &made->status);
}

static dv_str condition(const struct dv_api_custom_resource_definition *made, size_t i)
{
    const struct dv_api_custom_resource_definition_condition *is = &made->status.conditions[i];

    return dv_str_printf(arena, "%.*s %.*s %.*s: %.*s", DV_FMT(is->type), DV_FMT(is->status),
                         DV_FMT(is->reason), DV_FMT(is->message));
}

static void names_are_accepted_before_objects_are_served(void **state)
{
    struct dv_api_custom_resource_definition *made = definition("things", "Thing");
    struct dv_api_custom_resource_definition *other = definition("others", "Other");

    (void)state;
    assert_true(step(made, other, false));
    assert_text(condition(made, 0), "NamesAccepted True NoConflicts: no conflicts found");
    assert_text(condition(made, 1),
                "Established False Installing: the initial names have been accepted");
    assert_text(made->status.accepted_names.list_kind, "ThingList");
    assert_false(step(made, other, false)); /* it has not been compiled yet */
    assert_true(step(made, other, true));
    assert_text(condition(made, 1),
                "Established True InitialNamesAccepted: the initial names have been accepted");
    assert_false(step(made, other, true));
}

static void a_name_that_is_taken_is_waited_for(void **state)
{
    struct dv_api_custom_resource_definition *made = definition("things", "Thing");
    struct dv_api_custom_resource_definition *other = definition("others", "Thing");

    (void)state;
    assert_true(step(other, made, true));
    assert_true(step(made, other, true));
    assert_text(condition(made, 0),
                "NamesAccepted False ListKindConflict: \"ThingList\" is already "
                "in use");
    assert_text(condition(made, 1), "Established False NotAccepted: not all names are accepted");
    assert_true(step(made, definition("others", "Other"), true)); /* the rival has gone */
    assert_true(dv_custom_is_true(made, DV_STR("NamesAccepted")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(what_is_not_structural_is_refused),
        doc_test(a_schema_that_is_too_deep_is_refused),
        doc_test(documents_are_pruned_filled_in_and_checked),
        doc_test(unknown_fields_are_told_with_their_paths),
        doc_test(defaults_that_multiply_are_refused),
        doc_test(problems_of_what_has_not_changed_do_not_count),
        doc_test(a_check_that_takes_too_long_ends),
        doc_test(rules_judge_values_and_their_changes),
        doc_test(rules_that_cost_too_much_end_the_check),
        doc_test(rules_that_do_not_compile_are_refused),
        doc_test(versions_are_in_the_order_of_their_maturity),
        doc_test(names_are_accepted_before_objects_are_served),
        doc_test(a_name_that_is_taken_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
