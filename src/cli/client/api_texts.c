/* api_texts.c - answers of the API server that are text, several at a time. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/api_exchange.h"
#include "cli/client/cli_api.h"
#include "loop/loop.h"
#include "rest/rest.h"

/* A year. */
#define ENDLESS_MS UINT64_C(31536000000)

struct reading {
    struct readings *all;
    struct dv_cli_text *text;
    struct dv_rest_fetch fetch;
};

struct readings {
    struct dv_cli_api *api;
    struct dv_arena *arena;
    struct reading *v;
    size_t n;
    size_t n_open;
    bool was_enough;
    struct dv_err err; /* code DV_OK: none was broken off */
};

static void end_all(struct readings *all)
{
    all->was_enough = true;
    for (size_t i = 0; i < all->n; i++)
        dv_rest_fetch_cancel(&all->v[i].fetch);
}

static void on_body(struct dv_rest_fetch *fetch, dv_str part)
{
    struct reading *reading = DV_CONTAINER(fetch, struct reading, fetch);

    if (!reading->all->was_enough && !reading->text->part(reading->text, part))
        end_all(reading->all);
}

static void on_done(struct dv_rest_fetch *fetch, const struct dv_err *err)
{
    struct reading *reading = DV_CONTAINER(fetch, struct reading, fetch);
    struct readings *all = reading->all;

    if (err && !all->was_enough)
        all->err = *err;
    if (!err && (fetch->status < 200 || fetch->status > 299))
        reading->text->failure = dv_cli_read_failure(fetch->status, fetch->answer, all->arena);
    if (--all->n_open == 0)
        dv_loop_stop(all->api->loop);
}

static bool start(struct reading *reading)
{
    struct readings *all = reading->all;
    const struct dv_cli_ask *ask = &reading->text->ask;
    struct dv_buf target;
    bool fits;

    dv_buf_init(&target, DV_CLI_TARGET_BYTES_MAX);
    dv_cli_ask_print(ask, &ask->kind->versions[0], &target);
    fits = dv_buf_check(&target, "the request's path", &all->err);
    reading->fetch = (struct dv_rest_fetch){
        .method = ask->method,
        .target = dv_str_copy(dv_buf_str(&target), all->arena),
        .idle_ms = reading->text->is_endless ? ENDLESS_MS : all->api->cli->timeout_ms,
        .on_body = on_body,
        .done = on_done,
    };
    dv_buf_fini(&target);
    if (!fits)
        return false;
    dv_rest_fetch_start(all->api->client, &reading->fetch);
    all->n_open++;
    return true;
}

bool dv_cli_api_read_texts(struct dv_cli_api *api, struct dv_cli_text *const *texts, size_t n_texts,
                           struct dv_arena *arena)
{
    struct readings all = {.api = api, .arena = arena, .err = {.code = DV_OK}};
    bool is_started = true;

    all.v = DV_NEW_ARRAY(arena, struct reading, n_texts);
    for (size_t i = 0; i < n_texts && is_started; i++) {
        all.v[i] = (struct reading){.all = &all, .text = texts[i]};
        is_started = start(&all.v[i]);
        all.n += is_started;
    }
    if (!is_started)
        end_all(&all);
    if (all.n_open > 0)
        dv_loop_run(api->loop);
    return all.err.code == DV_OK || dv_cli_api_explain(api, &all.err);
}
