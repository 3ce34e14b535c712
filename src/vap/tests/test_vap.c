/* test_vap.c - which policies a write concerns, and what they say of it. */
#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "vap/tests/test_vap_world.h"
#include "vap/vap.h"
#include "json/json.h"

#define CONFIG_MAPS                                                                                \
    "matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], "  \
    "resources: [configmaps]}]}"

struct write {
    enum dv_vap_operation operation;
    enum dv_kind_id kind;
    const char *version;
    const char *subresource;
    const char *name;
    const char *object; /* NULL: none */
    const char *old;
    const char *user; /* NULL: alice */
};

static const void *read_yaml(struct world *world, const struct dv_kind *kind,
                             const struct dv_api_version *version, const char *text)
{
    struct dv_err err;
    const struct dv_json *doc;
    const void *value;

    if (!text)
        return NULL;
    doc = dv_yaml_parse(dv_str_from_c(text), NULL, world->arena, &err);
    value = doc ? world_read(world, kind, version, doc) : NULL;
    if (!value)
        fail_msg("%s", text);
    return value;
}

static struct dv_vap_write write_of(struct world *world, const struct write *write)
{
    const struct dv_kind *kind = dv_kind(write->kind);
    const struct dv_api_version *version = kind->versions;
    struct dv_api_user_info *user = DV_NEW(world->arena, struct dv_api_user_info);
    const char *who = write->user ? write->user : "{username: alice, groups: [people]}";
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(dv_str_from_c(who), NULL, world->arena, &err);

    assert_non_null(doc);
    assert_true(dv_decode_json(&dv_message_user_info, doc, DV_UNKNOWN_DROP, world->arena, user,
                               NULL, &err));
    for (size_t i = 0; write->version && i < kind->n_versions; i++)
        if (dv_str_eq(kind->versions[i].version, dv_str_from_c(write->version)))
            version = &kind->versions[i];
    return (struct dv_vap_write){
        .operation = write->operation,
        .kind = kind,
        .version = version,
        .subresource = write->subresource ? dv_str_from_c(write->subresource) : DV_STR_NONE,
        .namespace = kind->is_namespaced ? DV_STR("ns") : DV_STR_NONE,
        .name = dv_str_from_c(write->name ? write->name : "x"),
        .object = read_yaml(world, kind, version, write->object),
        .old = read_yaml(world, kind, version, write->old),
        .user = user,
    };
}

/* "" when the write may happen; else "CODE REASON: message", without the names in front. Warnings
 * follow, a line each. */
static const char *judge(struct world *world, const struct write *what, enum dv_vap_place place)
{
    struct dv_vap_write write = write_of(world, what);
    struct dv_vap_world seam = world_seam(world);
    struct dv_vap_judgement *judgement = dv_vap_judge(world->vap, &write, &seam);
    const struct dv_vap_verdict *verdict;
    enum dv_vap_step step;
    dv_str text = DV_STR("");

    if (!judgement)
        return "";
    while ((step = dv_vap_run(judgement, place)) != DV_VAP_DONE) {
        if (step == DV_VAP_NEEDS_DECISION)
            dv_vap_decide(judgement);
        place = DV_VAP_ON_WORKER;
    }
    verdict = dv_vap_verdict(judgement);
    if (verdict->is_refused) {
        size_t at = dv_str_find(verdict->message, DV_STR("denied request: "));

        text = dv_str_printf(world->arena, "%d %.*s: %.*s", verdict->code, DV_FMT(verdict->reason),
                             DV_FMT(dv_str_slice(verdict->message, at + 16, verdict->message.n)));
    }
    for (size_t i = 0; i < verdict->n_warnings; i++) {
        size_t at = dv_str_find(verdict->warnings[i], DV_STR("': "));

        text = dv_str_printf(
            world->arena, "%.*s\nwarning %.*s", DV_FMT(text),
            DV_FMT(dv_str_slice(verdict->warnings[i], at + 3, verdict->warnings[i].n)));
    }
    dv_vap_judgement_free(judgement);
    return dv_str_printf(world->arena, "%.*s", DV_FMT(text)).p;
}

static const struct write config_map = {.operation = DV_VAP_CREATE,
                                        .kind = DV_KIND_CONFIG_MAP,
                                        .object = "{metadata: {name: x, namespace: ns}}"};

