/* replay_register.c - registers a recorded driver as it registered then: through a socket in
 * plugins_registry, or by a call of Register. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/record/exchange.h"
#include "cli/record/replay_state.h"
#include "cli/record/tape.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "record/message.h"
#include "record/record.h"

#define SOCKET_MODE 0600
#define DIR_MODE 0750
#define REGISTER_TIMEOUT_MS 30000u

/* ---- what was recorded ---- */

static bool set_endpoint(void *ctx, const struct dv_pb_text *text, dv_str *replacement)
{
    const dv_str *endpoint = ctx;

    if (!text->field || strcmp(text->field, "endpoint") != 0)
        return false;
    *replacement = *endpoint;
    return true;
}

/* The record's message with our own endpoint. */
static bool with_endpoint(const struct dv_replay *replay, const struct dv_tape_record *record,
                          dv_str endpoint, dv_str *bytes, struct dv_err *err)
{
    struct ProtobufCMessage *message;
    char *encoded;
    size_t n;

    message = dv_record_decode(&record->r, replay->arena, err);
    if (!message)
        return dv_wrap(err, "the recorded registration");
    dv_pb_edit(message, set_endpoint, &endpoint, replay->arena);
    n = dv_pb_size(message);
    encoded = dv_arena_alloc(replay->arena, n, 1);
    dv_pb_encode(message, encoded, n);
    *bytes = (dv_str){encoded, n};
    return true;
}

/* The last registration: an answer of GetInfo or a request of Register. */
static const struct dv_tape_record *find_registration(const struct dv_replay *replay,
                                                      bool *is_watched)
{
    const struct dv_tape_record *found = NULL;

    for (size_t i = 0; i < replay->exchanges.v.n; i++) {
        const struct dv_exchange *exchange = replay->exchanges.v.v[i];
        dv_str method = dv_record_method_name(exchange->start->r.method);

        if (dv_str_eq(method, DV_STR("GetInfo")) && exchange->answers.n > 0) {
            found = exchange->answers.v[0].record;
            *is_watched = true;
        } else if (dv_str_eq(method, DV_STR("Register")) && exchange->request) {
            found = exchange->request;
            *is_watched = false;
        }
    }
    return found;
}

/* ---- through a socket that the agent watches ---- */

static void handle_get_info(void *ctx, struct dv_server_call *call, dv_str request)
{
    const struct dv_replay *replay = ctx;

    (void)request; /* has no fields */
    dv_server_call_reply(call, dv_h2_msg_copy(replay->info));
}

static void handle_notify(void *ctx, struct dv_server_call *call, dv_str request)
{
    const struct dv_replay *replay = ctx;
    const struct dv_record status = {
        .method = DV_STR("/pluginregistration.Registration/NotifyRegistrationStatus"),
        .message = request,
        .is_sent = true,
    };
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;

    dv_buf_init(&text, DV_RECORD_BYTES_MAX);
    dv_record_print_message(&status, &text);
    (void)printf("the agent says: %s\n", dv_cli_plain(dv_buf_str(&text), replay->arena));
    (void)fflush(stdout);
    dv_server_call_reply(call, dv_h2_msg_copy(DV_STR("")));
}

static struct dv_server *serve(struct dv_replay *replay, dv_str path,
                               const struct dv_service *services, size_t n_services,
                               struct dv_err *err)
{
    const struct dv_server_options options = {
        .name = replay->driver,
        .mode = SOCKET_MODE,
        .services = services,
        .n_services = n_services,
    };
    struct dv_server *server = dv_server_open(replay->loop, path, &options, err);

    if (server)
        replay->n_open++;
    return server;
}

static bool serve_registry(struct dv_replay *replay, dv_str path, struct dv_err *err)
{
    static const struct dv_method methods[] = {
        {"/pluginregistration.Registration/GetInfo",                  handle_get_info},
        {"/pluginregistration.Registration/NotifyRegistrationStatus", handle_notify  },
    };
    const struct dv_service service = {methods, DV_COUNT(methods), replay};

    replay->registry = serve(replay, path, &service, 1, err);
    return replay->registry != NULL;
}

/* ---- by a call ---- */

static void on_registered(struct dv_call *call, const struct dv_err *err)
{
    struct dv_replay *replay = DV_CONTAINER(call, struct dv_replay, register_call);

    if (err) {
        (void)dv_fail(&replay->err, err->code, "the agent does not register it: %s", err->msg);
        dv_loop_stop(replay->loop);
        return;
    }
    (void)printf("the agent has registered it\n");
    (void)fflush(stdout);
}

