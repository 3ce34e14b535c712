/* node_pools.c - the devices of DRA drivers that this node has.
 *
 * Slices and claims of the API are watched, and of them is kept which concern this node: a list
 * then costs what the node has, and not what the cluster does. In a cluster of others a node may
 * read only the slices that name it, and no list of claims: there what is held is what is prepared
 * here. */
#include "serve/node/node_pools.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/key.h"
#include "base/map.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "cluster/cluster.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "serve/node/pool_counters.h"
#include "serve/serve.h"

/* Names of the API are shorter. */
#define KEY_BYTES_MAX 4096u

/* The name of something that is kept, which is its key. */
struct name {
    dv_str text;
};

struct dv_node_pools {
    dv_str node_name;
    struct dv_view *slices;
    struct dv_view *claims; /* NULL, like the next two: the API does not show them to a node */
    struct dv_view *rules;
    struct dv_view *node;
    struct dv_map slices_here; /* struct name: slices with a device for this node */
    struct dv_map claims_here; /* struct name: "namespace/name" of claims that are allocated here */
    void (*changed)(void *ctx);
    void *ctx;
};

/* ---- what concerns this node ---- */

static bool is_true(const bool *flag)
{
    return flag && *flag;
}

static bool is_for(const struct dv_node_pools *pools, dv_str name, const bool *all_nodes,
                   const struct dv_api_node_selector *selector)
{
    const struct dv_object *object =
        selector && pools->node ? dv_view_get(pools->node, DV_STR(""), pools->node_name) : NULL;

    if (name.n > 0)
        return dv_str_eq(name, pools->node_name);
    if (is_true(all_nodes))
        return true;
    return selector && dv_node_selector_matches(selector, pools->node_name,
                                                object ? object->meta->labels : NULL,
                                                object ? object->meta->n_labels : 0);
}

static bool is_device_here(const struct dv_node_pools *pools,
                           const struct dv_api_resource_slice_spec *spec,
                           const struct dv_api_device *device)
{
    return !is_true(spec->per_device_node_selection) ||
           is_for(pools, device->node_name, device->all_nodes, device->node_selector);
}

static bool is_slice_here(const struct dv_node_pools *pools, const struct dv_object *object)
{
    const struct dv_api_resource_slice_spec *spec =
        &((const struct dv_api_resource_slice *)object->value)->spec;

    if (!is_true(spec->per_device_node_selection))
        return is_for(pools, spec->node_name, spec->all_nodes, spec->node_selector);
    for (size_t i = 0; i < spec->n_devices; i++)
        if (is_device_here(pools, spec, &spec->devices[i]))
            return true;
    return spec->n_devices == 0 && spec->n_shared_counters > 0; /* of devices in other slices */
}

/* Whether the claim's devices are this node's, or any node's. */
static bool is_claim_here(const struct dv_node_pools *pools, const struct dv_object *object)
{
    const struct dv_api_allocation_result *allocation =
        ((const struct dv_api_resource_claim *)object->value)->status.allocation;

    return allocation && (!allocation->node_selector ||
                          is_for(pools, DV_STR_NONE, NULL, allocation->node_selector));
}

/* Notes whether what has the name concerns this node. True: it does, or did. */
static bool note(struct dv_map *map, dv_str text, bool is_here)
{
    struct name *name = dv_map_get(map, text);
    bool was_here = name != NULL;

    if (is_here && !name) {
        char *copy;

        name = dv_alloc(sizeof(*name) + text.n);
        copy = (char *)(name + 1);
        memcpy(copy, text.p, text.n);
        name->text = (dv_str){copy, text.n};
        (void)dv_map_set(map, name->text, name);
    } else if (!is_here && name) {
        (void)dv_map_remove(map, name->text);
        free(name);
    }
    return is_here || was_here;
}

static void on_slice(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_node_pools *pools = ctx;

    if (note(&pools->slices_here, (now ? now : old)->meta->name, now && is_slice_here(pools, now)))
        pools->changed(pools->ctx);
}

static void on_claim(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_node_pools *pools = ctx;
    const struct dv_object *any = now ? now : old;
    DV_CLEANUP(dv_buf_fini) struct dv_buf key = {0};

    dv_buf_init(&key, KEY_BYTES_MAX);
    dv_buf_printf(&key, "%.*s/%.*s", DV_FMT(any->meta->namespace), DV_FMT(any->meta->name));
    if (note(&pools->claims_here, dv_buf_str(&key), now && is_claim_here(pools, now)))
        pools->changed(pools->ctx);
}

static void on_rule(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_node_pools *pools = ctx;

    (void)old;
    (void)now;
    pools->changed(pools->ctx);
}