/* ---- what is decided ---- */

static void decides_as_the_policy_says(void **state)
{
    static const struct {
        const char *spec;
        const char *binding;
        const char *verdict;
    } cases[] = {
        {"validations: [{expression: 'true'}]",                                                    "validationActions: [Deny]",  ""                                                             },
        {"validations: [{expression: 'object.metadata.name == \"y\"'}]",
         "validationActions: [Deny]",                                                                                            "422 Invalid: failed expression: object.metadata.name == \"y\""},
        {"validations: [{expression: 'false', message: ' no ', reason: Forbidden}]",
         "validationActions: [Deny, Audit]",                                                                                     "403 Forbidden: no"                                            },
        {"validations: [{expression: 'false', message: m, reason: RequestEntityTooLarge}]",
         "validationActions: [Deny]",                                                                                            "413 RequestEntityTooLarge: m"                                 },
        {"validations: [{expression: 'false', message: m}]",                                       "validationActions: [Warn]",
         "\nwarning m"                                                                                                                                                                          },
        {"validations: [{expression: 'false', message: m}]",                                       "validationActions: [Audit]", ""                                                             },
        {"validations: [{expression: 'true'}, {expression: 'false', message: a}, {expression: "
         "'false', message: b, reason: Forbidden}]",                                      "validationActions: [Deny]",  "422 Invalid: a"                                               },
        {"validations: [{expression: 'false', message: a}, {expression: 'false', message: b}]",
         "validationActions: [Warn]",                                                                                            "\nwarning a\nwarning b"                                       },
        {"validations: [{expression: 'false', message: m, messageExpression: '\"by \" + "
         "request.userInfo.username'}]",                                                  "validationActions: [Deny]",  "422 Invalid: by alice"                                        },
        {"validations: [{expression: 'false', message: m, messageExpression: '\" \"'}]",
         "validationActions: [Deny]",                                                                                            "422 Invalid: m"                                               },
        {"validations: [{expression: 'false', message: m, messageExpression: '\"a\\nb\"'}]",
         "validationActions: [Deny]",                                                                                            "422 Invalid: m"                                               },
        {"validations: [{expression: 'false', message: m, messageExpression: "
         "'string(object.data.x)'}]",                                                     "validationActions: [Deny]",  "422 Invalid: m"                                               },
        {"validations: [{expression: 'object.data.x == \"\"'}]",                                   "validationActions: [Deny]",
         "422 Invalid: expression 'object.data.x == \"\"' resulted in error: no such key: data"                                                                                                 },
        {"validations: [{expression: 'object.data.x == \"\"'}]",                                   "validationActions: [Warn]",
         "\nwarning expression 'object.data.x == \"\"' resulted in error: no such key: data"                                                                                                    },
        {"failurePolicy: Ignore, validations: [{expression: 'object.data.x == \"\"'}]",
         "validationActions: [Deny]",                                                                                            ""                                                             },
        {"failurePolicy: Ignore, validations: [{expression: 'object.data.x == \"\"'}, {expression: "
         "'false', message: m}]",                                                         "validationActions: [Deny]",  "422 Invalid: m"                                               },
 /* conditions */
        {"matchConditions: [{name: a, expression: 'request.userInfo.username == \"bob\"'}], "
         "validations: [{expression: 'false'}]",                                          "validationActions: [Deny]",  ""                                                             },
        {"matchConditions: [{name: a, expression: 'object.data.x == \"\"'}], validations: "
         "[{expression: 'true'}]",                                                        "validationActions: [Deny]",
         "422 Invalid: expression 'object.data.x == \"\"' resulted in error: no such key: data"                                                                                                 },
        {"matchConditions: [{name: a, expression: 'object.data.x == \"\"'}, {name: b, expression: "
         "'false'}], validations: [{expression: 'false'}]",                               "validationActions: [Deny]",  ""                                                             },
        {"failurePolicy: Ignore, matchConditions: [{name: a, expression: 'object.data.x == "
         "\"\"'}], validations: [{expression: 'false'}]",                                 "validationActions: [Deny]",  ""                                                             },
 /* variables, and what else is seen */
        {"variables: [{name: a, expression: object.metadata.name}, {name: b, expression: "
         "'variables.a + \"!\"'}], validations: [{expression: 'variables.b == \"x!\"'}]", "validationActions: [Deny]",  ""                                                             },
        {"variables: [{name: a, expression: object.nope}], validations: [{expression: 'true'}]",
         "validationActions: [Deny]",                                                                                            ""                                                             },
        {"variables: [{name: a, expression: object.nope}], validations: [{expression: 'variables.a "
         "== 1'}]",                                                                       "validationActions: [Deny]",
         "422 Invalid: expression 'variables.a == 1' resulted in error: composited variable \"a\" "
         "fails to evaluate: no such key: nope"                                                                                                                                                 },
        {"validations: [{expression: 'oldObject == null && request.operation == \"CREATE\" && "
         "request.namespace == \"ns\" && request.kind.kind == \"ConfigMap\" && "
         "request.resource.resource == \"configmaps\" && request.dryRun == false && "
         "!has(request.subResource) && !has(request.userInfo.extra)'}]",                  "validationActions: [Deny]",  ""                                                             },
        {"validations: [{expression: 'namespaceObject.metadata.labels.env == \"test\"'}]",
         "validationActions: [Deny]",                                                                                            ""                                                             },
        {"validations: [{expression: 'authorizer.group(\"\").resource(\"x\").check(\"use\")"
         ".allowed() && !authorizer.requestResource.check(\"get\").allowed()'}]",         "validationActions: [Deny]",  ""                                                             },
 /* what costs too much */
        {"validations: [{expression: 'lists.range(1000).all(x, lists.range(1000).all(y, x + y >= "
         "0))', message: m}]",                                                            "validationActions: [Deny]",
         "422 Invalid: expression 'lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))' "
         "resulted in error: operation cancelled: actual cost limit exceeded"                                                                                                                   },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct world world;
        const char *verdict;

        world_init(&world);
        assert_true(
            world_add(&world, DV_KIND_NAMESPACE, "{metadata: {name: ns, labels: {env: test}}}"));
        assert_true(world_add(&world, DV_KIND_VALIDATING_POLICY,
                              dv_str_printf(world.arena, "{metadata: {name: p}, spec: {%s, %s}}",
                                            CONFIG_MAPS, cases[i].spec)
                                  .p));
        assert_true(
            world_add(&world, DV_KIND_VALIDATING_POLICY_BINDING,
                      dv_str_printf(world.arena, "{metadata: {name: b}, spec: {policyName: p, %s}}",
                                    cases[i].binding)
                          .p));
        for (int place = DV_VAP_ON_LOOP; place <= DV_VAP_ON_WORKER; place++) {
            verdict = judge(&world, &config_map, (enum dv_vap_place)place);
            if (strcmp(verdict, cases[i].verdict) != 0)
                fail_msg("%s: '%s', not '%s'", cases[i].spec, verdict, cases[i].verdict);
        }
        world_fini(&world);
    }
}

