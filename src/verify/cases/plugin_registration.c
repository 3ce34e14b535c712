/* plugin_registration.c - cases: how a device plugin makes itself known, and stays known. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "base/str.h"
#include "verify/cases/cases.h" /* IWYU pragma: keep */
#include "verify/kit/kubelet_side.h"
#include "verify/kit/plugin_link.h"
#include "verify/kit/trial.h"
#include "verify/kit/verify_case.h"
#include "verify/verify.h"

/* More attempts than this in REFUSED_MS are a busy loop: the kubelet has other things to do. */
#define ATTEMPTS_MAX 20u
#define REFUSED_MS 1000u
/* How long a second instance must be seen to serve: long enough for the first one's clean-up. */
#define OVERLAP_MS 300u
/* How often the time of its first start a driver is waited for that need not come. */
#define STARTS_MAX 4u
/* How long there is no kubelet for a plugin that has begun. */
#define ABSENT_MS 300u
#define LOOK_MS 20u

static void run_in_time(struct dv_trial *trial)
{
    dv_kubelet_open(trial);
    (void)dv_child_start(trial);
    (void)dv_kubelet_await(trial, 0, "after its start");
}

static void run_version(struct dv_trial *trial)
{
    const struct dv_registration *seen;

    dv_kubelet_open(trial);
    (void)dv_child_start(trial);
    seen = dv_kubelet_await(trial, 0, "after its start");
    if (seen->socket.n == 0 && !dv_str_eq(seen->versions[0], DV_STR("v1beta1")))
        dv_trial_fail(trial, "it registered with version \"%.*s\"; the kubelet knows only v1beta1",
                      DV_FMT(seen->versions[0]));
}

static bool is_name_char(char c, bool is_inner)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (is_inner && (c == '-' || c == '_' || c == '.'));
}

static bool is_name(dv_str name, size_t max)
{
    if (name.n == 0 || name.n > max)
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (!is_name_char(name.p[i], i > 0 && i + 1 < name.n))
            return false;
    return true;
}

static void run_resource_name(struct dv_trial *trial)
{
    const struct dv_registration *seen;
    size_t slash;

    dv_kubelet_open(trial);
    (void)dv_child_start(trial);
    seen = dv_kubelet_await(trial, 0, "after its start");
    slash = dv_str_find_char(seen->name, '/');
    if (slash == seen->name.n || !is_name(dv_str_slice(seen->name, 0, slash), 253) ||
        !is_name(dv_str_slice(seen->name, slash + 1, seen->name.n), 63))
        dv_trial_fail(trial, "\"%.*s\" is no resource name such as example.com/device",
                      DV_FMT(seen->name));
    if (dv_str_ends_with(dv_str_slice(seen->name, 0, slash), DV_STR("kubernetes.io")) ||
        dv_str_starts_with(seen->name, DV_STR("requests.")))
        dv_trial_fail(trial, "\"%.*s\" is reserved: names of Kubernetes are not for plugins",
                      DV_FMT(seen->name));
}

static void run_endpoint(struct dv_trial *trial)
{
    const struct dv_registration *seen;
    struct stat found;

    dv_kubelet_open(trial);
    (void)dv_child_start(trial);
    seen = dv_kubelet_await(trial, 0, "after its start");
    if (seen->told.n == 0 || dv_str_find_char(seen->told, '/') < seen->told.n)
        dv_trial_fail(trial,
                      "its endpoint is \"%.*s\"; it has to be the name of a socket in the "
                      "directory of kubelet.sock, without a path",
                      DV_FMT(seen->told));
    if (stat(dv_str_to_c(seen->endpoint, trial->arena), &found) != 0 || !S_ISSOCK(found.st_mode))
        dv_trial_fail(trial, "its endpoint \"%.*s\" is no socket at the moment it registers",
                      DV_FMT(seen->told));
}

/* The kubelet dials as soon as it has the request: who begins to serve later is lost. */
static void run_serves_first(struct dv_trial *trial)
{
    const struct dv_registration *seen;
    struct dv_plugin_link *link;

    trial->manners.holds = true;
    dv_kubelet_open(trial);
    link = NULL;
    {
        struct dv_child *process = dv_child_start(trial);

        seen = dv_kubelet_await(trial, 0, "after its start");
        link = dv_plugin_link_open(trial, process, seen);
    }
    dv_kubelet_let_go(trial);
    dv_plugin_check_alive(link, "the answer to Register");
}

