/* rest_dial.c - connections of ours that leave HTTP. Libcurl looks up, connects and shakes hands;
 * what is sent and received then goes through it too, for it owns the socket and TLS. */
#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "http1/http1.h"
#include "loop/loop.h"
#include "rest/curl_calls.h"
#include "rest/rest.h"
#include "rest/rest_client.h"
#include "rest/rest_server.h"

/* So much is read or written in one turn at most, so that others get their share of time. */
#define TURN_BYTES_MAX (1024u * 1024u)
#define READ_BYTES (64u * 1024u)
/* With less than this left to send, the owner is asked for more. */
#define ROOM_BYTES (16u * 1024u)
/* How much memory a quiet connection keeps for what it sends next. */
#define KEPT_BYTES (16u * 1024u)
#define ANSWER_BYTES_MAX (64u * 1024u)

enum state {
    CONNECTING,
    ASKING,  /* the request goes out, the head of the answer comes in */
    REFUSED, /* the body of another answer than 101 comes in */
    OPEN,
    ENDED,
};

struct dv_rest_line {
    struct dv_rest_attached attached;
    struct dv_rest_client *client;
    struct dv_rest_dial *dial;
    struct dv_link link;
    struct dv_arena *arena;
    uint64_t id;
    CURL *easy;
    char said[CURL_ERROR_SIZE];
    struct dv_poll *poll; /* NULL: not connected */
    struct dv_timer timer;
    struct dv_task task;
    enum state state;
    struct dv_buf in; /* the answer, until it is complete */
    struct dv_h1_reply reply;
    struct dv_buf out;
    size_t out_at;
    bool is_paused;
    bool is_finished;
    bool wants_room;
    struct dv_err err; /* how it ended; code DV_OK: as it should */
};

static void on_task(struct dv_task *task);

/* ---- the end ---- */

static void end(struct dv_rest_line *line, enum dv_code code, const char *fmt, ...) DV_PRINTF(3, 4);

static void end(struct dv_rest_line *line, enum dv_code code, const char *fmt, ...)
{
    va_list args;

    if (line->state == ENDED)
        return;
    line->state = ENDED;
    va_start(args, fmt);
    (void)dv_vfail(&line->err, code, fmt, args);
    va_end(args);
    if (code != DV_OK)
        (void)dv_wrap(&line->err, "%s", line->client->base_url);
    dv_timer_cancel(&line->timer);
    if (line->poll)
        dv_poll_close(line->poll, NULL, NULL);
    line->poll = NULL;
    dv_task_post(&line->task, line->client->loop, on_task);
}

static void tell_end(struct dv_rest_line *line)
{
    struct dv_rest_client *client = line->client;
    struct dv_rest_dial *dial = line->dial;
    const struct dv_err *err = line->err.code == DV_OK ? NULL : &line->err;

    /* Cannot fail: libcurl has it. The connection is closed with it. */
    (void)curl_multi_remove_handle(client->multi, line->easy);
    curl_easy_cleanup(line->easy);
    client->n_attached--;
    dv_link_remove(&line->link);
    dv_rest_client_work_later(client);
    dv_log(DV_LOG_DEBUG, "rest: dial ended", DV_F_REQUEST(line->id),
           DV_F_U64("status", dial->status), DV_F_C("error", err ? err->msg : ""));
    dial->priv = NULL;
    dial->ended(dial, err); /* it may free what holds the dial */
    dv_buf_fini(&line->in);
    dv_buf_fini(&line->out);
    dv_arena_free(line->arena);
    free(line);
}

/* ---- bytes out ---- */

static size_t unsent_bytes(const struct dv_rest_line *line)
{
    return line->out.n - line->out_at;
}

static void watch(struct dv_rest_line *line)
{
    bool reads = !line->is_paused && !line->is_finished;

    if (line->poll)
        dv_poll_set(line->poll,
                    (reads ? DV_POLL_READ : 0) | (unsent_bytes(line) > 0 ? DV_POLL_WRITE : 0));
}

static void fail_io(struct dv_rest_line *line, CURLcode result)
{
    struct dv_err err;

    (void)dv_rest_explain(line->easy, result, line->said, &err);
    end(line, err.code, "%s", err.msg);
}