/* ---- what is matched ---- */

static void finds_the_writes_that_are_meant(void **state)
{
    /* clang-format off */
    static const struct {
        const char *match;
        struct write write;
        bool is_meant;
    } cases[] = {
#define RULE(ops, groups, versions, resources)                                                     \
    "resourceRules: [{operations: [" ops "], apiGroups: [" groups "], apiVersions: [" versions     \
    "], resources: [" resources "]}]"
        {RULE("CREATE",                                              "''",              "v1",                                                    "configmaps"),
                         {DV_VAP_CREATE, DV_KIND_CONFIG_MAP, .object = "{}"},
                         true                                                                                                                                                                                                                                                              },
        {RULE("UPDATE",                                              "''",              "v1",                                                    "configmaps"),
                         {DV_VAP_CREATE, DV_KIND_CONFIG_MAP, .object = "{}"},
                         false                                                                                                                                                                                                                                                             },
        {RULE("'*'",                                                 "'*'",             "'*'",                                                   "'*'"),                                                          {DV_VAP_DELETE, DV_KIND_SECRET, .old = "{}"},        true},
        {RULE("'*'",                                                 "''",              "v1",                                                    "pods"),
                         {DV_VAP_UPDATE, DV_KIND_POD, .subresource = "status", .object = "{}", .old = "{}"},
                         false                                                                                                                                                                                                                                                             },
        {RULE("'*'",                                                 "''",              "v1",                                                    "pods/status"),
                         {DV_VAP_UPDATE, DV_KIND_POD, .subresource = "status", .object = "{}", .old = "{}"},
                         true                                                                                                                                                                                                                                                              },
        {RULE("'*'",                                                 "''",              "v1",                                                    "pods/*"),
                         {DV_VAP_CONNECT, DV_KIND_POD, .subresource = "exec"},
                         true                                                                                                                                                                                                                                                              },
        {RULE("'*'",                                                 "''",              "v1",                                                    "'*/exec'"),
                         {DV_VAP_CONNECT, DV_KIND_POD, .subresource = "exec"},
                         true                                                                                                                                                                                                                                                              },
        {RULE("'*'",                                                 "''",              "v1",                                                    "'*'"),
                         {DV_VAP_CONNECT, DV_KIND_POD, .subresource = "exec"},
                         false                                                                                                                                                                                                                                                             },
        {RULE("'*'",                                                 "''",              "v1",                                                    "pods/*"),                                                       {DV_VAP_CREATE, DV_KIND_POD, .object = "{}"},        true},
        {RULE("'*'",                                                 "resource.k8s.io", "v1",                                                    "resourceslices"),
                         {DV_VAP_CREATE, DV_KIND_SLICE, "v1beta1", .object = "{}"},
                         true                                                                                                                                                                                                                                                              },
        {RULE("'*'",                                                 "resource.k8s.io", "v1",                                                    "resourceslices") ", matchPolicy: Exact",
                         {DV_VAP_CREATE, DV_KIND_SLICE, "v1beta1", .object = "{}"},
                         false                                                                                                                                                                                                                                                             },
        {RULE("'*'",                                                 "events.k8s.io",   "v1",                                                    "events"),
                         {DV_VAP_CREATE, DV_KIND_EVENT, .object = "{}"},
                         true                                                                                                                                                                                                                                                              },
        {RULE("'*'",                                                 "''",              "v1",                                                    "configmaps") ", objectSelector: {matchLabels: {a: b}}",
                         {DV_VAP_UPDATE, DV_KIND_CONFIG_MAP, .object = "{}", .old = "{metadata: {labels: {a: b}}}"},
                         true                                                                                                                                                                                                                                                              },
        {RULE("'*'",                                                 "''",              "v1",                                                    "configmaps") ", objectSelector: {matchLabels: {a: b}}",
                         {DV_VAP_UPDATE, DV_KIND_CONFIG_MAP, .object = "{}", .old = "{}"},
                         false                                                                                                                                                                                                                                                             },
        {RULE("'*'",                                                 "''",              "v1",                                                    "configmaps") ", namespaceSelector: {matchLabels: {env: test}}",
                         {DV_VAP_CREATE, DV_KIND_CONFIG_MAP, .object = "{}"},
                         true                                                                                                                                                                                                                                                              },
        {RULE("'*'",                                                 "''",              "v1",                                                    "configmaps") ", namespaceSelector: {matchExpressions: [{key: "
                                               "env, operator: DoesNotExist}]}",                                     {DV_VAP_CREATE, DV_KIND_CONFIG_MAP, .object = "{}"},
                         false                                                                                                                                                                                                                                                             },
        {RULE("'*'",                                                 "''",              "v1",                                                    "nodes") ", namespaceSelector: {matchLabels: {env: none}}",
                         {DV_VAP_CREATE, DV_KIND_NODE, .object = "{}"},
                         true                                                                                                                                                                                                                                                              },
        {RULE("'*'",                                                 "''",              "v1",                                                    "namespaces") ", namespaceSelector: {matchLabels: {env: none}}",
                         {DV_VAP_CREATE, DV_KIND_NAMESPACE, .object = "{metadata: {labels: {env: none}}}"},
                         true                                                                                                                                                                                                                                                              },
        {RULE("'*'",                                                 "''",              "v1",                                                    "namespaces") ", namespaceSelector: {matchLabels: {env: none}}",
                         {DV_VAP_CREATE, DV_KIND_NAMESPACE, .object = "{}"},
                         false                                                                                                                                                                                                                                                             },
        {RULE("'*'",                                                 "''",              "v1",
                         "'*'") ", excludeResourceRules: [{operations: ['*'], apiGroups: [''], apiVersions: "
                     "[v1], resources: [configmaps], resourceNames: [x]}]",                                                                                                                                                       {DV_VAP_CREATE, DV_KIND_CONFIG_MAP, .object = "{}"},
                         false                                                                                                                                                                                                                                                             },
        {RULE("'*'",                                                 "''",              "v1",
                         "'*'") ", excludeResourceRules: [{operations: ['*'], apiGroups: [''], apiVersions: "
                     "[v1], resources: [configmaps], resourceNames: [other]}]",                                                                                                                                                       {DV_VAP_CREATE, DV_KIND_CONFIG_MAP, .object = "{}"},
                         true                                                                                                                                                                                                                                                              },
        {"resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: "
                         "['*'], scope: Namespaced}]",                                                           {DV_VAP_CREATE, DV_KIND_SLICE, .object = "{}"},
                         false},
        {"resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: "
                         "['*'], scope: Cluster}]",            {DV_VAP_CREATE, DV_KIND_SLICE, .object = "{}"},
                         true                                                                                                                                },
        {RULE("'*'", "admissionregistration.k8s.io",                                                                         "'*'",                                                                                                                                "'*'"),
                         {DV_VAP_CREATE, DV_KIND_VALIDATING_POLICY, .object = "{}"},
                         false                                                                                                                                                                                                                                                          },
    };
    /* clang-format on */

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct world world;
        bool is_meant;

        world_init(&world);
        assert_true(
            world_add(&world, DV_KIND_NAMESPACE, "{metadata: {name: ns, labels: {env: test}}}"));
        assert_true(world_add(&world, DV_KIND_VALIDATING_POLICY,
                              dv_str_printf(world.arena,
                                            "{metadata: {name: p}, spec: {matchConstraints: {%s}, "
                                            "validations: [{expression: 'false'}]}}",
                                            cases[i].match)
                                  .p));
        /* without a binding, nothing is refused */
        assert_string_equal(judge(&world, &cases[i].write, DV_VAP_ON_LOOP), "");
        assert_true(
            world_add(&world, DV_KIND_VALIDATING_POLICY_BINDING,
                      "{metadata: {name: b}, spec: {policyName: p, validationActions: [Deny]}}"));
        is_meant = judge(&world, &cases[i].write, DV_VAP_ON_LOOP)[0] != '\0';
        if (is_meant != cases[i].is_meant)
            fail_msg("%s: %d", cases[i].match, is_meant);
        /* the same in the match of a binding */
        assert_true(world_add(&world, DV_KIND_VALIDATING_POLICY,
                              "{metadata: {name: p}, spec: {matchConstraints: {resourceRules: "
                              "[{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], "
                              "resources: ['*/*']}]}, validations: [{expression: 'false'}]}}"));
        assert_true(world_add(&world, DV_KIND_VALIDATING_POLICY_BINDING,
                              dv_str_printf(world.arena,
                                            "{metadata: {name: b}, spec: {policyName: p, "
                                            "validationActions: [Deny], matchResources: {%s}}}",
                                            cases[i].match)
                                  .p));
        is_meant = judge(&world, &cases[i].write, DV_VAP_ON_LOOP)[0] != '\0';
        if (is_meant != cases[i].is_meant)
            fail_msg("binding with %s: %d", cases[i].match, is_meant);
        world_fini(&world);
    }
}

