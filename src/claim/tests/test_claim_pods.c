/* What pods say about their claims, and what their containers get. Pure. */
#include <stdlib.h>

#include "base/arena.h"
#include "claim/claim.h"
#include "resource/resource.h"
#include "support/dvtest.h"
#include "json/json.h"

#define GPU "gpu.example.com"

struct world {
    struct dv_arena *arena;
    struct dv_claim_state *state;
};

static int world_start(void **state)
{
    struct world *world = DV_ALLOC(struct world);

    world->arena = dv_arena_new();
    world->state = dv_claim_state_new(&(struct dv_claim_opts){.boot_id = DV_STR("boot")});
    *state = world;
    return 0;
}

static int world_end(void **state)
{
    struct world *world = *state;

    dv_claim_state_free(world->state);
    dv_arena_free(world->arena);
    free(world);
    return 0;
}

static void decode(struct world *world, enum dv_kind_id kind, const char *yaml, void *value)
{
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(dv_str_from_c(yaml), NULL, world->arena, &err);

    assert_ok(doc, &err);
    assert_ok(dv_decode_json(dv_kind(kind)->versions[0].message, doc, DV_UNKNOWN_KEEP, world->arena,
                             value, NULL, &err),
              &err);
}

static const struct dv_api_pod *pod_of(struct world *world, const char *yaml)
{
    struct dv_api_pod *pod = DV_NEW(world->arena, struct dv_api_pod);

    decode(world, DV_KIND_POD, yaml, pod);
    return pod;
}

static const struct dv_api_resource_claim *claim_of(struct world *world, const char *yaml)
{
    struct dv_api_resource_claim *claim = DV_NEW(world->arena, struct dv_api_resource_claim);

    decode(world, DV_KIND_CLAIM, yaml, claim);
    return claim;
}

/* A prepared claim "<name>" with devices dev0 for r0, dev1 for r1 and dev2 for all. */
static struct dv_claim *add_claim(struct world *world, const char *name)
{
    static const dv_str r0[] = {DV_STR_INIT("r0")};
    static const dv_str r1[] = {DV_STR_INIT("r1"), DV_STR_INIT("r2")};
    static const dv_str ids[] = {DV_STR_INIT("v.example/c=0"), DV_STR_INIT("v.example/c=1"),
                                 DV_STR_INIT("v.example/c=2")};
    static const struct dv_claim_device devices[] = {
        {.pool = DV_STR_INIT("pool"),
         .name = DV_STR_INIT("dev0"),
         .requests = r0,
         .n_requests = 1,
         .cdi_ids = &ids[0],
         .n_cdi_ids = 1},
        {.pool = DV_STR_INIT("pool"),
         .name = DV_STR_INIT("dev1"),
         .requests = r1,
         .n_requests = 2,
         .cdi_ids = &ids[1],
         .n_cdi_ids = 2},
        {.pool = DV_STR_INIT("pool"),                           .name = DV_STR_INIT("dev2")},
    };
    const struct dv_api_resource_claim *object = claim_of(
        world, dv_str_to_c(dv_str_printf(world->arena,
                                         "{metadata: {name: %s, namespace: ns, uid: u-%s}, status: "
                                         "{allocation: {devices: {results: [{driver: " GPU "}]}}}}",
                                         name, name),
                           world->arena));
    const struct dv_claim_answer answer = {object->metadata.uid, DV_STR(""), devices, 3};
    struct dv_claim *claim;
    struct dv_err err;

    assert_ok(dv_claim_attach(world->state, DV_STR("p"), object, &claim, &err), &err);
    assert_ok(dv_claim_handle(world->state, claim, DV_CLAIM_ON_SAVED, &err), &err);
    assert_ok(dv_claim_apply(world->state, true, DV_STR(GPU), &claim, 1, &answer, 1, &err), &err);
    assert_ok(dv_claim_handle(world->state, claim, DV_CLAIM_ON_PREPARED, &err), &err);
    return claim;
}

/* ---- names ---- */

