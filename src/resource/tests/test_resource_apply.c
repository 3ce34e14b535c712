#include "test_resource_patch.h"

#include "base/arena.h"
#include "resource/patch.h"
#include "resource/resource.h"
#include "support/docs.h"
#include "support/dvtest.h"
#include "json/json.h"

/* The struct that a document is read as; NULL for NULL. */
static void *read_doc(const struct dv_message *message, const struct dv_json *doc)
{
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;

    if (!doc)
        return NULL;
    assert_ok(dv_decode_json(message, doc, DV_UNKNOWN_DROP, arena, value, NULL, &err), &err);
    return value;
}

static void update_as(struct thing *thing, const struct dv_manager *who, struct dv_json *doc)
{
    dv_apply_update(thing->message, read_doc(thing->message, thing->live),
                    read_doc(thing->message, doc), &thing->managed, who, arena, &thing->managed);
    thing->live = doc;
    thing->now++;
}

static void update(struct thing *thing, const char *name, const char *doc)
{
    struct dv_manager who = manager(thing, name);

    update_as(thing, &who, parse_yaml(doc));
}

static struct thing claim(void)
{
    return (struct thing){
        .message = &dv_message_resource_claim, .api_version = "resource.k8s.io/v1", .now = 1000};
}

#define CLAIM "apiVersion: resource.k8s.io/v1, kind: ResourceClaim"

static void what_is_applied_is_owned(void **state)
{
    struct thing thing = claim();

    (void)state;
    apply(&thing, "m",
          "{" CLAIM ", metadata: {name: c, labels: {a: '1'}}, spec: {devices: {requests: [{name: "
          "r}]}}}");
    assert_owners(&thing, "m Apply  {\"f:metadata\":{\"f:labels\":{\"f:a\":{}}},\"f:spec\":{"
                          "\"f:devices\":{\"f:requests\":{}}}}");
    assert_doc(thing.live, "{" CLAIM ", metadata: {name: c, labels: {a: '1'}}, spec: {devices: "
                           "{requests: [{name: r}]}}}");
}

static void what_is_no_longer_applied_goes(void **state)
{
    struct thing thing = claim();

    (void)state;
    apply(&thing, "m", "{metadata: {labels: {a: '1', b: '2'}}}");
    apply(&thing, "n", "{metadata: {labels: {b: '2'}}}");
    update(&thing, "u", "{metadata: {labels: {a: '1', b: '2', c: '3'}}}");
    apply(&thing, "m", "{metadata: {labels: {}}}"); /* b is also n's, c is u's */
    assert_doc(thing.live, "{metadata: {labels: {b: '2', c: '3'}}}");
    apply(&thing, "n", "{metadata: {}}");
    assert_doc(thing.live, "{metadata: {labels: {c: '3'}}}");
}

static void a_map_that_becomes_empty_is_null(void **state)
{
    struct thing thing = claim();

    (void)state;
    apply(&thing, "m", "{metadata: {labels: {a: '1'}}}");
    apply(&thing, "m", "{metadata: {name: x}}");
    assert_doc(thing.live, "{metadata: {labels: null, name: x}}");
    assert_int_equal(thing.managed.n, 0);
}

static void changing_what_another_owns_is_a_conflict(void **state)
{
    struct thing thing = pod();
    struct dv_apply_result result;

    (void)state;
    apply(&thing, "m", "{spec: {containers: [{name: a, image: i, ports: [{containerPort: 80}]}]}}");
    update(&thing, "u",
           "{metadata: {labels: {x: w}}, spec: {containers: [{name: a, image: i, ports: "
           "[{containerPort: 80}]}]}}");
    result = try_apply(&thing, "n",
                       "{metadata: {labels: {x: z}}, spec: {containers: [{name: a, image: j, "
                       "ports: [{containerPort: 80, name: p}]}]}}",
                       false);
    assert_int_equal(result.n_conflicts, 2);
    assert_str(result.conflicts[0].manager, "\"m\"");
    assert_str(result.conflicts[0].field, ".spec.containers[name=\"a\"].image");
    assert_str(result.conflicts[1].manager, "\"u\" using v1");
    assert_str(result.conflicts[1].field, ".metadata.labels.x");
}

