#include "cluster/tests/test_remote.h"

#include "support/dvtest.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "support/turns.h"

#define PATIENCE_MS 20000u
#define STEP_MS 100u
#define TEXT_BYTES_MAX (64u << 20)

/* ---- the server ---- */

struct flow {
    struct dv_rest_stream stream;
    struct fake *fake;
};

static void on_ended(struct dv_rest_stream *stream, const struct dv_err *err)
{
    struct flow *flow = DV_CONTAINER(stream, struct flow, stream);

    (void)err; /* however it ends */
    if (flow->fake->stream == stream)
        flow->fake->stream = NULL;
    flow->fake->n_streams--;
    free(flow);
}

static void begin_stream(struct fake *fake, struct dv_rest_call *call, const struct answer *answer)
{
    struct flow *flow = DV_ALLOC(struct flow);

    flow->fake = fake;
    flow->stream.ended = on_ended;
    fake->stream = &flow->stream;
    fake->n_streams++;
    dv_rest_stream_start(&flow->stream, call, answer->status);
    if (answer->body[0])
        fake_send(fake, dv_str_from_c(answer->body));
}

static void note_request(struct fake *fake, const struct dv_rest_request *request)
{
    dv_buf_printf(&fake->asked, "%.*s %.*s", DV_FMT(request->method), DV_FMT(request->path));
    if (request->query.n)
        dv_buf_printf(&fake->asked, "?%.*s", DV_FMT(request->query));
    if (request->body.n)
        dv_buf_printf(&fake->asked, " %.*s: %.*s",
                      DV_FMT(dv_rest_request_field(request, DV_STR("Content-Type"))),
                      DV_FMT(request->body));
    dv_buf_add_char(&fake->asked, '\n');
    dv_buf_clear(&fake->token);
    dv_buf_add(&fake->token, dv_rest_request_field(request, DV_STR("Authorization")));
    fake->n_asked++;
}

static void on_request(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct fake *fake = ctx;
    struct answer answer = fake->otherwise;

    note_request(fake, request);
    if (fake->n_answered < fake->n_answers)
        answer = fake->answers[fake->n_answered++ % N_ANSWERS];
    if (answer.field)
        dv_rest_call_add_field(call, dv_str_from_c(answer.field), dv_str_from_c(answer.value));
    if (answer.status == 0) {
        assert_true(fake->n_silent < N_CALLS);
        fake->silent[fake->n_silent++] = call;
    } else if (answer.streams) {
        begin_stream(fake, call, &answer);
    } else {
        dv_rest_call_reply(call, answer.status, dv_str_from_c(answer.body));
    }
}

void fake_answer(struct fake *fake, struct answer answer)
{
    assert_true(fake->n_answers - fake->n_answered < N_ANSWERS);
    fake->answers[fake->n_answers++ % N_ANSWERS] = answer;
}

void fake_reply(struct fake *fake, const char *body)
{
    fake_answer(fake, (struct answer){.status = 200, .body = body});
}

void fake_stream(struct fake *fake, const char *body)
{
    fake_answer(fake, (struct answer){.status = 200, .body = body, .streams = true});
}

static bool has_stream(void *ctx)
{
    return ((struct fake *)ctx)->stream != NULL;
}

void fake_send(struct fake *fake, dv_str bytes)
{
    struct dv_err err;

    if (!fake->stream)
        assert_true(dv_loop_run_until(fake->loop, has_stream, fake, PATIENCE_MS));
    assert_ok(dv_rest_stream_send(fake->stream, bytes, &err), &err);
}

void fake_finish(struct fake *fake)
{
    dv_rest_stream_finish(fake->stream);
    fake->stream = NULL;
    fake_settle(fake);
}

void fake_cut(struct fake *fake)
{
    dv_rest_stream_cancel(fake->stream);
    fake->stream = NULL;
    fake_settle(fake);
}

/* ---- time ---- */

