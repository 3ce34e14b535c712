#include "http2/tests/test_guest.h"

#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"

#define EVENTS_BYTES_MAX (1u << 20)
/* Longer bodies are only named by their size. */
#define SHOWN_BYTES_MAX 64u
#define BODY_BYTES (1u << 20)

static struct guest *guest_of(struct dv_h2_server_handler *handler)
{
    return DV_CONTAINER(handler, struct guest, handler);
}

static size_t number_of(const struct dv_h2_stream *stream)
{
    return (size_t)(uintptr_t)dv_h2_stream_ctx(stream);
}

static void begin(struct guest *guest, struct dv_h2_stream *stream)
{
    guest->is_over = dv_realloc(guest->is_over, guest->n_begun + 1);
    guest->is_over[guest->n_begun++] = false;
    guest->stream = stream;
    dv_h2_stream_set_ctx(stream, (void *)(uintptr_t)guest->n_begun); /* a number is enough */
}

static void note(struct guest *guest, const struct dv_h2_stream *stream, const char *what,
                 dv_str text)
{
    size_t number = number_of(stream);

    assert_in_range(number, 1, guest->n_begun);
    assert_false(guest->is_over[number - 1]);
    if (!guest->is_quiet)
        dv_buf_printf(&guest->events, "#%zu %s%s%.*s\n", number, what, text.n ? " " : "",
                      DV_FMT(text));
}

static void on_request(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream,
                       const struct dv_h2_http_request *request)
{
    struct guest *guest = guest_of(handler);

    begin(guest, stream);
    if (!guest->is_quiet) {
        dv_buf_printf(&guest->events, "#%zu %.*s %.*s://%.*s%.*s", guest->n_begun,
                      DV_FMT(request->method), DV_FMT(request->scheme), DV_FMT(request->authority),
                      DV_FMT(request->target));
        for (size_t i = 0; i < request->n_fields; i++)
            dv_buf_printf(&guest->events, " %.*s=%.*s", DV_FMT(request->fields[i].name),
                          DV_FMT(request->fields[i].value));
        if (request->has_length)
            dv_buf_printf(&guest->events, " of %llu", (unsigned long long)request->length);
        dv_buf_add_c(&guest->events, request->has_body ? " with body\n" : "\n");
    }
    if (guest->on_request)
        guest->on_request(guest, stream, request);
}

static void on_body(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream, dv_str part)
{
    struct guest *guest = guest_of(handler);
    char size[32];

    assert_true(part.n > 0);
    guest->n_body_bytes += part.n;
    if (part.n <= SHOWN_BYTES_MAX) {
        note(guest, stream, "body", part);
    } else {
        (void)snprintf(size, sizeof(size), "of %zu bytes", part.n);
        note(guest, stream, "body", dv_str_from_c(size));
    }
    if (guest->on_body)
        guest->on_body(guest, stream);
}

static void on_complete(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream)
{
    struct guest *guest = guest_of(handler);

    note(guest, stream, "complete", DV_STR_NONE);
    guest->n_complete++;
    if (guest->on_complete)
        guest->on_complete(guest, stream);
}

static void on_refused(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream,
                       unsigned status, const struct dv_err *err)
{
    struct guest *guest = guest_of(handler);
    char text[12];

    begin(guest, stream);
    guest->last_err = *err;
    (void)snprintf(text, sizeof(text), "%u", status);
    note(guest, stream, "refused", dv_str_from_c(text));
    if (guest->on_refused)
        guest->on_refused(guest, stream);
}

static void on_drained(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream)
{
    struct guest *guest = guest_of(handler);

    assert_int_equal(dv_h2_stream_unsent_bytes(stream), 0);
    guest->n_drained++;
    if (guest->on_drained)
        guest->on_drained(guest, stream);
}

static void on_ended(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream,
                     const struct dv_err *err)
{
    struct guest *guest = guest_of(handler);

    note(guest, stream, "ended", dv_str_from_c(dv_code_name(err ? err->code : DV_OK)));
    guest->is_over[number_of(stream) - 1] = true;
    guest->n_ended++;
    if (err)
        guest->last_err = *err;
    if (guest->on_ended)
        guest->on_ended(guest, stream);
    if (guest->stream == stream)
        guest->stream = NULL;
}

static void on_complaint(struct dv_h2_server_handler *handler, const struct dv_err *err)
{
    struct guest *guest = guest_of(handler);

    guest->last_err = *err;
    if (!guest->is_quiet)
        dv_buf_printf(&guest->events, "complaint %s\n", dv_code_name(err->code));
}

void guest_meet(struct guest *guest, const struct dv_h2_server_options *options)
{
    static const struct dv_h2_server_options defaults;

    *guest = (struct guest){
        .handler = {.request = on_request,
                    .body = on_body,
                    .complete = on_complete,
                    .refused = on_refused,
                    .drained = on_drained,
                    .ended = on_ended,
                    .complaint = on_complaint},
        .on_complete = guest_answer,
        .now_ms = 1000,
    };
    dv_buf_init(&guest->events, EVENTS_BYTES_MAX);
    wire_init(&guest->wire);
    guest->server = dv_h2_server_new(options ? options : &defaults, &guest->handler);
    (void)guest_hear(guest);
    guest_say(guest, "preface\nsettings\nsettings+ack");
    assert_string_equal(guest_hear(guest), "");
}

void guest_part(struct guest *guest)
{
    struct dv_err gone;

    (void)dv_fail(&gone, DV_UNAVAILABLE, "the test is over");
    dv_h2_server_lose(guest->server, &gone);
    assert_int_equal(dv_h2_server_n_streams(guest->server), 0);
    assert_int_equal(dv_h2_server_unsent_bytes(guest->server), 0);
    assert_int_equal(guest->n_ended, guest->n_begun);
    dv_h2_server_free(guest->server);
    dv_buf_fini(&guest->events);
    wire_fini(&guest->wire);
    free(guest->is_over);
}

bool guest_try(struct guest *guest, const char *frames, struct dv_err *err)
{
    return dv_h2_server_receive(guest->server, wire_bytes(&guest->wire, frames), guest->now_ms,
                                err);
}

void guest_say(struct guest *guest, const char *frames)
{
    struct dv_err err;

    assert_ok(guest_try(guest, frames, &err), &err);
}

const char *guest_hear(struct guest *guest)
{
    dv_str bytes;

    dv_buf_clear(&guest->wire.heard);
    while (dv_h2_server_pull(guest->server, &bytes))
        wire_print(&guest->wire, bytes, &guest->wire.heard);
    return dv_buf_c(&guest->wire.heard);
}

static void count_release(void *ctx)
{
    struct guest *guest = ctx;

    guest->n_released++;
}

struct dv_h2_bytes guest_bytes(struct guest *guest, size_t n)
{
    static const char zeros[BODY_BYTES];

    assert_true(n <= BODY_BYTES);
    return (struct dv_h2_bytes){
        {zeros, n},
        count_release, guest
    };
}

void guest_answer(struct guest *guest, struct dv_h2_stream *stream)
{
    struct dv_h2_answer answer = {
        .status = 200, .body = {DV_STR("hi"), count_release, guest}
    };

    dv_h2_stream_answer(stream, &answer);
}

void guest_begin(struct guest *guest, struct dv_h2_stream *stream)
{
    struct dv_h2_answer answer = {.status = 200, .has_more = true};

    (void)guest;
    dv_h2_stream_answer(stream, &answer);
}