static bool has_same_labels(const struct dv_api_object_meta *a, const struct dv_api_object_meta *b)
{
    const struct dv_api_object_meta x = {.labels = a->labels, .n_labels = a->n_labels};
    const struct dv_api_object_meta y = {.labels = b->labels, .n_labels = b->n_labels};

    return dv_message_eq(&dv_message_object_meta, &x, &y);
}

/* Slices may select nodes by labels, so they are looked at again when these change. */
static void on_node(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_node_pools *pools = ctx;
    const struct dv_object *slice;

    if (!now || (old && has_same_labels(old->meta, now->meta)))
        return;
    for (size_t at = 0; (slice = dv_view_next(pools->slices, &at)) != NULL;)
        (void)note(&pools->slices_here, slice->meta->name, is_slice_here(pools, slice));
    pools->changed(pools->ctx);
}

/* ---- life ---- */

static bool open_views(struct dv_node_pools *pools, const struct dv_node_pools_options *options,
                       struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_view_options slices = {
        .kind = dv_kind(DV_KIND_SLICE), .changed = on_slice, .ctx = pools};
    struct dv_view_options claims = {
        .kind = dv_kind(DV_KIND_CLAIM), .changed = on_claim, .ctx = pools};
    struct dv_view_options rules = {
        .kind = dv_kind(DV_KIND_TAINT_RULE), .changed = on_rule, .ctx = pools, .is_optional = true};
    struct dv_view_options node = {
        .kind = dv_kind(DV_KIND_NODE),
        .field_selector = dv_str_printf(arena, "metadata.name=%.*s", DV_FMT(options->node_name)),
        .changed = on_node,
        .ctx = pools,
    };

    if (!options->is_embedded) {
        slices.field_selector =
            dv_str_printf(arena, "spec.nodeName=%.*s", DV_FMT(options->node_name));
        pools->slices = dv_view_open(options->cluster, &slices, err);
        return pools->slices != NULL;
    }
    pools->slices = dv_view_open(options->cluster, &slices, err);
    pools->node = pools->slices ? dv_view_open(options->cluster, &node, err) : NULL;
    pools->rules = pools->node ? dv_view_open(options->cluster, &rules, err) : NULL;
    pools->claims = pools->rules ? dv_view_open(options->cluster, &claims, err) : NULL;
    return pools->claims != NULL;
}

struct dv_node_pools *dv_node_pools_open(const struct dv_node_pools_options *options,
                                         struct dv_err *err)
{
    struct dv_node_pools *pools = DV_ALLOC(struct dv_node_pools);

    pools->node_name = options->node_name;
    pools->changed = options->changed;
    pools->ctx = options->ctx;
    dv_map_init(&pools->slices_here);
    dv_map_init(&pools->claims_here);
    if (open_views(pools, options, err))
        return pools;
    dv_node_pools_close(pools);
    return NULL;
}

static void free_names(struct dv_map *map)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(map, &at)) != NULL;)
        free(entry->value);
    dv_map_fini(map);
}

void dv_node_pools_close(struct dv_node_pools *pools)
{
    struct dv_view *views[4];

    if (!pools)
        return;
    views[0] = pools->slices;
    views[1] = pools->claims;
    views[2] = pools->rules;
    views[3] = pools->node;
    for (size_t i = 0; i < DV_COUNT(views); i++)
        if (views[i])
            dv_view_close(views[i]);
    free_names(&pools->slices_here);
    free_names(&pools->claims_here);
    free(pools);
}

/* ---- the list ---- */

struct listing {
    const struct dv_node *node;
    struct dv_arena *arena;
    struct dv_map by_key;      /* struct dv_pool_device */
    struct dv_map generations; /* of pools: int64_t */
    struct dv_pool_counters counters;
    struct dv_buf key;
};

static struct dv_pool_device *device_of(struct listing *listing, dv_str driver, dv_str pool,
                                        dv_str name)
{
    struct dv_pool_device *device;
    dv_str key;

    dv_buf_clear(&listing->key);
    dv_key_add(&listing->key, driver);
    dv_key_add(&listing->key, pool);
    dv_key_add(&listing->key, name);
    key = dv_buf_str(&listing->key);
    device = dv_map_get(&listing->by_key, key);
    if (device)
        return device;
    device = DV_NEW(listing->arena, struct dv_pool_device);
    device->driver = driver;
    device->pool = pool;
    device->name = name;
    (void)dv_map_set(&listing->by_key, dv_str_copy(key, listing->arena), device);
    return device;
}

