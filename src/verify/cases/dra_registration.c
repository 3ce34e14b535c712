/* dra_registration.c - cases: how a DRA driver makes itself known. */
#include "base/defs.h"
#include "base/str.h"
#include "verify/cases/cases.h" /* IWYU pragma: keep */
#include "verify/kit/dra_link.h"
#include "verify/kit/kubelet_side.h"
#include "verify/kit/skew.h"
#include "verify/kit/trial.h"
#include "verify/kit/trial_api.h"
#include "verify/kit/verify_case.h"
#include "verify/verify.h"

#define OVERLAP_MS 300u

static const struct dv_registration *start(struct dv_trial *trial, struct dv_child **process)
{
    dv_kubelet_open(trial);
    dv_api_open(trial);
    *process = dv_child_start(trial);
    return dv_kubelet_await(trial, 0, "after its start");
}

static void run_in_time(struct dv_trial *trial)
{
    struct dv_child *process;

    (void)start(trial, &process);
}

static bool is_answered(void *ctx)
{
    const struct dv_trial *trial = ctx;

    return dv_kubelet_n_seen(trial) > 0 || trial->kubelet->n_refused > 0;
}

static void run_version(struct dv_trial *trial)
{
    dv_kubelet_open(trial);
    dv_api_open(trial);
    (void)dv_child_start(trial);
    if (!dv_trial_wait(trial, is_answered, trial, "its registration"))
        dv_trial_fail(trial, "no socket of the driver showed up in plugins_registry");
    if (dv_kubelet_n_seen(trial) == 0)
        dv_trial_fail(trial,
                      "none of the versions that the driver lists is one of Kubernetes %.*s, by "
                      "which the kubelet would refuse it",
                      DV_FMT(trial->release->name));
}

static bool is_label_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

static void run_name(struct dv_trial *trial)
{
    struct dv_child *process;
    dv_str name = start(trial, &process)->name;

    if (name.n == 0 || name.n > 63)
        dv_trial_fail(trial, "the driver's name \"%.*s\" is not of 1 to 63 characters",
                      DV_FMT(name));
    for (size_t i = 0; i < name.n; i++)
        if (!is_label_char(name.p[i]))
            dv_trial_fail(trial, "the driver's name \"%.*s\" is no DNS name in lower case",
                          DV_FMT(name));
}

static void run_endpoint(struct dv_trial *trial)
{
    struct dv_child *process;
    const struct dv_registration *seen = start(trial, &process);

    if (seen->endpoint.n == 0 || seen->endpoint.p[0] != '/')
        dv_trial_fail(trial, "its endpoint \"%.*s\" is no absolute path", DV_FMT(seen->endpoint));
    if (!dv_trial_has_file(trial, seen->endpoint))
        dv_trial_fail(trial, "its endpoint \"%.*s\" is not there when it registers",
                      DV_FMT(seen->endpoint));
    (void)dv_dra_link_open(trial, process, seen);
}

static void run_kubelet_restart(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);

    dv_dra_link_close(link);
    dv_kubelet_restart(trial);
    link = dv_dra_link_open(trial, link->process,
                            dv_kubelet_await(trial, 0, "after a restart of the kubelet"));
    (void)dv_dra_prepare(link, dv_claim_make(link, DV_CLAIM_PLAIN));
}

static void run_late_kubelet(struct dv_trial *trial)
{
    struct dv_child *process;

    dv_api_open(trial);
    process = dv_child_start(trial);
    dv_trial_pass(trial, OVERLAP_MS);
    dv_kubelet_open(trial);
    (void)dv_dra_link_open(trial, process,
                           dv_kubelet_await(trial, 0, "after a kubelet came later"));
}

static void run_stale_socket(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);

    link = dv_dra_link_restart(link, true);
    (void)dv_dra_prepare(link, dv_claim_make(link, DV_CLAIM_PLAIN));
}

static void run_restarts(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);

    for (int i = 0; i < 3; i++)
        link = dv_dra_link_restart(link, false);
    (void)dv_dra_prepare(link, dv_claim_make(link, DV_CLAIM_PLAIN));
}

static bool was_refused(void *ctx)
{
    const struct dv_trial *trial = ctx;

    return trial->kubelet->n_refused > 0;
}

static void run_notify_false(struct dv_trial *trial)
{
    struct dv_child *process;

    trial->manners.refuses = true;
    dv_kubelet_open(trial);
    dv_api_open(trial);
    process = dv_child_start(trial);
    process->may_end = true; /* then it has to be started again */
    if (!dv_trial_wait(trial, was_refused, trial, "an attempt to register"))
        dv_trial_fail(trial, "no socket of the driver showed up in plugins_registry");
    dv_trial_pass(trial, OVERLAP_MS);
    trial->manners.refuses = false;
    if (process->has_ended)
        process = dv_child_start(trial);
    process->may_end = false;
    (void)dv_dra_link_open(trial, process,
                           dv_kubelet_await(trial, 0, "after NotifyRegistrationStatus(false)"));
}

/* Waits until the second instance has registered by a socket of its own. */
static struct dv_dra_link *start_second(struct dv_dra_link *first)
{
    struct dv_trial *trial = first->trial;
    size_t n = dv_kubelet_n_seen(trial);
    struct dv_child *second = dv_child_start(trial);
    const struct dv_registration *seen =
        dv_kubelet_await(trial, n, "as a second instance, while the first runs");

