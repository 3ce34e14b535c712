/* cmd_exec.c - exec and attach: a process in a container, with our input and our terminal. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/api_exchange.h"
#include "cli/client/api_socket.h"
#include "cli/client/cli_api.h"
#include "cli/client/cli_kinds.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "upgrade/channels.h"
#include "json/json.h"

#define READ_BYTES (32u * 1024u)
#define STATUS_BYTES_MAX (64u * 1024u)
#define PROTOCOL DV_STR_INIT("v5.channel.k8s.io")

struct session {
    struct dv_cli_socket socket;
    struct dv_channels *channels;
    struct dv_channels_handler handler;
    struct dv_loop *loop;
    bool has_stdin;
    bool has_tty;
    struct dv_poll *input;    /* NULL: it is not watched */
    struct dv_task read_task; /* reads an input that cannot be watched, as a file */
    bool is_input_over;
    struct termios before; /* of the terminal, where has_tty */
    struct dv_signal *resized;
    struct dv_buf status; /* of the error channel */
    bool is_output_broken;
};

/* ---- output ---- */

static bool write_all(int fd, dv_str bytes)
{
    while (bytes.n > 0) {
        ssize_t n = write(fd, bytes.p, bytes.n);
        struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};

        if (n > 0)
            bytes = dv_str_slice(bytes, (size_t)n, bytes.n);
        else if (n < 0 && errno != EINTR && (errno != EAGAIN || poll(&poll_fd, 1, -1) < 0))
            return false;
    }
    return true;
}

static void on_data(struct dv_channels_handler *handler, unsigned channel, dv_str bytes)
{
    struct session *session = DV_CONTAINER(handler, struct session, handler);

    if (channel == DV_CHANNEL_ERROR)
        dv_buf_add(&session->status, bytes);
    else if (channel == DV_CHANNEL_STDOUT || channel == DV_CHANNEL_STDERR)
        session->is_output_broken |=
            !write_all(channel == DV_CHANNEL_STDOUT ? STDOUT_FILENO : STDERR_FILENO, bytes);
    if (session->is_output_broken) /* nobody reads it any more */
        dv_rest_dial_cancel(&session->socket.dial);
}

/* The end is seen by dv_channels_is_over. */
static void on_ended(struct dv_channels_handler *handler, unsigned code, dv_str reason)
{
    (void)handler;
    (void)code;
    (void)reason;
}

static bool receive(struct dv_cli_socket *socket, dv_str bytes, struct dv_err *err)
{
    struct session *session = DV_CONTAINER(socket, struct session, socket);
    bool is_good = dv_channels_receive(session->channels, bytes, err);

    if (!is_good || !dv_channels_is_over(session->channels))
        return is_good;
    dv_cli_socket_push(socket); /* our own Close */
    dv_rest_dial_finish(&socket->dial);
    return true;
}

static bool pull(struct dv_cli_socket *socket, dv_str *bytes)
{
    return dv_channels_pull(DV_CONTAINER(socket, struct session, socket)->channels, bytes);
}

/* ---- input ---- */

static void on_read_task(struct dv_task *task);

static bool is_full(const struct session *session)
{
    return dv_channels_unsent_bytes(session->channels) +
               dv_rest_dial_unsent_bytes(&session->socket.dial) >
           DV_CLI_SOCKET_FULL_BYTES;
}

/* Waits for more input, or for room. */
static void await_input(struct session *session)
{
    bool wants = !session->is_input_over && session->socket.is_open && !is_full(session);

    if (session->input)
        dv_poll_set(session->input, wants ? DV_POLL_READ : 0);
    else if (wants)
        dv_task_post_next_turn(&session->read_task, session->loop, on_read_task);
}

static void end_input(struct session *session)
{
    struct dv_err err;

    session->is_input_over = true;
    if (!dv_channels_close(session->channels, DV_CHANNEL_STDIN, &err))
        dv_rest_dial_cancel(&session->socket.dial); /* the process would wait for ever */
}