void fake_settle(struct fake *fake)
{
    /* What one turn does may make the other side's socket ready for the next. */
    loop_turns(fake->loop, 10);
}

void fake_advance(struct fake *fake, uint64_t ms)
{
    for (uint64_t at = 0; at < ms; at += STEP_MS) {
        dv_clock_virtual_advance_ms(&fake->clock, STEP_MS);
        fake_settle(fake);
    }
}

struct count {
    const int *number;
    int at_least;
};

static bool is_counted(void *ctx)
{
    struct count *count = ctx;

    return *count->number >= count->at_least;
}

void fake_wait(struct fake *fake, const int *number, int at_least)
{
    struct count count = {number, at_least};

    if (!dv_loop_run_until(fake->loop, is_counted, &count, PATIENCE_MS))
        fail_msg("%d of %d after %u ms", *number, at_least, PATIENCE_MS);
}

/* ---- the client ---- */

static void on_closed(void *ctx)
{
    ((struct fake *)ctx)->n_closed++;
}

void fake_connect(struct fake *fake)
{
    struct dv_remote_options options = {.n_page_objects = 2};
    struct dv_err err;

    fake->config.server = dv_str_printf(fake->arena, "http://127.0.0.1:%u",
                                        (unsigned)dv_rest_server_port(fake->server));
    fake->remote = dv_remote_open(fake->loop, &fake->config, &options, &err);
    if (!fake->remote)
        fail_msg("%s", err.msg);
}

void fake_disconnect(struct fake *fake)
{
    int n = fake->n_closed;

    if (!fake->remote)
        return;
    dv_remote_close(fake->remote, on_closed, fake);
    fake->remote = NULL;
    fake_wait(fake, &fake->n_closed, n + 1);
}

/* ---- views ---- */

static void told(struct fake *fake)
{
    fake->n_told++;
    if (fake->n_told == fake->closes_view_at)
        fake_view_close(fake);
    if (fake->n_told == fake->closes_remote_at) {
        dv_remote_close(fake->remote, on_closed, fake);
        fake->remote = NULL;
    }
}

static void on_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct fake *fake = ctx;
    const struct dv_object *any = now ? now : old;

    assert_non_null(any);
    assert_ptr_equal(dv_view_get(fake->view, any->meta->namespace, any->meta->name), now);
    if (old && now) { /* the same object, newer */
        assert_true(dv_str_eq(old->meta->uid, now->meta->uid));
        assert_true(fake->goes_back || old->version < now->version);
    }
    dv_buf_printf(&fake->log, "%s%.*s", !old ? "+" : now ? "~" : "-", DV_FMT(any->meta->name));
    if (now)
        dv_buf_printf(&fake->log, "@%llu", (unsigned long long)now->version);
    dv_buf_add_char(&fake->log, ' ');
    told(fake);
}

static void on_synced(void *ctx)
{
    struct fake *fake = ctx;

    dv_buf_add_c(&fake->log, "synced ");
    assert_true(dv_view_is_synced(fake->view));
    told(fake);
}

static void on_disturbed(void *ctx, const struct dv_err *err)
{
    struct fake *fake = ctx;

    dv_buf_add_c(&fake->log, err ? "lost " : "back ");
    told(fake);
}

void fake_view(struct fake *fake)
{
    struct dv_view_options options = {.kind = dv_kind(DV_KIND_CONFIG_MAP),
                                      .changed = on_changed,
                                      .synced = on_synced,
                                      .disturbed = on_disturbed,
                                      .ctx = fake};
    struct dv_err err;

    fake->view = dv_view_open(dv_remote_cluster(fake->remote), &options, &err);
    if (!fake->view)
        fail_msg("%s", err.msg);
}

void fake_view_close(struct fake *fake)
{
    if (fake->view)
        dv_view_close(fake->view);
    fake->view = NULL;
}

/* ---- what is expected ---- */

struct wanted {
    const struct dv_buf *buf;
    size_t n;
};