static void the_same_value_is_shared(void **state)
{
    struct thing thing = pod();
    struct dv_apply_result result;

    (void)state;
    apply(&thing, "m", "{spec: {nodeName: k}}");
    result = try_apply(&thing, "n", "{spec: {nodeName: k}}", false);
    assert_int_equal(result.n_conflicts, 0);
    thing.managed = result.managed;
    assert_owners(&thing, "m Apply  {\"f:spec\":{\"f:nodeName\":{}}}",
                  "n Apply  {\"f:spec\":{\"f:nodeName\":{}}}");
}

static void force_takes_the_field_over(void **state)
{
    struct thing thing = pod();

    (void)state;
    apply(&thing, "m", "{spec: {nodeName: k, hostname: h}}");
    apply(&thing, "n", "{spec: {nodeName: o}}");
    assert_doc(thing.live, "{spec: {nodeName: o, hostname: h}}");
    assert_owners(&thing, "m Apply  {\"f:spec\":{\"f:hostname\":{}}}",
                  "n Apply  {\"f:spec\":{\"f:nodeName\":{}}}");
}

static void items_are_told_apart_by_their_keys(void **state)
{
    struct thing thing = pod();

    (void)state;
    update(&thing, "u",
           "{metadata: {uid: u}, spec: {containers: [{name: a, image: i, ports: [{containerPort: "
           "80, protocol: TCP}]}, {name: z, image: i}]}}");
    apply(&thing, "m",
          "{spec: {containers: [{name: b, image: j}, {name: a, ports: [{containerPort: 80, name: "
          "x}, {containerPort: 53, protocol: UDP}]}]}}");
    assert_doc(thing.live,
               "{metadata: {uid: u}, spec: {containers: [{name: b, image: j}, {name: a, image: i, "
               "ports: [{containerPort: 80, protocol: TCP, name: x}, {containerPort: 53, "
               "protocol: UDP}]}, {name: z, image: i}]}}");
    assert_str(entry_at(&thing, 0)->fields_v1,
               "{\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"a\\\"}\":{\".\":{},\"f:name\":"
               "{},\"f:ports\":{\"k:{\\\"containerPort\\\":53,\\\"protocol\\\":\\\"UDP\\\"}\":{"
               "\".\":{},\"f:containerPort\":{},\"f:protocol\":{}},\"k:{\\\"containerPort\\\":80,"
               "\\\"protocol\\\":\\\"TCP\\\"}\":{\".\":{},\"f:containerPort\":{},\"f:name\":{}}}},"
               "\"k:{\\\"name\\\":\\\"b\\\"}\":{\".\":{},\"f:image\":{},\"f:name\":{}}}}}");
}

/* What an upgrade of a chart does: the same manager applies another version, and what it no longer
 * has goes, at every depth, but for what others have applied or set. */
