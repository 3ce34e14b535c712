/* http.c - the HTTP server: /metrics, /healthz, /readyz, /ui, and the Kubernetes API. */
#include <stdlib.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/num.h"
#include "base/str.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "rest/rest.h"
#include "serve/http/ui.h"
#include "serve/kube_api.h"
#include "serve/serve.h"

#define METRICS_BYTES_MAX (16u << 20)
/* The limit of a body without the API: then no request has one. */
#define PLAIN_BODY_BYTES_MAX 1024u
/* The limit of connections: for drivers, kubectl and their watches on one machine, and nodes of a
 * small cluster. */
#define CONNECTIONS_MAX 4096u
#define PLAIN_CONNECTIONS_MAX 1024u
/* How long calls of the API may take to be answered when the server closes. */
#define CLOSE_GRACE_MS 500u

/* So many lines about bad clients are logged in a period, because they may come by the thousand. */
#define COMPLAINTS_MAX 20u
#define COMPLAINTS_MS 10000u
/* So many descriptors are left for the rest of the process: its files, plugins and drivers. */
#define DESCRIPTORS_LEFT 256u

struct dv_http_server {
    struct dv_loop *loop;
    struct dv_node_metrics *metrics;
    struct dv_counter *drops[DV_REST_N_DROPS];
    unsigned n_complaints; /* complaints in the present period */
    uint64_t n_unsaid;
    uint64_t complaints_ms;
    struct dv_kube *kube; /* may be NULL */
    bool is_plain;
    const struct dv_err *(*trouble)(void *ctx);
    void *trouble_ctx;
    struct dv_rest_server *server;
    dv_closed_fn *closed;
    void *closed_ctx;
};

static void answer_metrics(struct dv_http_server *server, struct dv_rest_call *call)
{
    struct dv_buf body;
    struct dv_err err;

    dv_buf_init(&body, METRICS_BYTES_MAX);
    /* On failure, what fits is still valid. */
    if (!dv_metrics_print(dv_node_metrics_registry(server->metrics), &body, &err))
        dv_log(DV_LOG_WARN, "serve: not all metrics fit", DV_F_ERR(&err));
    dv_rest_call_add_field(call, DV_STR("Content-Type"), DV_STR(DV_METRICS_CONTENT_TYPE));
    dv_rest_call_reply_buf(call, 200, &body);
    dv_buf_fini(&body);
}

/* Answers /readyz. A daemon that answers is alive (/healthz); it is ready when it can also write
 * what it decides. */
static void answer_ready(struct dv_http_server *server, struct dv_rest_call *call)
{
    const struct dv_err *err = server->trouble ? server->trouble(server->trouble_ctx) : NULL;

    dv_rest_call_reply(call, err ? 503 : 200, err ? dv_str_from_c(err->msg) : DV_STR("ok"));
}

/* Answers what is there without the API, for everyone. False: there is nothing of that name. */
static bool answer_open(struct dv_http_server *server, struct dv_rest_call *call,
                        const struct dv_rest_request *request)
{
    static const dv_str paths[] = {DV_STR_INIT("/metrics"), DV_STR_INIT("/healthz"),
                                   DV_STR_INIT("/readyz")};
    size_t i = 0;

    while (i < DV_COUNT(paths) && !dv_str_eq(paths[i], request->path))
        i++;
    if (i == DV_COUNT(paths))
        return false;
    if (!dv_str_eq(request->method, DV_STR("GET"))) {
        dv_rest_call_add_field(call, DV_STR("Allow"), DV_STR("GET"));
        dv_rest_call_reply(call, 405, DV_STR("only GET\n"));
    } else if (i == 0) {
        answer_metrics(server, call);
    } else if (i == 1) {
        dv_rest_call_reply(call, 200, DV_STR("ok"));
    } else {
        answer_ready(server, call);
    }
    return true;
}

static void handle(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct dv_http_server *server = ctx;

    if ((server->is_plain || !server->kube) && answer_open(server, call, request))
        return;
    /* Without the API the page would have nothing to show. */
    if (server->kube && dv_ui_handle(call, request))
        return;
    if (!server->kube)
        dv_rest_call_reply(call, 404, DV_STR("there are /metrics, /healthz and /readyz\n"));
    else if (!dv_kube_handle(server->kube, call, request))
        answer_metrics(server, call);
}

static void on_arriving(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    const struct dv_http_server *server = ctx;

    dv_kube_greet(server->kube, call, request);
}

/* Makes the body of a refusal: clients of the API expect a Status whatever goes wrong. */
static const char *refuse(void *ctx, unsigned status, const struct dv_err *err, struct dv_buf *body)
{
    static const struct {
        unsigned status;
        dv_str reason;
    } reasons[] = {
        {400, DV_STR_INIT("BadRequest")           },
        {413, DV_STR_INIT("RequestEntityTooLarge")},
        {415, DV_STR_INIT("UnsupportedMediaType") },
        {503, DV_STR_INIT("ServiceUnavailable")   },
    };
    static const struct dv_api_version v1 = {{0}, DV_STR_INIT("v1"), &dv_message_status};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str reason = {0};

    (void)ctx;
    for (size_t i = 0; i < DV_COUNT(reasons); i++)
        if (reasons[i].status == status)
            reason = reasons[i].reason;
    dv_encode_json_text(v1.message, dv_status_new((int)status, reason, arena, "%s", err->msg), &v1,
                        DV_STR("Status"), body);
    return "application/json";
}

