/* davit_stream.c - module upgrade against the streams of a real runtime:
 *
 *     davit-stream spdy URL [stdin]     exec or attach over SPDY: its output, and its exit code
 *     davit-stream ws URL [stdin]       the same over WebSocket (v4, which cannot end stdin)
 *     davit-stream port URL PORT        stdin to the port and back, over SPDY
 *
 * It blocks: one connection, and what comes on it or on stdin. */
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "upgrade/channels.h"
#include "upgrade/spdy.h"
#include "upgrade/spdy_streams.h"
#include "upgrade/websocket.h"

#define HEAD_BYTES_MAX 8192u
#define READ_BYTES 16384u
#define STATUS_BYTES_MAX 65536u

struct client {
    int fd;
    bool has_stdin;
    bool has_ended; /* nothing more will come */
    struct dv_buf status;

    struct dv_spdy_handler spdy_handler;
    struct dv_spdy *spdy;
    struct dv_exec_streams streams;
    bool is_port;
    struct dv_spdy_stream *port_data; /* NULL: it has ended */
    struct dv_spdy_stream *port_error;

    struct dv_channels_handler channels_handler;
    struct dv_channels *channels;
};

static void must(bool is_fine, const char *what)
{
    if (is_fine)
        return;
    (void)fprintf(stderr, "davit-stream: %s\n", what);
    exit(99);
}

static void write_all(int fd, dv_str bytes)
{
    while (bytes.n > 0) {
        ssize_t n = write(fd, bytes.p, bytes.n);

        must(n > 0, "a write failed");
        bytes = dv_str_slice(bytes, (size_t)n, bytes.n);
    }
}

/* ---- handshake ---- */

/* Connects to "http://127.0.0.1:PORT/path", and sets *path to the last part. */
static int dial(const char *url, const char **path)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    unsigned port;
    int n = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    must(sscanf(url, "http://127.0.0.1:%u%n", &port, &n) == 1 && n > 0, "no such URL");
    *path = url + n;
    address.sin_port = htons((uint16_t)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "no connection");
    return fd;
}

/* Asks for the upgrade, and reads the answer's header. */
static void ask(int fd, const char *method, const char *path, const char *fields,
                char head[HEAD_BYTES_MAX])
{
    char request[2048];
    size_t n = 0;

    (void)snprintf(request, sizeof(request),
                   "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"
                   "Content-Length: 0\r\n%s\r\n",
                   method, path, fields);
    write_all(fd, dv_str_from_c(request));
    while (n < HEAD_BYTES_MAX - 1 && read(fd, head + n, 1) == 1) {
        head[++n] = '\0';
        if (n >= 4 && strcmp(head + n - 4, "\r\n\r\n") == 0)
            break;
    }
    must(strncmp(head, "HTTP/1.1 101", 12) == 0, head);
}

static dv_str field_of(const char *head, const char *name)
{
    dv_str rest = dv_str_from_c(head);
    dv_str line;

    while (dv_str_split(&rest, '\n', &line)) {
        size_t at = dv_str_find_char(line, ':');

        if (dv_str_eq_nocase(dv_str_slice(line, 0, at), dv_str_from_c(name)))
            return dv_str_trim(dv_str_slice(line, at + 1, line.n));
    }
    return DV_STR_NONE;
}

/* ---- SPDY ---- */

static void on_opened(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream,
                      const struct dv_spdy_field *fields, size_t n_fields)
{
    (void)handler;
    (void)fields;
    (void)n_fields;
    dv_spdy_reset(stream, DV_SPDY_REFUSED_STREAM);
}

static void on_data(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream, dv_str bytes)
{
    struct client *client = DV_CONTAINER(handler, struct client, spdy_handler);

    if (stream == client->streams.streams[DV_STREAM_STDOUT] || stream == client->port_data)
        write_all(STDOUT_FILENO, bytes);
    else if (stream == client->streams.streams[DV_STREAM_STDERR])
        write_all(STDERR_FILENO, bytes);
    else
        dv_buf_add(&client->status, bytes);
}

static void on_finished(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream)
{
    struct client *client = DV_CONTAINER(handler, struct client, spdy_handler);

    if (stream == client->streams.streams[DV_STREAM_ERROR])
        client->has_ended = true;
    dv_spdy_finish(stream);
}

