/* plugin_allocate.c - cases: Allocate. */
#include <string.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "grpc/grpc.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"
#include "verify/cases/cases.h" /* IWYU pragma: keep */
#include "verify/kit/cdi_look.h"
#include "verify/kit/driver_calls.h"
#include "verify/kit/kubelet_side.h"
#include "verify/kit/plugin_gift.h"
#include "verify/kit/plugin_link.h"
#include "verify/kit/trial.h"
#include "verify/kit/verify_case.h"
#include "verify/verify.h"

#define N_PARALLEL 16u
/* A container's start waits for it; the kubelet's own limit is far away. */
#define ALLOCATE_MS 5000u

/* The devices that can be allocated; without any, the case is skipped. */
static size_t begin(struct dv_trial *trial, size_t n_min, struct dv_plugin_link **link,
                    const char ***ids)
{
    size_t n;

    *link = dv_plugin_link_begin(trial);
    n = dv_list_healthy((*link)->list, ids);
    if (n < n_min)
        dv_trial_skip(trial, "it needs %zu healthy device(s), and the plugin has %zu", n_min, n);
    return n;
}

static void run_one(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    uint64_t start_ms;
    const char **ids;

    (void)begin(trial, 1, &link, &ids);
    start_ms = dv_trial_now_ms(trial);
    (void)dv_plugin_allocate(link, ids, 1);
    if (dv_trial_now_ms(trial) - start_ms > ALLOCATE_MS)
        dv_trial_fail(trial, "Allocate took %llu ms; a container's start waits for it",
                      (unsigned long long)(dv_trial_now_ms(trial) - start_ms));
}

static void run_all(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    const char **ids;
    size_t n = begin(trial, 1, &link, &ids);

    (void)dv_plugin_allocate(link, ids, n);
}

/* Of two devices that are told apart, one alone must not be all that both together give. */
static void check_both(struct dv_plugin_link *link, const char **ids)
{
    dv_gift *alone[2] = {dv_plugin_allocate(link, &ids[0], 1),
                         dv_plugin_allocate(link, &ids[1], 1)};
    dv_gift *both = dv_plugin_allocate(link, ids, 2);

    if (dv_gift_is_empty(alone[0]) || dv_gift_is_empty(alone[1]) ||
        dv_gift_is_same(alone[0], alone[1]))
        return;
    for (size_t i = 0; i < 2; i++)
        if (dv_gift_is_same(both, alone[i]))
            dv_trial_fail(link->trial,
                          "asked for \"%s\" and \"%s\", it gives the container no more than for "
                          "\"%s\" alone",
                          ids[0], ids[1], ids[i]);
}

static void run_many(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    const char **ids;
    size_t n = begin(trial, 2, &link, &ids);

    check_both(link, ids);
    (void)dv_plugin_allocate(link, ids + n - 2, 2);
    (void)dv_plugin_allocate(link, ids + n / 4, (n + 1) / 2);
}

static void run_each(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    const char **ids;
    size_t n = begin(trial, 1, &link, &ids);

    for (size_t i = 0; i < n && i < 64; i++)
        (void)dv_plugin_allocate(link, &ids[i], 1);
}

/* Whether answers can be held against each other: a plugin may give each call something of its own,
 * a directory or a word, and then two answers for one device differ. */
static bool repeats_itself(struct dv_plugin_link *link, const char **ids)
{
    dv_gift *first = dv_plugin_allocate(link, ids, 1);

    return dv_gift_is_same(first, dv_plugin_allocate(link, ids, 1));
}

static void run_gives(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    const char **ids;

    (void)begin(trial, 1, &link, &ids);
    if (dv_gift_is_empty(dv_plugin_allocate(link, ids, 1)))
        dv_trial_skip(trial,
                      "Allocate of \"%s\" gives the container nothing, which is right for a plugin "
                      "that only counts; if yours does not: --require allocate.gives",
                      ids[0]);
}