static bool call_register(struct dv_replay *replay, dv_str agent, const struct dv_record *recorded,
                          dv_str request, struct dv_err *err)
{
    const struct dv_channel_options options = {.name = agent};

    replay->agent = dv_channel_open(replay->loop, agent, &options, err);
    if (!replay->agent)
        return false;
    replay->n_open++;
    replay->register_call = (struct dv_call){
        .method = dv_str_to_c(recorded->method, replay->arena),
        .done = on_registered,
        .deadline_ms = dv_loop_now_ms(replay->loop) + REGISTER_TIMEOUT_MS,
        .waits_for_ready = true,
    };
    dv_call_start(replay->agent, &replay->register_call, dv_h2_msg_copy(request));
    return true;
}

/* ---- both ---- */

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

/* The driver's name as a part of a path: recordings come from anywhere, and may have any text. */
static dv_str file_name(const struct dv_replay *replay)
{
    char *name = dv_arena_alloc(replay->arena, replay->driver.n + 1, 1);

    for (size_t i = 0; i < replay->driver.n; i++)
        name[i] = (char)(is_plain(replay->driver.p[i]) ? replay->driver.p[i] : '_');
    if (name[0] == '.')
        name[0] = '_'; /* no way up */
    return (dv_str){name, replay->driver.n};
}

static void tell_path(const struct dv_replay *replay, dv_str path)
{
    (void)printf("%s serves on %.*s\n", dv_cli_plain(replay->driver, replay->arena), DV_FMT(path));
}

static bool make_dir(const struct dv_replay *replay, dv_str path, struct dv_err *err)
{
    if (access(dv_str_to_c(dv_path_dir(path), replay->arena), F_OK) < 0)
        return dv_fail(err, DV_NOT_FOUND,
                       "there is no %.*s: --kubelet-dir is not that of a davitd or a kubelet",
                       DV_FMT(dv_path_dir(path)));
    if (mkdir(dv_str_to_c(path, replay->arena), DIR_MODE) < 0 && errno != EEXIST)
        return dv_fail_errno(err, errno, "make %.*s", DV_FMT(path));
    return true;
}

static bool open_watched(struct dv_replay *replay, const struct dv_tape_record *record,
                         struct dv_err *err)
{
    dv_str root = replay->cli->kubelet_dir;
    dv_str name = file_name(replay);
    dv_str dir = dv_str_printf(replay->arena, "%.*s/plugins/%.*s", DV_FMT(root), DV_FMT(name));
    dv_str path = dv_str_printf(replay->arena, "%.*s/replay.sock", DV_FMT(dir));
    dv_str registry = dv_str_printf(replay->arena, "%.*s/plugins_registry/%.*s-replay.sock",
                                    DV_FMT(root), DV_FMT(name));

    if (!make_dir(replay, dir, err))
        return false;
    replay->server = serve(replay, path, replay->services, replay->n_methods, err);
    if (!replay->server || !with_endpoint(replay, record, path, &replay->info, err) ||
        !serve_registry(replay, registry, err))
        return false;
    tell_path(replay, path);
    return true;
}

static bool open_calling(struct dv_replay *replay, const struct dv_tape_record *record,
                         struct dv_err *err)
{
    dv_str dir =
        dv_str_printf(replay->arena, "%.*s/device-plugins", DV_FMT(replay->cli->kubelet_dir));
    dv_str name = dv_str_printf(replay->arena, "%.*s-replay.sock", DV_FMT(file_name(replay)));
    dv_str path = dv_str_printf(replay->arena, "%.*s/%.*s", DV_FMT(dir), DV_FMT(name));
    dv_str agent = dv_str_printf(replay->arena, "%.*s/kubelet.sock", DV_FMT(dir));
    dv_str request;

    replay->server = serve(replay, path, replay->services, replay->n_methods, err);
    if (!replay->server || !with_endpoint(replay, record, name, &request, err) ||
        !call_register(replay, agent, &record->r, request, err))
        return false;
    tell_path(replay, path);
    return true;
}

bool dv_replay_open(struct dv_replay *replay, struct dv_err *err)
{
    bool is_watched = false;
    const struct dv_tape_record *record = find_registration(replay, &is_watched);

    if (!record)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "the recording has no registration of %.*s: begin with a file that has it",
                       DV_FMT(replay->driver));
    if (replay->n_methods == 0)
        return dv_fail(err, DV_FAILED_PRECONDITION, "the recording has no calls to %.*s",
                       DV_FMT(replay->driver));
    return is_watched ? open_watched(replay, record, err) : open_calling(replay, record, err);
}
