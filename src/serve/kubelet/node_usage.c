#include "serve/node_usage.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/metric.h"
#include "base/str.h"
#include "rest/rest.h"
#include "serve/kubelet/usage.h"
#include "serve/kubelet/usage_collector.h"
#include "serve/podresources/podres_answer.h"
#include "serve/podresources/podres_known.h"

/* For tens of thousands of held devices. */
#define PAGE_BYTES_MAX (64u << 20)

struct dv_node_usage {
    const struct dv_node *node;
    struct dv_usage_collector *collector;
    bool is_stopped;
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* A call that waits; in its arena. */
struct usage_call {
    struct dv_node_usage *usage;
    struct dv_rest_call *call;
    enum dv_usage_page page;
    struct dv_usage_want want;
};

static void on_collected(struct dv_usage_want *want, const struct dv_usage_report *report)
{
    struct usage_call *waiting = DV_CONTAINER(want, struct usage_call, want);
    struct dv_rest_call *call = waiting->call;
    DV_CLEANUP(dv_buf_fini) struct dv_buf body;
    struct dv_err err;

    dv_buf_init(&body, PAGE_BYTES_MAX);
    if (waiting->usage->is_stopped) {
        dv_rest_call_reply(call, 503, DV_STR("davitd is being stopped"));
        return;
    }
    if (waiting->page == DV_USAGE_METRICS) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_podres_node known = dv_podres_known_node(waiting->usage->node, arena);

        dv_usage_print_metrics(report, dv_podres_list(&known, arena), &body);
        dv_rest_call_add_field(call, DV_STR("Content-Type"), DV_STR(DV_METRICS_CONTENT_TYPE));
    } else {
        dv_usage_print_summary(report, waiting->page == DV_USAGE_SUMMARY, &body);
        dv_rest_call_add_field(call, DV_STR("Content-Type"), DV_STR("application/json"));
    }
    if (dv_buf_check(&body, "the answer", &err))
        dv_rest_call_reply_buf(call, 200, &body);
    else
        dv_rest_call_reply(call, 500, dv_str_from_c(err.msg));
}

void dv_node_usage_answer(struct dv_node_usage *usage, struct dv_rest_call *call,
                          enum dv_usage_page page)
{
    struct usage_call *waiting = DV_NEW(dv_rest_call_arena(call), struct usage_call);

    waiting->usage = usage;
    waiting->call = call;
    waiting->page = page;
    waiting->want.done = on_collected;
    dv_usage_collector_start(usage->collector, &waiting->want);
}

struct dv_node_usage *dv_node_usage_new(const struct dv_node *node)
{
    struct dv_node_usage *usage = DV_ALLOC(struct dv_node_usage);

    usage->node = node;
    usage->collector = dv_usage_collector_new(node);
    return usage;
}

void dv_node_usage_stop(struct dv_node_usage *usage)
{
    usage->is_stopped = true;
    dv_usage_collector_stop(usage->collector);
}

static void on_closed(void *ctx)
{
    struct dv_node_usage *usage = ctx;
    dv_closed_fn *closed = usage->closed;
    void *closed_ctx = usage->closed_ctx;

    free(usage);
    if (closed)
        closed(closed_ctx);
}

void dv_node_usage_close(struct dv_node_usage *usage, dv_closed_fn *closed, void *ctx)
{
    usage->closed = closed;
    usage->closed_ctx = ctx;
    dv_usage_collector_close(usage->collector, on_closed, usage);
}
