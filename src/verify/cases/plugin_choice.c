/* plugin_choice.c - cases: what a device plugin offers by its options. */
#include <string.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"
#include "verify/cases/cases.h" /* IWYU pragma: keep */
#include "verify/kit/kubelet_side.h"
#include "verify/kit/plugin_link.h"
#include "verify/kit/trial.h"
#include "verify/kit/verify_case.h"
#include "verify/verify.h"

static void run_options_agree(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    const struct dv_registration *seen = link->registration;

    if (seen->socket.n > 0 || !seen->has_options)
        dv_trial_skip(trial, "the plugin tells no options when it registers");
    if (seen->wants_prestart != link->options->pre_start_required ||
        seen->has_prefer != link->options->get_preferred_allocation_available)
        dv_trial_fail(trial, "Register and GetDevicePluginOptions tell different options");
}

static void run_options_stable(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    const DpV1beta1__DevicePluginOptions *before = link->options;
    size_t n = dv_kubelet_n_seen(trial);

    dv_child_kill(link->process);
    dv_plugin_link_close(link);
    link->process = dv_child_start(trial);
    link = dv_plugin_link_open(trial, link->process, dv_kubelet_await(trial, n, "after a restart"));
    if (before->pre_start_required != link->options->pre_start_required ||
        before->get_preferred_allocation_available !=
            link->options->get_preferred_allocation_available)
        dv_trial_fail(trial, "after a restart the plugin has other options");
}

/* ---- preferred allocation ---- */

static bool is_in(const char **ids, size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(ids[i], id) == 0)
            return true;
    return false;
}

/* Asks, and holds the answer against what every choice must be. Returns the chosen ids. */
static const DpV1beta1__ContainerPreferredAllocationResponse *
prefer(struct dv_plugin_link *link, const char **available, size_t n_available, const char **must,
       size_t n_must, size_t size)
{
    struct dv_trial *trial = link->trial;
    const DpV1beta1__ContainerPreferredAllocationResponse *chosen;
    DpV1beta1__PreferredAllocationResponse *answer;
    struct dv_err err;

    answer = dv_plugin_try_prefer(link, available, n_available, must, n_must, size, &err);
    if (!answer)
        dv_trial_fail(trial, "GetPreferredAllocation is offered, and failed for %zu of %zu: %s",
                      size, n_available, err.msg);
    if (answer->n_container_responses != 1)
        dv_trial_fail(trial, "GetPreferredAllocation for one container was answered for %zu",
                      answer->n_container_responses);
    chosen = answer->container_responses[0];
    for (size_t i = 0; i < chosen->n_deviceids; i++) {
        if (!is_in(available, n_available, chosen->deviceids[i]))
            dv_trial_fail(trial, "it prefers \"%s\", which is not available", chosen->deviceids[i]);
        if (is_in(chosen->deviceids, i, chosen->deviceids[i]))
            dv_trial_fail(trial, "it prefers \"%s\" twice", chosen->deviceids[i]);
    }
    return chosen;
}

static size_t begin_two(struct dv_trial *trial, struct dv_plugin_link **link, const char ***ids)
{
    size_t n;

    *link = dv_plugin_link_begin(trial);
    n = dv_list_healthy((*link)->list, ids);
    if (n < 2)
        dv_trial_skip(trial, "it needs two healthy devices, and the plugin has %zu", n);
    return n;
}

static void run_prefer_subset(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    const char **ids;
    size_t n = begin_two(trial, &link, &ids);

    (void)prefer(link, ids, n, NULL, 0, 1);
    (void)prefer(link, ids, n - 1, NULL, 0, 1); /* not all that are healthy are free */
    (void)prefer(link, ids + 1, n - 1, NULL, 0, 1);
}

static void run_prefer_size(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    const char **ids;
    size_t n = begin_two(trial, &link, &ids);

    for (size_t size = 1; size <= n; size = size < n && size * 2 > n ? n : size * 2) {
        size_t n_chosen = prefer(link, ids, n, NULL, 0, size)->n_deviceids;

        if (n_chosen > size)
            dv_trial_fail(trial, "asked to choose %zu of %zu it chose %zu", size, n, n_chosen);
        if (size == n)
            break;
    }
}

static void run_prefer_must(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    const char **ids;
    size_t n = begin_two(trial, &link, &ids);

    for (size_t i = 0; i < n && i < 8; i++) {
        const DpV1beta1__ContainerPreferredAllocationResponse *chosen =
            prefer(link, ids, n, &ids[i], 1, 2);

        if (chosen->n_deviceids > 0 && !is_in(chosen->deviceids, chosen->n_deviceids, ids[i]))
            dv_trial_fail(trial, "\"%s\" has to be among the chosen, and is not", ids[i]);
    }
}

static void run_prefer_one_left(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    const char **ids;
    size_t n = begin_two(trial, &link, &ids);

    for (size_t i = 0; i < n && i < 8; i++)
        (void)prefer(link, &ids[i], 1, NULL, 0, 1);
    dv_plugin_check_alive(link, "the choice of one of one");
}

