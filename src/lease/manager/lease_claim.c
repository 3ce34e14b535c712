/* lease_claim.c - the ResourceClaim of a lease that wants devices of classes: made, allocated with
 * what the scheduler's inventory holds for it, and removed. Embedded API only: there one inventory
 * decides. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "lease/lease.h"
#include "lease/manager/leases_state.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "sched/sched.h"
#include "json/json.h"

#define CLAIM_BYTES_MAX (256u * 1024u)
#define NOT_FOUND 404
#define FIELD_MANAGER "davit-lease"

/* ---- what it looks like ---- */

static void print_constraints(const struct dv_lease_spec *spec, struct dv_buf *buf)
{
    size_t n = 0;

    for (size_t i = 0; i < spec->n_devices; i++)
        for (size_t k = 0; k < spec->devices[i].n_same; k++) {
            dv_buf_add_c(buf, n++ == 0 ? ",\"constraints\":[" : ",");
            dv_buf_add_c(buf, "{\"requests\":[");
            dv_buf_add_json(buf, spec->devices[i].request);
            dv_buf_add_c(buf, "],\"matchAttribute\":");
            dv_buf_add_json(buf, spec->devices[i].same[k]);
            dv_buf_add_char(buf, '}');
        }
    if (n > 0)
        dv_buf_add_char(buf, ']');
}

static void print_request(const struct dv_lease_devices *devices, struct dv_buf *buf)
{
    dv_buf_add_c(buf, "{\"name\":");
    dv_buf_add_json(buf, devices->request);
    dv_buf_add_c(buf, ",\"exactly\":{\"deviceClassName\":");
    dv_buf_add_json(buf, devices->class);
    dv_buf_printf(buf, ",\"allocationMode\":\"ExactCount\",\"count\":%llu",
                  (unsigned long long)devices->n);
    for (size_t i = 0; i < devices->n_where; i++) {
        dv_buf_add_c(buf, i == 0 ? ",\"selectors\":[" : ",");
        dv_buf_add_c(buf, "{\"cel\":{\"expression\":");
        dv_buf_add_json(buf, devices->where[i]);
        dv_buf_add_c(buf, "}}");
    }
    dv_buf_add_c(buf, devices->n_where > 0 ? "]}}" : "}}");
}

static void print_claim(const struct dv_lease_spec *spec, struct dv_buf *buf)
{
    dv_buf_printf(buf,
                  "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s%.*s\",\"annotations\":{"
                  "\"davit.node/lease\":\"%.*s\"}},\"spec\":{\"devices\":{\"requests\":[",
                  DV_LEASE_NAMESPACE, DV_LEASE_POD_PREFIX, DV_FMT(spec->id), DV_FMT(spec->id));
    for (size_t i = 0; i < spec->n_devices; i++) {
        if (i > 0)
            dv_buf_add_char(buf, ',');
        print_request(&spec->devices[i], buf);
    }
    dv_buf_add_char(buf, ']');
    print_constraints(spec, buf);
    dv_buf_add_c(buf, "}}}");
}

void dv_lease_drop_claim(struct dv_lease *lease)
{
    dv_lease_let_go(lease);
    dv_arena_free(lease->claim_arena);
    lease->claim_arena = NULL;
    lease->claim = NULL;
}

bool dv_lease_make_claim(struct dv_lease *lease, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    const struct dv_json *doc;

    dv_buf_init(&text, CLAIM_BYTES_MAX);
    dv_lease_drop_claim(lease);
    lease->claim_arena = dv_arena_new();
    print_claim(&lease->spec, &text);
    if (!dv_buf_check(&text, "the claim of the lease", err))
        return false;
    doc = dv_json_parse(dv_str_copy(dv_buf_str(&text), lease->claim_arena), NULL,
                        lease->claim_arena, err);
    lease->claim = DV_NEW(lease->claim_arena, struct dv_api_resource_claim);
    return doc && dv_decode_json(&dv_message_resource_claim, doc, DV_UNKNOWN_DROP,
                                 lease->claim_arena, lease->claim, NULL, err);
}

void dv_lease_let_go(struct dv_lease *lease)
{
    if (lease->allocation && lease->leases->sched)
        dv_sched_let_go(lease->leases->sched, lease->allocation);
    lease->allocation = NULL;
}

/* ---- requests ---- */

static void ask(struct dv_lease *lease, struct dv_request request,
                void (*done)(struct dv_request *request, const struct dv_api_status *failure))
{
    lease->request = request;
    lease->request.kind = dv_kind(DV_KIND_CLAIM);
    lease->request.namespace = DV_STR(DV_LEASE_NAMESPACE);
    lease->request.field_manager = DV_STR(FIELD_MANAGER);
    lease->request.is_untracked = true;
    lease->request.done = done;
    dv_request_start(lease->leases->cluster, &lease->request);
}

