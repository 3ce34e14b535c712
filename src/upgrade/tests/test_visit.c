#include "upgrade/tests/test_visit.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/defs.h"
#include "base/num.h"

#define BIG_BYTES (8u << 20)
#define SUCCESS "{\"metadata\":{},\"status\":\"Success\"}"
#define FAILURE                                                                                    \
    "{\"metadata\":{},\"status\":\"Failure\",\"reason\":\"NonZeroExitCode\",\"message\":"          \
    "\"command "                                                                                   \
    "terminated with non-zero exit code\",\"details\":{\"causes\":[{\"reason\":\"ExitCode\","      \
    "\"message\":\"5\"}]}}"

void write_all(int fd, dv_str bytes)
{
    while (bytes.n > 0) {
        ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);

        if (n <= 0)
            _exit(0); /* the client is gone */
        bytes = dv_str_slice(bytes, (size_t)n, bytes.n);
    }
}

/* Whoever closes a connection on which something is unread makes the kernel reset it, and the
 * client loses what it has not read. */
static void part(int fd)
{
    char bytes[65536];

    (void)shutdown(fd, SHUT_WR);
    while (read(fd, bytes, sizeof(bytes)) > 0)
        ;
}

void must(bool is_fine, const struct dv_err *err)
{
    if (is_fine)
        return;
    (void)fprintf(stderr, "%s\n", err->msg);
    _exit(1);
}

static const char zeros[32768];

/* ---- over WebSocket ---- */

static void channel_send(struct visit *visit, unsigned channel, dv_str bytes)
{
    struct dv_err err;

    must(dv_channels_send(visit->channels, channel, bytes, &err), &err);
}

static void channel_finish(struct visit *visit, const char *status)
{
    visit->is_done = true;
    channel_send(visit, DV_CHANNEL_ERROR, dv_str_from_c(status));
    dv_channels_end(visit->channels, DV_WS_NORMAL, DV_STR_NONE);
}

static void on_channel_data(struct dv_channels_handler *handler, unsigned channel, dv_str bytes)
{
    struct visit *visit = DV_CONTAINER(handler, struct visit, channels_handler);

    if (channel == DV_CHANNEL_STDIN && visit->program == RUN_CAT)
        channel_send(visit, DV_CHANNEL_STDOUT, bytes);
}

static void on_channel_closed(struct dv_channels_handler *handler, unsigned channel)
{
    struct visit *visit = DV_CONTAINER(handler, struct visit, channels_handler);

    if (channel == DV_CHANNEL_STDIN && !visit->is_done)
        channel_finish(visit, SUCCESS);
}

static void on_channels_ended(struct dv_channels_handler *handler, unsigned code, dv_str reason)
{
    (void)handler;
    (void)code;
    (void)reason;
}

static void channels_start(struct visit *visit)
{
    channel_send(visit, DV_CHANNEL_STDOUT, DV_STR_NONE);
    if (visit->program == RUN_ECHO) {
        channel_send(visit, DV_CHANNEL_STDOUT, DV_STR("out\n"));
        channel_send(visit, DV_CHANNEL_STDERR, DV_STR("err\n"));
    }
    visit->left = visit->program == RUN_BIG ? BIG_BYTES : 0;
    if (visit->program == RUN_ECHO || visit->program == RUN_FAIL)
        channel_finish(visit, visit->program == RUN_FAIL ? FAILURE : SUCCESS);
}

void visit_channels(struct visit *visit, const struct dv_channel_protocol *protocol)
{
    struct dv_channels_options options = {.protocol = protocol, .n_channels = DV_N_CHANNELS};
    char bytes[65536];
    struct dv_err err;
    dv_str out;
    ssize_t n;

    visit->channels_handler =
        (struct dv_channels_handler){on_channel_data, on_channel_closed, on_channels_ended};
    visit->channels = dv_channels_new(&options, &visit->channels_handler);
    channels_start(visit);
    do {
        while (dv_channels_pull(visit->channels, &out)) {
            write_all(visit->fd, out);
            if (visit->left > 0) {
                channel_send(visit, DV_CHANNEL_STDOUT, (dv_str){zeros, sizeof(zeros)});
                visit->left -= sizeof(zeros);
                if (visit->left == 0)
                    channel_finish(visit, SUCCESS);
            }
        }
        n = dv_channels_is_over(visit->channels) ? 0 : read(visit->fd, bytes, sizeof(bytes));
        if (n > 0)
            must(dv_channels_receive(visit->channels, (dv_str){bytes, (size_t)n}, &err), &err);
    } while (n > 0);
    part(visit->fd);
    dv_channels_free(visit->channels);
}

/* ---- over SPDY ---- */

static void spdy_send(struct dv_spdy_stream *stream, dv_str bytes)
{
    if (dv_spdy_send(stream, bytes) < bytes.n)
        _exit(1); /* it is never so much at once */
}

static void spdy_finish(struct visit *visit, const char *status)
{
    visit->is_done = true;
    spdy_send(visit->streams.streams[DV_STREAM_ERROR], dv_str_from_c(status));
    for (size_t i = 0; i < DV_N_STREAM_TYPES; i++) {
        if (visit->streams.streams[i])
            dv_spdy_finish(visit->streams.streams[i]);
    }
    dv_spdy_go_away(visit->spdy);
}

