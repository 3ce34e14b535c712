#include "daemon/old_offers.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "claim/claim.h"
#include "davit/dra.h"
#include "lib/lib_embed.h"
#include "number/number.h"
#include "resource/resource.h"

#define QUANTITY_BYTES_MAX (2u * DV_QUANTITY_DIGITS_MAX)

/* One driver's publisher. */
struct publisher {
    struct dv_old_offers *offers;
    dv_str driver;
    struct davit_dra *dra;
    char text[];
};

struct dv_old_offers {
    struct dv_loop *loop;
    struct dv_cluster *cluster;
    struct dv_arena *arena;
    const char *node_name;
    struct dv_map publishers; /* by driver */
    size_t n_open;            /* publishers that are there or closing */
    struct dv_task close_task;
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* ---- devices as the library takes them ---- */

static struct davit_dra_attribute make_attribute(const struct dv_api_device_attribute_entry *entry,
                                                 struct dv_arena *arena)
{
    const struct dv_api_device_attribute *value = &entry->value;
    struct davit_dra_attribute made = {.name = dv_str_to_c(entry->key, arena)};

    if (value->int_) {
        made.type = DAVIT_DRA_INT;
        made.number = *value->int_;
    } else if (value->bool_) {
        made.type = DAVIT_DRA_BOOL;
        made.number = *value->bool_;
    } else {
        made.type = value->version.p ? DAVIT_DRA_VERSION : DAVIT_DRA_STRING;
        made.text = dv_str_to_c(value->version.p ? value->version : value->string, arena);
    }
    return made;
}

static struct davit_dra_amount make_amount(const struct dv_api_device_capacity_entry *entry,
                                           struct dv_arena *arena)
{
    struct davit_dra_amount made = {.name = dv_str_to_c(entry->key, arena)};
    struct dv_buf buf;

    dv_buf_init(&buf, QUANTITY_BYTES_MAX);
    dv_quantity_print(&entry->value.value, &buf);
    made.value = dv_str_to_c(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return made;
}

static void make_device(const struct dv_api_device *from, struct dv_arena *arena,
                        struct davit_dra_device *made)
{
    struct davit_dra_attribute *attributes =
        DV_NEW_ARRAY(arena, struct davit_dra_attribute, from->n_attributes);
    struct davit_dra_amount *capacity =
        DV_NEW_ARRAY(arena, struct davit_dra_amount, from->n_capacity);

    for (size_t i = 0; i < from->n_attributes; i++)
        attributes[i] = make_attribute(&from->attributes[i], arena);
    for (size_t i = 0; i < from->n_capacity; i++)
        capacity[i] = make_amount(&from->capacity[i], arena);
    *made = (struct davit_dra_device){
        .name = dv_str_to_c(from->name, arena),
        .attributes = attributes,
        .n_attributes = from->n_attributes,
        .capacity = capacity,
        .n_capacity = from->n_capacity,
    };
}

static bool publish(struct publisher *publisher, const struct dv_claim_offer *offer,
                    struct davit_error *error)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct davit_dra_device *devices =
        DV_NEW_ARRAY(arena, struct davit_dra_device, offer->n_devices);
    struct davit_dra_pool pool = {
        .name = publisher->offers->node_name,
        .devices = devices,
        .n_devices = offer->n_devices,
    };

