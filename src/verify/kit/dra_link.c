#include "verify/kit/dra_link.h"

#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "dra_v1.pb-c.h"
#include "health_v1.pb-c.h"
#include "pb/pb.h"
#include "resource/resource.h"
#include "verify/kit/cdi_look.h"
#include "verify/kit/driver_calls.h"
#include "verify/kit/kubelet_side.h"
#include "verify/kit/trial.h"
#include "verify/kit/trial_api.h"

/* What the kubelet gives a driver for all claims of a pod. */
#define PREPARE_MS 45000u

/* ---- the driver ---- */

static bool has_devices(void *ctx)
{
    return dv_api_n_devices(ctx) > 0;
}

static bool has_all_devices(void *ctx)
{
    const struct dv_trial *trial = ctx;

    return dv_api_n_devices(ctx) >= trial->facts.n_devices;
}

bool dv_dra_wait_slices(struct dv_trial *trial)
{
    if (!dv_trial_wait(trial, has_devices, trial, "its slices"))
        return false;
    /* Slices come one after the other; who has fewer devices than in the probe goes on with them.
     */
    (void)dv_trial_wait(trial, has_all_devices, trial, "all its slices");
    return true;
}

struct dv_dra_link *dv_dra_link_open(struct dv_trial *trial, struct dv_child *process,
                                     const struct dv_registration *registration)
{
    struct dv_dra_link *link = DV_NEW(trial->arena, struct dv_dra_link);

    link->trial = trial;
    link->process = process;
    link->registration = registration;
    link->service = registration->service;
    link->channel = dv_driver_connect(trial, registration);
    return link;
}

/* A token that is too narrow for the driver shows itself by this alone: the probe's is not. */
static _Noreturn void fail_without_slices(struct dv_trial *trial)
{
    size_t n_forbidden = dv_api_counts(trial).n_forbidden;

    if (n_forbidden > 0)
        dv_trial_fail(trial,
                      "no slice of the driver with a device came within %llu ms, and %zu of its "
                      "requests were forbidden: davit verify explain slices.narrow-token",
                      (unsigned long long)trial->wait_ms, n_forbidden);
    dv_trial_fail(trial, "no slice of the driver with a device came within %llu ms",
                  (unsigned long long)trial->wait_ms);
}

/* A driver that runs already still has what the case before has left prepared, or the last run: as
 * a kubelet that was restarted, this one unprepares what no pod has. Whether the driver can do that
 * is told by the cases that are about it. */
static void clear_claims(struct dv_dra_link *link)
{
    struct dv_trial *trial = link->trial;
    struct dv_object **objects;
    size_t n = dv_api_list(trial, DV_KIND_CLAIM, &objects);
    struct dv_test_claim **claims = DV_NEW_ARRAY(trial->arena, struct dv_test_claim *, n);

    for (size_t i = 0; i < n; i++) {
        claims[i] = DV_NEW(trial->arena, struct dv_test_claim);
        claims[i]->name = dv_str_copy(objects[i]->meta->name, trial->arena);
        claims[i]->uid = dv_str_copy(objects[i]->meta->uid, trial->arena);
    }
    if (n > 0)
        (void)dv_driver_finish(dv_dra_start(link, claims, n, true));
    for (size_t i = 0; i < n; i++)
        (void)dv_api_delete(trial, DV_KIND_CLAIM, claims[i]->name); /* gone is what we want */
}

struct dv_dra_link *dv_dra_link_begin(struct dv_trial *trial)
{
    struct dv_dra_link *link;
    struct dv_child *process;

    if (!trial->kubelet)
        dv_kubelet_open(trial);
    if (!trial->api)
        dv_api_open(trial);
    process = dv_child_start(trial);
    link = dv_dra_link_open(trial, process, dv_kubelet_await(trial, 0, "after its start"));
    if (dv_trial_has_keeper(trial))
        clear_claims(link);
    if (trial->facts.has_slices && !dv_dra_wait_slices(trial))
        fail_without_slices(trial);
    return link;
}

void dv_dra_link_close(struct dv_dra_link *link)
{
    dv_driver_disconnect(link->trial, link->channel);
}

struct dv_dra_link *dv_dra_link_restart(struct dv_dra_link *link, bool is_killed)
{
    struct dv_trial *trial = link->trial;
    size_t n = dv_kubelet_n_seen(trial);
    struct dv_child *process;

    if (is_killed || !dv_child_stop(link->process))
        dv_child_kill(link->process);
    dv_dra_link_close(link);
    process = dv_child_start(trial);
    return dv_dra_link_open(trial, process, dv_kubelet_await(trial, n, "after a restart"));
}

