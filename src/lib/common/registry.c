#include "lib/common/registry.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "lib/common/parts.h"
#include "lib/common/socket.h"
#include "lib/common/streams.h"
#include "pb/pb.h"
#include "proto/registration_v1.pb-c.h"

/* An agent never opens its stream anew; it registers again only when it finds a new file. After a
 * lost stream we wait, because an agent that starts finds the old file too, and then make one. The
 * pauses grow while agents watch and leave without a word; once one has accepted us they begin
 * anew, so that an agent that is restarted again and again is not kept waiting. */
#define BACKOFF_FIRST_MS 5000u
#define BACKOFF_MAX_MS 120000u
#define BACKOFF_JITTER_PER_MILLE 200u
/* The time between the agent's GetInfo and its stream: the agent's own steps take up to 16 s. */
#define WATCH_TIMEOUT_MS 30000u

static void on_timer(struct dv_timer *timer)
{
    struct dv_lib_registry *registry = DV_CONTAINER(timer, struct dv_lib_registry, timer);
    struct dv_err err;

    (void)dv_fail(&err, DV_UNAVAILABLE, "no agent watches; the socket is made anew");
    dv_lib_socket_remake(registry->options.socket, &err);
}

static void set_timer(struct dv_lib_registry *registry, uint64_t delay_ms)
{
    struct dv_loop *loop = registry->parts->loop;

    dv_timer_start(&registry->timer, loop, dv_loop_now_ms(loop) + delay_ms, on_timer);
}

static void handle_get_info(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct dv_lib_registry *registry = ctx;
    const struct dv_lib_registry_options *options = &registry->options;
    struct dv_arena *arena = dv_server_call_arena(call);
    RegistrationV1__PluginInfo info = REGISTRATION_V1__PLUGIN_INFO__INIT;
    const char **versions = DV_NEW_ARRAY(arena, const char *, options->n_versions);

    (void)request; /* has no fields */
    for (size_t i = 0; i < options->n_versions; i++)
        versions[i] = options->versions[i];
    info.type = dv_str_to_c(options->type, arena);
    info.name = dv_str_to_c(options->name, arena);
    /* Best left empty: the agent then uses the socket that it asked, whatever that path is in its
     * own mounts. */
    info.endpoint = dv_str_to_c(options->endpoint, arena);
    info.supported_versions = versions;
    info.n_supported_versions = options->n_versions;
    if (options->streams && options->streams->n == 0)
        set_timer(registry, WATCH_TIMEOUT_MS);
    dv_server_call_reply(call, dv_grpc_encode(&info.base));
}

static void handle_notify(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct dv_lib_registry *registry = ctx;
    const struct dv_lib_registry_options *options = &registry->options;
    RegistrationV1__RegistrationStatusResponse response =
        REGISTRATION_V1__REGISTRATION_STATUS_RESPONSE__INIT;
    const RegistrationV1__RegistrationStatus *status;
    struct dv_err err;

    status = dv_pb_decode(&registration_v1__registration_status__descriptor, request,
                          dv_server_call_arena(call), &err);
    if (!status) {
        dv_server_call_finish(call, &err);
        return;
    }
    if (status->plugin_registered) {
        registry->backoff_ms = BACKOFF_FIRST_MS;
        dv_server_call_reply(call, dv_grpc_encode(&response.base));
        options->registered(options->ctx);
        return;
    }
    /* the socket tries again by itself, with pauses of its own */
    dv_timer_cancel(&registry->timer);
    (void)dv_fail(&err, DV_UNKNOWN, "the agent refuses us: %s", status->error);
    dv_server_call_finish(call, &err);
    options->refused(options->ctx, &err);
}

const struct dv_method dv_lib_registry_methods[] = {
    {"/pluginregistration.Registration/GetInfo",                  handle_get_info},
    {"/pluginregistration.Registration/NotifyRegistrationStatus", handle_notify  },
};
const size_t dv_lib_n_registry_methods = DV_COUNT(dv_lib_registry_methods);

void dv_lib_registry_open(struct dv_lib_registry *registry, struct dv_lib_parts *parts,
                          const struct dv_lib_registry_options *options)
{
    *registry = (struct dv_lib_registry){
        .parts = parts,
        .options = *options,
        .backoff_ms = BACKOFF_FIRST_MS,
    };
}

void dv_lib_registry_close(struct dv_lib_registry *registry)
{
    dv_timer_cancel(&registry->timer);
}

void dv_lib_registry_watched(struct dv_lib_registry *registry)
{
    struct dv_err err;

    if (registry->options.streams->n > 0) {
        dv_timer_cancel(&registry->timer);
        return;
    }
    set_timer(registry, dv_jitter(registry->backoff_ms, BACKOFF_JITTER_PER_MILLE));
    registry->backoff_ms = dv_u64_min(registry->backoff_ms * 2, BACKOFF_MAX_MS);
    (void)dv_fail(&err, DV_UNAVAILABLE, "the agent watches no more");
    registry->options.lost(registry->options.ctx, &err);
}
