/* test_model_acts.c - what may happen. */
#include "support/dvtest.h"

#include <stdbool.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/cluster.h"
#include "daemon/tests/test_daemon_model.h"
#include "daemon/tests/test_model_world.h"
#include "resource/resource.h"

#define DEVICES_MAX 3u
#define MEDDLED "m.example/meddled"
#define PRESET "m.example/preset"

/* ---- what objects say ---- */

bool is_over(const struct dv_api_pod *pod)
{
    return dv_str_eq(pod->status.phase, DV_STR("Succeeded")) ||
           dv_str_eq(pod->status.phase, DV_STR("Failed"));
}

bool is_preset(const struct dv_api_pod *pod)
{
    return dv_entry_find(pod->metadata.annotations, pod->metadata.n_annotations, DV_STR(PRESET));
}

bool is_meddled(const struct dv_api_object_meta *meta)
{
    return dv_entry_find(meta->annotations, meta->n_annotations, DV_STR(MEDDLED));
}

bool is_reserved_for(const struct dv_api_resource_claim *claim, const struct dv_api_pod *pod)
{
    for (size_t i = 0; i < claim->status.n_reserved_for; i++)
        if (dv_str_eq(claim->status.reserved_for[i].uid, pod->metadata.uid))
            return true;
    return false;
}

size_t n_claims_of(const struct dv_api_pod *pod)
{
    return pod->spec.n_resource_claims + (pod->status.extended_resource_claim_status ? 1 : 0);
}

dv_str claim_of(const struct dv_api_pod *pod, size_t i)
{
    const struct dv_api_pod_resource_claim *entry;

    if (i == pod->spec.n_resource_claims)
        return pod->status.extended_resource_claim_status->resource_claim_name;
    entry = &pod->spec.resource_claims[i];
    if (entry->resource_claim_name.n > 0)
        return entry->resource_claim_name;
    for (size_t j = 0; j < pod->status.n_resource_claim_statuses; j++)
        if (dv_str_eq(pod->status.resource_claim_statuses[j].name, entry->name))
            return pod->status.resource_claim_statuses[j].resource_claim_name;
    return DV_STR_NONE;
}

static unsigned pick(struct story *story, unsigned n)
{
    return roll(&story->dice, n);
}

/* One of the kind, whichever; empty: there is none. For the step. */
static dv_str pick_name(struct story *story, enum dv_kind_id kind)
{
    struct dv_object **objects;
    size_t n = list(story->world, kind, &objects);

    return n > 0 ? NAME(story->world, "%.*s", DV_FMT(objects[pick(story, (unsigned)n)]->meta->name))
                 : DV_STR_NONE;
}

/* ---- users ---- */

static const char *const requests[] = {
    "{deviceClassName: a}",           "{deviceClassName: a, count: 2}",
    "{deviceClassName: b}",           "{deviceClassName: b, count: 2}",
    "{deviceClassName: s}",           "{deviceClassName: nowhere}",
    "{deviceClassName: a, count: 9}",
};

/* Templates t0 to t6 ask for these; "none" is never there. */
static const char *draw_entry(struct story *story, unsigned i)
{
    struct world *world = story->world;

    switch (pick(story, 8)) {
    case 0:
        return text(world, "{name: e%u, resourceClaimTemplateName: none}", i);
    case 1:
    case 2:
    case 3:
        return text(world, "{name: e%u, resourceClaimName: k%u}", i, pick(story, N_CLAIMS));
    default:
        return text(world, "{name: e%u, resourceClaimTemplateName: t%u}", i,
                    pick(story, pick(story, 3) ? 5 : (unsigned)DV_COUNT(requests)));
    }
}

static const char *draw_resources(struct story *story)
{
    struct world *world = story->world;

    switch (pick(story, 8)) {
    case 0:
        return text(world, "requests: {m.example/a: %u}, limits: {m.example/a: %u}", 1u, 1u);
    case 1:
        return "requests: {m.example/a: 2, cpu: 1}, limits: {m.example/a: 2}";
    case 2:
        return "requests: {cpu: 1}";
    default:
        return "";
    }
}

