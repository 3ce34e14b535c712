/* cri_look.c - looks at single pods: what the runtime has of one, with the status of each. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "cri/cri.h"
#include "cri/cri_keep.h"
#include "cri/cri_list.h"
#include "cri/cri_state.h"
#include "cri/cri_view.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "proto/cri_v1.pb-c.h"

/* How many pods are looked at, and how many statuses of one are asked for, at a time: a runtime
 * with thousands of dead containers still answers others meanwhile. */
#define LOOKS_MAX 16u
#define FETCHES_MAX 4u

/* The status of one sandbox or container, being asked for. */
struct fetch {
    struct dv_cri_call call;
    struct dv_cri_look *look;
    struct dv_cri_item *item; /* NULL: it is free */
};

struct dv_cri_look {
    struct dv_cri_view *view;
    struct dv_cri_record *record;
    uint64_t begun_ns;
    struct dv_call calls[2]; /* the listings, by kind */
    size_t n_running;        /* listings or fetches */
    struct dv_arena *arena;  /* of `list` */
    struct dv_cri_list list;
    size_t n_taken; /* of the list, into `items` */
    struct dv_cri_items items;
    struct dv_map ids; /* of `items` */
    struct dv_err err; /* code DV_OK: nothing has failed */
    struct fetch fetches[FETCHES_MAX];
};

/* ---- items ---- */

static struct dv_cri_item *new_item(const struct dv_cri_listed *listed)
{
    struct dv_cri_item *item = dv_alloc(sizeof(*item) + listed->id.n + 1 + listed->uid.n);
    char *at = item->text;

    item->kind = listed->kind;
    item->n_refs = 1;
    item->state = listed->state;
    item->id = dv_str_put(listed->id, &at);
    at++;
    item->uid = dv_str_put(listed->uid, &at);
    return item;
}

static void unref_item(struct dv_cri_item *item)
{
    if (--item->n_refs > 0)
        return;
    dv_arena_free(item->arena);
    free(item);
}

static void free_items(struct dv_cri_items *items)
{
    for (size_t i = 0; i < items->n; i++)
        unref_item(items->v[i]);
    dv_vec_fini(items);
}

static void free_look(struct dv_cri_look *look)
{
    dv_arena_free(look->arena);
    dv_map_fini(&look->ids);
    free_items(&look->items);
    free(look);
}

/* ---- records ---- */

struct dv_cri_record *dv_cri_look_record(struct dv_cri_view *view, dv_str uid)
{
    struct dv_cri_record *record = dv_map_get(&view->records, uid);

    if (record)
        return record;
    record = dv_alloc(sizeof(*record) + uid.n);
    memcpy(record->text, uid.p, uid.n);
    record->shown.uid = (dv_str){record->text, uid.n};
    (void)dv_map_set(&view->records, record->shown.uid, record); /* there was none */
    return record;
}

static void set_failed(struct dv_cri_view *view, struct dv_cri_record *record, bool has_failed)
{
    view->n_failed = view->n_failed + has_failed - record->has_failed;
    record->has_failed = has_failed;
}

static int compare_sandboxes(const void *a, const void *b)
{
    const CriV1__PodSandboxStatus *const *first = a;
    const CriV1__PodSandboxStatus *const *second = b;

    if ((*first)->metadata->attempt != (*second)->metadata->attempt)
        return (*first)->metadata->attempt < (*second)->metadata->attempt ? 1 : -1;
    return ((*first)->created_at < (*second)->created_at) -
           ((*first)->created_at > (*second)->created_at);
}

static int compare_containers(const void *a, const void *b)
{
    const CriV1__ContainerStatus *const *first = a;
    const CriV1__ContainerStatus *const *second = b;

    return ((*first)->created_at < (*second)->created_at) -
           ((*first)->created_at > (*second)->created_at);
}

/* Frees what the record has; an id that is another pod's now stays known as that. */
static void clear(struct dv_cri_view *view, struct dv_cri_record *record)
{
    for (size_t i = 0; i < record->items.n; i++)
        if (dv_map_get(&view->items, record->items.v[i]->id) == record->items.v[i])
            (void)dv_map_remove(&view->items, record->items.v[i]->id); /* it is known */
    free_items(&record->items);
    free(record->sandboxes);
    free(record->containers);
    record->sandboxes = NULL;
    record->containers = NULL;
    record->shown = (struct dv_cri_pod){.uid = record->shown.uid};
}

/* Makes the lists that others see, newest first. */
static void show(struct dv_cri_record *record)
{
    size_t n_sandboxes = 0;
    size_t n_containers = 0;

    record->sandboxes = dv_alloc(record->items.n * sizeof(record->sandboxes[0]));
    record->containers = dv_alloc(record->items.n * sizeof(record->containers[0]));
    for (size_t i = 0; i < record->items.n; i++)
        if (record->items.v[i]->kind == DV_CRI_SANDBOX)
            record->sandboxes[n_sandboxes++] = record->items.v[i]->status;
        else
            record->containers[n_containers++] = record->items.v[i]->status;
    qsort(record->sandboxes, n_sandboxes, sizeof(record->sandboxes[0]), compare_sandboxes);
    qsort(record->containers, n_containers, sizeof(record->containers[0]), compare_containers);
    record->shown.sandboxes = record->sandboxes;
    record->shown.n_sandboxes = n_sandboxes;
    record->shown.containers = record->containers;
    record->shown.n_containers = n_containers;
}