/* ---- parameters ---- */

static void asks_with_each_parameter(void **state)
{
    static const struct {
        const char *kind;
        const char *ref; /* NULL: none */
        const char *verdict;
        bool is_cluster; /* the write is of a slice */
    } cases[] = {
        {"{apiVersion: v1, kind: ConfigMap}", "{name: one, parameterNotFoundAction: Deny}",
         "422 Invalid: at most 1",                                                                                                  false},
        {"{apiVersion: v1, kind: ConfigMap}",
         "{name: nine, namespace: other, parameterNotFoundAction: Deny}",                                 "",                       false},
        {"{apiVersion: v1, kind: ConfigMap}",
         "{selector: {matchLabels: {a: b}}, namespace: ns, parameterNotFoundAction: Deny}",               "422 Invalid: at most 1", false},
        {"{apiVersion: v1, kind: ConfigMap}",
         "{selector: {matchLabels: {a: z}}, parameterNotFoundAction: Allow}",                             "",                       false},
        {"{apiVersion: v1, kind: ConfigMap}", "{name: none, parameterNotFoundAction: Allow}",             "",
         false                                                                                                                           },
        {"{apiVersion: v1, kind: ConfigMap}", "{name: none, parameterNotFoundAction: Deny}",
         "422 Invalid: failed to configure binding: no params found for policy binding with `Deny` "
         "parameterNotFoundAction",                                                                                                 false},
        {"{apiVersion: v1, kind: ConfigMap}", NULL,
         "422 Invalid: expression 'int(params.data.max) > 1' resulted in error: no such key: data",                                 false},
        {"{apiVersion: a.b/v1, kind: Nope}",  "{name: none, parameterNotFoundAction: Allow}",
         "422 Invalid: failed to configure policy: failed to find resource referenced by "
         "paramKind: 'a.b/v1, Kind=Nope'",                                                                                          false},
        {"{apiVersion: v1, kind: ConfigMap}", "{name: one, parameterNotFoundAction: Deny}",
         "422 Invalid: failed to configure binding: cannot use namespaced paramRef in policy "
         "binding that matches cluster-scoped resources",                                                                           true },
        {"{apiVersion: v1, kind: Node}",      "{name: n1, namespace: ns, parameterNotFoundAction: Deny}",
         "422 Invalid: failed to configure binding: paramRef.namespace must not be provided for a "
         "cluster-scoped `paramKind`",                                                                                              true },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        static const struct write slice = {
            .operation = DV_VAP_CREATE, .kind = DV_KIND_SLICE, .object = "{}"};
        struct world world;

        world_init(&world);
        assert_true(world_add(&world, DV_KIND_CONFIG_MAP,
                              "{metadata: {name: one, namespace: ns, labels: {a: b}}, data: {max: "
                              "'1'}}"));
        assert_true(world_add(&world, DV_KIND_CONFIG_MAP,
                              "{metadata: {name: two, namespace: ns, labels: {a: b}}, data: {max: "
                              "'2'}}"));
        assert_true(world_add(&world, DV_KIND_CONFIG_MAP,
                              "{metadata: {name: nine, namespace: other}, data: {max: '9'}}"));
        assert_true(world_add(
            &world, DV_KIND_VALIDATING_POLICY,
            dv_str_printf(world.arena,
                          "{metadata: {name: p}, spec: {paramKind: %s, matchConstraints: "
                          "{resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: "
                          "['*'], resources: ['*']}]}, validations: [{expression: "
                          "'int(params.data.max) > 1', messageExpression: '\"at most \" + "
                          "string(params.data.max)'}]}}",
                          cases[i].kind)
                .p));
        assert_true(world_add(&world, DV_KIND_VALIDATING_POLICY_BINDING,
                              dv_str_printf(world.arena,
                                            "{metadata: {name: b}, spec: {policyName: p, "
                                            "validationActions: [Deny]%s%s}}",
                                            cases[i].ref ? ", paramRef: " : "",
                                            cases[i].ref ? cases[i].ref : "")
                                  .p));
        assert_string_equal(
            judge(&world, cases[i].is_cluster ? &slice : &config_map, DV_VAP_ON_LOOP),
            cases[i].verdict);
        world_fini(&world);
    }
}

