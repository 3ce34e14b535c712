#include "support/cri_runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "loop/loop.h"
#include "support/cri_world.h"
#include "support/dvtest.h"

#define MESSAGE_BYTES_MAX (64u << 20)
#define HUGE_BYTES ((16u << 20) + 1024u)
#define SAID_BYTES_MAX (16u << 20)
#define SIGKILLED 137

/* A call that is not answered at once. */
struct late {
    struct dv_link link; /* in the runtime's list, for calls and streams of events alike */
    struct cri_runtime *runtime;
    struct dv_server_call *call;
    struct dv_h2_msg *msg; /* NULL: nothing will be answered */
    char killed[65];       /* the container that ends then; empty: none */
    struct dv_timer timer;
};

static void free_late(struct late *late)
{
    dv_link_remove(&late->link);
    dv_timer_cancel(&late->timer);
    dv_h2_msg_unref(late->msg);
    free(late);
}

static void on_cancelled(void *ctx, struct dv_server_call *call)
{
    free_late(ctx);
    dv_server_call_finish(call, NULL);
}

static struct late *keep(struct cri_runtime *runtime, struct dv_list *list,
                         struct dv_server_call *call)
{
    struct late *late = DV_ALLOC(struct late);

    late->runtime = runtime;
    late->call = call;
    dv_list_push(list, &late->link);
    dv_server_call_on_cancel(call, on_cancelled, late);
    return late;
}

static void on_late(struct dv_timer *timer)
{
    struct late *late = DV_CONTAINER(timer, struct late, timer);
    struct dv_server_call *call = late->call;
    struct dv_h2_msg *msg = late->msg;
    struct cri_container *killed = cri_world_find_container(late->runtime, late->killed);

    if (killed)
        cri_runtime_end(late->runtime, killed, SIGKILLED, "Error");
    late->msg = NULL;
    free_late(late);
    dv_server_call_reply(call, msg);
}

/* The fault that this call has, if any; it is used up. */
static struct cri_fault take_fault(struct cri_fault *fault)
{
    struct cri_fault taken = *fault;

    if (fault->kind != CRI_FINE && fault->n > 0 && --fault->n == 0)
        fault->kind = CRI_FINE;
    return taken;
}

static void finish(struct dv_server_call *call, enum dv_code code, const char *text)
{
    struct dv_err err;

    (void)dv_fail(&err, code, "%s", text ? text : "not today");
    dv_server_call_finish(call, &err);
}

/* Answers without doing anything; false when this fault is of another kind. */
static bool answer_badly(struct cri_runtime *runtime, struct dv_server_call *call,
                         const struct cri_fault *fault)
{
    struct dv_h2_msg *huge;

    if (fault->kind == CRI_FAILS) {
        finish(call, fault->code, fault->text);
    } else if (fault->kind == CRI_HANGS) {
        (void)keep(runtime, &runtime->late, call);
    } else if (fault->kind == CRI_GARBAGE) {
        dv_server_call_reply(call, dv_h2_msg_copy(DV_STR("\xff\xff\xff\xff garbage")));
    } else if (fault->kind == CRI_EMPTY) {
        dv_server_call_reply(call, dv_h2_msg_new(0));
    } else if (fault->kind == CRI_HUGE) {
        huge = dv_h2_msg_new(HUGE_BYTES);
        memset(dv_h2_msg_data(huge), 0, HUGE_BYTES);
        dv_server_call_reply(call, huge);
    } else {
        return false;
    }
    return true;
}

static void reply(struct cri_runtime *runtime, struct dv_server_call *call,
                  const struct cri_fault *fault, const struct cri_answer *answer)
{
    dv_str bytes = dv_buf_str(&answer->bytes);
    uint64_t after_ms = answer->after_ms + (fault->kind == CRI_LATE ? fault->ms : 0);

    if (fault->kind == CRI_TRUNCATED)
        bytes.n = bytes.n / 2 + 1 < bytes.n ? bytes.n / 2 + 1 : bytes.n / 2;
    if (answer->err.code != DV_OK) {
        dv_server_call_finish(call, &answer->err);
    } else if (fault->kind == CRI_LOST) {
        finish(call, fault->code, fault->text);
    } else if (after_ms > 0) {
        struct late *late = keep(runtime, &runtime->late, call);

        late->msg = dv_h2_msg_copy(bytes);
        if (answer->killed)
            memcpy(late->killed, answer->killed->id, sizeof(late->killed));
        dv_timer_start(&late->timer, runtime->loop, dv_loop_now_ms(runtime->loop) + after_ms,
                       on_late);
    } else {
        dv_server_call_reply(call, dv_h2_msg_copy(bytes));
    }
}