void dv_cri_look_forget(struct dv_cri_view *view, struct dv_cri_record *record)
{
    struct dv_cri_look *look = record->look;

    set_failed(view, record, false);
    clear(view, record);
    dv_link_remove(&record->queued);
    dv_link_remove(&record->told);
    (void)dv_map_remove(&view->records, record->shown.uid); /* it is in there */
    if (look)
        free_look(look);
    free(record);
}

/* ---- a look ---- */

/* Takes the place of what was known. An item without a status was gone when it was asked for. */
static void replace(struct dv_cri_look *look)
{
    struct dv_cri_view *view = look->view;
    struct dv_cri_record *record = look->record;

    clear(view, record);
    for (size_t i = 0; i < look->items.n; i++) {
        struct dv_cri_item *item = look->items.v[i];

        if (!item->status) {
            unref_item(item);
            continue;
        }
        *dv_vec_add(&record->items) = item;
        (void)dv_map_set(&view->items, item->id, item); /* the last who says so has the id */
    }
    look->items.n = 0;
    record->taken_ns = look->begun_ns;
    show(record);
}

static void end_look(struct dv_cri_look *look)
{
    struct dv_cri_view *view = look->view;
    struct dv_cri_record *record = look->record;
    bool is_first = record->taken_ns == 0;

    record->look = NULL;
    view->n_looking--;
    if (look->err.code == DV_OK) {
        replace(look);
        dv_cri_view_tell(view, record);
    } else {
        dv_log(DV_LOG_DEBUG, "cri: cannot look at a pod; trying again",
               DV_F_STR("pod", record->shown.uid), DV_F_ERR(&look->err));
        set_failed(view, record, true);
        dv_cri_listing_set_timer(view);
    }
    free_look(look);
    if (record->is_wanted && !record->has_failed)
        dv_list_push(&view->queue, &record->queued);
    if (is_first)
        dv_cri_view_review(view);
    dv_cri_look_start(view);
}

/* What has ended stays as it is, so its status is not asked for again. */
static struct dv_cri_item *find_kept(const struct dv_cri_look *look,
                                     const struct dv_cri_listed *listed)
{
    struct dv_cri_item *item = dv_map_get(&look->view->items, listed->id);
    const CriV1__ContainerStatus *status;

    if (!item || listed->kind != DV_CRI_CONTAINER || item->kind != DV_CRI_CONTAINER ||
        item->state != listed->state || !dv_str_eq(item->uid, listed->uid))
        return NULL;
    status = item->status;
    return status->state == CRI_V1__CONTAINER_STATE__CONTAINER_EXITED ? item : NULL;
}

static void fetch_more(struct dv_cri_look *look);

/* Whether the answer is about what was asked for. */
static bool is_about(const struct fetch *fetch, const char *id)
{
    struct dv_cri_look *look = fetch->look;

    return dv_str_eq(dv_str_from_c(id), fetch->item->id) ||
           dv_fail(&look->err, DV_INTERNAL, "the runtime was asked for %.*s and told of %s",
                   DV_FMT(fetch->item->id), id);
}

/* What is gone has no status. */
static void end_fetch(struct fetch *fetch, const struct dv_err *err)
{
    struct dv_cri_look *look = fetch->look;

    fetch->item = NULL;
    look->n_running--;
    if (look->view->cri->is_closing)
        return;
    if (err && err->code != DV_NOT_FOUND)
        look->err = *err;
    fetch_more(look);
}

static void on_sandbox_status(struct dv_cri_call *call, const void *answer,
                              const struct dv_err *err)
{
    struct fetch *fetch = DV_CONTAINER(call, struct fetch, call);
    const CriV1__PodSandboxStatusResponse *response = answer;

    if (response && is_about(fetch, response->status->id))
        fetch->item->status = dv_cri_keep_sandbox(response->status, &fetch->item->arena);
    end_fetch(fetch, err);
}

static void on_container_status(struct dv_cri_call *call, const void *answer,
                                const struct dv_err *err)
{
    struct fetch *fetch = DV_CONTAINER(call, struct fetch, call);
    const CriV1__ContainerStatusResponse *response = answer;

    if (response && is_about(fetch, response->status->id))
        fetch->item->status = dv_cri_keep_container(response->status, &fetch->item->arena);
    end_fetch(fetch, err);
}

