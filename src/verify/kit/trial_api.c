#include "verify/kit/trial_api.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/metric.h"
#include "base/num.h"
#include "cluster/embedded.h"
#include "cluster/remote.h"
#include "rest/rest.h"
#include "serve/auth.h"
#include "serve/kube_api.h"
#include "serve/tokens.h"
#include "store/store.h"
#include "verify/kit/api_orders.h"
#include "verify/kit/skew.h"
#include "verify/kit/trial.h"
#include "verify/verify.h"

#define GROUP_PATH "/apis/resource.k8s.io/"
#define METRICS_BYTES_MAX (1u << 20)
#define KUBECONFIG_BYTES_MAX (1u << 20)
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
        answer(call, 404, "NotFound");
        return true;
    }
    if (!dv_str_starts_with(rest, DV_STR("/resourceslices"))) {
        api->counts.n_claim_reads += dv_str_find(rest, DV_STR("/resourceclaims/")) < rest.n;
        return false;
    }
    api->counts.n_slice_writes += is_write(request->method);
    api->counts.n_slice_watches += is_watch(request);
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
    if (!api->server && api->trial->is_keeper && api->port > 0)
        return dv_wrap(
            err,
            "%.*s leads to where somebody else listens: end that, or remove the file and "
            "start the driver again with the new one",
            DV_FMT(api->trial->paths.kubeconfig));
    if (api->server)
        api->port = dv_rest_server_port(api->server);
    return api->server != NULL;
}

/* A driver that was started for an earlier run goes on with its address and its token. */
static bool read_kubeconfig(struct dv_trial_api *api, struct dv_err *err)
{
    static const dv_str before = DV_STR_INIT("http://127.0.0.1:");
    struct dv_trial *trial = api->trial;
    dv_str path = trial->paths.kubeconfig;
    struct dv_kubeconfig config;
    uint32_t port = 0;
    dv_str text;

    if (!dv_trial_has_file(trial, path))
        return true;
    if (!dv_file_read(path, KUBECONFIG_BYTES_MAX, trial->arena, &text, err))
        return false;
    if (!dv_kubeconfig_parse(text, trial->paths.root, DV_STR_NONE, trial->arena, &config, err))
        return dv_wrap(err, "%.*s is not of davit verify", DV_FMT(path));
    if (!dv_str_starts_with(config.server, before) || config.token.n == 0 ||
        !dv_str_to_u32(dv_str_slice(config.server, before.n, config.server.n), &port) ||
        port > UINT16_MAX)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "%.*s leads to %.*s, which is not an API of davit verify: --attach needs a "
                       "directory of its own",
                       DV_FMT(path), DV_FMT(config.server));
    api->port = (uint16_t)port;
    api->token = config.token;
    return true;
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
    struct dv_api_user_info user =
        dv_auth_driver(driver.n > 0 ? driver : DV_STR("probe"), trial->node, trial->arena);
    dv_str names[POOLS_MAX];
    size_t n = 0;

    while (n < POOLS_MAX && pools.n > 0 && dv_str_split(&pools, ',', &names[n]))
        n++;
    if (driver.n > 0 && n > 0 && !dv_auth_give_pools(&user, names, n, trial->arena, err))
        return false;
    if (trial->options->n_also > 0 && /* a rule that is wrong is told by the probe */
        !dv_auth_widen(&user, trial->options->also, trial->options->n_also, trial->arena, err))
        return false;
    if (driver.n == 0)
        user = dv_auth_admin(DV_STR("probe"), trial->arena);
    if (api->token.n == 0)
        api->token = dv_rest_random_token(trial->arena);
    return dv_tokens_add_fixed(api->tokens, api->token, &user, err);
}

static bool has_object(const struct dv_trial *trial, enum dv_kind_id kind, dv_str name)
{
    return dv_embedded_get(trial->api->embedded, dv_kind(kind), DV_STR_NONE, name);
}

