/* namespace_quota.c - keeps the sums of quotas, and shows them in their status.
 *
 * A new resource of a quota is counted by a walk over the namespace, a portion a turn. What changes
 * behind the place where the walk is, is added; what changes before it will be seen. */
#include "cluster/embedded/namespace_quota.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "cluster/embedded/change.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/engine.h"
#include "cluster/objects/collection.h"
#include "resource/resource.h"

/* How many objects a walk looks at before others on the loop have their turn: about a millisecond
 * of packed pods. */
#define WALK_PORTION 200u

static const struct dv_api_resource_quota *value_of(const struct dv_namespace_quota *quota)
{
    return quota->object->value;
}

struct dv_list *dv_quotas_of(const struct dv_embedded *embedded, dv_str namespace)
{
    struct dv_quota_namespace *found;

    if (embedded->quotas.by_namespace.n == 0)
        return NULL;
    found = dv_map_get(&embedded->quotas.by_namespace, namespace);
    return found ? &found->quotas : NULL;
}

/* ---- the status ---- */

static bool run_status(struct dv_cluster_operation *operation)
{
    const struct dv_namespace_quota *quota = operation->ctx;
    struct dv_api_resource_quota *value;
    struct dv_quantity_entry *used;
    size_t n = 0;

    if (quota->is_gone || !operation->entry->object || quota->is_walking)
        return dv_cluster_operation_answer(operation, NULL);
    value = dv_change_copy(operation);
    used = DV_NEW_ARRAY(operation->arena, struct dv_quantity_entry, quota->n_parts);
    for (size_t i = 0; i < quota->n_parts; i++) {
        const struct dv_quota_part *part = &quota->parts[i];

        if (part->is_known)
            used[n++] = (struct dv_quantity_entry){
                part->resource.name,
                dv_quota_to_quantity(
                    (struct dv_quota_amount){part->stored + part->coming, part->format},
                    operation->arena)};
    }
    value->status = (struct dv_api_resource_quota_status){
        .hard = value->spec.hard, .n_hard = value->spec.n_hard, .used = used, .n_used = n};
    return dv_change_finish(operation, value);
}

static void quota_free(struct dv_namespace_quota *quota)
{
    dv_object_unref(quota->object);
    free(quota->parts);
    free(quota->walk_after);
    free(quota);
}

static void on_published(struct dv_cluster_operation *operation)
{
    struct dv_namespace_quota *quota = operation->ctx;

    quota->is_writing = false;
    if (quota->is_gone)
        quota_free(quota);
    else if (operation->failure) /* the next change shows it, too */
        quota->is_dirty = true;
    else if (quota->is_dirty)
        dv_quota_publish(quota);
}

void dv_quota_publish(struct dv_namespace_quota *quota)
{
    struct dv_embedded *embedded = quota->embedded;
    struct dv_cluster_operation *operation;

    quota->is_dirty = true;
    if (quota->is_writing || quota->is_walking || embedded->is_closing)
        return;
    quota->is_dirty = false;
    quota->is_writing = true;
    operation = dv_cluster_operation_new(embedded, NULL);
    operation->ctx = quota;
    operation->done = on_published;
    dv_cluster_operation_start(operation, dv_kind(DV_KIND_RESOURCE_QUOTA),
                               dv_entry_namespace(quota->entry), dv_entry_name(quota->entry),
                               run_status);
}

/* ---- sums ---- */

static bool is_for(const struct dv_namespace_quota *quota, const struct dv_object *object,
                   struct dv_arena *arena)
{
    return object && dv_quota_is_for(&value_of(quota)->spec, object->kind, object->value, arena);
}

/* Adds what the object uses of a resource, or takes it off. True: that is something. */
static bool add_use(struct dv_quota_part *part, const struct dv_object *object, int sign)
{
    struct dv_quota_amount amount = dv_quota_use(object->kind, object->value, &part->resource);

    if (amount.milli == 0)
        return false;
    part->stored += sign * amount.milli;
    if (sign > 0)
        part->format = amount.format;
    return true;
}

/* Whether the walk has passed the entry. */
static bool is_passed(const struct dv_namespace_quota *quota, const struct dv_entry *entry)
{
    size_t kind = dv_engine_collection_index(entry->collection);
    dv_str after = {quota->walk_after, quota->n_walk_after};

    return kind < quota->walk_kind ||
           (kind == quota->walk_kind && dv_str_cmp(dv_entry_key(entry), after) <= 0);
}

