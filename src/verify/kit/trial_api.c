#include "verify/kit/trial_api.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/metric.h"
#include "base/num.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "rest/rest.h"
#include "serve/auth.h"
#include "serve/kube_api.h"
#include "serve/tokens.h"
#include "store/store.h"
#include "verify/kit/skew.h"
#include "verify/kit/trial.h"
#include "verify/verify.h"
#include "json/json.h"

#define GROUP_PATH "/apis/resource.k8s.io/"
#define METRICS_BYTES_MAX (1u << 20)
#define POOLS_MAX 32u /* what a token can be given */

/* ---- what is answered here, and not by the API ---- */

static void answer(struct dv_rest_call *call, unsigned status, const char *reason)
{
    dv_str body = dv_str_printf(dv_rest_call_arena(call),
                                "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                                "\"status\":\"Failure\",\"message\":\"%s\",\"reason\":\"%s\","
                                "\"code\":%u}\n",
                                reason, reason, status);

    dv_rest_call_add_field(call, DV_STR("Content-Type"), DV_STR("application/json"));
    dv_rest_call_reply(call, status, body);
}

/* Of "/apis/resource.k8s.io/v1/resourceslices/x" the version and what follows it. */
static bool split_path(dv_str path, dv_str *version, dv_str *rest)
{
    if (!dv_str_starts_with(path, DV_STR(GROUP_PATH)))
        return false;
    path = dv_str_slice(path, sizeof(GROUP_PATH) - 1, path.n);
    *version = dv_str_slice(path, 0, dv_str_find_char(path, '/'));
    *rest = dv_str_slice(path, version->n, path.n);
    return true;
}

static bool is_write(dv_str method)
{
    return !dv_str_eq(method, DV_STR("GET")) && !dv_str_eq(method, DV_STR("HEAD"));
}

static bool is_watch(const struct dv_rest_request *request)
{
    return dv_str_find(request->query, DV_STR("watch=true")) < request->query.n ||
           dv_str_find(request->query, DV_STR("watch=1")) < request->query.n;
}

/* True: it was answered. */
static bool disturb(struct dv_trial_api *api, struct dv_rest_call *call,
                    const struct dv_rest_request *request)
{
    dv_str version;
    dv_str rest;

    if (!split_path(request->path, &version, &rest))
        return false;
    if (!dv_skew_has_api(api->trial->release, version)) {
        api->n_refused_versions++;
        answer(call, 404, "NotFound");
        return true;
    }
    if (!dv_str_starts_with(rest, DV_STR("/resourceslices"))) {
        api->n_claim_reads += dv_str_find(rest, DV_STR("/resourceclaims/")) < rest.n;
        return false;
    }
    api->n_slice_writes += is_write(request->method);
    api->n_slice_watches += is_watch(request);
    if (is_write(request->method) && api->n_conflicts > 0) {
        api->n_conflicts--;
        answer(call, 409, "Conflict");
        return true;
    }
    if (is_watch(request) && api->n_gone > 0) {
        api->n_gone--;
        answer(call, 410, "Expired");
        return true;
    }
    return false;
}

static void handle(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct dv_trial_api *api = ctx;

    if (!disturb(api, call, request) && !dv_kube_handle(api->kube, call, request))
        answer(call, 404, "NotFound");
}

static void arriving(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct dv_trial_api *api = ctx;

    dv_kube_greet(api->kube, call, request);
}

/* ---- life ---- */

static bool listen_on(struct dv_trial_api *api, struct dv_err *err)
{
    const struct dv_rest_server_options options = {.name = DV_STR("api"),
                                                   .handle = handle,
                                                   .arriving = arriving,
                                                   .ctx = api,
                                                   .has_users = true,
                                                   .body_bytes_max = DV_KUBE_BODY_BYTES_MAX};
    dv_str address = dv_str_printf(api->trial->arena, "127.0.0.1:%u", api->port);

    api->server = dv_rest_server_open(api->trial->loop, address, &options, err);
    if (api->server)
        api->port = dv_rest_server_port(api->server);
    return api->server != NULL;
}

static bool write_kubeconfig(struct dv_trial_api *api, struct dv_err *err)
{
    struct dv_trial *trial = api->trial;
    dv_str text = dv_str_printf(trial->arena,
                                "apiVersion: v1\nkind: Config\ncurrent-context: verify\n"
                                "clusters: [{name: verify, cluster: {server: "
                                "\"http://127.0.0.1:%u\"}}]\n"
                                "users: [{name: driver, user: {token: \"%.*s\"}}]\n"
                                "contexts: [{name: verify, context: {cluster: verify, user: "
                                "driver}}]\n",
                                api->port, DV_FMT(api->token));

    return dv_file_replace(trial->paths.kubeconfig, text, 0600, err);
}

