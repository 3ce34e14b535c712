/* ended.c - pods of the API that are released here before the API knows: remembered, so that a
 * restart in between does not admit them again. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "pod/admission/pods.h"
#include "pod/admission/runs.h"
#include "pod/pod.h"
#include "store/store.h"

/* The deletion of an ended pod's rows, while the store writes it. */
struct forgetting {
    struct dv_store_write write;
    struct dv_store_change changes[2]; /* the mark, and what was told about its containers */
    struct dv_pods *pods;
    char key[];
};

bool dv_pods_has_ended(const struct dv_pods *pods, dv_str uid)
{
    return dv_map_get(&pods->ended, uid) != NULL;
}

void dv_pods_note_ended(struct dv_pods *pods, dv_str uid)
{
    char *copy = dv_alloc(uid.n + 1);

    memcpy(copy, uid.p, uid.n);
    /* frees the copy of an earlier note */
    free(dv_map_set(&pods->ended, (dv_str){copy, uid.n}, copy));
}

void dv_pods_free_ended(struct dv_pods *pods)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&pods->ended, &at)) != NULL;)
        free(entry->value);
    dv_map_fini(&pods->ended);
}

static void on_written(struct dv_store_write *write, const struct dv_err *err)
{
    struct forgetting *forgetting = DV_CONTAINER(write, struct forgetting, write);

    /* the pod is gone from the API, so the next start finds no such pod and deletes the row */
    if (err)
        dv_log(DV_LOG_WARN, "pod: a pod that has ended is still remembered", DV_F_ERR(err));
    dv_pods_end_one(forgetting->pods);
    free(forgetting);
}

void dv_pods_forget_ended(struct dv_pods *pods, dv_str uid)
{
    const dv_str prefix = DV_STR(DV_POD_ENDED_PREFIX);
    char *known = dv_map_get(&pods->ended, uid);
    struct forgetting *forgetting;

    if (!known || pods->is_closing)
        return;
    forgetting = dv_alloc(sizeof(*forgetting) + prefix.n + uid.n);
    memcpy(forgetting->key, prefix.p, prefix.n);
    memcpy(forgetting->key + prefix.n, uid.p, uid.n);
    forgetting->pods = pods;
    forgetting->changes[0] = (struct dv_store_change){
        .kind = DV_STORE_DELETE,
        .table = DV_TABLE_PODS,
        .key = {forgetting->key, prefix.n + uid.n}
    };
    forgetting->changes[1] = (struct dv_store_change){
        .kind = DV_STORE_DELETE,
        .table = DV_TABLE_RUNS,
        .key = {forgetting->key + prefix.n, uid.n}
    };
    forgetting->write.done = on_written;
    (void)dv_map_remove(&pods->ended, uid);
    free(known);
    dv_runs_forget(pods, uid);
    pods->n_under_way++;
    dv_store_write(pods->options.store, &forgetting->write, forgetting->changes,
                   DV_COUNT(forgetting->changes));
}

void dv_pods_forget_all_ended(struct dv_pods *pods, bool (*is_known)(void *ctx, dv_str uid),
                              void *ctx)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str *uids = DV_NEW_ARRAY(arena, dv_str, pods->ended.n);
    const struct dv_map_entry *entry;
    size_t n = 0;

    for (size_t at = 0; (entry = dv_map_next(&pods->ended, &at)) != NULL;)
        if (!is_known(ctx, entry->key))
            uids[n++] = dv_str_copy(entry->key, arena);
    for (size_t i = 0; i < n; i++)
        dv_pods_forget_ended(pods, uids[i]);
}