static void change_sums(struct dv_namespace_quota *quota, const struct dv_entry *entry,
                        const struct dv_object *old, const struct dv_object *now,
                        struct dv_arena *arena)
{
    bool was_for = is_for(quota, old, arena);
    bool is_now_for = is_for(quota, now, arena);
    bool has_passed = is_passed(quota, entry);
    bool has_changed = false;

    for (size_t i = 0; i < quota->n_parts; i++) {
        struct dv_quota_part *part = &quota->parts[i];

        if (!part->is_counted && !has_passed)
            continue;
        has_changed |= was_for && add_use(part, old, -1);
        has_changed |= is_now_for && add_use(part, now, 1);
    }
    if (has_changed)
        dv_quota_publish(quota);
}

/* ---- walks ---- */

static void remember(struct dv_namespace_quota *quota, dv_str key)
{
    quota->walk_after = dv_realloc(quota->walk_after, key.n);
    memcpy(quota->walk_after, key.p, key.n);
    quota->n_walk_after = key.n;
}

static bool wants_kind(const struct dv_namespace_quota *quota, const struct dv_kind *kind)
{
    for (size_t i = 0; i < quota->n_parts; i++)
        if (!quota->parts[i].is_counted && dv_quota_counts(kind, &quota->parts[i].resource))
            return true;
    return false;
}

/* Counts the objects of the kind that the walk is at. Returns how many more there is time for. */
static size_t walk_kind(struct dv_namespace_quota *quota, size_t n_left)
{
    const struct dv_collection *collection =
        dv_engine_collection_at(quota->embedded, quota->walk_kind);
    struct dv_collection_range range =
        dv_collection_range_after(collection, dv_entry_namespace(quota->entry),
                                  (dv_str){quota->walk_after, quota->n_walk_after});
    struct dv_entry *entry = NULL;

    while (n_left > 0 && (entry = dv_collection_range_next(&range)) != NULL) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

        const struct dv_object *object = dv_entry_object(entry);
        bool counts = is_for(quota, object, arena);

        for (size_t i = 0; counts && i < quota->n_parts; i++)
            if (!quota->parts[i].is_counted)
                (void)add_use(&quota->parts[i], object, 1);
        remember(quota, dv_entry_key(entry));
        n_left--;
    }
    if (n_left > 0) { /* all of the kind have been seen */
        quota->walk_kind++;
        quota->n_walk_after = 0;
    }
    return n_left;
}

static void end_walk(struct dv_namespace_quota *quota)
{
    quota->is_walking = false;
    dv_link_remove(&quota->walk_link);
    for (size_t i = 0; i < quota->n_parts; i++)
        quota->parts[i].is_counted = true;
    dv_quota_publish(quota);
}

static void on_walk(struct dv_task *task)
{
    struct dv_embedded *embedded = DV_CONTAINER(task, struct dv_embedded, quotas.walk);
    struct dv_link *first = dv_list_first(&embedded->quotas.walking);
    struct dv_namespace_quota *quota;
    const struct dv_collection *collection;
    size_t n_left = WALK_PORTION;

    if (!first || embedded->is_closing)
        return;
    quota = DV_CONTAINER(first, struct dv_namespace_quota, walk_link);
    while (n_left > 0 &&
           (collection = dv_engine_collection_at(embedded, quota->walk_kind)) != NULL) {
        if (wants_kind(quota, collection->kind))
            n_left = walk_kind(quota, n_left);
        else
            quota->walk_kind++;
    }
    if (!dv_engine_collection_at(embedded, quota->walk_kind))
        end_walk(quota);
    if (!dv_list_is_empty(&embedded->quotas.walking))
        dv_task_post(task, embedded->cluster.loop, on_walk);
}

static void begin_walk(struct dv_namespace_quota *quota)
{
    struct dv_quotas *quotas = &quota->embedded->quotas;

    quota->walk_kind = 0;
    quota->n_walk_after = 0;
    if (!quota->is_walking)
        dv_list_push(&quotas->walking, &quota->walk_link);
    quota->is_walking = true;
    dv_task_post(&quotas->walk, quota->embedded->cluster.loop, on_walk);
}

/* ---- quotas ---- */

static bool is_known(const struct dv_quota_resource *resource)
{
    for (unsigned id = 0; id < DV_N_KINDS; id++)
        if (dv_quota_counts(dv_kind((enum dv_kind_id)id), resource))
            return true;
    /* Kinds that definitions make come and go; a quota may be there before its kind. */
    return resource->type == DV_QUOTA_OBJECTS &&
           dv_str_find_char(resource->of, '.') < resource->of.n;
}