static bool has_namespaces(void *ctx)
{
    return has_object(ctx, DV_KIND_NAMESPACE, DV_STR("default"));
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

    if ((!has_object(trial, DV_KIND_NODE, trial->node) &&
         !dv_api_create(trial, DV_KIND_NODE, node, &failure)) ||
        (!has_object(trial, DV_KIND_NAMESPACE, DV_STR(DV_CLAIM_NAMESPACE)) &&
         !dv_api_create(trial, DV_KIND_NAMESPACE,
                        DV_STR("metadata: {name: " DV_CLAIM_NAMESPACE
                               ", labels: {resource.kubernetes.io/admin-access: 'true'}}"),
                        &failure)))
        dv_trial_break(trial, "the API does not take an object: %.*s", DV_FMT(failure));
}

void dv_api_open(struct dv_trial *trial)
{
    struct dv_trial_api *api = DV_NEW(trial->arena, struct dv_trial_api);
    struct dv_err err;

    api->trial = trial;
    trial->api = api;
    if (dv_trial_has_keeper(trial)) {
        dv_orders_begin(trial);
        return;
    }
    if (trial->is_keeper && !read_kubeconfig(api, &err))
        dv_trial_break(trial, "%s", err.msg);
    if (!open_parts(api, &err))
        dv_trial_break(trial, "cannot serve an API: %s", err.msg);
    if (!dv_trial_wait_ours(trial, has_namespaces, trial, "the API's own objects"))
        dv_trial_break(trial, "the API does not start");
    make_objects(trial);
}

struct renewal {
    struct dv_token_op op;
    bool is_done;
};

static void on_revoked(struct dv_token_op *op, const struct dv_err *err)
{
    struct renewal *renewal = DV_CONTAINER(op, struct renewal, op);

    (void)err; /* there was none to revoke */
    renewal->is_done = true;
}

void dv_api_renew_token(struct dv_trial *trial)
{
    struct dv_trial_api *api = trial->api;
    struct renewal *renewal = DV_NEW(trial->arena, struct renewal);
    struct dv_err err;

    renewal->op.id = dv_str_copy(dv_tokens_find(api->tokens, api->token)->id, trial->arena);
    renewal->op.done = on_revoked;
    dv_tokens_revoke(api->tokens, &renewal->op);
    if (!dv_trial_wait_flag(trial, &renewal->is_done, "the end of a token"))
        dv_trial_break(trial, "the driver's token cannot be changed");
    if (!add_user(api, &err))
        dv_trial_break(trial, "the driver's token: %s", err.msg);
}

void dv_api_go_away(struct dv_trial *trial)
{
    bool *is_closed = DV_NEW(trial->arena, bool);

    if (dv_trial_has_keeper(trial)) {
        dv_orders_tell(trial, DV_ORDER_AWAY);
        return;
    }
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
    if (dv_trial_has_keeper(trial))
        dv_orders_tell(trial, DV_ORDER_BACK);
    else if (!dv_trial_wait_ours(trial, is_listening, trial->api, "the API server's port"))
        dv_trial_break(trial, "the API server cannot come back at its port");
}

/* How many requests about slices, claims and classes were answered with this status. The metric has
 * a line for each kind of request: apiserver_request_total{...,code="403"} 2 */
static size_t n_answers(struct dv_trial *trial, unsigned status)
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

struct dv_api_counts dv_api_counts(struct dv_trial *trial)
{
    struct dv_api_counts counts = trial->api->counts;

    if (dv_trial_has_keeper(trial))
        return dv_orders_counts(trial);
    counts.n_forbidden = n_answers(trial, 403);
    counts.n_invalid = n_answers(trial, 422) + n_answers(trial, 400);
    return counts;
}

void dv_api_disturb(struct dv_trial *trial, unsigned n_conflicts, unsigned n_gone)
{
    if (dv_trial_has_keeper(trial)) {
        dv_orders_disturb(trial, n_conflicts, n_gone);
        return;
    }
    trial->api->n_conflicts = n_conflicts;
    trial->api->n_gone = n_gone;
}