/* Writes the claim's status, and its finalizers with it. */
static void write_status(struct dv_lease *lease, void (*done)(struct dv_request *request,
                                                              const struct dv_api_status *failure))
{
    ask(lease,
        (struct dv_request){.verb = DV_VERB_UPDATE,
                            .subresource = DV_SUB_STATUS,
                            .name = lease->claim->metadata.name,
                            .sets_finalizers = true,
                            .value = lease->claim},
        done);
}

static dv_str claim_name(struct dv_lease *lease)
{
    return dv_str_printf(lease->arena, DV_LEASE_POD_PREFIX "%.*s", DV_FMT(lease->spec.id));
}

static enum dv_lease_outcome fail(struct dv_lease *lease, const struct dv_api_status *failure)
{
    struct dv_err err;

    dv_status_to_err(failure, &err);
    (void)dv_wrap(&err, "the claim of the lease");
    dv_lease_set_awaited(lease, "%s", err.msg);
    return dv_lease_fail(lease, &err);
}

static void on_created(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_lease *lease = DV_CONTAINER(request, struct dv_lease, request);

    if (failure) {
        dv_lease_go(lease, fail(lease, failure));
        return;
    }
    dv_message_copy(&dv_message_resource_claim, request->object->value, lease->claim_arena,
                    lease->claim);
    dv_lease_go(lease, lease->failure.code == DV_OK ? DV_LEASE_STEP_DONE : DV_LEASE_STEP_FAILED);
}

enum dv_lease_outcome dv_lease_step_create(struct dv_lease *lease)
{
    if (lease->spec.n_devices == 0)
        return DV_LEASE_STEP_DONE;
    ask(lease, (struct dv_request){.verb = DV_VERB_CREATE, .value = lease->claim}, on_created);
    return DV_LEASE_STEP_PENDING;
}

static void on_allocated(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_lease *lease = DV_CONTAINER(request, struct dv_lease, request);

    /* The scheduler's view shows the claim's own allocation by now, or it is not to be. */
    dv_lease_let_go(lease);
    dv_lease_go(lease, failure ? fail(lease, failure) : DV_LEASE_STEP_DONE);
}

enum dv_lease_outcome dv_lease_step_allocate(struct dv_lease *lease)
{
    struct dv_api_resource_claim *claim = lease->claim;
    struct dv_arena *arena = lease->claim_arena;

    if (lease->spec.n_devices == 0)
        return DV_LEASE_STEP_DONE;
    claim->status.allocation = lease->allocation;
    claim->status.reserved_for = DV_NEW(arena, struct dv_api_resource_claim_consumer_reference);
    claim->status.reserved_for[0] = (struct dv_api_resource_claim_consumer_reference){
        .api_group = DV_STR(DV_LEASE_API_GROUP),
        .resource = DV_STR(DV_LEASE_API_RESOURCE),
        .name = lease->spec.id,
        .uid = lease->spec.uid,
    };
    claim->status.n_reserved_for = 1;
    claim->metadata.finalizers = DV_NEW(arena, dv_str);
    claim->metadata.finalizers[0] = DV_STR(DV_CLAIM_FINALIZER);
    claim->metadata.n_finalizers = 1;
    write_status(lease, on_allocated);
    return DV_LEASE_STEP_PENDING;
}

/* ---- removal ---- */

static void on_removed(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_lease *lease = DV_CONTAINER(request, struct dv_lease, request);
    bool is_done = !failure || failure->code == NOT_FOUND;

    if (!is_done)
        dv_lease_set_awaited(lease, "%.*s", DV_FMT(failure->message));
    dv_lease_go(lease, is_done ? DV_LEASE_STEP_DONE : DV_LEASE_STEP_FAILED);
}

static void on_read(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_lease *lease = DV_CONTAINER(request, struct dv_lease, request);
    struct dv_api_resource_claim *claim;

    if (failure) {
        on_removed(request, failure);
        return;
    }
    dv_lease_drop_claim(lease);
    lease->claim_arena = dv_arena_new();
    claim = lease->claim = DV_NEW(lease->claim_arena, struct dv_api_resource_claim);
    dv_message_copy(&dv_message_resource_claim, request->object->value, lease->claim_arena, claim);
    claim->status = (struct dv_api_resource_claim_status){0};
    claim->metadata.n_finalizers = 0;
    write_status(lease, on_removed);
}

enum dv_lease_outcome dv_lease_step_unreserve(struct dv_lease *lease)
{
    if (lease->spec.n_devices == 0 || !lease->leases->cluster)
        return DV_LEASE_STEP_DONE;
    ask(lease, (struct dv_request){.verb = DV_VERB_GET, .name = claim_name(lease)}, on_read);
    return DV_LEASE_STEP_PENDING;
}

enum dv_lease_outcome dv_lease_step_delete(struct dv_lease *lease)
{
    if (lease->spec.n_devices == 0 || !lease->leases->cluster)
        return DV_LEASE_STEP_DONE;
    ask(lease, (struct dv_request){.verb = DV_VERB_DELETE, .name = claim_name(lease)}, on_removed);
    return DV_LEASE_STEP_PENDING;
}
