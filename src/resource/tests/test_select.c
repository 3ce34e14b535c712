#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "json/json.h"

static const struct dv_str_entry labels[] = {
    {DV_STR_INIT("app"),           DV_STR_INIT("web")},
    {DV_STR_INIT("example.com/n"), DV_STR_INIT("5")  },
    {DV_STR_INIT("in"),            DV_STR_INIT("in") },
    {DV_STR_INIT("none"),          DV_STR_INIT("")   },
};

static const struct {
    const char *text;
    bool matches;
} good_labels[] = {
    {"",                   true },
    {" \t",                true },
    {"app=web",            true },
    {"app == web",         true },
    {"app!=web",           false},
    {"app != x",           true },
    {"gone!=x",            true },
    {"app in (db, web)",   true },
    {"app in (db)",        false},
    {"app notin (db,web)", false},
    {"gone notin (db)",    true },
    {"app",                true },
    {"!app",               false},
    {"! gone",             true },
    {"gone",               false},
    {"none=",              true },
    {"none=,app=web",      true },
    {"none in ()",         true },
    {"app in ()",          false},
    {"none in (,x)",       true },
    {"none in (x,)",       true },
    {"none in (x,,y)",     true },
    {"in in (in)",         true },
    {"in=in,notin!=x",     true },
    {"example.com/n>4",    true },
    {"example.com/n>5",    false},
    {"example.com/n<6",    true },
    {"example.com/n<5",    false},
    {"app>1",              false},
    {"app=web,!gone,none", true },
    {"app=web,gone",       false},
};

static void label_selectors_say_what_matches(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(good_labels); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_err err;
        struct dv_label_selector *selector =
            dv_label_selector_parse(dv_str_from_c(good_labels[i].text), arena, &err);

        assert_ok(selector, &err);
        if (dv_label_selector_matches(selector, labels, DV_COUNT(labels)) != good_labels[i].matches)
            fail_msg("%s: want %d", good_labels[i].text, good_labels[i].matches);
        assert_int_equal(dv_label_selector_is_empty(selector), i < 2);
    }
}

static const struct {
    const char *text;
    const char *message;
} bad_labels[] = {
    {",",          "found ',', expected: !, identifier, or 'end of string'"                        },
    {"=a",         "found '=', expected: !, identifier, or 'end of string'"                        },
    {"a=b,",       "found '', expected: identifier after ','"                                      },
    {"a=b,=",      "found '=', expected: identifier after ','"                                     },
    {"a b",        "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"},
    {"a=b c",      "found 'c', expected: ',' or 'end of string'"                                   },
    {"!a=b",       "found '=', expected: ',' or 'end of string'"                                   },
    {"a=(",        "unable to parse requirement: found '(', expected: identifier"                  },
    {"!",          "unable to parse requirement: found '', expected: identifier"                   },
    {"a in b",     "unable to parse requirement: found 'b' expected: '('"                          },
    {"a in (",     "unable to parse requirement: found '', expected: ',', ')' or identifier"       },
    {"a in (b",    "unable to parse requirement: found '', expected: ',' or ')'"                   },
    {"a in (b,",   "unable to parse requirement: found '', expected: ',', or identifier"           },
    {"a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"                  },
    {"a>b",
     "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the "
     "value must be an integer"                                                                    },
    {"-a=b",       "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must "
             "consist of alphanumeric characters"                                      },
    {"a=-b",       "unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid "
             "label must be an empty string or consist of"                             },
    {"/a=b",       "<nil>: Invalid value: \"/a\": prefix part must be non-empty"                   },
};

static void wrong_label_selectors_are_told_as_the_reference_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(bad_labels); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_err err;

        assert_null(dv_label_selector_parse(dv_str_from_c(bad_labels[i].text), arena, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, bad_labels[i].message);
    }
}

/* A client gets its own text back whole, however long it is, and the reference's rules behind it.
 */
