#include "http2/tests/test_side.h"

#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/num.h"
#include "http2/session.h"

#define EVENTS_BYTES_MAX (1u << 20)
/* Longer messages are only named by their size. */
#define SHOWN_BYTES_MAX 64u

size_t side_number(const struct dv_h2_call *call)
{
    return (size_t)(uintptr_t)dv_h2_call_ctx(call);
}

static struct side *side_of(struct dv_h2_handler *handler)
{
    return DV_CONTAINER(handler, struct side, handler);
}

static size_t begin(struct side *side)
{
    side->is_over = dv_realloc(side->is_over, side->n_begun + 1);
    side->is_over[side->n_begun++] = false;
    return side->n_begun;
}

static void assert_is_live(struct side *side, const struct dv_h2_call *call)
{
    size_t number = side_number(call);

    assert_in_range(number, 1, side->n_begun);
    assert_false(side->is_over[number - 1]);
}

static void note(struct side *side, const struct dv_h2_call *call, const char *what, dv_str text)
{
    if (call)
        assert_is_live(side, call);
    if (side->is_quiet)
        return;
    if (call)
        dv_buf_printf(&side->events, "#%zu ", side_number(call));
    dv_buf_printf(&side->events, "%s%s%.*s\n", what, text.n ? " " : "", DV_FMT(text));
}

static void on_request(struct dv_h2_handler *handler, struct dv_h2_call *call,
                       const struct dv_h2_request *request)
{
    struct side *side = side_of(handler);

    side->call = call;
    dv_h2_call_set_ctx(call, (void *)(uintptr_t)begin(side)); /* a number is all it needs */
    note(side, call, "request", request->path);
    if (side->on_request)
        side->on_request(side, call, request);
}

static void on_message(struct dv_h2_handler *handler, struct dv_h2_call *call, dv_str message)
{
    struct side *side = side_of(handler);
    char size[32];

    side->n_messages++;
    if (message.n <= SHOWN_BYTES_MAX) {
        note(side, call, "message", message);
    } else {
        (void)snprintf(size, sizeof(size), "of %zu bytes", message.n);
        note(side, call, "message", dv_str_from_c(size));
    }
    if (side->on_message)
        side->on_message(side, call, message);
}

static void on_ended(struct dv_h2_handler *handler, struct dv_h2_call *call,
                     const struct dv_h2_end *end)
{
    struct side *side = side_of(handler);

    note(side, call, end->is_unprocessed ? "ended unprocessed" : "ended",
         dv_str_from_c(dv_code_name(end->status.code)));
    side->is_over[side_number(call) - 1] = true;
    side->n_ended++;
    side->last_end = *end;
    if (side->on_ended)
        side->on_ended(side, call, end);
}

static void on_drained(struct dv_h2_handler *handler, struct dv_h2_call *call)
{
    struct side *side = side_of(handler);

    assert_is_live(side, call);
    side->n_drained++;
    if (side->on_drained)
        side->on_drained(side, call);
}

static void on_ready(struct dv_h2_handler *handler)
{
    note(side_of(handler), NULL, "ready", DV_STR_NONE);
}

static void on_going_away(struct dv_h2_handler *handler)
{
    note(side_of(handler), NULL, "going away", DV_STR_NONE);
}

static void on_refused(struct dv_h2_handler *handler, const struct dv_err *err)
{
    struct side *side = side_of(handler);

    side->last_refusal = *err;
    note(side, NULL, "refused", dv_str_from_c(dv_code_name(err->code)));
}

void side_init(struct side *side, const struct dv_h2_options *options)
{
    *side = (struct side){
        .handler = {.request = on_request,
                    .message = on_message,
                    .ended = on_ended,
                    .drained = on_drained,
                    .ready = on_ready,
                    .going_away = on_going_away,
                    .refused = on_refused}
    };
    dv_buf_init(&side->events, EVENTS_BYTES_MAX);
    side->h2 = dv_h2_new(options, &side->handler);
}

void side_fini(struct side *side)
{
    struct dv_err gone;

    (void)dv_fail(&gone, DV_UNAVAILABLE, "the test is over");
    dv_h2_lose(side->h2, &gone);
    assert_int_equal(side->h2->n_calls, 0);
    assert_int_equal(side->n_ended, side->n_begun);
    dv_h2_free(side->h2);
    dv_buf_fini(&side->events);
    free(side->is_over);
}

struct dv_h2_call *side_try(struct side *side, const struct dv_h2_start *start, dv_str message,
                            struct dv_err *err)
{
    struct dv_h2_msg *msg = dv_h2_msg_copy(message);
    void *number = (void *)(uintptr_t)(side->n_begun + 1);
    struct dv_h2_call *call = dv_h2_start(side->h2, start, msg, number, err);

    dv_h2_msg_unref(msg);
    if (call) {
        (void)begin(side);
        side->call = call;
    }
    return call;
}

struct dv_h2_call *side_start(struct side *side, const char *path, dv_str message)
{
    struct dv_h2_start start = {.path = dv_str_from_c(path)};
    struct dv_err err;
    struct dv_h2_call *call = side_try(side, &start, message, &err);

    if (!call)
        fail_msg("%s: %s: %s", path, dv_code_name(err.code), err.msg);
    return call;
}

void side_send(struct dv_h2_call *call, dv_str message)
{
    struct dv_h2_msg *msg = dv_h2_msg_copy(message);
    struct dv_err err;

    assert_ok(dv_h2_send(call, msg, &err), &err);
    dv_h2_msg_unref(msg);
}

size_t side_pull_all(struct side *side)
{
    size_t n = 0;
    dv_str bytes;

    while (dv_h2_pull(side->h2, &bytes))
        n += bytes.n;
    return n;
}

void side_echo(struct side *side, struct dv_h2_call *call, dv_str message)
{
    (void)side;
    side_send(call, message);
    dv_h2_finish(call, DV_OK, DV_STR_NONE);
}

void pair_init(struct pair *pair, const struct dv_h2_options *client,
               const struct dv_h2_options *server)
{
    struct dv_h2_options client_defaults = dv_h2_default_options(false);
    struct dv_h2_options server_defaults = dv_h2_default_options(true);

    *pair = (struct pair){0};
    side_init(&pair->client, client ? client : &client_defaults);
    side_init(&pair->server, server ? server : &server_defaults);
    pair->server.on_message = side_echo;
}

void pair_fini(struct pair *pair)
{
    side_fini(&pair->client);
    side_fini(&pair->server);
}

bool pair_carry(struct pair *pair, struct side *from, struct side *to)
{
    bool has_any = false;
    struct dv_err err;
    dv_str bytes;

    while (dv_h2_pull(from->h2, &bytes)) {
        has_any = true;
        while (bytes.n > 0) {
            size_t n = pair->chunk_bytes ? dv_size_min(bytes.n, pair->chunk_bytes) : bytes.n;

            assert_ok(dv_h2_receive(to->h2, dv_str_slice(bytes, 0, n), &err), &err);
            bytes = dv_str_slice(bytes, n, bytes.n);
        }
    }
    return has_any;
}

void pair_talk(struct pair *pair)
{
    while (pair_carry(pair, &pair->client, &pair->server) ||
           pair_carry(pair, &pair->server, &pair->client))
        ;
}