/* For a plugin to have started, though nothing may tell; machines and languages differ. */
static uint64_t settle_ms(const struct dv_trial *trial)
{
    return OVERLAP_MS + STARTS_MAX * trial->facts.start_ms;
}

/* Whether anything tells that the plugin has begun: its end, or a socket. */
static bool has_begun(struct dv_trial *trial, const struct dv_child *process)
{
    return process->has_ended || dv_trial_list(trial, trial->paths.device_plugins).n > 0 ||
           dv_trial_list(trial, trial->paths.registry).n > 0;
}

static void run_late_kubelet(struct dv_trial *trial)
{
    struct dv_child *process = dv_child_start(trial);
    uint64_t start_ms = dv_trial_now_ms(trial);

    process->may_end = true; /* some end, to be started again; then we do that */
    while (!has_begun(trial, process) && dv_trial_now_ms(trial) - start_ms < settle_ms(trial))
        dv_trial_pass(trial, LOOK_MS);
    dv_trial_pass(trial, ABSENT_MS);
    dv_kubelet_open(trial);
    if (process->has_ended)
        process = dv_child_start(trial);
    process->may_end = false;
    (void)dv_plugin_link_open(
        trial, process, dv_kubelet_await(trial, 0, "after a kubelet came that was not there"));
}

struct comeback {
    const struct dv_trial *trial;
    size_t n;
};

static bool is_back(void *ctx)
{
    const struct comeback *comeback = ctx;

    return dv_kubelet_n_seen(comeback->trial) > comeback->n;
}

/* Waits for the next registration, by this process or by the one that takes its place. */
static struct dv_plugin_link *await_comeback(struct dv_trial *trial, struct dv_child *process,
                                             size_t n, const char *what)
{
    struct comeback comeback = {trial, n};

    if (!dv_child_wait_reviving(&process, trial, is_back, &comeback, trial->wait_ms, what))
        dv_trial_fail(trial, "the plugin did not register again within %llu ms %s",
                      (unsigned long long)trial->wait_ms, what);
    if (process)
        process->may_end = false;
    return dv_plugin_link_open(trial, process, dv_kubelet_await(trial, n, what));
}

static void run_kubelet_restart(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);

    if (link->process)
        link->process->may_end = true;
    dv_plugin_link_close(link);
    dv_kubelet_restart(trial);
    (void)await_comeback(trial, link->process, 0, "after a restart of the kubelet");
}

static void run_kubelet_restarts_twice(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);

    for (int i = 0; i < 2; i++) {
        if (link->process)
            link->process->may_end = true;
        dv_plugin_link_close(link);
        dv_kubelet_restart(trial);
        link = await_comeback(trial, link->process, 0,
                              i == 0 ? "after a restart of the kubelet"
                                     : "after a second restart of the kubelet");
    }
}

static void run_stale_socket(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    dv_str endpoint = link->registration->endpoint;
    size_t n = dv_kubelet_n_seen(trial);

    dv_child_kill(link->process);
    dv_plugin_link_close(link);
    if (!dv_trial_has_file(trial, endpoint))
        dv_trial_skip(trial, "a killed plugin leaves no socket behind");
    link->process = dv_child_start(trial);
    (void)dv_plugin_link_open(
        trial, link->process,
        dv_kubelet_await(trial, n, "with the socket of its last run in place"));
}

/* Plugins have two signs that a kubelet was restarted: their socket is gone, and kubelet.sock is
 * another one. Who looks for the second alone is right, as kubelets give both. */
static void run_socket_removed(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    struct comeback comeback = {trial, dv_kubelet_n_seen(trial)};
    struct dv_child *process = link->process;

    (void)remove(dv_str_to_c(link->registration->endpoint, trial->arena)); /* it was just used */
    if (dv_child_wait_reviving(&process, trial, is_back, &comeback, trial->wait_ms,
                               "its new socket")) {
        (void)await_comeback(trial, process, comeback.n, "after its socket was removed");
        return;
    }
    dv_plugin_link_close(link);
    dv_kubelet_restart(trial);
    (void)await_comeback(trial, process, 0,
                         "after its socket was removed, and after a restart of the kubelet");
    dv_trial_skip(trial,
                  "it does not miss its socket, but comes back when kubelet.sock is made anew, as "
                  "kubelets do; to ask for more: --require register.socket-removed");
}

static bool was_refused(void *ctx)
{
    const struct dv_trial *trial = ctx;

    return trial->kubelet->n_refused > 0;
}

/* Starts the plugin with a kubelet that does not want it, and waits until it was told. */
static struct dv_child *start_refused(struct dv_trial *trial)
{
    struct dv_child *process;