static void read_input(struct session *session)
{
    static char buffer[READ_BYTES];
    ssize_t n = read(STDIN_FILENO, buffer, sizeof(buffer));
    struct dv_err err;

    if (n > 0 &&
        !dv_channels_send(session->channels, DV_CHANNEL_STDIN, (dv_str){buffer, (size_t)n}, &err))
        session->is_input_over = true; /* the process has ended */
    else if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
        end_input(session);
    dv_cli_socket_push(&session->socket);
    await_input(session);
}

static void on_read_task(struct dv_task *task)
{
    read_input(DV_CONTAINER(task, struct session, read_task));
}

static void on_input(void *ctx, unsigned events)
{
    (void)events;
    read_input(ctx);
}

static void on_room(struct dv_cli_socket *socket)
{
    struct session *session = DV_CONTAINER(socket, struct session, socket);

    if (session->has_stdin)
        await_input(session);
}

/* ---- the terminal ---- */

static void send_size(struct session *session)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct winsize size;
    struct dv_err err;

    dv_buf_init(&text, 100);
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0)
        return;
    dv_buf_printf(&text, "{\"Width\":%u,\"Height\":%u}", size.ws_col, size.ws_row);
    if (dv_channels_send(session->channels, DV_CHANNEL_RESIZE, dv_buf_str(&text), &err))
        dv_cli_socket_push(&session->socket);
}

static void on_resized(void *ctx, int signum)
{
    (void)signum;
    send_size(ctx);
}

static void take_terminal(struct session *session)
{
    struct termios raw = session->before;
    struct dv_err err;

    cfmakeraw(&raw);
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw); /* a terminal that is gone shows by its end */
    session->resized = dv_signal_open(session->loop, SIGWINCH, on_resized, session, &err);
    send_size(session);
}

static void give_terminal(struct session *session)
{
    if (session->resized)
        dv_signal_close(session->resized, NULL, NULL);
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &session->before);
}

/* ---- the end ---- */

/* Reads what the error channel said: the exit code of the process. */
static enum dv_exit read_status(struct session *session)
{
    struct dv_arena *arena = session->socket.api->cli->arena;
    struct dv_api_status *status = DV_NEW(arena, struct dv_api_status);
    struct dv_err err;
    const struct dv_json *doc = dv_json_parse(dv_buf_str(&session->status), NULL, arena, &err);
    uint32_t code = 0;

    if (!doc ||
        !dv_decode_json(&dv_message_status, doc, DV_UNKNOWN_DROP, arena, status, NULL, &err))
        return dv_cli_complain("%s", session->socket.err.code != DV_OK
                                         ? session->socket.err.msg
                                         : "the connection ended before the process did");
    if (dv_str_eq(status->status, DV_STR("Success")))
        return DV_EXIT_OK;
    for (size_t i = 0; status->details && i < status->details->n_causes; i++)
        if (dv_str_eq(status->details->causes[i].reason, DV_STR("ExitCode")) &&
            dv_str_to_u32(status->details->causes[i].message, &code) && code > 0 && code < 256)
            return (enum dv_exit)code;
    return dv_cli_complain("%.*s", DV_FMT(status->message));
}

static void start_session(struct session *session)
{
    const struct dv_channels_options options = {
        .ws = {.is_client = true,
               .random = dv_cli_socket_mask,
               .unsent_bytes_max = 4 * DV_CLI_SOCKET_FULL_BYTES},
        .protocol = dv_channel_protocol_find(session->socket.protocol),
        .n_channels = DV_N_CHANNELS,
    };

    session->handler = (struct dv_channels_handler){.data = on_data, .ended = on_ended};
    session->channels = dv_channels_new(&options, &session->handler);
}

static enum dv_exit run(struct session *session, struct dv_cli_api *api)
{
    enum dv_exit exit;
    struct dv_err err;

