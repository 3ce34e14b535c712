/* lease_steps.c - what a lease does with the store and with its pod. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/str.h"
#include "lease/lease.h"
#include "lease/manager/leases_state.h"
#include "loop/loop.h"
#include "pod/pod.h"
#include "store/store_saver.h"

#define POD_BYTES_MAX (512u * 1024u)

enum dv_lease_outcome dv_lease_fail(struct dv_lease *lease, const struct dv_err *err)
{
    if (lease->failure.code == DV_OK)
        lease->failure = *err;
    return DV_LEASE_STEP_FAILED;
}

/* ---- the row ---- */

static void on_recorded(struct dv_save *save, const struct dv_err *err)
{
    struct dv_lease *lease = DV_CONTAINER(save, struct dv_lease, save);

    if (err)
        (void)dv_lease_fail(lease, err);
    dv_lease_go(lease, lease->failure.code == DV_OK ? DV_LEASE_STEP_DONE : DV_LEASE_STEP_FAILED);
}

enum dv_lease_outcome dv_lease_step_record(struct dv_lease *lease)
{
    struct dv_leases *leases = lease->leases;

    lease->spec.since_ms = dv_clock_wall_ns(dv_loop_clock(leases->loop)) / DV_NS_PER_MS;
    lease->spec.ends_ms = lease->max_s > 0 ? lease->spec.since_ms + lease->max_s * 1000 : 0;
    lease->is_recorded = true;
    leases->n_held++;
    lease->user->n_waiting--;
    lease->user->n_held++;
    dv_list_push(&leases->held, &lease->link);
    dv_leases_tell_changed(leases);
    dv_lease_mark_dirty(lease);
    lease->save = (struct dv_save){.done = on_recorded};
    dv_saver_start(&leases->saver, &lease->save);
    return DV_LEASE_STEP_PENDING;
}

static void on_forgotten(struct dv_save *save, const struct dv_err *err)
{
    struct dv_lease *lease = DV_CONTAINER(save, struct dv_lease, save);

    dv_lease_go(lease, err ? DV_LEASE_STEP_FAILED : DV_LEASE_STEP_DONE);
}

enum dv_lease_outcome dv_lease_step_forget(struct dv_lease *lease)
{
    struct dv_leases *leases = lease->leases;

    if (lease->is_recorded) {
        lease->is_recorded = false;
        leases->n_held--;
        lease->user->n_held--;
        dv_link_remove(&lease->of_user);
        dv_link_remove(&lease->link);
    }
    dv_lease_mark_dirty(lease);
    lease->save = (struct dv_save){.done = on_forgotten};
    dv_saver_start(&leases->saver, &lease->save);
    return DV_LEASE_STEP_PENDING;
}

/* ---- the pod ---- */

/* Prints the pod by which the lease holds its devices: one container with all that is asked for. */
static void print_pod(const struct dv_lease *lease, struct dv_buf *buf)
{
    const struct dv_lease_spec *spec = &lease->spec;

    dv_buf_printf(buf,
                  "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"%s\","
                  "\"name\":\"%s%.*s\",\"uid\":\"%.*s\"},\"spec\":{",
                  DV_LEASE_NAMESPACE, DV_LEASE_POD_PREFIX, DV_FMT(spec->id), DV_FMT(spec->uid));
    if (spec->n_devices > 0)
        dv_buf_printf(buf,
                      "\"resourceClaims\":[{\"name\":\"lease\",\"resourceClaimName\":\"%s%.*s\"}],",
                      DV_LEASE_POD_PREFIX, DV_FMT(spec->id));
    dv_buf_printf(buf, "\"containers\":[{\"name\":\"%s\",\"resources\":{", DV_LEASE_CONTAINER);
    if (spec->n_devices > 0)
        dv_buf_add_c(buf, "\"claims\":[{\"name\":\"lease\"}],");
    dv_buf_add_c(buf, "\"limits\":{");
    for (size_t i = 0; i < spec->n_resources; i++) {
        if (i > 0)
            dv_buf_add_char(buf, ',');
        dv_buf_add_json(buf, spec->resources[i].name);
        dv_buf_printf(buf, ":\"%llu\"", (unsigned long long)spec->resources[i].n);
    }
    dv_buf_add_c(buf, "}}}]}}");
}

