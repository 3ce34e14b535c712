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

/* What a job makes of the answers of the runtime and of the kernel's files. All of it is in the
 * report's arena. */
struct making {
    struct dv_work work;
    struct dv_usage_report *report;
    const dv_str *containers; /* what the runtime has answered; NULL: nothing */
    const dv_str *sandboxes;
    struct dv_err runtime; /* why containers are not known; code DV_OK: they are, or nobody asked */
    int64_t now_ns;
    int64_t boot_ns;
    struct dv_usage usage; /* of the machine */
    struct dv_err machine; /* why that is not known; code DV_OK: it is */
};

struct dv_usage_collector {
    const struct dv_node *node;
    struct dv_list wants;
    struct dv_task task; /* tells those who want what is known already */
    struct making making;
    struct dv_cri_call containers;
    struct dv_cri_call sandboxes;
    unsigned n_asked;               /* calls to the runtime that have not ended */
    bool is_running;                /* a collection */
    struct dv_usage_report *report; /* NULL: there is none yet */
    uint64_t report_ms;             /* when it was made; 0: there is none */
    struct dv_usage before;         /* the node's usage at an earlier report, for the rate */
    bool is_stopped;
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* ---- reports ---- */

static struct dv_usage_report *report_new(void)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_usage_report *report = DV_NEW(arena, struct dv_usage_report);

    report->arena = arena;
    report->n_refs = 1;
    return report;
}

struct dv_usage_report *dv_usage_report_ref(struct dv_usage_report *report)
{
    report->n_refs++;
    return report;
}

void dv_usage_report_unref(struct dv_loop *loop, struct dv_usage_report *report)
{
    if (report && --report->n_refs == 0)
        dv_loop_free_arena(loop, report->arena);
}

/* ---- on a worker ---- */

static void read_machine(struct making *making)
{
    struct dv_arena *arena = making->report->arena;
    dv_str stat;
    dv_str meminfo;

    if (!dv_file_read(DV_STR("/proc/stat"), PROC_BYTES_MAX, arena, &stat, &making->machine) ||
        !dv_file_read(DV_STR("/proc/meminfo"), PROC_BYTES_MAX, arena, &meminfo, &making->machine))
        return;
    if (dv_usage_read_node(stat, meminfo, (uint64_t)sysconf(_SC_CLK_TCK), making->now_ns,
                           &making->usage, &making->boot_ns, &making->machine))
        (void)dv_succeed(&making->machine);
}

/* Not every runtime can tell what sandboxes use; their containers' sum is told then. */
static void read_answers(struct making *making)
{
    struct dv_arena *arena = making->report->arena;
    const void *containers = NULL;
    const void *sandboxes = NULL;
    struct dv_err err;

    if (making->containers)
        containers = dv_cri_decode(DV_CRI_LIST_CONTAINER_STATS, *making->containers, arena,
                                   &making->runtime);
    if (making->sandboxes)
        sandboxes = dv_cri_decode(DV_CRI_LIST_POD_SANDBOX_STATS, *making->sandboxes, arena, &err);
    if (containers)
        dv_usage_add_pods(making->report, containers, sandboxes, arena);
}

static void on_work(struct dv_work *work)
{
    struct making *making = DV_CONTAINER(work, struct making, work);

    read_machine(making);
    read_answers(making);
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

static void add_node(struct dv_usage_collector *collector, struct dv_usage_report *report)
{
    report->node = collector->making.usage;
    report->node_started_ns = collector->making.boot_ns;
    report->node.nano_cores = dv_usage_rate(&collector->before, &report->node);
    collector->before = report->node;
}

static struct dv_cri *cri_of(const struct dv_usage_collector *collector)
{
    const struct dv_runner *runner = collector->node->runner;

    return runner ? dv_runner_cri(runner) : NULL;
}

static void complete_report(struct dv_usage_collector *collector, struct dv_usage_report *report)
{
    const struct making *making = &collector->making;
    const struct dv_cri *cri = cri_of(collector);

    report->node_name = dv_str_copy(collector->node->name, report->arena);
    report->is_failed = making->runtime.code != DV_OK;
    if (report->is_failed && making->runtime.code != DV_CANCELLED)
        dv_log(DV_LOG_WARN, "serve: the runtime does not say what containers use",
               DV_F_ERR(&making->runtime));
    if (making->machine.code != DV_OK)
        dv_log(DV_LOG_WARN, "serve: what this machine uses is not known",
               DV_F_ERR(&making->machine));
    else
        add_node(collector, report);
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

        want->done(want, collector->report);
    }
}

