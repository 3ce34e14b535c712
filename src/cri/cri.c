/* cri.c - the channel to the runtime: the greeting after each connect, and Status every 5 s. */
#include "cri/cri.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/num.h"
#include "base/str.h"
#include "cri/cri_able.h"
#include "cri/cri_state.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "proto/cri_v1.pb-c.h"

/* The reference's limit for all messages of a runtime. */
#define MESSAGE_BYTES_MAX (16u << 20)
/* As the reference connects to a runtime. */
#define RECONNECT_FIRST_MS 100u
#define RECONNECT_MAX_MS 3000u
#define STATUS_PERIOD_MS 5000u
/* After a step of the greeting failed. */
#define GREETING_RETRY_MS 1000u
#define RETRY_JITTER_PER_MILLE 200u
/* So long without a good Status, and the node is not ready. */
#define DOWN_AFTER_MS 30000u

dv_str dv_cri_find(void)
{
    static const char *const places[] = {
        "/run/containerd/containerd.sock",
        "/run/crio/crio.sock",
        "/var/run/crio/crio.sock",
    };
    struct stat info;

    for (size_t i = 0; i < DV_COUNT(places); i++)
        if (stat(places[i], &info) == 0 && S_ISSOCK(info.st_mode))
            return dv_str_from_c(places[i]);
    return DV_STR_NONE;
}

/* ---- what is told ---- */

static void on_state_task(struct dv_task *task)
{
    struct dv_cri *cri = DV_CONTAINER(task, struct dv_cri, state_task);

    cri->options.state_changed(cri->options.ctx);
}

void dv_cri_tell_state(struct dv_cri *cri)
{
    if (cri->options.state_changed && !cri->is_closing)
        dv_task_post(&cri->state_task, cri->loop, on_state_task);
}

const struct dv_cri_runtime *dv_cri_runtime(const struct dv_cri *cri)
{
    return cri->arena ? &cri->runtime : NULL;
}

bool dv_cri_is_connected(const struct dv_cri *cri)
{
    return dv_channel_state(cri->channel) == DV_CHANNEL_READY;
}

bool dv_cri_check_runtime(const struct dv_cri *cri, struct dv_err *err)
{
    const char *silent = cri->good_ms == 0 ? "no answer yet" : "it does not answer";
    const char *cause = cri->call_err.code == DV_OK ? silent : cri->call_err.msg;

    /* What the runtime said itself counts at once; that it says nothing, after a while. */
    if (cri->call_err.code == DV_FAILED_PRECONDITION)
        return dv_fail(err, DV_FAILED_PRECONDITION, "%s", cause);
    if (cri->runtime_err.code != DV_OK) {
        *err = cri->runtime_err;
        return false;
    }
    if (cri->good_ms == 0)
        return dv_fail(err, DV_UNAVAILABLE,
                       "container runtime status check may not have completed yet: %s", cause);
    if (dv_loop_now_ms(cri->loop) - cri->good_ms >= DOWN_AFTER_MS)
        return dv_fail(err, DV_UNAVAILABLE, "container runtime is down: %s", cause);
    return true;
}

bool dv_cri_check_network(const struct dv_cri *cri, struct dv_err *err)
{
    if (cri->network_err.code == DV_OK)
        return true;
    *err = cri->network_err;
    return false;
}

static bool is_news(struct dv_err *told, const struct dv_err *now)
{
    if (told->code == now->code && (now->code == DV_OK || strcmp(told->msg, now->msg) == 0))
        return false;
    *told = *now;
    return true;
}

/* Tells the owner when the checks say something else than before; logs it, because here it is
 * decided that the runtime counts as ready or not. */