/* Gives the kernel what it takes. */
static void flush(struct dv_rest_line *line)
{
    size_t n_total = 0;

    while (unsent_bytes(line) > 0 && n_total < TURN_BYTES_MAX) {
        size_t n = 0;
        CURLcode result =
            curl_easy_send(line->easy, line->out.p + line->out_at, unsent_bytes(line), &n);

        if (result == CURLE_AGAIN)
            return;
        if (result != CURLE_OK) {
            fail_io(line, result);
            return;
        }
        line->out_at += n;
        n_total += n;
    }
    if (unsent_bytes(line) > 0)
        return;
    line->out_at = 0;
    if (line->out.size > KEPT_BYTES)
        dv_buf_fini(&line->out);
    else
        dv_buf_clear(&line->out);
}

/* ---- bytes in ---- */

/* The answer is complete that is not 101. */
static void refuse(struct dv_rest_line *line)
{
    line->dial->answer = dv_str_slice(dv_buf_str(&line->in), line->reply.head_bytes, line->in.n);
    end(line, DV_FAILED_PRECONDITION, "the server answered %u instead of 101", line->reply.status);
}

static void open_now(struct dv_rest_line *line)
{
    struct dv_rest_dial *dial = line->dial;
    DV_VEC(struct dv_rest_field) fields = {0};
    dv_str rest;

    for (size_t i = 0; i < line->reply.n_fields; i++)
        *dv_vec_add_in(&fields, line->arena) =
            (struct dv_rest_field){dv_str_copy(line->reply.fields[i].name, line->arena),
                                   dv_str_copy(line->reply.fields[i].value, line->arena)};
    dial->fields = fields.v;
    dial->n_fields = fields.n;
    line->state = OPEN;
    dv_timer_cancel(&line->timer);
    dial->opened(dial);
    rest = dv_str_slice(dv_buf_str(&line->in), line->reply.head_bytes, line->in.n);
    if (line->state == OPEN && rest.n > 0)
        dial->received(dial, rest); /* it came right behind the answer */
    dv_buf_fini(&line->in);
    dv_buf_init(&line->in, 0);
}

static void take_answer(struct dv_rest_line *line, dv_str bytes)
{
    struct dv_h1_reply *reply = &line->reply;
    struct dv_err err;

    dv_buf_add(&line->in, bytes);
    if (line->in.is_over) {
        end(line, DV_RESOURCE_EXHAUSTED, "the answer is too long");
        return;
    }
    if (line->state == ASKING) {
        if (!dv_h1_parse_reply(dv_buf_str(&line->in), line->arena, reply, &err)) {
            end(line, err.code, "%s", err.msg);
            return;
        }
        if (reply->head_bytes == 0)
            return;
        line->dial->status = reply->status;
        if (reply->status == 101) {
            open_now(line);
            return;
        }
        line->state = REFUSED;
    }
    if (reply->has_length && line->in.n - reply->head_bytes >= reply->length)
        refuse(line);
}

static void on_end_of_bytes(struct dv_rest_line *line)
{
    if (line->state == OPEN)
        end(line, DV_OK, "%s", "");
    else if (line->state == REFUSED)
        refuse(line);
    else
        end(line, DV_UNAVAILABLE, "the server closed without an answer");
}

static void receive(struct dv_rest_line *line)
{
    static char buffer[READ_BYTES]; /* lent to `received`, and used by nobody else meanwhile */
    size_t n_total = 0;

    while (line->state != ENDED && !line->is_paused && !line->is_finished) {
        size_t n = 0;
        CURLcode result = curl_easy_recv(line->easy, buffer, sizeof(buffer), &n);

        if (result == CURLE_AGAIN)
            return;
        if (result != CURLE_OK) {
            fail_io(line, result);
            return;
        }
        if (n == 0) {
            on_end_of_bytes(line);
            return;
        }
        n_total += n;
        if (line->state == OPEN)
            line->dial->received(line->dial, (dv_str){buffer, n});
        else
            take_answer(line, (dv_str){buffer, n});
        if (n_total >=
            TURN_BYTES_MAX) { /* there may be more in TLS, of which the kernel is silent */
            dv_task_post_next_turn(&line->task, line->client->loop, on_task);
            return;
        }
    }
}

