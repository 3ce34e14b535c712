#include "serve/kubelet/usage_collector.h"

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "cri/cri.h"
#include "pod/runner.h"
#include "proto/cri_v1.pb-c.h"
#include "serve/kubelet/usage.h"
#include "serve/serve.h"

/* How long a report counts. */
#define FRESH_MS 1000u
/* /proc/stat has a line for each CPU and a number for each interrupt. */
#define PROC_BYTES_MAX (1u << 20)

/* What a worker reads of the machine. */
struct machine {
    struct dv_work work;
    struct dv_arena *arena;
    int64_t now_ns;
    struct dv_usage usage;
    int64_t boot_ns;
    struct dv_err err; /* code DV_OK: all was read */
};

struct dv_usage_collector {
    const struct dv_node *node;
    struct dv_list wants;
    struct dv_task task; /* tells those who want what is known already */
    struct machine machine;
    struct dv_cri_call containers;
    struct dv_cri_call sandboxes;
    const CriV1__ListContainerStatsResponse *container_stats;
    const CriV1__ListPodSandboxStatsResponse *sandbox_stats;
    unsigned n_running;     /* parts of a collection that have not ended */
    bool is_failed;         /* the present collection */
    struct dv_arena *arena; /* of the report, and of the answers that it is made of */
    struct dv_usage_report report;
    uint64_t report_ms;     /* when it was made; 0: there is none */
    struct dv_usage before; /* the node's usage at an earlier report, for the rate */
    bool is_stopped;
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* ---- the machine ---- */

static void on_work(struct dv_work *work)
{
    struct machine *machine = DV_CONTAINER(work, struct machine, work);
    dv_str stat;
    dv_str meminfo;

    (void)dv_succeed(&machine->err);
    if (!dv_file_read(DV_STR("/proc/stat"), PROC_BYTES_MAX, machine->arena, &stat, &machine->err) ||
        !dv_file_read(DV_STR("/proc/meminfo"), PROC_BYTES_MAX, machine->arena, &meminfo,
                      &machine->err))
        return;
    if (!dv_usage_read_node(stat, meminfo, (uint64_t)sysconf(_SC_CLK_TCK), machine->now_ns,
                            &machine->usage, &machine->boot_ns, &machine->err))
        machine->usage = (struct dv_usage){0};
}

/* ---- the report ---- */

/* When containers were started is known from the view. */
static void add_starts(struct dv_usage_pod *pod, const struct dv_cri *cri)
{
    const struct dv_cri_pod *seen = dv_cri_view_pod(cri, pod->uid);

    if (!seen)
        return;
    if (seen->n_sandboxes > 0)
        pod->started_ns = seen->sandboxes[0]->created_at;
    for (size_t i = 0; i < pod->n_containers; i++)
        for (size_t k = 0; k < seen->n_containers; k++)
            if (dv_str_eq(pod->containers[i].id, dv_str_from_c(seen->containers[k]->id)))
                pod->containers[i].started_ns = seen->containers[k]->started_at;
}

static void add_node(struct dv_usage_collector *collector)
{
    struct dv_usage_report *report = &collector->report;

    report->node = collector->machine.usage;
    report->node_started_ns = collector->machine.boot_ns;
    report->node.nano_cores = dv_usage_rate(&collector->before, &report->node);
    collector->before = report->node;
}

static void make_report(struct dv_usage_collector *collector)
{
    const struct dv_runner *runner = collector->node->runner;
    const struct dv_cri *cri = runner ? dv_runner_cri(runner) : NULL;
    struct dv_usage_report *report = &collector->report;

    *report = (struct dv_usage_report){.node_name = collector->node->name,
                                       .is_failed = collector->is_failed};
    if (collector->machine.err.code != DV_OK)
        dv_log(DV_LOG_WARN, "serve: what this machine uses is not known",
               DV_F_ERR(&collector->machine.err));
    else
        add_node(collector);
    if (!collector->container_stats)
        return;
    dv_usage_add_pods(report, collector->container_stats, collector->sandbox_stats,
                      collector->arena);
    for (size_t i = 0; cri && i < report->n_pods; i++)
        add_starts(&report->pods[i], cri);
}

static void tell(struct dv_usage_collector *collector)
{
    struct dv_list wants;
    struct dv_link *link;

    dv_list_init(&wants);
    dv_list_move_all(&wants, &collector->wants);
    while ((link = dv_list_shift(&wants)) != NULL) {
        struct dv_usage_want *want = DV_CONTAINER(link, struct dv_usage_want, link);

        want->done(want, &collector->report);
    }
}

/* Ends when it is to be closed and nothing is under way. */
static void close_if_done(struct dv_usage_collector *collector)
{
    dv_closed_fn *closed = collector->closed;
    void *ctx = collector->closed_ctx;

    if (!collector->is_closing || collector->n_running > 0)
        return;
    dv_task_cancel(&collector->task);
    dv_arena_free(collector->arena);
    dv_arena_free(collector->machine.arena);
    free(collector);
    if (closed)
        closed(ctx);
}

static void on_part_ended(struct dv_usage_collector *collector)
{
    if (--collector->n_running > 0)
        return;
    if (!collector->is_stopped)
        make_report(collector);
    collector->report_ms = dv_loop_now_ms(collector->node->loop);
    tell(collector);
    close_if_done(collector);
}

/* ---- a collection ---- */

static void on_machine(struct dv_work *work, const struct dv_err *err)
{
    struct dv_usage_collector *collector =
        DV_CONTAINER(work, struct dv_usage_collector, machine.work);

    if (err)
        collector->machine.err = *err;
    on_part_ended(collector);
}

static void on_containers(struct dv_cri_call *call, const void *answer, const struct dv_err *err)
{
    struct dv_usage_collector *collector =
        DV_CONTAINER(call, struct dv_usage_collector, containers);

    if (err && err->code != DV_CANCELLED)
        dv_log(DV_LOG_WARN, "serve: the runtime does not say what containers use", DV_F_ERR(err));
    collector->is_failed = err != NULL;
    collector->container_stats = answer;
    on_part_ended(collector);
}

/* Not every runtime can tell what sandboxes use; their containers' sum is told then. */
static void on_sandboxes(struct dv_cri_call *call, const void *answer, const struct dv_err *err)
{
    struct dv_usage_collector *collector = DV_CONTAINER(call, struct dv_usage_collector, sandboxes);

    (void)err;
    collector->sandbox_stats = answer;
    on_part_ended(collector);
}

static void ask_runtime(struct dv_usage_collector *collector, struct dv_cri *cri)
{
    static const CriV1__ListContainerStatsRequest containers =
        CRI_V1__LIST_CONTAINER_STATS_REQUEST__INIT;
    static const CriV1__ListPodSandboxStatsRequest sandboxes =
        CRI_V1__LIST_POD_SANDBOX_STATS_REQUEST__INIT;

    collector->containers = (struct dv_cri_call){
        .method = DV_CRI_LIST_CONTAINER_STATS, .arena = collector->arena, .done = on_containers};
    collector->sandboxes = (struct dv_cri_call){
        .method = DV_CRI_LIST_POD_SANDBOX_STATS, .arena = collector->arena, .done = on_sandboxes};
    collector->n_running += 2;
    dv_cri_call_start(cri, &collector->containers, &containers.base);
    dv_cri_call_start(cri, &collector->sandboxes, &sandboxes.base);
}

static void collect(struct dv_usage_collector *collector)
{
    const struct dv_node *node = collector->node;
    struct dv_cri *cri = node->runner ? dv_runner_cri(node->runner) : NULL;

    dv_arena_reset(collector->arena);
    dv_arena_reset(collector->machine.arena);
    collector->report = (struct dv_usage_report){0};
    collector->container_stats = NULL;
    collector->sandbox_stats = NULL;
    collector->is_failed = false;
    collector->machine.now_ns = (int64_t)dv_clock_wall_ns(dv_loop_clock(node->loop));
    collector->machine.work = (struct dv_work){.run = on_work, .done = on_machine};
    collector->n_running = 1;
    dv_work_start(&collector->machine.work, node->loop);
    if (cri)
        ask_runtime(collector, cri);
}

static void on_task(struct dv_task *task)
{
    tell(DV_CONTAINER(task, struct dv_usage_collector, task));
}

void dv_usage_collector_start(struct dv_usage_collector *collector, struct dv_usage_want *want)
{
    struct dv_loop *loop = collector->node->loop;

    dv_list_push(&collector->wants, &want->link);
    if (collector->n_running > 0)
        return; /* it is told with the others */
    if (collector->is_stopped ||
        (collector->report_ms > 0 && dv_loop_now_ms(loop) - collector->report_ms < FRESH_MS))
        dv_task_post(&collector->task, loop, on_task);
    else
        collect(collector);
}

struct dv_usage_collector *dv_usage_collector_new(const struct dv_node *node)
{
    struct dv_usage_collector *collector = DV_ALLOC(struct dv_usage_collector);

    collector->node = node;
    collector->arena = dv_arena_new();
    collector->machine.arena = dv_arena_new();
    dv_list_init(&collector->wants);
    return collector;
}

void dv_usage_collector_stop(struct dv_usage_collector *collector)
{
    collector->is_stopped = true;
    collector->report = (struct dv_usage_report){.is_failed = true};
    if (collector->n_running == 0)
        return;
    dv_work_cancel(&collector->machine.work);
    if (collector->containers.done) {
        dv_cri_call_cancel(&collector->containers);
        dv_cri_call_cancel(&collector->sandboxes);
    }
}

void dv_usage_collector_close(struct dv_usage_collector *collector, dv_closed_fn *closed, void *ctx)
{
    collector->closed = closed;
    collector->closed_ctx = ctx;
    collector->is_closing = true;
    close_if_done(collector);
}