/* What objects that are being created use of a resource that is counted anew. */
static dv_quota_sum coming_of(const struct dv_namespace_quota *quota,
                              const struct dv_quota_resource *resource)
{
    struct dv_list *coming = &quota->embedded->quotas.coming;
    dv_str namespace = dv_entry_namespace(quota->entry);
    dv_quota_sum sum = 0;

    for (struct dv_link *at = coming->head.next; at != &coming->head; at = at->next) {
        const struct dv_cluster_operation *operation =
            DV_CONTAINER(at, struct dv_cluster_operation, quota_link);

        if (dv_str_eq(dv_entry_namespace(operation->entry), namespace) &&
            dv_quota_is_charged(operation, quota))
            sum +=
                dv_quota_use(operation->entry->collection->kind, operation->result.value, resource)
                    .milli;
    }
    return sum;
}

static bool is_same_selector(const struct dv_api_scope_selector *a,
                             const struct dv_api_scope_selector *b)
{
    if (!a || !b)
        return a == b;
    return dv_message_eq(&dv_message_scope_selector, a, b);
}

/* Looks up what the status of the object says of each resource, in the order of both lists: to
 * search for each would be quadratic, and it is done for each change of the status. */
static void read_status(struct dv_namespace_quota *quota)
{
    const struct dv_api_resource_quota_status *status = &value_of(quota)->status;
    DV_CLEANUP(dv_map_fini) struct dv_map hard = {0};
    DV_CLEANUP(dv_map_fini) struct dv_map used = {0};

    for (size_t i = 0; i < status->n_hard; i++)
        (void)dv_map_set(&hard, status->hard[i].key, &status->hard[i]);
    for (size_t i = 0; i < status->n_used; i++)
        (void)dv_map_set(&used, status->used[i].key, &status->used[i]);
    for (size_t i = 0; i < quota->n_parts; i++) {
        struct dv_quota_part *part = &quota->parts[i];
        const struct dv_quantity_entry *entry = dv_map_get(&hard, part->resource.name);

        part->hard = entry ? &entry->value : NULL;
        part->is_told = dv_map_get(&used, part->resource.name) != NULL;
    }
}

/* Takes the resources of the object. Those that are known already keep their sums, unless the quota
 * is for other pods now. */
static void set_parts(struct dv_namespace_quota *quota, const struct dv_api_resource_quota *old)
{
    const struct dv_api_resource_quota_spec *spec = &value_of(quota)->spec;
    bool keeps = old && is_same_selector(old->spec.scope_selector, spec->scope_selector);
    struct dv_quota_part *parts = dv_alloc((spec->n_hard + 1) * sizeof(*parts));
    DV_CLEANUP(dv_map_fini) struct dv_map kept = {0};
    bool has_new = !old;

    for (size_t i = 0; keeps && i < quota->n_parts; i++)
        (void)dv_map_set(&kept, quota->parts[i].resource.name, &quota->parts[i]);
    for (size_t i = 0; i < spec->n_hard; i++) {
        const struct dv_quota_part *known = dv_map_get(&kept, spec->hard[i].key);
        struct dv_quota_resource resource = dv_quota_resource_of(spec->hard[i].key);

        if (known && known->is_counted) {
            parts[i] = *known;
        } else {
            parts[i] = (struct dv_quota_part){.is_known = is_known(&resource),
                                              .coming = coming_of(quota, &resource)};
            has_new = true;
        }
        parts[i].resource = resource;
    }
    free(quota->parts);
    quota->parts = parts;
    quota->n_parts = spec->n_hard;
    read_status(quota);
    if (has_new || quota->is_walking)
        begin_walk(quota);
}

static struct dv_namespace_quota *find(const struct dv_embedded *embedded,
                                       const struct dv_entry *entry)
{
    struct dv_list *quotas = dv_quotas_of(embedded, dv_entry_namespace(entry));

    for (struct dv_link *at = quotas ? quotas->head.next : NULL; at && at != &quotas->head;
         at = at->next) {
        struct dv_namespace_quota *quota = DV_CONTAINER(at, struct dv_namespace_quota, link);

        if (quota->entry == entry)
            return quota;
    }
    return NULL;
}

static struct dv_quota_namespace *take_namespace(struct dv_embedded *embedded, dv_str name)
{
    struct dv_quota_namespace *namespace = dv_map_get(&embedded->quotas.by_namespace, name);

