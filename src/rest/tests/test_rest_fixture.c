#include "rest/tests/test_rest_fixture.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/vec.h"
#include "loop/loop.h"
#include "support/dvtest.h"
#include "support/lines.h"

/* Real time: only a broken test waits so long. */
#define PATIENCE_MS 20000u

/* ---- the server's handler ---- */

static void show(struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct dv_arena *arena = dv_rest_call_arena(call);
    struct dv_buf text;
    dv_str rest = request->path;
    dv_str name;
    dv_str value;

    dv_buf_init(&text, 1u << 20);
    dv_buf_printf(&text, "%.*s", DV_FMT(request->method));
    while (dv_rest_path_next(&rest, arena, &value))
        dv_buf_printf(&text, " [%.*s]", DV_FMT(value));
    rest = request->query;
    while (dv_rest_query_next(&rest, arena, &name, &value))
        dv_buf_printf(&text, " %.*s=%.*s", DV_FMT(name), DV_FMT(value));
    for (size_t i = 0; i < request->n_fields; i++)
        dv_buf_printf(&text, " %.*s:%.*s", DV_FMT(request->fields[i].name),
                      DV_FMT(request->fields[i].value));
    dv_buf_printf(&text, " %zu", request->body.n);
    dv_rest_call_add_field(call, DV_STR("X-Id"), DV_STR("7"));
    dv_rest_call_add_field(call, DV_STR("X-Bad"), DV_STR("a\r\nX-Forged: b"));
    dv_rest_call_reply_buf(call, 200, &text);
    assert_int_equal(text.n, 0);
}

static void tell_who(struct dv_rest_call *call)
{
    struct dv_rest_identity who;
    struct dv_buf text;
    struct dv_err err;

    dv_buf_init(&text, 1u << 20);
    if (!dv_rest_call_identity(call, &who, &err)) {
        dv_buf_printf(&text, "%s %s\n", dv_code_name(err.code), err.msg);
    } else {
        dv_buf_printf(&text, "%.*s", DV_FMT(who.name));
        for (size_t i = 0; i < who.n_groups; i++)
            dv_buf_printf(&text, " [%.*s]", DV_FMT(who.groups[i]));
        dv_buf_add_c(&text, "\n");
    }
    dv_rest_call_reply_buf(call, 200, &text);
}

static void on_room(struct dv_rest_stream *stream)
{
    struct fixture *fixture = DV_CONTAINER(stream, struct fixture, stream);

    fixture->n_rooms++;
    if (fixture->on_room)
        fixture->on_room(fixture);
}

static void on_ended(struct dv_rest_stream *stream, const struct dv_err *err)
{
    struct fixture *fixture = DV_CONTAINER(stream, struct fixture, stream);

    fixture->n_ended++;
    fixture->ended.code = DV_OK;
    if (err)
        fixture->ended = *err;
    dv_rest_stream_cancel(stream); /* too late: nothing happens */
    assert_int_equal(dv_rest_stream_unsent_bytes(stream), 0);
}

void fixture_stream(struct fixture *fixture, struct dv_rest_call *call)
{
    fixture->stream = (struct dv_rest_stream){.room = on_room, .ended = on_ended};
    fixture->n_streams++;
    dv_rest_stream_start(&fixture->stream, call, 200);
}

static void on_request(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct fixture *fixture = ctx;

    if (dv_str_eq(request->path, DV_STR("/echo"))) {
        dv_rest_call_reply(call, 200, request->body);
    } else if (dv_str_starts_with(request->path, DV_STR("/show"))) {
        show(call, request);
    } else if (dv_str_eq(request->path, DV_STR("/hold"))) {
        fixture->held = call;
        fixture->n_held++;
        if (fixture->closes_server)
            fixture_close(fixture, 1000);
    } else if (dv_str_eq(request->path, DV_STR("/stream"))) {
        dv_rest_call_add_field(call, DV_STR("Content-Type"), DV_STR("application/json"));
        fixture_stream(fixture, call);
    } else if (dv_str_eq(request->path, DV_STR("/who"))) {
        tell_who(call);
    } else {
        dv_rest_call_reply(call, 404, DV_STR("nothing here"));
    }
}

