#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "davit_peer.h"

/* Bytes outside ASCII and a bare percent sign: what percent-encoding must carry. */
static const char odd_message[] = "Ger\xc3\xa4t belegt: \xe2\x80\x9egpu-0\xe2\x80\x9c 100% "
                                  "\xe8\xaf\x95";

struct context {
    struct client *client;
    uint64_t arg; /* the scenario's number, 0 for its default */
    struct dv_err *err;
};

static uint64_t number(const struct context *context, uint64_t by_default)
{
    return context->arg > 0 ? context->arg : by_default;
}

/* Fails with the call's own story. */
static bool fail_call(struct dv_err *err, const char *what, const struct peer_call *call)
{
    return dv_fail(err, DV_INTERNAL, "%s: %s \"%s\", %llu messages%s%s", what,
                   dv_code_name(call->err.code), call->err.msg,
                   (unsigned long long)call->n_messages, call->is_wrong ? ", wrong payload" : "",
                   call->is_out_of_order ? ", out of order" : "");
}

static bool run_ask(struct context *context, const char *what, const DavitTest__Ask *ask)
{
    struct peer_call call;

    if (peer_run(context->client, METHOD_UNARY, ask, CALL_TIMEOUT_MS, &call))
        return true;
    return fail_call(context->err, what, &call);
}

static bool test_unary(struct context *context)
{
    DavitTest__Ask hello = DAVIT_TEST__ASK__INIT;
    DavitTest__Ask empty = DAVIT_TEST__ASK__INIT;
    DavitTest__Ask pattern = DAVIT_TEST__ASK__INIT;
    uint8_t text[] = "hello";

    hello.payload = (ProtobufCBinaryData){5, text};
    pattern.payload = (ProtobufCBinaryData){1, text};
    pattern.reply_bytes = 100000;
    return run_ask(context, "hello", &hello) && run_ask(context, "empty", &empty) &&
           run_ask(context, "pattern", &pattern);
}

static bool expect_status(struct context *context, const char *method, const DavitTest__Ask *ask,
                          uint64_t n_messages)
{
    struct peer_call call;

    (void)peer_run(context->client, method, ask, CALL_TIMEOUT_MS, &call); /* judged below */
    if ((uint32_t)call.err.code == ask->code && strcmp(call.err.msg, ask->message) == 0 &&
        call.n_messages == n_messages && !call.is_wrong)
        return true;
    return fail_call(context->err, "status", &call);
}

static bool test_status(struct context *context)
{
    DavitTest__Ask ask = DAVIT_TEST__ASK__INIT;

    ask.code = 9;
    ask.message = odd_message;
    if (!expect_status(context, METHOD_UNARY, &ask, 0))
        return false;
    ask.message = "";
    for (ask.code = 1; ask.code <= 16; ask.code++)
        if (!expect_status(context, METHOD_UNARY, &ask, 0))
            return false;
    return true;
}

static bool test_status_after_messages(struct context *context)
{
    DavitTest__Ask ask = DAVIT_TEST__ASK__INIT;

    ask.count = 3;
    ask.code = 9;
    ask.message = odd_message;
    return expect_status(context, METHOD_WATCH, &ask, 3);
}

static bool expect_unimplemented(struct context *context, const char *method)
{
    DavitTest__Ask ask = DAVIT_TEST__ASK__INIT;
    struct peer_call call;

    (void)peer_run(context->client, method, &ask, CALL_TIMEOUT_MS, &call); /* judged below */
    if (call.err.code != DV_UNIMPLEMENTED)
        return fail_call(context->err, method, &call);
    return test_unary(context);
}

static bool test_unknown_method(struct context *context)
{
    return expect_unimplemented(context, "/davit.test.Peer/Nothing");
}

static bool test_unknown_service(struct context *context)
{
    return expect_unimplemented(context, "/davit.test.Nobody/Unary");
}