static struct dv_pool_use *use_of(struct listing *listing, struct dv_pool_device *device,
                                  dv_str namespace, dv_str name)
{
    struct dv_pool_use **place = &device->uses;

    while (*place) {
        if (dv_str_eq((*place)->name, name) && dv_str_eq((*place)->namespace, namespace))
            return *place;
        place = &(*place)->next;
    }
    *place = DV_NEW(listing->arena, struct dv_pool_use);
    (*place)->namespace = namespace;
    (*place)->name = name;
    return *place;
}

/* Notes the newest generation of the slice's pool, since only its slices count. */
static void note_generation(struct listing *listing, const struct dv_api_resource_slice_spec *spec)
{
    int64_t *newest;
    dv_str key;

    dv_buf_clear(&listing->key);
    dv_key_add(&listing->key, spec->driver);
    dv_key_add(&listing->key, spec->pool.name);
    key = dv_buf_str(&listing->key);
    newest = dv_map_get(&listing->generations, key);
    if (!newest) {
        newest = DV_NEW(listing->arena, int64_t);
        *newest = spec->pool.generation;
        (void)dv_map_set(&listing->generations, dv_str_copy(key, listing->arena), newest);
    }
    if (spec->pool.generation > *newest)
        *newest = spec->pool.generation;
}

static bool is_newest(struct listing *listing, const struct dv_api_resource_slice_spec *spec)
{
    dv_buf_clear(&listing->key);
    dv_key_add(&listing->key, spec->driver);
    dv_key_add(&listing->key, spec->pool.name);
    return spec->pool.generation ==
           *(int64_t *)dv_map_get(&listing->generations, dv_buf_str(&listing->key));
}

static bool keeps_pods_away(const struct dv_api_device_taint *taint)
{
    return dv_str_eq(taint->effect, DV_STR("NoSchedule")) ||
           dv_str_eq(taint->effect, DV_STR("NoExecute"));
}

static void add_taints(struct listing *listing, struct dv_pool_device *device)
{
    const struct dv_view *rules = listing->node->pools->rules;
    size_t n_rules = rules ? dv_view_n(rules) : 0;
    const struct dv_object *object;

    if (device->api->n_taints + n_rules == 0)
        return;
    device->taints = DV_NEW_ARRAY(listing->arena, const struct dv_api_device_taint *,
                                  device->api->n_taints + n_rules);
    for (size_t i = 0; i < device->api->n_taints; i++)
        if (keeps_pods_away(&device->api->taints[i]))
            device->taints[device->n_taints++] = &device->api->taints[i];
    for (size_t at = 0; n_rules > 0 && (object = dv_view_next(rules, &at)) != NULL;) {
        const struct dv_api_device_taint_rule *rule = object->value;

        if (keeps_pods_away(&rule->spec.taint) &&
            dv_taint_rule_selects(rule, device->driver, device->pool, device->name))
            device->taints[device->n_taints++] = &rule->spec.taint;
    }
}

static void add_slice(struct listing *listing, const struct dv_api_resource_slice_spec *spec)
{
    if (!is_newest(listing, spec))
        return;
    for (size_t i = 0; i < spec->n_shared_counters; i++)
        dv_pool_counters_add(&listing->counters, spec->driver, spec->pool.name,
                             &spec->shared_counters[i]);
    for (size_t i = 0; i < spec->n_devices; i++) {
        struct dv_pool_device *device;

        if (!is_device_here(listing->node->pools, spec, &spec->devices[i]))
            continue;
        device = device_of(listing, spec->driver, spec->pool.name, spec->devices[i].name);
        if (device->api)
            continue; /* of two slices with the same device the first one counts */
        device->api = &spec->devices[i];
        add_taints(listing, device);
    }
}

static void add_slices(struct listing *listing)
{
    const struct dv_node_pools *pools = listing->node->pools;
    const struct dv_map_entry *entry;

    for (int round = 0; round < 2; round++)
        for (size_t at = 0; (entry = dv_map_next(&pools->slices_here, &at)) != NULL;) {
            const struct dv_object *object = dv_view_get(pools->slices, DV_STR(""), entry->key);
            const struct dv_api_resource_slice *slice = object ? object->value : NULL;

            if (slice && round == 0)
                note_generation(listing, &slice->spec);
            else if (slice)
                add_slice(listing, &slice->spec);
        }
}

