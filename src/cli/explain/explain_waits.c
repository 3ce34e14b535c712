#include "cli/explain/explain_waits.h"

#include <stdint.h>
#include <stdlib.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/num.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/explain/cli_explain.h"
#include "cli/explain/explain_judge.h"
#include "cli/explain/explain_room.h"
#include "cli/explain/world.h"
#include "resource/resource.h"
#include "sched/lack.h"
#include "json/json.h"

/* The most kinds of pods and claims that are told apart: what comes then is looked at each by
 * itself. */
#define ALIKE_MAX 256u
/* What all nodes together may cost for one kind of claims: about ten seconds. */
#define COST_MAX DV_ALLOC_COST_MAX
#define COST_NODE_MIN (DV_ALLOC_COST_MAX / 10000)

/* How near something is to not waiting: one that lacks devices is nearer than one whose class is
 * not there. Within devices the miss itself says how near. */
enum {
    NEAR_NOW = 0,
    NEAR_DEVICES = 1, /* and up to DV_WHY_POOL_RIVAL more */
    NEAR_ROOM = 100,
    NEAR_NODE = 200,     /* the node has it, and says why not yet */
    NEAR_OTHER = 300,    /* taints, selectors */
    NEAR_OBSTACLE = 400, /* something is not there */
};

/* Claims that were looked at, and what was found. */
struct alike {
    const struct dv_cli_claims *claims;
    struct dv_cli_wait wait;
};

struct finding {
    struct dv_cli_world *world;
    struct dv_arena *arena;
    struct dv_cli_waits *waits;
    struct dv_inventory *inventory;
    struct dv_cli_nodes nodes;
    struct dv_cli_rooms rooms;
    struct dv_map used; /* claims of pods that were looked at: "namespace/name" */
    DV_VEC(struct alike) alike;
};

/* ---- devices ---- */

/* What the nodes say about claims. */
struct survey {
    size_t n_nodes;
    size_t n_fitting;
    size_t n_as_near; /* as the nearest */
    dv_str fitting;   /* the first node that fits */
    struct dv_alloc_miss nearest;
    struct dv_err err; /* code DV_OK: nothing is at fault */
};

static bool is_as_near(const struct dv_alloc_miss *a, const struct dv_alloc_miss *b)
{
    return !dv_alloc_miss_is_nearer(a, b) && !dv_alloc_miss_is_nearer(b, a);
}

static void look_at_node(struct finding *f, const struct dv_cli_claims *claims,
                         const struct dv_alloc_node *node, uint64_t *cost_left,
                         struct survey *survey)
{
    struct dv_arena *scratch = dv_arena_new();
    const struct dv_alloc_options options = {.cost_max = dv_u64_max(*cost_left, COST_NODE_MIN)};
    struct dv_alloc_result result;
    struct dv_alloc_miss miss;
    struct dv_err err;

    dv_allocate(f->inventory, node, claims->v, claims->n, &options, scratch, &result, &err);
    *cost_left -= dv_u64_min(*cost_left, result.cost);
    survey->n_nodes++;
    if (result.outcome == DV_ALLOC_DONE) {
        if (survey->n_fitting++ == 0)
            survey->fitting = node->name;
    } else if (result.outcome == DV_ALLOC_NONE) {
        dv_alloc_miss(f->inventory, node, claims->v, claims->n, &options, scratch, &miss);
        *cost_left -= dv_u64_min(*cost_left, miss.cost);
        if (survey->n_as_near == 0 || dv_alloc_miss_is_nearer(&miss, &survey->nearest)) {
            survey->nearest = miss;
            survey->nearest.text = dv_str_copy(miss.text, f->arena);
            survey->n_as_near = 1;
        } else {
            survey->n_as_near += is_as_near(&miss, &survey->nearest);
        }
    } else {
        survey->err = err;
    }
    dv_arena_free(scratch);
}