static void long_texts_in_wrong_selectors_are_not_cut(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    char *key = DV_NEW_ARRAY(arena, char, 2000);
    struct dv_err err;

    (void)state;
    memset(key, 'k', 1999);
    assert_null(dv_label_selector_parse(dv_str_printf(arena, "a/b/%s=v", key), arena, &err));
    assert_string_equal(
        dv_err_text(&err),
        dv_str_to_c(
            dv_str_printf(arena,
                          "unable to parse requirement: <nil>: Invalid value: \"a/b/%s\": a "
                          "valid label key must consist of alphanumeric characters, '-', "
                          "'_' or '.', and must start and end with an alphanumeric "
                          "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex "
                          "used for validation is "
                          "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional "
                          "DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                          key),
            arena));
    assert_null(dv_field_selector_parse(dv_kind(DV_KIND_POD), DV_STR(""),
                                        dv_str_printf(arena, "%s=v", key), arena, &err));
    assert_string_equal(
        dv_err_text(&err),
        dv_str_to_c(dv_str_printf(arena, "field label not supported: %s", key), arena));
    assert_string_equal(err.msg + strlen(err.msg) - 3, "...");
}

static struct dv_object *new_object(enum dv_kind_id id, const char *yaml, struct dv_arena *arena)
{
    const struct dv_kind *kind = dv_kind(id);
    const struct dv_message *message = kind->versions[0].message;
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_json *doc;
    struct dv_err err;

    doc = dv_yaml_parse(dv_str_from_c(yaml), NULL, arena, &err);
    assert_ok(doc, &err);
    assert_ok(dv_decode_json(message, doc, DV_UNKNOWN_DROP, arena, value, NULL, &err), &err);
    return dv_object_new(kind, value);
}

#define A_POD                                                                                      \
    "{metadata: {name: p, namespace: s}, spec: {nodeName: k, restartPolicy: Never, "               \
    "schedulerName: "                                                                              \
    "d, serviceAccountName: acc, hostNetwork: true}, status: {phase: Running, podIP: 10.0.0.9, "   \
    "podIPs: [{ip: 10.0.0.1}], nominatedNodeName: m}}"
#define AN_EVENT                                                                                   \
    "{metadata: {name: e, namespace: s}, involvedObject: {kind: Pod, namespace: s, name: p, uid: " \
    "u, apiVersion: v1, resourceVersion: '5', fieldPath: f}, reason: R, type: Normal, "            \
    "reportingComponent: c}"

static const struct {
    enum dv_kind_id kind;
    const char *group;
    const char *object;
    const char *text;
    bool matches;
} good_fields[] = {
    {DV_KIND_POD,       "",                A_POD,                                 "",                                                     true },
    {DV_KIND_POD,       "",                A_POD,                                 ",",                                                    true },
    {DV_KIND_POD,       "",                A_POD,                                 "metadata.name=p,metadata.namespace=s",                 true },
    {DV_KIND_POD,       "",                A_POD,                                 "metadata.name==p",                                     true },
    {DV_KIND_POD,       "",                A_POD,                                 "metadata.name!=p",                                     false},
    {DV_KIND_POD,       "",                A_POD,                                 "spec.nodeName=k,spec.host=k,spec.restartPolicy=Never", true },
    {DV_KIND_POD,       "",                A_POD,                                 "spec.schedulerName=d,spec.serviceAccountName=acc",     true },
    {DV_KIND_POD,       "",                A_POD,                                 "spec.hostNetwork=true,status.phase=Running",           true },
    {DV_KIND_POD,       "",                A_POD,                                 "status.podIP=10.0.0.1,status.nominatedNodeName=m",     true },
    {DV_KIND_POD,       "",                A_POD,                                 "status.podIPs=",                                       true },
    {DV_KIND_POD,       "",                A_POD,                                 "spec.nodeName=",                                       false},
    {DV_KIND_POD,       "",                A_POD,                                 "spec.nodeName=a\\,b",                                  false},
    {DV_KIND_NODE,      "",                "{metadata: {name: k}}",               "spec.unschedulable=false",                             true },
    {DV_KIND_NAMESPACE, "",                "{status: {phase: Active}}",           "status.phase=Active",                                  true },
    {DV_KIND_SECRET,    "",                "{type: 'a=b,c\\d'}",                  "type=a\\=b\\,c\\\\d",                                  true },
    {DV_KIND_CLAIM,     "resource.k8s.io", "{metadata: {name: c, namespace: s}}",
     "metadata.name=c,metadata.namespace=s",                                                                                              true },
    {DV_KIND_CLASS,     "resource.k8s.io", "{metadata: {name: c}}",               "metadata.namespace=",                                  true },
    {DV_KIND_SLICE,     "resource.k8s.io", "{spec: {driver: d}}",                 "spec.driver=d,spec.nodeName=",                         true },
    {DV_KIND_EVENT,     "",                AN_EVENT,
     "involvedObject.kind=Pod,involvedObject.namespace=s,involvedObject.name=p,involvedObject.uid="
     "u",                                                                                                                                 true },
    {DV_KIND_EVENT,     "",                AN_EVENT,
     "involvedObject.apiVersion=v1,involvedObject.resourceVersion=5,involvedObject.fieldPath=f",                                          true },
    {DV_KIND_EVENT,     "",                AN_EVENT,                              "reason=R,type=Normal,reportingComponent=c,source=c",   true },
    {DV_KIND_EVENT,     "events.k8s.io",   AN_EVENT,
     "regarding.kind=Pod,regarding.name=p,reportingController=c,reason=R,type=Normal",                                                    true },
};

static void field_selectors_ask_for_fields_of_their_kind(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(good_fields); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_object *object = new_object(good_fields[i].kind, good_fields[i].object, arena);
        struct dv_field_selector *selector;
        struct dv_err err;

        selector = dv_field_selector_parse(object->kind, dv_str_from_c(good_fields[i].group),
                                           dv_str_from_c(good_fields[i].text), arena, &err);
        assert_ok(selector, &err);
        if (dv_field_selector_matches(selector, object) != good_fields[i].matches)
            fail_msg("%s: want %d", good_fields[i].text, good_fields[i].matches);
        assert_int_equal(dv_field_selector_is_empty(selector), i < 2);
        dv_object_unref(object);
    }
}