static void run_prefer_none(struct dv_trial *trial)
{
    struct dv_plugin_link *link;
    struct dv_err err;
    const char **ids;

    (void)begin_two(trial, &link, &ids);
    if (!dv_plugin_try_prefer(link, NULL, 0, NULL, 0, 1, &err) && err.code == DV_DEADLINE_EXCEEDED)
        dv_trial_fail(trial, "with nothing to choose from it never answers");
    dv_plugin_check_alive(link, "a choice from nothing");
}

/* ---- before a container starts ---- */

/* A container that is started so many times. */
static void start_container(struct dv_trial *trial, int n_starts)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    struct dv_err err;
    const char **ids;

    if (dv_list_healthy(link->list, &ids) == 0)
        dv_trial_skip(trial, "the plugin has no healthy device");
    (void)dv_plugin_allocate(link, ids, 1);
    for (int i = 0; i < n_starts; i++)
        if (!dv_plugin_try_prestart(link, ids, 1, &err))
            dv_trial_fail(trial, "PreStartContainer is wanted, and failed for start %d: %s", i + 1,
                          err.msg);
}

static void run_prestart(struct dv_trial *trial)
{
    start_container(trial, 1);
}

static void run_prestart_again(struct dv_trial *trial)
{
    start_container(trial, 3);
}

static void run_prestart_unknown(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    char unknown[] = "no-such-device-here";
    const char *ids = unknown;
    struct dv_err err;

    if (dv_plugin_try_prestart(link, &ids, 1, &err))
        dv_trial_fail(trial, "PreStartContainer succeeded for a device that is in no list");
    if (err.code == DV_DEADLINE_EXCEEDED)
        dv_trial_fail(trial, "PreStartContainer for an unknown device was never answered");
    dv_plugin_check_alive(link, "PreStartContainer for an unknown device");
}

/* clang-format off */
static const struct dv_verify_case cases[] = {
    {.id = "options.agree",
     .proves = "Register and GetDevicePluginOptions tell the same",
     .matters = "the kubelet asks, other agents take what was registered: the plugin behaves "
                "differently under the two",
     .protocol = "the options of RegisterRequest are not looked at by the kubelet; "
                 "GetDevicePluginOptions is",
     .needs = DV_NEEDS_CLASSIC,
     .run = run_options_agree},
    {.id = "options.stable",
     .proves = "options are the same after a restart",
     .matters = "PreStartContainer is called, or not, depending on which run registered",
     .protocol = "options belong to the plugin, not to a run of it",
     .needs = DV_NEEDS_RESTART,
     .run = run_options_stable},
    {.id = "prefer.subset",
     .proves = "only devices that are available are preferred, each once",
     .matters = "the kubelet takes the rest of the answer as it is: a device that is in use is "
                "given out again, or the pod fails",
     .protocol = "deviceIDs is a subset of available_deviceIDs",
     .needs = DV_NEEDS_PREFER | DV_NEEDS_TWO,
     .run = run_prefer_subset},
    {.id = "prefer.size",
     .proves = "no more than asked for are preferred",
     .matters = "too many ids make the kubelet's choice one that nobody meant",
     .protocol = "allocation_size says how many",
     .needs = DV_NEEDS_PREFER | DV_NEEDS_TWO,
     .run = run_prefer_size},
    {.id = "prefer.must-include",
     .proves = "what must be included is included",
     .matters = "devices that init containers have are not used again, and the pod takes more than "
                "it asked for",
     .protocol = "must_include_deviceIDs are a part of every answer",
     .needs = DV_NEEDS_PREFER | DV_NEEDS_TWO,
     .run = run_prefer_must},
    {.id = "prefer.one-left",
     .proves = "one of one is chosen",
     .matters = "code that looks for pairs or neighbours fails on the last free device",
     .protocol = "available_deviceIDs may have exactly allocation_size entries",
     .needs = DV_NEEDS_PREFER | DV_NEEDS_TWO,
     .run = run_prefer_one_left},
    {.id = "prefer.none",
     .proves = "a choice from nothing does no harm",
     .matters = "an index into an empty list ends the plugin",
     .protocol = "lists may be empty",
     .needs = DV_NEEDS_PREFER,
     .run = run_prefer_none},
    {.id = "prestart.answers",
     .proves = "PreStartContainer succeeds for an allocated device",
     .matters = "the container's start fails, again and again, with an error that only the "
                "kubelet's log has",
     .protocol = "called before each start of a container when pre_start_required is set; it has "
                 "30 s",
     .needs = DV_NEEDS_PRESTART,
     .run = run_prestart},
    {.id = "prestart.again",
     .proves = "PreStartContainer succeeds for every start of a container",
     .matters = "a container that crashed never starts again",
     .protocol = "restarted containers keep their devices; Allocate is not called again, "
                 "PreStartContainer is",
     .needs = DV_NEEDS_PRESTART,
     .run = run_prestart_again},
    {.id = "prestart.unknown-id",
     .proves = "PreStartContainer refuses an unknown device, and the plugin goes on",
     .matters = "a device that vanished since Allocate crashes the plugin, or the container starts "
                "without it",
     .protocol = "an error keeps the container from starting",
     .needs = DV_NEEDS_PRESTART,
     .run = run_prestart_unknown},
};
/* clang-format on */

const struct dv_verify_group dv_plugin_choice_cases = {DV_VERIFY_DEVICE_PLUGIN, cases,
                                                       DV_COUNT(cases)};
