#include "serve/node_usage.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/metric.h"
#include "base/num.h"
#include "base/str.h"
#include "loop/loop.h"
#include "rest/rest.h"
#include "serve/kubelet/usage.h"
#include "serve/kubelet/usage_collector.h"
#include "serve/podresources/podres_answer.h"
#include "serve/podresources/podres_known.h"
#include "serve/serve.h"
#include "serve/wire/answer_parts.h"

/* For tens of thousands of held devices; what is more is left out. */
#define PAGE_BYTES_MAX (64u << 20)
/* About the bytes of a pod without containers, and of a container. */
#define POD_BYTES 512u
#define CONTAINER_BYTES 512u

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

/* ---- printing ---- */

/* A page that a worker prints. The call may end meanwhile: nothing of it is read. */
struct page {
    struct dv_parts parts;
    struct dv_arena *arena; /* holds this */
    enum dv_usage_page which;
    struct dv_usage_report *report;
    const struct PodresV1__ListPodResourcesResponse *held; /* for metrics: the devices in use */
    struct dv_buf text;
    size_t n_sent;
};

/* Runs on a worker. The whole page is printed with its first part: its lines are by family and not
 * by pod, so that there is no place to go on from. */
static bool print_page(struct dv_parts *parts, size_t n_bytes, struct dv_buf *part)
{
    struct page *page = DV_CONTAINER(parts, struct page, parts);
    dv_str rest;

    if (page->n_sent == 0 && page->which == DV_USAGE_METRICS)
        dv_usage_print_metrics(page->report, page->held, &page->text);
    else if (page->n_sent == 0)
        dv_usage_print_summary(page->report, page->which == DV_USAGE_SUMMARY, &page->text);
    rest = dv_str_slice(dv_buf_str(&page->text), page->n_sent, page->text.n);
    dv_buf_add(part, dv_str_slice(rest, 0, dv_size_min(n_bytes, rest.n)));
    page->n_sent += dv_size_min(n_bytes, rest.n);
    return page->n_sent == page->text.n;
}

static void free_page(struct dv_parts *parts)
{
    struct page *page = DV_CONTAINER(parts, struct page, parts);

    dv_buf_fini(&page->text);
    dv_usage_report_unref(parts->priv.loop, page->report);
    dv_loop_free_arena(parts->priv.loop, page->arena);
}

static size_t size_of(const struct dv_usage_report *report)
{
    size_t n_containers = 0;

    for (size_t i = 0; i < report->n_pods; i++)
        n_containers += report->pods[i].n_containers;
    return POD_BYTES * (report->n_pods + 1) + CONTAINER_BYTES * n_containers;
}

static void on_collected(struct dv_usage_want *want, struct dv_usage_report *report)
{
    struct usage_call *waiting = DV_CONTAINER(want, struct usage_call, want);
    const struct dv_node *node = waiting->usage->node;
    bool is_metrics = waiting->page == DV_USAGE_METRICS;
    struct dv_arena *arena;
    struct page *page;

    if (waiting->usage->is_stopped) {
        dv_rest_call_reply(waiting->call, 503, DV_STR("davitd is being stopped"));
        return;
    }
    arena = dv_arena_new();
    page = DV_NEW(arena, struct page);
    page->parts.print = print_page;
    page->parts.free = free_page;
    page->arena = arena;
    page->which = waiting->page;
    dv_buf_init(&page->text, PAGE_BYTES_MAX);
    page->report = dv_usage_report_ref(report);
    if (is_metrics) {
        struct dv_podres_node known = dv_podres_known_node(node, arena);

        page->held = dv_podres_list(&known, arena);
    }
    dv_rest_call_add_field(waiting->call, DV_STR("Content-Type"),
                           is_metrics ? DV_STR(DV_METRICS_CONTENT_TYPE)
                                      : DV_STR("application/json"));
    dv_parts_start(&page->parts, node->loop, waiting->call, size_of(report));
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