/* ---- what drivers ship ---- */

static void holds_a_driver_to_the_slices_of_its_node(void **state)
{
#define DRIVER "{username: 'system:serviceaccount:d:driver'"
#define ON_N1 DRIVER ", extra: {authentication.kubernetes.io/node-name: [n1]}}"
    static const struct {
        struct write write;
        const char *verdict;
    } cases[] = {
        {{DV_VAP_CREATE, DV_KIND_SLICE, .object = "{spec: {nodeName: n1}}", .user = ON_N1},      ""},
        {{DV_VAP_CREATE, DV_KIND_SLICE, "v1beta1", .object = "{spec: {nodeName: n1}}",
          .user = ON_N1},
         ""                                                                                        },
        {{DV_VAP_CREATE, DV_KIND_SLICE, .object = "{spec: {nodeName: n2}}", .user = ON_N1},
         "422 Invalid: node n1, not n2"                                                            },
        {{DV_VAP_CREATE, DV_KIND_SLICE, "v1beta1", .object = "{spec: {nodeName: n2}}",
          .user = ON_N1},
         "422 Invalid: node n1, not n2"                                                            },
        {{DV_VAP_DELETE, DV_KIND_SLICE, .old = "{spec: {nodeName: n2}}", .user = ON_N1},
         "422 Invalid: node n1, not n2"                                                            },
        {{DV_VAP_UPDATE, DV_KIND_SLICE, .object = "{spec: {nodeName: n1}}",
          .old = "{spec: {nodeName: n2}}", .user = ON_N1},
         ""                                                                                        },
        {{DV_VAP_CREATE, DV_KIND_SLICE, .object = "{spec: {allNodes: true}}", .user = ON_N1},
         "422 Invalid: node n1, not"                                                               },
        {{DV_VAP_CREATE, DV_KIND_SLICE, .object = "{spec: {nodeName: n1}}", .user = DRIVER "}"},
         "422 Invalid: no node association found for user, this user must run in a pod on a node"  },
        {{DV_VAP_CREATE, DV_KIND_SLICE, .object = "{spec: {nodeName: n2}}"},                     ""},
    };
    struct world world;

    (void)state;
    world_init(&world);
    assert_true(world_add(
        &world, DV_KIND_VALIDATING_POLICY,
        "{metadata: {name: p}, spec: {failurePolicy: Fail, matchConstraints: {resourceRules: "
        "[{apiGroups: [resource.k8s.io], apiVersions: [v1], operations: [CREATE, UPDATE, DELETE], "
        "resources: [resourceslices]}]}, matchConditions: [{name: isRestrictedUser, expression: "
        "'request.userInfo.username == \"system:serviceaccount:d:driver\"'}], variables: [{name: "
        "userNodeName, expression: 'request.userInfo.?extra[?\"authentication.kubernetes.io/"
        "node-name\"][?0].orValue(\"\")'}, {name: objectNodeName, expression: '(request.operation "
        "== \"DELETE\" ? oldObject : object).spec.?nodeName.orValue(\"\")'}], validations: "
        "[{expression: 'variables.userNodeName != \"\"', message: 'no node association found for "
        "user, this user must run in a pod on a node'}, {expression: 'variables.userNodeName == "
        "variables.objectNodeName', messageExpression: '\"node \" + variables.userNodeName + \", "
        "not \" + variables.objectNodeName'}]}}"));
    assert_true(
        world_add(&world, DV_KIND_VALIDATING_POLICY_BINDING,
                  "{metadata: {name: b}, spec: {policyName: p, validationActions: [Deny]}}"));
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_string_equal(judge(&world, &cases[i].write, DV_VAP_ON_LOOP), cases[i].verdict);
    world_fini(&world);
}