static void what_an_upgrade_leaves_out_goes_at_every_depth(void **state)
{
    static const struct {
        const char *before; /* applied by the chart */
        const char *others; /* applied by another; NULL: nothing */
        const char *after;  /* applied by the chart */
        const char *live;
    } rows[] = {
  /* items of a list in an item of a list */
        {"{spec: {containers: [{name: c, env: [{name: A, value: '1'}, {name: B, value: '2'}]}]}}",
         NULL,                                                                                                                          "{spec: {containers: [{name: c, env: [{name: B, value: '3'}]}]}}",
         "{spec: {containers: [{name: c, env: [{name: B, value: '3'}]}]}}"                                                                                                                                                                                                                    },
        {"{spec: {containers: [{name: c, env: [{name: A, value: '1'}]}]}}",                             NULL,
         "{spec: {containers: [{name: c}]}}",                                                                                                                                                                             "{spec: {containers: [{name: c, env: null}]}}"                      },
        {"{spec: {containers: [{name: c, ports: [{containerPort: 80}, {containerPort: 80, "
         "protocol: UDP}]}]}}",                                                                NULL,                           "{spec: {containers: [{name: c, ports: [{containerPort: 80, protocol: TCP}]}]}}",
         "{spec: {containers: [{name: c, ports: [{containerPort: 80, protocol: TCP}]}]}}"                                                                                                                                                                                                     },
 /* an item goes with all that is its manager's alone */
        {"{spec: {containers: [{name: c}, {name: d, image: i}]}}",                                      NULL,
         "{spec: {containers: [{name: c}]}}",                                                                                                                                                                             "{spec: {containers: [{name: c}]}}"                                 },
 /* and stays for what is another's */
        {"{spec: {containers: [{name: c}, {name: d, image: i}]}}",
         "{spec: {containers: [{name: d, workingDir: /w}]}}",                                                                           "{spec: {containers: [{name: c}]}}",
         "{spec: {containers: [{name: c}, {name: d, workingDir: /w}]}}"                                                                                                                                                                                                                       },
        {"{spec: {containers: [{name: c, env: [{name: A, value: '1'}]}]}}",
         "{spec: {containers: [{name: c, env: [{name: B, value: '2'}]}]}}",                                                             "{spec: {containers: [{name: c, env: []}]}}",
         "{spec: {containers: [{name: c, env: [{name: B, value: '2'}]}]}}"                                                                                                                                                                                                                    },
 /* what both have applied alike stays for the other */
        {"{spec: {containers: [{name: c, env: [{name: A, value: '1'}]}]}}",
         "{spec: {containers: [{name: c, env: [{name: A, value: '1'}]}]}}",                                                             "{spec: {containers: [{name: c}]}}",
         "{spec: {containers: [{name: c, env: [{name: A, value: '1'}]}]}}"                                                                                                                                                                                                                    },
 /* members of structs and maps inside of items */
        {"{spec: {containers: [{name: c, resources: {limits: {cpu: '1', memory: 1Gi}}}]}}",             NULL,
         "{spec: {containers: [{name: c, resources: {limits: {cpu: '1'}}}]}}",                                                                                                                                            "{spec: {containers: [{name: c, resources: {limits: {cpu: '1'}}}]}}"},
        {"{spec: {containers: [{name: c, livenessProbe: {grpc: {port: 1}, periodSeconds: 5}}]}}",
         NULL,                                                                                                                          "{spec: {containers: [{name: c, livenessProbe: {grpc: {port: 1}}}]}}",
         "{spec: {containers: [{name: c, livenessProbe: {grpc: {port: 1}}}]}}"                                                                                                                                                                                                                },
        {"{spec: {containers: [{name: c, volumeMounts: [{mountPath: /a, name: v}, {mountPath: /b, "
         "name: v}]}], volumes: [{name: v, hostPath: {path: /x}}, {name: w, emptyDir: {}}]}}", NULL,
         "{spec: {containers: [{name: c, volumeMounts: [{mountPath: /b, name: v}]}], volumes: "
         "[{name: v, hostPath: {path: /y}}]}}",                                                                                                                                                                           "{spec: {containers: [{name: c, volumeMounts: [{mountPath: /b, name: v}]}], volumes: "
         "[{name: v, hostPath: {path: /y}}]}}"                                                                                                                                                                                                 },
 /* atomic lists and maps are replaced whole */
        {"{spec: {tolerations: [{key: a}, {key: b}], nodeSelector: {x: v, z: w}}}",                     NULL,
         "{spec: {tolerations: [{key: b}], nodeSelector: {z: w}}}",                                                                                                                                                       "{spec: {tolerations: [{key: b}], nodeSelector: {z: w}}}"           },
        {"{spec: {containers: [{name: c, command: [a, b], args: [x]}]}}",                               NULL,
         "{spec: {containers: [{name: c, command: [b]}]}}",                                                                                                                                                               "{spec: {containers: [{name: c, command: [b]}]}}"                   },
 /* labels by key */
        {"{metadata: {labels: {a: b, c: d}}}",                                                          "{metadata: {labels: {e: f}}}",
         "{metadata: {labels: {c: x}}}",                                                                                                                                                                                  "{metadata: {labels: {c: x, e: f}}}"                                },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct thing thing = pod();

        apply(&thing, "helm", rows[i].before);
        if (rows[i].others)
            apply(&thing, "other", rows[i].others);
        apply(&thing, "helm", rows[i].after);
        assert_doc(thing.live, rows[i].live);
    }
}

