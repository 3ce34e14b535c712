#include "cluster/world.h"

#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "cluster/embedded.h"
#include "cluster/proxy.h"
#include "cluster/remote.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "serve/auth.h"
#include "serve/kube_api.h"
#include "serve/tokens.h"
#include "store/store.h"
#include "support/test_store.h"
#include "support/turns.h"

#define TURN_MS 20u

enum {
    TABLE_OBJECTS,
    TABLE_META,
};

static const char *const tables[] = {"objects", "meta"};
static const struct dv_store_schema schema = {.tables = tables, .n_tables = DV_COUNT(tables)};

/* ---- turns ---- */

void world_turn(struct world *world, uint64_t ms)
{
    dv_clock_virtual_advance_ms(&world->clock, ms);
    loop_turns(world->loop, 1);
}

void world_wait(struct world *world, bool (*is_met)(void *ctx), void *ctx, uint64_t ms)
{
    uint64_t start_ms = dv_loop_now_ms(world->loop);

    while (!is_met(ctx)) {
        if (dv_loop_now_ms(world->loop) - start_ms > ms)
            fail_msg("not after %llu ms", (unsigned long long)ms);
        world_turn(world, TURN_MS);
        (void)usleep(50); /* worker threads have a turn, too */
    }
}

/* ---- life ---- */

static void handle(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct world *world = ctx;

    assert_true(dv_kube_handle(world->kube, call, request));
}

static int listen_at(dv_str path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%.*s", DV_FMT(path));
    assert_int_equal(bind(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 128), 0);
    return fd;
}

static void make_tls(struct world *world, struct dv_rest_tls *tls, struct dv_kubeconfig *config)
{
    dv_str host = DV_STR("localhost");
    /* TLS looks at the machine's clock. */
    struct dv_rest_cert_request request = {
        .name = DV_STR("test"), .now_ns = dv_clock_wall_ns(dv_clock_real()), .valid_days = 1};
    struct dv_rest_cert ca;
    struct dv_rest_cert cert;
    struct dv_err err;

    assert_ok(dv_rest_cert_make_ca(&request, world->arena, &ca, &err), &err);
    request.hosts = &host;
    request.n_hosts = 1;
    assert_ok(dv_rest_cert_make_server(&ca, &request, world->arena, &cert, &err), &err);
    *tls = (struct dv_rest_tls){.cert = cert.cert, .key = cert.key};
    config->ca = ca.cert;
}

static void open_api(struct world *world, const struct world_options *options)
{
    struct dv_embedded_options embedded = {.table_objects = TABLE_OBJECTS,
                                           .table_meta = TABLE_META,
                                           .n_history_max = options->n_history_max};
    struct dv_kube_options kube = {.loop = world->loop};
    struct dv_api_user_info admin = dv_auth_admin(DV_STR("admin"), world->arena);
    struct dv_err err;

    world->store = test_store_open(world->loop, &schema, NULL);
    world->tokens = dv_tokens_open(world->loop, NULL, 0, &err);
    assert_non_null(world->tokens);
    assert_ok(dv_tokens_add_fixed(world->tokens, DV_STR("admintoken"), &admin, &err), &err);
    world->embedded = dv_embedded_open(world->loop, world->store, &embedded, &err);
    assert_non_null(world->embedded);
    kube.embedded = world->embedded;
    kube.tokens = world->tokens;
    world->kube = dv_kube_open(&kube);
}

struct world *world_open(const struct world_options *options)
{
    struct world *world = calloc(1, sizeof(*world));
    struct dv_rest_server_options rest = {.name = DV_STR("api"), .handle = handle, .ctx = world};
    struct dv_remote_options remote = {.n_page_objects = options->n_page_objects};
    struct dv_kubeconfig config = {.token = DV_STR("admintoken")};
    struct dv_rest_tls tls;
    dv_str server;
    struct dv_err err;

    assert_non_null(world);
    (void)snprintf(world->dir, sizeof(world->dir), "/tmp/dv-world-XXXXXX");
    assert_non_null(mkdtemp(world->dir));
    world->arena = dv_arena_new();
    dv_clock_virtual_init(&world->clock);
    world->loop = dv_loop_new(&world->clock.clock, &err);
    assert_non_null(world->loop);
    open_api(world, options);
    server = dv_str_printf(world->arena, "%s/api", world->dir);
    config.socket = dv_str_printf(world->arena, "%s/proxy", world->dir);
    config.server = options->has_tls ? DV_STR("https://localhost") : DV_STR("http://localhost");
    if (options->has_tls) {
        make_tls(world, &tls, &config);
        rest.tls = &tls;
    }
    world->rest = dv_rest_server_open_fd(world->loop, listen_at(server), &rest, &err);
    if (!world->rest)
        fail_msg("%s", err.msg);
    proxy_open(&world->proxy, world->loop, config.socket, server, options->seed);
    world->remote = dv_remote_open(world->loop, &config, &remote, &err);
    if (!world->remote)
        fail_msg("%s", err.msg);
    return world;
}

static void on_closed(void *ctx)
{
    ((struct world *)ctx)->n_closed++;
}

struct count {
    const int *number;
    int wanted;
};

static bool is_counted(void *ctx)
{
    const struct count *count = ctx;

    return *count->number == count->wanted;
}

static void wait_closed(struct world *world, const int *number, int n)
{
    struct count count = {number, n};

    world_wait(world, is_counted, &count, 600000);
}

void world_close(struct world *world)
{
    char path[128];

    dv_remote_close(world->remote, on_closed, world);
    wait_closed(world, &world->n_closed, 1);
    proxy_close(&world->proxy);
    wait_closed(world, &world->proxy.n_closed, 1);
    dv_rest_server_close(world->rest, 0, on_closed, world);
    dv_kube_close(world->kube, on_closed, world);
    wait_closed(world, &world->n_closed, 3);
    dv_embedded_close(world->embedded, on_closed, world);
    wait_closed(world, &world->n_closed, 4);
    dv_tokens_close(world->tokens);
    dv_store_close(world->store, on_closed, world);
    wait_closed(world, &world->n_closed, 5);
    dv_loop_free(world->loop);
    dv_arena_free(world->arena);
    (void)snprintf(path, sizeof(path), "%s/api", world->dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(world->dir), 0);
    free(world);
}
