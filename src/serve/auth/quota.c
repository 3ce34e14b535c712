#include "serve/auth/quota.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "resource/references.h"
#include "resource/resource.h"
#include "serve/auth.h"

#define KIB 1024u
#define MIB (1024u * KIB)
/* A key is a kind, a node and a driver, or a kind, a namespace and a name. */
#define KEY_BYTES_MAX 1024u

/* The limit of an object in the reference's store; a slice of 128 devices with all attributes
 * fits. */
#define OBJECT_BYTES_MAX (1536u * KIB)

static const struct limit {
    enum dv_kind_id kind;
    size_t object_bytes_max;
    size_t n_max; /* for a driver on a node, or for a node by itself */
    size_t bytes_max;
    size_t n_node_max; /* for a node with everything on it */
    size_t bytes_node_max;
    const char *cure;
} limits[] = {
  /* An Event expires after an hour, and its message is 1 KiB at most. */
    {DV_KIND_EVENT, 32 * KIB,         5000, 8 * MIB,  5000, 8 * MIB,
     "make fewer of them, or wait until old ones expire after an hour"},
 /* A slice has at most 128 devices. */
    {DV_KIND_SLICE, OBJECT_BYTES_MAX, 1000, 64 * MIB, 4000, 128 * MIB,
     "delete slices that are not needed, or put more devices into one"},
 /* Only mirror pods count here: a kubelet runs 110 pods, and few of them are static ones. */
    {DV_KIND_POD,   OBJECT_BYTES_MAX, 500,  16 * MIB, 500,  16 * MIB,
     "delete mirror pods that are not needed"                         },
};

/* The account of one kind, for a driver on a node or (driver "") for a node. */
struct dv_quota_account {
    const struct limit *limit;
    bool is_node;
    size_t n;
    size_t n_bytes;
    size_t n_held; /* reserved by writes that may not be stored yet */
    size_t n_held_bytes;
    size_t n_key;
    char key[];
};

/* An object that counts; a slice counts for its driver and for its node. */
struct item {
    struct dv_quota_account *accounts[2]; /* NULL: there is none */
    size_t n_bytes;
    size_t n_key;
    char key[];
};

struct dv_quota {
    struct dv_map accounts;
    struct dv_map items;
};

struct dv_quota *dv_quota_new(void)
{
    struct dv_quota *quota = DV_ALLOC(struct dv_quota);

    dv_map_init(&quota->accounts);
    dv_map_init(&quota->items);
    return quota;
}

static void free_all(struct dv_map *map)
{
    const struct dv_map_entry *entry;
    size_t at = 0;

    while ((entry = dv_map_next(map, &at)) != NULL)
        free(entry->value);
    dv_map_fini(map);
}

void dv_quota_free(struct dv_quota *quota)
{
    if (!quota)
        return;
    free_all(&quota->items);
    free_all(&quota->accounts);
    free(quota);
}

/* ---- accounts ---- */

static const struct limit *limit_of(const struct dv_kind *kind)
{
    for (size_t i = 0; i < DV_COUNT(limits); i++)
        if (limits[i].kind == kind->id)
            return &limits[i];
    return NULL;
}

/* Joins "Event", "n1" and "gpu.example.com" into one text, with zero bytes between, which no part
 * has. */
static dv_str make_key(char text[KEY_BYTES_MAX], dv_str a, dv_str b, dv_str c)
{
    const dv_str parts[] = {a, b, c};
    size_t n = 0;

    for (size_t i = 0; i < DV_COUNT(parts); i++) {
        size_t n_part = parts[i].n < KEY_BYTES_MAX / 3 - 1 ? parts[i].n : KEY_BYTES_MAX / 3 - 1;

        if (n_part > 0)
            memcpy(text + n, parts[i].p, n_part);
        n += n_part;
        text[n++] = '\0';
    }
    return (dv_str){text, n};
}

static struct dv_quota_account *take_account(struct dv_quota *quota, const struct dv_kind *kind,
                                             dv_str node, dv_str driver)
{
    char text[KEY_BYTES_MAX];
    dv_str key = make_key(text, kind->name, node, driver);
    struct dv_quota_account *account = dv_map_get(&quota->accounts, key);

    if (account)
        return account;
    account = dv_alloc(sizeof(*account) + key.n);
    account->limit = limit_of(kind);
    account->is_node = driver.n == 0;
    account->n_key = key.n;
    memcpy(account->key, key.p, key.n);
    /* It was not in the map. */
    (void)dv_map_set(&quota->accounts, (dv_str){account->key, key.n}, account);
    return account;
}