/* Adds how many of the nodes the sentence is true of. */
static dv_str add_nodes(dv_str why, size_t n_as_near, size_t n_nodes, struct dv_arena *arena)
{
    dv_str all = dv_cli_thousands(n_nodes, arena);

    if (n_nodes < 2)
        return why;
    if (n_as_near == n_nodes)
        return dv_str_printf(arena, "%.*s; all %.*s nodes are alike", DV_FMT(why), DV_FMT(all));
    if (n_as_near == 1)
        return dv_str_printf(arena, "%.*s; no other of %.*s nodes is as near", DV_FMT(why),
                             DV_FMT(all));
    return dv_str_printf(arena, "%.*s; %.*s of %.*s nodes are as near", DV_FMT(why),
                         DV_FMT(dv_cli_thousands(n_as_near, arena)), DV_FMT(all));
}

/* The sentence about devices: what the scheduler says in events, and how many nodes are so. */
static void tell_survey(struct finding *f, const struct survey *survey, struct dv_cli_wait *wait)
{
    struct dv_arena *arena = f->arena;

    if (survey->n_fitting > 0) {
        wait->is_ok = true;
        wait->nearness = NEAR_NOW;
        wait->why = dv_str_printf(arena, "can be allocated now, on %.*s%s", DV_FMT(survey->fitting),
                                  survey->n_fitting > 1 ? " and others" : "");
        return;
    }
    wait->nearness = NEAR_DEVICES + (int)survey->nearest.why;
    if (survey->n_as_near == 0) {
        wait->nearness = NEAR_OBSTACLE;
        wait->why = survey->n_nodes == 0 ? DV_STR("no node is open to it")
                                         : dv_str_copy(dv_str_from_c(survey->err.msg), arena);
        return;
    }
    wait->why = add_nodes(survey->nearest.text.n > 0 ? survey->nearest.text
                                                     : DV_STR("no node has devices that would do"),
                          survey->n_as_near, survey->n_nodes, arena);
}

static bool are_alike(const struct dv_cli_claims *a, const struct dv_cli_claims *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!dv_message_eq(&dv_message_resource_claim_spec, &a->v[i]->spec, &b->v[i]->spec))
            return false;
    return true;
}

/* Looks for devices on the nodes that `is_open` says, or all. Claims that are alike are looked at
 * once, while all nodes are open to them. */
static void look_for_devices(struct finding *f, const struct dv_cli_claims *claims,
                             const bool *is_open, struct dv_cli_wait *wait)
{
    uint64_t cost_left = COST_MAX;
    struct survey survey = {0};

    for (size_t i = 0; !is_open && i < f->alike.n; i++)
        if (are_alike(f->alike.v[i].claims, claims)) {
            dv_str subject = wait->subject;

            *wait = f->alike.v[i].wait;
            wait->subject = subject;
            return;
        }
    for (size_t i = 0; i < f->nodes.n; i++)
        if (!is_open || is_open[i])
            look_at_node(f, claims, &f->nodes.v[i], &cost_left, &survey);
    tell_survey(f, &survey, wait);
    if (!is_open && f->alike.n < ALIKE_MAX) {
        struct dv_cli_claims *kept = DV_NEW(f->arena, struct dv_cli_claims);

        *kept = *claims;
        *dv_vec_add_in(&f->alike, f->arena) = (struct alike){kept, *wait};
    }
}

/* ---- pods ---- */

static bool is_over(const struct dv_api_pod *pod)
{
    return pod->metadata.deletion_timestamp.is_set ||
           dv_str_eq(pod->status.phase, DV_STR("Succeeded")) ||
           dv_str_eq(pod->status.phase, DV_STR("Failed"));
}

/* What the node says of a pod that it has: conditions of its devices, and why containers wait. */
static bool look_at_bound(struct finding *f, const struct dv_api_pod *pod, struct dv_cli_wait *wait)
{
    wait->nearness = NEAR_NODE;
    for (size_t i = 0; i < pod->status.n_conditions; i++) {
        const struct dv_api_pod_condition *condition = &pod->status.conditions[i];

        if (!dv_str_eq(condition->type, DV_STR("davit.node/DevicesReady")) ||
            !dv_str_eq(condition->status, DV_STR("False")))
            continue;
        wait->why = dv_str_printf(f->arena, "on %.*s: %.*s: %.*s", DV_FMT(pod->spec.node_name),
                                  DV_FMT(condition->reason), DV_FMT(condition->message));
        return true;
    }
    for (size_t i = 0; i < pod->status.n_container_statuses; i++) {
        const struct dv_api_container_status *status = &pod->status.container_statuses[i];

        if (!status->state.waiting || status->state.waiting->reason.n == 0 ||
            dv_str_eq(status->state.waiting->reason, DV_STR("NoContainerRuntime")))
            continue;
        wait->why = dv_str_printf(f->arena, "on %.*s: container %.*s: %.*s%s%.*s",
                                  DV_FMT(pod->spec.node_name), DV_FMT(status->name),
                                  DV_FMT(status->state.waiting->reason),
                                  status->state.waiting->message.n > 0 ? ": " : "",
                                  DV_FMT(status->state.waiting->message));
        return true;
    }
    return false;
}

