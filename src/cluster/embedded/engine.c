/* engine.c - what all files of the embedded API use: the time, the keys of the store, and the
 * one place where a durable change is applied to memory and told to views, watchers and the
 * collector. */
#include "cluster/embedded/engine.h"

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "cluster/embedded/events.h"
#include "cluster/objects/history.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "resource/status.h"

#define NS_PER_S UINT64_C(1000000000)

struct dv_shelf *dv_engine_shelf(struct dv_embedded *embedded, const struct dv_kind *kind)
{
    return &embedded->shelves[kind->id];
}

struct dv_time dv_engine_now(const struct dv_embedded *embedded)
{
    uint64_t ns = dv_clock_wall_ns(dv_loop_clock(embedded->cluster.loop));

    return (struct dv_time){.seconds = (int64_t)(ns / NS_PER_S), .is_set = true};
}

dv_str dv_engine_key(const struct dv_entry *entry, struct dv_arena *arena)
{
    const dv_str parts[] = {entry->shelf->kind->name, DV_STR("/"), dv_entry_key(entry)};

    return dv_str_concat(parts, DV_COUNT(parts), arena);
}

dv_str dv_engine_version_text(uint64_t version, struct dv_arena *arena)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + version % 10);
        version /= 10;
    } while (version > 0);
    return dv_str_copy((dv_str){digits + at, sizeof(digits) - at}, arena);
}

void dv_engine_report_retry(const char *what, const struct dv_api_status *failure)
{
    struct dv_err err;

    dv_status_to_err(failure, &err);
    dv_log(DV_LOG_WARN, "cluster: trying again", DV_F_C("what", what), DV_F_ERR(&err));
}

/* Clients that list and then watch, or come back after a break, do so within this time. */
#define AGE_MS 10000u

static void on_age(struct dv_timer *timer)
{
    struct dv_embedded *embedded = DV_CONTAINER(timer, struct dv_embedded, age);
    bool has_more = false;

    for (size_t i = 0; i < DV_N_KINDS; i++)
        has_more |= dv_history_age(&embedded->shelves[i].history);
    if (has_more)
        dv_timer_start(timer, embedded->cluster.loop,
                       dv_loop_now_ms(embedded->cluster.loop) + AGE_MS, on_age);
}

void dv_engine_apply(struct dv_embedded *embedded, struct dv_entry *entry, struct dv_object *now,
                     uint64_t version)
{
    struct dv_shelf *shelf = entry->shelf;
    struct dv_object *old = dv_shelf_set(entry, now);

    embedded->version = version;
    dv_history_add(&shelf->history, version, old, now);
    if (!dv_timer_is_set(&embedded->age))
        dv_timer_start(&embedded->age, embedded->cluster.loop,
                       dv_loop_now_ms(embedded->cluster.loop) + AGE_MS, on_age);
    dv_kin_change(&embedded->kin, entry, old, now);
    dv_collector_look(embedded, entry, old, now);
    dv_events_look(embedded, entry);
    dv_watchers_wake(embedded, shelf);
    dv_views_tell(embedded, shelf, old, now);
    dv_object_unref(old);
}
