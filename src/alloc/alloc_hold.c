/* alloc_hold.c - which devices are in use, by which claims. A device is known by its name (struct
 * ident) whether or not a slice has it, because claims outlive slices: a slice that is published
 * again finds its devices still held. The key of a pool is its path followed by the length of the
 * driver's name: names of pools may have slashes, and what nobody has validated may have them
 * anywhere. */
#include <stdlib.h>
#include <string.h>

#include "alloc/alloc.h"
#include "alloc/inventory.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "number/number.h"
#include "resource/resource.h"

/* ---- keys ---- */

/* The key of a pool, in inventory->text. */
static dv_str pool_key(struct dv_inventory *inventory, dv_str driver, dv_str pool)
{
    struct dv_buf *buf = &inventory->text;

    dv_buf_clear(buf);
    dv_buf_add(buf, driver);
    dv_buf_add_char(buf, '/');
    dv_buf_add(buf, pool);
    dv_buf_add(buf, (dv_str){(const char *)&driver.n, sizeof(driver.n)});
    return dv_buf_str(buf);
}

/* ---- pools and idents ---- */

struct dv_alloc_pool *dv_pool_ref(struct dv_inventory *inventory, dv_str driver, dv_str name)
{
    dv_str key = pool_key(inventory, driver, name);
    struct dv_alloc_pool *pool = dv_map_get(&inventory->pools, key);

    if (!pool) {
        pool = dv_alloc(sizeof(*pool) + key.n);
        memcpy(pool + 1, key.p, key.n);
        pool->key = (dv_str){(const char *)(pool + 1), key.n};
        pool->path = dv_str_slice(pool->key, 0, driver.n + 1 + name.n);
        pool->driver = dv_str_slice(pool->key, 0, driver.n);
        pool->name = dv_str_slice(pool->path, driver.n + 1, pool->path.n);
        dv_list_init(&pool->slices);
        dv_map_set(&inventory->pools, pool->key, pool);
    }
    pool->n_refs++;
    return pool;
}

void dv_pool_unref(struct dv_inventory *inventory, struct dv_alloc_pool *pool)
{
    if (--pool->n_refs > 0)
        return;
    dv_map_remove(&inventory->pools, pool->key);
    free(pool);
}

dv_str dv_ident_name(const struct dv_alloc_ident *ident)
{
    return (dv_str){ident->name, ident->n_name};
}

static struct dv_name name_of(const void *item)
{
    const struct dv_alloc_ident *ident = item;

    return (struct dv_name){.namespace = ident->pool->key, .name = dv_ident_name(ident)};
}

void dv_idents_init(struct dv_inventory *inventory)
{
    dv_names_init(&inventory->idents, name_of);
    dv_slabs_init(&inventory->memory);
}

static struct dv_alloc_ident *find_ident(struct dv_inventory *inventory, dv_str driver, dv_str pool,
                                         dv_str device)
{
    return dv_names_get(&inventory->idents, pool_key(inventory, driver, pool), device);
}

struct dv_alloc_ident *dv_ident_ref(struct dv_inventory *inventory, dv_str driver, dv_str pool,
                                    dv_str device)
{
    struct dv_alloc_ident *ident = find_ident(inventory, driver, pool, device);

    if (!ident) {
        ident = dv_slab_alloc(&inventory->memory, sizeof(*ident) + device.n);
        ident->n_name = (uint32_t)device.n;
        if (device.n > 0)
            memcpy(ident->name, device.p, device.n);
        ident->pool = dv_pool_ref(inventory, driver, pool);
        dv_list_init(&ident->holds);
        (void)dv_names_put(&inventory->idents, ident); /* looked up above: there was none */
    }
    ident->n_refs++;
    return ident;
}

static void forget_sums(struct dv_alloc_ident *ident)
{
    if (ident->sums)
        dv_arena_free(ident->sums->arena);
    ident->sums = NULL;
}

void dv_ident_unref(struct dv_inventory *inventory, struct dv_alloc_ident *ident)
{
    if (--ident->n_refs > 0)
        return;
    (void)dv_names_remove(&inventory->idents, ident->pool->key, dv_ident_name(ident));
    dv_pool_unref(inventory, ident->pool);
    forget_sums(ident);
    dv_slab_free(&inventory->memory, ident, sizeof(*ident) + ident->n_name);
}

bool dv_ident_is_in_use(const struct dv_alloc_ident *ident)
{
    return ident->n_dedicated > 0 || ident->n_shares > 0;
}

/* ---- one hold ---- */

