/* dra_api.c - cases: an API server that has trouble, and releases of Kubernetes. */
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "claim/claim.h"
#include "resource/resource.h"
#include "verify/cases/cases.h" /* IWYU pragma: keep */
#include "verify/kit/dra_link.h"
#include "verify/kit/kubelet_side.h"
#include "verify/kit/trial.h"
#include "verify/kit/trial_api.h"
#include "verify/kit/verify_case.h"
#include "verify/verify.h"

#define AWAY_MS 500u

static bool has_devices(void *ctx)
{
    return dv_api_n_devices(ctx) > 0;
}

/* Starts the driver; it may end and be started again, as a DaemonSet would. */
static struct dv_child *start_to_end(struct dv_trial *trial)
{
    struct dv_child *process = dv_child_start(trial);

    if (process)
        process->may_end = true;
    return process;
}

struct comeback {
    struct dv_trial *trial;
    struct dv_child *process;
};

static bool has_registered_or_ended(void *ctx)
{
    const struct comeback *comeback = ctx;

    return dv_kubelet_n_seen(comeback->trial) > 0 ||
           (comeback->process && comeback->process->has_ended);
}

static void run_away_at_start(struct dv_trial *trial)
{
    struct comeback comeback = {trial, NULL};

    dv_kubelet_open(trial);
    dv_api_open(trial);
    dv_api_go_away(trial);
    comeback.process = start_to_end(trial);
    /* It has to miss the API: that takes as long as its start does. One that registers only with an
     * API is waited for in vain. */
    (void)dv_trial_wait(trial, has_registered_or_ended, &comeback, "its start");
    dv_trial_pass(trial, AWAY_MS);
    dv_api_come_back(trial);
    if (!dv_child_wait_reviving(&comeback.process, trial, has_devices, trial, trial->recover_ms,
                                "its slices"))
        dv_trial_fail(trial, "with an API that came after the driver, slices are never published");
}

static void run_away(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);
    const dv_prepared *prepared;
    struct dv_err err;

    dv_api_go_away(trial);
    prepared = dv_dra_try_prepare(link, claim, &err);
    if (prepared) /* one that watches claims may know it */
        dv_dra_check_cdi(link, prepared, "without the API it answered success, and");
    else if (err.code == DV_DEADLINE_EXCEEDED)
        dv_trial_fail(trial, "without the API NodePrepareResources is not answered within 45 s");
    dv_api_come_back(trial);
    for (int i = 0; i < 20 && !dv_dra_try_prepare(link, claim, &err); i++)
        dv_trial_pass(trial, AWAY_MS); /* as the kubelet repeats it */
    (void)dv_dra_prepare(link, claim);
}

/* Deletes a slice and waits until it is back: the driver has to see that it is gone. */
static void check_watches(struct dv_trial *trial, const char *after)
{
    struct dv_object **slices;
    size_t n = dv_api_slices(trial, &slices);

    dv_api_keep(trial, &slices, n);
    for (size_t i = 0; i < n; i++)
        (void)dv_api_delete(trial, DV_KIND_SLICE, slices[i]->meta->name);
    if (!dv_trial_wait_ms(trial, has_devices, trial, trial->recover_ms, "slices that were deleted"))
        dv_trial_fail(trial, "%s it does not see any more what happens to its slices", after);
}

struct watches {
    struct dv_trial *trial;
    size_t n_before;
};

static bool has_watched_again(void *ctx)
{
    const struct watches *watches = ctx;

    return dv_api_counts(watches->trial).n_slice_watches > watches->n_before;
}

/* Ends all watches, and waits for the next: what is deleted before it comes would be seen by a list
 * alone. One that only lists is waited for in vain. */
static void end_watches(struct dv_trial *trial)
{
    struct watches watches = {trial, 0};

    /* The first watch, and what it tells of the driver's own slices, come first: a slice that no
     * watch ever showed is missed only after a minute, by the helper libraries too. */
    (void)dv_trial_wait(trial, has_watched_again, &watches, "its first watch");
    dv_trial_pass(trial, AWAY_MS);
    watches.n_before = dv_api_counts(trial).n_slice_watches;
    dv_api_go_away(trial);
    dv_api_come_back(trial);
    (void)dv_trial_wait(trial, has_watched_again, &watches, "its next watch");
    dv_trial_pass(trial, AWAY_MS);
}