static void run_containers(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    DpV1beta1__ContainerAllocateRequest *containers[2];
    dv_gift *alone[2];
    DpV1beta1__AllocateResponse *answer;
    struct dv_err err;
    const char **ids;
    bool can_compare;

    (void)begin(trial, 2, &link, &ids);
    can_compare = repeats_itself(link, ids);
    for (size_t i = 0; i < 2; i++) {
        alone[i] = dv_plugin_allocate(link, &ids[i], 1);
        containers[i] = dv_plugin_container(link, &ids[i], 1);
    }
    answer = dv_plugin_try_allocate(link, containers, 2, &err);
    if (!answer)
        dv_trial_fail(trial, "Allocate for two containers in one call failed: %s", err.msg);
    if (answer->n_container_responses != 2)
        dv_trial_fail(trial, "Allocate for two containers was answered for %zu",
                      answer->n_container_responses);
    for (size_t i = 0; i < 2; i++)
        if (can_compare && !dv_gift_is_same(answer->container_responses[i], alone[i]))
            dv_trial_fail(trial,
                          "of two containers in one call, container %zu gets something "
                          "else than alone: answers have to be in the order of requests",
                          i);
}

static void run_parallel(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    struct dv_driver_call *calls[N_PARALLEL];
    dv_gift *alone[2];
    const char **ids;
    size_t n = begin(trial, 1, &link, &ids);
    bool can_compare = repeats_itself(link, ids);

    for (size_t i = 0; i < 2; i++)
        alone[i] = dv_plugin_allocate(link, &ids[i % n], 1);
    for (size_t i = 0; i < N_PARALLEL; i++)
        calls[i] = dv_plugin_start_allocate(link, &ids[i % 2 % n], 1);
    for (size_t i = 0; i < N_PARALLEL; i++) {
        const DpV1beta1__AllocateResponse *answer = dv_driver_finish(calls[i]);

        if (!answer)
            dv_trial_fail(trial, "of %u calls of Allocate at a time one failed: %s", N_PARALLEL,
                          calls[i]->err.msg);
        if (answer->n_container_responses != 1 ||
            (can_compare && !dv_gift_is_same(answer->container_responses[0], alone[i % 2])))
            dv_trial_fail(trial, "of %u calls of Allocate at a time, one got the answer of another",
                          N_PARALLEL);
    }
}

static void run_twice(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    dv_gift *gifts[2];
    const char **ids;

    (void)begin(trial, 1, &link, &ids);
    for (size_t i = 0; i < 2; i++)
        gifts[i] = dv_plugin_allocate(link, ids, 1); /* fails when the plugin refuses it */
    for (size_t i = 0; i < gifts[0]->n_devices; i++)
        if (!dv_gift_has_host_path(gifts[1], gifts[0]->devices[i]->host_path))
            dv_trial_fail(trial,
                          "a second Allocate of \"%s\" does not give the device node \"%s\" of the "
                          "first",
                          ids[0], gifts[0]->devices[i]->host_path);
}

static void run_unknown_id(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    char unknown[] = "no-such-device-here";
    const char *one = unknown;
    DpV1beta1__ContainerAllocateRequest *container;
    struct dv_err err;
    const char **ids;

    (void)begin(trial, 0, &link, &ids);
    container = dv_plugin_container(link, &one, 1);
    if (dv_plugin_try_allocate(link, &container, 1, &err))
        dv_trial_fail(trial, "Allocate of a device that is in no list succeeded");
    if (err.code == DV_DEADLINE_EXCEEDED)
        dv_trial_fail(trial, "Allocate of a device that is in no list was never answered");
    dv_plugin_check_alive(link, "Allocate of an unknown device");
}

