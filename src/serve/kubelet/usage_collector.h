/* usage_collector.h - finds out what is used when somebody wants to know: asks the runtime, and
 * reads the kernel's files on a worker.
 *
 * One collection is under way at a time, and all who want one meanwhile share it. What was found
 * counts for a second, so that many who ask cost no more than one who does. It takes 10 s at most.
 */
#ifndef DV_SERVE_USAGE_COLLECTOR_H
#define DV_SERVE_USAGE_COLLECTOR_H

#include "base/list.h"
#include "loop/loop.h"

struct dv_node;
struct dv_usage_collector;
struct dv_usage_report;

/* Somebody who wants to know; zeroed, with `done` set, and lent until that has run. */
struct dv_usage_want {
    /* Runs once; the report is borrowed for the call, unless it is kept. */
    void (*done)(struct dv_usage_want *want, struct dv_usage_report *report);
    struct dv_link link;
};

/* Keep the report, and let it go. On the loop's thread. */
struct dv_usage_report *dv_usage_report_ref(struct dv_usage_report *report);
void dv_usage_report_unref(struct dv_loop *loop, struct dv_usage_report *report);

/* `node` is kept. */
struct dv_usage_collector *dv_usage_collector_new(const struct dv_node *node);
/* Gives up what is under way: those who wait, and all who come, are told that it failed. */
void dv_usage_collector_stop(struct dv_usage_collector *collector);
/* It was stopped, and nobody wants anything any more. `closed` may be NULL. */
void dv_usage_collector_close(struct dv_usage_collector *collector, dv_closed_fn *closed,
                              void *ctx);
/* `done` runs later, never from within this. */
void dv_usage_collector_start(struct dv_usage_collector *collector, struct dv_usage_want *want);

#endif
