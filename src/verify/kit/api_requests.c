/* api_requests.c - what cases ask of the API: objects made, changed, deleted and listed. */
#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "verify/kit/api_orders.h"
#include "verify/kit/trial.h"
#include "verify/kit/trial_api.h"
#include "json/json.h"

/* ---- requests ---- */

struct asking {
    struct dv_request request;
    struct dv_trial *trial;
    struct dv_object *object;
    dv_str failure;
    bool is_done;
};

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    struct asking *asking = DV_CONTAINER(request, struct asking, request);

    if (failure)
        asking->failure = dv_str_copy(failure->message, asking->trial->arena);
    else if (request->object)
        asking->object = dv_object_ref(request->object);
    asking->is_done = true;
}

static dv_str namespace_of(const struct dv_kind *kind)
{
    return kind->is_namespaced ? DV_STR(DV_CLAIM_NAMESPACE) : DV_STR_NONE;
}

bool dv_api_ask(struct dv_trial *trial, const struct dv_request *request, struct dv_object **object,
                dv_str *failure)
{
    struct asking *asking = DV_NEW(trial->arena, struct asking);

    if (dv_trial_has_keeper(trial))
        return dv_orders_ask(trial, request, object, failure);
    asking->request = *request;
    asking->request.namespace = namespace_of(request->kind);
    asking->request.done = on_done;
    asking->trial = trial;
    dv_request_start(dv_embedded_cluster(trial->api->embedded), &asking->request);
    if (!dv_trial_wait_flag(trial, &asking->is_done, "an answer of the API"))
        dv_trial_break(trial, "the API does not answer");
    *object = asking->object;
    *failure = asking->failure;
    return asking->failure.n == 0;
}

struct dv_object *dv_api_make(struct dv_trial *trial, const struct dv_kind *kind, void *value,
                              dv_str *failure)
{
    const struct dv_request request = {.verb = DV_VERB_CREATE, .kind = kind, .value = value};
    struct dv_object *object = NULL;

    (void)dv_api_ask(trial, &request, &object, failure);
    return object;
}

struct dv_object *dv_api_create(struct dv_trial *trial, enum dv_kind_id id, dv_str text,
                                dv_str *failure)
{
    const struct dv_kind *kind = dv_kind(id);
    const struct dv_message *message = kind->versions[0].message;
    void *value = dv_arena_alloc(trial->arena, message->size, message->align);
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(text, NULL, trial->arena, &err);

    if (!doc || !dv_decode_json(message, doc, DV_UNKNOWN_DROP, trial->arena, value, NULL, &err)) {
        *failure = dv_str_copy(dv_str_from_c(err.msg), trial->arena);
        return NULL;
    }
    return dv_api_make(trial, kind, value, failure);
}

static bool change(struct dv_trial *trial, const struct dv_object *object, enum dv_subresource part,
                   const void *value, dv_str *failure)
{
    const struct dv_request request = {.verb = DV_VERB_UPDATE,
                                       .subresource = part,
                                       .kind = object->kind,
                                       .name = object->meta->name,
                                       .value = value};
    struct dv_object *changed;

    return dv_api_ask(trial, &request, &changed, failure);
}

bool dv_api_set_status(struct dv_trial *trial, const struct dv_object *object, const void *value,
                       dv_str *failure)
{
    return change(trial, object, DV_SUB_STATUS, value, failure);
}

bool dv_api_update(struct dv_trial *trial, const struct dv_object *object, const void *value,
                   dv_str *failure)
{
    return change(trial, object, DV_SUB_NONE, value, failure);
}

bool dv_api_delete(struct dv_trial *trial, enum dv_kind_id id, dv_str name)
{
    const struct dv_kind *kind = dv_kind(id);
    const struct dv_request request = {.verb = DV_VERB_DELETE, .kind = kind, .name = name};
    struct dv_object *deleted;
    dv_str failure;

    return dv_api_ask(trial, &request, &deleted, &failure);
}

/* ---- looking ---- */

size_t dv_api_list(struct dv_trial *trial, enum dv_kind_id id, struct dv_object ***objects)
{
    const struct dv_kind *kind = dv_kind(id);
    const struct dv_list_query query = {.kind = kind, .version = &kind->versions[0]};
    struct dv_api_status *failure;
    struct dv_list_page page;

    if (!trial->lists)
        trial->lists = dv_arena_new();
    dv_arena_reset(trial->lists);
    if (dv_trial_has_keeper(trial))
        return dv_orders_list(trial, kind, objects);
    if (!dv_embedded_list(trial->api->embedded, &query, trial->lists, &page, &failure))
        dv_trial_break(trial, "the API does not list: %.*s", DV_FMT(failure->message));
    for (size_t i = 0; i < page.n_objects; i++)
        (void)dv_object_unpack(page.objects[i]); /* one that nobody looked at is packed */
    *objects = page.objects;
    return page.n_objects;
}

size_t dv_api_slices(struct dv_trial *trial, struct dv_object ***slices)
{
    dv_str driver = dv_str_from_c(trial->facts.name);
    size_t n_all = dv_api_list(trial, DV_KIND_SLICE, slices);
    size_t n = 0;

    for (size_t i = 0; i < n_all; i++) {
        const struct dv_api_resource_slice *slice = (*slices)[i]->value;

        if (driver.n == 0 || dv_str_eq(slice->spec.driver, driver))
            (*slices)[n++] = (*slices)[i];
    }
    return n;
}

void dv_api_keep(struct dv_trial *trial, struct dv_object ***objects, size_t n)
{
    struct dv_object **kept = DV_NEW_ARRAY(trial->arena, struct dv_object *, n);

    for (size_t i = 0; i < n; i++)
        kept[i] = dv_object_ref((*objects)[i]);
    *objects = kept;
}

size_t dv_api_n_devices(struct dv_trial *trial)
{
    struct dv_object **slices;
    size_t n_slices = dv_api_slices(trial, &slices);
    size_t n = 0;

    for (size_t i = 0; i < n_slices; i++)
        n += ((const struct dv_api_resource_slice *)slices[i]->value)->spec.n_devices;
    return n;
}