static void drop_account(struct dv_quota *quota, struct dv_quota_account *account)
{
    if (account->n > 0 || account->n_held > 0 || account->n_held_bytes > 0)
        return;
    /* It is in the map. */
    (void)dv_map_remove(&quota->accounts, (dv_str){account->key, account->n_key});
    free(account);
}

/* ---- objects ---- */

static struct item *find_item(const struct dv_quota *quota, const struct dv_kind *kind,
                              const struct dv_api_object_meta *meta)
{
    char text[KEY_BYTES_MAX];

    return dv_map_get(&quota->items, make_key(text, kind->name, meta->namespace, meta->name));
}

/* Finds the accounts of a driver on a node, or of a node; NULL where there is none. */
static void take_accounts(struct dv_quota *quota, const struct dv_kind *kind, dv_str node,
                          dv_str driver, struct dv_quota_account *accounts[2])
{
    accounts[0] = take_account(quota, kind, node, driver);
    accounts[1] = kind->id == DV_KIND_SLICE && driver.n && node.n
                      ? take_account(quota, kind, node, DV_STR_NONE)
                      : NULL;
}

static struct item *add_item(struct dv_quota *quota, const struct dv_object *object, dv_str node,
                             dv_str driver)
{
    char text[KEY_BYTES_MAX];
    dv_str key = make_key(text, object->kind->name, object->meta->namespace, object->meta->name);
    struct item *item = dv_alloc(sizeof(*item) + key.n);

    item->n_key = key.n;
    memcpy(item->key, key.p, key.n);
    take_accounts(quota, object->kind, node, driver, item->accounts);
    for (size_t i = 0; i < DV_COUNT(item->accounts); i++)
        if (item->accounts[i])
            item->accounts[i]->n++;
    (void)dv_map_set(&quota->items, (dv_str){item->key, key.n}, item); /* it was not in the map */
    return item;
}

static void remove_item(struct dv_quota *quota, struct item *item)
{
    (void)dv_map_remove(&quota->items, (dv_str){item->key, item->n_key}); /* it is in the map */
    for (size_t i = 0; i < DV_COUNT(item->accounts); i++) {
        struct dv_quota_account *account = item->accounts[i];

        if (!account)
            continue;
        account->n--;
        account->n_bytes -= item->n_bytes;
        drop_account(quota, account);
    }
    free(item);
}

static void set_item(struct item *item, size_t n_bytes)
{
    for (size_t i = 0; i < DV_COUNT(item->accounts); i++) {
        struct dv_quota_account *account = item->accounts[i];

        if (!account)
            continue;
        account->n_bytes += n_bytes;
        account->n_bytes -= item->n_bytes;
    }
    item->n_bytes = n_bytes;
}

/* Parses "davit:driver:D@N" or "system:node:N", the author in the annotation of an Event. */
static bool read_author(dv_str author, dv_str *node, dv_str *driver)
{
    size_t at = dv_str_find_char(author, '@');

    if (dv_str_starts_with(author, DV_STR(DV_USER_NODE_PREFIX))) {
        *node = dv_str_slice(author, sizeof(DV_USER_NODE_PREFIX) - 1, author.n);
        *driver = DV_STR_NONE;
        return true;
    }
    if (!dv_str_starts_with(author, DV_STR(DV_USER_DRIVER_PREFIX)))
        return false;
    *driver = dv_str_slice(author, sizeof(DV_USER_DRIVER_PREFIX) - 1, at);
    *node = dv_str_slice(author, at + 1, author.n);
    return true;
}

/* Finds which node and driver an object belongs to. False: it belongs to nobody with an account. */
static bool find_owner(const struct dv_kind *kind, const void *value, dv_str *node, dv_str *driver)
{
    const struct dv_api_object_meta *meta = value;
    const struct dv_api_resource_slice *slice = value;
    const struct dv_api_pod *pod = value;
    const struct dv_str_entry *author;

    *driver = DV_STR_NONE;
    switch ((int)kind->id) {
    case DV_KIND_SLICE:
        *node = slice->spec.node_name;
        *driver = slice->spec.driver;
        return true;
    case DV_KIND_POD:
        *node = pod->spec.node_name;
        return pod->spec.node_name.n > 0 && dv_pod_is_mirror(pod);
    case DV_KIND_EVENT:
        author =
            dv_entry_find(meta->annotations, meta->n_annotations, DV_STR(DV_ANNOTATION_AUTHOR));
        return author && read_author(author->value, node, driver);
    default:
        return false;
    }
}

