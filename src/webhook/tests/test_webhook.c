/* test_webhook.c - which webhooks a write concerns, in which order, and what a patch makes of an
 * object. */
#include "webhook/webhook.h"

#include "support/dvtest.h"

#include "base/arena.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "vap/vap_conditions.h"
#include "vap/vap_match.h"
#include "json/json.h"

#define RULE(fields) "rules: [{operations: ['*'], apiGroups: [''], apiVersions: [v1], " fields "}]"

static const void *read_yaml(const struct dv_kind *kind, const struct dv_api_version *version,
                             const char *text, struct dv_arena *arena)
{
    void *value = dv_arena_alloc(arena, version->message->size, version->message->align);
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(dv_str_from_c(text), NULL, arena, &err);

    assert_true(doc &&
                dv_decode_json(version->message, doc, DV_UNKNOWN_DROP, arena, value, NULL, &err));
    dv_default(kind, version, value, (struct dv_time){0}, arena);
    return value;
}

static struct dv_object *config(enum dv_kind_id id, const char *text, struct dv_arena *arena)
{
    const struct dv_kind *kind = dv_kind(id);

    return dv_object_new(kind, read_yaml(kind, kind->versions, text, arena));
}

static void add(struct dv_webhooks *webhooks, enum dv_kind_id id, const char *text,
                struct dv_arena *arena)
{
    struct dv_object *object = config(id, text, arena);

    dv_webhooks_changed(webhooks, NULL, object);
    dv_object_unref(object);
}

/* The names of the webhooks that are meant, with the versions that they want to be shown. */
static dv_str meant(const struct dv_webhooks *webhooks, enum dv_webhook_phase phase,
                    const struct dv_vap_write *write, const struct dv_api_object_meta *namespace,
                    struct dv_arena *arena)
{
    const struct dv_vap_labels labels = {write->object, write->old, namespace};
    struct dv_webhook_list list = dv_webhooks_of(webhooks, phase);
    dv_str text = DV_STR("");

    for (size_t i = 0; i < list.n; i++) {
        const struct dv_api_version *version;

        if (dv_webhook_matches(list.v[i], write, &labels, &version))
            text = dv_str_printf(arena, "%.*s%s%.*s:%.*s", DV_FMT(text), text.n > 0 ? " " : "",
                                 DV_FMT(list.v[i]->value.name), DV_FMT(version->version));
    }
    return text;
}

static void webhooks_are_called_in_the_order_of_their_configurations(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_webhooks *webhooks = dv_webhooks_new();
    const struct dv_kind *kind = dv_kind(DV_KIND_CONFIG_MAP);
    const struct dv_vap_write write = {.operation = DV_VAP_CREATE,
                                       .kind = kind,
                                       .version = kind->versions,
                                       .namespace = DV_STR("ns"),
                                       .object = read_yaml(kind, kind->versions, "{}", arena)};

    (void)state;
    add(webhooks, DV_KIND_MUTATING_WEBHOOKS,
        "{metadata: {name: b}, webhooks: [{name: z, " RULE(
            "resources: [configmaps]") "}, {name: "
                                       "v, " RULE("resources: ['*']") "}]}",
        arena);
    add(webhooks, DV_KIND_MUTATING_WEBHOOKS,
        "{metadata: {name: a}, webhooks: [{name: c, " RULE("resources: [configmaps]") "}]}", arena);
    assert_str(meant(webhooks, DV_WEBHOOK_MUTATES, &write, NULL, arena), "c:v1 z:v1 v:v1");
    assert_str(meant(webhooks, DV_WEBHOOK_VALIDATES, &write, NULL, arena), "");
    assert_true(dv_webhooks_are_about(webhooks, DV_WEBHOOK_MUTATES, kind));
    assert_true(dv_webhooks_are_about(webhooks, DV_WEBHOOK_MUTATES, dv_kind(DV_KIND_POD)));
    assert_false(dv_webhooks_are_about(webhooks, DV_WEBHOOK_VALIDATES, kind));
    assert_false(dv_webhooks_are_about(webhooks, DV_WEBHOOK_MUTATES, dv_kind(DV_KIND_CLAIM)));
    /* A configuration that changes replaces its webhooks, one that goes takes them along. */
    add(webhooks, DV_KIND_MUTATING_WEBHOOKS,
        "{metadata: {name: b}, webhooks: [{name: x, " RULE("resources: [secrets]") "}]}", arena);
    assert_str(meant(webhooks, DV_WEBHOOK_MUTATES, &write, NULL, arena), "c:v1");
    {
        struct dv_object *gone =
            config(DV_KIND_MUTATING_WEBHOOKS, "{metadata: {name: a}, webhooks: []}", arena);

        dv_webhooks_changed(webhooks, gone, NULL);
        dv_object_unref(gone);
    }
    assert_str(meant(webhooks, DV_WEBHOOK_MUTATES, &write, NULL, arena), "");
    assert_false(dv_webhooks_are_about(webhooks, DV_WEBHOOK_MUTATES, kind));
    dv_webhooks_free(webhooks);
}

