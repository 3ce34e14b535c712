/* plugin_list.c - cases: what a device plugin says about its devices. */
#include <string.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "pb/pb.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"
#include "verify/cases/cases.h" /* IWYU pragma: keep */
#include "verify/kit/driver_calls.h"
#include "verify/kit/kubelet_side.h"
#include "verify/kit/plugin_link.h"
#include "verify/kit/trial.h"
#include "verify/kit/verify_case.h"
#include "verify/verify.h"

/* What the API documents for an id; longer ones do not fit into labels. */
#define ID_BYTES_MAX 63u
/* The largest number of a NUMA node that kernels are built for. */
#define NUMA_MAX 1023
/* The stream is watched for so long, and equal lists that come more often than this are a loop. */
#define QUIET_MS 700u
#define LISTS_MAX 20u
/* Where the driver is slow to start it sends slowly, too: it is listened to for as long as that
 * took, up to this. */
#define QUIET_MS_MAX 3000u
/* A list is sent at once: connecting and asking take milliseconds, on a busy machine some more. */
#define FIRST_MS 5000u
/* What "many" has to be: more than what gRPC allows by default. */
#define LARGE_BYTES (4u << 20)

static void run_first(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    struct dv_list_watch *list = dv_list_start(trial, link->channel);
    uint64_t start_ms = dv_trial_now_ms(trial);

    if (!dv_list_wait(list, 0, trial->wait_ms))
        dv_trial_fail(trial, "no list within %llu ms: %s", (unsigned long long)trial->wait_ms,
                      list->err.msg);
    if (dv_trial_now_ms(trial) - start_ms > FIRST_MS)
        dv_trial_fail(trial, "the first list took %llu ms; until then the node has no devices",
                      (unsigned long long)(dv_trial_now_ms(trial) - start_ms));
}

static void run_valid(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    const DpV1beta1__ListAndWatchResponse *last = link->list->last;

    for (size_t i = 0; i < last->n_devices; i++) {
        const DpV1beta1__Device *device = last->devices[i];

        if (!device->id[0])
            dv_trial_fail(trial, "device %zu has an empty id", i);
        if (strlen(device->id) > ID_BYTES_MAX)
            dv_trial_fail(trial, "the id \"%.80s\" has more than %u characters", device->id,
                          ID_BYTES_MAX);
        for (size_t j = 0; j < i; j++)
            if (strcmp(device->id, last->devices[j]->id) == 0)
                dv_trial_fail(trial, "the id \"%s\" is there twice", device->id);
    }
}

static void run_health_words(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);

    for (size_t i = 0; i < dv_list_n(link->list); i++) {
        const DpV1beta1__Device *device = link->list->last->devices[i];

        if (strcmp(device->health, "Healthy") != 0 && strcmp(device->health, "Unhealthy") != 0)
            dv_trial_fail(trial,
                          "the health of \"%s\" is \"%s\"; the kubelet takes all but \"Healthy\" "
                          "for unhealthy",
                          device->id, device->health);
    }
}

static void check_same(struct dv_trial *trial, const struct dv_list_watch *before,
                       const struct dv_list_watch *now, const char *when)
{
    for (size_t i = 0; i < dv_list_n(before); i++)
        if (!dv_list_has(now, before->last->devices[i]->id))
            dv_trial_fail(trial, "the device \"%s\" is not in the list %s, which has %zu of %zu",
                          before->last->devices[i]->id, when, dv_list_n(now), dv_list_n(before));
    if (dv_list_n(now) > dv_list_n(before))
        dv_trial_fail(trial, "the list has %zu devices %s, and had %zu before", dv_list_n(now),
                      when, dv_list_n(before));
}

static void run_stable_ids(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    const struct dv_list_watch *before = link->list;
    size_t n = dv_kubelet_n_seen(trial);
    struct dv_child *process;

    dv_child_kill(link->process);
    dv_plugin_link_close(link);
    process = dv_child_start(trial);
    link = dv_plugin_link_open(trial, process, dv_kubelet_await(trial, n, "after a restart"));
    check_same(trial, before, link->list, "after a restart of the plugin");
}

