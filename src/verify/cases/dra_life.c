/* dra_life.c - cases: device health, the end of a DRA driver, what it uses up. */
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "proto/health_v1.pb-c.h"
#include "resource/resource.h"
#include "verify/cases/cases.h" /* IWYU pragma: keep */
#include "verify/kit/dra_link.h"
#include "verify/kit/growth.h"
#include "verify/kit/kubelet_side.h"
#include "verify/kit/trial.h"
#include "verify/kit/trial_api.h"
#include "verify/kit/verify_case.h"
#include "verify/verify.h"

/* What a round may add: what allocators of all kinds keep, connections that come and go, files that
 * are written in the moment. */
#define GROWTH_KIB_MAX 8192u
#define GROWTH_FDS_MAX 8u
#define GROWTH_FILES_MAX 8u
#define QUIET_MS 500u
#define LISTS_MAX 20u

/* ---- health ---- */

static struct dv_health_watch *begin_health(struct dv_trial *trial, struct dv_dra_link **link)
{
    struct dv_health_watch *watch;

    *link = dv_dra_link_begin(trial);
    watch = dv_health_start(*link);
    if (!dv_health_wait(watch, 0))
        dv_trial_fail(trial, "NodeWatchResources sends no health: %s", watch->err.msg);
    return watch;
}

static void run_health_first(struct dv_trial *trial)
{
    struct dv_dra_link *link;

    (void)begin_health(trial, &link);
}

static bool has_device(struct dv_trial *trial, const HealthV1__DeviceIdentifier *device)
{
    struct dv_object **slices;
    size_t n = dv_api_slices(trial, &slices);

    for (size_t i = 0; i < n; i++) {
        const struct dv_api_resource_slice *slice = slices[i]->value;

        for (size_t j = 0; j < slice->spec.n_devices; j++)
            if (dv_str_eq(slice->spec.pool.name, dv_str_from_c(device->pool_name)) &&
                dv_str_eq(slice->spec.devices[j].name, dv_str_from_c(device->device_name)))
                return true;
    }
    return false;
}

static void run_health_names(struct dv_trial *trial)
{
    struct dv_dra_link *link;
    struct dv_health_watch *watch = begin_health(trial, &link);

    for (size_t i = 0; i < watch->last->n_devices; i++) {
        const HealthV1__DeviceIdentifier *device = watch->last->devices[i]->device;

        if (!device || !has_device(trial, device))
            dv_trial_fail(trial, "it tells the health of \"%s\" in pool \"%s\", which no slice has",
                          device ? device->device_name : "", device ? device->pool_name : "");
    }
}

static void run_health_open(struct dv_trial *trial)
{
    struct dv_dra_link *link;
    struct dv_health_watch *watch = begin_health(trial, &link);
    size_t n = watch->n_lists;

    dv_trial_pass(trial, QUIET_MS);
    if (watch->has_ended)
        dv_trial_fail(trial, "NodeWatchResources ended: %s", watch->err.msg);
    if (watch->n_lists - n > LISTS_MAX)
        dv_trial_fail(trial, "health came %zu times in %u ms", watch->n_lists - n, QUIET_MS);
}

static void run_health_reconnect(struct dv_trial *trial)
{
    struct dv_dra_link *link;
    struct dv_health_watch *watch = begin_health(trial, &link);

    dv_dra_link_close(link);
    link = dv_dra_link_open(trial, link->process, link->registration);
    watch = dv_health_start(link);
    if (!dv_health_wait(watch, 0))
        dv_trial_fail(trial, "after a lost connection no health comes: %s", watch->err.msg);
}

static size_t n_unhealthy(const struct dv_health_watch *watch)
{
    size_t n = 0;

    for (size_t i = 0; i < watch->last->n_devices; i++)
        n += watch->last->devices[i]->health == 2;
    return n;
}

static void run_health_flips(struct dv_trial *trial)
{
    struct dv_dra_link *link;
    struct dv_health_watch *watch = begin_health(trial, &link);
    size_t before = n_unhealthy(watch);

    dv_trial_hook(trial, DV_STR("unhealthy"));
    for (size_t n = 0; n_unhealthy(watch) <= before; n = watch->n_lists)
        if (!dv_health_wait(watch, n))
            dv_trial_fail(trial, "a device is not healthy any more, and the stream does not tell");
    dv_trial_hook(trial, DV_STR("healthy"));
    for (size_t n = 0; n_unhealthy(watch) > before; n = watch->n_lists)
        if (!dv_health_wait(watch, n))
            dv_trial_fail(trial, "the device is healthy again, and the stream does not tell");
}

/* ---- the end ---- */

static void run_sigterm(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);

    (void)dv_dra_prepare(link, dv_claim_make(link, DV_CLAIM_PLAIN));
    dv_child_must_stop(link->process);
}

static void run_sockets_gone(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);

    dv_child_must_stop(link->process);
    if (dv_trial_has_file(trial, link->registration->socket))
        dv_trial_fail(trial, "after SIGTERM \"%.*s\" is still there: the kubelet keeps the driver",
                      DV_FMT(link->registration->socket));
    if (dv_trial_has_file(trial, link->registration->endpoint))
        dv_trial_fail(trial, "after SIGTERM \"%.*s\" is still there",
                      DV_FMT(link->registration->endpoint));
}