/* ---- the index ---- */

static void follows_changes_at_once(void **state)
{
    static const char policy[] = "{metadata: {name: p}, spec: {" CONFIG_MAPS
                                 ", validations: [{expression: 'false', message: one}]}}";
    static const char changed[] = "{metadata: {name: p}, spec: {" CONFIG_MAPS
                                  ", validations: [{expression: 'false', message: two}]}}";
    static const char binding[] =
        "{metadata: {name: b}, spec: {policyName: p, validationActions: [Deny]}}";
    static const char other[] =
        "{metadata: {name: b}, spec: {policyName: q, validationActions: [Deny]}}";
    struct world world;

    (void)state;
    world_init(&world);
    assert_false(dv_vap_is_about(world.vap, dv_kind(DV_KIND_CONFIG_MAP)));
    assert_true(world_add(&world, DV_KIND_VALIDATING_POLICY_BINDING, binding));
    assert_false(dv_vap_is_about(world.vap, dv_kind(DV_KIND_CONFIG_MAP)));
    assert_true(world_add(&world, DV_KIND_VALIDATING_POLICY, policy));
    assert_true(dv_vap_is_about(world.vap, dv_kind(DV_KIND_CONFIG_MAP)));
    assert_false(dv_vap_is_about(world.vap, dv_kind(DV_KIND_SECRET)));
    assert_string_equal(judge(&world, &config_map, DV_VAP_ON_LOOP), "422 Invalid: one");
    assert_true(world_add(&world, DV_KIND_VALIDATING_POLICY, changed));
    assert_string_equal(judge(&world, &config_map, DV_VAP_ON_LOOP), "422 Invalid: two");
    assert_true(world_add(&world, DV_KIND_VALIDATING_POLICY_BINDING, other));
    assert_string_equal(judge(&world, &config_map, DV_VAP_ON_LOOP), "");
    assert_true(world_add(&world, DV_KIND_VALIDATING_POLICY_BINDING, binding));
    world_remove(&world, DV_KIND_VALIDATING_POLICY, policy);
    assert_string_equal(judge(&world, &config_map, DV_VAP_ON_LOOP), "");
    world_fini(&world);
}