static void review(struct dv_cri *cri)
{
    const struct dv_cri_runtime *known = cri->found_arena ? &cri->found : &cri->runtime;
    struct dv_err runtime;
    struct dv_err network;
    bool is_changed;

    if (dv_cri_check_runtime(cri, &runtime))
        (void)dv_succeed(&runtime);
    if (dv_cri_check_network(cri, &network))
        (void)dv_succeed(&network);
    is_changed = is_news(&cri->told_runtime, &runtime);
    is_changed = is_news(&cri->told_network, &network) || is_changed;
    if (!is_changed)
        return;
    if (runtime.code != DV_OK || network.code != DV_OK)
        dv_log(DV_LOG_WARN, "cri: the container runtime is not ready",
               DV_F_ERR(runtime.code != DV_OK ? &runtime : &network));
    else
        dv_log(DV_LOG_INFO, "cri: the container runtime is ready", DV_F_STR("runtime", known->name),
               DV_F_STR("version", known->version));
    dv_cri_tell_state(cri);
}

/* ---- the greeting ---- */

static void ask(struct dv_cri *cri);

static void on_timer(struct dv_timer *timer)
{
    struct dv_cri *cri = DV_CONTAINER(timer, struct dv_cri, timer);

    review(cri);
    ask(cri);
}

static void ask_after(struct dv_cri *cri, uint64_t ms)
{
    dv_timer_start(&cri->timer, cri->loop, dv_loop_now_ms(cri->loop) + ms, on_timer);
}

/* The greeting has told all: what was found counts from now on. */
static void become_usable(struct dv_cri *cri)
{
    dv_arena_free(cri->arena);
    cri->arena = cri->found_arena;
    cri->runtime = cri->found;
    cri->found_arena = NULL;
    cri->is_usable = true;
    dv_cri_tell_state(cri);
    dv_cri_view_begin(&cri->view);
}

/* Takes in the answer to the present step; the next step follows. */
static bool take(struct dv_cri *cri, const void *answer, struct dv_err *err)
{
    if (cri->step == DV_CRI_VERSION) {
        dv_arena_free(cri->found_arena);
        cri->found_arena = dv_arena_new();
        cri->found = (struct dv_cri_runtime){.name = DV_STR("")};
        if (!dv_cri_able_version(answer, cri->found_arena, &cri->found, err))
            return false;
        cri->step = DV_CRI_STATUS;
    } else if (cri->step == DV_CRI_RUNTIME_CONFIG) {
        dv_cri_able_config(answer, &cri->found);
        become_usable(cri);
        cri->step = DV_CRI_STATUS;
    } else {
        if (dv_cri_able_check(answer, "NetworkReady", "container runtime network not ready",
                              &cri->network_err))
            (void)dv_succeed(&cri->network_err);
        if (dv_cri_able_check(answer, "RuntimeReady", "container runtime not ready",
                              &cri->runtime_err)) {
            (void)dv_succeed(&cri->runtime_err);
            cri->good_ms = dv_loop_now_ms(cri->loop);
        }
        if (!cri->is_usable) {
            dv_cri_able_status(answer, cri->found_arena, &cri->found);
            cri->step = DV_CRI_RUNTIME_CONFIG;
        }
    }
    return true;
}

static void on_answer(struct dv_cri_call *call, const void *answer, const struct dv_err *err)
{
    struct dv_cri *cri = DV_CONTAINER(call, struct dv_cri, call);
    const CriV1__RuntimeConfigResponse nothing = CRI_V1__RUNTIME_CONFIG_RESPONSE__INIT;
    bool is_usable = cri->is_usable;

    cri->is_calling = false;
    if (cri->is_closing)
        return;
    if (cri->is_stale) {
        cri->is_stale = false;
        ask(cri);
        return;
    }
    /* Old runtimes do not tell their cgroup driver, and are as good. */
    if (err && err->code == DV_UNIMPLEMENTED && cri->step == DV_CRI_RUNTIME_CONFIG) {
        answer = &nothing;
        err = NULL;
    }
    if (err && err->code == DV_UNIMPLEMENTED && cri->step == DV_CRI_VERSION)
        /* As containerd does in Docker's packages, which switch this service off. */
        (void)dv_fail(&cri->call_err, DV_FAILED_PRECONDITION,
                      "the container runtime does not serve CRI v1 (%s): its plugin \"cri\" may be "
                      "among the disabled_plugins of its configuration",
                      err->msg);
    else if (err)
        cri->call_err = *err;
    else if (take(cri, answer, &cri->call_err))
        (void)dv_succeed(&cri->call_err);
    review(cri);
    if (cri->call_err.code == DV_OK && !is_usable && !cri->is_usable)
        ask(cri);
    else if (cri->is_usable)
        ask_after(cri, STATUS_PERIOD_MS);
    else
        ask_after(cri, dv_jitter(GREETING_RETRY_MS, RETRY_JITTER_PER_MILLE));
}