static void run_topology(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);

    for (size_t i = 0; i < dv_list_n(link->list); i++) {
        const DpV1beta1__Device *device = link->list->last->devices[i];
        const DpV1beta1__TopologyInfo *topology = device->topology;

        for (size_t j = 0; topology && j < topology->n_nodes; j++) {
            int64_t node = topology->nodes[j]->id;

            if (node < 0 || node > NUMA_MAX)
                dv_trial_fail(trial,
                              "\"%s\" is near NUMA node %lld, which cannot be; without a "
                              "place the topology is left out",
                              device->id, (long long)node);
            for (size_t k = 0; k < j; k++)
                if (topology->nodes[k]->id == node)
                    dv_trial_fail(trial, "\"%s\" names NUMA node %lld twice", device->id,
                                  (long long)node);
        }
    }
}

static void run_stays_open(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    size_t n = link->list->n_lists;
    uint64_t quiet_ms = dv_u64_min(dv_u64_max(QUIET_MS, trial->facts.start_ms), QUIET_MS_MAX);

    dv_trial_pass(trial, quiet_ms);
    if (link->list->n_lists - n > LISTS_MAX)
        dv_trial_fail(trial, "%zu lists came in %llu ms although nothing changed",
                      link->list->n_lists - n, (unsigned long long)quiet_ms);
    if (link->list->has_ended)
        dv_trial_fail(trial, "the plugin ended ListAndWatch: %s", link->list->err.msg);
}

static void run_after_reconnect(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    const struct dv_list_watch *before = link->list;
    struct dv_channel *channel;
    struct dv_list_watch *list;

    dv_plugin_link_close(link);
    channel = dv_driver_connect(trial, link->registration);
    list = dv_list_start(trial, channel);
    if (!dv_list_wait(list, 0, trial->wait_ms))
        dv_trial_fail(trial, "after a lost connection no list comes: %s", list->err.msg);
    check_same(trial, before, list, "after a lost connection");
}

static void run_two_watchers(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    struct dv_list_watch *second = dv_list_start(trial, link->channel);

    if (!dv_list_wait(second, 0, trial->wait_ms))
        dv_trial_fail(trial, "a second ListAndWatch gets no list: %s", second->err.msg);
    check_same(trial, link->list, second, "of a second ListAndWatch");
    dv_trial_pass(trial, QUIET_MS);
    if (link->list->has_ended)
        dv_trial_fail(trial, "a second ListAndWatch ended the first: %s", link->list->err.msg);
}

static void run_unhealthy(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    size_t n = link->list->n_lists;
    size_t n_healthy;
    const char **ids;

    n_healthy = dv_list_healthy(link->list, &ids);
    dv_trial_hook(trial, DV_STR("unhealthy"));
    do {
        if (!dv_list_wait(link->list, n, trial->wait_ms))
            dv_trial_fail(trial, "a device is not healthy any more, and no list tells: %s",
                          link->list->err.msg);
        n = link->list->n_lists;
    } while (dv_list_healthy(link->list, &ids) >= n_healthy);
    if (dv_list_n(link->list) < n_healthy)
        dv_trial_fail(trial, "an unhealthy device left the list: it has to stay, so that the pod "
                             "that holds it is told");
}

static void run_heals(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    size_t n_healthy;
    const char **ids;

    n_healthy = dv_list_healthy(link->list, &ids);
    dv_trial_hook(trial, DV_STR("unhealthy"));
    for (size_t n = 0; dv_list_healthy(link->list, &ids) >= n_healthy; n = link->list->n_lists)
        if (!dv_list_wait(link->list, n, trial->wait_ms))
            dv_trial_fail(trial, "no list tells of the unhealthy device");
    dv_trial_hook(trial, DV_STR("healthy"));
    for (size_t n = 0; dv_list_healthy(link->list, &ids) < n_healthy; n = link->list->n_lists)
        if (!dv_list_wait(link->list, n, trial->wait_ms))
            dv_trial_fail(trial, "the device is healthy again, and no list tells");
}

static void run_empty(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);

    dv_trial_hook(trial, DV_STR("empty"));
    for (size_t n = 0; dv_list_n(link->list) > 0; n = link->list->n_lists)
        if (!dv_list_wait(link->list, n, trial->wait_ms))
            dv_trial_fail(trial, "all devices are gone, and no empty list tells: %s",
                          link->list->err.msg);
    dv_trial_pass(trial, 100);
    if (link->list->has_ended)
        dv_trial_fail(trial, "without devices the plugin ended ListAndWatch: %s",
                      link->list->err.msg);
    dv_plugin_check_alive(link, "the loss of all devices");
}