static const struct {
    enum dv_kind_id kind;
    const char *group;
    const char *text;
    const char *message;
} bad_fields[] = {
    {DV_KIND_POD,   "",                    "spec.x=1",              "field label not supported: spec.x"                   },
    {DV_KIND_POD,   "",                    "z=1,b=2",               "field label not supported: b"                        },
    {DV_KIND_NODE,  "",                    "metadata.namespace=",   "field label not supported: metadata.namespace"       },
    {DV_KIND_EVENT, "",                    "regarding.name=x",      "field label not supported: regarding.name"           },
    {DV_KIND_EVENT, "events.k8s.io",       "involvedObject.name=x",
     "field label not supported: involvedObject.name"                                                                     },
    {DV_KIND_SLICE, "resource.k8s.io",     "spec.x=1",
     "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.x"                                       },
    {DV_KIND_LEASE, "coordination.k8s.io", "spec.x=1",
     "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""                           },
    {DV_KIND_POD,   "",                    "metadata.name",
     "invalid selector: 'metadata.name'; can't understand 'metadata.name'"                                                },
    {DV_KIND_POD,   "",                    "metadata.name=a=b",
     "invalid field selector: unescaped character in value: 61"                                                           },
    {DV_KIND_POD,   "",                    "metadata.name=a\\b",    "invalid field selector: invalid escape sequence: \\b"},
    {DV_KIND_POD,   "",                    "metadata.name=a\\",     "invalid field selector: invalid escape sequence: \\" },
};

static void wrong_field_selectors_are_told_as_the_reference_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(bad_fields); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_err err;

        assert_null(dv_field_selector_parse(dv_kind(bad_fields[i].kind),
                                            dv_str_from_c(bad_fields[i].group),
                                            dv_str_from_c(bad_fields[i].text), arena, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, bad_fields[i].message);
    }
}

static void a_demand_for_one_value_can_be_looked_up(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_field_selector *selector;
    struct dv_err err;
    dv_str value;

    (void)state;
    selector = dv_field_selector_parse(dv_kind(DV_KIND_POD), DV_STR(""),
                                       DV_STR("metadata.name=p,status.phase!=x"), arena, &err);
    assert_ok(selector, &err);
    assert_true(dv_field_selector_demands(selector, DV_STR("metadata.name"), &value));
    assert_str(value, "p");
    assert_false(dv_field_selector_demands(selector, DV_STR("status.phase"), &value));
    assert_false(dv_field_selector_demands(selector, DV_STR("spec.nodeName"), &value));
}

