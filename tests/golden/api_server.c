/* api_server.c - the embedded API over HTTP, alone: for replays, and for clients in tests.
 *
 *     api_server [--anonymous on|off|health] [--port N] [--ca FILE] [--accounts on]
 *                [--token-key FILE] [--audience NAME] [--history N] --store FILE
 *
 * Prints the port that it listens on, and "ready". Its tokens are the users of the replays:
 * admintoken, viewertoken, nodetoken (system:node:worker-1), drivertoken (gpu.example.com on
 * worker-1); tokadmin, toknode (system:node:n1), tokalice, tokbob. What it holds is in FILE. With
 * --ca it speaks TLS, and writes there who vouches for it: clients
 * send tokens over nothing else. Tokens of service accounts are signed by the key in the file of
 * --token-key, else by one that is made, and are for that audience, too. With --accounts pods get
 * service accounts, and namespaces what these need. --history is how many changes of a kind watches
 * can go back. Ends with SIGTERM. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/metric.h"
#include "base/str.h"
#include "cluster/embedded.h"
#include "control/control.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "serve/auth.h"
#include "serve/kube_api.h"
#include "serve/tokens.h"
#include "store/store.h"

#define KEY_BYTES_MAX 65536u

enum {
    TABLE_OBJECTS,
    TABLE_META,
    SPACE_TOKENS,
};

static const char *const tables[] = {"objects", "meta", "tokens"};
static const struct dv_store_schema schema = {.tables = tables, .n_tables = DV_COUNT(tables)};

struct server {
    struct dv_arena *arena;
    struct dv_loop *loop;
    struct dv_store *store;
    struct dv_embedded *embedded;
    struct dv_tokens *tokens;
    struct dv_metrics *metrics;
    struct dv_kube *kube;
    struct dv_control *control; /* NULL: there is none */
    struct dv_rest_server *rest;
    struct dv_signal *terminate;
    unsigned n_fronts; /* open */
};

/* ---- serving ---- */

static void handle(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct server *server = ctx;
    struct dv_buf body;
    struct dv_err err;

    if (dv_kube_handle(server->kube, call, request))
        return;
    dv_buf_init(&body, 16u << 20);
    if (!dv_metrics_print(server->metrics, &body, &err))
        (void)fprintf(stderr, "api_server: %s\n", err.msg);
    dv_rest_call_add_field(call, DV_STR("Content-Type"), DV_STR(DV_METRICS_CONTENT_TYPE));
    dv_rest_call_reply_buf(call, 200, &body);
    dv_buf_fini(&body);
}

static bool add_token(struct server *server, const char *secret, struct dv_api_user_info user,
                      struct dv_err *err)
{
    return dv_tokens_add_fixed(server->tokens, dv_str_from_c(secret), &user, err);
}

/* The users of the second corpus: they have uids, and the node is n1. */
static bool add_users(struct server *server, struct dv_err *err)
{
    struct dv_arena *arena = server->arena;
    dv_str teams[] = {DV_STR("dev"), DV_STR("ops"), DV_STR(DV_GROUP_AUTHENTICATED)};
    struct dv_api_user_info admin = dv_auth_admin(DV_STR("admin"), arena);
    struct dv_api_user_info node = dv_auth_node(DV_STR("n1"), arena);
    struct dv_api_user_info alice = {
        .username = DV_STR("alice"), .uid = DV_STR("alice-uid"), .groups = teams, .n_groups = 3};
    struct dv_api_user_info bob = {
        .username = DV_STR("bob"), .uid = DV_STR("bob-uid"), .groups = teams + 2, .n_groups = 1};

    admin.uid = DV_STR("admin-uid");
    node.uid = DV_STR("node-uid");
    return add_token(server, "tokadmin", admin, err) && add_token(server, "toknode", node, err) &&
           add_token(server, "tokalice", alice, err) && add_token(server, "tokbob", bob, err);
}