static bool has_gates(struct finding *f, const struct dv_api_pod *pod, struct dv_cli_wait *wait)
{
    if (pod->spec.n_scheduling_gates == 0)
        return false;
    wait->nearness = NEAR_OTHER;
    wait->why = dv_str_printf(f->arena, "its scheduling gate %.*s is closed",
                              DV_FMT(pod->spec.scheduling_gates[0].name));
    return true;
}

/* Pods of lower priority were sent away for it, and have yet to go. */
static bool is_nominated(struct finding *f, const struct dv_api_pod *pod, struct dv_cli_wait *wait)
{
    if (pod->status.nominated_node_name.n == 0)
        return false;
    wait->nearness = NEAR_OTHER;
    wait->why = dv_str_printf(f->arena, "pods of lower priority make room for it on %.*s",
                              DV_FMT(pod->status.nominated_node_name));
    return true;
}

/* What a pod without a node waits for; `has_claims`: its claims are looked at, too. */
static bool look_at_unbound(struct finding *f, const struct dv_api_pod *pod, bool has_claims,
                            struct dv_cli_wait *wait)
{
    struct dv_cli_explain_subject subject;
    struct dv_sched_lack lack;
    bool *is_open;
    bool *is_barred;
    struct dv_err err;
    size_t n_open;

    if (has_gates(f, pod, wait) || is_nominated(f, pod, wait))
        return true;
    if (!dv_cli_explain_subject_find(f->world, DV_KIND_POD, pod->metadata.namespace,
                                     pod->metadata.name, &subject, &err))
        return false;
    if (has_claims && subject.obstacles.n > 0) {
        wait->nearness = NEAR_OBSTACLE;
        wait->why = subject.obstacles.v[0];
        return true;
    }
    is_open = DV_NEW_ARRAY(f->arena, bool, f->nodes.n);
    is_barred = DV_NEW_ARRAY(f->arena, bool, f->nodes.n);
    for (size_t i = 0; i < f->nodes.n; i++)
        is_barred[i] = dv_cli_foreign_claim(&subject, &f->nodes.v[i]) != NULL;
    n_open = dv_cli_rooms_fit(&f->rooms, pod, is_barred, is_open, &lack);
    if (f->rooms.n > 0 && n_open == 0) {
        wait->nearness = lack.is_amount ? NEAR_ROOM : NEAR_OTHER;
        wait->why = lack.n_as_near == 0
                        ? lack.text
                        : add_nodes(lack.text, lack.n_as_near, f->rooms.n, f->arena);
        return true;
    }
    if (has_claims && subject.pending.n > 0) {
        look_for_devices(f, &subject.pending,
                         f->rooms.n == 0 || n_open == f->rooms.n ? NULL : is_open, wait);
        return true;
    }
    if (f->rooms.n == 0 || subject.pending.n > 0)
        return false; /* nothing is known of nodes, or its claims say more */
    wait->is_ok = true;
    wait->nearness = NEAR_NOW;
    wait->why = DV_STR("fits now: no scheduler has seen it yet");
    return true;
}

static bool look_at_pod(struct finding *f, const struct dv_api_pod *pod, bool has_claims,
                        struct dv_cli_wait *wait)
{
    *wait = (struct dv_cli_wait){
        .subject = dv_str_printf(f->arena, "%.*s/%.*s", DV_FMT(pod->metadata.namespace),
                                 DV_FMT(pod->metadata.name)),
    };
    if (is_over(pod))
        return false;
    return pod->spec.node_name.n > 0 ? look_at_bound(f, pod, wait)
                                     : look_at_unbound(f, pod, has_claims, wait);
}

/* ---- all of it ---- */