/* Adds what claims of the API are allocated. */
static void add_allocated(struct listing *listing)
{
    const struct dv_node_pools *pools = listing->node->pools;
    const struct dv_map_entry *entry;

    for (size_t at = 0; pools->claims && (entry = dv_map_next(&pools->claims_here, &at)) != NULL;) {
        size_t slash = dv_str_find_char(entry->key, '/');
        const struct dv_object *object =
            dv_view_get(pools->claims, dv_str_slice(entry->key, 0, slash),
                        dv_str_slice(entry->key, slash + 1, entry->key.n));
        const struct dv_api_resource_claim *claim = object ? object->value : NULL;

        for (size_t i = 0;
             claim && claim->status.allocation && i < claim->status.allocation->devices.n_results;
             i++) {
            const struct dv_api_device_request_allocation_result *result =
                &claim->status.allocation->devices.results[i];

            if (!is_true(result->admin_access))
                use_of(listing, device_of(listing, result->driver, result->pool, result->device),
                       object->meta->namespace, object->meta->name)
                    ->object = claim;
        }
    }
}

/* Whether the API shows the node the claim of the record. */
static bool is_shown(const struct dv_node_pools *pools, const struct dv_claim_record *record)
{
    return pools && pools->claims &&
           dv_view_get_packed(pools->claims, record->namespace, record->name) != NULL;
}

/* Adds what is prepared here. A claim with a device for administration is not known by its record
 * alone, so its object has to say that it holds the device, where it is shown. */
static void add_prepared(struct listing *listing)
{
    const struct dv_claim_state *state = dv_claim_manager_state(listing->node->claims);
    const struct dv_claim *claim;

    for (size_t at = 0; (claim = dv_claim_next(state, &at)) != NULL;) {
        const struct dv_claim_record *record = &claim->record;

        for (size_t i = 0; i < record->n_drivers; i++)
            for (size_t k = 0; k < record->drivers[i].n_devices; k++) {
                const struct dv_claim_device *from = &record->drivers[i].devices[k];
                struct dv_pool_device *device =
                    device_of(listing, record->drivers[i].name, from->pool, from->name);
                struct dv_pool_use *use = device->uses;

                while (use && !(dv_str_eq(use->name, record->name) &&
                                dv_str_eq(use->namespace, record->namespace)))
                    use = use->next;
                if (!use && !is_shown(listing->node->pools, record))
                    use = use_of(listing, device, record->namespace, record->name);
                if (use)
                    use->record = claim;
            }
    }
}

/* Finds the devices that cannot be taken since others have what they share. */
static void find_blocked(struct listing *listing)
{
    const struct dv_map_entry *entry;

    for (int round = 0; round < 2; round++)
        for (size_t at = 0; (entry = dv_map_next(&listing->by_key, &at)) != NULL;) {
            struct dv_pool_device *device = entry->value;

            if (!device->api || device->api->n_consumes_counters == 0)
                continue;
            if (round == 0 && device->uses)
                dv_pool_counters_take(&listing->counters, device);
            else if (round == 1 && !device->uses)
                dv_pool_counters_find(&listing->counters, device);
        }
}

static int compare(const void *a, const void *b)
{
    const struct dv_pool_device *x = *(struct dv_pool_device *const *)a;
    const struct dv_pool_device *y = *(struct dv_pool_device *const *)b;
    int order = dv_str_cmp(x->driver, y->driver);

    if (order == 0)
        order = dv_str_cmp(x->pool, y->pool);
    return order == 0 ? dv_str_natural_cmp(x->name, y->name) : order;
}

/* Sorts, unless drivers list their devices in order already, as nearly all do: to see that takes a
 * tenth of the time. */
static void sort(struct dv_pool_device **devices, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (compare(&devices[i - 1], &devices[i]) > 0) {
            qsort(devices, n, sizeof(*devices), compare);
            return;
        }
}

size_t dv_pool_devices(const struct dv_node *node, struct dv_arena *arena,
                       struct dv_pool_device ***devices)
{
    struct listing listing = {.node = node, .arena = arena};
    const struct dv_map_entry *entry;
    size_t n = 0;

    dv_map_init(&listing.by_key);
    dv_map_init(&listing.generations);
    dv_buf_init(&listing.key, KEY_BYTES_MAX);
    dv_pool_counters_init(&listing.counters, arena);
    if (node->pools) {
        add_slices(&listing);
        add_allocated(&listing);
    }
    add_prepared(&listing);
    find_blocked(&listing);
    *devices = DV_NEW_ARRAY(arena, struct dv_pool_device *, listing.by_key.n);
    for (size_t at = 0; (entry = dv_map_next(&listing.by_key, &at)) != NULL;) {
        struct dv_pool_device *device = entry->value;

        if (device->api || device->uses) /* not what an administrator's claim alone has */
            (*devices)[n++] = device;
    }
    sort(*devices, n);
    dv_pool_counters_fini(&listing.counters);
    dv_buf_fini(&listing.key);
    dv_map_fini(&listing.generations);
    dv_map_fini(&listing.by_key);
    return n;
}
