/* pod_sync.c - the job for a pod that lacks something, in this order: its claims are created from
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

struct pod_job {
    struct dv_job job;
    struct dv_pod_plan plan;
    size_t at;       /* the entry that is being worked on */
    unsigned number; /* which of its possible names the claim is to have */
    dv_str *former;  /* the names of claims that the pod had before, sorted */
    size_t n_former;
};

/* How many names of our own are tried for a claim before the server is left to find one. */
#define NAMES_MAX 4u

static void create_claims(struct pod_job *pod_job);
static void reserve_claims(struct pod_job *pod_job);

size_t dv_pod_job_bytes(void)
{
    return sizeof(struct pod_job);
}

static struct pod_job *pod_job_of(struct dv_job *job)
{
    return DV_CONTAINER(job, struct pod_job, job);
}

static const struct dv_api_pod *pod_of(const struct pod_job *pod_job)
{
    return pod_job->job.object->value;
}

/* ---- failures ---- */

static void tell(struct pod_job *pod_job, const char *what)
{
    struct dv_job *job = &pod_job->job;
    struct dv_note_subject subject = dv_note_subject_of(job->object);
    dv_str message = dv_str_printf(job->arena, "PodResourceClaim %.*s: %s",
                                   DV_FMT(pod_job->plan.entries[pod_job->at].name), what);

    dv_recorder_note(job->control->claims_recorder, &subject, true,
                     DV_STR("FailedResourceClaimCreation"), message);
}

/* ---- claims ---- */

static void use_claim(struct pod_job *pod_job, struct dv_object *claim)
{
    struct dv_job *job = &pod_job->job;

    pod_job->plan.entries[pod_job->at].claim = dv_str_copy(claim->meta->name, job->arena);
    dv_made_add(job->control, claim);
    pod_job->at++;
    pod_job->number = 0;
    create_claims(pod_job);
}

static void fail_create(struct pod_job *pod_job, const struct dv_api_status *failure)
{
    struct dv_err err;

    dv_status_to_err(failure, &err);
    (void)dv_wrap(&err, "create ResourceClaim");
    tell(pod_job, err.msg);
    dv_job_fail(&pod_job->job, "create a claim", failure);
}

/* The name that the claim was to have is taken, and what has it was read. It is our claim, when an
 * earlier request made it and its answer was lost: then it is used. Or it is somebody else's: then
 * the next name is tried. */
static void on_found(struct dv_job *job, const struct dv_api_status *failure)
{
    struct pod_job *pod_job = pod_job_of(job);
    const struct dv_entry_plan *entry = &pod_job->plan.entries[pod_job->at];

    if (failure) {
        fail_create(pod_job, failure);
        return;
    }
    if (dv_control_is_owned_by(job->request.object->meta, pod_of(pod_job)->metadata.uid) &&
        dv_str_eq(dv_control_entry_of(job->request.object->meta), entry->name)) {
        use_claim(pod_job, job->request.object);
        return;
    }
    pod_job->number++;
    create_claims(pod_job);
}

static void on_created(struct dv_job *job, const struct dv_api_status *failure)
{
    struct pod_job *pod_job = pod_job_of(job);
    const struct dv_entry_plan *entry = &pod_job->plan.entries[pod_job->at];
    dv_str name = entry->new_claim->metadata.name;
    bool has_admin = dv_control_wants_admin(&entry->new_claim->spec.devices);

    job->control->stats.n_creates[failure != NULL][has_admin]++;
    if (!failure) {
        use_claim(pod_job, job->request.object);
    } else if (failure->code == 409 && name.n > 0) {
        job->request = (struct dv_request){.verb = DV_VERB_GET,
                                           .kind = dv_kind(DV_KIND_CLAIM),
                                           .namespace = entry->new_claim->metadata.namespace,
                                           .name = name};
        dv_job_ask(job, on_found);
    } else {
        fail_create(pod_job, failure);
    }
}

