/* cli_client.c - calls from `davit` to the daemon over davit.sock: one answer, or a stream of them,
 * with what is printed when the daemon is not there. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "pb/pb.h"

/* A list of 100,000 devices with their holders. */
#define MESSAGE_BYTES_MAX (256u << 20)

/* One call, and the loop that it alone runs on. */
struct session {
    struct dv_cli *cli;
    struct dv_loop *loop;
    struct dv_channel *channel;
    struct dv_call call;
    const struct ProtobufCMessageDescriptor *type;
    void (*each)(struct dv_cli *cli, const void *message);
    void *answer;
    struct dv_err err; /* code DV_OK: success */
    bool was_reached;
    bool is_quiet;
};

static void on_message(struct dv_call *call, dv_str bytes)
{
    struct session *session = DV_CONTAINER(call, struct session, call);
    struct dv_arena *arena;
    const void *message;

    session->was_reached = true;
    if (!session->each) {
        session->answer = dv_pb_decode(session->type, bytes, session->cli->arena, &session->err);
        return;
    }
    arena = dv_arena_new(); /* a watch goes on and on */
    message = dv_pb_decode(session->type, bytes, arena, &session->err);
    if (message)
        session->each(session->cli, message);
    dv_arena_free(arena);
}

static void on_done(struct dv_call *call, const struct dv_err *err)
{
    struct session *session = DV_CONTAINER(call, struct session, call);

    if (err)
        session->err = *err;
    dv_loop_stop(session->loop);
}

/* Says whose the socket is, and what helps. Its folder is given to the same group, and can be
 * looked at by everybody. */
static void complain_forbidden(const struct dv_cli *cli)
{
    size_t slash = cli->socket.n;
    const struct group *group = NULL;
    const struct passwd *user = getpwuid(geteuid());
    struct stat about;

    while (slash > 1 && cli->socket.p[slash - 1] != '/')
        slash--;
    if (stat(dv_str_to_c(cli->socket, cli->arena), &about) == 0 ||
        stat(dv_str_to_c(dv_str_slice(cli->socket, 0, slash), cli->arena), &about) == 0)
        group = about.st_gid == 0 ? NULL : getgrgid(about.st_gid);
    if (group)
        (void)dv_cli_complain("you are not in the group %s, to which %.*s is given: have root run "
                              "usermod -aG %s %s, and log in again",
                              group->gr_name, DV_FMT(cli->socket), group->gr_name,
                              user ? user->pw_name : "USER");
    else
        (void)dv_cli_complain("%.*s is for root alone: use sudo, or let davitd give it to a group "
                              "(--group)",
                              DV_FMT(cli->socket));
}

enum dv_exit dv_cli_complain_unreachable(const struct dv_cli *cli, const char *reason)
{
    if (access(dv_str_to_c(cli->socket, cli->arena), W_OK) < 0 && errno == EACCES)
        complain_forbidden(cli);
    else
        (void)dv_cli_complain("no davitd answers on %.*s: %s\n"
                              "davit: start it, or name its socket with --socket",
                              DV_FMT(cli->socket), reason);
    return DV_EXIT_UNREACHABLE;
}

static enum dv_exit explain(const struct session *session)
{
    const struct dv_err *err = &session->err;

    if (session->is_quiet)
        return DV_EXIT_FAILED;
    if (err->code == DV_UNAVAILABLE && !session->was_reached)
        return dv_cli_complain_unreachable(session->cli, err->msg);
    return dv_cli_complain(
        "%s (%s)", session->cli->reword ? session->cli->reword(session->cli, err->msg) : err->msg,
        dv_code_name(err->code));
}

static enum dv_exit run(struct session *session, const char *method,
                        const struct ProtobufCMessage *request)
{
    struct dv_channel_options options = {
        .name = DV_STR("davitd"),
        .message_bytes_max = MESSAGE_BYTES_MAX,
        .connects_once = true,
    };

    session->loop = dv_loop_new(dv_clock_real(), &session->err);
    if (!session->loop)
        return explain(session);
    session->channel =
        dv_channel_open(session->loop, session->cli->socket, &options, &session->err);
    if (!session->channel) {
        dv_loop_free(session->loop);
        return session->is_quiet ? DV_EXIT_FAILED : dv_cli_complain("%s", session->err.msg);
    }
    session->call.method = method;
    session->call.message = on_message;
    session->call.done = on_done;
    session->call.is_stream = session->each != NULL;
    session->call.deadline_ms =
        session->each ? DV_NO_DEADLINE : dv_loop_now_ms(session->loop) + session->cli->timeout_ms;
    dv_call_start(session->channel, &session->call, dv_grpc_encode(request));
    dv_loop_run(session->loop);
    dv_channel_close(session->channel, NULL, NULL);
    dv_loop_free(session->loop);
    return session->err.code == DV_OK ? DV_EXIT_OK : explain(session);
}

void *dv_cli_call(struct dv_cli *cli, const char *method, const struct ProtobufCMessage *request,
                  const struct ProtobufCMessageDescriptor *response, enum dv_exit *exit)
{
    struct session session = {.cli = cli, .type = response};

    *exit = run(&session, method, request);
    return *exit == DV_EXIT_OK ? session.answer : NULL;
}

void *dv_cli_ask(struct dv_cli *cli, const char *method, const struct ProtobufCMessage *request,
                 const struct ProtobufCMessageDescriptor *response)
{
    struct session session = {.cli = cli, .type = response, .is_quiet = true};

    return run(&session, method, request) == DV_EXIT_OK ? session.answer : NULL;
}

enum dv_exit dv_cli_watch(struct dv_cli *cli, const char *method,
                          const struct ProtobufCMessage *request,
                          const struct ProtobufCMessageDescriptor *response,
                          void (*each)(struct dv_cli *cli, const void *message))
{
    struct session session = {.cli = cli, .type = response, .each = each};

    return run(&session, method, request);
}