static bool has_line(void *ctx)
{
    const struct dv_buf *buf = ctx;

    return dv_str_find_char(dv_buf_str(buf), '\n') < buf->n;
}

static void drop_front(struct dv_buf *buf, size_t n)
{
    char *rest = strndup(buf->p + n, buf->n - n);

    assert_non_null(rest);
    dv_buf_clear(buf);
    dv_buf_add_c(buf, rest);
    free(rest);
}

void fake_expect(struct fake *fake, const char *text)
{
    dv_str want = dv_str_from_c(text);
    dv_str got;

    if (!dv_loop_run_until(fake->loop, has_line, &fake->asked, PATIENCE_MS))
        fail_msg("nothing was asked, want \"%s\"", text);
    got = dv_buf_str(&fake->asked);
    got = dv_str_slice(got, 0, dv_str_find_char(got, '\n'));
    if (!dv_str_starts_with(got, want))
        fail_msg("got \"%.*s\", want \"%s...\"", DV_FMT(got), text);
    drop_front(&fake->asked, got.n + 1);
}

static bool is_long_enough(void *ctx)
{
    const struct wanted *wanted = ctx;

    return wanted->buf->n >= wanted->n;
}

void fake_expect_log(struct fake *fake, const char *text)
{
    struct wanted wanted = {&fake->log, dv_str_from_c(text).n};

    if (dv_loop_run_until(fake->loop, is_long_enough, &wanted, PATIENCE_MS))
        fake_settle(fake); /* is there more? */
    assert_str(dv_buf_str(&fake->log), text);
    dv_buf_clear(&fake->log);
}

void fake_begin(struct fake *fake)
{
    fake_connect(fake);
    fake_reply(fake, LIST("5", OBJECT("a", "ua", "3") "," OBJECT("b", "ub", "4")));
    fake_stream(fake, "");
    fake_view(fake);
    fake_expect(fake, "GET /api/v1/configmaps?limit=2");
    fake_expect_log(fake, "+a@3 +b@4 synced ");
    fake_expect(fake, WATCHES("5"));
}

/* ---- life ---- */

int fake_start(void **state)
{
    struct fake *fake = calloc(1, sizeof(*fake));
    struct dv_rest_server_options options = {
        .name = DV_STR("fake"), .handle = on_request, .unsent_bytes_max = 32u << 20};
    struct dv_err err;

    assert_non_null(fake);
    fake->arena = dv_arena_new();
    dv_buf_init(&fake->asked, TEXT_BYTES_MAX);
    dv_buf_init(&fake->token, TEXT_BYTES_MAX);
    dv_buf_init(&fake->log, TEXT_BYTES_MAX);
    dv_clock_virtual_init(&fake->clock);
    fake->loop = dv_loop_new(&fake->clock.clock, &err);
    assert_non_null(fake->loop);
    options.ctx = fake;
    fake->server = dv_rest_server_open(fake->loop, DV_STR("127.0.0.1:0"), &options, &err);
    if (!fake->server)
        fail_msg("%s", err.msg);
    fake->config.token = DV_STR("secret");
    *state = fake;
    return 0;
}

int fake_end(void **state)
{
    struct fake *fake = *state;
    int n;

    fake_view_close(fake);
    fake_disconnect(fake);
    n = fake->n_closed;
    dv_rest_server_close(fake->server, 0, on_closed, fake);
    fake_settle(fake);
    for (size_t i = 0; i < fake->n_silent; i++)
        dv_rest_call_reply(fake->silent[i], 500, DV_STR(""));
    fake_advance(fake, STEP_MS);
    fake_wait(fake, &fake->n_closed, n + 1);
    assert_int_equal(fake->n_streams, 0);
    dv_loop_free(fake->loop);
    dv_buf_fini(&fake->asked);
    dv_buf_fini(&fake->token);
    dv_buf_fini(&fake->log);
    dv_arena_free(fake->arena);
    free(fake);
    return 0;
}
