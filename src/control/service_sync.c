/* service_sync.c - the addresses behind services that have a selector: EndpointSlices, kept to be
 * what endpoints.h says. An index leads from a service to its pods, so that a change of a pod costs
 * what its services cost; a change of a selector walks all pods. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/cluster.h"
#include "control/control_index.h"
#include "control/control_queue.h"
#include "control/controllers.h"
#include "control/endpoints.h"
#include "resource/resource.h"

#define MANAGER "endpointslice-controller"

size_t dv_control_service_sync_bytes(void)
{
    return sizeof(struct dv_control_sync);
}

/* ---- what a change concerns ---- */

static void queue(struct dv_control *control, const struct dv_api_object_meta *service)
{
    dv_queue_add(&control->queues[DV_CONTROL_SERVICE_QUEUE], service->namespace, service->name);
}

static dv_str key_of(dv_str namespace, dv_str name, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%.*s/%.*s", DV_FMT(namespace), DV_FMT(name));
}

/* The word under which a service is found by pods: what its selector names first. */
static dv_str label_word(dv_str namespace, const struct dv_str_entry *label, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%.*s %.*s=%.*s", DV_FMT(namespace), DV_FMT(label->key),
                         DV_FMT(label->value));
}

/* Has services be found by the labels of pods; NULL: the service is gone. */
static void index_selector(struct dv_control *control, const struct dv_api_object_meta *meta,
                           const struct dv_api_service *service)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    bool has_word = service && dv_service_has_slices(service);
    dv_str word =
        has_word ? label_word(meta->namespace, &service->spec.selector[0], scratch) : DV_STR_NONE;

    dv_index_set(&control->services, key_of(meta->namespace, meta->name, scratch), &word, has_word);
}

typedef DV_VEC(const struct dv_object *) services;

/* Finds the services that select the pod, in the arena: each is under one of its labels, or none of
 * them. */
static void find_services(const struct dv_control *control, const struct dv_api_pod *pod,
                          services *found, struct dv_arena *arena)
{
    const struct dv_api_object_meta *meta = &pod->metadata;

    for (size_t i = 0; i < meta->n_labels; i++) {
        const struct dv_list *refs =
            dv_index_find(&control->services, label_word(meta->namespace, &meta->labels[i], arena));
        struct dv_link *link;

        if (!refs)
            continue;
        DV_LIST_EACH (refs, link) {
            const struct dv_object *object;
            dv_str namespace, name;

            dv_control_split(dv_index_thing(link), &namespace, &name);
            object = dv_control_get(control, DV_CONTROL_SERVICES, namespace, name);
            if (object && dv_service_selects(object->value, pod))
                *dv_vec_add_in(found, arena) = object;
        }
    }
}

/* Has the index know which services the pod is behind, and returns them in the arena. NULL: the pod
 * is gone. */
static services index_pod(struct dv_control *control, dv_str key, const struct dv_api_pod *pod,
                          struct dv_arena *arena)
{
    services found = {0};
    dv_str *words;

    if (pod)
        find_services(control, pod, &found, arena);
    words = DV_NEW_ARRAY(arena, dv_str, found.n + 1);
    for (size_t i = 0; i < found.n; i++)
        words[i] = key_of(found.v[i]->meta->namespace, found.v[i]->meta->name, arena);
    dv_index_set(&control->endpoints, key, words, found.n);
    return found;
}

void dv_control_endpoint_changed(struct dv_control *control, const struct dv_api_pod *was,
                                 const struct dv_api_pod *pod)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = NULL;
    const struct dv_api_object_meta *meta = pod ? &pod->metadata : was ? &was->metadata : NULL;
    services found;

    assert(meta);
    if (!control->views[DV_CONTROL_SERVICES] || (was && pod && dv_is_same_endpoint(was, pod)))
        return;
    scratch = dv_arena_new();
    found = index_pod(control, key_of(meta->namespace, meta->name, scratch), pod, scratch);
    if (was)
        find_services(control, was, &found, scratch);
    for (size_t i = 0; i < found.n; i++)
        queue(control, found.v[i]->meta);
}

static bool is_same_selector(const struct dv_api_service *a, const struct dv_api_service *b)
{
    if (a->spec.n_selector != b->spec.n_selector || !dv_str_eq(a->spec.type, b->spec.type))
        return false;
    for (size_t i = 0; i < a->spec.n_selector; i++)
        if (!dv_str_eq(a->spec.selector[i].key, b->spec.selector[i].key) ||
            !dv_str_eq(a->spec.selector[i].value, b->spec.selector[i].value))
            return false;
    return true;
}

/* A service has come or gone, or selects others: finds out anew which services each of its pods,
 * before and now, is behind. */
static void index_service(struct dv_control *control, const struct dv_api_service *was,
                          const struct dv_api_service *service)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_object *object;

    for (size_t at = 0; (object = dv_view_next(control->views[DV_CONTROL_PODS], &at)) != NULL;) {
        const struct dv_api_pod *pod = object->value;

        if ((was && dv_service_selects(was, pod)) || (service && dv_service_selects(service, pod)))
            (void)index_pod(control, key_of(object->meta->namespace, object->meta->name, scratch),
                            pod, scratch);
    }
}

void dv_control_service_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    const struct dv_api_service *was = old ? old->value : NULL;
    const struct dv_api_service *service = now ? now->value : NULL;

    if (!was || !service || !is_same_selector(was, service)) {
        index_selector(ctx, (now ? now : old)->meta, service);
        index_service(ctx, was, service);
    }
    if (now)
        queue(ctx, now->meta);
}

