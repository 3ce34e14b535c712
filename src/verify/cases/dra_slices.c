/* dra_slices.c - cases: what a DRA driver publishes. */
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "verify/cases/cases.h" /* IWYU pragma: keep */
#include "verify/kit/dra_link.h"
#include "verify/kit/trial.h"
#include "verify/kit/trial_api.h"
#include "verify/kit/verify_case.h"
#include "verify/verify.h"

/* Watched for so long, slices must not be written again and again. */
#define QUIET_MS 700u
#define WRITES_MAX 3u
#define LATER_GENERATIONS 5

typedef const struct dv_api_resource_slice slice_t;

static void run_published(struct dv_trial *trial)
{
    (void)dv_dra_link_begin(trial); /* waits for them */
}

static void run_own(struct dv_trial *trial)
{
    struct dv_object **slices;
    size_t n;

    (void)dv_dra_link_begin(trial);
    n = dv_api_list(trial, DV_KIND_SLICE, &slices);
    for (size_t i = 0; i < n; i++) {
        slice_t *slice = slices[i]->value;

        if (!dv_str_eq(slice->spec.driver, dv_str_from_c(trial->facts.name)))
            dv_trial_fail(trial, "slice \"%.*s\" has the driver \"%.*s\", not the registered name",
                          DV_FMT(slices[i]->meta->name), DV_FMT(slice->spec.driver));
        if (slice->spec.node_name.n > 0 && !dv_str_eq(slice->spec.node_name, trial->node))
            dv_trial_fail(trial, "slice \"%.*s\" is for node \"%.*s\"; this is \"%.*s\"",
                          DV_FMT(slices[i]->meta->name), DV_FMT(slice->spec.node_name),
                          DV_FMT(trial->node));
    }
}

static bool is_complete(void *ctx)
{
    struct dv_trial *trial = ctx;
    struct dv_object **slices;
    size_t n = dv_api_slices(trial, &slices);

    for (size_t i = 0; i < n; i++) {
        slice_t *slice = slices[i]->value;
        int64_t n_of_pool = 0;

        for (size_t j = 0; j < n; j++) {
            slice_t *other = slices[j]->value;

            if (!dv_str_eq(other->spec.pool.name, slice->spec.pool.name))
                continue;
            n_of_pool += other->spec.pool.generation == slice->spec.pool.generation;
            if (other->spec.pool.generation > slice->spec.pool.generation)
                return false; /* an old one is still there */
        }
        if (n_of_pool != slice->spec.pool.resource_slice_count)
            return false;
    }
    return n > 0;
}

static void run_complete(struct dv_trial *trial)
{
    (void)dv_dra_link_begin(trial);
    if (!dv_trial_wait(trial, is_complete, trial, "complete pools"))
        dv_trial_fail(trial, "a pool has another number of slices of its newest generation than "
                             "resourceSliceCount says: no device of it is ever allocated");
}

static bool is_owned_by_node(const struct dv_api_object_meta *meta)
{
    for (size_t i = 0; i < meta->n_owner_references; i++)
        if (dv_str_eq(meta->owner_references[i].kind, DV_STR("Node")))
            return true;
    return false;
}

static void run_owner(struct dv_trial *trial)
{
    struct dv_object **slices;
    size_t n;

    (void)dv_dra_link_begin(trial);
    n = dv_api_slices(trial, &slices);
    for (size_t i = 0; i < n; i++) {
        const struct dv_api_object_meta *meta = slices[i]->meta;
        slice_t *slice = slices[i]->value;

        if (slice->spec.node_name.n > 0 && !is_owned_by_node(meta))
            dv_trial_fail(trial,
                          "slice \"%.*s\" of a node is not owned by the Node: it stays for "
                          "ever when the node is removed",
                          DV_FMT(meta->name));
    }
}

/* "pool/device", sorted, of all slices. */
static struct dv_listing list_devices(struct dv_trial *trial)
{
    struct dv_object **slices;
    size_t n = dv_api_slices(trial, &slices);
    DV_VEC(dv_str) names = {0};

    for (size_t i = 0; i < n; i++) {
        slice_t *slice = slices[i]->value;

        for (size_t j = 0; j < slice->spec.n_devices; j++)
            *dv_vec_add_in(&names, trial->arena) =
                dv_str_printf(trial->arena, "%.*s/%.*s", DV_FMT(slice->spec.pool.name),
                              DV_FMT(slice->spec.devices[j].name));
    }
    dv_listing_sort(names.v, names.n);
    return (struct dv_listing){names.v, names.n};
}

struct stable {
    struct dv_trial *trial;
    struct dv_listing before;
};

static bool has_same_devices(void *ctx)
{
    struct stable *stable = ctx;
    struct dv_listing now = list_devices(stable->trial);

    return now.n == stable->before.n && dv_listing_news(&stable->before, &now).n == 0;
}