/* ---- calls ---- */

struct dv_driver_call *dv_dra_start(struct dv_dra_link *link, struct dv_test_claim *const *claims,
                                    size_t n_claims, bool is_undo)
{
    struct dv_arena *arena = link->trial->arena;
    DraV1__Claim **list = DV_NEW_ARRAY(arena, DraV1__Claim *, n_claims);
    DraV1__NodePrepareResourcesRequest request = DRA_V1__NODE_PREPARE_RESOURCES_REQUEST__INIT;

    for (size_t i = 0; i < n_claims; i++) {
        list[i] = DV_NEW(arena, DraV1__Claim);
        dra_v1__claim__init(list[i]);
        list[i]->namespace_ = DV_CLAIM_NAMESPACE;
        list[i]->name = dv_str_to_c(claims[i]->name, arena);
        list[i]->uid = dv_str_to_c(claims[i]->uid, arena);
    }
    request.claims = list;
    request.n_claims = n_claims;
    /* Both requests, of all services from 1.31 on, are the same on the wire. */
    return dv_driver_start(link->trial, link->channel,
                           is_undo ? dv_dra_unprepare_method(link->service)
                                   : dv_dra_prepare_method(link->service),
                           &request.base,
                           is_undo ? &dra_v1__node_unprepare_resources_response__descriptor
                                   : &dra_v1__node_prepare_resources_response__descriptor,
                           PREPARE_MS);
}

const dv_prepared *dv_dra_result(const struct dv_driver_call *call,
                                 const struct dv_test_claim *claim, struct dv_err *err)
{
    const DraV1__NodePrepareResourcesResponse *answer = call->answer;

    *err = call->err;
    if (!answer)
        return NULL;
    for (size_t i = 0; i < answer->n_claims; i++)
        if (dv_str_eq(dv_str_from_c(answer->claims[i]->key), claim->uid)) {
            if (answer->claims[i]->value->error[0] == '\0')
                return answer->claims[i]->value;
            (void)dv_fail(err, DV_UNKNOWN, "%s", answer->claims[i]->value->error);
            return NULL;
        }
    (void)dv_fail(err, DV_NOT_FOUND, "the answer says nothing about the claim");
    return NULL;
}

bool dv_dra_undone(const struct dv_driver_call *call, const struct dv_test_claim *claim,
                   struct dv_err *err)
{
    const DraV1__NodeUnprepareResourcesResponse *answer = call->answer;

    *err = call->err;
    if (!answer)
        return false;
    for (size_t i = 0; i < answer->n_claims; i++)
        if (dv_str_eq(dv_str_from_c(answer->claims[i]->key), claim->uid))
            return answer->claims[i]->value->error[0] == '\0' ||
                   dv_fail(err, DV_UNKNOWN, "%s", answer->claims[i]->value->error);
    return dv_fail(err, DV_NOT_FOUND, "the answer says nothing about the claim");
}

const dv_prepared *dv_dra_try_prepare(struct dv_dra_link *link, struct dv_test_claim *claim,
                                      struct dv_err *err)
{
    struct dv_driver_call *call = dv_dra_start(link, &claim, 1, false);

    (void)dv_driver_finish(call);
    return dv_dra_result(call, claim, err);
}

bool dv_dra_try_unprepare(struct dv_dra_link *link, struct dv_test_claim *claim, struct dv_err *err)
{
    struct dv_driver_call *call = dv_dra_start(link, &claim, 1, true);

    (void)dv_driver_finish(call);
    return dv_dra_undone(call, claim, err);
}

const dv_prepared *dv_dra_prepare(struct dv_dra_link *link, struct dv_test_claim *claim)
{
    struct dv_err err;
    const dv_prepared *prepared = dv_dra_try_prepare(link, claim, &err);

    if (!prepared)
        dv_trial_fail(link->trial, "NodePrepareResources failed: %s", err.msg);
    return prepared;
}

void dv_dra_unprepare(struct dv_dra_link *link, struct dv_test_claim *claim)
{
    struct dv_err err;

    if (!dv_dra_try_unprepare(link, claim, &err))
        dv_trial_fail(link->trial, "NodeUnprepareResources failed: %s", err.msg);
}

/* ---- answers ---- */

static bool has_cdi(const DraV1__Device *device, const char *name)
{
    for (size_t i = 0; i < device->n_cdi_device_ids; i++)
        if (strcmp(device->cdi_device_ids[i], name) == 0)
            return true;
    return false;
}

