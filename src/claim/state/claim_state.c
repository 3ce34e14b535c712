/* claim_state.c - claims and their pods: found by name and by pod, changed by events. */
#include "claim/state/claim_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/row.h"
#include "resource/resource.h"

/* -- Life ----------------------------------------------------------------------------------- */

struct dv_claim_state *dv_claim_state_new(const struct dv_claim_opts *opts)
{
    struct dv_claim_state *state = dv_alloc(sizeof(*state) + opts->boot_id.n + 1);

    if (opts->boot_id.n > 0)
        memcpy(state->text, opts->boot_id.p, opts->boot_id.n);
    state->boot_id = (dv_str){state->text, opts->boot_id.n};
    state->is_strict = opts->is_strict;
    dv_map_init(&state->claims);
    dv_map_init(&state->pods);
    dv_map_init(&state->health);
    dv_list_init(&state->dirty);
    dv_list_init(&state->dirty_health);
    return state;
}

static void free_entry(struct dv_claim_entry *entry)
{
    for (size_t i = 0; i < entry->claim.record.n_drivers; i++)
        dv_arena_free(entry->arenas[i]);
    dv_arena_free(entry->handles);
    free(entry->arenas);
    free(entry->drivers);
    dv_vec_fini(&entry->pods);
    free(entry->claim.error);
    free(entry);
}

static void free_pod(struct dv_claim_pod *pod)
{
    dv_map_fini(&pod->claims);
    free(pod);
}

void dv_claim_state_free(struct dv_claim_state *state)
{
    const struct dv_map_entry *entry;

    if (!state)
        return;
    for (size_t at = 0; (entry = dv_map_next(&state->claims, &at)) != NULL;)
        free_entry(entry->value);
    for (size_t at = 0; (entry = dv_map_next(&state->pods, &at)) != NULL;)
        free_pod(entry->value);
    dv_claim_health_fini(state);
    for (size_t i = 0; i < state->gone.n; i++)
        dv_buf_fini(&state->gone.v[i].key);
    dv_vec_fini(&state->gone);
    dv_map_fini(&state->claims);
    dv_map_fini(&state->pods);
    dv_map_fini(&state->health);
    free(state);
}

void dv_claim_mark_dirty(struct dv_claim_state *state, struct dv_claim_entry *entry)
{
    if (!dv_link_is_in(&entry->in_dirty))
        dv_list_push(&state->dirty, &entry->in_dirty);
}

/* -- Looking -------------------------------------------------------------------------------- */

const char *dv_claim_phase_name(enum dv_claim_phase phase)
{
    static const char *const names[] = {
        [DV_CLAIM_WANTED] = "wanted",     [DV_CLAIM_PREPARING] = "preparing",
        [DV_CLAIM_PREPARED] = "prepared", [DV_CLAIM_UNPREPARING] = "unpreparing",
        [DV_CLAIM_GONE] = "gone",
    };

    return names[phase];
}

/* Finds the entry of a claim. The key is made on the stack; only the API's longest names need
 * more. */
static struct dv_claim_entry *find_entry(const struct dv_claim_state *state, dv_str namespace,
                                         dv_str name)
{
    char on_stack[256];
    size_t n = namespace.n + 1 + name.n;
    char *key = n <= sizeof(on_stack) ? on_stack : dv_alloc(n);
    struct dv_claim_entry *entry;

    if (namespace.n > 0)
        memcpy(key, namespace.p, namespace.n);
    key[namespace.n] = '/';
    if (name.n > 0)
        memcpy(key + namespace.n + 1, name.p, name.n);
    entry = dv_map_get(&state->claims, (dv_str){key, n});
    if (key != on_stack)
        free(key);
    return entry;
}

size_t dv_claim_count(const struct dv_claim_state *state)
{
    return state->claims.n;
}

struct dv_claim *dv_claim_find(const struct dv_claim_state *state, dv_str namespace, dv_str name)
{
    struct dv_claim_entry *entry = find_entry(state, namespace, name);

    return entry ? &entry->claim : NULL;
}

struct dv_claim *dv_claim_next(const struct dv_claim_state *state, size_t *at)
{
    const struct dv_map_entry *entry = dv_map_next(&state->claims, at);

    return entry ? &((struct dv_claim_entry *)entry->value)->claim : NULL;
}