static void begin(struct finding *f, struct dv_cli_world *world)
{
    struct dv_err none;

    *f = (struct finding){.world = world, .arena = world->arena};
    f->inventory = dv_cli_world_inventory(world);
    if (!dv_cli_world_nodes(world, DV_STR(""), &f->nodes, &none))
        f->nodes.n = 0; /* nothing says which there are */
    dv_cli_rooms_read(&f->rooms, world);
    dv_map_init(&f->used);
}

static void end(struct finding *f)
{
    dv_inventory_free(f->inventory);
    dv_cli_rooms_fini(&f->rooms);
    dv_map_fini(&f->used);
}

/* Adds what waits, to those of its namespace that wait for the same. */
static void add(struct finding *f, const struct dv_cli_wait *wait)
{
    struct dv_cli_waits *waits = f->waits;
    dv_str namespace = dv_str_slice(wait->subject, 0, dv_str_find_char(wait->subject, '/') + 1);

    for (size_t i = 0; i < waits->n; i++)
        if (dv_str_eq(waits->v[i].why, wait->why) &&
            dv_str_starts_with(waits->v[i].subject, namespace)) {
            waits->v[i].n_others++;
            return;
        }
    *dv_vec_add_in(waits, f->arena) = *wait;
}

/* Notes the claims of the pod as looked at with it. Returns how many of them wait. */
static size_t use_claims(struct finding *f, const struct dv_api_pod *pod)
{
    struct dv_cli_explain_subject subject;
    struct dv_err err;

    if (!dv_cli_explain_subject_find(f->world, DV_KIND_POD, pod->metadata.namespace,
                                     pod->metadata.name, &subject, &err))
        return 0;
    for (size_t i = 0; i < subject.pending.n; i++) {
        const struct dv_api_object_meta *meta = &subject.pending.v[i]->metadata;

        (void)dv_map_set(
            &f->used,
            dv_str_printf(f->arena, "%.*s/%.*s", DV_FMT(meta->namespace), DV_FMT(meta->name)), f);
    }
    return subject.pending.n + subject.obstacles.n;
}

static void look_at_claim(struct finding *f, const struct dv_api_resource_claim *claim)
{
    struct dv_cli_explain_subject subject;
    struct dv_cli_wait wait = {0};
    struct dv_err err;

    wait.subject = dv_str_printf(f->arena, "%.*s/%.*s", DV_FMT(claim->metadata.namespace),
                                 DV_FMT(claim->metadata.name));
    if (dv_map_get(&f->used, wait.subject) ||
        !dv_cli_explain_subject_find(f->world, DV_KIND_CLAIM, claim->metadata.namespace,
                                     claim->metadata.name, &subject, &err))
        return;
    if (subject.obstacles.n > 0) {
        wait.nearness = NEAR_OBSTACLE;
        wait.why = subject.obstacles.v[0];
    } else {
        look_for_devices(f, &subject.pending, NULL, &wait);
        if (wait.is_ok && f->world->of[DV_KIND_POD].n > 0)
            wait.why = DV_STR("no pod uses it");
    }
    add(f, &wait);
}

static int by_nearness(const void *a, const void *b)
{
    const struct dv_cli_wait *x = a;
    const struct dv_cli_wait *y = b;

    if (x->nearness != y->nearness)
        return x->nearness < y->nearness ? -1 : 1;
    return dv_str_natural_cmp(x->subject, y->subject);
}

static bool is_in(const struct dv_api_object_meta *meta, dv_str namespace)
{
    return namespace.n == 0 || dv_str_eq(meta->namespace, namespace);
}

void dv_cli_waits_find(struct dv_cli_world *world, dv_str namespace, struct dv_cli_waits *waits)
{
    const struct dv_cli_things *pods = &world->of[DV_KIND_POD];
    const struct dv_cli_things *claims = &world->of[DV_KIND_CLAIM];
    struct dv_cli_wait wait;
    struct finding f;

    *waits = (struct dv_cli_waits){0};
    begin(&f, world);
    f.waits = waits;
    for (size_t i = 0; i < pods->n; i++) {
        const struct dv_api_pod *pod = pods->v[i]->value;
        size_t n_claims;

        if (!is_in(&pod->metadata, namespace) || !look_at_pod(&f, pod, true, &wait))
            continue;
        n_claims = use_claims(&f, pod);
        waits->n_pods += n_claims == 0;
        add(&f, &wait);
    }
    for (size_t i = 0; i < claims->n; i++) {
        const struct dv_api_resource_claim *claim = claims->v[i]->value;

        if (!is_in(&claim->metadata, namespace))
            continue;
        waits->n_claims++;
        if (claim->status.allocation)
            continue;
        waits->n_waiting++;
        look_at_claim(&f, claim);
    }
    end(&f);
    if (waits->n > 1)
        qsort(waits->v, waits->n, sizeof(*waits->v), by_nearness);
}