static void run_no_ids(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    DpV1beta1__ContainerAllocateRequest *container;
    struct dv_err err;
    const char **ids;

    (void)begin(trial, 0, &link, &ids);
    container = dv_plugin_container(link, NULL, 0);
    if (!dv_plugin_try_allocate(link, &container, 1, &err) && err.code == DV_DEADLINE_EXCEEDED)
        dv_trial_fail(trial, "Allocate without ids was never answered");
    if (!dv_plugin_try_allocate(link, NULL, 0, &err) && err.code == DV_DEADLINE_EXCEEDED)
        dv_trial_fail(trial, "Allocate without containers was never answered");
    dv_plugin_check_alive(link, "Allocate without devices");
}

static void check_node(struct dv_trial *trial, const DpV1beta1__DeviceSpec *node)
{
    struct stat found;

    if (node->host_path[0] != '/' || stat(node->host_path, &found) != 0)
        dv_trial_fail(trial, "the device node \"%s\" does not exist on the host", node->host_path);
    if (!S_ISCHR(found.st_mode) && !S_ISBLK(found.st_mode) && !S_ISDIR(found.st_mode))
        dv_trial_fail(trial, "\"%s\" is no device node: share files as mounts", node->host_path);
    if (node->container_path[0] != '/')
        dv_trial_fail(trial, "the container's path \"%s\" is not absolute", node->container_path);
    if (!node->permissions[0] || node->permissions[strspn(node->permissions, "rwm")])
        dv_trial_fail(trial, "the permissions \"%s\" of \"%s\" are not letters of \"rwm\"",
                      node->permissions, node->host_path);
}

static void run_device_nodes(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    dv_gift *answer;
    const char **ids;
    size_t n = begin(trial, 1, &link, &ids);

    answer = dv_plugin_allocate(link, ids, n);
    if (answer->n_devices == 0)
        dv_trial_skip(trial, "the plugin gives no device nodes");
    for (size_t i = 0; i < answer->n_devices; i++)
        check_node(trial, answer->devices[i]);
}

static void run_mounts(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    dv_gift *answer;
    struct stat found;
    const char **ids;
    size_t n = begin(trial, 1, &link, &ids);

    answer = dv_plugin_allocate(link, ids, n);
    if (answer->n_mounts == 0)
        dv_trial_skip(trial, "the plugin gives no mounts");
    for (size_t i = 0; i < answer->n_mounts; i++) {
        const DpV1beta1__Mount *mount = answer->mounts[i];

        if (mount->host_path[0] != '/' || stat(mount->host_path, &found) != 0)
            dv_trial_fail(trial, "the mount's source \"%s\" does not exist on the host",
                          mount->host_path);
        if (mount->container_path[0] != '/')
            dv_trial_fail(trial, "the mount's place \"%s\" is not absolute", mount->container_path);
        for (size_t j = 0; j < i; j++)
            if (strcmp(mount->container_path, answer->mounts[j]->container_path) == 0)
                dv_trial_fail(trial, "two mounts have the place \"%s\"", mount->container_path);
    }
}

static void check_cdi(struct dv_trial *trial,
                      bool (*look)(struct dv_trial *trial, dv_str name, struct dv_err *err))
{
    struct dv_plugin_link *link;
    dv_gift *answer;
    struct dv_err err;
    const char **ids;
    size_t n = begin(trial, 1, &link, &ids);

    answer = dv_plugin_allocate(link, ids, n);
    if (answer->n_cdi_devices == 0)
        dv_trial_skip(trial, "the plugin gives no CDI names");
    for (size_t i = 0; i < answer->n_cdi_devices; i++)
        if (!look(trial, dv_str_from_c(answer->cdi_devices[i]->name), &err))
            dv_trial_fail(trial, "a runtime cannot start the container: %s", err.msg);
}

static void run_cdi_names(struct dv_trial *trial)
{
    check_cdi(trial, dv_cdi_look);
}

static void run_cdi_host(struct dv_trial *trial)
{
    check_cdi(trial, dv_cdi_look_at_host);
}