static void on_complaint(void *ctx, dv_str peer, const struct dv_err *err)
{
    struct fixture *fixture = ctx;

    assert_true(peer.n > 0);
    dv_buf_printf(&fixture->complaints, "%s %s;", dv_code_name(err->code), err->msg);
}

void fixture_serve(struct fixture *fixture)
{
    struct dv_err err;

    fixture->options.name = DV_STR("test");
    if (!fixture->options.handle)
        fixture->options.handle = on_request;
    fixture->options.complaint = on_complaint;
    fixture->options.ctx = fixture;
    fixture->server =
        dv_rest_server_open(fixture->loop, DV_STR("127.0.0.1:0"), &fixture->options, &err);
    if (!fixture->server)
        fail_msg("%s", err.msg);
    fixture->port = dv_rest_server_port(fixture->server);
    assert_true(fixture->port > 0);
}

struct dv_rest_cert fixture_cert(struct fixture *fixture, const struct dv_rest_cert *ca,
                                 const char *name, const dv_str *groups, uint64_t start_days)
{
    static const dv_str hosts[] = {DV_STR_INIT("localhost"), DV_STR_INIT("127.0.0.1"),
                                   DV_STR_INIT("::1")};
    const uint64_t day_ns = 86400ull * 1000000000u;
    struct dv_rest_cert_request request = {
        .name = dv_str_from_c(name),
        .groups = groups,
        .n_groups = groups ? 2 : 0,
        .hosts = hosts,
        .n_hosts = groups ? 0 : DV_COUNT(hosts),
        .now_ns = dv_clock_wall_ns(dv_clock_real()) - start_days * day_ns,
        .valid_days = 30,
    };
    struct dv_rest_cert cert;
    struct dv_err err;

    if (!ca)
        assert_ok(dv_rest_cert_make_ca(&request, fixture->arena, &cert, &err), &err);
    else if (groups)
        assert_ok(dv_rest_cert_make_client(ca, &request, fixture->arena, &cert, &err), &err);
    else
        assert_ok(dv_rest_cert_make_server(ca, &request, fixture->arena, &cert, &err), &err);
    return cert;
}

void fixture_certify(struct fixture *fixture)
{
    struct dv_rest_cert cert;

    fixture->ca = fixture_cert(fixture, NULL, "ca", NULL, 0);
    cert = fixture_cert(fixture, &fixture->ca, "server", NULL, 0);
    fixture->tls = (struct dv_rest_tls){cert.cert, cert.key, fixture->ca.cert};
    fixture->options.tls = &fixture->tls;
}

static void on_closed(void *ctx)
{
    ((struct fixture *)ctx)->n_closed++;
}

void fixture_close(struct fixture *fixture, uint64_t grace_ms)
{
    dv_rest_server_close(fixture->server, grace_ms, on_closed, fixture);
    fixture->server = NULL;
}

/* ---- life ---- */

int fixture_start(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct dv_err err;

    assert_non_null(fixture);
    dv_buf_init(&fixture->complaints, 1u << 20);
    dv_buf_init(&fixture->log, 64u << 20);
    lines_keep(&fixture->log, DV_LOG_DEBUG);
    dv_clock_virtual_init(&fixture->clock);
    fixture->loop = dv_loop_new(&fixture->clock.clock, &err);
    assert_non_null(fixture->loop);
    fixture->arena = dv_arena_new();
    *state = fixture;
    return 0;
}

struct dv_poll *fixture_watch(struct fixture *fixture, int fd,
                              void (*ready)(void *ctx, unsigned events), void *ctx)
{
    struct dv_err err;
    struct dv_poll *poll = dv_poll_open(fixture->loop, fd, ready, ctx, &err);

    assert_ok(poll, &err);
    *dv_vec_add(&fixture->watched) = (struct watched){fd, poll};
    dv_poll_set(poll, DV_POLL_READ);
    return poll;
}