    trial->manners.refuses = true;
    dv_kubelet_open(trial);
    process = dv_child_start(trial);
    process->may_end = true;
    if (!dv_trial_wait(trial, was_refused, trial, "an attempt to register"))
        dv_trial_fail(trial, "the plugin did not try to register");
    return process;
}

static void run_refused(struct dv_trial *trial)
{
    struct dv_child *process = start_refused(trial);

    dv_trial_pass(trial, REFUSED_MS);
    if (trial->kubelet->n_refused > ATTEMPTS_MAX)
        dv_trial_fail(trial, "refused, it tried again %zu times in %u ms: it has to wait between",
                      trial->kubelet->n_refused, REFUSED_MS);
    trial->manners.refuses = false;
    (void)await_comeback(trial, process, 0, "after the kubelet had refused it before");
}

/* The second may take over at once, or wait for the first one's end: then the kubelet has to hear
 * of it. Who is connected does not miss a socket's name. */
static void run_two_instances(struct dv_trial *trial)
{
    struct dv_plugin_link *first = dv_plugin_link_begin(trial);
    size_t n = dv_kubelet_n_seen(trial);
    struct dv_child *second = dv_child_start(trial);
    const struct dv_registration *seen;
    struct dv_plugin_link *link = NULL;

    first->process->may_end = true;
    second->may_end = true; /* one that ends because the first is there is started again */
    seen = dv_kubelet_try(trial, n, settle_ms(trial));
    if (seen)
        link = dv_plugin_link_open(trial, second, seen);
    if (!dv_child_stop(first->process))
        dv_child_kill(first->process);
    dv_trial_pass(trial, OVERLAP_MS);
    if (!link || second->has_ended)
        link = await_comeback(trial, second, seen ? dv_kubelet_n_seen(trial) : n,
                              "as the second instance, after the first had ended");
    dv_plugin_check_alive(link, "the end of the first instance");
    n = dv_kubelet_n_seen(trial);
    if (!dv_trial_has_file(trial, link->registration->endpoint) &&
        !dv_kubelet_try(trial, n, trial->wait_ms))
        dv_trial_skip(trial, "the first instance removed the socket of the second when it ended: a "
                             "kubelet that is connected does not notice, and DaemonSets have one "
                             "instance at a time; with maxSurge: --require register.two-instances");
}

static void run_notify_false(struct dv_trial *trial)
{
    struct dv_child *process = start_refused(trial);

    dv_trial_pass(trial, OVERLAP_MS);
    trial->manners.refuses = false;
    (void)await_comeback(trial, process, 0, "after NotifyRegistrationStatus(false)");
}

static void run_restarts(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);

    for (int i = 0; i < 3; i++) {
        size_t n = dv_kubelet_n_seen(trial);

        if (!dv_child_stop(link->process))
            dv_child_kill(link->process);
        dv_plugin_link_close(link);
        link->process = dv_child_start(trial);
        link = dv_plugin_link_open(trial, link->process,
                                   dv_kubelet_await(trial, n, "after a restart"));
    }
}