static void finds_the_claims_of_a_pod(void **state)
{
    static const struct {
        const char *pod;
        const char *wanted; /* "claim:name[!]", ! needs its owner; or the error */
    } cases[] = {
        {"{spec: {}}",                                                                ""                                           },
        {"{spec: {resourceClaims: [{name: a, resourceClaimName: x}]}}",               "a:x "                                       },
        {"{spec: {resourceClaims: [{name: a, resourceClaimTemplateName: t}]}, status: "
         "{resourceClaimStatuses: [{name: a, resourceClaimName: a-1}]}}",    "a:a-1! "                                    },
        {"{spec: {resourceClaims: [{name: a, resourceClaimTemplateName: t}]}, status: "
         "{resourceClaimStatuses: [{name: a}]}}",                            ""                                           },
        {"{spec: {resourceClaims: [{name: a, resourceClaimName: x}]}, status: "
         "{extendedResourceClaimStatus: {resourceClaimName: e}}}",           "a:x :e "                                    },
        {"{metadata: {namespace: ns, name: p}, spec: {resourceClaims: [{name: a, "
         "resourceClaimTemplateName: t}]}}",                                 "pod \"ns/p\": ResourceClaim not created yet"},
        {"{metadata: {namespace: ns, name: p}, spec: {resourceClaims: [{name: a}]}}",
         "pod \"ns/p\", spec.resourceClaim \"a\": none of the supported fields are set"                                            },
    };
    struct world *world = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_claim_ref *refs;
        dv_str text = DV_STR("");
        struct dv_err err;
        size_t n;

        if (!dv_claim_refs(pod_of(world, cases[i].pod), world->arena, &refs, &n, &err)) {
            assert_string_equal(err.msg, cases[i].wanted);
            continue;
        }
        for (size_t k = 0; k < n; k++)
            text = dv_str_printf(world->arena, "%.*s%.*s:%.*s%s ", DV_FMT(text),
                                 DV_FMT(refs[k].pod_claim), DV_FMT(refs[k].name),
                                 refs[k].needs_owner ? "!" : "");
        assert_str(text, cases[i].wanted);
    }
}

static void lets_a_pod_have_what_is_its_own(void **state)
{
#define POD                                                                                        \
    "{metadata: {namespace: ns, name: p, uid: pu}, spec: {schedulingGroup: {podGroupName: g}}}"
#define ALLOCATED "allocation: {devices: {results: []}}"
#define OWNED "ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: pu, controller: true}]"
    static const struct {
        const char *claim;
        bool needs_owner;
        bool takes_groups;
        const char *error; /* NULL: none */
    } cases[] = {
        {"{metadata: {namespace: ns, name: c, uid: cu, " OWNED
         "}, status: {reservedFor: [{resource: pods, name: p, uid: pu}], " ALLOCATED "}}",
         true,                                                                                                 false, NULL                                                                },
        {"{metadata: {namespace: ns, name: c, uid: cu}, status: {reservedFor: [{resource: pods, "
         "name: p, uid: pu}], " ALLOCATED "}}",
         false,                                                                                                false, NULL                                                                },
        {"{metadata: {namespace: ns, name: c, uid: cu}, status: {reservedFor: [{resource: pods, "
         "name: p, uid: pu}], " ALLOCATED "}}",
         true,                                                                                                 false, "ResourceClaim ns/c was not created for Pod ns/p (Pod is not owner)"},
        {"{metadata: {namespace: ns, name: c, uid: cu, ownerReferences: [{kind: Pod, name: p, uid: "
         "pu}]}, status: {reservedFor: [{resource: pods, name: p, uid: pu}], " ALLOCATED "}}",
         true,                                                                                                 false, "(Pod is not owner)"                                                },
        {"{metadata: {namespace: ns, name: c, uid: cu}, status: {" ALLOCATED "}}",                      false, false,
         "pod p (pu) is not allowed to use ResourceClaim c (cu)"                                                                                                                          },
        {"{metadata: {namespace: ns, name: c, uid: cu}, status: {reservedFor: [{resource: pods, "
         "name: p, uid: pu}]}}",                                                               false, false, "ResourceClaim c: not allocated"                                    },
        {"{metadata: {namespace: ns, name: c, uid: cu}, status: {reservedFor: [{apiGroup: "
         "scheduling.k8s.io, resource: podgroups, name: g, uid: gu}], " ALLOCATED "}}",
         false,                                                                                                true,  NULL                                                                },
        {"{metadata: {namespace: ns, name: c, uid: cu}, status: {reservedFor: [{apiGroup: "
         "scheduling.k8s.io, resource: podgroups, name: g, uid: gu}], " ALLOCATED "}}",
         false,                                                                                                false, "is not allowed to use"                                             },
        {"{metadata: {namespace: ns, name: c, uid: cu}, status: {reservedFor: [{apiGroup: "
         "scheduling.k8s.io, resource: podgroups, name: other, uid: gu}], " ALLOCATED "}}",
         false,                                                                                                true,  "is not allowed to use"                                             },
        {"{metadata: {namespace: ns, name: c, uid: cu, ownerReferences: [{apiVersion: "
         "scheduling.k8s.io/v1alpha1, kind: PodGroup, name: g, uid: gu, controller: true}]}, "
         "status: {reservedFor: [{resource: pods, name: p, uid: pu}], " ALLOCATED "}}",
         true,                                                                                                 true,  NULL                                                                },
    };
    struct world *world = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct dv_claim_ref ref = {.needs_owner = cases[i].needs_owner};
        struct dv_err err;
        bool ok = dv_claim_check(pod_of(world, POD), &ref, claim_of(world, cases[i].claim),
                                 cases[i].takes_groups, &err);

        assert_int_equal(ok, cases[i].error == NULL);
        if (!ok)
            assert_err(&err, err.code, cases[i].error);
    }