static void rules_and_selectors_say_who_is_meant(void **state)
{
    static const struct {
        const char *fields; /* of the webhook */
        enum dv_kind_id kind;
        const char *version; /* of the request; NULL: the first */
        const char *subresource;
        const char *want;
    } rows[] = {
        {"",                                                                                        DV_KIND_CONFIG_MAP, NULL,      "",       ""    },
        {RULE("resources: [configmaps]"),                                                           DV_KIND_CONFIG_MAP, NULL,      "",       "w:v1"},
        {RULE("resources: [configmaps]"),                                                           DV_KIND_CONFIG_MAP, NULL,      "status", ""    },
        {RULE("resources: ['configmaps/*']"),                                                       DV_KIND_CONFIG_MAP, NULL,      "status", "w:v1"},
        {RULE("resources: ['*'], scope: Cluster"),                                                  DV_KIND_CONFIG_MAP, NULL,      "",       ""    },
        {RULE("resources: ['*']") ", namespaceSelector: {matchLabels: {team: a}}",
         DV_KIND_CONFIG_MAP,                                                                                            NULL,      "",       "w:v1"},
        {RULE("resources: ['*']") ", namespaceSelector: {matchLabels: {team: b}}",
         DV_KIND_CONFIG_MAP,                                                                                            NULL,      "",       ""    },
        {RULE("resources: ['*']") ", namespaceSelector: {matchLabels: {team: b}}",                  DV_KIND_NODE,
         NULL,                                                                                                                     "",       "w:v1"},
        {RULE("resources: ['*']") ", objectSelector: {matchLabels: {x: v}}",                        DV_KIND_CONFIG_MAP,
         NULL,                                                                                                                     "",       "w:v1"},
        {RULE("resources: ['*']") ", objectSelector: {matchLabels: {x: z}}",                        DV_KIND_CONFIG_MAP,
         NULL,                                                                                                                     "",       ""    },
        {"rules: [{operations: [UPDATE], apiGroups: ['*'], apiVersions: ['*'], resources: ['*']}]",
         DV_KIND_CONFIG_MAP,                                                                                            NULL,      "",       ""    },
        {"rules: [{operations: ['*'], apiGroups: [resource.k8s.io], apiVersions: [v1], resources: "
         "[resourceclaims]}]",                                                             DV_KIND_CLAIM,      "v1beta1", "",       "w:v1"},
        {"matchPolicy: Exact, rules: [{operations: ['*'], apiGroups: [resource.k8s.io], "
         "apiVersions: [v1], resources: [resourceclaims]}]",                               DV_KIND_CLAIM,      "v1beta1", "",       ""    },
        {"rules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*']}]",
         DV_KIND_VALIDATING_WEBHOOKS,                                                                                   NULL,      "",       ""    },
        {"rules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*']}]",
         DV_KIND_VALIDATING_POLICY,                                                                                     NULL,      "",       ""    },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_kind *namespaces = dv_kind(DV_KIND_NAMESPACE);
    const struct dv_api_object_meta *namespace =
        read_yaml(namespaces, namespaces->versions, "{metadata: {labels: {team: a}}}", arena);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const struct dv_kind *kind = dv_kind(rows[i].kind);
        struct dv_webhooks *webhooks = dv_webhooks_new();
        struct dv_vap_write write = {
            .operation = DV_VAP_CREATE,
            .kind = kind,
            .version = kind->versions,
            .subresource = dv_str_from_c(rows[i].subresource),
            .namespace = kind->is_namespaced ? DV_STR("ns") : DV_STR_NONE,
            .object = read_yaml(kind, kind->versions, "{metadata: {labels: {x: v}}}", arena)};

        for (size_t v = 0; rows[i].version && v < kind->n_versions; v++)
            if (dv_str_eq(kind->versions[v].version, dv_str_from_c(rows[i].version)))
                write.version = &kind->versions[v];
        add(webhooks, DV_KIND_VALIDATING_WEBHOOKS,
            dv_str_printf(arena, "{metadata: {name: a}, webhooks: [{name: w%s%s}]}",
                          rows[i].fields[0] ? ", " : "", rows[i].fields)
                .p,
            arena);
        assert_str(meant(webhooks, DV_WEBHOOK_VALIDATES, &write, namespace, arena), rows[i].want);
        dv_webhooks_free(webhooks);
    }
}

static void a_webhook_is_called_as_its_configuration_says(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_webhooks *webhooks = dv_webhooks_new();
    struct dv_webhook_list list;

    (void)state;
    add(webhooks, DV_KIND_MUTATING_WEBHOOKS,
        "{metadata: {name: a}, webhooks: [{name: a, sideEffects: None}, {name: b, failurePolicy: "
        "Ignore, reinvocationPolicy: IfNeeded, sideEffects: Some, timeoutSeconds: 3, "
        "admissionReviewVersions: [v2, v1beta1, v1]}]}",
        arena);
    list = dv_webhooks_of(webhooks, DV_WEBHOOK_MUTATES);
    assert_int_equal(list.n, 2);
    assert_true(list.v[0]->is_fail && !list.v[0]->is_reinvoked && !list.v[0]->has_effects);
    assert_int_equal(list.v[0]->timeout_ms, 10000);
    assert_int_equal(list.v[0]->review, DV_REVIEW_V1);
    assert_true(!list.v[1]->is_fail && list.v[1]->is_reinvoked && list.v[1]->has_effects);
    assert_int_equal(list.v[1]->timeout_ms, 3000);
    assert_int_equal(list.v[1]->review, DV_REVIEW_V1BETA1);
    dv_webhooks_free(webhooks);
}

