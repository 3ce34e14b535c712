/* http.c - /metrics, /healthz, /readyz. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/str.h"
#include "device/manager.h"
#include "loop/loop.h"
#include "rest/rest.h"
#include "serve/metrics.h"
#include "serve/serve.h"

#define METRICS_BYTES_MAX (16u << 20)
/* Nothing is sent to us here. */
#define BODY_BYTES_MAX 1024u

struct dv_http_server {
    const struct dv_node *node;
    struct dv_node_metrics *metrics;
    struct dv_rest_server *server;
    dv_closed_fn *closed;
    void *closed_ctx;
};

static void answer_metrics(struct dv_http_server *server, struct dv_rest_call *call)
{
    struct dv_buf body;
    struct dv_err err;

    dv_buf_init(&body, METRICS_BYTES_MAX);
    if (!dv_node_metrics_print(server->metrics, &body, &err)) /* what fits is still valid */
        dv_log(DV_LOG_WARN, "serve: not all metrics fit", DV_F_ERR(&err));
    dv_rest_call_add_field(call, DV_STR("Content-Type"), DV_STR(DV_METRICS_CONTENT_TYPE));
    dv_rest_call_reply_buf(call, 200, &body);
    dv_buf_fini(&body);
}

/* Alive is whoever answers; ready is who can also write what it decides. */
static void answer_ready(struct dv_http_server *server, struct dv_rest_call *call)
{
    const struct dv_err *err = dv_devices_store_error(server->node->devices);

    dv_rest_call_reply(call, err ? 503 : 200, err ? dv_str_from_c(err->msg) : DV_STR("ok"));
}

static void handle(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct dv_http_server *server = ctx;

    if (!dv_str_eq(request->method, DV_STR("GET"))) {
        dv_rest_call_add_field(call, DV_STR("Allow"), DV_STR("GET"));
        dv_rest_call_reply(call, 405, DV_STR("only GET\n"));
    } else if (dv_str_eq(request->path, DV_STR("/metrics"))) {
        answer_metrics(server, call);
    } else if (dv_str_eq(request->path, DV_STR("/healthz"))) {
        dv_rest_call_reply(call, 200, DV_STR("ok"));
    } else if (dv_str_eq(request->path, DV_STR("/readyz"))) {
        answer_ready(server, call);
    } else {
        dv_rest_call_reply(call, 404, DV_STR("there are /metrics, /healthz and /readyz\n"));
    }
}

static void on_complaint(void *ctx, dv_str peer, const struct dv_err *err)
{
    (void)ctx;
    dv_log(DV_LOG_WARN, "serve: bad HTTP client", DV_F_STR("peer", peer), DV_F_CODE(err),
           DV_F_ERR(err));
}

struct dv_http_server *dv_http_server_open(const struct dv_node *node,
                                           struct dv_node_metrics *metrics, dv_str address,
                                           struct dv_err *err)
{
    struct dv_http_server *server = DV_ALLOC(struct dv_http_server);
    struct dv_rest_server_options options = {
        .name = DV_STR("http"),
        .handle = handle,
        .complaint = on_complaint,
        .ctx = server,
        .body_bytes_max = BODY_BYTES_MAX,
    };

    server->node = node;
    server->metrics = metrics;
    server->server = dv_rest_server_open(node->loop, address, &options, err);
    if (!server->server) {
        free(server);
        return NULL;
    }
    return server;
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
    dv_rest_server_close(server->server, 0, on_closed, server);
}