/* Which values of another are taken, by place. */
static void a_conflict_is_told_at_every_depth(void **state)
{
    static const struct {
        const char *live;   /* applied by one */
        const char *config; /* tried by another */
        const char *field;  /* what is another's; NULL: there is no conflict */
    } rows[] = {
        {"{spec: {containers: [{name: c, env: [{name: A, value: '1'}]}]}}",
         "{spec: {containers: [{name: c, env: [{name: A, value: '2'}]}]}}",                                                         ".spec.containers[name=\"c\"].env[name=\"A\"].value"                        },
        {"{spec: {containers: [{name: c, env: [{name: A, value: '1'}]}]}}",
         "{spec: {containers: [{name: c, env: [{name: A, value: '1'}]}]}}",                                                         NULL                                                                        },
        {"{spec: {containers: [{name: c, env: [{name: A, value: '1'}]}]}}",
         "{spec: {containers: [{name: c, env: [{name: B, value: '1'}]}]}}",                                                         NULL                                                                        },
        {"{spec: {containers: [{name: c, ports: [{containerPort: 80, name: a}]}]}}",
         "{spec: {containers: [{name: c, ports: [{containerPort: 80, protocol: TCP, name: b}]}]}}",                                 ".spec.containers[name=\"c\"].ports[containerPort=80,protocol=\"TCP\"].name"},
        {"{spec: {tolerations: [{key: a}]}}",                                        "{spec: {tolerations: [{key: a}, {key: b}]}}",
         ".spec.tolerations"                                                                                                                                                                                    },
        {"{spec: {containers: [{name: c, resources: {limits: {cpu: '1'}}}]}}",
         "{spec: {containers: [{name: c, resources: {limits: {cpu: '2'}}}]}}",                                                      ".spec.containers[name=\"c\"].resources.limits.cpu"                         },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct thing thing = pod();
        struct dv_apply_result result;

        apply(&thing, "one", rows[i].live);
        result = try_apply(&thing, "other", rows[i].config, false);
        assert_int_equal(result.n_conflicts, rows[i].field ? 1 : 0);
        if (rows[i].field)
            assert_str(result.conflicts[0].field, rows[i].field);
    }
}

static void sets_are_owned_value_by_value(void **state)
{
    struct thing thing = claim();

    (void)state;
    apply(&thing, "m", "{metadata: {finalizers: [a, b]}}");
    apply(&thing, "n", "{metadata: {finalizers: [c]}}");
    apply(&thing, "m", "{metadata: {finalizers: [b]}}");
    assert_doc(thing.live, "{metadata: {finalizers: [b, c]}}");
    assert_owners(&thing, "n Apply  {\"f:metadata\":{\"f:finalizers\":{\"v:\\\"c\\\"\":{}}}}",
                  "m Apply  {\"f:metadata\":{\"f:finalizers\":{\"v:\\\"b\\\"\":{}}}}");
}

static void a_status_has_owners_of_its_own(void **state)
{
    struct thing thing = claim();

    (void)state;
    apply(&thing, "m",
          "{spec: {devices: {requests: [{name: r}]}}, status: {reservedFor: [{uid: "
          "u}]}}");
    thing.subresource = "status";
    apply(&thing, "m",
          "{spec: {devices: {constraints: []}}, status: {reservedFor: [{uid: u, name: "
          "p}]}}");
    assert_owners(&thing, "m Apply  {\"f:spec\":{\"f:devices\":{\"f:requests\":{}}}}",
                  "m Apply status {\"f:status\":{\"f:reservedFor\":{\"k:{\\\"uid\\\":\\\"u\\\"}\":{"
                  "\".\":{},\"f:name\":{},\"f:uid\":{}}}}}");
}