#undef POD
#undef ALLOCATED
#undef OWNED
}

/* ---- CDI names ---- */

static void gives_a_container_the_names_of_its_devices(void **state)
{
    static const struct {
        const char *pod;
        const char *wanted; /* names, each with a space; or the error */
    } cases[] = {
        {"{metadata: {namespace: ns}, spec: {resourceClaims: [{name: a, resourceClaimName: c1}], "
         "containers: [{name: x, resources: {claims: [{name: a}]}}]}}",                              "v.example/c=0 v.example/c=1 v.example/c=2 "                                     },
        {"{metadata: {namespace: ns}, spec: {resourceClaims: [{name: a, resourceClaimName: c1}], "
         "containers: [{name: x, resources: {claims: [{name: a, request: r0}]}}]}}",                 "v.example/c=0 "                                                                 },
        {"{metadata: {namespace: ns}, spec: {resourceClaims: [{name: a, resourceClaimName: c1}], "
         "containers: [{name: x, resources: {claims: [{name: a, request: r1}, {name: a, request: "
         "r2}]}}]}}",                                                                                "v.example/c=1 v.example/c=2 v.example/c=1 v.example/c=2 "                       },
        {"{metadata: {namespace: ns}, spec: {resourceClaims: [{name: a, resourceClaimName: c1}], "
         "containers: [{name: x}]}}",                                                                ""                                                                               },
        {"{metadata: {namespace: ns}, spec: {resourceClaims: [{name: a, resourceClaimName: gone}], "
         "containers: [{name: x, resources: {claims: [{name: a}]}}]}}",                              "internal error: unable to get claim info for ResourceClaim gone in namespace ns"},
        {"{metadata: {namespace: ns}, spec: {containers: [{name: x, resources: {requests: "
         "{example.com/gpu: 1}}}]}, status: {extendedResourceClaimStatus: {resourceClaimName: c1, "
         "requestMappings: [{containerName: x, resourceName: example.com/gpu, requestName: r0}, "
         "{containerName: z, resourceName: example.com/gpu, requestName: r1}]}}}",                   "v.example/c=0 "                                                                 },
        {"{metadata: {namespace: ns}, spec: {containers: [{name: x, resources: {requests: "
         "{deviceclass.resource.kubernetes.io/gpu: 1}}}]}, status: {extendedResourceClaimStatus: "
         "{resourceClaimName: c1, requestMappings: [{containerName: x, resourceName: "
         "deviceclass.resource.kubernetes.io/gpu, requestName: r0}]}}}",                             "v.example/c=0 "                                                                 },
        {"{metadata: {namespace: ns}, spec: {containers: [{name: x, resources: {requests: "
         "{example.com/gpu: 0}}}]}, status: {extendedResourceClaimStatus: {resourceClaimName: c1, "
         "requestMappings: [{containerName: x, resourceName: example.com/gpu, requestName: r0}]}}}", ""                                                                               },
    };
    struct world *world = *state;

    (void)add_claim(world, "c1");
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct dv_api_pod *pod = pod_of(world, cases[i].pod);
        DV_CLEANUP(dv_claim_lookup_fini) struct dv_claim_lookup lookup = {0};
        struct dv_claim_cdi_name *names;
        dv_str text = DV_STR("");
        struct dv_err err;
        size_t n;

        dv_claim_lookup_init(&lookup, pod);
        if (!dv_claim_cdi_names(world->state, &lookup, &pod->spec.containers[0], world->arena,
                                &names, &n, &err)) {
            assert_string_equal(err.msg, cases[i].wanted);
            continue;
        }
        for (size_t k = 0; k < n; k++)
            text = dv_str_printf(world->arena, "%.*s%.*s ", DV_FMT(text), DV_FMT(names[k].id));
        assert_str(text, cases[i].wanted);
        if (n > 0) {
            assert_str(names[0].driver, GPU);
            assert_str(names[0].claim, "c1");
        }
    }
}

