/* pod_sync.c - the sync of a pod that lacks something, in this order: its claims are created from
 * templates, their names are written into its status, and when the pod was bound without the
 * scheduler, its allocated claims are reserved for it. What is lacking is decided by generate.c and
 * uses.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/recorder.h"
#include "control/control.h"
#include "control/control_queue.h"
#include "control/controllers.h"
#include "control/generate.h"
#include "control/uses.h"
#include "resource/resource.h"
#include "resource/status.h"

struct pod_sync {
    struct dv_control_sync sync;
    struct dv_pod_plan plan;
    size_t at;       /* the entry that is being worked on */
    unsigned number; /* which of its possible names the claim is to have */
    dv_str *former;  /* the names of claims that the pod had before, sorted */
    size_t n_former;
};

/* How many names of our own are tried for a claim before the server is left to find one. */
#define NAMES_MAX 4u

static void create_claims(struct pod_sync *pod_sync);
static void reserve_claims(struct pod_sync *pod_sync);

size_t dv_control_pod_sync_bytes(void)
{
    return sizeof(struct pod_sync);
}

static struct pod_sync *pod_sync_of(struct dv_control_sync *sync)
{
    return DV_CONTAINER(sync, struct pod_sync, sync);
}

static const struct dv_api_pod *pod_of(const struct pod_sync *pod_sync)
{
    return pod_sync->sync.object->value;
}

/* ---- failures ---- */

static void tell(struct pod_sync *pod_sync, const char *what)
{
    struct dv_control_sync *sync = &pod_sync->sync;
    struct dv_note_subject subject = dv_note_subject_of(sync->object);
    dv_str message = dv_str_printf(sync->arena, "PodResourceClaim %.*s: %s",
                                   DV_FMT(pod_sync->plan.entries[pod_sync->at].name), what);

    dv_recorder_note(sync->control->claims_recorder, &subject, true,
                     DV_STR("FailedResourceClaimCreation"), message);
}

/* ---- claims ---- */

static void use_claim(struct pod_sync *pod_sync, struct dv_object *claim)
{
    struct dv_control_sync *sync = &pod_sync->sync;

    pod_sync->plan.entries[pod_sync->at].claim = dv_str_copy(claim->meta->name, sync->arena);
    dv_made_add(sync->control, claim);
    pod_sync->at++;
    pod_sync->number = 0;
    create_claims(pod_sync);
}

static void fail_create(struct pod_sync *pod_sync, const struct dv_api_status *failure)
{
    struct dv_err err;

    dv_status_to_err(failure, &err);
    (void)dv_wrap(&err, "create ResourceClaim");
    tell(pod_sync, err.msg);
    dv_control_sync_fail(&pod_sync->sync, "create a claim", failure);
}

/* The name that the claim was to have is taken, and what has it was read. It is our claim, when an
 * earlier request made it and its answer was lost: then it is used. Or it is somebody else's: then
 * the next name is tried. */
static void on_found(struct dv_control_sync *sync, const struct dv_api_status *failure)
{
    struct pod_sync *pod_sync = pod_sync_of(sync);
    const struct dv_entry_plan *entry = &pod_sync->plan.entries[pod_sync->at];

    if (failure) {
        fail_create(pod_sync, failure);
        return;
    }
    if (dv_control_is_owned_by(sync->request.object->meta, pod_of(pod_sync)->metadata.uid) &&
        dv_str_eq(dv_control_entry_of(sync->request.object->meta), entry->name)) {
        use_claim(pod_sync, sync->request.object);
        return;
    }
    pod_sync->number++;
    create_claims(pod_sync);
}

static void on_created(struct dv_control_sync *sync, const struct dv_api_status *failure)
{
    struct pod_sync *pod_sync = pod_sync_of(sync);
    const struct dv_entry_plan *entry = &pod_sync->plan.entries[pod_sync->at];
    dv_str name = entry->new_claim->metadata.name;
    bool has_admin = dv_control_wants_admin(&entry->new_claim->spec.devices);

    sync->control->stats.n_creates[failure != NULL][has_admin]++;
    if (!failure) {
        use_claim(pod_sync, sync->request.object);
    } else if (failure->code == 409 && name.n > 0) {
        sync->request = (struct dv_request){.verb = DV_VERB_GET,
                                            .kind = dv_kind(DV_KIND_CLAIM),
                                            .namespace = entry->new_claim->metadata.namespace,
                                            .name = name};
        dv_control_sync_ask(sync, on_found);
    } else {
        fail_create(pod_sync, failure);
    }
}

/* Sorts the names of the claims that the pod's status tells: each claim that is made is held
 * against them, and both may be tens of thousands. */