/* A block for a hold and all that it refers to: where its next part goes. */
struct block {
    char *at;
};

static size_t aligned(size_t n)
{
    return (n + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
}

static void *part(struct block *block, size_t n)
{
    char *at = block->at;

    block->at += aligned(n);
    return at;
}

static dv_str put_text(struct block *block, dv_str text)
{
    char *at = part(block, text.n);

    if (text.n)
        memcpy(at, text.p, text.n);
    return text.p ? (dv_str){at, text.n} : DV_STR_NONE;
}

static size_t block_bytes(const struct dv_api_device_request_allocation_result *result, size_t n,
                          dv_str holder)
{
    size_t bytes = aligned(sizeof(struct dv_alloc_hold)) +
                   aligned(n * sizeof(struct dv_quantity_entry)) + aligned(holder.n) +
                   aligned(result->share_id.n);

    for (size_t i = 0; i < n; i++)
        bytes += aligned(result->consumed_capacity[i].key.n) +
                 aligned(dv_quantity_room(&result->consumed_capacity[i].value));
    return bytes;
}

static struct dv_alloc_hold *hold_new(struct dv_inventory *inventory,
                                      const struct dv_api_device_request_allocation_result *result,
                                      bool is_share, dv_str holder)
{
    bool has_capacity = is_share && result->consumed_capacity != NULL;
    size_t n = has_capacity ? result->n_consumed_capacity : 0;
    size_t n_bytes = block_bytes(result, n, holder);
    struct block block = {dv_slab_alloc(&inventory->memory, n_bytes)};
    struct dv_alloc_hold *hold = part(&block, sizeof(struct dv_alloc_hold));
    struct dv_quantity_entry *consumed = part(&block, n * sizeof(struct dv_quantity_entry));

    hold->holder = put_text(&block, holder);
    hold->share_id = put_text(&block, is_share ? result->share_id : DV_STR_NONE);
    hold->has_capacity = has_capacity;
    hold->n_bytes = (uint32_t)n_bytes; /* a claim is far smaller */
    hold->consumed = consumed;
    hold->n_consumed = n;
    for (size_t i = 0; i < n; i++) {
        const struct dv_quantity *value = &result->consumed_capacity[i].value;

        consumed[i].key = put_text(&block, result->consumed_capacity[i].key);
        consumed[i].value = dv_quantity_copy_to(value, part(&block, dv_quantity_room(value)));
    }
    return hold;
}

/* ---- sums ---- */

/* Makes the sums of consumed capacity anew, with the hold's part added or taken off. They go into a
 * new arena, and the old one is freed: adding to large quantities in place would leave their old
 * digits behind for ever. A sum that has become zero stays, because a share may consume nothing of
 * a capacity. */
static void change_sums(struct dv_alloc_ident *ident, const struct dv_alloc_hold *hold, bool adds)
{
    const struct dv_alloc_sums *old = ident->sums;
    size_t n_old = old ? old->n : 0;
    struct dv_alloc_sums *sums;
    struct dv_arena *arena;

    if (!hold->has_capacity)
        return;
    arena = dv_arena_new();
    sums = DV_NEW(arena, struct dv_alloc_sums);
    sums->arena = arena;
    sums->v = DV_NEW_ARRAY(arena, struct dv_quantity_entry, n_old + hold->n_consumed);
    for (; sums->n < n_old; sums->n++)
        sums->v[sums->n] =
            (struct dv_quantity_entry){dv_str_copy(old->v[sums->n].key, arena),
                                       dv_quantity_copy(&old->v[sums->n].value, arena)};
    for (size_t i = 0; i < hold->n_consumed; i++) {
        const struct dv_quantity *amount = &hold->consumed[i].value;
        size_t at = 0;

        while (at < sums->n && !dv_str_eq(sums->v[at].key, hold->consumed[i].key))
            at++;
        if (at == sums->n)
            sums->v[sums->n++].key = dv_str_copy(hold->consumed[i].key, arena);
        sums->v[at].value = adds ? dv_quantity_add(&sums->v[at].value, amount, arena)
                                 : dv_quantity_sub(&sums->v[at].value, amount, arena);
    }
    forget_sums(ident);
    ident->sums = sums;
}

/* ---- holding and releasing ---- */

static void add_hold(struct dv_inventory *inventory,
                     const struct dv_api_device_request_allocation_result *result, dv_str holder)
{
    bool is_share = result->share_id.p && inventory->features.consumable_capacity;
    /* This reference belongs to the hold. */
    struct dv_alloc_ident *ident =
        dv_ident_ref(inventory, result->driver, result->pool, result->device);
    struct dv_alloc_hold *hold = hold_new(inventory, result, is_share, holder);

    dv_list_push(&ident->holds, &hold->link);
    *(is_share ? &ident->n_shares : &ident->n_dedicated) += 1;
    ident->n_with_capacity += hold->has_capacity;
    change_sums(ident, hold, true);
    ident->pool->usage_version = ++inventory->version;
}

static void drop_hold(struct dv_inventory *inventory, struct dv_alloc_ident *ident,
                      struct dv_alloc_hold *hold)
{
    *(hold->share_id.p ? &ident->n_shares : &ident->n_dedicated) -= 1;
    ident->n_with_capacity -= hold->has_capacity;
    if (ident->n_with_capacity > 0)
        change_sums(ident, hold, false);
    else
        forget_sums(ident);
    ident->pool->usage_version = ++inventory->version;
    dv_link_remove(&hold->link);
    dv_slab_free(&inventory->memory, hold, hold->n_bytes);
    dv_ident_unref(inventory, ident);
}

static struct dv_alloc_hold *find_hold(const struct dv_alloc_ident *ident, dv_str share_id)
{
    for (struct dv_link *link = ident->holds.head.next; link != &ident->holds.head;
         link = link->next) {
        struct dv_alloc_hold *hold = DV_CONTAINER(link, struct dv_alloc_hold, link);

        if (share_id.p ? hold->share_id.p && dv_str_eq(hold->share_id, share_id)
                       : !hold->share_id.p)
            return hold;
    }
    return NULL;
}

static void release(struct dv_inventory *inventory,
                    const struct dv_api_device_request_allocation_result *result)
{
    dv_str share_id = inventory->features.consumable_capacity ? result->share_id : DV_STR_NONE;
    struct dv_alloc_ident *ident =
        find_ident(inventory, result->driver, result->pool, result->device);
    struct dv_alloc_hold *hold = ident ? find_hold(ident, share_id) : NULL;

    if (hold)
        drop_hold(inventory, ident, hold);
}

static void drop_holds(struct dv_inventory *inventory, struct dv_alloc_ident *ident)
{
    ident->n_refs++; /* keeps the ident until all its holds are gone */
    while (!dv_list_is_empty(&ident->holds))
        drop_hold(inventory, ident,
                  DV_CONTAINER(ident->holds.head.next, struct dv_alloc_hold, link));
    dv_ident_unref(inventory, ident);
}

void dv_idents_fini(struct dv_inventory *inventory)
{
    while (inventory->idents.n > 0) { /* removing one may move another to where the walk has been */
        struct dv_alloc_ident *ident;
        size_t at = 0;

        while ((ident = dv_names_next(&inventory->idents, &at)) != NULL)
            drop_holds(inventory, ident);
    }
    dv_names_fini(&inventory->idents);
    dv_slabs_fini(&inventory->memory);
}

/* Puts a copy of the change off until the inventory is returned. False: it is not lent. */
static bool put_off(struct dv_inventory *inventory, enum change_kind kind,
                    const struct dv_api_allocation_result *allocation, dv_str holder)
{
    struct dv_alloc_change *later = dv_inventory_put_off(inventory, kind);
    struct dv_api_allocation_result *copy;

    if (!later)
        return false;
    copy = DV_NEW(inventory->lent.arena, struct dv_api_allocation_result);
    dv_message_copy(&dv_message_allocation_result, allocation, inventory->lent.arena, copy);
    later->allocation = copy;
    later->name = dv_str_copy(holder, inventory->lent.arena);
    return true;
}

static bool is_admin(const struct dv_api_device_request_allocation_result *result)
{
    return result->admin_access && *result->admin_access;
}

void dv_inventory_hold(struct dv_inventory *inventory,
                       const struct dv_api_allocation_result *allocation, dv_str holder)
{
    if (put_off(inventory, DV_ALLOC_CHANGE_HOLD, allocation, holder))
        return;
    for (size_t i = 0; i < allocation->devices.n_results; i++)
        if (!is_admin(&allocation->devices.results[i]))
            add_hold(inventory, &allocation->devices.results[i], holder);
}

void dv_inventory_release(struct dv_inventory *inventory,
                          const struct dv_api_allocation_result *allocation)
{
    if (put_off(inventory, DV_ALLOC_CHANGE_RELEASE, allocation, DV_STR_NONE))
        return;
    for (size_t i = 0; i < allocation->devices.n_results; i++)
        if (!is_admin(&allocation->devices.results[i]))
            release(inventory, &allocation->devices.results[i]);
}