/* Makes the call of the present step, when there is a connection. */
static void ask(struct dv_cri *cri)
{
    CriV1__VersionRequest version = CRI_V1__VERSION_REQUEST__INIT;
    CriV1__StatusRequest status = CRI_V1__STATUS_REQUEST__INIT;
    CriV1__RuntimeConfigRequest config = CRI_V1__RUNTIME_CONFIG_REQUEST__INIT;
    const struct ProtobufCMessage *request = &status.base;

    /* The next question is due also while the runtime is away or does not answer, to notice that
     * this has been so for long. */
    ask_after(cri, STATUS_PERIOD_MS);
    if (cri->is_calling || !dv_cri_is_connected(cri))
        return;
    /* How the runtime is configured is told only to who asks for more than its state. */
    status.verbose = !cri->is_usable;
    if (cri->step == DV_CRI_VERSION)
        request = &version.base;
    else if (cri->step == DV_CRI_RUNTIME_CONFIG)
        request = &config.base;
    cri->is_calling = true;
    cri->call = (struct dv_cri_call){.method = cri->step, .done = on_answer};
    dv_cri_call_start(cri, &cri->call, request);
}

static void on_channel(void *ctx, enum dv_channel_state state, const struct dv_err *err)
{
    struct dv_cri *cri = ctx;

    if (err)
        cri->call_err = *err;
    cri->is_usable = false;
    cri->step = DV_CRI_VERSION;
    cri->is_stale = cri->is_calling;
    if (state == DV_CHANNEL_READY)
        ask(cri);
    review(cri);
}

/* ---- its life ---- */

struct dv_cri *dv_cri_open(struct dv_loop *loop, const struct dv_cri_options *options,
                           struct dv_err *err)
{
    struct dv_cri *cri = DV_ALLOC(struct dv_cri);
    const struct dv_channel_options channel = {
        .name = DV_STR("container runtime"),
        .message_bytes_max = MESSAGE_BYTES_MAX,
        .backoff_first_ms = RECONNECT_FIRST_MS,
        .backoff_max_ms = RECONNECT_MAX_MS,
        .changed = on_channel,
        .ctx = cri,
    };

    cri->loop = loop;
    cri->options = *options;
    cri->options.path = DV_STR_NONE; /* the channel has a copy */
    (void)dv_fail(&cri->network_err, DV_UNAVAILABLE,
                  "container runtime network not ready: no status yet");
    cri->channel = dv_channel_open(loop, options->path, &channel, err);
    if (!cri->channel) {
        free(cri);
        return NULL;
    }
    dv_cri_view_init(&cri->view, cri);
    ask_after(cri, STATUS_PERIOD_MS);
    return cri;
}

static void on_channel_closed(void *ctx)
{
    struct dv_cri *cri = ctx;
    dv_closed_fn *closed = cri->closed;
    void *closed_ctx = cri->closed_ctx;

    dv_cri_view_fini(&cri->view);
    dv_arena_free(cri->arena);
    dv_arena_free(cri->found_arena);
    free(cri);
    if (closed)
        closed(closed_ctx);
}

void dv_cri_close(struct dv_cri *cri, dv_closed_fn *closed, void *ctx)
{
    cri->is_closing = true;
    cri->closed = closed;
    cri->closed_ctx = ctx;
    dv_timer_cancel(&cri->timer);
    dv_task_cancel(&cri->state_task);
    dv_cri_view_stop(&cri->view);
    dv_channel_close(cri->channel, on_channel_closed, cri);
}