static void find_former(struct pod_sync *pod_sync)
{
    const struct dv_api_pod_status *status = &pod_of(pod_sync)->status;
    size_t n = status->n_resource_claim_statuses;

    pod_sync->former = DV_NEW_ARRAY(pod_sync->sync.arena, dv_str, n);
    pod_sync->n_former = n;
    for (size_t i = 0; i < n; i++)
        pod_sync->former[i] = status->resource_claim_statuses[i].resource_claim_name;
    if (n > 1)
        qsort(pod_sync->former, n, sizeof(pod_sync->former[0]), dv_str_compare);
}

/* Chooses a name that is not the one of a claim that the pod had before: whoever remembers that one
 * shall see that this is another. */
static dv_str choose_name(struct pod_sync *pod_sync, const struct dv_entry_plan *entry)
{
    const struct dv_api_pod *pod = pod_of(pod_sync);
    dv_str name = dv_control_claim_name(entry->new_claim->metadata.generate_name, pod->metadata.uid,
                                        entry->name, pod_sync->number, pod_sync->sync.arena);

    if (pod_sync->sync.control->options.is_strict || pod_sync->number >= NAMES_MAX)
        return DV_STR_NONE;
    if (pod_sync->n_former > 0 && bsearch(&name, pod_sync->former, pod_sync->n_former,
                                          sizeof(pod_sync->former[0]), dv_str_compare))
        return dv_control_claim_name(entry->new_claim->metadata.generate_name, pod->metadata.uid,
                                     entry->name, pod_sync->number + NAMES_MAX,
                                     pod_sync->sync.arena);
    return name;
}

static void fail_generate(struct pod_sync *pod_sync, const struct dv_err *err)
{
    tell(pod_sync, err->msg);
    dv_control_sync_fail_err(&pod_sync->sync, "generate claims", err);
}

static void create_claim(struct pod_sync *pod_sync, struct dv_entry_plan *entry)
{
    struct dv_control_sync *sync = &pod_sync->sync;
    const struct dv_api_pod *pod = pod_of(pod_sync);
    struct dv_err err;

    if (!entry->new_claim)
        entry->new_claim = dv_control_new_claim(pod, &pod->spec.resource_claims[pod_sync->at],
                                                &sync->control->lookup,
                                                &sync->control->options.gates, sync->arena, &err);
    if (!entry->new_claim) {
        fail_generate(pod_sync, &err);
        return;
    }
    entry->new_claim->metadata.name = choose_name(pod_sync, entry);
    sync->request = (struct dv_request){.verb = DV_VERB_CREATE,
                                        .kind = dv_kind(DV_KIND_CLAIM),
                                        .namespace = entry->new_claim->metadata.namespace,
                                        .field_manager = DV_STR(DV_CONTROL_CLAIMS_MANAGER),
                                        .value = entry->new_claim};
    dv_control_sync_ask(sync, on_created);
}

static void on_applied(struct dv_control_sync *sync, const struct dv_api_status *failure)
{
    struct pod_sync *pod_sync = pod_sync_of(sync);

    if (failure && failure->code == 404) {
        dv_control_sync_finish(sync); /* the pod is gone, and the collector deletes its claims */
        return;
    }
    if (failure) {
        dv_control_sync_fail(sync, "write the claims into the pod's status", failure);
        return;
    }
    pod_sync->at = 0;
    reserve_claims(pod_sync);
}

/* What becomes of a pod's status. */
struct status_change {
    const struct dv_api_pod *before;
    struct dv_api_pod_status after; /* resource_claim_statuses only */
};

/* Whether both have the same names of claims. */
static bool is_same(const struct dv_api_pod_status *a, const struct dv_api_pod_status *b)
{
    size_t i = 0;

    if (a->n_resource_claim_statuses != b->n_resource_claim_statuses)
        return false;
    while (i < a->n_resource_claim_statuses &&
           dv_str_eq(a->resource_claim_statuses[i].name, b->resource_claim_statuses[i].name) &&
           dv_str_eq(a->resource_claim_statuses[i].resource_claim_name,
                     b->resource_claim_statuses[i].resource_claim_name))
        i++;
    return i == a->n_resource_claim_statuses;
}

/* Sets the names of claims, unless it is another pod, or somebody else has set some meanwhile. */
static bool set_status(const struct dv_request *request, void *value, struct dv_arena *arena)
{
    const struct status_change *change = request->ctx;
    struct dv_api_pod *pod = value;

    (void)arena;
    if (!dv_str_eq(pod->metadata.uid, change->before->metadata.uid) ||
        !is_same(&pod->status, &change->before->status))
        return false;
    pod->status.resource_claim_statuses = change->after.resource_claim_statuses;
    pod->status.n_resource_claim_statuses = change->after.n_resource_claim_statuses;
    return true;
}