/* Before its name is known, the driver may do everything: that is the probe. Afterwards it may do
 * what one driver on one node may. */
static bool add_user(struct dv_trial_api *api, struct dv_err *err)
{
    struct dv_trial *trial = api->trial;
    dv_str driver =
        trial->facts.name[0] ? dv_str_from_c(trial->facts.name) : trial->options->driver;
    dv_str pools = dv_str_from_c(trial->facts.pools);
    struct dv_api_user_info user = driver.n > 0 ? dv_auth_driver(driver, trial->node, trial->arena)
                                                : dv_auth_admin(DV_STR("probe"), trial->arena);
    dv_str names[POOLS_MAX];
    size_t n = 0;

    while (n < POOLS_MAX && pools.n > 0 && dv_str_split(&pools, ',', &names[n]))
        n++;
    if (driver.n > 0 && n > 0 && !dv_auth_give_pools(&user, names, n, trial->arena, err))
        return false;
    if (driver.n > 0 && trial->options->n_also > 0 &&
        !dv_auth_widen(&user, trial->options->also, trial->options->n_also, trial->arena, err))
        return false;
    api->token = dv_rest_random_token(trial->arena);
    return dv_tokens_add_fixed(api->tokens, api->token, &user, err);
}

static bool has_namespaces(void *ctx)
{
    const struct dv_trial_api *api = ctx;

    return dv_embedded_get(api->embedded, dv_kind(DV_KIND_NAMESPACE), DV_STR_NONE,
                           DV_STR("default"));
}

static void on_damaged(void *ctx, const char *set_aside)
{
    dv_trial_break(ctx, "the API's database was damaged: %s", set_aside);
}

static bool open_parts(struct dv_trial_api *api, struct dv_err *err)
{
    static const char *const tables[] = {"objects", "meta"};
    static const struct dv_store_schema schema = {tables, DV_COUNT(tables)};
    struct dv_trial *trial = api->trial;
    const struct dv_store_options store = {.schema = &schema, .damaged = on_damaged, .ctx = trial};
    const struct dv_embedded_options embedded = {.table_objects = 0, .table_meta = 1};
    struct dv_kube_options kube = {.loop = trial->loop, .anonymous = DV_ANONYMOUS_HEALTH};

    api->store = dv_store_open(
        trial->loop, dv_str_printf(trial->arena, "%.*s/api.db", DV_FMT(trial->paths.root)), &store,
        err);
    if (!api->store)
        return false;
    api->embedded = dv_embedded_open(trial->loop, api->store, &embedded, err);
    api->tokens = dv_tokens_open(trial->loop, NULL, 0, err);
    if (!api->embedded || !api->tokens || !add_user(api, err))
        return false;
    api->metrics = dv_metrics_new();
    kube.embedded = api->embedded;
    kube.tokens = api->tokens;
    kube.metrics = api->metrics;
    api->kube = dv_kube_open(&kube);
    return listen_on(api, err) && write_kubeconfig(api, err);
}

static void make_objects(struct dv_trial *trial)
{
    dv_str node = dv_str_printf(trial->arena,
                                "{\"metadata\":{\"name\":\"%.*s\",\"labels\":{"
                                "\"kubernetes.io/hostname\":\"%.*s\"}}}",
                                DV_FMT(trial->node), DV_FMT(trial->node));
    dv_str failure;

    if (!dv_api_create(trial, DV_KIND_NODE, node, &failure) ||
        !dv_api_create(trial, DV_KIND_NAMESPACE,
                       DV_STR("metadata: {name: " DV_CLAIM_NAMESPACE
                              ", labels: {resource.kubernetes.io/admin-access: 'true'}}"),
                       &failure))
        dv_trial_break(trial, "the API does not take an object: %.*s", DV_FMT(failure));
}

void dv_api_open(struct dv_trial *trial)
{
    struct dv_trial_api *api = DV_NEW(trial->arena, struct dv_trial_api);
    struct dv_err err;

    api->trial = trial;
    trial->api = api;
    if (!open_parts(api, &err))
        dv_trial_break(trial, "cannot serve an API: %s", err.msg);
    if (!dv_trial_wait(trial, has_namespaces, api, "the API's own objects"))
        dv_trial_break(trial, "the API does not start");
    make_objects(trial);
}