/* Ends when it is to be closed and nothing is under way. */
static void close_if_done(struct dv_usage_collector *collector)
{
    dv_closed_fn *closed = collector->closed;
    void *ctx = collector->closed_ctx;

    if (!collector->is_closing || collector->is_running)
        return;
    dv_task_cancel(&collector->task);
    dv_usage_report_unref(collector->node->loop, collector->report);
    free(collector);
    if (closed)
        closed(ctx);
}

static void set_report(struct dv_usage_collector *collector, struct dv_usage_report *report)
{
    dv_usage_report_unref(collector->node->loop, collector->report);
    collector->report = report;
    collector->report_ms = dv_loop_now_ms(collector->node->loop);
}

/* ---- a collection ---- */

static void on_made(struct dv_work *work, const struct dv_err *err)
{
    struct dv_usage_collector *collector =
        DV_CONTAINER(work, struct dv_usage_collector, making.work);
    struct dv_usage_report *report = collector->making.report;

    if (err)
        collector->making.machine = collector->making.runtime = *err;
    collector->is_running = false;
    if (collector->is_stopped) {
        dv_usage_report_unref(collector->node->loop, report);
    } else {
        complete_report(collector, report);
        set_report(collector, report);
    }
    tell(collector);
    close_if_done(collector);
}

static void make_report(struct dv_usage_collector *collector)
{
    struct dv_loop *loop = collector->node->loop;

    collector->making.now_ns = (int64_t)dv_clock_wall_ns(dv_loop_clock(loop));
    dv_work_start(&collector->making.work, loop);
    if (collector->is_stopped)
        dv_work_cancel(&collector->making.work);
}

static void on_answered(struct dv_usage_collector *collector)
{
    if (--collector->n_asked == 0)
        make_report(collector);
}

static void on_containers(struct dv_cri_call *call, const void *answer, const struct dv_err *err)
{
    struct dv_usage_collector *collector =
        DV_CONTAINER(call, struct dv_usage_collector, containers);

    if (err)
        collector->making.runtime = *err;
    collector->making.containers = answer;
    on_answered(collector);
}

static void on_sandboxes(struct dv_cri_call *call, const void *answer, const struct dv_err *err)
{
    struct dv_usage_collector *collector = DV_CONTAINER(call, struct dv_usage_collector, sandboxes);

    (void)err;
    collector->making.sandboxes = answer;
    on_answered(collector);
}

static void ask_runtime(struct dv_usage_collector *collector, struct dv_cri *cri)
{
    static const CriV1__ListContainerStatsRequest containers =
        CRI_V1__LIST_CONTAINER_STATS_REQUEST__INIT;
    static const CriV1__ListPodSandboxStatsRequest sandboxes =
        CRI_V1__LIST_POD_SANDBOX_STATS_REQUEST__INIT;
    struct dv_arena *arena = collector->making.report->arena;

    collector->containers = (struct dv_cri_call){.method = DV_CRI_LIST_CONTAINER_STATS,
                                                 .arena = arena,
                                                 .is_left_encoded = true,
                                                 .done = on_containers};
    collector->sandboxes = (struct dv_cri_call){.method = DV_CRI_LIST_POD_SANDBOX_STATS,
                                                .arena = arena,
                                                .is_left_encoded = true,
                                                .done = on_sandboxes};
    collector->n_asked = 2;
    dv_cri_call_start(cri, &collector->containers, &containers.base);
    dv_cri_call_start(cri, &collector->sandboxes, &sandboxes.base);
}

static void collect(struct dv_usage_collector *collector)
{
    struct dv_cri *cri = cri_of(collector);

    collector->is_running = true;
    collector->making = (struct making){
        .work = {.run = on_work, .done = on_made},
        .report = report_new(),
    };
    if (cri)
        ask_runtime(collector, cri);
    else
        make_report(collector);
}

static void on_task(struct dv_task *task)
{
    tell(DV_CONTAINER(task, struct dv_usage_collector, task));
}

void dv_usage_collector_start(struct dv_usage_collector *collector, struct dv_usage_want *want)
{
    struct dv_loop *loop = collector->node->loop;

    dv_list_push(&collector->wants, &want->link);
    if (collector->is_running)
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
    dv_list_init(&collector->wants);
    return collector;
}

void dv_usage_collector_stop(struct dv_usage_collector *collector)
{
    struct dv_usage_report *failed = report_new();

    failed->is_failed = true;
    collector->is_stopped = true;
    set_report(collector, failed);
    if (!collector->is_running)
        return;
    if (collector->n_asked > 0) {
        dv_cri_call_cancel(&collector->containers);
        dv_cri_call_cancel(&collector->sandboxes);
    } else {
        dv_work_cancel(&collector->making.work);
    }
}

void dv_usage_collector_close(struct dv_usage_collector *collector, dv_closed_fn *closed, void *ctx)
{
    collector->closed = closed;
    collector->closed_ctx = ctx;
    collector->is_closing = true;
    close_if_done(collector);
}
