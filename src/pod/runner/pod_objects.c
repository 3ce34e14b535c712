#include "pod/runner/pod_objects.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "resource/references.h"
#include "resource/resource.h"

#define NOT_FOUND 404
/* More are asked for as answers come: a pod may name tens of thousands, which would hold the loop
 * for the time that it takes to start them all, and be a burst of requests for a real API server.
 */
#define GETS_AT_ONCE 256

struct dv_pod_get {
    struct dv_pod_objects *op;
    struct dv_request request;
    struct dv_object *object; /* NULL: it is not there */
    bool is_secret;
    bool is_running;
};

/* A walk over what a pod refers to. It may name tens of thousands of objects, and each of them many
 * times; each is asked for once. */
struct references {
    struct dv_pod_objects *op;
    struct dv_map gets[2]; /* of config maps, of secrets; by name */
};

static int compare_names(const void *a, const void *b)
{
    const struct dv_pod_get *const *left = a;
    const struct dv_pod_get *const *right = b;

    return dv_str_cmp((*left)->request.name, (*right)->request.name);
}

static void gather(struct dv_pod_objects *op)
{
    size_t n = op->priv.gets.n;
    const struct dv_api_config_map **config_maps =
        DV_NEW_ARRAY(op->arena, const struct dv_api_config_map *, n);
    const struct dv_api_secret **secrets = DV_NEW_ARRAY(op->arena, const struct dv_api_secret *, n);

    op->objects = (struct dv_workload_objects){.config_maps = config_maps, .secrets = secrets};
    if (n > 0)
        qsort(op->priv.gets.v, n, sizeof(op->priv.gets.v[0]), compare_names);
    for (size_t i = 0; i < n; i++) {
        const struct dv_pod_get *get = op->priv.gets.v[i];

        if (!get->object)
            continue;
        if (get->is_secret)
            secrets[op->objects.n_secrets++] = get->object->value;
        else
            config_maps[op->objects.n_config_maps++] = get->object->value;
    }
}

static void end(struct dv_pod_objects *op)
{
    if (op->priv.err.code == DV_OK)
        gather(op);
    op->done(op, op->priv.err.code == DV_OK ? NULL : &op->priv.err);
}

static void on_task(struct dv_task *task)
{
    end(DV_CONTAINER(task, struct dv_pod_objects, priv.task));
}

static void start_gets(struct dv_pod_objects *op)
{
    while (op->priv.n_running < GETS_AT_ONCE && op->priv.n_started < op->priv.gets.n) {
        struct dv_pod_get *get = op->priv.gets.v[op->priv.n_started++];

        get->is_running = true;
        op->priv.n_running++;
        dv_request_start(op->cluster, &get->request);
    }
}

static void on_get(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_pod_get *get = DV_CONTAINER(request, struct dv_pod_get, request);
    struct dv_pod_objects *op = get->op;

    get->is_running = false;
    if (!failure)
        get->object = dv_object_ref(request->object);
    else if (failure->code != NOT_FOUND && op->priv.err.code == DV_OK)
        (void)dv_fail(&op->priv.err, DV_UNAVAILABLE, "%.*s \"%.*s\": %.*s",
                      DV_FMT(request->kind->name), DV_FMT(request->name), DV_FMT(failure->message));
    op->priv.n_running--;
    if (op->priv.err.code == DV_OK)
        start_gets(op);
    if (op->priv.n_running == 0)
        end(op);
}

static bool on_reference(void *ctx, const struct dv_reference *reference)
{
    struct references *references = ctx;
    struct dv_pod_objects *op = references->op;
    bool is_secret = reference->kind == DV_REFERENCE_SECRET;
    struct dv_pod_get *get;

    if ((!is_secret && reference->kind != DV_REFERENCE_CONFIG_MAP) || reference->name.n == 0 ||
        dv_map_get(&references->gets[is_secret], reference->name))
        return true;
    get = DV_NEW(op->arena, struct dv_pod_get);
    get->op = op;
    get->is_secret = is_secret;
    get->request = (struct dv_request){
        .verb = DV_VERB_GET,
        .kind = dv_kind(is_secret ? DV_KIND_SECRET : DV_KIND_CONFIG_MAP),
        .name = dv_str_copy(reference->name, op->arena),
        .may_be_early = true,
        .done = on_get,
    };
    *dv_vec_add_in(&op->priv.gets, op->arena) = get;
    (void)dv_map_set(&references->gets[is_secret], get->request.name, get); /* there was none */
    return true;
}

static void find_references(struct dv_pod_objects *op, const struct dv_api_pod *pod)
{
    struct references references = {.op = op};

    for (size_t i = 0; i < DV_COUNT(references.gets); i++)
        dv_map_init(&references.gets[i]);
    (void)dv_pod_visit_references(pod, on_reference, &references);
    for (size_t i = 0; i < DV_COUNT(references.gets); i++)
        dv_map_fini(&references.gets[i]);
}

void dv_pod_objects_start(struct dv_pod_objects *op, const struct dv_api_pod *pod)
{
    dv_str namespace = dv_str_copy(pod->metadata.namespace, op->arena);

    find_references(op, pod);
    for (size_t i = 0; i < op->priv.gets.n; i++)
        op->priv.gets.v[i]->request.namespace = namespace;
    if (op->priv.gets.n == 0)
        dv_task_post(&op->priv.task, op->loop, on_task);
    else
        start_gets(op);
}

void dv_pod_objects_cancel(struct dv_pod_objects *op)
{
    if (op->priv.err.code == DV_OK)
        (void)dv_fail(&op->priv.err, DV_CANCELLED, "given up");
    for (size_t i = 0; i < op->priv.gets.n; i++)
        if (op->priv.gets.v[i]->is_running)
            dv_request_cancel(op->cluster, &op->priv.gets.v[i]->request);
}

void dv_pod_objects_fini(struct dv_pod_objects *op)
{
    for (size_t i = 0; i < op->priv.gets.n; i++)
        dv_object_unref(op->priv.gets.v[i]->object);
    op->priv.gets.n = 0;
}