void fixture_unwatch(struct fixture *fixture, int fd)
{
    size_t at = 0;

    while (fixture->watched.v[at].fd != fd)
        at++;
    dv_poll_close(fixture->watched.v[at].poll, NULL, NULL);
    (void)close(fd);
    dv_vec_remove_swap(&fixture->watched, at);
}

int fixture_end(void **state)
{
    struct fixture *fixture = *state;
    int n_servers = fixture->n_closed;

    while (fixture->watched.n > 0)
        fixture_unwatch(fixture, fixture->watched.v[0].fd);
    dv_vec_fini(&fixture->watched);
    if (fixture->server) {
        fixture_close(fixture, 0);
        advance(fixture, 1);
        if (fixture->held)
            dv_rest_call_reply(fixture->held, 200, DV_STR(""));
        wait_count(fixture, &fixture->n_closed, n_servers + 1);
    }
    assert_int_equal(fixture->n_ended, fixture->n_streams);
    dv_loop_free(fixture->loop);
    dv_buf_fini(&fixture->complaints);
    lines_end(&fixture->log);
    dv_arena_free(fixture->arena);
    free(fixture);
    return 0;
}

/* ---- clients ---- */

static void on_readable(void *ctx, unsigned events)
{
    struct client *client = ctx;
    char bytes[65536];
    ssize_t n = recv(client->fd, bytes, sizeof(bytes), 0);

    (void)events;
    if (n > 0) {
        dv_buf_add(&client->got, (dv_str){bytes, (size_t)n});
        dv_poll_set(client->poll, DV_POLL_READ); /* after a reset it is told once only */
    } else if (n == 0 || errno != EAGAIN) {
        client->is_closed = true;
        dv_poll_set(client->poll, 0);
    }
}