static void on_admitted(struct dv_pod_admission *admission, const struct dv_pod_verdict *verdict,
                        const struct dv_err *err)
{
    struct dv_lease *lease = DV_CONTAINER(admission, struct dv_lease, admission);
    struct dv_err why;

    if (!err && verdict->is_admitted) {
        dv_lease_go(lease,
                    lease->failure.code == DV_OK ? DV_LEASE_STEP_DONE : DV_LEASE_STEP_FAILED);
        return;
    }
    if (err) {
        why = *err;
    } else {
        (void)dv_fail(&why, DV_FAILED_PRECONDITION, "%s: %.*s",
                      dv_pod_refusal_name(verdict->refusal), DV_FMT(verdict->message));
        if (lease->failure.code == DV_OK)
            lease->waits_again = verdict->may_come;
        dv_log(DV_LOG_WARN, "lease: its devices were refused", DV_F_STR("lease", lease->spec.id),
               DV_F_BOOL("again", lease->waits_again), DV_F_ERR(&why));
    }
    dv_lease_go(lease, dv_lease_fail(lease, &why));
}

enum dv_lease_outcome dv_lease_step_admit(struct dv_lease *lease)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_pod_input *input;
    struct dv_err err;

    dv_buf_init(&text, POD_BYTES_MAX);
    if (lease->failure.code != DV_OK)
        return DV_LEASE_STEP_FAILED;
    print_pod(lease, &text);
    input =
        dv_buf_check(&text, "the lease", &err) ? dv_pod_input_parse(dv_buf_str(&text), &err) : NULL;
    if (!input)
        return dv_lease_fail(lease, &err);
    input->spec.origin = DV_POD_ORIGIN_LEASE;
    lease->admission = (struct dv_pod_admission){.done = on_admitted};
    dv_pods_admit(lease->leases->options.pods, &lease->admission, input, UINT64_MAX);
    return DV_LEASE_STEP_PENDING;
}

static void on_started(struct dv_pod_start *start, const struct dv_err *err)
{
    struct dv_lease *lease = DV_CONTAINER(start, struct dv_lease, start);

    dv_lease_go(lease, err ? dv_lease_fail(lease, err) : DV_LEASE_STEP_DONE);
}

enum dv_lease_outcome dv_lease_step_start(struct dv_lease *lease)
{
    const struct dv_pod_ref ref = {.uid = lease->spec.uid};

    lease->start = (struct dv_pod_start){.done = on_started};
    dv_pods_start_container(lease->leases->options.pods, &lease->start, &ref,
                            DV_STR(DV_LEASE_CONTAINER));
    return DV_LEASE_STEP_PENDING;
}

static void on_released(struct dv_pod_release *release, bool was_known, const struct dv_err *err)
{
    struct dv_lease *lease = DV_CONTAINER(release, struct dv_lease, release);

    (void)was_known; /* a lease that was not admitted has no pod */
    if (err) {
        dv_lease_set_awaited(lease, "%s", err->msg);
        dv_log(DV_LOG_WARN, "lease: its devices cannot be given back yet",
               DV_F_STR("lease", lease->spec.id), DV_F_ERR(err));
    }
    dv_lease_go(lease, err ? DV_LEASE_STEP_FAILED : DV_LEASE_STEP_DONE);
}

enum dv_lease_outcome dv_lease_step_release(struct dv_lease *lease)
{
    const struct dv_pod_ref ref = {.uid = lease->spec.uid};

    dv_lease_let_go(lease);
    lease->release = (struct dv_pod_release){.done = on_released};
    dv_pods_release(lease->leases->options.pods, &lease->release, &ref);
    return DV_LEASE_STEP_PENDING;
}