static void make_pod(struct story *story)
{
    struct world *world = story->world;
    unsigned n_entries = pick(story, 4);
    bool has_node = pick(story, 10) == 0;
    const char *more = "";
    const char *claims = "";

    for (unsigned i = 0; i < n_entries && i < 2; i++)
        claims = text(world, "%s%s%s", claims, i > 0 ? ", " : "", draw_entry(story, i));
    if (has_node)
        more = text(world, ", nodeName: n%u", pick(story, N_NODES));
    else if (pick(story, 12) == 0)
        more = ", nodeSelector: {nowhere: x}";
    /* one that is there stays as it is */
    (void)make(world, DV_KIND_POD,
               text(world,
                    "{metadata: {name: p%u%s}, spec: {containers: [{name: c, image: pause, "
                    "resources: {%s}}], resourceClaims: [%s]%s}}",
                    pick(story, N_PODS), has_node ? ", annotations: {" PRESET ": x}" : "",
                    has_node ? "" : draw_resources(story), claims, more));
}

static void make_claim(struct story *story)
{
    (void)make(story->world, DV_KIND_CLAIM,
               text(story->world,
                    "{metadata: {name: k%u}, spec: {devices: {requests: [{name: r, exactly: "
                    "%s}]}}}",
                    pick(story, N_CLAIMS), requests[pick(story, 5)]));
}

static void delete_pod(struct story *story)
{
    (void)destroy(story->world, DV_KIND_POD, NAME(story->world, "p%u", pick(story, N_PODS)), -1);
}

static void force_delete_pod(struct story *story)
{
    (void)destroy(story->world, DV_KIND_POD, NAME(story->world, "p%u", pick(story, N_PODS)), 0);
}

static void delete_claim(struct story *story)
{
    dv_str name = pick_name(story, DV_KIND_CLAIM);

    if (name.n > 0)
        (void)destroy(story->world, DV_KIND_CLAIM, name, -1);
}

static void mark_meddled(struct story *story, dv_str claim)
{
    const char *mark = "{metadata: {annotations: {" MEDDLED ": x}}}";
    struct world *world = story->world;
    struct dv_object **pods;
    DV_VEC(dv_str) names = {0};

    (void)change(world, DV_KIND_CLAIM, DV_SUB_NONE, claim, mark);
    for (size_t i = 0, n = list(world, DV_KIND_POD, &pods); i < n; i++)
        for (size_t j = 0; j < n_claims_of(pods[i]->value); j++)
            if (dv_str_eq(claim_of(pods[i]->value, j), claim))
                *dv_vec_add_in(&names, world->api.arena) =
                    dv_str_copy(pods[i]->meta->name, world->api.arena);
    for (size_t i = 0; i < names.n; i++)
        (void)change(world, DV_KIND_POD, DV_SUB_NONE, names.v[i], mark);
}

/* Takes the devices, or the reservations, from whom has them; or reserves for nobody. */
static void meddle(struct story *story)
{
    struct world *world = story->world;
    dv_str name = pick_name(story, DV_KIND_CLAIM);
    static const char *const changes[] = {
        "{status: {reservedFor: null, allocation: null}}",
        "{status: {reservedFor: null}}",
        "{status: {reservedFor: [{resource: pods, name: ghost, uid: ghost}]}}",
    };

    if (name.n == 0)
        return;
    mark_meddled(story, name);
    (void)change(world, DV_KIND_CLAIM, DV_SUB_STATUS, name,
                 changes[pick(story, DV_COUNT(changes))]);
}

