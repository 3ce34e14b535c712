/* bench_vap.c - what a write costs that no policy is about, one that a policy lets pass at its
 * conditions, and one that is evaluated: a slice of a driver, with the policy that drivers ship. */
#include "vap/vap.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "vap/tests/test_vap_world.h"
#include "json/json.h"

#define RUN_NS (20u * 1000u * 1000u)
#define RUNS 5
#define N_DEVICES 8

static const char policy[] =
    "{metadata: {name: p}, spec: {matchConstraints: {resourceRules: [{apiGroups: "
    "[resource.k8s.io], apiVersions: [v1], operations: [CREATE, UPDATE, DELETE], resources: "
    "[resourceslices]}]}, matchConditions: [{name: c, expression: 'request.userInfo.username == "
    "\"system:serviceaccount:d:driver\"'}], variables: [{name: node, expression: "
    "'request.userInfo.?extra[?\"authentication.kubernetes.io/node-name\"][?0].orValue(\"\")'}, "
    "{name: target, expression: '(request.operation == \"DELETE\" ? oldObject : "
    "object).spec.?nodeName.orValue(\"\")'}], validations: [{expression: 'variables.node != "
    "\"\"'}, "
    "{expression: 'variables.node == variables.target'}]}}";

static void judge(struct world *world, const struct dv_vap_write *write)
{
    struct dv_vap_world seam = world_seam(world);
    struct dv_vap_judgement *judgement;

    if (!dv_vap_is_about(world->vap, write->kind))
        return;
    judgement = dv_vap_judge(world->vap, write, &seam);
    if (judgement && dv_vap_run(judgement, DV_VAP_ON_LOOP) != DV_VAP_DONE)
        abort();
    dv_vap_judgement_free(judgement);
}

static void measure(const char *what, struct world *world, const struct dv_vap_write *write)
{
    double best = 1e9;

    for (int run = 0; run < RUNS; run++) {
        uint64_t start = dv_clock_now_ns(dv_clock_real());
        uint64_t now;
        uint64_t n = 0;

        do {
            for (int i = 0; i < 100; i++)
                judge(world, write);
            n += 100;
            now = dv_clock_now_ns(dv_clock_real());
        } while (now - start < RUN_NS);
        if ((double)(now - start) / (double)n < best)
            best = (double)(now - start) / (double)n;
    }
    printf("%-48s %10.1f ns\n", what, best);
}

static struct dv_api_user_info user_of(struct world *world, const char *text)
{
    struct dv_api_user_info user = {0};
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(dv_str_from_c(text), NULL, world->arena, &err);

    if (!doc || !dv_decode_json(&dv_message_user_info, doc, DV_UNKNOWN_DROP, world->arena, &user,
                                NULL, &err))
        abort();
    return user;
}

static const void *slice_of(struct world *world)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_SLICE);
    struct dv_json *doc;
    struct dv_json *devices;
    struct dv_err err;

    doc = dv_yaml_parse(DV_STR("{metadata: {name: s}, spec: {driver: d, nodeName: n1, pool: {name: "
                               "n1}, devices: []}}"),
                        NULL, world->arena, &err);
    devices = dv_json_get(dv_json_get(doc, DV_STR("spec")), DV_STR("devices"));
    for (int i = 0; i < N_DEVICES; i++)
        dv_json_append(devices,
                       dv_yaml_parse(dv_str_printf(world->arena,
                                                   "{name: gpu-%d, attributes: {model: {string: "
                                                   "A100}, index: {int: %d}}, capacity: {memory: "
                                                   "{value: 40Gi}}}",
                                                   i, i),
                                     NULL, world->arena, &err));
    return world_read(world, kind, kind->versions, doc);
}

int main(void)
{
    const struct dv_kind *pods = dv_kind(DV_KIND_POD);
    const struct dv_kind *slices = dv_kind(DV_KIND_SLICE);
    struct world world;
    struct dv_api_user_info driver;
    struct dv_api_user_info other;
    struct dv_vap_write write = {.operation = DV_VAP_CREATE};

    world_init(&world);
    if (!world_add(&world, DV_KIND_VALIDATING_POLICY, policy) ||
        !world_add(&world, DV_KIND_VALIDATING_POLICY_BINDING,
                   "{metadata: {name: b}, spec: {policyName: p, validationActions: [Deny]}}"))
        return 1;
    driver = user_of(&world, "{username: 'system:serviceaccount:d:driver', extra: "
                             "{authentication.kubernetes.io/node-name: [n1]}}");
    other = user_of(&world, "{username: 'system:serviceaccount:d:other'}");
    write.user = &driver;
    write.kind = pods;
    write.version = pods->versions;
    measure("a pod, which no policy is about", &world, &write);
    write.kind = slices;
    write.version = slices->versions;
    write.name = DV_STR("s");
    write.object = slice_of(&world);
    write.user = &other;
    measure("a slice of 8 devices, of another user", &world, &write);
    write.user = &driver;
    measure("a slice of 8 devices, of the driver", &world, &write);
    world_fini(&world);
    return 0;
}