static bool add_tokens(struct server *server, struct dv_err *err)
{
    dv_str groups[] = {DV_STR("viewers"), DV_STR(DV_GROUP_AUTHENTICATED)};
    struct dv_api_user_info viewer = {
        .username = DV_STR("viewer"), .uid = DV_STR("uid-viewer"), .groups = groups, .n_groups = 2};
    struct dv_arena *arena = server->arena;

    return add_token(server, "admintoken", dv_auth_admin(DV_STR("admin"), arena), err) &&
           add_token(server, "viewertoken", viewer, err) &&
           add_token(server, "nodetoken", dv_auth_node(DV_STR("worker-1"), arena), err) &&
           add_token(server, "drivertoken",
                     dv_auth_driver(DV_STR("gpu.example.com"), DV_STR("worker-1"), arena), err) &&
           add_users(server, err);
}

struct options {
    const char *file;     /* of the store; NULL: in memory */
    const char *ca;       /* NULL: plain HTTP */
    const char *audience; /* of the API besides the issuer; NULL: none */
    const char *key;      /* PEM file of the key that signs tokens; NULL: one is made */
    enum dv_kube_anonymous anonymous;
    bool has_accounts;
    size_t n_history; /* 0: as many as usual */
    char address[64];
};

static bool make_tls(struct server *server, const char *path, struct dv_rest_tls *tls,
                     struct dv_err *err)
{
    dv_str host = DV_STR("127.0.0.1");
    struct dv_rest_cert_request request = {
        .name = DV_STR("api_server"), .now_ns = dv_clock_wall_ns(dv_clock_real()), .valid_days = 1};
    struct dv_rest_cert ca, cert;
    FILE *file;

    if (!dv_rest_cert_make_ca(&request, server->arena, &ca, err))
        return false;
    request.hosts = &host;
    request.n_hosts = 1;
    if (!dv_rest_cert_make_server(&ca, &request, server->arena, &cert, err))
        return false;
    *tls = (struct dv_rest_tls){.cert = cert.cert, .key = cert.key, .client_ca = ca.cert};
    file = fopen(path, "we");
    if (!file)
        return dv_fail_errno(err, errno, "%s", path);
    (void)fprintf(file, "%.*s", DV_FMT(ca.cert));
    return fclose(file) == 0 || dv_fail_errno(err, errno, "%s", path);
}

static bool open_control(struct server *server, struct dv_err *err)
{
    struct dv_control_options options = {.cluster = dv_embedded_cluster(server->embedded),
                                         .gates = dv_control_gates_default(),
                                         .serves_cluster_defaults = true,
                                         .root_ca = DV_STR("-----BEGIN CERTIFICATE-----\n")};

    server->control = dv_control_open(server->loop, &options, err);
    return server->control != NULL;
}

static void on_damaged(void *ctx, const char *set_aside)
{
    (void)ctx;
    (void)fprintf(stderr, "api_server: its store was damaged, and is now at %s\n", set_aside);
    exit(1);
}

/* The recorded server signs by RSA; a key that tests of other programs use, too. */
static bool set_keys(struct server *server, const char *path, struct dv_err *err)
{
    dv_str pem;

    if (!path)
        return true;
    return dv_file_read(dv_str_from_c(path), KEY_BYTES_MAX, server->arena, &pem, err) &&
           dv_tokens_set_keys(server->tokens, &pem, 1, err);
}