static void updates_own_what_they_change(void **state)
{
    struct thing thing = pod();

    (void)state;
    update(&thing, "a",
           "{metadata: {name: p, uid: u, generation: 1, creationTimestamp: '2006-01-02T15:04:05Z', "
           "resourceVersion: v}, "
           "spec: {nodeName: k, containers: [{name: c}]}, status: {phase: x}}");
    assert_owners(&thing, "a Update  {\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"c\\\"}\":"
                          "{\".\":{},\"f:name\":{},\"f:resources\":{}}},\"f:nodeName\":{}}}");
    update(&thing, "b",
           "{metadata: {name: p, uid: u, labels: {x: w}}, spec: {nodeName: m, containers: [{name: "
           "c}]}}");
    assert_owners(&thing,
                  "a Update  {\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"c\\\"}\":{\".\":{"
                  "},\"f:name\":{},\"f:resources\":{}}}}}",
                  "b Update  {\"f:metadata\":{\"f:labels\":{\".\":{},\"f:x\":{}}},\"f:spec\":{"
                  "\"f:nodeName\":{}}}");
    update(&thing, "c",
           "{metadata: {name: p, uid: u, labels: {}}, spec: {nodeName: m, containers: []}}");
    /* A map without entries is not there in the object that is stored. */
    assert_owners(&thing, "b Update  {\"f:spec\":{\"f:nodeName\":{}}}");
}

static void a_write_that_changes_nothing_keeps_its_time(void **state)
{
    struct thing thing = pod();

    (void)state;
    update(&thing, "a", "{metadata: {uid: u}, spec: {nodeName: k}}");
    update(&thing, "a", "{metadata: {uid: u}, spec: {nodeName: k}}");
    assert_int_equal(entry_at(&thing, 0)->time.seconds, 1000);
    apply(&thing, "m", "{spec: {hostname: h}}");
    apply(&thing, "m", "{spec: {hostname: h}}");
    assert_int_equal(entry_at(&thing, 0)->time.seconds, 1002);
    apply(&thing, "m", "{spec: {hostname: i}}");
    assert_int_equal(entry_at(&thing, 0)->time.seconds, 1004);
}

static void ownership_that_was_never_kept_begins_with_an_apply(void **state)
{
    struct thing thing = pod();
    struct dv_apply_result result;

    (void)state;
    thing.live = parse_yaml("{metadata: {uid: u}, spec: {nodeName: k}}");
    update(&thing, "a", "{metadata: {uid: u}, spec: {nodeName: m}}");
    assert_int_equal(thing.managed.n, 0);
    result = try_apply(&thing, "m", "{spec: {nodeName: o}}", false);
    assert_int_equal(result.n_conflicts, 1);
    assert_str(result.conflicts[0].manager, "\"before-first-apply\" using v1");
}

static void old_entries_of_updates_are_folded_together(void **state)
{
    struct thing thing = pod();

    (void)state;
    for (int i = 0; i < 15; i++) {
        struct dv_json *doc = parse_yaml("{metadata: {uid: u, labels: {}}}");
        struct dv_json *labels =
            dv_json_get(dv_json_get(doc, DV_STR("metadata")), DV_STR("labels"));
        struct dv_manager who = manager(&thing, "");

        who.name = dv_str_printf(arena, "m%02d", i);
        for (int j = 0; j <= i; j++)
            dv_json_set(labels, dv_str_printf(arena, "l%02d", j),
                        dv_json_new_str(DV_STR("x"), arena), arena);
        update_as(&thing, &who, doc);
    }
    assert_int_equal(thing.managed.n, 10);
    assert_str(entry_at(&thing, 0)->manager, "ancient-changes");
    assert_str(entry_at(&thing, 0)->fields_v1,
               "{\"f:metadata\":{\"f:labels\":{\".\":{},\"f:l00\":{},\"f:l01\":{},\"f:l02\":{},"
               "\"f:l03\":{},\"f:l04\":{},\"f:l05\":{}}}}");
    assert_str(entry_at(&thing, 9)->manager, "m14");
}