static void spdy_write_big(struct visit *visit)
{
    struct dv_spdy_stream *out = visit->streams.streams[DV_STREAM_STDOUT];

    while (visit->left > 0) {
        size_t n = dv_size_min(visit->left, sizeof(zeros));
        size_t n_taken = dv_spdy_send(out, (dv_str){zeros, n});

        visit->left -= n_taken;
        if (n_taken < n)
            return;
    }
    spdy_finish(visit, SUCCESS);
}

static void spdy_start(struct visit *visit)
{
    if (visit->program == RUN_ECHO) {
        spdy_send(visit->streams.streams[DV_STREAM_STDOUT], DV_STR("out\n"));
        spdy_send(visit->streams.streams[DV_STREAM_STDERR], DV_STR("err\n"));
    }
    if (visit->program == RUN_ECHO || visit->program == RUN_FAIL)
        spdy_finish(visit, visit->program == RUN_FAIL ? FAILURE : SUCCESS);
    visit->left = visit->program == RUN_BIG ? BIG_BYTES : 0;
    if (visit->left > 0)
        spdy_write_big(visit);
}

static void on_opened(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream,
                      const struct dv_spdy_field *fields, size_t n_fields)
{
    struct visit *visit = DV_CONTAINER(handler, struct visit, spdy_handler);
    struct dv_err err;

    dv_spdy_reply(stream);
    if (visit->is_exec) {
        must(dv_exec_streams_add(&visit->streams, stream, fields, n_fields, &err), &err);
        if (dv_exec_streams_are_complete(&visit->streams))
            spdy_start(visit);
    } else {
        must(dv_port_pairs_add(&visit->pairs, stream, fields, n_fields, &err) != NULL, &err);
    }
}

/* Ports echo. */
static void on_data(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream, dv_str bytes)
{
    struct visit *visit = DV_CONTAINER(handler, struct visit, spdy_handler);

    if (!visit->is_exec)
        spdy_send(stream, bytes);
    else if (visit->program == RUN_CAT && stream == visit->streams.streams[DV_STREAM_STDIN])
        spdy_send(visit->streams.streams[DV_STREAM_STDOUT], bytes);
}

static void on_finished(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream)
{
    struct visit *visit = DV_CONTAINER(handler, struct visit, spdy_handler);
    bool is_stdin = stream == visit->streams.streams[DV_STREAM_STDIN];

    if (!visit->is_exec)
        dv_spdy_finish(stream);
    else if (is_stdin && visit->program == RUN_CAT && !visit->is_done)
        spdy_finish(visit, SUCCESS);
}

static void on_room(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream)
{
    (void)stream;
    spdy_write_big(DV_CONTAINER(handler, struct visit, spdy_handler));
}

static void on_ended(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream,
                     const struct dv_err *err)
{
    (void)handler;
    (void)stream;
    (void)err;
}

static void on_tunnel_message(struct dv_ws_handler *handler, const struct dv_ws_part *part)
{
    struct visit *visit = DV_CONTAINER(handler, struct visit, tunnel_handler);
    struct dv_err err;

    must(dv_spdy_receive(visit->spdy, part->bytes, &err), &err);
}

static void on_tunnel_closed(struct dv_ws_handler *handler, unsigned code, dv_str reason)
{
    (void)handler;
    (void)code;
    (void)reason;
}

/* Writes what waits, in a WebSocket if there is one. */
static void spdy_write(struct visit *visit)
{
    struct dv_err err;
    dv_str bytes;

    while (dv_spdy_pull(visit->spdy, &bytes)) {
        if (visit->tunnel)
            must(dv_ws_send(visit->tunnel, false, bytes, &err) && dv_ws_pull(visit->tunnel, &bytes),
                 &err);
        write_all(visit->fd, bytes);
    }
    while (visit->tunnel && dv_ws_pull(visit->tunnel, &bytes))
        write_all(visit->fd, bytes);
}

void visit_spdy(struct visit *visit, bool is_tunnelled)
{
    static const struct dv_spdy_options options = {.unsent_bytes_max = 1u << 20};
    static const struct dv_ws_options tunnel = {.unsent_bytes_max = 4u << 20};
    struct dv_err err = {.msg = "the end"};
    char bytes[65536];
    ssize_t n;

    visit->spdy_handler = (struct dv_spdy_handler){.opened = on_opened,
                                                   .data = on_data,
                                                   .finished = on_finished,
                                                   .room = on_room,
                                                   .ended = on_ended};
    visit->spdy = dv_spdy_new(&options, &visit->spdy_handler);
    visit->tunnel_handler =
        (struct dv_ws_handler){.message = on_tunnel_message, .closed = on_tunnel_closed};
    visit->tunnel = is_tunnelled ? dv_ws_new(&tunnel, &visit->tunnel_handler) : NULL;
    dv_port_pairs_init(&visit->pairs, 1000);
    while ((n = read(visit->fd, bytes, sizeof(bytes))) > 0) {
        dv_str got = {bytes, (size_t)n};

        must(visit->tunnel ? dv_ws_receive(visit->tunnel, got, &err)
                           : dv_spdy_receive(visit->spdy, got, &err),
             &err);
        spdy_write(visit);
        if (dv_spdy_is_over(visit->spdy))
            break;
    }
    part(visit->fd);
    dv_spdy_lose(visit->spdy, &err);
    dv_spdy_free(visit->spdy);
    dv_ws_free(visit->tunnel);
    dv_port_pairs_fini(&visit->pairs);
}