    start_session(session);
    dv_buf_init(&session->status, STATUS_BYTES_MAX);
    session->loop = api->loop;
    if (!dv_cli_socket_open(api, &session->socket)) {
        exit = api->exit;
    } else {
        if (session->has_tty)
            take_terminal(session);
        if (session->has_stdin) {
            session->input = dv_poll_open(session->loop, STDIN_FILENO, on_input, session, &err);
            await_input(session);
        }
        dv_cli_socket_run(&session->socket);
        if (session->input)
            dv_poll_close(session->input, NULL, NULL);
        dv_task_cancel(&session->read_task);
        if (session->has_tty)
            give_terminal(session);
        exit = read_status(session);
    }
    dv_channels_free(session->channels);
    dv_buf_fini(&session->status);
    return exit;
}

/* ---- the verbs ---- */

static dv_str flag(bool is_set)
{
    return is_set ? DV_STR("true") : DV_STR_NONE;
}

static dv_str print_target(const struct dv_cli_api *api, const struct session *session, dv_str pod,
                           const char *verb)
{
    const struct dv_cli *cli = api->cli;
    const struct dv_kind *kind = dv_kind(DV_KIND_POD);
    const struct dv_cli_param params[] = {
        {"container", cli->container          },
        {"stdin",     flag(session->has_stdin)},
        {"stdout",    DV_STR("true")          },
        {"stderr",    flag(!session->has_tty) },
        {"tty",       flag(session->has_tty)  },
    };
    const struct dv_cli_ask ask = {.kind = kind,
                                   .namespace = api->namespace,
                                   .name = pod,
                                   .subresource = verb,
                                   .params = params,
                                   .n_params = DV_COUNT(params)};
    DV_CLEANUP(dv_buf_fini) struct dv_buf target;

    dv_buf_init(&target, DV_CLI_TARGET_BYTES_MAX);
    dv_cli_ask_print(&ask, &kind->versions[0], &target);
    for (size_t i = 1; i < cli->n_words; i++) { /* also those that are empty */
        dv_buf_add_c(&target, "&command=");
        dv_rest_add_encoded(&target, cli->words[i]);
    }
    return target.is_over ? DV_STR_NONE : dv_str_copy(dv_buf_str(&target), cli->arena);
}

static enum dv_exit join(struct dv_cli *cli, const char *verb)
{
    struct session session = {
        .socket = {.protocol = PROTOCOL, .receive = receive, .pull = pull, .room = on_room},
        .has_stdin = cli->has_stdin,
        .has_tty = cli->has_tty,
    };
    struct dv_cli_api api;
    enum dv_exit exit;
    dv_str pod;

    if (!dv_cli_pod_name(cli->words[0], &pod))
        return dv_cli_complain_usage(verb, "\"%.*s\" is no pod", DV_FMT(cli->words[0]));
    if (session.has_tty && (!session.has_stdin || tcgetattr(STDIN_FILENO, &session.before) < 0)) {
        (void)dv_cli_complain("-t without -i, or without a terminal, means nothing");
        session.has_tty = false;
    }
    exit = dv_cli_api_open(cli, &api);
    if (exit != DV_EXIT_OK)
        return exit;
    session.socket.target = print_target(&api, &session, pod, verb);
    if (session.socket.target.n > 0)
        exit = run(&session, &api);
    else
        exit = dv_cli_complain("the command is longer than %u bytes", DV_CLI_TARGET_BYTES_MAX);
    dv_cli_api_close(&api);
    return exit;
}

enum dv_exit dv_cmd_exec(struct dv_cli *cli)
{
    if (cli->n_words < 2)
        return dv_cli_complain_usage("exec", "it needs a pod and a command: davit exec POD -- CMD");
    return join(cli, "exec");
}

enum dv_exit dv_cmd_attach(struct dv_cli *cli)
{
    if (cli->n_words != 1)
        return dv_cli_complain_usage("attach", "it needs one pod");
    return join(cli, "attach");
}
