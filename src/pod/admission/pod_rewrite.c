/* pod_rewrite.c - a store that lost what it had gets all pods again, until it has them. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "device/device_manager.h"
#include "loop/loop.h"
#include "pod/admission/pod_row.h"
#include "pod/admission/pods.h"
#include "pod/admission/runs.h"
#include "pod/pod.h"
#include "store/store.h"
#include "store/store_saver.h"

/* The same pauses as in module device: a full disk is often emptied within minutes. */
#define RETRY_FIRST_MS 1000u
#define RETRY_MAX_MS 30000u
#define RETRY_JITTER_PER_MILLE 200u

static dv_str row_of(const struct dv_pod *pod, struct dv_arena *arena)
{
    struct dv_buf text;
    dv_str row;

    if (pod->row.n > 0)
        return dv_str_copy(pod->row, arena);
    dv_buf_init(&text, DV_POD_ROW_BYTES_MAX);
    dv_pod_row_print_object(&pod->spec, pod->object, &text);
    row = dv_str_copy(dv_buf_str(&text), arena); /* it was written before, so it fits */
    dv_buf_fini(&text);
    return row;
}

/* Collects all pods at the moment when the write is put together. These rows come first in the
 * write, so that a release or an admission in the same write overwrites its pod's row. */
static void gather(struct dv_save *save)
{
    struct dv_pods *pods = DV_CONTAINER(save, struct dv_pods, rewrite.save);
    struct dv_arena *arena = dv_arena_new();
    struct dv_store_change *changes = DV_NEW_ARRAY(
        arena, struct dv_store_change, pods->by_uid.n + pods->ended.n + pods->runs.n + 1);
    const struct dv_map_entry *entry;
    size_t n = 0;
    size_t at = 0;

    while ((entry = dv_map_next(&pods->by_uid, &at)) != NULL) {
        const struct dv_pod *pod = entry->value;

        if (pod->was_admitted)
            changes[n++] =
                (struct dv_store_change){DV_STORE_PUT, DV_TABLE_PODS,
                                         dv_str_copy(pod->spec.ref.uid, arena), row_of(pod, arena)};
    }
    at = 0;
    while ((entry = dv_map_next(&pods->ended, &at)) != NULL)
        changes[n++] = (struct dv_store_change){
            DV_STORE_PUT, DV_TABLE_PODS,
            dv_str_printf(arena, DV_POD_ENDED_PREFIX "%.*s", DV_FMT(entry->key)), DV_STR("{}")};
    at = 0;
    while ((entry = dv_map_next(&pods->runs, &at)) != NULL)
        changes[n++] = dv_runs_row(entry->value, arena);
    changes[n++] = (struct dv_store_change){.kind = DV_STORE_REBUILT};
    save->extra = changes;
    save->n_extra = n;
    dv_arena_free(pods->rewrite.arena);
    pods->rewrite.arena = arena;
    dv_device_manager_save_all(pods->options.devices);
}

static void on_retry(struct dv_timer *timer)
{
    dv_pods_save_all(DV_CONTAINER(timer, struct dv_pods, rewrite.timer));
}

static void on_rewritten(struct dv_save *save, const struct dv_err *err)
{
    struct dv_pods *pods = DV_CONTAINER(save, struct dv_pods, rewrite.save);
    struct dv_pod_rewrite *rewrite = &pods->rewrite;

    rewrite->is_lent = false;
    dv_arena_free(rewrite->arena);
    rewrite->arena = NULL;
    if (!err) {
        rewrite->pause_ms = 0;
    } else if (pods->is_closing) {
        dv_log(DV_LOG_ERROR, "pod: cannot write all pods anew", DV_F_ERR(err));
    } else {
        uint64_t pause_ms = rewrite->pause_ms ? rewrite->pause_ms : RETRY_FIRST_MS;

        dv_log(DV_LOG_ERROR, "pod: cannot write all pods anew; trying again", DV_F_ERR(err),
               DV_F_U64("retry_ms", pause_ms));
        rewrite->pause_ms = dv_u64_min(pause_ms * 2, RETRY_MAX_MS);
        dv_timer_start(&rewrite->timer, pods->loop,
                       dv_loop_now_ms(pods->loop) + dv_jitter(pause_ms, RETRY_JITTER_PER_MILLE),
                       on_retry);
    }
    dv_pods_end_one(pods);
}

void dv_pods_save_all(struct dv_pods *pods)
{
    struct dv_pod_rewrite *rewrite = &pods->rewrite;

    dv_timer_cancel(&rewrite->timer);
    if (rewrite->is_lent)
        /* a rewrite that waits will collect all pods as they are then; one that is being written
         * fails and is tried again */
        return;
    rewrite->is_lent = true;
    rewrite->save = (struct dv_save){.done = on_rewritten, .prepare = gather, .comes_first = true};
    pods->n_under_way++;
    dv_device_manager_save(pods->options.devices, &rewrite->save);
}