static bool is_same_cdi(const DraV1__Device *a, const DraV1__Device *b)
{
    if (a->n_cdi_device_ids != b->n_cdi_device_ids)
        return false;
    for (size_t i = 0; i < a->n_cdi_device_ids; i++)
        if (!has_cdi(b, a->cdi_device_ids[i]))
            return false;
    return true;
}

static bool has_device(const dv_prepared *prepared, const DraV1__Device *device)
{
    for (size_t i = 0; i < prepared->n_devices; i++) {
        const DraV1__Device *other = prepared->devices[i];

        if (strcmp(other->pool_name, device->pool_name) == 0 &&
            strcmp(other->device_name, device->device_name) == 0 && is_same_cdi(other, device))
            return true;
    }
    return false;
}

/* No order says anything: that of Go's maps changes from call to call. */
bool dv_prepared_is_same(const dv_prepared *a, const dv_prepared *b)
{
    if (a->n_devices != b->n_devices)
        return false;
    for (size_t i = 0; i < a->n_devices; i++)
        if (!has_device(b, a->devices[i]))
            return false;
    return true;
}

bool dv_prepared_has_cdi(const dv_prepared *prepared, const char *name)
{
    for (size_t i = 0; i < prepared->n_devices; i++)
        if (has_cdi(prepared->devices[i], name))
            return true;
    return false;
}

size_t dv_prepared_n_cdi(const dv_prepared *prepared)
{
    size_t n = 0;

    for (size_t i = 0; i < prepared->n_devices; i++)
        n += prepared->devices[i]->n_cdi_device_ids;
    return n;
}

void dv_dra_check_cdi(struct dv_dra_link *link, const dv_prepared *prepared, const char *when)
{
    struct dv_err err;

    for (size_t i = 0; i < prepared->n_devices; i++)
        for (size_t j = 0; j < prepared->devices[i]->n_cdi_device_ids; j++)
            if (!dv_cdi_look(link->trial, dv_str_from_c(prepared->devices[i]->cdi_device_ids[j]),
                             &err))
                dv_trial_fail(link->trial, "%s a runtime cannot start the container: %s", when,
                              err.msg);
}

/* ---- health ---- */

static void on_health(struct dv_call *call, dv_str message)
{
    struct dv_health_watch *watch = DV_CONTAINER(call, struct dv_health_watch, call);

    watch->last = dv_pb_decode(&health_v1__node_watch_resources_response__descriptor, message,
                               watch->trial->arena, &watch->err);
    watch->n_lists += watch->last != NULL;
    watch->has_ended |= !watch->last;
    watch->n_bytes += message.n;
    if (watch->n_bytes > DV_STREAM_BYTES_MAX && !watch->has_ended) {
        watch->has_ended = true;
        (void)dv_fail(&watch->err, DV_RESOURCE_EXHAUSTED, "it has sent %zu lists, of %zu bytes",
                      watch->n_lists, watch->n_bytes);
        dv_call_cancel(call);
    }
}

static void on_health_end(struct dv_call *call, const struct dv_err *err)
{
    struct dv_health_watch *watch = DV_CONTAINER(call, struct dv_health_watch, call);

    if (watch->has_ended)
        return; /* we did it, and said why */
    watch->has_ended = true;
    if (err)
        watch->err = *err;
}

struct dv_health_watch *dv_health_start(struct dv_dra_link *link)
{
    struct dv_health_watch *watch = DV_NEW(link->trial->arena, struct dv_health_watch);
    const HealthV1__NodeWatchResourcesRequest request =
        HEALTH_V1__NODE_WATCH_RESOURCES_REQUEST__INIT;
    enum dv_dra_health health =
        dv_dra_choose_health(link->registration->versions, link->registration->n_versions);

    watch->trial = link->trial;
    watch->call = (struct dv_call){.method = dv_dra_health_method(health),
                                   .message = on_health,
                                   .done = on_health_end,
                                   .deadline_ms = DV_NO_DEADLINE,
                                   .is_stream = true,
                                   .waits_for_ready = true};
    link->trial->n_calls++;
    dv_call_start(link->channel, &watch->call, dv_grpc_encode(&request.base));
    return watch;
}

struct health_wait {
    const struct dv_health_watch *watch;
    size_t n;
};

static bool has_health(void *ctx)
{
    const struct health_wait *wait = ctx;

    return wait->watch->n_lists > wait->n || wait->watch->has_ended;
}

bool dv_health_wait(struct dv_health_watch *watch, size_t n)
{
    struct health_wait wait = {watch, n};

    return dv_trial_wait(watch->trial, has_health, &wait, "the health of its devices") &&
           watch->n_lists > n;
}