/* Writes the names of all claims that are known into the pod's status, in one patch. */
static void apply_status(struct pod_sync *pod_sync)
{
    struct dv_control_sync *sync = &pod_sync->sync;
    const struct dv_api_pod *pod = pod_of(pod_sync);
    struct status_change *change = DV_NEW(sync->arena, struct status_change);

    change->before = pod;
    if (!dv_control_claim_statuses(pod, &pod_sync->plan, sync->arena, &change->after)) {
        pod_sync->at = 0;
        reserve_claims(pod_sync);
        return;
    }
    sync->request = (struct dv_request){.verb = DV_VERB_PATCH,
                                        .subresource = DV_SUB_STATUS,
                                        .kind = dv_kind(DV_KIND_POD),
                                        .namespace = pod->metadata.namespace,
                                        .name = pod->metadata.name,
                                        .patch_type = DV_PATCH_APPLY,
                                        .field_manager = DV_STR(DV_CONTROL_CLAIMS_MANAGER),
                                        .is_forced = true,
                                        .ctx = change};
    if (sync->control->options.cluster->is_embedded)
        sync->request.change = set_status;
    else
        sync->request.patch = dv_control_claim_patch(pod, &change->after, sync->arena);
    dv_control_sync_ask(sync, on_applied);
}

static void create_claims(struct pod_sync *pod_sync)
{
    const struct dv_pod_plan *plan = &pod_sync->plan;

    while (pod_sync->at < plan->n_entries) {
        struct dv_entry_plan *entry = &plan->entries[pod_sync->at];

        if (entry->step == DV_ENTRY_CREATE) {
            create_claim(pod_sync, entry);
            return;
        }
        if (entry->step == DV_ENTRY_STUCK) {
            fail_generate(pod_sync, &plan->err);
            return;
        }
        pod_sync->at++;
    }
    apply_status(pod_sync);
}

/* ---- reservations ---- */

static void on_reserved(struct dv_control_sync *sync, const struct dv_api_status *failure)
{
    struct pod_sync *pod_sync = pod_sync_of(sync);

    if (failure && failure->code != 404) {
        dv_control_sync_fail(sync, "reserve a claim", failure);
        return;
    }
    pod_sync->at++;
    reserve_claims(pod_sync);
}

/* Finds the claim of an entry if it has to be reserved for the pod; otherwise NULL. */
static struct dv_object *find_unreserved(struct pod_sync *pod_sync,
                                         const struct dv_entry_plan *entry)
{
    const struct dv_api_pod *pod = pod_of(pod_sync);
    struct dv_object *claim = entry->claim.n > 0
                                  ? dv_control_get(pod_sync->sync.control, DV_CONTROL_CLAIMS,
                                                   pod->metadata.namespace, entry->claim)
                                  : NULL;

    if (!claim || !dv_control_is_to_reserve(pod, claim->value) ||
        (entry->is_generated && !dv_control_is_owned_by(claim->meta, pod->metadata.uid)))
        return NULL;
    return claim;
}

static void reserve_claims(struct pod_sync *pod_sync)
{
    struct dv_control_sync *sync = &pod_sync->sync;
    const struct dv_pod_plan *plan = &pod_sync->plan;

    for (; pod_sync->at < plan->n_entries; pod_sync->at++) {
        const struct dv_object *claim = find_unreserved(pod_sync, &plan->entries[pod_sync->at]);
        struct dv_api_resource_claim *copy;

        if (!claim)
            continue;
        copy = DV_NEW(sync->arena, struct dv_api_resource_claim);
        dv_message_copy(&dv_message_resource_claim, claim->value, sync->arena, copy);
        sync->request =
            (struct dv_request){.verb = DV_VERB_UPDATE,
                                .subresource = DV_SUB_STATUS,
                                .kind = dv_kind(DV_KIND_CLAIM),
                                .namespace = copy->metadata.namespace,
                                .name = copy->metadata.name,
                                .field_manager = DV_STR(DV_CONTROL_CLAIMS_MANAGER),
                                .value = dv_control_reserve(copy, pod_of(pod_sync), sync->arena)};
        dv_control_sync_ask(sync, on_reserved);
        return;
    }
    dv_control_sync_finish(sync);
}

void dv_control_pod_sync_run(struct dv_queue_item *item)
{
    struct pod_sync *pod_sync = DV_CONTAINER(item, struct pod_sync, sync.item);
    struct dv_control *control =
        DV_CONTAINER(item->queue, struct dv_control, queues[DV_CONTROL_POD_QUEUE]);
    struct dv_object *object =
        dv_control_get(control, DV_CONTROL_PODS, item->namespace, item->name);
    const struct dv_api_pod *pod = object ? object->value : NULL;

    /* It is looked at here and not when one of its claims changes: many may change in a turn. */
    if (!pod || !dv_control_needs_work(pod, &control->lookup)) {
        dv_queue_finish(item);
        return;
    }
    dv_control_sync_begin(&pod_sync->sync, control, object);
    pod_sync->at = 0;
    pod_sync->number = 0;
    find_former(pod_sync);
    dv_control_plan_pod(pod, &control->lookup, &control->options.gates, pod_sync->sync.arena,
                        &pod_sync->plan);
    create_claims(pod_sync);
}