static void label_something(struct story *story)
{
    static const enum dv_kind_id kinds[] = {DV_KIND_POD, DV_KIND_CLAIM, DV_KIND_NODE,
                                            DV_KIND_CLASS};
    enum dv_kind_id kind = kinds[pick(story, DV_COUNT(kinds))];
    dv_str name = pick_name(story, kind);

    if (name.n > 0)
        (void)change(story->world, kind, DV_SUB_NONE, name,
                     text(story->world, "{metadata: {labels: {l: v%u}}}", pick(story, 100)));
}

static void lose_pod_status(struct story *story)
{
    dv_str name = pick_name(story, DV_KIND_POD);

    if (name.n > 0)
        (void)change(story->world, DV_KIND_POD, DV_SUB_STATUS, name,
                     "{status: {resourceClaimStatuses: null}}");
}

/* ---- admins ---- */

static void make_template(struct world *world, unsigned i)
{
    (void)make(world, DV_KIND_TEMPLATE,
               text(world,
                    "{metadata: {name: t%u}, spec: {spec: {devices: {requests: [{name: r, "
                    "exactly: %s}]}}}}",
                    i, requests[i]));
}

static void toggle_template(struct story *story)
{
    unsigned i = pick(story, DV_COUNT(requests));

    if (destroy(story->world, DV_KIND_TEMPLATE, NAME(story->world, "t%u", i), -1) != 0)
        make_template(story->world, i);
}

static void make_class(struct world *world, char model)
{
    (void)make(world, DV_KIND_CLASS,
               text(world,
                    "{metadata: {name: %c}, spec: {%sselectors: [{cel: {expression: "
                    "'device.driver == \"m.example\" && "
                    "device.attributes[\"m.example\"].model == \"%c\"'}}]}}",
                    model, model == 'a' ? "extendedResourceName: m.example/a, " : "", model));
}

static void toggle_class(struct story *story)
{
    char model = "abs"[pick(story, 3)];

    if (destroy(story->world, DV_KIND_CLASS, NAME(story->world, "%c", model), -1) != 0)
        make_class(story->world, model);
}

static void make_node(struct world *world, unsigned i)
{
    (void)make(world, DV_KIND_NODE,
               text(world,
                    "{metadata: {name: n%u}, status: {allocatable: {cpu: %d, memory: 8Gi, pods: "
                    "110}}}",
                    i, NODE_CPUS));
}

static void toggle_node(struct story *story)
{
    unsigned i = pick(story, N_NODES);

    if (destroy(story->world, DV_KIND_NODE, NAME(story->world, "n%u", i), -1) != 0)
        make_node(story->world, i);
}

static void toggle_cordon(struct story *story)
{
    (void)change(
        story->world, DV_KIND_NODE, DV_SUB_NONE, NAME(story->world, "n%u", pick(story, N_NODES)),
        pick(story, 2) ? "{spec: {unschedulable: true}}" : "{spec: {unschedulable: null}}");
}

static void toggle_rule(struct story *story)
{
    struct world *world = story->world;
    unsigned i = pick(story, N_RULES);

    if (destroy(world, DV_KIND_TAINT_RULE, NAME(world, "r%u", i), -1) == 0)
        return;
    (void)make(world, DV_KIND_TAINT_RULE,
               text(world,
                    "{metadata: {name: r%u}, spec: {deviceSelector: {driver: m.example, pool: "
                    "n%u%s}, taint: {key: k, effect: %s}}}",
                    i, pick(story, N_NODES), pick(story, 2) ? ", device: a-0" : "",
                    pick(story, 2) ? "NoExecute" : "NoSchedule"));
}

/* ---- drivers ---- */

static const char *draw_devices(struct story *story)
{
    struct world *world = story->world;
    const char *devices = "";

    for (const char *model = "abs"; *model; model++)
        for (unsigned i = 0, n = 1 + pick(story, DEVICES_MAX); i < n; i++)
            devices =
                text(world, "%s{name: %c-%u, attributes: {model: {string: %c}}%s%s},", devices,
                     *model, i, *model, *model == 's' ? ", allowMultipleAllocations: true" : "",
                     pick(story, 20) ? ""
                                     : text(world, ", taints: [{key: t, effect: %s}]",
                                            pick(story, 2) ? "NoExecute" : "NoSchedule"));
    return devices;
}

