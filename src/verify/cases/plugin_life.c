/* plugin_life.c - cases: how a device plugin ends, what it uses up, and what it makes of calls that
 * nobody should make. */
#include <signal.h>
#include <string.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "pb/pb.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"
#include "verify/cases/cases.h" /* IWYU pragma: keep */
#include "verify/kit/driver_calls.h"
#include "verify/kit/growth.h"
#include "verify/kit/kubelet_side.h"
#include "verify/kit/plugin_link.h"
#include "verify/kit/trial.h"
#include "verify/kit/verify_case.h"
#include "verify/verify.h"

/* For helpers to notice that the plugin has ended, on a busy machine. */
#define HELPERS_MS 1000u
#define LOOK_MS 20u
/* What a round may add: what allocators of all kinds keep, connections that come and go, files that
 * are written in the moment. */
#define GROWTH_KIB_MAX 6144u
#define GROWTH_FDS_MAX 8u
#define GROWTH_FILES_MAX 8u
#define CALL_MS 10000u

static void run_sigterm(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);

    dv_child_must_stop(link->process);
}

static void run_socket_gone(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);

    dv_child_must_stop(link->process);
    if (dv_trial_has_file(trial, link->registration->endpoint))
        dv_trial_fail(trial, "after SIGTERM its socket \"%.*s\" is still there",
                      DV_FMT(link->registration->endpoint));
    if (link->registration->socket.n > 0 && dv_trial_has_file(trial, link->registration->socket))
        dv_trial_fail(trial, "after SIGTERM its socket \"%.*s\" is still there",
                      DV_FMT(link->registration->socket));
}

static void run_stream_ends(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    size_t n = link->list->n_lists;

    dv_child_must_stop(link->process);
    dv_trial_pass(trial, 50);
    for (; n < link->list->n_lists; n = link->list->n_lists)
        if (dv_list_n(link->list) == 0)
            dv_trial_fail(trial, "while it ends it sends an empty list: pods that hold its devices "
                                 "would be told that these are gone");
    if (!link->list->has_ended)
        dv_trial_fail(trial, "after its end ListAndWatch is still open");
}

static size_t n_left(const struct dv_plugin_link *link)
{
    return dv_child_n_members(link->process) + dv_trial_n_orphans(link->trial);
}

static void run_no_children(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);

    dv_child_must_stop(link->process);
    for (unsigned ms = 0; n_left(link) > 0 && ms < HELPERS_MS; ms += LOOK_MS)
        dv_trial_pass(trial, LOOK_MS);
    if (n_left(link) > 0)
        dv_trial_fail(trial, "after its end %zu process(es) that it started still run",
                      n_left(link));
}

/* ---- what it uses up ---- */

struct life {
    struct dv_plugin_link *link;
    const char **ids;
    size_t n_ids;
    unsigned n_cycles;
};

static void allocate(void *ctx)
{
    const struct life *life = ctx;

    if (life->n_ids > 0)
        (void)dv_plugin_allocate(life->link, life->ids, 1);
}

/* One more kubelet: connected, a list, an allocation, gone. */
static void connect_and_allocate(void *ctx)
{
    const struct life *life = ctx;
    struct dv_trial *trial = life->link->trial;
    struct dv_channel *channel = dv_driver_connect(trial, life->link->registration);
    struct dv_list_watch *list = dv_list_start(trial, channel);

    if (!dv_list_wait(list, 0, trial->wait_ms))
        dv_trial_fail(trial, "after many connections no list comes any more: %s", list->err.msg);
    allocate(ctx);
    dv_driver_disconnect(trial, channel);
}

static void connect_at_times(void *ctx)
{
    struct life *life = ctx;

    (life->n_cycles++ % 10 == 0 ? connect_and_allocate : allocate)(ctx);
}

static void check_growth(struct dv_trial *trial, struct dv_growth growth)
{
    struct life life = {.link = dv_plugin_link_begin(trial)};

    life.n_ids = dv_list_healthy(life.link->list, &life.ids);
    growth.trial = trial;
    growth.process = life.link->process;
    growth.ctx = &life;
    dv_growth_check(&growth);
}

static void run_descriptors(struct dv_trial *trial)
{
    check_growth(trial, (struct dv_growth){.what = "its open descriptors",
                                           .of = "connections",
                                           .measure = dv_growth_descriptors,
                                           .max = GROWTH_FDS_MAX,
                                           .cycle = connect_and_allocate});
}

static void run_memory(struct dv_trial *trial)
{
    check_growth(trial, (struct dv_growth){.what = "its memory in KiB",
                                           .of = "allocations",
                                           .measure = dv_growth_memory_kib,
                                           .max = GROWTH_KIB_MAX,
                                           .cycle = connect_at_times});
}

static void run_files(struct dv_trial *trial)
{
    check_growth(trial, (struct dv_growth){.what = "the number of files",
                                           .of = "allocations of one device",
                                           .measure = dv_growth_files,
                                           .max = GROWTH_FILES_MAX,
                                           .cycle = allocate});
}

/* ---- calls that nobody should make ---- */

static void run_unknown_method(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    const DpV1beta1__Empty empty = DP_V1BETA1__EMPTY__INIT;
    struct dv_err err;

    if (dv_driver_ask(trial, link->channel, "/v1beta1.DevicePlugin/OfTheFuture", &empty.base,
                      &dp_v1beta1__empty__descriptor, CALL_MS, &err) ||
        err.code != DV_UNIMPLEMENTED)
        dv_trial_fail(trial, "a method that it cannot know was answered with %s: %s",
                      dv_code_name(err.code), err.msg);
    dv_plugin_check_alive(link, "a call of an unknown method");
}