static void on_complaint(void *ctx, dv_str peer, const struct dv_err *err)
{
    struct dv_http_server *server = ctx;
    uint64_t now_ms = dv_loop_now_ms(server->loop);

    if (now_ms - server->complaints_ms >= COMPLAINTS_MS) {
        if (server->n_unsaid)
            dv_log(DV_LOG_WARN, "serve: more bad HTTP clients, as davit_http_refusals_total counts",
                   DV_F_U64("lines_left_out", server->n_unsaid));
        server->complaints_ms = now_ms;
        server->n_complaints = 0;
        server->n_unsaid = 0;
    }
    if (server->n_complaints >= COMPLAINTS_MAX) {
        server->n_unsaid++;
        return;
    }
    server->n_complaints++;
    dv_log(DV_LOG_WARN, "serve: bad HTTP client", DV_F_STR("peer", peer), DV_F_CODE(err),
           DV_F_ERR(err));
}

static void on_dropped(void *ctx, enum dv_rest_drop drop)
{
    struct dv_http_server *server = ctx;

    dv_counter_add(server->drops[drop], 1);
}

static void add_metrics(struct dv_http_server *server)
{
    static const char *const labels[] = {"reason"};
    static const struct dv_family_spec refusals = {
        .name = "davit_http_refusals_total",
        .help = "Connections and requests that were given up or refused before they were read, by "
                "reason.",
        .labels = labels,
        .n_labels = DV_COUNT(labels),
    };
    struct dv_family *family =
        dv_metrics_add_counter(dv_node_metrics_registry(server->metrics), &refusals);

    for (unsigned i = 0; i < DV_REST_N_DROPS; i++) {
        dv_str reason = dv_str_from_c(dv_rest_drop_name((enum dv_rest_drop)i));

        server->drops[i] = dv_family_counter(family, &reason);
    }
}

/* Returns the limit of connections, which is no more than there are descriptors for: a connection
 * without one could not even be accepted. */
static size_t connections_max(bool has_api)
{
    size_t wanted = has_api ? CONNECTIONS_MAX : PLAIN_CONNECTIONS_MAX;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return wanted;
    if (limit.rlim_cur <= 2u * DESCRIPTORS_LEFT)
        return dv_size_min(wanted, DESCRIPTORS_LEFT);
    return dv_size_min(wanted, (size_t)limit.rlim_cur - DESCRIPTORS_LEFT);
}

struct dv_http_server *dv_http_server_open(struct dv_loop *loop, struct dv_node_metrics *metrics,
                                           const struct dv_http_options *options,
                                           struct dv_err *err)
{
    struct dv_http_server *server = DV_ALLOC(struct dv_http_server);
    struct dv_rest_server_options rest = {
        .name = DV_STR("http"),
        .handle = handle,
        .complaint = on_complaint,
        .ctx = server,
        .body_bytes_max = options->kube ? DV_KUBE_BODY_BYTES_MAX : PLAIN_BODY_BYTES_MAX,
        .dropped = on_dropped,
        .arriving = options->kube ? on_arriving : NULL,
        .has_users = options->kube != NULL,
        .connections_max = connections_max(options->kube != NULL),
        .tls = options->tls,
        .refusal = options->kube ? refuse : NULL,
    };

    server->loop = loop;
    server->metrics = metrics;
    add_metrics(server);
    server->kube = options->kube;
    server->is_plain = options->tls == NULL;
    server->trouble = options->trouble;
    server->trouble_ctx = options->ctx;
    server->server = dv_rest_server_open(loop, options->address, &rest, err);
    if (!server->server) {
        free(server);
        return NULL;
    }
    return server;
}

bool dv_http_server_set_tls(struct dv_http_server *server, const struct dv_rest_tls *tls,
                            struct dv_err *err)
{
    return dv_rest_server_set_tls(server->server, tls, err);
}

uint16_t dv_http_server_port(const struct dv_http_server *server)
{
    return dv_rest_server_port(server->server);
}

static void on_closed(void *ctx)
{
    struct dv_http_server *server = ctx;
    dv_closed_fn *closed = server->closed;
    void *closed_ctx = server->closed_ctx;

    free(server);
    if (closed)
        closed(closed_ctx);
}

void dv_http_server_close(struct dv_http_server *server, dv_closed_fn *closed, void *ctx)
{
    server->closed = closed;
    server->closed_ctx = ctx;
    dv_rest_server_close(server->server, server->kube ? CLOSE_GRACE_MS : 0, on_closed, server);
}