/* Against a node `k` with the labels above. */
static const struct {
    const char *selector;
    bool matches;
} node_cases[] = {
    {"{nodeSelectorTerms: []}",                                                                    false},
    {"{nodeSelectorTerms: [{}]}",                                                                  false},
    {"{nodeSelectorTerms: [{matchExpressions: [{key: app, operator: In, values: [web]}]}]}",       true },
    {"{nodeSelectorTerms: [{matchExpressions: [{key: app, operator: NotIn, values: [web]}]}]}",
     false                                                                                              },
    {"{nodeSelectorTerms: [{matchExpressions: [{key: gone, operator: NotIn, values: [x]}]}]}",
     true                                                                                               },
    {"{nodeSelectorTerms: [{matchExpressions: [{key: app, operator: Exists}]}]}",                  true },
    {"{nodeSelectorTerms: [{matchExpressions: [{key: gone, operator: DoesNotExist}]}]}",           true },
    {"{nodeSelectorTerms: [{matchExpressions: [{key: example.com/n, operator: Gt, values: "
     "['4']}]}]}",                                                                            true },
    {"{nodeSelectorTerms: [{matchExpressions: [{key: example.com/n, operator: Lt, values: "
     "['5']}]}]}",                                                                            false},
    {"{nodeSelectorTerms: [{matchExpressions: [{key: app, operator: Gt, values: ['1']}]}]}",       false},
    {"{nodeSelectorTerms: [{matchExpressions: [{key: app, operator: Exists}, {key: gone, "
     "operator: Exists}]}]}",                                                                 false},
    {"{nodeSelectorTerms: [{matchExpressions: [{key: gone, operator: Exists}]}, "
     "{matchExpressions: [{key: app, operator: Exists}]}]}",                                  true },
    {"{nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [k]}]}]}",
     true                                                                                               },
    {"{nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: NotIn, values: [k]}]}]}",
     false                                                                                              },
    {"{nodeSelectorTerms: [{matchFields: [{key: spec.x, operator: In, values: [k]}]}]}",           false},
 /* what cannot be evaluated matches nothing */
    {"{nodeSelectorTerms: [{matchExpressions: [{key: gone, operator: NotIn}]}]}",                  false},
    {"{nodeSelectorTerms: [{matchExpressions: [{key: app, operator: Exists, values: [x]}]}]}",
     false                                                                                              },
    {"{nodeSelectorTerms: [{matchExpressions: [{key: '-', operator: DoesNotExist}]}]}",            false},
    {"{nodeSelectorTerms: [{matchExpressions: [{key: app, operator: Like, values: [web]}]}]}",
     false                                                                                              },
};

static void node_selectors_match_one_of_their_terms(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(node_cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_api_node_selector selector = {0};
        struct dv_json *doc;
        struct dv_err err;

        doc = dv_yaml_parse(dv_str_from_c(node_cases[i].selector), NULL, arena, &err);
        assert_ok(doc, &err);
        assert_ok(dv_decode_json(&dv_message_node_selector, doc, DV_UNKNOWN_DROP, arena, &selector,
                                 NULL, &err),
                  &err);
        if (dv_node_selector_matches(&selector, DV_STR("k"), labels, DV_COUNT(labels)) !=
            node_cases[i].matches)
            fail_msg("%s: want %d", node_cases[i].selector, node_cases[i].matches);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(label_selectors_say_what_matches),
        cmocka_unit_test(wrong_label_selectors_are_told_as_the_reference_does),
        cmocka_unit_test(long_texts_in_wrong_selectors_are_not_cut),
        cmocka_unit_test(field_selectors_ask_for_fields_of_their_kind),
        cmocka_unit_test(wrong_field_selectors_are_told_as_the_reference_does),
        cmocka_unit_test(a_demand_for_one_value_can_be_looked_up),
        cmocka_unit_test(node_selectors_match_one_of_their_terms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
