#include "support/dvtest.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/clock.h"
#include "loop/loop.h"
#include "rest/rest.h"

/* A thousand watches, each of a client of its own: what the API server of a cluster has. */
#define WATCHERS 1000
#define EVENTS 5
#define PATIENCE_MS 60000u

#define EVENT "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Pod\"}}\n"

struct watcher {
    struct crowd *crowd;
    struct dv_rest_fetch fetch;
    struct dv_rest_stream stream;
    size_t n_bytes;
};

struct crowd {
    struct dv_loop *loop;
    struct dv_rest_server *server;
    struct dv_rest_client *client;
    struct watcher watchers[WATCHERS];
    size_t n_streams;
    size_t n_bytes;
    size_t n_done;
    size_t n_ended;
    size_t n_closed;
};

static void on_ended(struct dv_rest_stream *stream, const struct dv_err *err)
{
    struct watcher *watcher = DV_CONTAINER(stream, struct watcher, stream);

    assert_null(err);
    watcher->crowd->n_ended++;
}

static void on_request(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct crowd *crowd = ctx;
    struct watcher *watcher = &crowd->watchers[crowd->n_streams++];

    assert_str(request->path, "/watch");
    watcher->stream = (struct dv_rest_stream){.ended = on_ended};
    dv_rest_stream_start(&watcher->stream, call, 200);
}

static void on_body(struct dv_rest_fetch *fetch, dv_str part)
{
    struct watcher *watcher = DV_CONTAINER(fetch, struct watcher, fetch);

    watcher->n_bytes += part.n;
    watcher->crowd->n_bytes += part.n;
}

static void on_done(struct dv_rest_fetch *fetch, const struct dv_err *err)
{
    if (err)
        fail_msg("%s", err->msg);
    DV_CONTAINER(fetch, struct watcher, fetch)->crowd->n_done++;
}

static void on_closed(void *ctx)
{
    ((struct crowd *)ctx)->n_closed++;
}

struct wait {
    const size_t *number;
    size_t at_least;
};

static bool is_reached(void *ctx)
{
    const struct wait *wait = ctx;

    return *wait->number >= wait->at_least;
}

static void wait_for(struct crowd *crowd, const size_t *number, size_t at_least)
{
    struct wait wait = {number, at_least};

    if (!dv_loop_run_until(crowd->loop, is_reached, &wait, PATIENCE_MS))
        fail_msg("%zu of %zu", *number, at_least);
}

static void start_all(struct crowd *crowd)
{
    for (size_t i = 0; i < WATCHERS; i++) {
        struct watcher *watcher = &crowd->watchers[i];

        watcher->crowd = crowd;
        watcher->fetch = (struct dv_rest_fetch){.method = DV_STR("GET"),
                                                .target = DV_STR("/watch"),
                                                .idle_ms = 600000,
                                                .on_body = on_body,
                                                .done = on_done};
        dv_rest_fetch_start(crowd->client, &watcher->fetch);
    }
    wait_for(crowd, &crowd->n_streams, WATCHERS);
}

static void tell_all(struct crowd *crowd)
{
    for (int round = 1; round <= EVENTS; round++) {
        for (size_t i = 0; i < WATCHERS; i++) {
            struct dv_err err;

            assert_ok(dv_rest_stream_send(&crowd->watchers[i].stream, DV_STR(EVENT), &err), &err);
        }
        wait_for(crowd, &crowd->n_bytes, (size_t)round * WATCHERS * (sizeof(EVENT) - 1));
    }
    for (size_t i = 0; i < WATCHERS; i++)
        assert_int_equal(crowd->watchers[i].n_bytes, EVENTS * (sizeof(EVENT) - 1));
}

static void a_thousand_watchers_are_told(const struct dv_rest_tls *tls, dv_str ca)
{
    struct dv_rest_server_options options = {
        .handle = on_request, .connections_max = WATCHERS, .tls = tls};
    struct dv_rest_client_options client_options = {.connections_max = WATCHERS, .ca = ca};
    struct crowd *crowd = calloc(1, sizeof(*crowd));
    struct dv_arena *arena = dv_arena_new();
    struct dv_err err;

    assert_non_null(crowd);
    crowd->loop = dv_loop_new(dv_clock_real(), &err);
    assert_non_null(crowd->loop);
    options.ctx = crowd;
    crowd->server = dv_rest_server_open(crowd->loop, DV_STR(":0"), &options, &err);
    assert_non_null(crowd->server);
    client_options.base_url = dv_str_printf(arena, "%s://127.0.0.1:%u", tls ? "https" : "http",
                                            dv_rest_server_port(crowd->server));
    client_options.connect_timeout_ms = PATIENCE_MS; /* a thousand handshakes on one thread */
    crowd->client = dv_rest_client_open(crowd->loop, &client_options, &err);
    assert_non_null(crowd->client);
    start_all(crowd);
    tell_all(crowd);
    for (size_t i = 0; i < WATCHERS; i++)
        dv_rest_stream_finish(&crowd->watchers[i].stream);
    wait_for(crowd, &crowd->n_done, WATCHERS);
    wait_for(crowd, &crowd->n_ended, WATCHERS);
    dv_rest_client_close(crowd->client, on_closed, crowd);
    dv_rest_server_close(crowd->server, 0, on_closed, crowd);
    wait_for(crowd, &crowd->n_closed, 2);
    dv_loop_free(crowd->loop);
    dv_arena_free(arena);
    free(crowd);
}

static void a_thousand_plain_watchers_are_told(void **state)
{
    (void)state;
    a_thousand_watchers_are_told(NULL, DV_STR(""));
}

static void a_thousand_watchers_under_tls_are_told(void **state)
{
    static const dv_str host = DV_STR_INIT("127.0.0.1");
    struct dv_rest_cert_request request = {.name = DV_STR("test"),
                                           .hosts = &host,
                                           .n_hosts = 1,
                                           .now_ns = dv_clock_wall_ns(dv_clock_real()),
                                           .valid_days = 1};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_rest_cert ca;
    struct dv_rest_cert cert;
    struct dv_rest_tls tls;
    struct dv_err err;

    (void)state;
    assert_ok(dv_rest_cert_make_ca(&request, arena, &ca, &err), &err);
    assert_ok(dv_rest_cert_make_server(&ca, &request, arena, &cert, &err), &err);
    tls = (struct dv_rest_tls){cert.cert, cert.key, DV_STR("")};
    a_thousand_watchers_are_told(&tls, ca.cert);
}

/* Both ends of every connection are here. */
static int raise_limit(void **state)
{
    struct rlimit limit;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < WATCHERS * 2 + 100)
        skip();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_thousand_plain_watchers_are_told, raise_limit),
        cmocka_unit_test_setup(a_thousand_watchers_under_tls_are_told, raise_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