/* The service whose slice it is, if it is one of ours. */
static const dv_str *service_of(const struct dv_object *slice)
{
    const struct dv_str_entry *manager =
        dv_entry_find(slice->meta->labels, slice->meta->n_labels, DV_STR(DV_SLICES_MANAGER_LABEL));
    const struct dv_str_entry *service =
        dv_entry_find(slice->meta->labels, slice->meta->n_labels, DV_STR(DV_SLICES_SERVICE_LABEL));

    return manager && service && dv_str_eq(manager->value, DV_STR(DV_SLICES_MANAGER))
               ? &service->value
               : NULL;
}

void dv_control_endpoint_slice_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_control *control = ctx;
    const struct dv_object *object = now ? now : old;
    const dv_str *service = service_of(object);

    if (service)
        dv_queue_add(&control->queues[DV_CONTROL_SERVICE_QUEUE], object->meta->namespace, *service);
}

/* ---- what is done ---- */

static void on_written(struct dv_control_sync *sync, const struct dv_api_status *failure)
{
    if (!failure || failure->code == 409 || failure->code == 404)
        dv_control_sync_finish(sync); /* what has changed has queued the service again */
    else
        dv_control_sync_fail(sync, "write the endpoints of a service", failure);
}

static struct dv_api_endpoint_slice *wanted_slices(struct dv_control_sync *sync, size_t *n)
{
    const struct dv_api_service *service = sync->object->value;
    const struct dv_list *refs =
        dv_index_find(&sync->control->endpoints,
                      key_of(service->metadata.namespace, service->metadata.name, sync->arena));
    DV_VEC(const struct dv_api_pod *) pods = {0};
    struct dv_link *link;

    if (refs)
        DV_LIST_EACH (refs, link) {
            const struct dv_api_pod *pod;
            dv_str namespace, name;

            dv_control_split(dv_index_thing(link), &namespace, &name);
            pod = dv_control_get_pod(sync->control, namespace, name);
            if (pod && dv_service_selects(service, pod))
                *dv_vec_add_in(&pods, sync->arena) = pod;
        }
    return dv_service_slices(service, pods.v, pods.n, sync->arena, n);
}

static bool is_right(const struct dv_object *object, const struct dv_api_endpoint_slice *wanted)
{
    struct dv_api_endpoint_slice copy = *(const struct dv_api_endpoint_slice *)object->value;

    copy.metadata = wanted->metadata;
    return dv_message_eq(&dv_message_endpoint_slice, &copy, wanted);
}

static void write(struct dv_control_sync *sync, enum dv_verb verb, dv_str name, void *value)
{
    sync->request = (struct dv_request){.verb = verb,
                                        .kind = dv_kind(DV_KIND_ENDPOINT_SLICE),
                                        .namespace = sync->object->meta->namespace,
                                        .name = name,
                                        .value = value,
                                        .field_manager = DV_STR(MANAGER)};
    dv_control_sync_ask(sync, on_written);
}

/* Writes the first of the slices that is missing or wrong; its change has the next one looked at.
 */
static bool write_wanted(struct dv_control_sync *sync, struct dv_api_endpoint_slice *wanted,
                         size_t n)
{
    dv_str namespace = sync->object->meta->namespace;

    for (size_t i = 0; i < n; i++) {
        const struct dv_object *found = dv_control_get(sync->control, DV_CONTROL_ENDPOINT_SLICES,
                                                       namespace, wanted[i].metadata.name);

        if (found && is_right(found, &wanted[i]))
            continue;
        write(sync, found ? DV_VERB_UPDATE : DV_VERB_CREATE,
              found ? wanted[i].metadata.name : DV_STR_NONE, &wanted[i]);
        return true;
    }
    return false;
}

/* Deletes a slice of the service that it has no more. */
static bool delete_other(struct dv_control_sync *sync, const struct dv_api_endpoint_slice *wanted,
                         size_t n)
{
    const struct dv_api_object_meta *meta = sync->object->meta;
    const struct dv_object *object;

    for (size_t at = 0;
         (object = dv_view_next(sync->control->views[DV_CONTROL_ENDPOINT_SLICES], &at)) != NULL;) {
        const dv_str *service = service_of(object);
        bool is_wanted = false;

        if (!service || !dv_str_eq(*service, meta->name) ||
            !dv_str_eq(object->meta->namespace, meta->namespace))
            continue;
        for (size_t i = 0; i < n; i++)
            is_wanted = is_wanted || dv_str_eq(wanted[i].metadata.name, object->meta->name);
        if (is_wanted)
            continue;
        write(sync, DV_VERB_DELETE, dv_str_copy(object->meta->name, sync->arena), NULL);
        return true;
    }
    return false;
}

void dv_control_service_sync_run(struct dv_queue_item *item)
{
    struct dv_control_sync *sync = DV_CONTAINER(item, struct dv_control_sync, item);
    struct dv_control *control =
        DV_CONTAINER(item->queue, struct dv_control, queues[DV_CONTROL_SERVICE_QUEUE]);
    struct dv_object *service =
        dv_control_get(control, DV_CONTROL_SERVICES, item->namespace, item->name);
    struct dv_api_endpoint_slice *wanted;
    size_t n;

    /* Those of a service that is gone are collected with it. */
    if (!service || service->meta->deletion_timestamp.is_set ||
        !dv_service_has_slices(service->value)) {
        dv_queue_finish(item);
        return;
    }
    dv_control_sync_begin(sync, control, service);
    wanted = wanted_slices(sync, &n);
    if (!write_wanted(sync, wanted, n) && !delete_other(sync, wanted, n))
        dv_control_sync_finish(sync);
}