static void run_unknown_fields(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    /* Field 1000, a text, after a request for one container without devices... */
    static const char extra[] = "\xc2\x3e\x06"
                                "future";
    struct dv_driver_call *call;
    DpV1beta1__AllocateRequest request = DP_V1BETA1__ALLOCATE_REQUEST__INIT;
    DpV1beta1__ContainerAllocateRequest *container;
    char bytes[512];
    const char **ids;
    size_t n;

    if (dv_list_healthy(link->list, &ids) == 0)
        dv_trial_skip(trial, "the plugin has no healthy device");
    container = dv_plugin_container(link, ids, 1);
    request.container_requests = &container;
    request.n_container_requests = 1;
    n = dv_pb_size(&request.base);
    if (n + sizeof(extra) > sizeof(bytes))
        dv_trial_skip(trial, "the ids of devices are very long");
    dv_pb_encode(&request.base, bytes, n);
    memcpy(bytes + n, extra, sizeof(extra) - 1);
    call = dv_driver_start_bytes(trial, link->channel, "/v1beta1.DevicePlugin/Allocate",
                                 (dv_str){bytes, n + sizeof(extra) - 1},
                                 &dp_v1beta1__allocate_response__descriptor, CALL_MS);
    if (!dv_driver_finish(call))
        dv_trial_fail(trial, "a request with a field of a later version was refused: %s",
                      call->err.msg);
}

static void run_garbage(struct dv_trial *trial)
{
    struct dv_plugin_link *link = dv_plugin_link_begin(trial);
    struct dv_driver_call *call =
        dv_driver_start_bytes(trial, link->channel, "/v1beta1.DevicePlugin/Allocate",
                              DV_STR("\x0a\xff\xff\xff\x0f no message"),
                              &dp_v1beta1__allocate_response__descriptor, CALL_MS);

    if (dv_driver_finish(call))
        dv_trial_fail(trial, "Allocate succeeded for bytes that are no message");
    if (call->err.code == DV_DEADLINE_EXCEEDED)
        dv_trial_fail(trial, "bytes that are no message were never answered");
    dv_plugin_check_alive(link, "bytes that are no message");
}

/* clang-format off */
static const struct dv_verify_case cases[] = {
    {.id = "shutdown.sigterm",
     .proves = "SIGTERM ends the plugin in time, also with a kubelet connected",
     .matters = "servers that wait for the end of all calls wait for ListAndWatch, which has none: "
                "every update of the plugin takes 30 s and ends in a kill",
     .protocol = "pods get SIGTERM, and SIGKILL after their grace period",
     .needs = DV_NEEDS_RESTART,
     .run = run_sigterm},
    {.id = "shutdown.socket",
     .proves = "SIGTERM leaves no socket behind",
     .matters = "agents try to connect to sockets that are there; the next plugin fails to bind",
     .protocol = "who ends removes its own sockets",
     .needs = DV_NEEDS_RESTART,
     .run = run_socket_gone},
    {.id = "shutdown.stream",
     .proves = "the stream ends with the plugin, and not with an empty list",
     .matters = "an empty list at the end removes the resource from the node at every update of "
                "the plugin",
     .protocol = "when the stream ends, devices are kept as unhealthy for five minutes, for the "
                 "plugin to come back",
     .needs = DV_NEEDS_RESTART,
     .run = run_stream_ends},
    {.id = "shutdown.processes",
     .proves = "no process of the plugin outlives it",
     .matters = "helpers that hold the device keep the next plugin from opening it",
     .protocol = "a container's processes end with it; those of a service need not",
     .needs = DV_NEEDS_PROCESS,
     .run = run_no_children},
    {.id = "resources.descriptors",
     .proves = "connections that ended leave no descriptor open",
     .matters = "plugins run for months, kubelets restart; one day accept fails with \"too many "
                "open files\"",
     .protocol = "a stream's end is told to the server as a cancelled call",
     .needs = DV_NEEDS_PROCESS,
     .run = run_descriptors},
    {.id = "resources.memory",
     .proves = "memory does not grow with the number of allocations",
     .matters = "a plugin that keeps every request is killed by its memory limit at the worst "
                "moment",
     .protocol = "the kubelet tells nobody when devices are given back: there is nothing to "
                 "remember",
     .needs = DV_NEEDS_PROCESS,
     .run = run_memory},
    {.id = "resources.files",
     .proves = "files do not grow in number with allocations of one device",
     .matters = "a file for each Allocate fills the disk: no call ever removes them",
     .protocol = "there is no opposite of Allocate",
     .needs = DV_NEEDS_PROCESS,
     .run = run_files},
    {.id = "wire.unknown-method",
     .proves = "a method of a later version is UNIMPLEMENTED",
     .matters = "plugins that end, or answer OK, break the first kubelet that has a new call",
     .protocol = "gRPC: UNIMPLEMENTED",
     .run = run_unknown_method},
    {.id = "wire.unknown-fields",
     .proves = "fields of a later version are passed over",
     .matters = "strict decoding refuses every request of a newer kubelet",
     .protocol = "protobuf: unknown fields are ignored",
     .run = run_unknown_fields},
    {.id = "wire.garbage",
     .proves = "bytes that are no message do no harm",
     .matters = "a decoder that panics takes the plugin with it",
     .protocol = "gRPC: an error of any code",
     .run = run_garbage},
};
/* clang-format on */

const struct dv_verify_group dv_plugin_life_cases = {DV_VERIFY_DEVICE_PLUGIN, cases,
                                                     DV_COUNT(cases)};
