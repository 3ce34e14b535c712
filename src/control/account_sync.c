/* account_sync.c - what every namespace has so that its pods can use the API: a default service
 * account, and a config map with what vouches for the server. What is deleted comes back, and a
 * config map that somebody has changed is put right. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "control/control.h"
#include "control/control_queue.h"
#include "control/controllers.h"
#include "resource/prepare.h"
#include "resource/resource.h"

#define DESCRIPTION_KEY "kubernetes.io/description"
#define DESCRIPTION                                                                                \
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "      \
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "      \
    "guaranteed across distributions of Kubernetes clusters."
#define CA_KEY "ca.crt"
/* When it is looked again at what somebody else has just changed. */
#define AGAIN_MS 1000u

size_t dv_control_account_sync_bytes(void)
{
    return sizeof(struct dv_control_sync);
}

static void queue(struct dv_control *control, dv_str namespace)
{
    dv_queue_add(&control->queues[DV_CONTROL_ACCOUNT_QUEUE], DV_STR_NONE, namespace);
}

void dv_control_namespace_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    (void)old;
    if (now)
        queue(ctx, now->meta->name);
}

void dv_control_account_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    const struct dv_api_object_meta *meta = (now ? now : old)->meta;

    if (!now && dv_str_eq(meta->name, DV_STR(DV_DEFAULT_ACCOUNT)))
        queue(ctx, meta->namespace);
}

void dv_control_config_map_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    const struct dv_api_object_meta *meta = (now ? now : old)->meta;

    if (dv_str_eq(meta->name, DV_STR(DV_ROOT_CA_CONFIG_MAP)))
        queue(ctx, meta->namespace);
}

static void on_written(struct dv_control_sync *sync, const struct dv_api_status *failure)
{
    if (!failure)
        dv_control_sync_finish_after(sync, 0); /* one thing at a time: there may be another */
    else if (failure->code == 409 || failure->code == 404 || failure->code == 403)
        dv_control_sync_finish_after(sync,
                                     AGAIN_MS); /* somebody was faster, or the namespace goes */
    else
        dv_control_sync_fail(sync, "make what pods use the API with", failure);
}

static void write_account(struct dv_control_sync *sync)
{
    struct dv_api_service_account *account = DV_NEW(sync->arena, struct dv_api_service_account);

    account->metadata.name = DV_STR(DV_DEFAULT_ACCOUNT);
    account->metadata.namespace = dv_str_copy(sync->item.name, sync->arena);
    sync->request = (struct dv_request){.verb = DV_VERB_CREATE,
                                        .kind = dv_kind(DV_KIND_SERVICE_ACCOUNT),
                                        .namespace = account->metadata.namespace,
                                        .value = account,
                                        .field_manager = DV_STR(DV_CONTROL_ACCOUNTS_MANAGER)};
    dv_control_sync_ask(sync, on_written);
}

static bool is_right(const struct dv_control *control, const struct dv_api_config_map *map)
{
    return map->n_data == 1 && map->n_binary_data == 0 &&
           dv_str_eq(map->data[0].key, DV_STR(CA_KEY)) &&
           dv_str_eq(map->data[0].value, control->options.root_ca);
}

static void write_config_map(struct dv_control_sync *sync, const struct dv_object *old)
{
    struct dv_api_config_map *map = DV_NEW(sync->arena, struct dv_api_config_map);
    struct dv_str_entry *annotation = DV_NEW(sync->arena, struct dv_str_entry);
    struct dv_str_entry *data = DV_NEW(sync->arena, struct dv_str_entry);

    *data = (struct dv_str_entry){DV_STR(CA_KEY), sync->control->options.root_ca};
    if (old) {
        *map = *(const struct dv_api_config_map *)old->value;
    } else {
        *annotation = (struct dv_str_entry){DV_STR(DESCRIPTION_KEY), DV_STR(DESCRIPTION)};
        map->metadata.name = DV_STR(DV_ROOT_CA_CONFIG_MAP);
        map->metadata.namespace = dv_str_copy(sync->item.name, sync->arena);
        map->metadata.annotations = annotation;
        map->metadata.n_annotations = 1;
    }
    map->data = data;
    map->n_data = 1;
    map->binary_data = NULL;
    map->n_binary_data = 0;
    sync->request = (struct dv_request){.verb = old ? DV_VERB_UPDATE : DV_VERB_CREATE,
                                        .kind = dv_kind(DV_KIND_CONFIG_MAP),
                                        .namespace = map->metadata.namespace,
                                        .name = old ? map->metadata.name : DV_STR_NONE,
                                        .value = map,
                                        .field_manager = DV_STR(DV_CONTROL_ACCOUNTS_MANAGER)};
    dv_control_sync_ask(sync, on_written);
}

void dv_control_account_sync_run(struct dv_queue_item *item)
{
    struct dv_control_sync *sync = DV_CONTAINER(item, struct dv_control_sync, item);
    struct dv_control *control =
        DV_CONTAINER(item->queue, struct dv_control, queues[DV_CONTROL_ACCOUNT_QUEUE]);
    struct dv_object *namespace =
        dv_control_get(control, DV_CONTROL_NAMESPACES, DV_STR_NONE, item->name);
    struct dv_object *map;

    if (!namespace || namespace->meta->deletion_timestamp.is_set) {
        dv_queue_finish(item);
        return;
    }
    map =
        dv_control_get(control, DV_CONTROL_CONFIG_MAPS, item->name, DV_STR(DV_ROOT_CA_CONFIG_MAP));
    dv_control_sync_begin(sync, control,
                          map ? map : namespace); /* what is written may refer to it */
    if (!dv_control_get(control, DV_CONTROL_ACCOUNTS, item->name, DV_STR(DV_DEFAULT_ACCOUNT)))
        write_account(sync);
    else if (!map || !is_right(control, map->value))
        write_config_map(sync, map);
    else
        dv_control_sync_finish(sync);
}