static void run_watch_ended(struct dv_trial *trial)
{
    (void)dv_dra_link_begin(trial);
    end_watches(trial);
    check_watches(trial, "after its watch was ended");
}

static void run_gone(struct dv_trial *trial)
{
    (void)dv_dra_link_begin(trial);
    dv_api_disturb(trial, 0, 1);
    end_watches(trial);
    check_watches(trial, "after its watch was answered with 410");
}

static void run_conflict(struct dv_trial *trial)
{
    struct dv_child *process;

    dv_kubelet_open(trial);
    dv_api_open(trial);
    dv_api_disturb(trial, 2, 0);
    process = start_to_end(trial);
    if (!dv_child_wait_reviving(&process, trial, has_devices, trial, trial->recover_ms,
                                "its slices"))
        dv_trial_fail(trial, "two conflicts, and it never publishes its slices");
}

static void run_services(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);
    struct dv_err err;

    if (!dv_dra_try_prepare(link, claim, &err))
        dv_trial_fail(trial, "it lists %s, and a call of that service fails: %s",
                      dv_dra_service_name(link->service), err.msg);
    dv_dra_unprepare(link, claim);
}

/* Every service that it lists has to answer, not only the one that this release would choose. */
static void run_each_service(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_err err;

    for (size_t i = 0; i < link->registration->n_versions; i++)
        for (int service = DV_DRA_V1; service <= DV_DRA_V1ALPHA3; service++) {
            if (!dv_str_eq(link->registration->versions[i],
                           dv_str_from_c(dv_dra_service_name((enum dv_dra_service)service))))
                continue;
            link->service = (enum dv_dra_service)service;
            if (!dv_dra_try_unprepare(link, dv_claim_invent(link), &err))
                dv_trial_fail(trial, "it lists %.*s, and does not serve it: %s",
                              DV_FMT(link->registration->versions[i]), err.msg);
        }
}

/* clang-format off */
static const struct dv_verify_case cases[] = {
    {.id = "api.away-at-start",
     .proves = "an API that comes after the driver is used when it is there",
     .matters = "after a power failure nodes are up before the control plane",
     .protocol = "nothing promises that the API answers",
     .needs = DV_NEEDS_PROCESS | DV_NEEDS_SLICES,
     .run = run_away_at_start},
    {.id = "api.away",
     .proves = "while the API is away a claim is answered in time, and prepared when it is back",
     .matters = "calls that hang hold up all pods of the node, calls that succeed start pods with "
                "unknown devices",
     .protocol = "the kubelet waits 45 s, and repeats the call",
     .needs = DV_NEEDS_SLICES,
     .run = run_away},
    {.id = "api.watch-ended",
     .proves = "a watch that ends is begun again",
     .matters = "API servers end every watch after minutes; a driver that does not notice is blind",
     .protocol = "watches may end at any time, and go on from the last version",
     .needs = DV_NEEDS_SLICES,
     .is_slow = true,
     .run = run_watch_ended},
    {.id = "api.gone",
     .proves = "after 410 the driver lists again",
     .matters = "a version that is too old is refused for ever: who repeats it never recovers",
     .protocol = "410 Gone: list, then watch from there",
     .needs = DV_NEEDS_SLICES,
     .is_slow = true,
     .run = run_gone},
    {.id = "api.conflict",
     .proves = "a write that conflicts is tried again",
     .matters = "a conflict at the wrong moment leaves a node without devices",
     .protocol = "409: read, and write again",
     .needs = DV_NEEDS_PROCESS | DV_NEEDS_SLICES,
     .run = run_conflict},
    {.id = "skew.service",
     .proves = "the service by which this release calls the driver works",
     .matters = "drivers are tested with the newest kubelet, and run under all",
     .protocol = "1.31: v1alpha3; 1.32 and 1.33: v1beta1; 1.34 and later: v1, else v1beta1",
     .needs = DV_NEEDS_SLICES,
     .run = run_services},
    {.id = "skew.each-service",
     .proves = "every service that the driver lists is served",
     .matters = "a version in the list that nobody serves breaks the kubelets that choose it",
     .protocol = "supported_versions are promises",
     .run = run_each_service},
};
/* clang-format on */

const struct dv_verify_group dv_dra_api_cases = {DV_VERIFY_DRA, cases, DV_COUNT(cases)};
