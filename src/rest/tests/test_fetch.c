#include "rest/tests/test_fetch.h"

#include "loop/loop.h"
#include "support/dvtest.h"

#define MINUTE_MS 60000u
#define PATIENCE_MS 20000u

static void on_closed(void *ctx)
{
    ((struct asker *)ctx)->n_closed++;
}

void asker_open(struct asker *asker, struct fixture *fixture)
{
    struct dv_err err;

    asker->fixture = fixture;
    if (asker->options.base_url.n == 0)
        asker->options.base_url =
            dv_str_printf(fixture->arena, "%s://127.0.0.1:%u",
                          fixture->options.tls ? "https" : "http", fixture->port);
    if (fixture->options.tls && asker->options.ca.n == 0)
        asker->options.ca = fixture->ca.cert;
    asker->client = dv_rest_client_open(fixture->loop, &asker->options, &err);
    if (!asker->client)
        fail_msg("%s", err.msg);
}

void asker_close(struct asker *asker)
{
    int n_before = asker->n_closed;

    dv_rest_client_close(asker->client, on_closed, asker);
    assert_int_equal(asker->n_closed, n_before);
    wait_count(asker->fixture, &asker->n_closed, n_before + 1);
}

static void on_body(struct dv_rest_fetch *fetch, dv_str part)
{
    struct ask *ask = DV_CONTAINER(fetch, struct ask, fetch);

    assert_int_equal(ask->n_done, 0);
    assert_int_equal(fetch->status / 100, 2);
    assert_true(part.n > 0);
    ask->n_parts++;
    dv_buf_add(&ask->body, part);
    if (ask->on_part)
        ask->on_part(ask);
}

static void on_done(struct dv_rest_fetch *fetch, const struct dv_err *err)
{
    struct ask *ask = DV_CONTAINER(fetch, struct ask, fetch);

    assert_null(fetch->priv);
    ask->n_done++;
    (void)dv_succeed(&ask->err);
    if (err)
        ask->err = *err;
    ask->status = fetch->status;
    dv_buf_add(&ask->body, fetch->answer);
    for (size_t i = 0; i < fetch->n_answer_fields; i++)
        dv_buf_printf(&ask->fields, "%.*s: %.*s\n", DV_FMT(fetch->answer_fields[i].name),
                      DV_FMT(fetch->answer_fields[i].value));
    dv_rest_fetch_cancel(fetch); /* too late: nothing happens */
    if (ask->on_done)
        ask->on_done(ask);
}

void ask_init(struct ask *ask, struct asker *asker, const char *method, const char *target)
{
    *ask = (struct ask){.asker = asker};
    ask->fetch.method = dv_str_from_c(method);
    ask->fetch.target = dv_str_from_c(target);
    ask->fetch.deadline_ms = dv_loop_now_ms(asker->fixture->loop) + MINUTE_MS;
    ask->fetch.done = on_done;
    dv_buf_init(&ask->body, 256u << 20);
    dv_buf_init(&ask->fields, 1u << 20);
}

void ask_stream(struct ask *ask)
{
    ask->fetch.deadline_ms = 0;
    ask->fetch.idle_ms = MINUTE_MS;
    ask->fetch.on_body = on_body;
}

void ask_start(struct ask *ask)
{
    dv_rest_fetch_start(ask->asker->client, &ask->fetch);
    assert_int_equal(ask->n_done, 0);
}

void ask_wait(struct ask *ask)
{
    wait_count(ask->asker->fixture, &ask->n_done, 1);
    settle(ask->asker->fixture);
    assert_int_equal(ask->n_done, 1);
}

void ask_fini(struct ask *ask)
{
    dv_buf_fini(&ask->body);
    dv_buf_fini(&ask->fields);
}

void ask_expect(struct asker *asker, const char *method, const char *target, const char *body,
                unsigned status, const char *answer)
{
    struct ask ask;

    ask_init(&ask, asker, method, target);
    ask.fetch.body = dv_str_from_c(body);
    ask_start(&ask);
    ask_wait(&ask);
    if (ask.err.code != DV_OK || ask.status != status)
        fail_msg("%s %s: %u %s", method, target, ask.status, ask.err.msg);
    assert_str(dv_buf_str(&ask.body), answer);
    ask_fini(&ask);
}

struct wait {
    struct ask *ask;
    dv_str text;
};

static bool has_text(void *ctx)
{
    const struct wait *wait = ctx;
    dv_str body = dv_buf_str(&wait->ask->body);

    return dv_str_find(body, wait->text) < body.n;
}

void ask_wait_for(struct ask *ask, const char *text)
{
    struct wait wait = {ask, dv_str_from_c(text)};

    if (!dv_loop_run_until(ask->asker->fixture->loop, has_text, &wait, PATIENCE_MS))
        fail_msg("no \"%s\" in \"%.300s\"; log: %s", text, dv_buf_c(&ask->body),
                 dv_buf_c(&ask->asker->fixture->log));
}
