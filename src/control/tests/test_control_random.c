/* test_control_random.c - users, a scheduler, kubelets and drivers at random, requests that fail at
 * random, and controllers that are closed in between; when all have come to rest, what must hold
 * does. */
#include "support/dvtest.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/defs.h"
#include "base/map.h"
#include "cluster/cluster.h"
#include "control/control.h"
#include "control/tests/test_control_world.h"
#include "control/uses.h"
#include "resource/references.h"
#include "resource/resource.h"
#include "support/api_front.h"
#include "support/dice.h"

#define N_WORLDS 60u
#define N_STEPS 200u
#define N_PODS 8u
#define N_CLAIMS 4u
#define N_DEVICES 5u

struct story {
    struct world *world;
    unsigned seed;
};

static unsigned pick(struct story *story, unsigned n)
{
    return (unsigned)rand_r(&story->seed) % n;
}

static const char *pod_name(struct story *story)
{
    return text(story->world, "p%u", pick(story, N_PODS));
}

static const char *claim_name(struct story *story)
{
    return text(story->world, "k%u", pick(story, N_CLAIMS));
}

/* ---- users ---- */

static void make_pod(struct story *story)
{
    static const char *const entries[] = {
        "{name: e, resourceClaimTemplateName: t}",
        "{name: e, resourceClaimTemplateName: t}, {name: f, resourceClaimTemplateName: t}",
        "{name: e, resourceClaimTemplateName: missing}",
    };
    struct world *world = story->world;
    const char *name = pod_name(story);
    const char *claims = entries[pick(story, DV_COUNT(entries))];

    if (pick(story, 2))
        claims = text(world, "{name: own, resourceClaimName: %s}, %s", claim_name(story), claims);
    if (look_pod(world, name))
        return;
    (void)make(world, DV_KIND_POD, "default",
               text(world,
                    "{metadata: {name: %s}, spec: {containers: [{name: c, image: pause}], "
                    "resourceClaims: [%s]%s}}",
                    name, claims, pick(story, 2) ? ON_NODE : ""));
}

static void make_claim(struct story *story)
{
    const char *name = claim_name(story);

    if (!look_claim(story->world, name))
        (void)make(story->world, DV_KIND_CLAIM, "default",
                   text(story->world,
                        "{metadata: {name: %s}, spec: {devices: {requests: [{name: r, exactly: "
                        "{deviceClassName: c}}]}}}",
                        name));
}

static void toggle_template(struct story *story)
{
    struct world *world = story->world;

    if (look(world, DV_KIND_TEMPLATE, "default", "t"))
        destroy(world, DV_KIND_TEMPLATE, "default", "t");
    else
        (void)make(world, DV_KIND_TEMPLATE, "default", TEMPLATE);
}

static void remove_pod(struct story *story)
{
    if (pick(story, 2))
        destroy(story->world, DV_KIND_POD, "default", pod_name(story));
    else
        delete_gently(story->world, DV_KIND_POD, "default", pod_name(story));
}

static void remove_claim(struct story *story)
{
    struct dv_object **claims;
    size_t n = list(story->world, DV_KIND_CLAIM, "default", &claims);

    if (n > 0)
        destroy(story->world, DV_KIND_CLAIM, "default",
                text(story->world, "%.*s", DV_FMT(claims[pick(story, (unsigned)n)]->meta->name)));
}

/* ---- a kubelet ---- */

static void move_phase(struct story *story)
{
    static const char *const phases[] = {"Running", "Succeeded", "Failed"};

    /* the pod may not be there */
    (void)attempt(story->world, DV_KIND_POD, DV_SUB_STATUS, "default", pod_name(story),
                  text(story->world, "{status: {phase: %s}}", phases[pick(story, 3)]));
}

static void lose_status(struct story *story)
{
    (void)attempt(story->world, DV_KIND_POD, DV_SUB_STATUS, "default", pod_name(story),
                  "{status: {resourceClaimStatuses: null}}");
}

/* ---- a scheduler ---- */

/* A pod that uses the claim and may have it; NULL: none. */
static const struct dv_api_pod *find_user(struct story *story, dv_str claim)
{
    for (unsigned i = 0; i < N_PODS; i++) {
        const struct dv_api_pod *pod = look_pod(story->world, text(story->world, "p%u", i));
        DV_CLEANUP(dv_map_fini) struct dv_map statuses = {0};

        if (pod)
            dv_pod_index_claim_statuses(pod, &statuses);
        for (size_t j = 0; pod && j < pod->spec.n_resource_claims; j++) {
            dv_str name = DV_STR_NONE;

            (void)dv_control_use(&statuses, &pod->spec.resource_claims[j], &name);
            if (dv_str_eq(name, claim) && !dv_control_pod_is_done(pod))
                return pod;
        }
    }
    return NULL;
}