/* New, or in place of what was there; sometimes a slice of the pool is still to come. */
static void publish(struct story *story, unsigned node)
{
    struct world *world = story->world;
    const char *spec =
        text(world, "pool: {name: n%u, generation: %lld, resourceSliceCount: %u}, devices: [%s]",
             node, (long long)++story->generation, pick(story, 8) ? 1u : 2u, draw_devices(story));

    if (change(world, DV_KIND_SLICE, DV_SUB_NONE, NAME(world, "n%u", node),
               text(world, "{spec: {%s}}", spec)) != 0)
        (void)make(world, DV_KIND_SLICE,
                   text(world,
                        "{metadata: {name: n%u}, spec: {driver: m.example, nodeName: n%u, %s}}",
                        node, node, spec));
}

static void change_slice(struct story *story)
{
    unsigned node = pick(story, N_NODES);

    if (pick(story, 3))
        publish(story, node);
    else
        (void)destroy(story->world, DV_KIND_SLICE, NAME(story->world, "n%u", node), -1);
}

static void toggle_life(struct story *story)
{
    unsigned i = pick(story, N_NODES);

    story->is_dead[i] = !story->is_dead[i];
}

/* ---- bad luck ---- */

static void toggle_control(struct story *story)
{
    if (story->world->control)
        kill_control(story->world);
    else
        start_control(story->world);
}

/* The second is there for a while, now and then. */
static void toggle_sched(struct story *story)
{
    size_t i = pick(story, N_SCHEDS);

    if (story->world->scheds[i])
        kill_sched(story->world, i);
    else
        start_sched(story->world, i);
    story->had_rivals |= story->world->scheds[0] && story->world->scheds[1];
}

static void die(struct story *story)
{
    kill_all(story->world);
}

static void jump(struct story *story)
{
    dv_clock_virtual_advance_ms(&story->world->api.clock, 1000 * (1 + pick(story, 120)));
}

static const struct {
    void (*act)(struct story *story);
    unsigned weight;
} acts[] = {
    {make_pod,         30},
    {make_claim,       8 },
    {delete_pod,       14},
    {force_delete_pod, 4 },
    {delete_claim,     4 },
    {meddle,           2 },
    {label_something,  4 },
    {lose_pod_status,  2 },
    {toggle_template,  2 },
    {toggle_class,     2 },
    {toggle_node,      2 },
    {toggle_cordon,    3 },
    {toggle_rule,      2 },
    {change_slice,     5 },
    {toggle_life,      2 },
    {toggle_control,   3 },
    {toggle_sched,     4 },
    {die,              1 },
    {jump,             1 },
};

void act(struct story *story)
{
    unsigned sum = 0;
    unsigned at;

    for (size_t i = 0; i < DV_COUNT(acts); i++)
        sum += acts[i].weight;
    at = pick(story, sum);
    for (size_t i = 0; i < DV_COUNT(acts); i++) {
        if (at < acts[i].weight) {
            acts[i].act(story);
            return;
        }
        at -= acts[i].weight;
    }
}

void story_init(struct story *story, struct world *world, uint64_t seed)
{
    *story = (struct story){.world = world, .dice = {seed * UINT64_C(0x9e3779b97f4a7c15)}};
    for (const char *model = "abs"; *model; model++)
        make_class(world, *model);
    for (unsigned i = 0; i < DV_COUNT(requests); i++)
        make_template(world, i);
    for (unsigned i = 0; i < N_NODES; i++) {
        make_node(world, i);
        publish(story, i);
    }
}

void story_fini(struct story *story)
{
    dv_vec_fini(&story->prepared);
}