static void handle(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct cri_served *served = ctx;
    struct cri_runtime *runtime = served->runtime;
    struct cri_fault fault = take_fault(&runtime->faults[served->method]);
    struct cri_answer answer = {.after_ms = 0};
    char subject[256] = "";

    runtime->n_calls[served->method]++;
    if (answer_badly(runtime, call, &fault)) {
        dv_buf_printf(&runtime->said, "%s\n", dv_cri_method_name(served->method));
        return;
    }
    dv_buf_init(&answer.bytes, MESSAGE_BYTES_MAX);
    cri_world_call(runtime, served->method, request, fault.kind == CRI_ODD_STATE, &answer, subject,
                   sizeof(subject));
    dv_buf_printf(&runtime->said, "%s%s%s\n", dv_cri_method_name(served->method),
                  subject[0] ? " " : "", subject);
    reply(runtime, call, &fault, &answer);
    dv_buf_fini(&answer.bytes);
}

/* ---- events ---- */

static void handle_events(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct cri_runtime *runtime = ctx;

    (void)request;
    runtime->n_events++;
    if (!runtime->has_events)
        finish(call, DV_UNIMPLEMENTED, "unknown method GetContainerEvents");
    else if (runtime->ends_events)
        dv_server_call_finish(call, NULL);
    else
        (void)keep(runtime, &runtime->events, call);
}

void cri_runtime_tell(struct cri_runtime *runtime, const struct cri_container *container, int type)
{
    struct dv_h2_msg *msg;
    struct dv_link *link;
    struct dv_buf buf;
    struct dv_err err;

    if (runtime->loses_events || dv_list_is_empty(&runtime->events))
        return;
    dv_buf_init(&buf, MESSAGE_BYTES_MAX);
    cri_world_print_event(container, type, &buf);
    msg = dv_h2_msg_copy(dv_buf_str(&buf));
    dv_buf_fini(&buf);
    DV_LIST_EACH (&runtime->events, link)
        assert_ok(dv_server_call_send(DV_CONTAINER(link, struct late, link)->call, msg, &err),
                  &err);
    dv_h2_msg_unref(msg);
}

/* ---- its life ---- */

void cri_runtime_init(struct cri_runtime *runtime, struct dv_loop *loop, const char *dir)
{
    *runtime = (struct cri_runtime){
        .version = "0.1.0",
        .name = "containerd",
        .runtime_version = "1.6.20~ds1",
        .images = {"busybox"},
        .loop = loop,
    };
    (void)snprintf(runtime->path, sizeof(runtime->path), "%s/cri.sock", dir);
    dv_list_init(&runtime->sandboxes);
    dv_list_init(&runtime->containers);
    dv_list_init(&runtime->events);
    dv_list_init(&runtime->late);
    dv_buf_init(&runtime->said, SAID_BYTES_MAX);
    for (int i = 0; i < CRI_METHODS; i++) {
        struct cri_served *served = &runtime->served[i];

        served->runtime = runtime;
        served->method = (enum dv_cri_method)i;
        (void)snprintf(served->path, sizeof(served->path), "/runtime.v1.%s/%s",
                       i >= DV_CRI_LIST_IMAGES ? "ImageService" : "RuntimeService",
                       dv_cri_method_name(served->method));
        served->row = (struct dv_method){served->path, handle};
    }
}

void cri_runtime_start(struct cri_runtime *runtime)
{
    static const struct dv_method events = {"/runtime.v1.RuntimeService/GetContainerEvents",
                                            handle_events};
    struct dv_service services[CRI_METHODS + 1];
    const struct dv_server_options options = {
        .name = DV_STR("cri"), .mode = 0600, .services = services, .n_services = CRI_METHODS + 1};
    struct dv_err err;

    for (int i = 0; i < CRI_METHODS; i++)
        services[i] = (struct dv_service){&runtime->served[i].row, 1, &runtime->served[i]};
    services[CRI_METHODS] = (struct dv_service){&events, 1, runtime};
    runtime->server = dv_server_open(runtime->loop, dv_str_from_c(runtime->path), &options, &err);
    assert_ok(runtime->server, &err);
}

void cri_runtime_stop(struct cri_runtime *runtime)
{
    if (!runtime->server)
        return;
    dv_server_close(runtime->server, 0, NULL, NULL);
    runtime->server = NULL;
}

void cri_runtime_fini(struct cri_runtime *runtime)
{
    assert_null(runtime->server);
    cri_world_remove_all(runtime);
    dv_buf_fini(&runtime->said);
}