static void on_ended(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream,
                     const struct dv_err *err)
{
    struct client *client = DV_CONTAINER(handler, struct client, spdy_handler);

    (void)err;
    for (size_t i = 0; i < DV_N_STREAM_TYPES; i++) {
        if (client->streams.streams[i] == stream)
            client->streams.streams[i] = NULL;
    }
    if (client->port_data == stream)
        client->port_data = NULL;
    if (client->port_error == stream)
        client->port_error = NULL;
    if (client->is_port && !client->port_data && !client->port_error)
        client->has_ended = true;
}

static void open_port(struct client *client, const char *port)
{
    struct dv_spdy_field fields[] = {
        {DV_STR("streamtype"), DV_STR("error")    },
        {DV_STR("port"),       dv_str_from_c(port)},
        {DV_STR("requestid"),  DV_STR("0")        },
    };
    struct dv_err err;

    client->is_port = true;
    client->port_error = dv_spdy_open(client->spdy, fields, DV_COUNT(fields), NULL, &err);
    must(client->port_error, err.msg);
    dv_spdy_finish(client->port_error);
    fields[0].value = DV_STR("data");
    client->port_data = dv_spdy_open(client->spdy, fields, DV_COUNT(fields), NULL, &err);
    must(client->port_data, err.msg);
}

static void start_spdy(struct client *client, const char *url, const char *port)
{
    static const struct dv_spdy_options options = {.is_client = true, .unsent_bytes_max = 1u << 20};
    struct dv_exec_request request = {
        .has_stdin = client->has_stdin, .has_stdout = true, .has_stderr = true};
    char head[HEAD_BYTES_MAX];
    const char *path;
    struct dv_err err;

    client->fd = dial(url, &path);
    ask(client->fd, "POST", path,
        port ? "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: portforward.k8s.io\r\n"
             : "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n",
        head);
    client->spdy_handler = (struct dv_spdy_handler){
        .opened = on_opened, .data = on_data, .finished = on_finished, .ended = on_ended};
    client->spdy = dv_spdy_new(&options, &client->spdy_handler);
    if (port) {
        open_port(client, port);
        return;
    }
    dv_exec_streams_init(&client->streams, &request,
                         dv_exec_version_find(field_of(head, "X-Stream-Protocol-Version")));
    must(dv_exec_streams_open(&client->streams, client->spdy, &err), err.msg);
}

/* ---- WebSocket ---- */

static void on_channel_data(struct dv_channels_handler *handler, unsigned channel, dv_str bytes)
{
    struct client *client = DV_CONTAINER(handler, struct client, channels_handler);

    if (channel == DV_CHANNEL_STDOUT)
        write_all(STDOUT_FILENO, bytes);
    else if (channel == DV_CHANNEL_STDERR)
        write_all(STDERR_FILENO, bytes);
    else if (channel == DV_CHANNEL_ERROR)
        dv_buf_add(&client->status, bytes);
}

static void on_channels_ended(struct dv_channels_handler *handler, unsigned code, dv_str reason)
{
    struct client *client = DV_CONTAINER(handler, struct client, channels_handler);

    (void)code;
    (void)reason;
    client->has_ended = true;
}

static void random_mask(void *ctx, uint8_t mask[4])
{
    (void)ctx;
    must(getrandom(mask, 4, 0) == 4, "no random bytes");
}

static void start_websocket(struct client *client, const char *url)
{
    static const dv_str offered[] = {DV_STR_INIT("v4.channel.k8s.io")};
    struct dv_channels_options options = {
        .ws = {.is_client = true, .random = random_mask},
          .n_channels = DV_N_CHANNELS
    };
    uint8_t nonce[DV_WS_NONCE_BYTES];
    char key[DV_WS_KEY_BYTES];
    char head[HEAD_BYTES_MAX];
    char text[256];
    struct dv_ws_fields answer;
    struct dv_err err;
    const char *path;
    dv_str protocol;
    dv_str list;

    must(getrandom(nonce, sizeof(nonce), 0) == sizeof(nonce), "no random bytes");
    dv_ws_key(nonce, key);
    client->fd = dial(url, &path);
    (void)snprintf(text, sizeof(text),
                   "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n"
                   "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n",
                   key);
    ask(client->fd, "GET", path, text, head);
    list = field_of(head, "Sec-WebSocket-Protocol");
    answer = (struct dv_ws_fields){.connection = field_of(head, "Connection"),
                                   .upgrade = field_of(head, "Upgrade"),
                                   .accept = field_of(head, "Sec-WebSocket-Accept"),
                                   .extensions = field_of(head, "Sec-WebSocket-Extensions"),
                                   .protocols = &list,
                                   .n_protocols = 1};
    must(dv_ws_check_answer(&answer, dv_str_from_c(key), offered, 1, &protocol, &err), err.msg);
    options.protocol = dv_channel_protocol_find(protocol);
    client->channels_handler =
        (struct dv_channels_handler){.data = on_channel_data, .ended = on_channels_ended};
    client->channels = dv_channels_new(&options, &client->channels_handler);
}