size_t dv_claim_of_pod(const struct dv_claim_state *state, dv_str pod_uid, struct dv_arena *arena,
                       struct dv_claim ***claims)
{
    const struct dv_claim_pod *pod = dv_map_get(&state->pods, pod_uid);
    const struct dv_map_entry *entry;
    size_t n = 0;

    *claims = DV_NEW_ARRAY(arena, struct dv_claim *, pod ? pod->claims.n : 0);
    for (size_t at = 0; pod && (entry = dv_map_next(&pod->claims, &at)) != NULL;)
        (*claims)[n++] = &((struct dv_claim_entry *)entry->value)->claim;
    return n;
}

bool dv_claim_pod_has_any(const struct dv_claim_state *state, dv_str pod_uid)
{
    return dv_map_get(&state->pods, pod_uid) != NULL;
}

size_t dv_claim_pods(const struct dv_claim_state *state, struct dv_arena *arena, dv_str **uids)
{
    const struct dv_map_entry *entry;
    size_t n = 0;

    *uids = DV_NEW_ARRAY(arena, dv_str, state->pods.n);
    for (size_t at = 0; (entry = dv_map_next(&state->pods, &at)) != NULL;)
        (*uids)[n++] = dv_str_copy(entry->key, arena);
    return n;
}

size_t dv_claim_driver_index(const struct dv_claim_record *record, dv_str driver)
{
    size_t i = 0;

    while (i < record->n_drivers && !dv_str_eq(record->drivers[i].name, driver))
        i++;
    return i;
}

struct dv_list *dv_claim_waiters(struct dv_claim *claim)
{
    return &dv_claim_entry_of(claim)->waiters;
}

/* -- Pods of a claim ------------------------------------------------------------------------ */