/* What an environment can hold: execve takes NAME=VALUE. */
static void run_envs(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    dv_gift *answer;
    const char **ids;
    size_t n = begin(trial, 1, &link, &ids);

    answer = dv_plugin_allocate(link, ids, n);
    for (size_t i = 0; i < answer->n_envs; i++)
        if (!answer->envs[i]->key[0] || strchr(answer->envs[i]->key, '='))
            dv_trial_fail(trial, "\"%s\" is no name of an environment variable",
                          answer->envs[i]->key);
    for (size_t i = 0; i < answer->n_annotations; i++)
        if (!answer->annotations[i]->key[0])
            dv_trial_fail(trial, "an annotation has no key");
}

/* What identifies a device to a container: two of them must not look the same. */
static void run_distinct(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    dv_gift *first;
    const char **ids;

    (void)begin(trial, 2, &link, &ids);
    first = dv_plugin_allocate(link, &ids[0], 1);
    if (dv_gift_is_empty(first))
        dv_trial_skip(trial, "the plugin gives containers nothing to compare");
    if (dv_gift_is_same(first, dv_plugin_allocate(link, &ids[1], 1)))
        dv_trial_skip(trial,
                      "\"%s\" and \"%s\" give a container exactly the same, which is right where "
                      "devices are shares of one; if yours are not: --require allocate.distinct",
                      ids[0], ids[1]);
}

static void run_after_kill(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    dv_gift *before;
    dv_gift *after;
    size_t n_seen;
    const char **ids;
    bool can_compare;

    (void)begin(trial, 1, &link, &ids);
    before = dv_plugin_allocate(link, ids, 1);
    can_compare = dv_gift_is_same(before, dv_plugin_allocate(link, ids, 1));
    n_seen = dv_kubelet_n_seen(trial);
    dv_child_kill(link->process);
    dv_plugin_link_close(link);
    link->process = dv_child_start(trial);
    link = dv_plugin_link_open(trial, link->process,
                               dv_kubelet_await(trial, n_seen, "after it was killed"));
    after = dv_plugin_allocate(link, ids, 1);
    if (can_compare && !dv_gift_is_same(before, after))
        dv_trial_fail(trial, "after a kill, Allocate of \"%s\" gives something else than before",
                      ids[0]);
}

static void run_while_listing(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    const char **ids;

    (void)begin(trial, 1, &link, &ids);
    dv_call_cancel(&link->list->call);
    (void)dv_plugin_allocate(link, ids, 1);
}