static void schedule(struct story *story)
{
    struct world *world = story->world;
    struct dv_object **claims;
    size_t n = list(world, DV_KIND_CLAIM, "default", &claims);
    const struct dv_api_resource_claim *claim;
    const struct dv_api_pod *pod;
    const char *status;
    const char *name;

    if (n == 0)
        return;
    claim = claims[pick(story, (unsigned)n)]->value;
    pod = find_user(story, claim->metadata.name);
    if (claim->status.allocation || claim->metadata.deletion_timestamp.is_set || !pod)
        return;
    name = text(world, "%.*s", DV_FMT(claim->metadata.name));
    status = text(world,
                  "{status: {" ALLOCATION(RESULT("d%u", "%s")) ", reservedFor: [{resource: pods, "
                                                               "name: %.*s, uid: %.*s}]}}",
                  pick(story, N_DEVICES),
                  pick(story, 3) ? "" : ", tolerations: [{operator: Exists, effect: NoExecute}]",
                  DV_FMT(pod->metadata.name), DV_FMT(pod->metadata.uid));
    if (attempt(world, DV_KIND_CLAIM, DV_SUB_NONE, "default", name, FINALIZER) == 0 &&
        pick(story, 10) > 0) /* sometimes it does not come to the second */
        (void)attempt(world, DV_KIND_CLAIM, DV_SUB_STATUS, "default", name, status);
}

/* ---- drivers and admins ---- */

static void taint_slice(struct story *story)
{
    struct world *world = story->world;

    destroy(world, DV_KIND_SLICE, "", "s");
    if (pick(story, 2))
        (void)make(world, DV_KIND_SLICE, "",
                   text(world,
                        "{metadata: {name: s}, spec: {driver: d.example, nodeName: n1, pool: "
                        "{name: p, generation: 1, resourceSliceCount: 1}, devices: [{name: d%u, "
                        "taints: [{key: k, effect: NoExecute}]}]}}",
                        pick(story, N_DEVICES)));
}

static void toggle_rule(struct story *story)
{
    struct world *world = story->world;

    if (look(world, DV_KIND_TAINT_RULE, "", "r"))
        destroy(world, DV_KIND_TAINT_RULE, "", "r");
    else
        (void)make(world, DV_KIND_TAINT_RULE, "",
                   text(world,
                        "{metadata: {name: r}, spec: {deviceSelector: {device: d%u}, taint: {key: "
                        "k, effect: NoExecute}}}",
                        pick(story, N_DEVICES)));
}

/* ---- us ---- */

static void restart(struct story *story)
{
    close_control(story->world);
    open_control(story->world);
}

static void wait(struct story *story)
{
    pass(story->world, pick(story, 2) ? 20 : 5000);
}

static const struct {
    unsigned weight;
    void (*act)(struct story *story);
} acts[] = {
    {6, make_pod       },
    {3, make_claim     },
    {1, toggle_template},
    {3, remove_pod     },
    {2, remove_claim   },
    {3, move_phase     },
    {1, lose_status    },
    {8, schedule       },
    {1, taint_slice    },
    {1, toggle_rule    },
    {1, restart        },
    {4, wait           },
};

static void act(struct story *story)
{
    unsigned n = 0;
    unsigned at;

    for (size_t i = 0; i < DV_COUNT(acts); i++)
        n += acts[i].weight;
    at = pick(story, n);
    for (size_t i = 0; i < DV_COUNT(acts); i++) {
        if (at < acts[i].weight) {
            acts[i].act(story);
            return;
        }
        at -= acts[i].weight;
    }
}

/* ---- what must hold ---- */

static bool is_tainted(struct world *world, const struct dv_api_resource_claim *claim)
{
    const struct dv_api_device_request_allocation_result *result =
        &claim->status.allocation->devices.results[0];
    const struct dv_object *slice = look(world, DV_KIND_SLICE, "", "s");
    const struct dv_object *rule = look(world, DV_KIND_TAINT_RULE, "", "r");

    if (result->n_tolerations > 0)
        return false;
    return (slice && dv_str_eq(((struct dv_api_resource_slice *)slice->value)->spec.devices[0].name,
                               result->device)) ||
           (rule &&
            dv_str_eq(
                ((struct dv_api_device_taint_rule *)rule->value)->spec.device_selector->device,
                result->device));
}

