/* replay_answer.c - answers calls as the recorded driver did: by method and content, in its time.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/record/exchange.h"
#include "cli/record/replay_state.h"
#include "cli/record/tape.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "loop/loop.h"
#include "record/message.h"
#include "record/record.h"

/* Nobody wants to wait for the second message of a stream as long as it took. */
#define GAP_MS_MAX 2000u

/* A call that is being answered. */
struct answer {
    struct dv_replay_method *method;
    struct dv_server_call *call;
    struct dv_exchange *exchange;
    struct dv_exchange_pairs pairs;
    struct dv_timer timer;
    size_t i_next; /* of the recorded answers */
};

static void free_answer(struct answer *answer)
{
    dv_timer_cancel(&answer->timer);
    dv_vec_fini(&answer->pairs.v);
    free(answer);
}

static void finish(struct answer *answer, const struct dv_err *err)
{
    struct dv_server_call *call = answer->call;

    free_answer(answer);
    dv_server_call_finish(call, err);
}

static void on_cancelled(void *ctx, struct dv_server_call *call)
{
    (void)call;
    finish(ctx, NULL);
}

/* The recorded end; without one, and where the agent ended the call, it goes on until it is
 * cancelled. */
static bool end_of(const struct answer *answer, struct dv_err *end)
{
    const struct dv_tape_record *record = answer->exchange->end;

    if (!record || record->r.status == DV_CANCELLED || record->r.status == DV_DEADLINE_EXCEEDED ||
        (answer->method->is_stream && record->r.status == DV_UNAVAILABLE))
        return false;
    end->code = DV_OK;
    if (record->r.status != DV_OK)
        (void)dv_fail(end, record->r.status, "%.*s", DV_FMT(record->r.text));
    return true;
}

static bool send_next(struct answer *answer, struct dv_err *err)
{
    struct dv_arena *arena = dv_server_call_arena(answer->call);
    const struct dv_tape_record *record = answer->exchange->answers.v[answer->i_next++].record;
    struct dv_h2_msg *msg;
    dv_str bytes;
    bool is_sent;

    if (!dv_exchange_translate(record, &answer->pairs, arena, &bytes, err))
        return dv_wrap(err, "the recorded answer");
    msg = dv_h2_msg_copy(bytes);
    is_sent = dv_server_call_send(answer->call, msg, err);
    dv_h2_msg_unref(msg);
    return is_sent;
}

static void go_on(struct answer *answer);

static void on_due(struct dv_timer *timer)
{
    struct answer *answer = DV_CONTAINER(timer, struct answer, timer);
    struct dv_err err;

    if (answer->i_next == answer->exchange->answers.n) {
        if (end_of(answer, &err))
            finish(answer, err.code == DV_OK ? NULL : &err);
    } else if (send_next(answer, &err)) {
        go_on(answer);
    } else {
        finish(answer, &err);
    }
}

/* Waits for the next message or the end, as long as the driver took. */
static void go_on(struct answer *answer)
{
    const struct dv_exchange *exchange = answer->exchange;
    struct dv_loop *loop = answer->method->replay->loop;
    uint64_t start_ns = exchange->start->r.clock_ns;
    uint64_t before_ns = answer->i_next > 0 ? exchange->answers.v[answer->i_next - 1].after_ns : 0;
    uint64_t at_ns = before_ns;
    struct dv_err end;
    uint64_t ms;

    if (answer->i_next < exchange->answers.n)
        at_ns = exchange->answers.v[answer->i_next].after_ns;
    else if (!end_of(answer, &end))
        return; /* it stays open */
    else if (exchange->end->r.clock_ns > start_ns)
        at_ns = exchange->end->r.clock_ns - start_ns;
    ms = at_ns > before_ns ? (at_ns - before_ns) / DV_NS_PER_MS : 0;
    if (answer->method->is_stream)
        ms = dv_u64_min(ms, GAP_MS_MAX);
    dv_timer_start(&answer->timer, loop, dv_loop_now_ms(loop) + ms, on_due);
}

static void tell(const struct answer *answer)
{
    struct dv_arena *arena = answer->method->replay->arena;

    (void)printf("%s answered as #%llu",
                 dv_cli_plain(dv_str_from_c(answer->method->method.path), arena),
                 (unsigned long long)answer->exchange->start->r.call);
    for (size_t i = 0; i < answer->pairs.v.n; i++)
        (void)printf("%s%s for %s", i == 0 ? " with " : ", ",
                     dv_cli_plain(answer->pairs.v.v[i].now, arena),
                     dv_cli_plain(answer->pairs.v.v[i].recorded, arena));
    (void)printf("\n");
    (void)fflush(stdout);
}

static void handle(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct dv_replay_method *method = ctx;
    /* What it is matched with stays: it lives as long as the call. */
    dv_str kept = dv_str_copy(request, dv_server_call_arena(call));
    struct answer *answer = DV_ALLOC(struct answer);
    struct dv_err err;

    answer->method = method;
    answer->call = call;
    answer->exchange = dv_exchange_choose(&method->replay->exchanges,
                                          dv_str_from_c(method->method.path), kept, &answer->pairs);
    if (!answer->exchange) {
        (void)dv_fail(&err, DV_NOT_FOUND, "the recording has no call like this");
        (void)printf("%s: %s\n",
                     dv_cli_plain(dv_str_from_c(method->method.path), method->replay->arena),
                     err.msg);
        (void)fflush(stdout);
        finish(answer, &err);
        return;
    }
    answer->exchange->n_used++;
    tell(answer);
    dv_server_call_on_cancel(call, on_cancelled, answer);
    go_on(answer);
}

static struct dv_replay_method *find_method(struct dv_replay *replay, dv_str path)
{
    for (size_t i = 0; i < replay->n_methods; i++)
        if (dv_str_eq(dv_str_from_c(replay->methods[i].method.path), path))
            return &replay->methods[i];
    return NULL;
}

void dv_replay_find_methods(struct dv_replay *replay)
{
    size_t n = replay->exchanges.v.n;

    replay->methods = DV_NEW_ARRAY(replay->arena, struct dv_replay_method, n);
    replay->services = DV_NEW_ARRAY(replay->arena, struct dv_service, n);
    for (size_t i = 0; i < n; i++) {
        const struct dv_record *start = &replay->exchanges.v.v[i]->start->r;
        const struct dv_record_method *known = dv_record_method_find(start->method);
        struct dv_replay_method *method = &replay->methods[replay->n_methods];

        if (start->is_served || find_method(replay, start->method) ||
            dv_str_starts_with(start->method, DV_STR("/pluginregistration.")))
            continue;
        *method = (struct dv_replay_method){
            .replay = replay,
            .method = {dv_str_to_c(start->method, replay->arena), handle},
            .is_stream = known && known->flags & DV_RECORD_IS_STREAM,
        };
        replay->services[replay->n_methods++] = (struct dv_service){&method->method, 1, method};
    }
}
