/* apps_owned.c - what belongs to whom. An index leads from the uid of a controller to what it owns,
 * and from a namespace and a label to what is nobody's, so that a look at an owner costs what is
 * its own and what it might adopt. Another one leads from such a label to whose selectors name it,
 * so that a change of what is nobody's costs what those are that might adopt it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/manager/apps_state.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "control/control_index.h"
#include "control/control_queue.h"
#include "resource/object_pool.h"
#include "resource/resource.h"

static dv_str key_of(const struct dv_api_object_meta *meta, struct dv_arena *arena)
{
    const dv_str parts[] = {meta->namespace, DV_STR("/"), meta->name};

    return dv_str_concat(parts, DV_COUNT(parts), arena);
}

/* The word of what is nobody's in a namespace, and of what has the label there as well. */
static dv_str orphan_word(dv_str namespace, struct dv_arena *arena)
{
    const dv_str parts[] = {DV_STR("nobody's "), namespace};

    return dv_str_concat(parts, DV_COUNT(parts), arena);
}

static dv_str label_word(dv_str namespace, const struct dv_str_entry *label, struct dv_arena *arena)
{
    const dv_str parts[] = {DV_STR("nobody's "), namespace,   DV_STR(" "),
                            label->key,          DV_STR("="), label->value};

    return dv_str_concat(parts, DV_COUNT(parts), arena);
}

void dv_apps_index(struct dv_apps *apps, enum dv_apps_view view, const struct dv_object *object,
                   const struct dv_api_object_meta *meta)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_api_owner_reference *owner = object ? dv_controller_of(meta) : NULL;
    dv_str *words = DV_NEW_ARRAY(scratch, dv_str, meta->n_labels + 1);
    size_t n = 0;

    if (owner) {
        words[n++] = owner->uid;
    } else if (object) {
        words[n++] = orphan_word(meta->namespace, scratch);
        for (size_t i = 0; i < meta->n_labels; i++)
            words[n++] = label_word(meta->namespace, &meta->labels[i], scratch);
    }
    dv_index_set(&apps->owned[view], key_of(meta, scratch), words, n);
}

static dv_str selector_word(dv_str namespace, const struct dv_api_label_selector *selector,
                            struct dv_arena *arena)
{
    return selector && selector->n_match_labels > 0
               ? label_word(namespace, &selector->match_labels[0], arena)
               : orphan_word(namespace, arena);
}

struct dv_object *dv_apps_find(const struct dv_apps *apps, enum dv_apps_view view,
                               struct dv_link *ref)
{
    dv_str key = dv_index_thing(ref);
    size_t at = dv_str_find_char(key, '/');

    return dv_view_get(apps->views[view], dv_str_slice(key, 0, at),
                       dv_str_slice(key, at + 1, key.n));
}

/* What was found, in the sync's arena: of what is to be read later the value is NULL so far. */
struct found {
    DV_VEC(const void *) values;
    DV_VEC(struct dv_object *) objects;
    bool is_unread;
};

/* Holds an object of the view. To read it costs ten times as much as to find it: of many that is
 * the worker's. */
static void hold(struct dv_apps_sync *sync, enum dv_apps_view view, dv_str namespace, dv_str name,
                 struct found *found)
{
    struct dv_object *object = dv_view_get_packed(sync->apps->views[view], namespace, name);
    bool is_later = view == DV_APPS_PODS && sync->controller->reads_pods_later &&
                    sync->held.n >= DV_APPS_ON_LOOP_MAX;

    if (!object)
        return;
    if (is_later)
        *dv_vec_add(&sync->kept) = dv_object_keep(object);
    *dv_vec_add_in(&found->values, sync->arena) = is_later ? NULL : dv_apps_hold(sync, object);
    *dv_vec_add_in(&found->objects, sync->arena) = object;
    found->is_unread |= is_later;
}

/* Holds what is under the word. */
static void gather(struct dv_apps_sync *sync, const struct dv_index *index, enum dv_apps_view view,
                   dv_str word, struct found *found)
{
    const struct dv_list *refs = dv_index_find(index, word);
    struct dv_link *link;

    if (!refs)
        return;
    DV_LIST_EACH (refs, link) {
        dv_str key = dv_index_thing(link);
        size_t at = dv_str_find_char(key, '/');

        hold(sync, view, dv_str_slice(key, 0, at), dv_str_slice(key, at + 1, key.n), found);
    }
}