static void kubectl_goes_over_from_the_client_to_the_server(void **state)
{
    struct thing thing = pod();
    struct dv_apply_result result;

    (void)state;
    update(&thing, "kubectl-client-side-apply",
           "{metadata: {uid: u, annotations: {kubectl.kubernetes.io/last-applied-configuration: "
           "'{\"spec\":{\"nodeName\":\"k\"}}'}}, spec: {nodeName: k, hostname: h}}");
    result = try_apply(&thing, "kubectl", "{spec: {nodeName: m}}", false);
    assert_int_equal(result.n_conflicts, 0);
    assert_doc(
        result.doc,
        "{metadata: {uid: u, annotations: {kubectl.kubernetes.io/last-applied-configuration: "
        "\"{\\\"spec\\\":{\\\"nodeName\\\":\\\"m\\\"}}\\n\"}}, spec: {nodeName: m, hostname: "
        "h}}");
    result = try_apply(&thing, "kubectl", "{spec: {hostname: i}}", false);
    assert_int_equal(result.n_conflicts, 1);
    result = try_apply(&thing, "other", "{spec: {nodeName: m}}", false);
    assert_int_equal(result.n_conflicts, 1);
}

static void configurations_must_fit_the_tables(void **state)
{
    static const struct {
        const char *config;
        const char *message;
    } cases[] = {
        {"{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: s}, spec: {nope: 1}}",
         "failed to create typed patch object (s/p; /v1, Kind=Pod): .spec.nope: field not declared "
         "in schema"                                                                                                                                       },
        {"{spec: {nodeName: 7}}",
         ".spec.nodeName: expected string, got &value.valueUnstructured{Value:7}"                                                                          },
        {"{spec: {containers: x}}",
         ".spec.containers: expected list, got &value.valueUnstructured{Value:\"x\"}"                                                                      },
        {"{spec: {containers: [{name: a}, {name: a}]}}",
         ".spec.containers: duplicate entries for key [name=\"a\"]"                                                                                        },
        {"{spec: {containers: [{image: a}]}}",
         ".spec.containers: element 0: associative list with keys has an element that omits all "
         "key fields [\"name\"] (and doesn't have default values for any key fields)"                                                                      },
        {"{spec: {containers: [{name: a, ports: [{hostPort: x}]}]}}",
         ".spec.containers[name=\"a\"].ports[protocol=\"TCP\"].hostPort: expected numeric (int or "
         "float)"                                                                                                                                          },
        {"{spec: {tolerations: [{key: a}, {x: 1}]}}",
         ".spec.tolerations[1].x: field not declared in schema"                                                                                            },
        {"{spec: {resourceClaims: [{name: a, source: {resourceClaimName: b}}]}}",
         ".source: field not declared in schema: it was removed in v1.31; write resourceClaimName "
         "or resourceClaimTemplateName"                                                                                                                    },
        {"{spec: {resourceClaims: [{name: a, resourceClaimName: b, source: {}}]}}",
         "].source: field not declared in schema"                                                                                                          },
        {"{metadata: {finalizers: [null]}}",
         ".metadata.finalizers: element 0: associative list without keys has an element that's an "
         "explicit null"                                                                                                                                   },
        {"{spec: {a: 1, b: 2}}",                                                            "errors:\n  .spec.a: field not declared in schema\n  .spec.b: "},
    };
    struct thing thing = pod();
    struct dv_manager who = manager(&thing, "m");
    struct dv_apply_result result;
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        assert_false(dv_apply(thing.message, NULL, &thing.managed, parse_yaml(cases[i].config),
                              &who, false, arena, &result, &err));
        assert_err(&err, DV_INTERNAL, cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(what_is_applied_is_owned),
        doc_test(what_is_no_longer_applied_goes),
        doc_test(a_map_that_becomes_empty_is_null),
        doc_test(changing_what_another_owns_is_a_conflict),
        doc_test(the_same_value_is_shared),
        doc_test(force_takes_the_field_over),
        doc_test(items_are_told_apart_by_their_keys),
        doc_test(what_an_upgrade_leaves_out_goes_at_every_depth),
        doc_test(a_conflict_is_told_at_every_depth),
        doc_test(sets_are_owned_value_by_value),
        doc_test(a_status_has_owners_of_its_own),
        doc_test(updates_own_what_they_change),
        doc_test(a_write_that_changes_nothing_keeps_its_time),
        doc_test(ownership_that_was_never_kept_begins_with_an_apply),
        doc_test(old_entries_of_updates_are_folded_together),
        doc_test(kubectl_goes_over_from_the_client_to_the_server),
        doc_test(configurations_must_fit_the_tables),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