static void check_claim(struct world *world, const struct dv_api_resource_claim *claim)
{
    dv_str owner;
    dv_str uid;

    for (size_t i = 0; i < claim->status.n_reserved_for; i++) {
        const struct dv_api_pod *pod =
            look_pod(world, text(world, "%.*s", DV_FMT(claim->status.reserved_for[i].name)));

        assert_non_null(pod);
        assert_true(dv_str_eq(pod->metadata.uid, claim->status.reserved_for[i].uid));
        assert_false(dv_control_pod_is_done(pod));
        if (claim->status.allocation && pod->spec.node_name.n > 0 && is_tainted(world, claim))
            assert_true(pod->metadata.deletion_timestamp.is_set);
    }
    if (dv_meta_has_finalizer(&claim->metadata, DV_STR(DV_CLAIM_FINALIZER)))
        assert_non_null(claim->status.allocation);
    if (claim->metadata.deletion_timestamp.is_set)
        assert_true(claim->status.n_reserved_for > 0);
    if (dv_control_owner_pod(&claim->metadata, &owner, &uid)) {
        const struct dv_api_pod *pod = look_pod(world, text(world, "%.*s", DV_FMT(owner)));

        assert_non_null(pod);
        assert_true(dv_str_eq(pod->metadata.uid, uid));
        assert_false(dv_control_pod_is_done(pod));
        (void)generated(world, text(world, "%.*s", DV_FMT(owner)),
                        text(world, "%.*s", DV_FMT(dv_control_entry_of(&claim->metadata))));
    }
}

static bool is_stuck(const struct dv_api_pod *pod)
{
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++)
        if (dv_str_eq(pod->spec.resource_claims[i].resource_claim_template_name, DV_STR("missing")))
            return true;
    return false;
}

static void check_entry(struct world *world, const struct dv_api_pod *pod,
                        const struct dv_api_pod_resource_claim *entry)
{
    DV_CLEANUP(dv_map_fini) struct dv_map statuses = {0};
    const struct dv_api_resource_claim *claim;
    dv_str name = DV_STR_NONE;
    enum dv_use use;

    dv_pod_index_claim_statuses(pod, &statuses);
    use = dv_control_use(&statuses, entry, &name);
    if (use == DV_USE_NOT_YET) {
        assert_str(entry->resource_claim_template_name, "missing");
        return;
    }
    claim = look_claim(world, text(world, "%.*s", DV_FMT(name)));
    if (use == DV_USE_GENERATED) {
        assert_non_null(claim);
        assert_true(dv_control_is_owned_by(&claim->metadata, pod->metadata.uid));
    }
    if (claim && !is_stuck(pod)) /* as in the reference, one entry holds up the others */
        assert_false(dv_control_is_to_reserve(pod, claim));
}

static void check(struct world *world)
{
    struct dv_object **objects;
    size_t n = list(world, DV_KIND_CLAIM, "default", &objects);
    struct dv_control_stats stats;

    for (size_t i = 0; i < n; i++)
        check_claim(world, objects[i]->value);
    n = list(world, DV_KIND_POD, "default", &objects);
    for (size_t i = 0; i < n; i++) {
        const struct dv_api_pod *pod = objects[i]->value;

        for (size_t j = 0; j < pod->spec.n_resource_claims; j++)
            if (!pod->metadata.deletion_timestamp.is_set && !dv_control_pod_is_done(pod))
                check_entry(world, pod, &pod->spec.resource_claims[j]);
    }
    dv_control_get_stats(world->control, &stats);
    assert_int_equal(stats.n_running, 0);
}

static void all_comes_right_in_the_end(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_WORLDS; i++) {
        struct story story = {.seed = i + 1};
        struct world *world;

        (void)start_world((void **)&world);
        story.world = world;
        toggle_template(&story);
        world->api.front.luck.state = i + 1;
        world->api.front.fault_odds = i % 3 ? 5 : 0;
        open_control(world);
        for (unsigned step = 0; step < N_STEPS; step++)
            act(&story);
        world->api.front.fault_odds = 0;
        if (!look(world, DV_KIND_TEMPLATE, "default", "t"))
            toggle_template(&story);
        pass(world, 100000); /* the longest pause, and what a finalizer for nothing waits */
        check(world);
        (void)end_world((void **)&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_comes_right_in_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
