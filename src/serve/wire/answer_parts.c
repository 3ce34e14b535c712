#include "serve/wire/answer_parts.h"

#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"

/* The first part is short, because the client waits for it, and the others fill a few writes. */
#define FIRST_BYTES (16u * 1024u)
#define PART_BYTES (256u * 1024u)
/* One object, which is printed whole, may make a part longer than that. */
#define PART_BYTES_MAX (64u << 20)
/* The client may take as long as for an answer in one piece: a while, and so much longer. */
#define TAKE_MS 60000u
#define TAKE_BYTES_PER_MS 16u

static void free_parts(struct dv_parts *parts)
{
    dv_buf_fini(&parts->priv.part);
    parts->free(parts);
}

/* ---- printing, on a worker ---- */

static void on_work(struct dv_work *work)
{
    struct dv_parts *parts = DV_CONTAINER(work, struct dv_parts, priv.work);

    parts->priv.is_complete =
        parts->print(parts, parts->priv.is_begun ? PART_BYTES : FIRST_BYTES, &parts->priv.part);
    parts->priv.is_begun = true;
}

static void print_next(struct dv_parts *parts)
{
    struct dv_parts_private *priv = &parts->priv;

    if (priv->is_printing || priv->is_over || priv->is_complete)
        return;
    priv->is_printing = true;
    dv_work_start(&priv->work, priv->loop);
}

static void break_off(struct dv_parts *parts)
{
    parts->priv.is_over = true;
    dv_rest_stream_cancel(&parts->priv.stream);
}

static void send_part(struct dv_parts *parts)
{
    struct dv_parts_private *priv = &parts->priv;
    struct dv_err err;

    if (!dv_buf_check(&priv->part, "part of a list", &err) ||
        !dv_rest_stream_send(&priv->stream, dv_buf_str(&priv->part), &err)) {
        break_off(parts); /* the client sees that something is missing */
        return;
    }
    dv_buf_clear(&priv->part);
    if (priv->is_complete) {
        priv->is_over = true;
        dv_rest_stream_finish(&priv->stream);
    } else if (dv_rest_stream_unsent_bytes(&priv->stream) < PART_BYTES) {
        print_next(parts);
    }
}

static void on_printed(struct dv_work *work, const struct dv_err *unused)
{
    struct dv_parts *parts = DV_CONTAINER(work, struct dv_parts, priv.work);

    (void)unused; /* nobody cancels it */
    parts->priv.is_printing = false;
    if (parts->priv.has_ended) {
        free_parts(parts);
        return;
    }
    if (parts->printed)
        parts->printed(parts);
    if (!parts->priv.is_over)
        send_part(parts);
}

/* ---- the stream ---- */

static void on_room(struct dv_rest_stream *stream)
{
    print_next(DV_CONTAINER(stream, struct dv_parts, priv.stream));
}

static void on_ended(struct dv_rest_stream *stream, const struct dv_err *err)
{
    struct dv_parts *parts = DV_CONTAINER(stream, struct dv_parts, priv.stream);

    (void)err; /* a client that is gone is not worth a log line */
    dv_timer_cancel(&parts->priv.timer);
    parts->priv.is_over = true;
    parts->priv.has_ended = true;
    if (parts->ended)
        parts->ended(parts);
    if (!parts->priv.is_printing)
        free_parts(parts);
}

static void on_late(struct dv_timer *timer)
{
    break_off(DV_CONTAINER(timer, struct dv_parts, priv.timer));
}

void dv_parts_start(struct dv_parts *parts, struct dv_loop *loop, struct dv_rest_call *call,
                    size_t n_bytes)
{
    struct dv_parts_private *priv = &parts->priv;

    priv->loop = loop;
    dv_buf_init(&priv->part, PART_BYTES_MAX);
    priv->stream = (struct dv_rest_stream){.room = on_room, .ended = on_ended};
    priv->work = (struct dv_work){.run = on_work, .done = on_printed};
    dv_timer_start(&priv->timer, loop,
                   dv_u64_add_clamped(dv_loop_now_ms(loop), TAKE_MS + n_bytes / TAKE_BYTES_PER_MS),
                   on_late);
    dv_rest_stream_start(&priv->stream, call, 200);
    print_next(parts);
}