bool dv_quota_is_owner(const struct dv_kind *kind, const void *value, dv_str node, dv_str driver)
{
    dv_str its_node, its_driver;

    return find_owner(kind, value, &its_node, &its_driver) && dv_str_eq(its_node, node) &&
           dv_str_eq(its_driver, driver);
}

void dv_quota_changed(struct dv_quota *quota, const struct dv_object *old,
                      const struct dv_object *now)
{
    const struct dv_object *object = now ? now : old;
    struct item *item;
    dv_str node, driver;

    if (!limit_of(object->kind))
        return;
    item = find_item(quota, object->kind, object->meta);
    if (!now) {
        if (item)
            remove_item(quota, item);
        return;
    }
    if (!item && find_owner(now->kind, now->value, &node, &driver))
        item = add_item(quota, now, node, driver);
    if (item)
        set_item(item, now->size_bytes);
}

/* ---- writes ---- */

static bool check_size(const struct dv_quota_write *write, size_t n_bytes, struct dv_err *err)
{
    const struct limit *limit = limit_of(write->kind);
    size_t max = limit ? limit->object_bytes_max : OBJECT_BYTES_MAX;

    if (n_bytes <= max || (write->old && n_bytes <= write->old->size_bytes))
        return true;
    return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                   "quota: %s of a node or driver may take %zu bytes of memory, and this one takes "
                   "%zu: make it smaller",
                   write->kind->id == DV_KIND_EVENT ? "an Event" : "an object", max, n_bytes);
}

static bool check_account(const struct dv_quota_write *write,
                          const struct dv_quota_account *account,
                          const struct dv_quota_hold *wanted, struct dv_err *err)
{
    const struct limit *limit = account->limit;
    size_t n_max = account->is_node ? limit->n_node_max : limit->n_max;
    size_t bytes_max = account->is_node ? limit->bytes_node_max : limit->bytes_max;
    size_t n_used = account->n + account->n_held;
    size_t bytes_used = account->n_bytes + account->n_held_bytes;
    dv_str who = account->is_node ? write->node : write->driver;

    who = dv_str_slice(who, 0, 60);
    if (wanted->n > 0 && n_used + wanted->n > n_max)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "quota: %s \"%.*s\" has %zu of %zu %.*s: %s",
                       account->is_node ? "node" : "driver", DV_FMT(who), n_used, n_max,
                       DV_FMT(write->kind->plural), limit->cure);
    if (wanted->n_bytes > 0 && bytes_used + wanted->n_bytes > bytes_max)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "quota: %s \"%.*s\" has %.*s of %zu of %zu bytes, and wants %zu more: %s",
                       account->is_node ? "node" : "driver", DV_FMT(who),
                       DV_FMT(write->kind->plural), bytes_used, bytes_max, wanted->n_bytes,
                       limit->cure);
    return true;
}

bool dv_quota_take(struct dv_quota *quota, const struct dv_quota_write *write,
                   struct dv_quota_hold *hold, struct dv_err *err)
{
    size_t n_bytes = dv_object_measure(write->kind, write->value);
    size_t n_old = write->old ? write->old->size_bytes : 0;
    struct dv_quota_hold wanted = {.n = write->old ? 0 : 1,
                                   .n_bytes = n_bytes > n_old ? n_bytes - n_old : 0};
    bool fits = true;

    if (!check_size(write, n_bytes, err))
        return false;
    if (!limit_of(write->kind) || (wanted.n == 0 && wanted.n_bytes == 0))
        return true;
    dv_quota_release(quota, hold);
    take_accounts(quota, write->kind, write->node, write->driver, wanted.accounts);
    for (size_t i = 0; i < DV_COUNT(wanted.accounts) && fits; i++)
        fits = !wanted.accounts[i] || check_account(write, wanted.accounts[i], &wanted, err);
    for (size_t i = 0; i < DV_COUNT(wanted.accounts); i++) {
        if (!wanted.accounts[i])
            continue;
        wanted.accounts[i]->n_held += wanted.n;
        wanted.accounts[i]->n_held_bytes += wanted.n_bytes;
    }
    *hold = wanted;
    if (!fits)
        dv_quota_release(quota, hold);
    return fits;
}

void dv_quota_release(struct dv_quota *quota, struct dv_quota_hold *hold)
{
    for (size_t i = 0; i < DV_COUNT(hold->accounts); i++) {
        struct dv_quota_account *account = hold->accounts[i];

        if (!account)
            continue;
        account->n_held -= hold->n;
        account->n_held_bytes -= hold->n_bytes;
        drop_account(quota, account);
    }
    *hold = (struct dv_quota_hold){0};
}