static void conditions_say_whether_a_webhook_is_called(void **state)
{
    static const struct {
        const char *conditions;
        enum dv_vap_conditions_outcome want;
    } rows[] = {
        {"[]",                                                         DV_VAP_CONDITIONS_TRUE  },
        {"[{name: a, expression: \"request.operation == 'CREATE'\"}]", DV_VAP_CONDITIONS_TRUE  },
        {"[{name: a, expression: \"object.metadata.name != 'x'\"}]",   DV_VAP_CONDITIONS_FALSE },
        {"[{name: a, expression: 'object.data.x == 1'}]",              DV_VAP_CONDITIONS_FAILED},
        {"[{name: a, expression: 'object.data.x == 1'}, {name: b, expression: 'oldObject != "
         "null'}]",                                           DV_VAP_CONDITIONS_FALSE },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_kind *kind = dv_kind(DV_KIND_CONFIG_MAP);
    const struct dv_api_user_info user = {.username = DV_STR("u")};
    const struct dv_vap_world world = {0};
    const struct dv_vap_write write = {
        .operation = DV_VAP_CREATE,
        .kind = kind,
        .version = kind->versions,
        .user = &user,
        .object = read_yaml(kind, kind->versions, "{metadata: {name: x}}", arena)};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_webhooks *webhooks = dv_webhooks_new();
        struct dv_vap_asking *asking;
        dv_str problem = DV_STR("");

        add(webhooks, DV_KIND_VALIDATING_WEBHOOKS,
            dv_str_printf(arena,
                          "{metadata: {name: a}, webhooks: [{name: w, matchConditions: %s}]}",
                          rows[i].conditions)
                .p,
            arena);
        asking = dv_vap_asking_new(dv_webhooks_of(webhooks, DV_WEBHOOK_VALIDATES).v[0]->conditions,
                                   &write, &world, kind->versions);
        assert_int_equal(dv_vap_asking_run(asking, DV_VAP_ON_LOOP), DV_VAP_DONE);
        assert_int_equal(dv_vap_asking_outcome(asking, &problem), rows[i].want);
        assert_int_equal(problem.n > 0, rows[i].want == DV_VAP_CONDITIONS_FAILED);
        dv_vap_asking_free(asking);
        dv_webhooks_free(webhooks);
    }
}

static void a_patch_changes_an_object_in_the_version_that_was_shown(void **state)
{
    static const struct {
        const char *patch;
        const char *want; /* the name of the first container, or the error */
    } rows[] = {
        {"[{op: replace, path: /spec/containers/0/image, value: j}]", "c j Always"},
        {"[{op: test, path: /spec/containers/0/name, value: d}]",     "!"         },
        {"[{op: add, path: /spec/containers/9, value: {}}]",          "!"         },
        {"[{op: remove, path: ''}]",                                  "!"         },
        {"[{op: add, path: /spec, value: 1}]",                        "!"         },
        {"[{op: frob, path: /spec}]",                                 "!"         },
        {"[1]",                                                       "!"         },
        {"[{op: replace, path: /metadata/name, value: q}]",           "!"         },
        {"[{op: add, path: /metadata/uid, value: q}]",                "c i Always"},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_kind *kind = dv_kind(DV_KIND_POD);
    const struct dv_api_pod *pod =
        read_yaml(kind, kind->versions,
                  "{metadata: {name: p, namespace: ns, uid: u}, spec: {containers: [{name: c, "
                  "image: i}]}}",
                  arena);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_err err = {0};
        const struct dv_json *patch =
            dv_yaml_parse(dv_str_from_c(rows[i].patch), NULL, arena, &err);
        const struct dv_api_pod *patched =
            dv_review_patch(kind, kind->versions, pod, patch, (struct dv_time){0}, arena, &err);

        if (rows[i].want[0] == '!') {
            assert_null(patched);
            assert_int_not_equal(err.code, DV_OK);
            continue;
        }
        assert_non_null(patched);
        assert_str(patched->metadata.uid, "u");
        assert_str(dv_str_printf(arena, "%.*s %.*s %.*s", DV_FMT(patched->spec.containers[0].name),
                                 DV_FMT(patched->spec.containers[0].image),
                                 DV_FMT(patched->spec.containers[0].image_pull_policy)),
                   rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(webhooks_are_called_in_the_order_of_their_configurations),
        cmocka_unit_test(rules_and_selectors_say_who_is_meant),
        cmocka_unit_test(a_webhook_is_called_as_its_configuration_says),
        cmocka_unit_test(conditions_say_whether_a_webhook_is_called),
        cmocka_unit_test(a_patch_changes_an_object_in_the_version_that_was_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