/* Sorts the names of the claims that the pod's status tells: each claim that is made is held
 * against them, and both may be tens of thousands. */
static void find_former(struct pod_job *pod_job)
{
    const struct dv_api_pod_status *status = &pod_of(pod_job)->status;
    size_t n = status->n_resource_claim_statuses;

    pod_job->former = DV_NEW_ARRAY(pod_job->job.arena, dv_str, n);
    pod_job->n_former = n;
    for (size_t i = 0; i < n; i++)
        pod_job->former[i] = status->resource_claim_statuses[i].resource_claim_name;
    if (n > 1)
        qsort(pod_job->former, n, sizeof(pod_job->former[0]), dv_str_compare);
}

/* Chooses a name that is not the one of a claim that the pod had before: whoever remembers that one
 * shall see that this is another. */
static dv_str choose_name(struct pod_job *pod_job, const struct dv_entry_plan *entry)
{
    const struct dv_api_pod *pod = pod_of(pod_job);
    dv_str name = dv_control_claim_name(entry->new_claim->metadata.generate_name, pod->metadata.uid,
                                        entry->name, pod_job->number, pod_job->job.arena);

    if (pod_job->job.control->options.is_strict || pod_job->number >= NAMES_MAX)
        return DV_STR_NONE;
    if (pod_job->n_former > 0 && bsearch(&name, pod_job->former, pod_job->n_former,
                                         sizeof(pod_job->former[0]), dv_str_compare))
        return dv_control_claim_name(entry->new_claim->metadata.generate_name, pod->metadata.uid,
                                     entry->name, pod_job->number + NAMES_MAX, pod_job->job.arena);
    return name;
}

static void fail_generate(struct pod_job *pod_job, const struct dv_err *err)
{
    tell(pod_job, err->msg);
    dv_job_fail_err(&pod_job->job, "generate claims", err);
}

static void create_claim(struct pod_job *pod_job, struct dv_entry_plan *entry)
{
    struct dv_job *job = &pod_job->job;
    const struct dv_api_pod *pod = pod_of(pod_job);
    struct dv_err err;

    if (!entry->new_claim)
        entry->new_claim = dv_control_new_claim(pod, &pod->spec.resource_claims[pod_job->at],
                                                &job->control->lookup, &job->control->options.gates,
                                                job->arena, &err);
    if (!entry->new_claim) {
        fail_generate(pod_job, &err);
        return;
    }
    entry->new_claim->metadata.name = choose_name(pod_job, entry);
    job->request = (struct dv_request){.verb = DV_VERB_CREATE,
                                       .kind = dv_kind(DV_KIND_CLAIM),
                                       .namespace = entry->new_claim->metadata.namespace,
                                       .field_manager = DV_STR(DV_CONTROL_CLAIMS_MANAGER),
                                       .value = entry->new_claim};
    dv_job_ask(job, on_created);
}