static void keeps_a_policy_that_goes_while_it_judges(void **state)
{
    static const char policy[] = "{metadata: {name: p}, spec: {" CONFIG_MAPS
                                 ", validations: [{expression: 'false', message: one}]}}";
    static const char binding[] =
        "{metadata: {name: b}, spec: {policyName: p, validationActions: [Deny]}}";
    struct world world;
    struct dv_vap_write write;
    struct dv_vap_world seam;
    struct dv_vap_judgement *judgement;

    (void)state;
    world_init(&world);
    assert_true(world_add(&world, DV_KIND_VALIDATING_POLICY_BINDING, binding));
    assert_true(world_add(&world, DV_KIND_VALIDATING_POLICY, policy));
    write = write_of(&world, &config_map);
    seam = world_seam(&world);
    judgement = dv_vap_judge(world.vap, &write, &seam);
    world_remove(&world, DV_KIND_VALIDATING_POLICY, policy);
    world_remove(&world, DV_KIND_VALIDATING_POLICY_BINDING, binding);
    assert_int_equal(dv_vap_run(judgement, DV_VAP_ON_WORKER), DV_VAP_DONE);
    assert_true(dv_vap_verdict(judgement)->is_refused);
    dv_vap_judgement_free(judgement);
    world_fini(&world);
}