static void tells_which_claims_a_container_has(void **state)
{
    static const struct {
        const char *pod;
        const char *wanted;
    } cases[] = {
        {"{metadata: {namespace: ns}, spec: {resourceClaims: [{name: a, resourceClaimName: c1}, "
         "{name: b, resourceClaimName: c2}], containers: [{name: x, resources: {claims: [{name: "
         "b}]}}]}}",                                                    "c2 "                                                                         },
        {"{metadata: {namespace: ns}, spec: {resourceClaims: [{name: a, resourceClaimName: c1}], "
         "containers: [{name: x, resources: {claims: [{name: a}]}}]}, status: "
         "{extendedResourceClaimStatus: {resourceClaimName: c2, requestMappings: [{containerName: "
         "x, resourceName: r, requestName: q}]}}}",                     "c1 c2 "                                                                      },
        {"{metadata: {namespace: ns}, spec: {resourceClaims: [{name: a, resourceClaimName: gone}], "
         "containers: [{name: x, resources: {claims: [{name: a}]}}]}}", "unable to get information for ResourceClaim gone"                            },
        {"{metadata: {namespace: ns}, spec: {containers: [{name: x}]}, status: "
         "{extendedResourceClaimStatus: {resourceClaimName: gone, requestMappings: "
         "[{containerName: x, resourceName: r, requestName: q}]}}}",    "unable to get claim info for claim gone in namespace ns"                     },
        {"{metadata: {namespace: ns, name: p}, spec: {resourceClaims: [{name: a}], containers: "
         "[{name: x, resources: {claims: [{name: a}]}}]}}",             "pod \"ns/p\", spec.resourceClaim \"a\": none of the supported fields are set"},
    };
    struct world *world = *state;

    (void)add_claim(world, "c1");
    (void)add_claim(world, "c2");
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct dv_api_pod *pod = pod_of(world, cases[i].pod);
        DV_CLEANUP(dv_claim_lookup_fini) struct dv_claim_lookup lookup = {0};
        const struct dv_claim **claims;
        dv_str text = DV_STR("");
        struct dv_err err;
        size_t n;

        dv_claim_lookup_init(&lookup, pod);
        if (!dv_claim_of_container(world->state, &lookup, &pod->spec.containers[0], world->arena,
                                   &claims, &n, &err)) {
            assert_string_equal(err.msg, cases[i].wanted);
            continue;
        }
        for (size_t k = 0; k < n; k++)
            text = dv_str_printf(world->arena, "%.*s%.*s ", DV_FMT(text),
                                 DV_FMT(claims[k]->record.name));
        assert_str(text, cases[i].wanted);
    }
}

