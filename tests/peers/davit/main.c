#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "davit_peer.h"
#include "pb/pb.h"

static const struct {
    const char *name;
    int (*run)(dv_str socket, int argc, char **argv);
} commands[] = {
    {"server", run_server},
    {"client", run_client},
    {"bench",  run_bench },
    {"call",   run_call  },
};

struct dv_h2_msg *peer_encode(const void *message)
{
    size_t n = dv_pb_size(message);
    struct dv_h2_msg *msg = dv_h2_msg_new(n);

    dv_pb_encode(message, dv_h2_msg_data(msg), n);
    return msg;
}

uint8_t *peer_pattern(size_t n)
{
    uint8_t *bytes = dv_alloc(n);

    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(i % 251);
    return bytes;
}

struct client *client_open(dv_str socket)
{
    struct dv_channel_options options = {
        .name = DV_STR("peer"),
        .message_bytes_max = MESSAGE_BYTES_MAX,
    };
    struct client *client = DV_ALLOC(struct client);
    struct dv_err err;

    client->loop = dv_loop_new(dv_clock_real(), &err);
    if (client->loop)
        client->channel = dv_channel_open(client->loop, socket, &options, &err);
    if (!client->channel) {
        (void)fprintf(stderr, "davit-peer: %s\n", err.msg);
        exit(1);
    }
    return client;
}

void client_close(struct client *client)
{
    dv_channel_close(client->channel, NULL, NULL);
    dv_loop_free(client->loop);
    free(client);
}

/* Whether the answer carries what was asked for. */
static bool is_right(const DavitTest__Ask *ask, const DavitTest__Answer *answer)
{
    if (ask->reply_bytes == 0)
        return answer->payload.len == ask->payload.len &&
               (ask->payload.len == 0 ||
                memcmp(answer->payload.data, ask->payload.data, ask->payload.len) == 0);
    if (answer->payload.len != ask->reply_bytes)
        return false;
    for (size_t i = 0; i < answer->payload.len; i++)
        if (answer->payload.data[i] != i % 251)
            return false;
    return true;
}

static void on_message(struct dv_call *call, dv_str message)
{
    struct peer_call *self = DV_CONTAINER(call, struct peer_call, call);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = NULL;
    const DavitTest__Answer *answer;
    struct dv_err err;

    self->n_messages++;
    self->n_bytes += message.n;
    if (self->keeps_answers_unread)
        return;
    arena = dv_arena_new();
    answer = dv_pb_decode(&davit_test__answer__descriptor, message, arena, &err);
    if (!answer) {
        self->is_wrong = true;
        return;
    }
    self->had_deadline = answer->had_deadline;
    self->is_out_of_order |= answer->index != self->want_index++;
    if (self->ask)
        self->is_wrong |= !is_right(self->ask, answer);
}

static void on_done(struct dv_call *call, const struct dv_err *err)
{
    struct peer_call *self = DV_CONTAINER(call, struct peer_call, call);

    if (err)
        self->err = *err;
    self->is_done = true;
    self->end_ns = dv_loop_now_ns(self->client->loop);
    if (self->then)
        self->then(self);
}

void peer_start(struct peer_call *call, struct client *client, const char *method,
                const void *request, uint64_t timeout_ms)
{
    call->client = client;
    call->call.method = method;
    if (!call->call.message)
        call->call.message = on_message;
    call->call.done = on_done;
    call->call.deadline_ms =
        timeout_ms == DV_NO_DEADLINE ? DV_NO_DEADLINE : dv_loop_now_ms(client->loop) + timeout_ms;
    call->call.is_stream |= strcmp(method, METHOD_WATCH) == 0;
    call->start_ns = dv_loop_now_ns(client->loop);
    dv_call_start(client->channel, &call->call, peer_encode(request));
}

static bool is_done(void *ctx)
{
    return ((struct peer_call *)ctx)->is_done;
}

void peer_wait(struct peer_call *call)
{
    if (!dv_loop_run_until(call->client->loop, is_done, call, 10 * CALL_TIMEOUT_MS)) {
        (void)fprintf(stderr, "davit-peer: a call did not end\n");
        exit(1);
    }
}

bool peer_run(struct client *client, const char *method, const DavitTest__Ask *ask,
              uint64_t timeout_ms, struct peer_call *call)
{
    *call = (struct peer_call){.ask = ask};
    peer_start(call, client, method, ask, timeout_ms);
    peer_wait(call);
    return call->err.code == DV_OK && !call->is_wrong && !call->is_out_of_order;
}

static void on_counts(struct dv_call *call, dv_str message)
{
    struct peer_call *self = DV_CONTAINER(call, struct peer_call, call);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_err err;
    const DavitTest__Counts *counts =
        dv_pb_decode(&davit_test__counts__descriptor, message, arena, &err);

    if (counts)
        *(DavitTest__Counts *)self->ctx = *counts; /* it has no pointers */
    else
        self->is_wrong = true;
}

bool peer_seen(struct client *client, DavitTest__Counts *counts, struct dv_err *err)
{
    DavitTest__Empty empty = DAVIT_TEST__EMPTY__INIT;
    struct peer_call call = {.call = {.message = on_counts}, .ctx = counts};

    peer_start(&call, client, METHOD_SEEN, &empty.base, CALL_TIMEOUT_MS);
    peer_wait(&call);
    if (call.is_wrong)
        return dv_fail(err, DV_INTERNAL, "counts that do not decode");
    *err = call.err;
    return call.err.code == DV_OK;
}

int main(int argc, char **argv)
{
    const char *level = getenv("DAVIT_PEER_LOG");
    enum dv_log_level log_level;

    if (level && dv_log_level_parse(dv_str_from_c(level), &log_level))
        dv_log_to_stderr(log_level, DV_LOG_TEXT);
    for (size_t i = 0; argc >= 3 && i < DV_COUNT(commands); i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(dv_str_from_c(argv[2]), argc - 3, argv + 3);
    (void)fprintf(stderr,
                  "usage: davit-peer server SOCKET\n"
                  "       davit-peer client SOCKET SCENARIO [--arg N]\n"
                  "       davit-peer bench SOCKET --mode MODE --calls N [--size-request BYTES] "
                  "[--size-reply BYTES] [--connections N]\n"
                  "       davit-peer call SOCKET METHOD_PATH [--timeout-ms N] [--payload-bytes N] "
                  "[--count N] [--stream] [--wait-for-ready]\n");
    return 2;
}