void client_open(struct client *client, struct fixture *fixture)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(fixture->port)};
    int one = 1;

    *client = (struct client){.fixture = fixture};
    dv_buf_init(&client->got, 256u << 20);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(client->fd >= 0);
    (void)setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* no 40 ms pauses */
    assert_int_equal(connect(client->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    client->poll = fixture_watch(fixture, client->fd, on_readable, client);
}

void client_reads(struct client *client, bool reads)
{
    dv_poll_set(client->poll, reads ? DV_POLL_READ : 0);
}

void client_close(struct client *client)
{
    if (client->fd < 0)
        return;
    fixture_unwatch(client->fixture, client->fd);
    client->fd = -1;
    dv_buf_fini(&client->got);
}

struct sending {
    struct client *client;
    dv_str rest;
};

static bool is_sent(void *ctx)
{
    struct sending *sending = ctx;
    ssize_t n = send(sending->client->fd, sending->rest.p, sending->rest.n, MSG_NOSIGNAL);

    if (n >= 0)
        sending->rest = dv_str_slice(sending->rest, (size_t)n, sending->rest.n);
    else if (errno != EAGAIN)
        sending->rest.n = 0; /* cut off: what is read will tell */
    return sending->rest.n == 0;
}

void client_send_n(struct client *client, dv_str bytes)
{
    struct sending sending = {client, bytes};

    assert_true(dv_loop_run_until(client->fixture->loop, is_sent, &sending, PATIENCE_MS));
}

void client_send(struct client *client, const char *text)
{
    client_send_n(client, dv_str_from_c(text));
}

/* ---- waiting ---- */

struct wait {
    struct fixture *fixture;
    struct client *client;
    const int *count;
    size_t number;
    const char *text;
};

static bool has_got(void *ctx)
{
    struct wait *wait = ctx;
    dv_str got = dv_buf_str(&wait->client->got);
    dv_str text = dv_str_from_c(wait->text);
    dv_str news = dv_str_slice(got, wait->number, got.n);

    if (dv_str_find(news, text) < news.n || text.n == 0)
        return true;
    wait->number = got.n < text.n ? 0 : got.n - text.n + 1; /* what is before it was looked at */
    return false;
}

void client_expect(struct client *client, const char *text)
{
    struct wait wait = {.client = client, .text = text};
    dv_str got;
    size_t end;

    if (!dv_loop_run_until(client->fixture->loop, has_got, &wait, PATIENCE_MS))
        fail_msg("no \"%s\" in \"%.300s\"; log: %s", text, dv_buf_c(&client->got),
                 dv_buf_c(&client->fixture->log));
    got = dv_buf_str(&client->got);
    end = dv_str_find(got, dv_str_from_c(text)) + strlen(text);
    memmove(client->got.p, client->got.p + end, client->got.n - end);
    client->got.n -= end;
    client->got.p[client->got.n] = '\0';
}

void client_expect_answer(struct client *client, unsigned status, const char *body)
{
    char line[40];

    (void)snprintf(line, sizeof(line), "HTTP/1.1 %u ", status);
    client_expect(client, line);
    (void)snprintf(line, sizeof(line), "\r\nContent-Length: %zu\r\n", strlen(body));
    client_expect(client, line);
    client_expect(client, "\r\n"); /* of the last field, or of the empty line */
    client_expect(client, body);
}

static bool is_closed(void *ctx)
{
    return ((struct wait *)ctx)->client->is_closed;
}

void client_expect_closed(struct client *client)
{
    struct wait wait = {.client = client};

    if (!dv_loop_run_until(client->fixture->loop, is_closed, &wait, PATIENCE_MS))
        fail_msg("not closed, but got \"%.300s\"", dv_buf_c(&client->got));
}

static bool is_counted(void *ctx)
{
    const struct wait *wait = ctx;

    return *wait->count >= (int)wait->number;
}

void wait_count(struct fixture *fixture, const int *number, int at_least)
{
    struct wait wait = {.count = number, .number = (size_t)at_least};

    if (!dv_loop_run_until(fixture->loop, is_counted, &wait, PATIENCE_MS))
        fail_msg("%d, not %d; log: %s", *number, at_least, dv_buf_c(&fixture->log));
}

static bool has_connections(void *ctx)
{
    const struct wait *wait = ctx;

    return dv_rest_server_n_connections(wait->fixture->server) == wait->number;
}

void wait_connections(struct fixture *fixture, size_t n)
{
    struct wait wait = {.fixture = fixture, .number = n};

    if (!dv_loop_run_until(fixture->loop, has_connections, &wait, PATIENCE_MS))
        fail_msg("%zu connections; log: %s", dv_rest_server_n_connections(fixture->server),
                 dv_buf_c(&fixture->log));
}

static bool has_complaint(void *ctx)
{
    const struct wait *wait = ctx;
    dv_str all = dv_buf_str(&wait->fixture->complaints);

    return dv_str_find(all, dv_str_from_c(wait->text)) < all.n;
}

void wait_complaint(struct fixture *fixture, const char *text)
{
    struct wait wait = {.fixture = fixture, .text = text};

    if (!dv_loop_run_until(fixture->loop, has_complaint, &wait, PATIENCE_MS))
        fail_msg("complaints: %s; log: %s", dv_buf_c(&fixture->complaints),
                 dv_buf_c(&fixture->log));
}

void advance(struct fixture *fixture, uint64_t ms)
{
    dv_clock_virtual_advance_ms(&fixture->clock, ms);
    settle(fixture);
}

static uint64_t cpu_ns(void)
{
    struct timespec ts;

    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts), 0);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

bool is_asleep(struct fixture *fixture)
{
    uint64_t before_ns = cpu_ns();

    assert_false(dv_loop_run_until(fixture->loop, never, NULL, 200));
    return cpu_ns() - before_ns < 50000000;
}
