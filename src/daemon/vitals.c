#include "daemon/vitals.h"

#include <malloc.h>
#include <stdlib.h>
#include <time.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/num.h"
#include "daemon/service_manager.h"
#include "loop/loop.h"

#define NS_PER_S 1e9
#define US_PER_MS 1000u

/* No request should hold the loop for a twentieth of this (docs/operate.md); one that holds it for
 * so long is a fault of ours, and is logged. */
#define HOLD_WARN_NS 1000000000u

/* Memory is given back when there was some work since the last time, and hardly any in the last
 * REST_MS. How much of it is free is not asked: the C library walks along all free blocks to tell,
 * also the smallest, which takes milliseconds when there are thousands; giving back looks at those
 * of a page and more only. */
#define REST_MS 3000u
#define CALM_CLOCKS (CLOCKS_PER_SEC / 20)
#define WORK_CLOCKS (CLOCKS_PER_SEC / 200)

/* The heaps of the C library: the loop's, and one that all other threads share. Each thread would
 * have one of its own, and the end of such a heap is never given back. */
#define HEAPS_MAX 2
/* What may be left free at the end of a heap. Setting it keeps the C library from raising it, and
 * the limit below, after each large block that is freed. */
#define HEAP_END_BYTES (512 * 1024)
/* Larger blocks are mapped one by one, and unmapped when they are freed. */
#define MAPPED_BYTES (256 * 1024)

struct dv_vitals {
    struct dv_loop *loop;
    struct dv_metrics *metrics;
    struct dv_histogram *holds;
    struct dv_gauge *longest;
    struct dv_gauge *longest_cpu;
    struct dv_loop_hold worst; /* the most of each since the last print, by whichever turn */
    struct dv_timer feed;
    uint64_t feed_ms; /* 0: there is no watchdog */
    struct dv_timer rest;
    clock_t looked;  /* the processor time when it was last thought about giving memory back */
    clock_t trimmed; /* and when it was given back */
    bool is_again;   /* it is given back once more, at the next rest */
};

void dv_vitals_bound_heaps(void)
{
    /* Fails only where the C library has no such setting, and then it is as it is. */
    (void)mallopt(M_ARENA_MAX, HEAPS_MAX);
    (void)mallopt(M_TRIM_THRESHOLD, HEAP_END_BYTES);
    (void)mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
}

static void on_held(void *ctx, const struct dv_loop_hold *hold)
{
    struct dv_vitals *vitals = ctx;

    dv_histogram_observe_ns(vitals->holds, hold->wall_ns);
    vitals->worst.wall_ns = dv_u64_max(vitals->worst.wall_ns, hold->wall_ns);
    vitals->worst.cpu_ns = dv_u64_max(vitals->worst.cpu_ns, hold->cpu_ns);
    if (hold->cpu_ns > HOLD_WARN_NS)
        dv_log(DV_LOG_WARN, "daemon: one turn of the loop took long",
               DV_F_U64("cpu_ms", hold->cpu_ns / 1000000u),
               DV_F_U64("wall_ms", hold->wall_ns / 1000000u));
}

static void collect(void *ctx)
{
    struct dv_vitals *vitals = ctx;

    dv_gauge_set(vitals->longest, (double)vitals->worst.wall_ns / NS_PER_S);
    dv_gauge_set(vitals->longest_cpu, (double)vitals->worst.cpu_ns / NS_PER_S);
    vitals->worst = (struct dv_loop_hold){0};
}

static void feed(struct dv_timer *timer)
{
    struct dv_vitals *vitals = DV_CONTAINER(timer, struct dv_vitals, feed);

    dv_service_manager_feed_watchdog();
    dv_timer_start(timer, vitals->loop, dv_loop_now_ms(vitals->loop) + vitals->feed_ms, feed);
}

/* Gives the memory that was freed back to the system: the C library keeps what lies between memory
 * that is in use. It is done twice, because what was kept for a while only is freed without any
 * work to speak of. */
static void rest(struct dv_timer *timer)
{
    struct dv_vitals *vitals = DV_CONTAINER(timer, struct dv_vitals, rest);
    clock_t now = clock();
    bool has_worked = now - vitals->trimmed >= WORK_CLOCKS;

    if (now - vitals->looked < CALM_CLOCKS && (has_worked || vitals->is_again)) {
        (void)malloc_trim(0); /* whether there was any does not matter */
        vitals->trimmed = clock();
        vitals->is_again = has_worked;
    }
    vitals->looked = now;
    dv_timer_start(timer, vitals->loop, dv_loop_now_ms(vitals->loop) + REST_MS, rest);
}

static void start_watchdog(struct dv_vitals *vitals)
{
    uint64_t limit_us = dv_service_manager_watchdog_us();

    if (limit_us == 0)
        return;
    vitals->feed_ms = limit_us / US_PER_MS / 2;
    if (vitals->feed_ms == 0)
        vitals->feed_ms = 1;
    feed(&vitals->feed);
}

struct dv_vitals *dv_vitals_new(struct dv_loop *loop, struct dv_metrics *metrics)
{
    static const struct dv_family_spec holds = {
        .name = "davit_loop_hold_seconds",
        .help = "Time of a turn of the event loop, in which nobody else is served",
    };
    static const struct dv_family_spec longest = {
        .name = "davit_loop_longest_hold_seconds",
        .help = "Longest turn of the event loop since these metrics were last read",
    };
    static const struct dv_family_spec longest_cpu = {
        .name = "davit_loop_longest_hold_cpu_seconds",
        .help = "Most processor time of one turn since these metrics were last read",
    };
    struct dv_vitals *vitals = DV_ALLOC(struct dv_vitals);

    vitals->loop = loop;
    vitals->metrics = metrics;
    vitals->holds = dv_family_histogram(
        dv_metrics_add_histogram(metrics, &holds, dv_seconds_bounds, DV_SECONDS_BOUNDS), NULL);
    vitals->longest = dv_family_gauge(dv_metrics_add_gauge(metrics, &longest), NULL);
    vitals->longest_cpu = dv_family_gauge(dv_metrics_add_gauge(metrics, &longest_cpu), NULL);
    dv_metrics_add_collector(metrics, collect, vitals);
    dv_loop_watch_holds(loop, on_held, vitals);
    start_watchdog(vitals);
    rest(&vitals->rest);
    return vitals;
}

void dv_vitals_begin(struct dv_vitals *vitals)
{
    vitals->worst = (struct dv_loop_hold){0};
    dv_loop_watch_holds(vitals->loop, on_held, vitals);
}

void dv_vitals_free(struct dv_vitals *vitals)
{
    if (!vitals)
        return;
    dv_timer_cancel(&vitals->feed);
    dv_timer_cancel(&vitals->rest);
    dv_loop_watch_holds(vitals->loop, NULL, NULL);
    dv_metrics_remove_collector(vitals->metrics, collect, vitals);
    free(vitals);
}