static void run(struct dv_rest_line *line)
{
    bool is_connected = line->poll != NULL;

    if (is_connected && line->state != ENDED)
        flush(line);
    if (is_connected && line->state != ENDED)
        receive(line);
    if (line->state == OPEN && line->wants_room && !line->is_finished &&
        unsent_bytes(line) < ROOM_BYTES) {
        line->wants_room = false;
        if (line->dial->room)
            line->dial->room(line->dial);
    }
    if (line->state == OPEN && line->is_finished && unsent_bytes(line) == 0)
        end(line, DV_OK, "%s", "");
    watch(line);
}

static void on_ready(void *ctx, unsigned events)
{
    (void)events;
    run(ctx);
}

static void on_task(struct dv_task *task)
{
    struct dv_rest_line *line = DV_CONTAINER(task, struct dv_rest_line, task);

    if (line->state == ENDED)
        tell_end(line);
    else
        run(line);
}

/* ---- the beginning ---- */

static void on_connected(struct dv_rest_attached *attached, CURLcode result)
{
    struct dv_rest_line *line = DV_CONTAINER(attached, struct dv_rest_line, attached);
    curl_socket_t fd = CURL_SOCKET_BAD;
    struct dv_err err;

    if (line->state == ENDED)
        return;
    if (result != CURLE_OK) {
        fail_io(line, result);
        return;
    }
    (void)curl_easy_getinfo(line->easy, CURLINFO_ACTIVESOCKET, &fd);
    line->poll =
        fd == CURL_SOCKET_BAD ? NULL : dv_poll_open(line->client->loop, fd, on_ready, line, &err);
    if (!line->poll) {
        end(line, DV_UNAVAILABLE, "the connection cannot be watched");
        return;
    }
    line->state = ASKING;
    dv_task_post(&line->task, line->client->loop, on_task);
}

static void on_time(struct dv_timer *timer)
{
    struct dv_rest_line *line = DV_CONTAINER(timer, struct dv_rest_line, timer);

    end(line, line->state == CONNECTING ? DV_UNAVAILABLE : DV_DEADLINE_EXCEEDED, "%s in %llu ms",
        line->state == CONNECTING ? "not connected" : "no answer",
        (unsigned long long)line->client->connect_timeout_ms);
}

static void print_request(struct dv_rest_line *line)
{
    const struct dv_rest_dial *dial = line->dial;
    const struct dv_rest_client *client = line->client;
    dv_str base = dv_str_from_c(client->base_url);
    dv_str host = dv_str_slice(base, dv_str_find(base, DV_STR("://")) + 3, base.n);
    size_t n_host = dv_str_find_char(host, '/');
    struct dv_buf *out = &line->out;

    dv_buf_printf(out, "%.*s %.*s%.*s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: %s\r\n",
                  DV_FMT(dial->method), DV_FMT(dv_str_slice(host, n_host, host.n)),
                  DV_FMT(dial->target), DV_FMT(dv_str_slice(host, 0, n_host)), client->user_agent);
    if (client->token.n > 0)
        dv_buf_printf(out, "%s\r\n", dv_buf_c(&client->token));
    for (size_t i = 0; i < dial->n_fields; i++)
        dv_buf_printf(out, "%.*s: %.*s\r\n", DV_FMT(dial->fields[i].name),
                      DV_FMT(dial->fields[i].value));
    if (!dv_str_eq(dial->method, DV_STR("GET")))
        dv_buf_add_c(out, "Content-Length: 0\r\n");
    dv_buf_add_c(out, "\r\n");
}

static void attach(struct dv_rest_line *line)
{
    struct dv_rest_client *client = line->client;

    dv_rest_client_set_up(client, line->easy);
    (void)curl_easy_setopt(line->easy, CURLOPT_CONNECT_ONLY, 1L);
    (void)curl_easy_setopt(line->easy, CURLOPT_ERRORBUFFER, line->said);
    (void)curl_easy_setopt(line->easy, CURLOPT_URL, client->base_url);
    if (curl_easy_setopt(line->easy, CURLOPT_PRIVATE, &line->attached) != CURLE_OK ||
        curl_multi_add_handle(client->multi, line->easy) != CURLM_OK)
        abort(); /* out of memory: all else has been checked */
}