static bool open_all(struct server *server, const struct options *chosen, struct dv_err *err)
{
    struct dv_rest_tls tls;
    const struct dv_store_options store_options = {.schema = &schema, .damaged = on_damaged};
    struct dv_embedded_options options = {.table_objects = TABLE_OBJECTS,
                                          .table_meta = TABLE_META,
                                          .has_accounts = chosen->has_accounts,
                                          .n_history_max = chosen->n_history};
    dv_str audiences[] = {DV_STR(DV_TOKEN_ISSUER), dv_str_from_c(chosen->audience)};
    struct dv_kube_options kube = {.anonymous = chosen->anonymous};
    struct dv_rest_server_options rest = {.name = DV_STR("api"),
                                          .handle = handle,
                                          .ctx = server,
                                          .body_bytes_max = DV_KUBE_BODY_BYTES_MAX,
                                          .connections_max = 10000};

    server->loop = dv_loop_new(dv_clock_real(), err);
    if (!server->loop)
        return false;
    server->store = dv_store_open(server->loop, dv_str_from_c(chosen->file), &store_options, err);
    if (!server->store)
        return false;
    server->tokens =
        dv_tokens_open(server->loop, server->store, SPACE_TOKENS, err); /* before any write */
    if (!server->tokens || !add_tokens(server, err) || !set_keys(server, chosen->key, err))
        return false;
    server->embedded = dv_embedded_open(server->loop, server->store, &options, err);
    if (!server->embedded)
        return false;
    server->metrics = dv_metrics_new();
    kube.loop = server->loop;
    kube.embedded = server->embedded;
    kube.tokens = server->tokens;
    kube.metrics = server->metrics;
    kube.audiences = (struct dv_strs){DV_NEW_ARRAY(server->arena, dv_str, DV_COUNT(audiences)),
                                      chosen->audience ? DV_COUNT(audiences) : 1};
    memcpy(kube.audiences.v, audiences, sizeof(audiences));
    server->kube = dv_kube_open(&kube);
    if (chosen->has_accounts && !open_control(server, err))
        return false;
    if (chosen->ca && !make_tls(server, chosen->ca, &tls, err))
        return false;
    rest.tls = chosen->ca ? &tls : NULL;
    server->rest = dv_rest_server_open(server->loop, dv_str_from_c(chosen->address), &rest, err);
    return server->rest != NULL;
}

/* ---- the end: from the outside in ---- */

static void on_store_closed(void *ctx)
{
    dv_loop_stop(((struct server *)ctx)->loop);
}

static void on_embedded_closed(void *ctx)
{
    struct server *server = ctx;

    dv_tokens_close(server->tokens);
    dv_store_close(server->store, on_store_closed, server);
}

/* Of those that hold calls; the API behind them goes when all are closed. */
static void on_front_closed(void *ctx)
{
    struct server *server = ctx;

    if (--server->n_fronts == 0)
        dv_embedded_close(server->embedded, on_embedded_closed, server);
}

static void on_terminate(void *ctx, int signum)
{
    struct server *server = ctx;

    (void)signum;
    dv_signal_close(server->terminate, NULL, NULL);
    server->n_fronts = server->control ? 3 : 2;
    if (server->control)
        dv_control_close(server->control, on_front_closed, server);
    dv_rest_server_close(server->rest, 1000, on_front_closed, server);
    dv_kube_close(server->kube, on_front_closed, server);
}

static void parse(int argc, char **argv, struct options *options)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];

        if (strcmp(argv[i], "--anonymous") == 0)
            options->anonymous = strcmp(value, "on") == 0    ? DV_ANONYMOUS_ON
                                 : strcmp(value, "off") == 0 ? DV_ANONYMOUS_OFF
                                                             : DV_ANONYMOUS_HEALTH;
        else if (strcmp(argv[i], "--port") == 0)
            (void)snprintf(options->address, sizeof(options->address), "127.0.0.1:%s", value);
        else if (strcmp(argv[i], "--store") == 0)
            options->file = value;
        else if (strcmp(argv[i], "--ca") == 0)
            options->ca = value;
        else if (strcmp(argv[i], "--audience") == 0)
            options->audience = value;
        else if (strcmp(argv[i], "--token-key") == 0)
            options->key = value;
        else if (strcmp(argv[i], "--accounts") == 0)
            options->has_accounts = strcmp(value, "on") == 0;
        else if (strcmp(argv[i], "--history") == 0)
            options->n_history = strtoul(value, NULL, 10);
    }
}

int main(int argc, char **argv)
{
    struct server server = {.arena = dv_arena_new()};
    struct options options = {.address = "127.0.0.1:0"};
    struct dv_err err;

    parse(argc, argv, &options);
    if (!options.file) {
        (void)fprintf(stderr, "api_server: where is its store? --store FILE\n");
        return 2;
    }
    if (!open_all(&server, &options, &err) ||
        !(server.terminate = dv_signal_open(server.loop, SIGTERM, on_terminate, &server, &err))) {
        (void)fprintf(stderr, "api_server: %s\n", err.msg);
        return 1;
    }
    (void)printf("%u\nready\n", dv_rest_server_port(server.rest));
    (void)fflush(stdout);
    dv_loop_run(server.loop);
    dv_metrics_free(server.metrics);
    dv_loop_free(server.loop);
    dv_arena_free(server.arena);
    return 0;
}