/* clang-format off */
static const struct dv_verify_case cases[] = {
    {.id = "allocate.one",
     .proves = "one device is allocated, in time",
     .matters = "the first thing every pod with a device needs",
     .protocol = "Allocate has a request for each container, with the ids that it gets",
     .run = run_one},
    {.id = "allocate.many",
     .proves = "several devices, and not all, are allocated for one container, which gets each",
     .matters = "plugins are tried with one device, and pods ask for two: who looks at the first id "
                "alone gives them one",
     .protocol = "a request has the ids of all devices that the container gets",
     .needs = DV_NEEDS_TWO,
     .run = run_many},
    {.id = "allocate.all",
     .proves = "all devices are allocated for one container",
     .matters = "limits on the size of variables or lists show only on full machines",
     .protocol = "any number of devices of the list may be asked for at a time",
     .run = run_all},
    {.id = "allocate.each",
     .proves = "every healthy device can be allocated",
     .matters = "a device that is listed as healthy and cannot be allocated fails every pod that "
                "gets it: the scheduler sends the next one there, too",
     .protocol = "what is listed as Healthy can be allocated",
     .run = run_each},
    {.id = "allocate.gives",
     .proves = "a container gets something for its device",
     .matters = "an empty answer is a success for the kubelet: the pod runs, without its device",
     .protocol = "the answer's nodes, mounts, variables, annotations and CDI names are all that a "
                 "container gets",
     .run = run_gives},
    {.id = "allocate.containers",
     .proves = "several containers in one call are answered in their order",
     .matters = "a plugin that answers for the first container only leaves the second without a "
                "device",
     .protocol = "container_responses has an entry for each of container_requests, in the same "
                 "order",
     .needs = DV_NEEDS_TWO,
     .run = run_containers},
    {.id = "allocate.parallel",
     .proves = "calls at the same time do not disturb each other",
     .matters = "shared variables between handlers give a pod the device of another",
     .protocol = "the kubelet admits pods one after the other, but containers that restart and "
                 "other agents do not wait",
     .run = run_parallel},
    {.id = "allocate.twice",
     .proves = "the same device can be allocated twice",
     .matters = "the kubelet forgets, when its checkpoint is lost or a pod is made anew; a plugin "
                "that counts for itself refuses a device that is free",
     .protocol = "who holds a device is the kubelet's to know, not the plugin's",
     .run = run_twice},
    {.id = "allocate.unknown-id",
     .proves = "an unknown id is refused, and the plugin goes on",
     .matters = "devices go away between list and call; a plugin that crashes takes all its "
                "devices with it, one that says yes starts a pod without a device",
     .protocol = "errors of Allocate reach the pod as UnexpectedAdmissionError",
     .run = run_unknown_id},
    {.id = "allocate.no-ids",
     .proves = "a request without ids or containers does no harm",
     .matters = "an index into an empty list ends the plugin",
     .protocol = "container_requests and devices_ids are lists, which may be empty",
     .run = run_no_ids},
    {.id = "allocate.device-nodes",
     .proves = "device nodes exist, with permissions of rwm",
     .matters = "the runtime fails to start the container, long after the pod was admitted",
     .protocol = "host_path is a device of the host, permissions are letters of r, w and m",
     .run = run_device_nodes},
    {.id = "allocate.mounts",
     .proves = "mounts have sources that exist and places of their own",
     .matters = "the runtime makes an empty directory for a missing source, or fails",
     .protocol = "host_path and container_path are absolute",
     .run = run_mounts},
    {.id = "allocate.cdi-names",
     .proves = "CDI names are well formed, and specs have them",
     .matters = "the runtime knows the name only if a spec file does: \"unresolvable CDI devices\"",
     .protocol = "cdi_devices are names VENDOR/CLASS=DEVICE of specs in the node's CDI directories",
     .run = run_cdi_names},
    {.id = "allocate.cdi-host",
     .proves = "device nodes, mounts and hooks of CDI specs are on the host",
     .matters = "the container's start fails with \"no such file\", long after the pod was admitted",
     .protocol = "hostPath and the paths of hooks are the host's; a device node without its numbers is "
                 "looked up there",
     .run = run_cdi_host},
    {.id = "allocate.envs",
     .proves = "variables and annotations have names",
     .matters = "a name with '=' or without a letter makes the container's start fail",
     .protocol = "envs and annotations are maps of the container's configuration",
     .run = run_envs},
    {.id = "allocate.distinct",
     .proves = "two devices are told apart",
     .matters = "a plugin that ignores the ids gives everybody the same device",
     .protocol = "the ids of the request say which devices the container gets",
     .needs = DV_NEEDS_TWO,
     .run = run_distinct},
    {.id = "allocate.after-kill",
     .proves = "a device is allocated the same way after the plugin was killed",
     .matters = "state in memory only makes a restarted plugin give out something else, or refuse",
     .protocol = "the kubelet keeps allocations over restarts of the plugin",
     .needs = DV_NEEDS_RESTART,
     .run = run_after_kill},
    {.id = "allocate.without-watch",
     .proves = "Allocate works while nobody watches the list",
     .matters = "plugins that serve a kubelet by one loop stop with the stream",
     .protocol = "Allocate and ListAndWatch are calls of their own",
     .run = run_while_listing},
};
/* clang-format on */

const struct dv_verify_group dv_plugin_allocate_cases = {DV_VERIFY_DEVICE_PLUGIN, cases,
                                                         DV_COUNT(cases)};