static void on_applied(struct dv_job *job, const struct dv_api_status *failure)
{
    struct pod_job *pod_job = pod_job_of(job);

    if (failure && failure->code == 404) {
        dv_job_finish(job); /* the pod is gone, and the collector deletes its claims */
        return;
    }
    if (failure) {
        dv_job_fail(job, "write the claims into the pod's status", failure);
        return;
    }
    pod_job->at = 0;
    reserve_claims(pod_job);
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
static void apply_status(struct pod_job *pod_job)
{
    struct dv_job *job = &pod_job->job;
    const struct dv_api_pod *pod = pod_of(pod_job);
    struct status_change *change = DV_NEW(job->arena, struct status_change);

    change->before = pod;
    if (!dv_control_claim_statuses(pod, &pod_job->plan, job->arena, &change->after)) {
        pod_job->at = 0;
        reserve_claims(pod_job);
        return;
    }
    job->request = (struct dv_request){.verb = DV_VERB_PATCH,
                                       .subresource = DV_SUB_STATUS,
                                       .kind = dv_kind(DV_KIND_POD),
                                       .namespace = pod->metadata.namespace,
                                       .name = pod->metadata.name,
                                       .patch_type = DV_PATCH_APPLY,
                                       .field_manager = DV_STR(DV_CONTROL_CLAIMS_MANAGER),
                                       .is_forced = true,
                                       .ctx = change};
    if (job->control->options.cluster->is_embedded)
        job->request.change = set_status;
    else
        job->request.patch = dv_control_claim_patch(pod, &change->after, job->arena);
    dv_job_ask(job, on_applied);
}

static void create_claims(struct pod_job *pod_job)
{
    const struct dv_pod_plan *plan = &pod_job->plan;

    while (pod_job->at < plan->n_entries) {
        struct dv_entry_plan *entry = &plan->entries[pod_job->at];

        if (entry->step == DV_ENTRY_CREATE) {
            create_claim(pod_job, entry);
            return;
        }
        if (entry->step == DV_ENTRY_STUCK) {
            fail_generate(pod_job, &plan->err);
            return;
        }
        pod_job->at++;
    }
    apply_status(pod_job);
}

/* ---- reservations ---- */

static void on_reserved(struct dv_job *job, const struct dv_api_status *failure)
{
    struct pod_job *pod_job = pod_job_of(job);

    if (failure && failure->code != 404) {
        dv_job_fail(job, "reserve a claim", failure);
        return;
    }
    pod_job->at++;
    reserve_claims(pod_job);
}

/* Finds the claim of an entry if it has to be reserved for the pod; otherwise NULL. */
static struct dv_object *find_unreserved(struct pod_job *pod_job, const struct dv_entry_plan *entry)
{
    const struct dv_api_pod *pod = pod_of(pod_job);
    struct dv_object *claim = entry->claim.n > 0
                                  ? dv_control_get(pod_job->job.control, DV_CONTROL_CLAIMS,
                                                   pod->metadata.namespace, entry->claim)
                                  : NULL;

    if (!claim || !dv_control_is_to_reserve(pod, claim->value) ||
        (entry->is_generated && !dv_control_is_owned_by(claim->meta, pod->metadata.uid)))
        return NULL;
    return claim;
}

static void reserve_claims(struct pod_job *pod_job)
{
    struct dv_job *job = &pod_job->job;
    const struct dv_pod_plan *plan = &pod_job->plan;

    for (; pod_job->at < plan->n_entries; pod_job->at++) {
        const struct dv_object *claim = find_unreserved(pod_job, &plan->entries[pod_job->at]);
        struct dv_api_resource_claim *copy;

        if (!claim)
            continue;
        copy = DV_NEW(job->arena, struct dv_api_resource_claim);
        dv_message_copy(&dv_message_resource_claim, claim->value, job->arena, copy);
        job->request =
            (struct dv_request){.verb = DV_VERB_UPDATE,
                                .subresource = DV_SUB_STATUS,
                                .kind = dv_kind(DV_KIND_CLAIM),
                                .namespace = copy->metadata.namespace,
                                .name = copy->metadata.name,
                                .field_manager = DV_STR(DV_CONTROL_CLAIMS_MANAGER),
                                .value = dv_control_reserve(copy, pod_of(pod_job), job->arena)};
        dv_job_ask(job, on_reserved);
        return;
    }
    dv_job_finish(job);
}

void dv_pod_job_run(struct dv_queue_item *item)
{
    struct pod_job *pod_job = DV_CONTAINER(item, struct pod_job, job.item);
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
    dv_job_begin(&pod_job->job, control, object);
    pod_job->at = 0;
    pod_job->number = 0;
    find_former(pod_job);
    dv_control_plan_pod(pod, &control->lookup, &control->options.gates, pod_job->job.arena,
                        &pod_job->plan);
    create_claims(pod_job);
}