static const void **end_gathering(struct dv_apps_sync *sync, const struct found *found, size_t *n)
{
    if (found->is_unread)
        *dv_vec_add(&sync->unread) =
            (struct dv_apps_unread){found->values.v, found->objects.v, found->values.n};
    *n = found->values.n;
    return found->values.v;
}

const void **dv_apps_gather_of(struct dv_apps_sync *sync, enum dv_apps_view view,
                               const dv_str *uids, size_t n_uids, size_t *n)
{
    struct found found = {0};

    for (size_t i = 0; i < n_uids; i++)
        gather(sync, &sync->apps->owned[view], view, uids[i], &found);
    return end_gathering(sync, &found, n);
}

const void **dv_apps_gather_owned(struct dv_apps_sync *sync, enum dv_apps_view view,
                                  const struct dv_api_label_selector *selector, size_t *n)
{
    struct found found = {0};

    gather(sync, &sync->apps->owned[view], view, sync->object->meta->uid, &found);
    gather(sync, &sync->apps->owned[view], view,
           selector_word(sync->object->meta->namespace, selector, sync->arena), &found);
    return end_gathering(sync, &found, n);
}

/* ---- queues ---- */

#define OF(view) (1u << (view))
/* The row of budgets: what they look at stays its owner's. */
#define BUDGET_KEEPER 4
/* A budget is looked at so long after one of its pods has changed: others change with it. */
#define BUDGET_PAUSE_MS 50u

/* What looks after objects: a kind, its view and its queue, and the views of what it owns. */
static const struct {
    enum dv_kind_id kind;
    enum dv_apps_view view;
    enum dv_apps_queue queue;
    unsigned owns;
} keepers[] = {
    {DV_KIND_DAEMON_SET,        DV_APPS_DAEMON_SETS,  DV_APPS_DAEMON_QUEUE,
     OF(DV_APPS_PODS) | OF(DV_APPS_REVISIONS)                                                           },
    {DV_KIND_REPLICA_SET,       DV_APPS_REPLICA_SETS, DV_APPS_REPLICA_QUEUE,    OF(DV_APPS_PODS)        },
    {DV_KIND_DEPLOYMENT,        DV_APPS_DEPLOYMENTS,  DV_APPS_DEPLOYMENT_QUEUE, OF(DV_APPS_REPLICA_SETS)},
    {DV_KIND_JOB,               DV_APPS_JOBS,         DV_APPS_JOB_QUEUE,        OF(DV_APPS_PODS)        },
    [BUDGET_KEEPER] = {DV_KIND_DISRUPTION_BUDGET, DV_APPS_BUDGETS,      DV_APPS_BUDGET_QUEUE,     0                       },
};

static const struct dv_api_label_selector *selector_of(const struct dv_object *object)
{
    if (object->kind->id == DV_KIND_DAEMON_SET)
        return ((const struct dv_api_daemon_set *)object->value)->spec.selector;
    if (object->kind->id == DV_KIND_REPLICA_SET)
        return ((const struct dv_api_replica_set *)object->value)->spec.selector;
    if (object->kind->id == DV_KIND_DISRUPTION_BUDGET)
        return ((const struct dv_api_pod_disruption_budget *)object->value)->spec.selector;
    if (object->kind->id == DV_KIND_JOB)
        return ((const struct dv_api_job *)object->value)->spec.selector;
    return ((const struct dv_api_deployment *)object->value)->spec.selector;
}

/* A look at many pods costs more: it is then made less often. */
static uint64_t pause_ms(const struct dv_apps *apps)
{
    size_t n = dv_view_n(apps->views[DV_APPS_NODES]);

    return n > 100 ? n / 10 : 0;
}

/* Whether the selector may match the labels. It is not read as a whole for each change of each
 * object: a look at the owner will, on a worker where it is large. */
static bool may_select(const struct dv_api_label_selector *selector,
                       const struct dv_api_object_meta *meta)
{
    for (size_t i = 0; i < selector->n_match_labels; i++) {
        const struct dv_str_entry *label =
            dv_entry_find(meta->labels, meta->n_labels, selector->match_labels[i].key);

        if (!label || !dv_str_eq(label->value, selector->match_labels[i].value))
            return false;
    }
    return true;
}