static void run_large(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    size_t bytes = 0;

    dv_trial_hook(trial, DV_STR("many"));
    for (size_t n = 0; bytes <= LARGE_BYTES; n = link->list->n_lists) {
        if (!dv_list_wait(link->list, n, trial->wait_ms))
            dv_trial_fail(trial,
                          "no list of more than 4 MiB comes, the last one has %zu devices: "
                          "%s",
                          dv_list_n(link->list), link->list->err.msg);
        bytes = dv_pb_size(&link->list->last->base);
    }
    dv_plugin_check_alive(link, "a list of more than 4 MiB");
}

/* clang-format off */
static const struct dv_verify_case cases[] = {
    {.id = "list.first",
     .proves = "the first list comes at once",
     .matters = "the node has no devices before it; a plugin that sends only changes leaves it so "
                "until one happens",
     .protocol = "ListAndWatch begins with the whole list",
     .run = run_first},
    {.id = "list.valid",
     .proves = "ids are unique, not empty and of 63 characters at most",
     .matters = "of two devices with one id the kubelet knows one: the other is never given to "
                "anybody",
     .protocol = "ID is unique in the list; its documented length is 63 characters",
     .run = run_valid},
    {.id = "list.health-words",
     .proves = "health is Healthy or Unhealthy",
     .matters = "\"healthy\" in lower case, or an empty text, makes all devices unusable, and "
                "nothing says why",
     .protocol = "every text but the exact \"Healthy\" counts as unhealthy",
     .run = run_health_words},
    {.id = "list.stable-ids",
     .proves = "ids are the same after a restart of the plugin",
     .matters = "the kubelet remembers devices by id: under new ones, devices of running pods are "
                "given to others",
     .protocol = "ids identify devices over restarts of plugin and kubelet",
     .needs = DV_NEEDS_RESTART,
     .run = run_stable_ids},
    {.id = "list.topology",
     .proves = "NUMA nodes can exist, and each is named once",
     .matters = "sysfs says -1 for devices without a place; passed on, alignment fails for every "
                "pod",
     .protocol = "TopologyInfo lists nodes from 0 on; it is left out when the place is not known",
     .run = run_topology},
    {.id = "list.stays-open",
     .proves = "the stream stays open, and is quiet while nothing changes",
     .matters = "at the end of the stream all devices turn unhealthy; equal lists many times a "
                "second cost a core",
     .protocol = "the kubelet marks the devices of a plugin whose stream ended as unhealthy",
     .run = run_stays_open},
    {.id = "list.after-reconnect",
     .proves = "the whole list comes again after a lost connection",
     .matters = "plugins that send a list once in their life have no devices after a restart of "
                "the kubelet",
     .protocol = "every ListAndWatch begins with the whole list",
     .run = run_after_reconnect},
    {.id = "list.two-watchers",
     .proves = "two streams at a time work",
     .matters = "the old kubelet's stream is still there when the new one asks; a plugin with one "
                "place drops one of them, or hangs",
     .protocol = "each call of ListAndWatch has a stream of its own",
     .run = run_two_watchers},
    {.id = "list.unhealthy",
     .proves = "a device that fails is told as unhealthy, and stays in the list",
     .matters = "pods are put on a broken device, or the holder of one is not told",
     .protocol = "a new list after every change; unhealthy devices are not allocated",
     .run = run_unhealthy},
    {.id = "list.heals",
     .proves = "a device that works again is told as healthy",
     .matters = "a short failure takes a device out of use until the plugin is restarted",
     .protocol = "health may change in both directions at any time",
     .run = run_heals},
    {.id = "list.empty",
     .proves = "a plugin without devices goes on",
     .matters = "plugins that end without devices crash in a loop on nodes that have none, or lost "
                "theirs",
     .protocol = "an empty list is valid; the resource has capacity 0 then",
     .run = run_empty},
    {.id = "list.large",
     .proves = "a list of more than 4 MiB is sent",
     .matters = "gRPC's default limit of 4 MiB ends the stream on machines with many devices",
     .protocol = "the kubelet takes messages of up to 16 MiB",
     .run = run_large},
};
/* clang-format on */

const struct dv_verify_group dv_plugin_list_cases = {DV_VERIFY_DEVICE_PLUGIN, cases,
                                                     DV_COUNT(cases)};