    if (dv_str_eq(seen->endpoint, first->registration->endpoint))
        dv_trial_fail(trial, "both instances serve on \"%.*s\"", DV_FMT(seen->endpoint));
    return dv_dra_link_open(trial, second, seen);
}

static void run_two_instances(struct dv_trial *trial)
{
    struct dv_dra_link *first = dv_dra_link_begin(trial);
    struct dv_dra_link *second = start_second(first);
    struct dv_test_claim *claim = dv_claim_make(first, DV_CLAIM_PLAIN);
    const dv_prepared *prepared = dv_dra_prepare(first, claim);

    if (!dv_prepared_is_same(prepared, dv_dra_prepare(second, claim)))
        dv_trial_fail(trial, "two instances prepare a claim in different ways");
    dv_dra_unprepare(second, claim);
}

static void run_rolling_update(struct dv_trial *trial)
{
    struct dv_dra_link *first = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(first, DV_CLAIM_PLAIN);
    const dv_prepared *prepared = dv_dra_prepare(first, claim);
    struct dv_dra_link *second = start_second(first);

    dv_child_must_stop(first->process);
    dv_trial_pass(trial, OVERLAP_MS);
    if (!dv_trial_has_file(trial, second->registration->endpoint) ||
        !dv_trial_has_file(trial, second->registration->socket))
        dv_trial_fail(trial, "the old instance removed a socket of the new one when it ended");
    dv_dra_check_cdi(second, prepared, "after a rolling update");
    if (trial->facts.has_slices && dv_api_n_devices(trial) == 0)
        dv_trial_fail(trial, "the old instance removed the slices when it ended");
    dv_dra_unprepare(second, claim);
}

/* clang-format off */
static const struct dv_verify_case cases[] = {
    {.id = "register.in-time",
     .proves = "the driver registers soon after its start",
     .matters = "until then no pod with a claim of it starts on the node",
     .protocol = "GetInfo: type DRAPlugin, the driver's name, supported_versions such as "
                 "v1.DRAPlugin",
     .run = run_in_time},
    {.id = "register.version",
     .proves = "the driver lists a version that this release of Kubernetes knows",
     .matters = "a driver that lists versions of another release is refused, and says so nowhere "
                "but in its log",
     .protocol = "supported_versions: v1.DRAPlugin from 1.34 on, v1beta1.DRAPlugin from 1.32 on",
     .run = run_version},
    {.id = "register.name",
     .proves = "the driver's name is a DNS name of 63 characters at most",
     .matters = "the API refuses its slices, or the kubelet its name",
     .protocol = "driver names are DNS subdomains in lower case",
     .run = run_name},
    {.id = "register.endpoint",
     .proves = "the endpoint is a socket that serves when the driver registers",
     .matters = "the first pod of a fresh node fails because the service is not up yet",
     .protocol = "the DRA service is up before the registration socket shows up",
     .run = run_endpoint},
    {.id = "register.late-kubelet",
     .proves = "the driver is found by a kubelet that starts later",
     .matters = "after a reboot the order is not known",
     .protocol = "the kubelet scans plugins_registry when it starts",
     .needs = DV_NEEDS_RESTART,
     .run = run_late_kubelet},
    {.id = "register.kubelet-restart",
     .proves = "the driver can be registered again by a kubelet that was restarted",
     .matters = "drivers that count GetInfo or close their socket after the first registration are "
                "lost",
     .protocol = "GetInfo and NotifyRegistrationStatus may come at any time, again and again",
     .needs = DV_NEEDS_SLICES,
     .run = run_kubelet_restart},
    {.id = "register.stale-socket",
     .proves = "sockets that a killed driver left do not stop the next one",
     .matters = "bind fails, and the driver crashes in a loop",
     .protocol = "sockets stay when a process is killed; their owner removes them before it binds",
     .needs = DV_NEEDS_RESTART | DV_NEEDS_SLICES,
     .run = run_stale_socket},
    {.id = "register.restarts",
     .proves = "the driver can be stopped and started again, several times",
     .matters = "locks or files that a run leaves behind keep the next one from starting",
     .protocol = "every start is a new registration",
     .needs = DV_NEEDS_RESTART | DV_NEEDS_SLICES,
     .run = run_restarts},
    {.id = "register.notify-false",
     .proves = "a driver that was refused is there for the next attempt",
     .matters = "drivers that remove their socket when they are refused are never tried again",
     .protocol = "the kubelet tries again by itself as long as the socket is there",
     .needs = DV_NEEDS_PROCESS,
     .run = run_notify_false},
    {.id = "register.two-instances",
     .proves = "two instances of the driver serve beside each other, with one state",
     .matters = "in a rolling update both are registered for a while; with a state each they take "
                "devices from each other",
     .protocol = "instances share data directory and CDI files; sockets differ by pod UID",
     .needs = DV_NEEDS_PROCESS | DV_NEEDS_INSTANCE | DV_NEEDS_SLICES,
     .run = run_two_instances},
    {.id = "register.rolling-update",
     .proves = "the old instance ends without harm to the new one",
     .matters = "sockets, slices or specs that the old instance removes are those of the new one",
     .protocol = "who exits in a rolling update removes its own sockets and nothing else",
     .needs = DV_NEEDS_PROCESS | DV_NEEDS_INSTANCE | DV_NEEDS_SLICES,
     .run = run_rolling_update},
};
/* clang-format on */

const struct dv_verify_group dv_dra_registration_cases = {DV_VERIFY_DRA, cases, DV_COUNT(cases)};