static bool test_stream(struct context *context)
{
    DavitTest__Ask ask = DAVIT_TEST__ASK__INIT;
    struct peer_call call;

    ask.count = (uint32_t)number(context, 100);
    ask.reply_bytes = 10000;
    if (!peer_run(context->client, METHOD_WATCH, &ask, CALL_TIMEOUT_MS, &call) ||
        call.n_messages != ask.count)
        return fail_call(context->err, "stream", &call);
    return true;
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

/* Lets the loop run for a moment. */
static void pause_ms(struct client *client, uint64_t ms)
{
    if (dv_loop_run_until(client->loop, never, NULL, ms))
        abort(); /* never is never met */
}

/* Asks the server until no call is open and more are cancelled than before, for two seconds. */
static bool wait_cancelled(struct context *context, uint64_t before)
{
    uint64_t end_ms = dv_loop_now_ms(context->client->loop) + 2000;
    DavitTest__Counts counts;

    do {
        if (!peer_seen(context->client, &counts, context->err))
            return false;
        if (counts.cancelled > before && counts.open == 0)
            return true;
        pause_ms(context->client, 10);
    } while (dv_loop_now_ms(context->client->loop) < end_ms);
    return dv_fail(context->err, DV_INTERNAL, "server shows %llu cancelled, %llu open",
                   (unsigned long long)counts.cancelled, (unsigned long long)counts.open);
}

static bool test_deadline(struct context *context)
{
    DavitTest__Ask slow = DAVIT_TEST__ASK__INIT;
    DavitTest__Ask quick = DAVIT_TEST__ASK__INIT;
    DavitTest__Counts before;
    struct peer_call call;

    slow.delay_ms = 5000;
    if (!peer_seen(context->client, &before, context->err))
        return false;
    (void)peer_run(context->client, METHOD_UNARY, &slow, 200, &call); /* judged below */
    if (call.err.code != DV_DEADLINE_EXCEEDED || call.end_ns - call.start_ns > 2000000000u)
        return fail_call(context->err, "slow call", &call);
    if (!wait_cancelled(context, before.cancelled))
        return false;
    if (!peer_run(context->client, METHOD_UNARY, &quick, CALL_TIMEOUT_MS, &call) ||
        !call.had_deadline)
        return fail_call(context->err, "call with a deadline", &call);
    if (!peer_run(context->client, METHOD_UNARY, &quick, DV_NO_DEADLINE, &call) ||
        call.had_deadline)
        return fail_call(context->err, "call without a deadline", &call);
    return true;
}

static bool has_message(void *ctx)
{
    const struct peer_call *call = ctx;

    return call->n_messages > 0 || call->is_done;
}

static bool test_cancel(struct context *context)
{
    DavitTest__Ask ask = DAVIT_TEST__ASK__INIT;
    DavitTest__Counts before;
    struct peer_call call = {.ask = &ask};

    ask.delay_ms = 10;
    if (!peer_seen(context->client, &before, context->err))
        return false;
    peer_start(&call, context->client, METHOD_WATCH, &ask.base, DV_NO_DEADLINE);
    if (!dv_loop_run_until(context->client->loop, has_message, &call, CALL_TIMEOUT_MS) ||
        call.is_done)
        return fail_call(context->err, "watch", &call);
    dv_call_cancel(&call.call);
    if (call.is_done)
        return fail_call(context->err, "ended within the cancel", &call);
    peer_wait(&call);
    dv_call_cancel(&call.call); /* does nothing any more */
    if (call.err.code != DV_CANCELLED)
        return fail_call(context->err, "cancelled", &call);
    return wait_cancelled(context, before.cancelled);
}

static bool test_large(struct context *context)
{
    size_t n = (size_t)number(context, 32) << 20;
    uint8_t *bytes = peer_pattern(n);
    DavitTest__Ask echo = DAVIT_TEST__ASK__INIT;
    DavitTest__Ask watch = DAVIT_TEST__ASK__INIT;
    struct peer_call call;
    bool ok;

    echo.payload = (ProtobufCBinaryData){n, bytes};
    ok = run_ask(context, "echo", &echo);
    free(bytes);
    if (!ok)
        return false;
    watch.count = 1;
    watch.reply_bytes = (uint32_t)n;
    if (!peer_run(context->client, METHOD_WATCH, &watch, CALL_TIMEOUT_MS, &call) ||
        call.n_messages != 1)
        return fail_call(context->err, "watch", &call);
    return true;
}

struct batch {
    struct peer_call *calls;
    size_t n;
};

static bool batch_done(void *ctx)
{
    const struct batch *batch = ctx;

    for (size_t i = 0; i < batch->n; i++)
        if (!batch->calls[i].is_done)
            return false;
    return true;
}

static bool test_many(struct context *context)
{
    struct batch batch = {.n = (size_t)number(context, 1000)};
    DavitTest__Ask ask = DAVIT_TEST__ASK__INIT;
    uint8_t text[] = "many";
    bool ok = true;

    ask.payload = (ProtobufCBinaryData){4, text};
    ask.delay_ms = 300;
    batch.calls = dv_alloc(batch.n * sizeof(batch.calls[0]));
    for (size_t i = 0; i < batch.n; i++) {
        batch.calls[i].ask = &ask;
        peer_start(&batch.calls[i], context->client, METHOD_UNARY, &ask.base, CALL_TIMEOUT_MS);
    }
    if (!dv_loop_run_until(context->client->loop, batch_done, &batch, 2 * CALL_TIMEOUT_MS))
        ok = dv_fail(context->err, DV_INTERNAL, "not all calls ended");
    for (size_t i = 0; i < batch.n && ok; i++)
        if (batch.calls[i].err.code != DV_OK || batch.calls[i].is_wrong)
            ok = fail_call(context->err, "one of many", &batch.calls[i]);
    free(batch.calls);
    return ok && test_unary(context);
}

static bool test_reuse(struct context *context)
{
    DavitTest__Ask ask = DAVIT_TEST__ASK__INIT;

    for (uint64_t i = 0; i < number(context, 2000); i++) {
        ask.payload = (ProtobufCBinaryData){sizeof(i), (uint8_t *)&i};
        if (!run_ask(context, "call", &ask))
            return false;
    }
    return true;
}

static bool both_open(struct context *context)
{
    uint64_t end_ms = dv_loop_now_ms(context->client->loop) + 2000;
    DavitTest__Counts counts;

    do {
        if (!peer_seen(context->client, &counts, context->err))
            return false;
        if (counts.open >= 2)
            return true;
        pause_ms(context->client, 10);
    } while (dv_loop_now_ms(context->client->loop) < end_ms);
    return dv_fail(context->err, DV_INTERNAL, "server does not show both calls");
}

static bool test_interrupted(struct context *context)
{
    DavitTest__Ask watch_ask = DAVIT_TEST__ASK__INIT;
    DavitTest__Ask slow_ask = DAVIT_TEST__ASK__INIT;
    struct peer_call calls[2];
    struct batch batch = {calls, 2};

    memset(calls, 0, sizeof(calls));
    watch_ask.delay_ms = 50;
    slow_ask.delay_ms = 60000;
    peer_start(&calls[0], context->client, METHOD_WATCH, &watch_ask.base, DV_NO_DEADLINE);
    peer_start(&calls[1], context->client, METHOD_UNARY, &slow_ask.base, DV_NO_DEADLINE);
    if (!both_open(context))
        return false;
    (void)puts("started");
    (void)fflush(stdout);
    if (!dv_loop_run_until(context->client->loop, batch_done, &batch, 5000))
        return dv_fail(context->err, DV_INTERNAL, "a call was still open after 5 s");
    for (int i = 0; i < 2; i++)
        if (calls[i].err.code != DV_UNAVAILABLE)
            return fail_call(context->err, "interrupted", &calls[i]);
    return true;
}

static void on_stdin(void *ctx, unsigned events)
{
    (void)events;
    *(bool *)ctx = true;
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

/* Waits for a line on standard input while the loop runs, so that the channel sees what happens. */
static bool wait_for_line(struct client *client, struct dv_err *err)
{
    struct dv_poll *poll;
    bool has_line = false;
    char line[16];

    poll = dv_poll_open(client->loop, 0, on_stdin, &has_line, err);
    if (!poll)
        return false;
    dv_poll_set(poll, DV_POLL_READ);
    has_line = dv_loop_run_until(client->loop, is_set, &has_line, CALL_TIMEOUT_MS);
    dv_poll_close(poll, NULL, NULL);
    if (!has_line || !fgets(line, sizeof(line), stdin))
        return dv_fail(err, DV_INTERNAL, "no line on standard input");
    return true;
}

static bool test_reconnect(struct context *context)
{
    DavitTest__Ask ask = DAVIT_TEST__ASK__INIT;
    struct peer_call call = {.call = {.waits_for_ready = true}};

    if (!test_unary(context))
        return false;
    (void)puts("started");
    (void)fflush(stdout);
    if (!wait_for_line(context->client, context->err))
        return false;
    peer_start(&call, context->client, METHOD_UNARY, &ask.base, 10000);
    peer_wait(&call);
    if (call.err.code != DV_OK)
        return fail_call(context->err, "after the restart", &call);
    return true;
}

static const struct {
    const char *name;
    bool (*test)(struct context *context);
} scenarios[] = {
    {"unary",                 test_unary                },
    {"status",                test_status               },
    {"status-after-messages", test_status_after_messages},
    {"unknown-method",        test_unknown_method       },
    {"unknown-service",       test_unknown_service      },
    {"stream",                test_stream               },
    {"deadline",              test_deadline             },
    {"cancel",                test_cancel               },
    {"large",                 test_large                },
    {"many",                  test_many                 },
    {"reuse",                 test_reuse                },
    {"interrupted",           test_interrupted          },
    {"reconnect",             test_reconnect            },
};

int run_client(dv_str socket, int argc, char **argv)
{
    struct dv_err err = {0};
    struct context context = {.err = &err};

    if (argc == 3 && strcmp(argv[1], "--arg") == 0 &&
        !dv_str_to_u64(dv_str_from_c(argv[2]), &context.arg))
        return 2;
    for (size_t i = 0; argc > 0 && i < DV_COUNT(scenarios); i++) {
        bool ok;

        if (strcmp(argv[0], scenarios[i].name) != 0)
            continue;
        context.client = client_open(socket);
        ok = scenarios[i].test(&context);
        client_close(context.client);
        if (ok)
            (void)printf("ok %s\n", argv[0]);
        else
            (void)printf("FAIL %s: %s\n", argv[0], err.msg);
        return ok ? 0 : 1;
    }
    (void)fprintf(stderr, "davit-peer: no such scenario\n");
    return 2;
}