static void start_fetch(struct fetch *fetch, struct dv_cri_look *look, struct dv_cri_item *item)
{
    CriV1__PodSandboxStatusRequest sandbox = CRI_V1__POD_SANDBOX_STATUS_REQUEST__INIT;
    CriV1__ContainerStatusRequest container = CRI_V1__CONTAINER_STATUS_REQUEST__INIT;
    bool is_sandbox = item->kind == DV_CRI_SANDBOX;

    sandbox.pod_sandbox_id = container.container_id = item->id.p;
    fetch->look = look;
    fetch->item = item;
    fetch->call = (struct dv_cri_call){
        .method = is_sandbox ? DV_CRI_POD_SANDBOX_STATUS : DV_CRI_CONTAINER_STATUS,
        .done = is_sandbox ? on_sandbox_status : on_container_status,
    };
    look->n_running++;
    dv_cri_call_start(look->view->cri, &fetch->call, is_sandbox ? &sandbox.base : &container.base);
}

/* Takes the next of the list, each once, also when a runtime lists it twice. Returns false at the
 * end of the list. */
static bool take_next(struct dv_cri_look *look, struct fetch *fetch)
{
    while (look->err.code == DV_OK && look->n_taken < look->list.n) {
        const struct dv_cri_listed *listed = &look->list.v[look->n_taken++];
        struct dv_cri_item *item = find_kept(look, listed);

        if (dv_map_get(&look->ids, listed->id) || !dv_str_eq(listed->uid, look->record->shown.uid))
            continue; /* or a runtime knows no selectors */
        if (item) {
            item->n_refs++;
        } else {
            item = new_item(listed);
            start_fetch(fetch, look, item);
        }
        *dv_vec_add(&look->items) = item;
        (void)dv_map_set(&look->ids, item->id, item); /* it is new there */
        if (fetch->item)
            return true;
    }
    return false;
}

static void fetch_more(struct dv_cri_look *look)
{
    for (size_t i = 0; i < FETCHES_MAX; i++)
        if (!look->fetches[i].item && !take_next(look, &look->fetches[i]))
            break;
    if (look->n_running == 0)
        end_look(look);
}

static struct dv_cri_look *look_of(struct dv_call *call, enum dv_cri_kind kind)
{
    return DV_CONTAINER(call - kind, struct dv_cri_look, calls);
}

static void on_list(struct dv_cri_look *look, enum dv_cri_kind kind, dv_str message)
{
    struct dv_err err;

    if (!dv_cri_list_read(kind, message, look->arena, &look->list, &err))
        look->err = err;
}

static void on_listed(struct dv_cri_look *look, const struct dv_err *err)
{
    if (err && look->err.code == DV_OK)
        look->err = *err;
    if (--look->n_running == 0 && !look->view->cri->is_closing)
        fetch_more(look);
}

static void on_sandboxes(struct dv_call *call, dv_str message)
{
    on_list(look_of(call, DV_CRI_SANDBOX), DV_CRI_SANDBOX, message);
}

static void on_containers(struct dv_call *call, dv_str message)
{
    on_list(look_of(call, DV_CRI_CONTAINER), DV_CRI_CONTAINER, message);
}

static void on_sandboxes_listed(struct dv_call *call, const struct dv_err *err)
{
    on_listed(look_of(call, DV_CRI_SANDBOX), err);
}

static void on_containers_listed(struct dv_call *call, const struct dv_err *err)
{
    on_listed(look_of(call, DV_CRI_CONTAINER), err);
}

static void begin_look(struct dv_cri_view *view, struct dv_cri_record *record)
{
    struct dv_cri_look *look = DV_ALLOC(struct dv_cri_look);
    dv_str uid = record->shown.uid;

    look->view = view;
    look->record = record;
    look->begun_ns = dv_loop_now_ns(view->cri->loop);
    look->arena = dv_arena_new();
    dv_map_init(&look->ids);
    look->n_running = 2;
    look->calls[DV_CRI_SANDBOX] =
        (struct dv_call){.message = on_sandboxes, .done = on_sandboxes_listed};
    look->calls[DV_CRI_CONTAINER] =
        (struct dv_call){.message = on_containers, .done = on_containers_listed};
    record->look = look;
    record->is_wanted = false;
    view->n_looking++;
    dv_cri_listing_call(view->cri, DV_CRI_SANDBOX, uid, &look->calls[DV_CRI_SANDBOX]);
    dv_cri_listing_call(view->cri, DV_CRI_CONTAINER, uid, &look->calls[DV_CRI_CONTAINER]);
}

void dv_cri_look_start(struct dv_cri_view *view)
{
    struct dv_link *link;

    while (view->cri->is_usable && view->n_looking < LOOKS_MAX &&
           (link = dv_list_shift(&view->queue)) != NULL)
        begin_look(view, DV_CONTAINER(link, struct dv_cri_record, queued));
}

void dv_cri_look_want(struct dv_cri_view *view, struct dv_cri_record *record)
{
    set_failed(view, record, false);
    record->is_wanted = true;
    if (!record->look && !dv_link_is_in(&record->queued))
        dv_list_push(&view->queue, &record->queued);
}

void dv_cri_look_retry(struct dv_cri_view *view)
{
    const struct dv_map_entry *entry;
    size_t at = 0;

    while (view->n_failed > 0 && (entry = dv_map_next(&view->records, &at)) != NULL) {
        struct dv_cri_record *record = entry->value;

        if (record->has_failed)
            dv_cri_look_want(view, record);
    }
    dv_cri_look_start(view);
}