/* ---- status ---- */

static void shows_health_in_the_status_of_a_container(void **state)
{
#define OF(claims)                                                                                 \
    "{metadata: {namespace: ns}, spec: {resourceClaims: [{name: a, resourceClaimName: c1}, "       \
    "{name: "                                                                                      \
    "t, resourceClaimTemplateName: x}], containers: [{name: x, resources: {claims: [" claims       \
    "]}}]}, status: {resourceClaimStatuses: [{name: t, resourceClaimName: c1}]}}"
    static const struct {
        const char *pod;
        bool without_messages;
        const char *wanted;
    } cases[] = {
        {OF("{name: a}"),                  false,
         "known k=Healthy:;claim:a v.example/c=0=Unhealthy:hot;claim:a v.example/c=1=Unknown:;"
         "claim:a " GPU "/pool/dev2=Healthy:;"                       },
        {OF("{name: t, request: r0}"),     false,
         "known k=Healthy:;claim:t/r0 v.example/c=0=Unhealthy:hot;claim:t/r0 " GPU
         "/pool/dev2=Healthy:;"                                      },
        {OF("{name: a, request: r0/sub}"), true,
         "known k=Healthy:;claim:a/r0/sub v.example/c=0=Unhealthy:;claim:a/r0/sub " GPU
         "/pool/dev2=Healthy:;"                                      },
        {OF("{name: none}"),               false, "known k=Healthy:;"},
    };
#undef OF
    static const struct dv_claim_device_health told[] = {
        {DV_STR_INIT("pool"), DV_STR_INIT("dev0"), DV_CLAIM_UNHEALTHY, 30000000000,
         DV_STR_INIT("hot")                                                                        },
        {DV_STR_INIT("pool"), DV_STR_INIT("dev2"), DV_CLAIM_HEALTHY,   30000000000, DV_STR_INIT("")},
    };
    struct dv_api_resource_health known_health = {.resource_id = DV_STR("k"),
                                                  .health = DV_STR("Healthy")};
    const struct dv_api_resource_status known = {
        .name = DV_STR("known"), .resources = &known_health, .n_resources = 1};
    struct world *world = *state;
    struct dv_claim_health_diff diff;

    (void)add_claim(world, "c1");
    dv_claim_health_apply(world->state, DV_STR(GPU), told, 2, 1000, world->arena, &diff);
    assert_int_equal(diff.n_pods, 1);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct dv_api_pod *pod = pod_of(world, cases[i].pod);
        struct dv_claim_status_options options = {.now_wall_ns = 1000,
                                                  .without_messages = cases[i].without_messages};
        DV_CLEANUP(dv_claim_lookup_fini) struct dv_claim_lookup lookup = {0};
        struct dv_api_resource_status *entries;
        dv_str text = DV_STR("");
        size_t n;

        dv_claim_lookup_init(&lookup, pod);
        dv_claim_container_status(world->state, &lookup, &pod->spec.containers[0], &known, 1,
                                  &options, world->arena, &entries, &n);
        for (size_t k = 0; k < n; k++)
            for (size_t m = 0; m < entries[k].n_resources; m++)
                text = dv_str_printf(world->arena, "%.*s%.*s %.*s=%.*s:%.*s;", DV_FMT(text),
                                     DV_FMT(entries[k].name),
                                     DV_FMT(entries[k].resources[m].resource_id),
                                     DV_FMT(entries[k].resources[m].health),
                                     DV_FMT(entries[k].resources[m].message));
        assert_str(text, cases[i].wanted);
    }
}

int main(void)
{
#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_start, world_end)
    const struct CMUnitTest tests[] = {
        IN_WORLD(finds_the_claims_of_a_pod),
        IN_WORLD(lets_a_pod_have_what_is_its_own),
        IN_WORLD(gives_a_container_the_names_of_its_devices),
        IN_WORLD(tells_which_claims_a_container_has),
        IN_WORLD(shows_health_in_the_status_of_a_container),
    };
#undef IN_WORLD

    return cmocka_run_group_tests(tests, NULL, NULL);
}