/* ---- both ---- */

static bool pull(struct client *client, dv_str *bytes)
{
    return client->spdy ? dv_spdy_pull(client->spdy, bytes)
                        : dv_channels_pull(client->channels, bytes);
}

static void on_stdin(struct client *client)
{
    struct dv_spdy_stream *stream =
        client->port_data ? client->port_data : client->streams.streams[DV_STREAM_STDIN];
    char bytes[READ_BYTES];
    struct dv_err err;
    ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
    dv_str part = {bytes, n > 0 ? (size_t)n : 0};

    if (n <= 0)
        client->has_stdin = false;
    if (client->spdy && stream && n <= 0)
        dv_spdy_finish(stream);
    else if (client->spdy && stream)
        must(dv_spdy_send(stream, part) == part.n, "there is no room"); /* all is pulled before */
    else if (client->channels && n > 0)
        must(dv_channels_send(client->channels, DV_CHANNEL_STDIN, part, &err), err.msg);
}

/* What is to be said goes out before anything else is read: that bounds what waits. */
static void talk(struct client *client)
{
    char bytes[READ_BYTES];
    struct dv_err err;
    dv_str out;

    while (!client->has_ended) {
        struct pollfd polled[] = {
            {.fd = client->fd,                            .events = POLLIN},
            {.fd = client->has_stdin ? STDIN_FILENO : -1, .events = POLLIN},
        };
        dv_str part = {bytes, 0};
        ssize_t n;

        while (pull(client, &out))
            write_all(client->fd, out);
        must(poll(polled, DV_COUNT(polled), 60000) > 0, "nothing comes");
        if (polled[1].revents)
            on_stdin(client);
        if (!polled[0].revents)
            continue;
        n = read(client->fd, bytes, sizeof(bytes));
        if (n <= 0)
            return;
        part.n = (size_t)n;
        must(client->spdy ? dv_spdy_receive(client->spdy, part, &err)
                          : dv_channels_receive(client->channels, part, &err),
             err.msg);
    }
}

/* The exit code that a Status carries; a port carries text only when it failed. */
static int exit_code(const struct client *client)
{
    const char *cause = strstr(dv_buf_c(&client->status), "\"ExitCode\",\"message\":\"");

    if (cause)
        return atoi(cause + strlen("\"ExitCode\",\"message\":\""));
    if (strstr(dv_buf_c(&client->status), "\"Success\"") ||
        (client->is_port && client->status.n == 0))
        return 0;
    (void)fprintf(stderr, "%s\n", dv_buf_c(&client->status));
    return 98;
}

int main(int argc, char **argv)
{
    struct client client = {.fd = -1};
    struct dv_err gone;
    int code;

    must(argc >= 3, "usage: davit-stream spdy|ws|port URL [stdin|PORT]");
    client.has_stdin = argc > 3;
    dv_buf_init(&client.status, STATUS_BYTES_MAX);
    if (strcmp(argv[1], "ws") == 0)
        start_websocket(&client, argv[2]);
    else
        start_spdy(&client, argv[2], strcmp(argv[1], "port") == 0 ? argv[3] : NULL);
    talk(&client);
    code = exit_code(&client);
    if (client.spdy) {
        (void)dv_fail(&gone, DV_CANCELLED, "the end");
        dv_spdy_lose(client.spdy, &gone);
    }
    dv_spdy_free(client.spdy);
    dv_channels_free(client.channels);
    dv_buf_fini(&client.status);
    (void)close(client.fd);
    return code;
}