bool dv_cli_waits_of_pod(struct dv_cli_world *world, const struct dv_api_pod *pod,
                         struct dv_cli_wait *wait)
{
    struct finding f;
    bool does_wait;

    begin(&f, world);
    does_wait = look_at_pod(&f, pod, false, wait);
    end(&f);
    return does_wait;
}

/* ---- as text and as data ---- */

static bool are_all_ok(const struct dv_cli_waits *waits)
{
    for (size_t i = 0; i < waits->n; i++)
        if (!waits->v[i].is_ok)
            return false;
    return true;
}

bool dv_cli_waits_print(const struct dv_cli_waits *waits, struct dv_arena *arena,
                        struct dv_buf *buf)
{
    size_t width = 0;

    if (waits->n == 0) {
        dv_buf_add_c(buf, "nothing waits");
        if (waits->n_claims > 0)
            dv_buf_printf(buf, ": %zu claim%s", waits->n_claims,
                          waits->n_claims == 1 ? " is allocated" : "s are allocated");
        dv_buf_add_char(buf, '\n');
        return true;
    }
    dv_buf_printf(buf, "%.*s of %.*s claims wait",
                  DV_FMT(dv_cli_thousands(waits->n_waiting, arena)),
                  DV_FMT(dv_cli_thousands(waits->n_claims, arena)));
    if (waits->n_pods > 0)
        dv_buf_printf(buf, ", %.*s pod%s for something else",
                      DV_FMT(dv_cli_thousands(waits->n_pods, arena)),
                      waits->n_pods == 1 ? " waits" : "s wait");
    dv_buf_add_char(buf, '\n');
    for (size_t i = 0; i < waits->n; i++)
        width = dv_size_max(width, waits->v[i].subject.n);
    for (size_t i = 0; i < waits->n; i++) {
        const struct dv_cli_wait *wait = &waits->v[i];

        dv_buf_printf(buf, "%-*s   %s", (int)width, dv_cli_plain(wait->subject, arena),
                      dv_cli_plain(wait->why, arena));
        if (wait->n_others > 0)
            dv_buf_printf(buf, " (and %.*s alike)",
                          DV_FMT(dv_cli_thousands(wait->n_others, arena)));
        dv_buf_add_char(buf, '\n');
    }
    return are_all_ok(waits);
}

bool dv_cli_waits_data(const struct dv_cli_waits *waits, struct dv_arena *arena,
                       struct dv_json **doc)
{
    struct dv_json *list = dv_json_new_array(arena);

    *doc = dv_json_new_object(arena);
    for (size_t i = 0; i < waits->n; i++) {
        struct dv_json *one = dv_json_new_object(arena);

        dv_json_set(one, DV_STR("subject"), dv_json_new_str(waits->v[i].subject, arena), arena);
        dv_json_set(one, DV_STR("alike"), dv_json_new_u64(waits->v[i].n_others, arena), arena);
        dv_json_set(one, DV_STR("why"), dv_json_new_str(waits->v[i].why, arena), arena);
        dv_json_set(one, DV_STR("fitsNow"), dv_json_new_bool(waits->v[i].is_ok, arena), arena);
        dv_json_append(list, one);
    }
    dv_json_set(*doc, DV_STR("claims"), dv_json_new_u64(waits->n_claims, arena), arena);
    dv_json_set(*doc, DV_STR("waiting"), dv_json_new_u64(waits->n_waiting, arena), arena);
    dv_json_set(*doc, DV_STR("otherPods"), dv_json_new_u64(waits->n_pods, arena), arena);
    dv_json_set(*doc, DV_STR("waits"), list, arena);
    return are_all_ok(waits);
}