    if (namespace)
        return namespace;
    namespace = dv_alloc(sizeof(*namespace) + name.n);
    dv_list_init(&namespace->quotas);
    namespace->n_name = name.n;
    memcpy(namespace->name, name.p, name.n);
    (void)dv_map_set(&embedded->quotas.by_namespace, (dv_str){namespace->name, name.n}, namespace);
    return namespace;
}

static void add_quota(struct dv_embedded *embedded, struct dv_entry *entry, struct dv_object *now)
{
    struct dv_quota_namespace *namespace = take_namespace(embedded, dv_entry_namespace(entry));
    struct dv_namespace_quota *quota = DV_ALLOC(struct dv_namespace_quota);
    struct dv_link *place = namespace->quotas.head.next;

    quota->embedded = embedded;
    quota->entry = entry;
    quota->object = dv_object_ref(now);
    while (place != &namespace->quotas.head &&
           dv_str_cmp(dv_entry_name(DV_CONTAINER(place, struct dv_namespace_quota, link)->entry),
                      dv_entry_name(entry)) < 0)
        place = place->next;
    dv_link_insert_before(place, &quota->link);
    set_parts(quota, NULL);
}

static void remove_quota(struct dv_embedded *embedded, struct dv_namespace_quota *quota)
{
    dv_str name = dv_entry_namespace(quota->entry);
    struct dv_quota_namespace *namespace = dv_map_get(&embedded->quotas.by_namespace, name);

    dv_link_remove(&quota->link);
    if (quota->is_walking)
        dv_link_remove(&quota->walk_link);
    quota->is_walking = false;
    quota->is_gone = true;
    if (!quota->is_writing)
        quota_free(quota);
    if (!dv_list_is_empty(&namespace->quotas))
        return;
    (void)dv_map_remove(&embedded->quotas.by_namespace, name);
    free(namespace);
}

static void change_quota(struct dv_embedded *embedded, struct dv_entry *entry,
                         struct dv_object *now)
{
    struct dv_namespace_quota *quota = find(embedded, entry);
    struct dv_object *old;

    if (!quota) {
        if (now)
            add_quota(embedded, entry, now);
        return;
    }
    if (!now) {
        remove_quota(embedded, quota);
        return;
    }
    old = quota->object;
    quota->object = dv_object_ref(now);
    set_parts(quota, old->value);
    /* The status follows the spec; what others write to the status is left as it is. */
    if (!dv_message_eq(&dv_message_resource_quota_spec,
                       &((const struct dv_api_resource_quota *)old->value)->spec,
                       &value_of(quota)->spec))
        dv_quota_publish(quota);
    dv_object_unref(old);
}

void dv_quota_change(struct dv_embedded *embedded, struct dv_entry *entry,
                     const struct dv_object *old, struct dv_object *now)
{
    struct dv_list *quotas;

    if (!entry->collection->kind->is_namespaced)
        return;
    quotas = dv_quotas_of(embedded, dv_entry_namespace(entry));
    if (quotas) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

        for (struct dv_link *at = quotas->head.next; at != &quotas->head; at = at->next)
            change_sums(DV_CONTAINER(at, struct dv_namespace_quota, link), entry, old, now, arena);
    }
    if (entry->collection->kind->id == DV_KIND_RESOURCE_QUOTA)
        change_quota(embedded, entry, now);
}

/* ---- life ---- */

void dv_quotas_init(struct dv_embedded *embedded)
{
    dv_map_init(&embedded->quotas.by_namespace);
    dv_list_init(&embedded->quotas.walking);
    dv_list_init(&embedded->quotas.coming);
}

void dv_quotas_start(struct dv_embedded *embedded)
{
    struct dv_collection_range range =
        dv_collection_range(&embedded->collections[DV_KIND_RESOURCE_QUOTA], DV_STR_NONE);
    struct dv_entry *entry;

    while ((entry = dv_collection_range_next(&range)) != NULL)
        add_quota(embedded, entry, dv_entry_object(entry));
}

void dv_quotas_fini(struct dv_embedded *embedded)
{
    const struct dv_map_entry *entry;
    size_t at = 0;

    dv_task_cancel(&embedded->quotas.walk);
    while ((entry = dv_map_next(&embedded->quotas.by_namespace, &at)) != NULL) {
        struct dv_quota_namespace *namespace = entry->value;
        struct dv_link *link;

        while ((link = dv_list_shift(&namespace->quotas)) != NULL)
            quota_free(DV_CONTAINER(link, struct dv_namespace_quota, link));
        free(namespace);
    }
    dv_map_fini(&embedded->quotas.by_namespace);
}