void dv_apps_index_keeper(struct dv_apps *apps, enum dv_apps_view view,
                          const struct dv_object *object, const struct dv_api_object_meta *meta)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_api_label_selector *selector = object ? selector_of(object) : NULL;
    dv_str word;

    if (selector)
        word = selector_word(meta->namespace, selector, scratch);
    dv_index_set(&apps->selecting[view], key_of(meta, scratch), &word, selector != NULL);
}

/* Queues those that are under the word and may select what has the metadata. */
static void queue_selecting(struct dv_apps *apps, size_t keeper, dv_str word,
                            const struct dv_api_object_meta *meta, uint64_t ms)
{
    const struct dv_list *refs = dv_index_find(&apps->selecting[keepers[keeper].view], word);
    struct dv_link *link;

    if (!refs)
        return;
    DV_LIST_EACH (refs, link) {
        dv_str key = dv_index_thing(link);
        dv_str name = dv_str_slice(key, dv_str_find_char(key, '/') + 1, key.n);
        const struct dv_object *object =
            dv_view_get(apps->views[keepers[keeper].view], meta->namespace, name);

        if (object && may_select(selector_of(object), meta))
            dv_queue_add_after(&apps->queues[keepers[keeper].queue], meta->namespace, name, ms);
    }
}

/* Queues those whose selectors may match the labels, under any of the words of the metadata. */
static void queue_all_selecting(struct dv_apps *apps, size_t keeper,
                                const struct dv_api_object_meta *meta, uint64_t ms,
                                struct dv_arena *scratch)
{
    queue_selecting(apps, keeper, orphan_word(meta->namespace, scratch), meta, ms);
    for (size_t i = 0; i < meta->n_labels; i++)
        queue_selecting(apps, keeper, label_word(meta->namespace, &meta->labels[i], scratch), meta,
                        ms);
}

static void queue_adopters(struct dv_apps *apps, enum dv_apps_view view,
                           const struct dv_api_object_meta *meta)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();

    for (size_t i = 0; i < DV_COUNT(keepers); i++) {
        if (!(keepers[i].owns & OF(view)))
            continue;
        queue_all_selecting(apps, i, meta, pause_ms(apps), scratch);
    }
}

void dv_apps_queue_owners(struct dv_apps *apps, enum dv_apps_view view,
                          const struct dv_api_object_meta *meta)
{
    const struct dv_api_owner_reference *owner = dv_controller_of(meta);

    if (!owner) {
        if (meta->n_labels > 0)
            queue_adopters(apps, view, meta);
        return;
    }
    for (size_t i = 0; i < DV_COUNT(keepers); i++)
        if ((keepers[i].owns & OF(view)) &&
            dv_str_eq(owner->kind, dv_kind(keepers[i].kind)->name) &&
            dv_view_get(apps->views[keepers[i].view], meta->namespace, owner->name))
            dv_queue_add_after(&apps->queues[keepers[i].queue], meta->namespace, owner->name,
                               pause_ms(apps));
}

/* ---- budgets ---- */

void dv_apps_index_budgeted(struct dv_apps *apps, const struct dv_api_object_meta *pod,
                            bool is_there)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_index *budgets = &apps->selecting[DV_APPS_BUDGETS];
    dv_str *words = DV_NEW_ARRAY(scratch, dv_str, pod->n_labels + 1);
    size_t n = 0;

    words[n] = orphan_word(pod->namespace, scratch);
    n += dv_index_find(budgets, words[n]) != NULL;
    for (size_t i = 0; i < pod->n_labels; i++) {
        words[n] = label_word(pod->namespace, &pod->labels[i], scratch);
        n += dv_index_find(budgets, words[n]) != NULL;
    }
    dv_index_set(&apps->budgeted, key_of(pod, scratch), words, is_there ? n : 0);
}

void dv_apps_queue_budgets(struct dv_apps *apps, dv_str namespace,
                           const struct dv_api_object_meta *labelled)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_api_object_meta meta = {
        .namespace = namespace, .labels = labelled->labels, .n_labels = labelled->n_labels};

    queue_all_selecting(apps, BUDGET_KEEPER, &meta, BUDGET_PAUSE_MS, scratch);
}

const void **dv_apps_gather_budgeted(struct dv_apps_sync *sync,
                                     const struct dv_api_label_selector *selector, size_t *n)
{
    struct found found = {0};

    gather(sync, &sync->apps->budgeted, DV_APPS_PODS,
           selector_word(sync->object->meta->namespace, selector, sync->arena), &found);
    return end_gathering(sync, &found, n);
}