/* The index where the uid is, or where it would be inserted. */
static size_t pod_place(const struct dv_claim_record *record, dv_str uid, bool *is_there)
{
    size_t low = 0;
    size_t high = record->n_pods;

    *is_there = false;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = dv_str_cmp(record->pods[middle], uid);

        if (order == 0) {
            *is_there = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool dv_claim_is_attached(const struct dv_claim *claim, dv_str pod_uid)
{
    bool is_there;

    (void)pod_place(&claim->record, pod_uid, &is_there);
    return is_there;
}

static struct dv_claim_pod *pod_of(struct dv_claim_state *state, dv_str uid)
{
    struct dv_claim_pod *pod = dv_map_get(&state->pods, uid);

    if (pod)
        return pod;
    pod = dv_alloc(sizeof(*pod) + uid.n + 1);
    if (uid.n > 0)
        memcpy(pod->text, uid.p, uid.n);
    pod->uid = (dv_str){pod->text, uid.n};
    dv_map_init(&pod->claims);
    (void)dv_map_set(&state->pods, pod->uid, pod);
    return pod;
}

static void publish_pods(struct dv_claim_entry *entry)
{
    entry->claim.record.pods = entry->pods.v;
    entry->claim.record.n_pods = entry->pods.n;
}

/* Adds the pod to the claim. False: it was there. */
static bool add_pod(struct dv_claim_state *state, struct dv_claim_entry *entry, dv_str uid)
{
    bool is_there;
    size_t place = pod_place(&entry->claim.record, uid, &is_there);
    struct dv_claim_pod *pod;

    if (is_there)
        return false;
    pod = pod_of(state, uid);
    (void)dv_map_set(&pod->claims, entry->key, entry);
    (void)dv_vec_add(&entry->pods);
    memmove(&entry->pods.v[place + 1], &entry->pods.v[place],
            (entry->pods.n - 1 - place) * sizeof(entry->pods.v[0]));
    entry->pods.v[place] = pod->uid;
    publish_pods(entry);
    return true;
}

static void remove_pod(struct dv_claim_state *state, struct dv_claim_entry *entry, dv_str uid)
{
    bool is_there;
    size_t place = pod_place(&entry->claim.record, uid, &is_there);
    struct dv_claim_pod *pod;

    if (!is_there)
        return;
    pod = dv_map_get(&state->pods, uid);
    dv_vec_remove(&entry->pods, place);
    publish_pods(entry);
    (void)dv_map_remove(&pod->claims, entry->key);
    if (pod->claims.n == 0) {
        (void)dv_map_remove(&state->pods, pod->uid);
        free_pod(pod);
    }
}

void dv_claim_detach(struct dv_claim_state *state, struct dv_claim *claim, dv_str pod_uid)
{
    struct dv_claim_entry *entry = dv_claim_entry_of(claim);

    if (!dv_claim_is_attached(claim, pod_uid))
        return;
    remove_pod(state, entry, pod_uid);
    dv_claim_mark_dirty(state, entry);
}

/* -- Making and ending ---------------------------------------------------------------------- */

/* Makes an entry with the names of the drivers, and no devices yet. */
static struct dv_claim_entry *new_entry(struct dv_claim_state *state,
                                        const struct dv_claim_record *from)
{
    size_t n_text = from->namespace.n + 1 + from->name.n + from->uid.n;
    struct dv_claim_entry *entry;
    struct dv_claim_record *record;
    char *at;

    for (size_t i = 0; i < from->n_drivers; i++)
        n_text += from->drivers[i].name.n;
    entry = dv_alloc(sizeof(*entry) + n_text);
    record = &entry->claim.record;
    at = entry->text;
    record->namespace = dv_str_put(from->namespace, &at);
    *at++ = '/';
    record->name = dv_str_put(from->name, &at);
    entry->key = (dv_str){entry->text, (size_t)(at - entry->text)};
    record->uid = dv_str_put(from->uid, &at);
    entry->drivers = dv_alloc((from->n_drivers + 1) * sizeof(entry->drivers[0]));
    entry->arenas = dv_alloc((from->n_drivers + 1) * sizeof(entry->arenas[0]));
    for (size_t i = 0; i < from->n_drivers; i++)
        entry->drivers[i].name = dv_str_put(from->drivers[i].name, &at);
    record->drivers = entry->drivers;
    record->n_drivers = from->n_drivers;
    dv_list_init(&entry->waiters);
    (void)dv_map_set(&state->claims, entry->key, entry);
    return entry;
}

void dv_claim_forget(struct dv_claim_state *state, struct dv_claim_entry *entry)
{
    struct dv_claim_gone *gone = dv_vec_add(&state->gone);

    assert(entry->claim.n_holds == 0 && dv_list_is_empty(&entry->waiters));
    dv_buf_init(&gone->key, DV_ROW_BYTES_MAX);
    dv_claim_key_encode(entry->claim.record.namespace, entry->claim.record.name, &gone->key);
    while (entry->pods.n > 0)
        remove_pod(state, entry, entry->pods.v[entry->pods.n - 1]);
    dv_link_remove(&entry->in_dirty);
    (void)dv_map_remove(&state->claims, entry->key);
    free_entry(entry);
}

static const dv_str *copy_texts(const dv_str *texts, size_t n, struct dv_arena *arena)
{
    dv_str *copy;

    if (!texts)
        return NULL;
    copy = DV_NEW_ARRAY(arena, dv_str, n);
    for (size_t i = 0; i < n; i++)
        copy[i] = dv_str_copy(texts[i], arena);
    return copy;
}

static struct dv_claim_device copy_device(const struct dv_claim_device *device,
                                          struct dv_arena *arena)
{
    struct dv_claim_device copy = *device;

    copy.pool = dv_str_copy(device->pool, arena);
    copy.name = dv_str_copy(device->name, arena);
    if (device->share_id.p)
        copy.share_id = dv_str_copy(device->share_id, arena);
    copy.requests = copy_texts(device->requests, device->n_requests, arena);
    copy.cdi_ids = copy_texts(device->cdi_ids, device->n_cdi_ids, arena);
    return copy;
}

void dv_claim_set_devices(struct dv_claim_state *state, struct dv_claim_entry *entry,
                          size_t i_driver, const struct dv_claim_device *devices, size_t n_devices)
{
    struct dv_arena *arena = devices ? dv_arena_new() : NULL;
    struct dv_claim_device *copy =
        devices ? DV_NEW_ARRAY(arena, struct dv_claim_device, n_devices) : NULL;

    for (size_t i = 0; i < n_devices; i++)
        copy[i] = copy_device(&devices[i], arena);
    dv_arena_free(entry->arenas[i_driver]);
    entry->arenas[i_driver] = arena;
    entry->drivers[i_driver].devices = copy;
    entry->drivers[i_driver].n_devices = n_devices;
    dv_claim_mark_dirty(state, entry);
}

void dv_claim_set_handle(struct dv_claim_state *state, struct dv_claim *claim, dv_str driver,
                         dv_str handle)
{
    struct dv_claim_entry *entry = dv_claim_entry_of(claim);
    size_t i = dv_claim_driver_index(&claim->record, driver);

    if (i == claim->record.n_drivers || handle.n == 0)
        return;
    if (!entry->handles)
        entry->handles = dv_arena_new();
    entry->drivers[i].handle = dv_str_copy(handle, entry->handles);
    dv_claim_mark_dirty(state, entry);
}

struct dv_claim_entry *dv_claim_restore(struct dv_claim_state *state,
                                        const struct dv_claim_record *record)
{
    struct dv_claim_entry *entry = find_entry(state, record->namespace, record->name);

    if (!entry) {
        entry = new_entry(state, record);
        for (size_t i = 0; i < record->n_drivers; i++)
            if (record->drivers[i].devices)
                dv_claim_set_devices(state, entry, i, record->drivers[i].devices,
                                     record->drivers[i].n_devices);
        for (size_t i = 0; i < record->n_drivers; i++)
            dv_claim_set_handle(state, &entry->claim, record->drivers[i].name,
                                record->drivers[i].handle);
        entry->claim.record.phase = record->phase;
    }
    for (size_t i = 0; i < record->n_pods; i++)
        (void)add_pod(state, entry, record->pods[i]);
    if (entry->claim.record.phase == DV_CLAIM_WANTED)
        /* a row says PREPARING before any driver is called, so it is loaded as that */
        entry->claim.record.phase = DV_CLAIM_PREPARING;
    if (entry->claim.record.phase == DV_CLAIM_PREPARED) {
        if (state->is_strict || !dv_str_eq(record->boot_id, state->boot_id))
            entry->claim.record.phase = DV_CLAIM_PREPARING;
        else
            entry->claim.record.boot_id = state->boot_id;
    }
    entry->claim.is_left_over = entry->claim.record.phase != DV_CLAIM_PREPARED;
    dv_claim_mark_dirty(state, entry);
    return entry;
}

/* Finds the drivers of the allocation, each once, by name. */
static size_t drivers_of(const struct dv_api_resource_claim *object, struct dv_arena *arena,
                         struct dv_claim_driver **drivers)
{
    const struct dv_api_allocation_result *allocation = object->status.allocation;
    size_t n_results = allocation ? allocation->devices.n_results : 0;
    struct dv_claim_driver *v = DV_NEW_ARRAY(arena, struct dv_claim_driver, n_results);
    size_t n = 0;

    for (size_t i = 0; i < n_results; i++)
        v[i].name = allocation->devices.results[i].driver;
    if (n_results > 0)
        qsort(v, n_results, sizeof(v[0]), dv_str_compare);
    for (size_t i = 0; i < n_results; i++)
        if (n == 0 || !dv_str_eq(v[n - 1].name, v[i].name))
            v[n++] = v[i];
    *drivers = v;
    return n;
}

bool dv_claim_attach(struct dv_claim_state *state, dv_str pod_uid,
                     const struct dv_api_resource_claim *object, struct dv_claim **claim,
                     struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_api_object_meta *meta = &object->metadata;
    struct dv_claim_entry *entry = find_entry(state, meta->namespace, meta->name);
    struct dv_claim_record record = {
        .namespace = meta->namespace, .name = meta->name, .uid = meta->uid};
    struct dv_claim_driver *drivers;

    if (entry && !dv_str_eq(entry->claim.record.uid, meta->uid))
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "old ResourceClaim with same name %.*s and different UID %.*s still exists "
                       "(previous pod force-deleted?!)",
                       DV_FMT(meta->name), DV_FMT(entry->claim.record.uid));
    if (entry && entry->claim.record.phase == DV_CLAIM_UNPREPARING) {
        if (entry->claim.n_holds > 0)
            return dv_fail(err, DV_ABORTED, "ResourceClaim %.*s is being unprepared",
                           DV_FMT(meta->name));
        if (!dv_claim_handle(state, &entry->claim, DV_CLAIM_ON_WANTED, err))
            return false;
    }
    if (!entry) {
        record.n_drivers = drivers_of(object, arena, &drivers);
        record.drivers = drivers;
        entry = new_entry(state, &record);
        dv_claim_mark_dirty(state, entry);
    }
    if (add_pod(state, entry, pod_uid))
        dv_claim_mark_dirty(state, entry);
    *claim = &entry->claim;
    return true;
}