void dv_rest_dial_start(struct dv_rest_client *client, struct dv_rest_dial *dial)
{
    struct dv_rest_line *line = DV_ALLOC(struct dv_rest_line);
    const struct dv_rest_request request = {.method = dial->method,
                                            .path = dial->target,
                                            .fields = dial->fields,
                                            .n_fields = dial->n_fields};
    struct dv_err err;

    assert(!client->is_closing && !dial->priv);
    dial->priv = line;
    dial->status = 0;
    line->attached.done = on_connected;
    line->client = client;
    line->dial = dial;
    line->arena = dv_arena_new();
    line->id = dv_rest_next_id();
    line->easy = curl_easy_init();
    if (!line->easy)
        abort(); /* out of memory */
    dv_list_push(&client->dials, &line->link);
    client->n_attached++;
    dv_buf_init(&line->in, DV_H1_HEAD_BYTES_MAX + ANSWER_BYTES_MAX);
    dv_buf_init(&line->out, 2 * DV_REST_DIAL_UNSENT_BYTES_MAX);
    dv_log(DV_LOG_DEBUG, "rest: dial started", DV_F_REQUEST(line->id),
           DV_F_STR("method", dial->method), DV_F_C("base", client->base_url),
           DV_F_STR("target", dial->target));
    attach(line);
    dv_timer_start(&line->timer, client->loop,
                   dv_u64_add_clamped(dv_loop_now_ms(client->loop), client->connect_timeout_ms),
                   on_time);
    if (dv_rest_request_check(client, &request, &err))
        print_request(line);
    else
        end(line, err.code, "%s", err.msg);
    dial->fields = NULL; /* those of the answer will be there */
    dial->n_fields = 0;
}

/* ---- towards its owner ---- */

/* What was sent is removed only when it is as much as what was not. */
static void make_room(struct dv_rest_line *line)
{
    if (line->out_at == 0 || line->out_at < unsent_bytes(line))
        return;
    memmove(line->out.p, line->out.p + line->out_at, unsent_bytes(line));
    line->out.n = unsent_bytes(line);
    line->out_at = 0;
}

bool dv_rest_dial_send(struct dv_rest_dial *dial, dv_str bytes, struct dv_err *err)
{
    struct dv_rest_line *line = dial->priv;

    if (!line || line->state != OPEN || line->is_finished)
        return dv_fail(err, DV_CANCELLED, "the connection is not open");
    if (bytes.n > DV_REST_DIAL_UNSENT_BYTES_MAX - unsent_bytes(line))
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "the server has not read the last %zu bytes",
                       unsent_bytes(line));
    make_room(line);
    dv_buf_add(&line->out, bytes);
    line->wants_room = true;
    dv_task_post(&line->task, line->client->loop, on_task);
    return true;
}

size_t dv_rest_dial_unsent_bytes(const struct dv_rest_dial *dial)
{
    return dial->priv ? unsent_bytes(dial->priv) : 0;
}

void dv_rest_dial_pause(struct dv_rest_dial *dial, bool is_paused)
{
    struct dv_rest_line *line = dial->priv;

    if (!line || line->is_paused == is_paused)
        return;
    line->is_paused = is_paused;
    if (line->state != ENDED)
        dv_task_post(&line->task, line->client->loop, on_task);
}

void dv_rest_dial_finish(struct dv_rest_dial *dial)
{
    struct dv_rest_line *line = dial->priv;

    if (!line || line->state == ENDED)
        return;
    line->is_finished = true;
    dv_task_post(&line->task, line->client->loop, on_task);
}

void dv_rest_dial_cancel(struct dv_rest_dial *dial)
{
    if (dial->priv)
        end(dial->priv, DV_CANCELLED, "the connection was broken off");
}

void dv_rest_dials_cancel(struct dv_rest_client *client)
{
    struct dv_link *link;

    DV_LIST_EACH (&client->dials, link)
        end(DV_CONTAINER(link, struct dv_rest_line, link), DV_CANCELLED, "the client was closed");
}

dv_str dv_rest_dial_field(const struct dv_rest_dial *dial, dv_str name)
{
    for (size_t i = 0; i < dial->n_fields; i++)
        if (dv_str_eq_nocase(dial->fields[i].name, name))
            return dial->fields[i].value;
    return DV_STR("");
}