static void run_stable_names(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct stable stable = {.trial = trial, .before = list_devices(trial)};

    link = dv_dra_link_restart(link, true);
    dv_trial_pass(trial, QUIET_MS); /* what was there before is still there at first */
    if (!dv_trial_wait(trial, has_same_devices, &stable, "the slices of before"))
        dv_trial_fail(trial,
                      "after a restart the slices have other devices than before, such as "
                      "\"%.*s\" of before",
                      DV_FMT(stable.before.n ? stable.before.v[0] : DV_STR("none")));
    (void)link;
}

static bool is_newest(void *ctx)
{
    const struct stable *stable = ctx;

    return is_complete(stable->trial) && has_same_devices(ctx);
}

struct change {
    struct dv_trial *trial;
    struct dv_listing before;
};

static bool has_changed(void *ctx)
{
    const struct change *change = ctx;
    struct dv_listing now = list_devices(change->trial);

    return now.n != change->before.n || dv_listing_news(&change->before, &now).n > 0;
}

/* As if a run of the driver that had come far was killed: its slices have a later generation. */
static void age_slices(struct dv_trial *trial)
{
    struct dv_object **slices;
    size_t n = dv_api_slices(trial, &slices);

    dv_api_keep(trial, &slices, n);
    for (size_t i = 0; i < n; i++) {
        const struct dv_message *message = slices[i]->kind->versions[0].message;
        struct dv_api_resource_slice *changed = DV_NEW(trial->arena, struct dv_api_resource_slice);
        dv_str failure;

        dv_message_copy(message, slices[i]->value, trial->arena, changed);
        changed->spec.pool.generation += LATER_GENERATIONS;
        if (!dv_api_update(trial, slices[i], changed, &failure))
            dv_trial_break(trial, "the API does not take a slice: %.*s", DV_FMT(failure));
    }
}

/* Whatever the driver counts by itself, its slices have to be the newest in the end: with a higher
 * generation, or because none of before is left as it was. */
static void run_generation(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct stable stable = {.trial = trial, .before = list_devices(trial)};

    dv_child_kill(link->process);
    age_slices(trial);
    (void)dv_dra_link_restart(link, true);
    dv_trial_pass(trial, QUIET_MS); /* what was there before is still there at first */
    if (!dv_trial_wait_ms(trial, is_newest, &stable, trial->recover_ms, "its slices as the newest"))
        dv_trial_fail(trial, "slices of a later generation, of a run before, stay beside those of "
                             "this run, which are ignored as old");
}

static void run_change(struct dv_trial *trial)
{
    struct change change = {trial, {0}};

    (void)dv_dra_link_begin(trial);
    change.before = list_devices(trial);
    dv_trial_hook(trial, DV_STR("change"));
    if (!dv_trial_wait(trial, has_changed, &change, "other slices"))
        dv_trial_fail(trial, "the devices are others now, and the slices are not");
    if (!dv_trial_wait(trial, is_complete, trial, "complete pools"))
        dv_trial_fail(trial, "after a change a pool does not become complete again");
}

static void run_quiet(struct dv_trial *trial)
{
    size_t n;

    (void)dv_dra_link_begin(trial);
    dv_trial_pass(trial, QUIET_MS); /* what belongs to the first publication */
    n = dv_api_counts(trial).n_slice_writes;
    dv_trial_pass(trial, QUIET_MS);
    n = dv_api_counts(trial).n_slice_writes - n;
    if (n > WRITES_MAX)
        dv_trial_fail(trial, "although nothing changes, slices were written %zu times in %u ms", n,
                      QUIET_MS);
}

static void run_deleted(struct dv_trial *trial)
{
    struct dv_object **slices;
    struct stable stable = {.trial = trial};

    (void)dv_dra_link_begin(trial);
    stable.before = list_devices(trial);
    if (dv_api_slices(trial, &slices) == 0 ||
        !dv_api_delete(trial, DV_KIND_SLICE, dv_str_copy(slices[0]->meta->name, trial->arena)))
        dv_trial_break(trial, "the slice cannot be deleted");
    if (!dv_trial_wait_ms(trial, has_same_devices, &stable, trial->recover_ms,
                          "a slice that was deleted"))
        dv_trial_fail(trial, "a slice that somebody deleted is not published again within %llu s",
                      (unsigned long long)trial->recover_ms / 1000);
}

static void run_clean_exit(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_object **slices;
    size_t before = dv_api_slices(trial, &slices);
    size_t after;

    dv_child_must_stop(link->process);
    after = dv_api_slices(trial, &slices);
    if (after != 0 && after != before)
        dv_trial_fail(trial, "after its end %zu of %zu slices are left: all or none have to be",
                      after, before);
}