void dv_api_go_away(struct dv_trial *trial)
{
    bool *is_closed = DV_NEW(trial->arena, bool);

    dv_rest_server_close(trial->api->server, 0, dv_flag_set, is_closed);
    trial->api->server = NULL;
    (void)dv_trial_wait_flag(trial, is_closed, "the end of the API server");
}

static bool is_listening(void *ctx)
{
    struct dv_err err;

    return listen_on(ctx, &err); /* connections of before may hold the port for a moment */
}

void dv_api_come_back(struct dv_trial *trial)
{
    if (!dv_trial_wait(trial, is_listening, trial->api, "the API server's port"))
        dv_trial_break(trial, "the API server cannot come back at its port");
}

/* The metric has a line for each kind of request: apiserver_request_total{...,code="403"} 2 */
size_t dv_api_n_answers(struct dv_trial *trial, unsigned status)
{
    dv_str sign = dv_str_printf(trial->arena, "code=\"%u\"", status);
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_err err;
    size_t n = 0;
    dv_str rest;
    dv_str line;

    dv_buf_init(&buf, METRICS_BYTES_MAX);
    if (!dv_metrics_print(trial->api->metrics, &buf, &err))
        return 0;
    rest = dv_buf_str(&buf);
    while (rest.n > 0 && dv_str_split(&rest, '\n', &line)) {
        uint64_t value;
        size_t blank = line.n;

        if (!dv_str_starts_with(line, DV_STR("apiserver_request_total{")) ||
            dv_str_find(line, sign) == line.n ||
            dv_str_find(line, DV_STR("group=\"resource.k8s.io\"")) == line.n)
            continue;
        while (blank > 0 && line.p[blank - 1] != ' ')
            blank--;
        if (dv_str_to_u64(dv_str_slice(line, blank, line.n), &value))
            n += value;
    }
    return n;
}

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

static bool ask(struct dv_trial *trial, const struct dv_request *request, struct dv_object **object,
                dv_str *failure)
{
    struct asking *asking = DV_NEW(trial->arena, struct asking);

    asking->request = *request;
    asking->request.done = on_done;
    asking->trial = trial;
    dv_request_start(dv_embedded_cluster(trial->api->embedded), &asking->request);
    if (!dv_trial_wait_flag(trial, &asking->is_done, "an answer of the API"))
        dv_trial_break(trial, "the API does not answer");
    if (object)
        *object = asking->object;
    if (failure)
        *failure = asking->failure;
    return asking->failure.n == 0;
}

static dv_str namespace_of(const struct dv_kind *kind)
{
    return kind->is_namespaced ? DV_STR(DV_CLAIM_NAMESPACE) : DV_STR_NONE;
}

struct dv_object *dv_api_make(struct dv_trial *trial, const struct dv_kind *kind, void *value,
                              dv_str *failure)
{
    const struct dv_request request = {
        .verb = DV_VERB_CREATE, .kind = kind, .namespace = namespace_of(kind), .value = value};
    struct dv_object *object = NULL;

    (void)ask(trial, &request, &object, failure);
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
                                       .namespace = namespace_of(object->kind),
                                       .name = object->meta->name,
                                       .value = value};

    return ask(trial, &request, NULL, failure);
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
    const struct dv_request request = {
        .verb = DV_VERB_DELETE, .kind = kind, .namespace = namespace_of(kind), .name = name};

    return ask(trial, &request, NULL, NULL);
}

/* ---- looking ---- */

size_t dv_api_list(struct dv_trial *trial, enum dv_kind_id id, struct dv_object ***objects)
{
    const struct dv_kind *kind = dv_kind(id);
    const struct dv_list_query query = {.kind = kind, .version = &kind->versions[0]};
    struct dv_api_status *failure;
    struct dv_list_page page;

    if (!dv_embedded_list(trial->api->embedded, &query, trial->arena, &page, &failure))
        dv_trial_break(trial, "the API does not list: %.*s", DV_FMT(failure->message));
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

size_t dv_api_n_devices(struct dv_trial *trial)
{
    struct dv_object **slices;
    size_t n_slices = dv_api_slices(trial, &slices);
    size_t n = 0;

    for (size_t i = 0; i < n_slices; i++)
        n += ((const struct dv_api_resource_slice *)slices[i]->value)->spec.n_devices;
    return n;
}
