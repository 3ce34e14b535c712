#include "verify/cases/driver_probe.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "claim/claim.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"
#include "resource/resource.h"
#include "verify/kit/dra_link.h"
#include "verify/kit/kubelet_side.h"
#include "verify/kit/plugin_link.h"
#include "verify/kit/skew.h"
#include "verify/kit/trial.h"
#include "verify/kit/trial_api.h"
#include "verify/kit/verify_case.h"
#include "verify/verify.h"

/* Who makes itself known in two ways does so one after the other: between the two may lie as much
 * as its start has taken, and no more than is worth waiting for in every run. */
#define SECOND_WAY_MIN_MS 100u
#define SECOND_WAY_MAX_MS 1000u
/* For a plugin that runs already to notice kubelet.sock: most look for it once a second. */
#define NOTICE_MS 2000u
#define LOOK_MS 20u
#define LAST_SLICE_MS 500u

/* How it makes itself known: a socket in plugins_registry is enough, as a kubelet may come to it a
 * second later. */
static bool set_ways(struct dv_trial *trial)
{
    struct dv_listing sockets = dv_trial_list(trial, trial->paths.registry);

    trial->facts.has_watcher = sockets.n > 0;
    for (size_t i = 0; i < trial->kubelet->seen.n; i++)
        trial->facts.is_classic |= trial->kubelet->seen.v[i]->socket.n == 0;
    return trial->facts.has_watcher && trial->facts.is_classic;
}

static void await_ways(struct dv_trial *trial)
{
    uint64_t longest_ms = trial->facts.start_ms;
    uint64_t start_ms = dv_trial_now_ms(trial);

    if (longest_ms < SECOND_WAY_MIN_MS)
        longest_ms = SECOND_WAY_MIN_MS;
    if (longest_ms > SECOND_WAY_MAX_MS)
        longest_ms = SECOND_WAY_MAX_MS;
    if (trial->options->attach.n > 0)
        longest_ms = NOTICE_MS;
    while (!set_ways(trial) && dv_trial_now_ms(trial) - start_ms < longest_ms)
        dv_trial_pass(trial, LOOK_MS);
}

static void probe_plugin(struct dv_trial *trial)
{
    uint64_t start_ms = dv_trial_now_ms(trial);
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);

    trial->facts.start_ms = dv_trial_now_ms(trial) - start_ms;
    (void)snprintf(trial->facts.name, sizeof(trial->facts.name), "%.*s",
                   DV_FMT(link->registration->name));
    trial->facts.n_devices = dv_list_n(link->list);
    trial->facts.has_prefer = link->options->get_preferred_allocation_available;
    trial->facts.has_prestart = link->options->pre_start_required;
    await_ways(trial);
}

static bool is_noted(const struct dv_facts *facts, dv_str pool)
{
    dv_str rest = dv_str_from_c(facts->pools);
    dv_str name;

    while (rest.n > 0 && dv_str_split(&rest, ',', &name))
        if (dv_str_eq(name, pool))
            return true;
    return false;
}

/* The names of the pools, for the token of the cases: a driver may give any names to its pools.
 * Those that begin with the node's name need not be given. */
static void note_pool(struct dv_trial *trial, dv_str pool)
{
    struct dv_facts *facts = &trial->facts;
    size_t n = strlen(facts->pools);

    if (dv_str_eq(dv_str_slice(pool, 0, dv_str_find_char(pool, '/')), trial->node) ||
        is_noted(facts, pool) || n + pool.n + 2 > sizeof(facts->pools))
        return;
    (void)snprintf(facts->pools + n, sizeof(facts->pools) - n, "%s%.*s", n > 0 ? "," : "",
                   DV_FMT(pool));
}

static void set_pools(struct dv_trial *trial)
{
    struct dv_object **slices;
    size_t n = dv_api_slices(trial, &slices);

    for (size_t i = 0; i < n; i++) {
        const struct dv_api_resource_slice *slice = slices[i]->value;

        trial->facts.has_slices |= dv_str_eq(slice->spec.node_name, trial->node);
        trial->facts.n_devices += slice->spec.n_devices;
        note_pool(trial, slice->spec.pool.name);
    }
}

/* Slices come one after the other: no more do when none has come for a while. */
static void await_last_slice(struct dv_trial *trial)
{
    uint64_t start_ms = dv_trial_now_ms(trial);
    size_t n;

    do {
        n = dv_api_n_devices(trial);
        dv_trial_pass(trial, LAST_SLICE_MS);
    } while (dv_api_n_devices(trial) != n && dv_trial_now_ms(trial) - start_ms < trial->wait_ms);
}

static void probe_dra(struct dv_trial *trial)
{
    const struct dv_registration *seen;
    struct dv_dra_link *link;
    uint64_t start_ms;

    dv_kubelet_open(trial);
    dv_api_open(trial);
    dv_claim_check_files(trial); /* before anybody waits for the driver */
    start_ms = dv_trial_now_ms(trial);
    link = dv_dra_link_begin(trial);
    seen = link->registration;

    (void)snprintf(trial->facts.name, sizeof(trial->facts.name), "%.*s", DV_FMT(seen->name));
    trial->facts.has_watcher = true;
    trial->facts.start_ms = dv_trial_now_ms(trial) - start_ms;
    trial->facts.has_health =
        trial->release->has_health &&
        dv_dra_choose_health(seen->versions, seen->n_versions) != DV_DRA_HEALTH_NONE;
    if (dv_dra_wait_slices(trial)) { /* a driver need not have any */
        trial->facts.start_ms = dv_trial_now_ms(trial) - start_ms;
        await_last_slice(trial);
    }
    set_pools(trial);
}

void dv_probe(struct dv_trial *trial)
{
    if (trial->options->kind == DV_VERIFY_DRA)
        probe_dra(trial);
    else
        probe_plugin(trial);
    if (trial->options->attach.n > 0)
        trial->facts.start_ms = 0; /* it was started by others, before or meanwhile */
}

static void take_leave(struct dv_trial *trial)
{
    (void)dv_dra_link_begin(trial); /* unprepares what is left */
}

const struct dv_verify_case dv_farewell = {.id = "farewell", .run = take_leave};