static void run_allowed(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    size_t n_forbidden;

    (void)dv_dra_prepare(link, dv_claim_make(link, DV_CLAIM_PLAIN));
    n_forbidden = dv_api_counts(trial).n_forbidden;
    if (n_forbidden > 0)
        dv_trial_fail(trial, "%zu request(s) were forbidden to a token for one driver on one node",
                      n_forbidden);
}

static void run_accepted(struct dv_trial *trial)
{
    size_t n_invalid;

    (void)dv_dra_link_begin(trial);
    dv_trial_pass(trial, 100);
    n_invalid = dv_api_counts(trial).n_invalid;
    if (n_invalid > 0)
        dv_trial_fail(trial,
                      "%zu request(s) were refused as invalid: names, limits (128 devices in "
                      "a slice) and values are those of the API",
                      n_invalid);
}

/* clang-format off */
static const struct dv_verify_case cases[] = {
    {.id = "slices.published",
     .proves = "slices with devices are published soon after the start",
     .matters = "without slices no claim is ever allocated",
     .protocol = "ResourceSlices of resource.k8s.io say what a node has",
     .needs = DV_NEEDS_SLICES,
     .run = run_published},
    {.id = "slices.own",
     .proves = "slices have the registered driver name and this node",
     .matters = "under another name claims are allocated to a driver that no kubelet knows",
     .protocol = "spec.driver is the name of GetInfo; spec.nodeName is the node",
     .needs = DV_NEEDS_SLICES,
     .run = run_own},
    {.id = "slices.complete",
     .proves = "pools are complete: as many slices of one generation as they say",
     .matters = "of an incomplete pool nothing is allocated, and events only say so indirectly",
     .protocol = "resourceSliceCount is the number of slices with the newest generation",
     .needs = DV_NEEDS_SLICES,
     .run = run_complete},
    {.id = "slices.owner",
     .proves = "slices of the node are owned by the Node",
     .matters = "devices of nodes that were removed are offered for ever",
     .protocol = "ownerReferences has the Node as controller",
     .needs = DV_NEEDS_SLICES,
     .run = run_owner},
    {.id = "slices.stable-names",
     .proves = "devices have the same names after a restart",
     .matters = "allocated claims refer to devices by name: under new ones they point to nothing, "
                "or to another device",
     .protocol = "pool and device name identify a device for as long as it is there",
     .needs = DV_NEEDS_SLICES | DV_NEEDS_RESTART,
     .run = run_stable_names},
    {.id = "slices.generation",
     .proves = "the pool's generation grows beyond that of slices that are there from before",
     .matters = "a driver that counts from one after each start is ignored: the node shows what "
                "was there before",
     .protocol = "of a pool only slices of the highest generation count; it may go back when no "
                 "slice of a higher one is left",
     .needs = DV_NEEDS_SLICES | DV_NEEDS_RESTART,
     .run = run_generation},
    {.id = "slices.change",
     .proves = "a change of devices is published",
     .matters = "new devices are not used, and pods are sent to those that are gone",
     .protocol = "slices are changed in place, or under a new generation",
     .needs = DV_NEEDS_SLICES,
     .run = run_change},
    {.id = "slices.quiet",
     .proves = "slices are not written while nothing changes",
     .matters = "a driver that writes in a loop on every node takes the API server down",
     .protocol = "write what differs, and nothing else",
     .needs = DV_NEEDS_SLICES,
     .run = run_quiet},
    {.id = "slices.deleted",
     .proves = "a slice that somebody deleted is published again",
     .matters = "a slip of the hand takes devices away until the driver is restarted",
     .protocol = "drivers watch their slices; 30 s is what the helper library takes",
     .needs = DV_NEEDS_SLICES,
     .is_slow = true,
     .run = run_deleted},
    {.id = "slices.clean-exit",
     .proves = "after SIGTERM all slices are there, or none",
     .matters = "a part of a pool is a pool that never becomes complete",
     .protocol = "the kubelet removes slices of drivers that stay away; a driver may do so itself",
     .needs = DV_NEEDS_SLICES | DV_NEEDS_RESTART,
     .run = run_clean_exit},
    {.id = "slices.narrow-token",
     .proves = "the driver needs no more than a token for one driver on one node",
     .matters = "a driver with rights to all slices and claims is a way from one node to all",
     .protocol = "get, list, watch, create, update, patch and delete of own slices, lists and "
                 "watches with the field selectors spec.driver and spec.nodeName; get of claims "
                 "that are allocated to it; get of the node; more by --also",
     .needs = DV_NEEDS_SLICES,
     .run = run_allowed},
    {.id = "slices.valid",
     .proves = "the API refuses nothing of what the driver writes",
     .matters = "limits show on large machines only: 128 devices in a slice, 32 attributes",
     .protocol = "what is not valid is answered with 422",
     .needs = DV_NEEDS_SLICES,
     .run = run_accepted},
};
/* clang-format on */

const struct dv_verify_group dv_dra_slices_cases = {DV_VERIFY_DRA, cases, DV_COUNT(cases)};
