#include "upgrade/tests/test_spdy_side.h"

#include "support/dvtest.h"

#include "base/defs.h"

#define SHOWN_BYTES_MAX 64u

static struct side *side_of(struct dv_spdy_handler *handler)
{
    return DV_CONTAINER(handler, struct side, handler);
}

static void note(struct side *side, const struct dv_spdy_stream *stream, const char *what,
                 dv_str text)
{
    if (side->is_quiet)
        return;
    if (stream)
        dv_buf_printf(&side->events, "%u ", dv_spdy_stream_id(stream));
    if (text.n > SHOWN_BYTES_MAX)
        dv_buf_printf(&side->events, "%s of %zu\n", what, text.n);
    else
        dv_buf_printf(&side->events, "%s%s%.*s\n", what, text.n ? " " : "", DV_FMT(text));
}

static void on_opened(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream,
                      const struct dv_spdy_field *fields, size_t n_fields)
{
    struct side *side = side_of(handler);
    struct dv_buf text;

    dv_buf_init(&text, 1u << 16);
    for (size_t i = 0; i < n_fields; i++)
        dv_buf_printf(&text, "%s%.*s=%.*s", i ? " " : "", DV_FMT(fields[i].name),
                      DV_FMT(fields[i].value));
    side->stream = stream;
    side->n_open++;
    note(side, stream, "opened", dv_buf_str(&text));
    dv_buf_fini(&text);
    if (side->has_reply)
        dv_spdy_reply(stream);
}

static void on_replied(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream)
{
    note(side_of(handler), stream, "replied", DV_STR_NONE);
}

static void on_data(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream, dv_str bytes)
{
    struct side *side = side_of(handler);

    assert_true(bytes.n > 0);
    side->n_data += bytes.n;
    note(side, stream, "data", bytes);
}

static void on_finished(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream)
{
    struct side *side = side_of(handler);

    note(side, stream, "finished", DV_STR_NONE);
    if (side->on_finished)
        side->on_finished(side, stream);
}

static void on_room(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream)
{
    struct side *side = side_of(handler);

    note(side, stream, "room", DV_STR_NONE);
    if (side->on_room)
        side->on_room(side, stream);
}

static void on_ended(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream,
                     const struct dv_err *err)
{
    struct side *side = side_of(handler);

    note(side, stream, "ended", dv_str_from_c(dv_code_name(err ? err->code : DV_OK)));
    assert_true(side->n_open > 0);
    side->n_open--;
    if (side->stream == stream)
        side->stream = NULL;
}

static void on_going_away(struct dv_spdy_handler *handler)
{
    note(side_of(handler), NULL, "going away", DV_STR_NONE);
}

static void on_pong(struct dv_spdy_handler *handler)
{
    note(side_of(handler), NULL, "pong", DV_STR_NONE);
}

void side_init(struct side *side, const struct dv_spdy_options *options)
{
    *side = (struct side){
        .handler = {.opened = on_opened,
                    .replied = on_replied,
                    .data = on_data,
                    .finished = on_finished,
                    .room = on_room,
                    .ended = on_ended,
                    .going_away = on_going_away,
                    .pong = on_pong},
        .has_reply = true,
    };
    dv_buf_init(&side->events, 1u << 20);
    side->spdy = dv_spdy_new(options, &side->handler);
}

void side_fini(struct side *side)
{
    struct dv_err gone;

    (void)dv_fail(&gone, DV_UNAVAILABLE, "the test is over");
    dv_spdy_lose(side->spdy, &gone);
    assert_int_equal(dv_spdy_n_streams(side->spdy), 0);
    assert_int_equal(side->n_open, 0);
    dv_spdy_free(side->spdy);
    dv_buf_fini(&side->events);
}

struct dv_spdy_stream *side_open(struct side *side, const char *type)
{
    struct dv_spdy_field field = {DV_STR("streamtype"), dv_str_from_c(type)};
    struct dv_err err;
    struct dv_spdy_stream *stream = dv_spdy_open(side->spdy, &field, 1, NULL, &err);

    if (!stream)
        fail_msg("%s: %s", type, err.msg);
    side->n_open++;
    return stream;
}

bool side_carry(struct side *from, struct side *to, size_t step)
{
    bool has_any = false;
    struct dv_err err;
    dv_str bytes;

    while (dv_spdy_pull(from->spdy, &bytes)) {
        has_any = true;
        for (; bytes.n > 0; bytes = dv_str_slice(bytes, step, bytes.n))
            assert_ok(dv_spdy_receive(to->spdy, dv_str_slice(bytes, 0, step), &err), &err);
    }
    return has_any;
}

void sides_talk(struct side *a, struct side *b)
{
    while (side_carry(a, b, SIZE_MAX) || side_carry(b, a, SIZE_MAX))
        ;
}