    for (size_t i = 0; i < offer->n_devices; i++)
        make_device(&offer->devices[i], arena, &devices[i]);
    return davit_dra_publish(publisher->dra, &pool, 1, error);
}

/* ---- publishers ---- */

static void on_event(void *ctx, const struct davit_dra_event *event)
{
    const struct publisher *publisher = ctx;

    if (event->kind == DAVIT_DRA_PUBLISHED)
        dv_log(DV_LOG_INFO, "daemon: what an old driver offers is in ResourceSlices",
               DV_F_STR("driver", publisher->driver));
    else
        dv_log(DV_LOG_WARN, "daemon: what an old driver offers is not all in ResourceSlices",
               DV_F_STR("driver", publisher->driver), DV_F_C("error", event->error.message),
               DV_F_U64("retry_ms", event->retry_ms));
}

static void on_closed_all(struct dv_task *task)
{
    struct dv_old_offers *offers = DV_CONTAINER(task, struct dv_old_offers, close_task);
    dv_closed_fn *closed = offers->closed;
    void *ctx = offers->closed_ctx;

    dv_map_fini(&offers->publishers);
    dv_arena_free(offers->arena);
    free(offers);
    if (closed)
        closed(ctx);
}

static void check_closed(struct dv_old_offers *offers)
{
    if (offers->is_closing && offers->n_open == 0)
        dv_task_post(&offers->close_task, offers->loop, on_closed_all);
}

static void on_removed(void *ctx)
{
    struct publisher *publisher = ctx;
    struct dv_old_offers *offers = publisher->offers;

    free(publisher);
    offers->n_open--;
    check_closed(offers);
}

static void remove_publisher(struct publisher *publisher)
{
    (void)dv_map_remove(&publisher->offers->publishers, publisher->driver);
    dv_lib_dra_remove(publisher->dra, on_removed, publisher);
}

static struct publisher *open_publisher(struct dv_old_offers *offers, dv_str driver,
                                        struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct publisher *publisher = dv_alloc(sizeof(*publisher) + driver.n + 1);
    struct davit_dra_options options = {
        .driver = dv_str_to_c(driver, arena),
        .node = offers->node_name,
        .flags = DAVIT_DRA_PUBLISH_ONLY,
        .ctx = publisher,
        .event = on_event,
    };
    char *at = publisher->text;

    publisher->offers = offers;
    publisher->driver = dv_str_put(driver, &at);
    publisher->dra = dv_lib_dra_embed(offers->loop, &options, offers->cluster, err);
    if (!publisher->dra) {
        free(publisher);
        return NULL;
    }
    offers->n_open++;
    (void)dv_map_set(&offers->publishers, publisher->driver, publisher);
    return publisher;
}

void dv_old_offers_set(struct dv_old_offers *offers, dv_str driver,
                       const struct dv_claim_offer *offer)
{
    struct publisher *publisher = dv_map_get(&offers->publishers, driver);
    struct davit_error error = {0};
    struct dv_err err;

    if (!offer) {
        if (publisher)
            remove_publisher(publisher);
        return;
    }
    if (!publisher)
        publisher = open_publisher(offers, driver, &err);
    if (!publisher)
        dv_log(DV_LOG_ERROR, "daemon: what an old driver offers cannot be published",
               DV_F_STR("driver", driver), DV_F_ERR(&err));
    else if (!publish(publisher, offer, &error))
        dv_log(DV_LOG_ERROR, "daemon: what an old driver offers cannot be published",
               DV_F_STR("driver", driver), DV_F_C("error", error.message));
}

/* ---- life ---- */

struct dv_old_offers *dv_old_offers_open(struct dv_loop *loop, struct dv_cluster *cluster,
                                         dv_str node_name)
{
    struct dv_old_offers *offers = DV_ALLOC(struct dv_old_offers);

    offers->loop = loop;
    offers->cluster = cluster;
    offers->arena = dv_arena_new();
    offers->node_name = dv_str_to_c(node_name, offers->arena);
    dv_map_init(&offers->publishers);
    return offers;
}

void dv_old_offers_close(struct dv_old_offers *offers, dv_closed_fn *closed, void *ctx)
{
    const struct dv_map_entry *entry;

    assert(!offers->is_closing);
    offers->is_closing = true;
    offers->closed = closed;
    offers->closed_ctx = ctx;
    for (size_t at = 0; (entry = dv_map_next(&offers->publishers, &at)) != NULL;)
        remove_publisher(entry->value);
    check_closed(offers);
}