static void leaves_to_workers_what_takes_long(void **state)
{
    struct world world;
    struct dv_vap_write write;
    struct dv_vap_world seam;
    struct dv_vap_judgement *judgement;

    (void)state;
    world_init(&world);
    assert_true(world_add(&world, DV_KIND_VALIDATING_POLICY,
                          "{metadata: {name: p}, spec: {" CONFIG_MAPS
                          ", validations: [{expression: 'lists.range(10000).all(x, x >= 0) && "
                          "authorizer.requestResource.check(\"use\").allowed()'}]}}"));
    assert_true(
        world_add(&world, DV_KIND_VALIDATING_POLICY_BINDING,
                  "{metadata: {name: b}, spec: {policyName: p, validationActions: [Deny]}}"));
    write = write_of(&world, &config_map);
    seam = world_seam(&world);
    judgement = dv_vap_judge(world.vap, &write, &seam);
    assert_int_equal(dv_vap_run(judgement, DV_VAP_ON_LOOP), DV_VAP_NEEDS_WORKER);
    assert_int_equal(dv_vap_run(judgement, DV_VAP_ON_WORKER), DV_VAP_NEEDS_DECISION);
    assert_int_equal(world.n_decided, 0);
    dv_vap_decide(judgement);
    assert_int_equal(world.n_decided, 1);
    assert_int_equal(dv_vap_run(judgement, DV_VAP_ON_WORKER), DV_VAP_DONE);
    assert_int_equal(world.n_decided, 1);
    assert_false(dv_vap_verdict(judgement)->is_refused);
    dv_vap_judgement_free(judgement);
    world_fini(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decides_as_the_policy_says),
        cmocka_unit_test(finds_the_writes_that_are_meant),
        cmocka_unit_test(asks_with_each_parameter),
        cmocka_unit_test(holds_a_driver_to_the_slices_of_its_node),
        cmocka_unit_test(follows_changes_at_once),
        cmocka_unit_test(keeps_a_policy_that_goes_while_it_judges),
        cmocka_unit_test(leaves_to_workers_what_takes_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