static void run_keeps_prepared(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    const dv_prepared *prepared = dv_dra_prepare(link, dv_claim_make(link, DV_CLAIM_PLAIN));

    dv_child_must_stop(link->process);
    dv_dra_check_cdi(link, prepared, "after the driver's end, with pods that still run,");
}

/* ---- what it uses up ---- */

struct life {
    struct dv_dra_link *link;
    struct dv_test_claim *claim;
};

static void cycle(void *ctx)
{
    const struct life *life = ctx;

    (void)dv_dra_prepare(life->link, life->claim);
    dv_dra_unprepare(life->link, life->claim);
}

static void check_growth(struct dv_trial *trial, const char *what,
                         size_t (*measure)(const struct dv_growth *growth), size_t max)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct life life = {link, dv_claim_make(link, DV_CLAIM_PLAIN)};
    const struct dv_growth growth = {.trial = trial,
                                     .process = link->process,
                                     .what = what,
                                     .of = "claims",
                                     .measure = measure,
                                     .max = max,
                                     .cycle = cycle,
                                     .ctx = &life};

    dv_growth_check(&growth);
}

static void run_descriptors(struct dv_trial *trial)
{
    check_growth(trial, "its open descriptors", dv_growth_descriptors, GROWTH_FDS_MAX);
}

static void run_memory(struct dv_trial *trial)
{
    check_growth(trial, "its memory in KiB", dv_growth_memory_kib, GROWTH_KIB_MAX);
}

static void run_files(struct dv_trial *trial)
{
    check_growth(trial, "the number of files", dv_growth_files, GROWTH_FILES_MAX);
}

/* clang-format off */
static const struct dv_verify_case cases[] = {
    {.id = "health.first",
     .proves = "the health stream begins with all devices",
     .matters = "until then all devices are Unknown in the status of pods",
     .protocol = "NodeWatchResources sends whole lists",
     .needs = DV_NEEDS_HEALTH,
     .run = run_health_first},
    {.id = "health.names",
     .proves = "health is told of devices that slices have",
     .matters = "health under another name reaches no pod",
     .protocol = "pool and device are those of the slices",
     .needs = DV_NEEDS_HEALTH | DV_NEEDS_SLICES,
     .run = run_health_names},
    {.id = "health.stays-open",
     .proves = "the health stream stays open, and is not flooded",
     .matters = "a stream that ends turns health to Unknown after its time",
     .protocol = "the stream is open as long as the driver serves",
     .needs = DV_NEEDS_HEALTH,
     .run = run_health_open},
    {.id = "health.reconnect",
     .proves = "health comes again after a lost connection",
     .matters = "after a restart of the kubelet health is lost until something changes",
     .protocol = "every stream begins with the whole list",
     .needs = DV_NEEDS_HEALTH,
     .run = run_health_reconnect},
    {.id = "health.flips",
     .proves = "health changes are told, in both directions",
     .matters = "pods on broken devices run on, and nobody knows",
     .protocol = "a new list after every change",
     .needs = DV_NEEDS_HEALTH,
     .run = run_health_flips},
    {.id = "shutdown.sigterm",
     .proves = "SIGTERM ends the driver in time, also with a kubelet connected",
     .matters = "every update of the driver takes 30 s and ends in a kill",
     .protocol = "pods get SIGTERM, and SIGKILL after their grace period",
     .needs = DV_NEEDS_RESTART | DV_NEEDS_SLICES,
     .run = run_sigterm},
    {.id = "shutdown.sockets",
     .proves = "SIGTERM leaves no socket behind",
     .matters = "the kubelet keeps a driver registered as long as its socket is there, and sends "
                "pods to it",
     .protocol = "the driver is deregistered when its registration socket is removed",
     .needs = DV_NEEDS_RESTART,
     .run = run_sockets_gone},
    {.id = "shutdown.keeps-prepared",
     .proves = "what is prepared stays prepared when the driver ends",
     .matters = "an update of the driver takes the CDI specs of pods that restart a container",
     .protocol = "prepared claims outlive the driver's process",
     .needs = DV_NEEDS_RESTART | DV_NEEDS_SLICES,
     .run = run_keeps_prepared},
    {.id = "resources.descriptors",
     .proves = "descriptors do not grow over hundreds of claims",
     .matters = "one day open fails with \"too many open files\", and no pod starts",
     .protocol = "a node sees thousands of claims between updates of the driver",
     .needs = DV_NEEDS_PROCESS | DV_NEEDS_SLICES,
     .run = run_descriptors},
    {.id = "resources.memory",
     .proves = "memory does not grow over hundreds of claims",
     .matters = "the driver is killed by its memory limit in the middle of a call",
     .protocol = "unprepared claims need not be remembered",
     .needs = DV_NEEDS_PROCESS | DV_NEEDS_SLICES,
     .run = run_memory},
    {.id = "resources.files",
     .proves = "files do not grow in number over many claims",
     .matters = "checkpoints and specs of ended claims fill the disk",
     .protocol = "what prepare made, unprepare removes",
     .needs = DV_NEEDS_SLICES,
     .run = run_files},
};
/* clang-format on */

const struct dv_verify_group dv_dra_life_cases = {DV_VERIFY_DRA, cases, DV_COUNT(cases)};