/* clang-format off */
static const struct dv_verify_case cases[] = {
    {.id = "register.in-time",
     .proves = "the plugin registers by itself soon after its start",
     .matters = "a plugin that waits for something else first never gets a device allocated, and "
                "says so nowhere but in its own log",
     .protocol = "v1beta1.Registration/Register on kubelet.sock, or a socket in plugins_registry "
                 "that answers GetInfo",
     .run = run_in_time},
    {.id = "register.version",
     .proves = "the plugin offers version v1beta1",
     .matters = "a plugin that offers another version is refused, and the node never has its "
                "devices",
     .protocol = "the kubelet answers every version but \"v1beta1\" with an error",
     .run = run_version},
    {.id = "register.resource-name",
     .proves = "the resource name is a qualified name outside of kubernetes.io",
     .matters = "the kubelet refuses other names, and the node never shows the resource",
     .protocol = "extended resources are DOMAIN/NAME; names in kubernetes.io and those that begin "
                 "with \"requests.\" are not for plugins",
     .run = run_resource_name},
    {.id = "register.endpoint",
     .proves = "the endpoint is the plain name of a socket that exists",
     .matters = "plugins that send a whole path work with some kubelets by accident: the directory "
                "is put before it",
     .protocol = "endpoint is relative to the directory of kubelet.sock",
     .needs = DV_NEEDS_CLASSIC,
     .run = run_endpoint},
    {.id = "register.serves-first",
     .proves = "the plugin serves before it registers, and while it waits for the answer",
     .matters = "the kubelet dials the endpoint at once; a plugin that begins to serve afterwards, "
                "or in the same thread, is marked as gone or blocks its own registration",
     .protocol = "GetDevicePluginOptions and ListAndWatch may come before Register is answered",
     .needs = DV_NEEDS_CLASSIC,
     .run = run_serves_first},
    {.id = "register.late-kubelet",
     .proves = "the plugin registers when the kubelet comes later",
     .matters = "after a reboot the order is not known; a plugin that tries once is never seen",
     .protocol = "kubelet.sock is made when the kubelet starts; until then there is nobody to "
                 "register with",
     .needs = DV_NEEDS_RESTART | DV_NEEDS_CLASSIC,
     .run = run_late_kubelet},
    {.id = "register.kubelet-restart",
     .proves = "the plugin registers again after the kubelet was restarted",
     .matters = "the best known failure of device plugins: after an update of the kubelet the node "
                "has 0 devices until somebody restarts the plugin",
     .protocol = "at its start the kubelet removes all sockets in its directory and knows no "
                 "plugin; plugins have to watch for kubelet.sock, serve anew and register again "
                 "(or end, to be restarted)",
     .needs = DV_NEEDS_CLASSIC,
     .run = run_kubelet_restart},
    {.id = "register.kubelet-restart-twice",
     .proves = "the plugin notices every restart of the kubelet",
     .matters = "plugins that watch an inode, or stop watching after the first event, miss the "
                "second restart",
     .protocol = "as register.kubelet-restart",
     .needs = DV_NEEDS_CLASSIC,
     .run = run_kubelet_restarts_twice},
    {.id = "register.stale-socket",
     .proves = "a socket that a killed plugin left does not stop the next one",
     .matters = "bind fails with \"address already in use\", and the plugin crashes in a loop "
                "until the node is cleaned by hand",
     .protocol = "sockets stay when a process is killed; whoever owns the name removes it before "
                 "it binds",
     .needs = DV_NEEDS_RESTART | DV_NEEDS_CLASSIC,
     .run = run_stale_socket},
    {.id = "register.socket-removed",
     .proves = "the plugin comes back when its socket file is removed",
     .matters = "clean-up scripts and restarting kubelets remove sockets; a plugin that goes on "
                "listening on a socket without a name cannot be reached, and looks healthy",
     .protocol = "the kubelet empties its directory when it starts; the plugin must serve and "
                 "register anew, or end",
     .needs = DV_NEEDS_PROCESS | DV_NEEDS_CLASSIC,
     .run = run_socket_removed},
    {.id = "register.refused",
     .proves = "a refused plugin tries again, with pauses",
     .matters = "plugins that never try again need a restart by hand; those that try without a "
                "pause keep the kubelet and the log busy",
     .protocol = "Register may fail; nothing says that it has to succeed the first time",
     .needs = DV_NEEDS_PROCESS | DV_NEEDS_CLASSIC,
     .run = run_refused},
    {.id = "register.two-instances",
     .proves = "a new instance takes over while the old one still runs",
     .matters = "in a rolling update the old pod removes the socket of the new one when it ends, "
                "and the node loses its devices",
     .protocol = "a registration of the same resource replaces the one before; who ends may remove "
                 "only the socket that is its own",
     .needs = DV_NEEDS_PROCESS | DV_NEEDS_CLASSIC,
     .run = run_two_instances},
    {.id = "register.restarts",
     .proves = "the plugin can be stopped and started again, several times",
     .matters = "locks, sockets or files that a run leaves behind keep the next one from starting",
     .protocol = "every start is a new registration; the kubelet keeps allocations meanwhile",
     .needs = DV_NEEDS_RESTART,
     .run = run_restarts},
    {.id = "register.notify-false",
     .proves = "a plugin that was told NotifyRegistrationStatus(false) stays there for the next "
               "attempt",
     .matters = "a plugin that removes its socket when it is refused, or ends and is not started "
                "again, is never tried again",
     .protocol = "the kubelet tries again by itself, 500 ms later and then less often, as long as "
                 "the socket is there",
     .needs = DV_NEEDS_PROCESS | DV_NEEDS_WATCHER,
     .run = run_notify_false},
};
/* clang-format on */

const struct dv_verify_group dv_plugin_registration_cases = {DV_VERIFY_DEVICE_PLUGIN, cases,
                                                             DV_COUNT(cases)};
