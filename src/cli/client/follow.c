#include "cli/client/follow.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/client/cli_api.h"
#include "cli/client/gather.h"
#include "resource/resource.h"
#include "json/json.h"

/* The server ends a watch after this, and we go on with the next one. */
#define WATCH_SECONDS DV_STR("300")
/* The pause between a watch that ended at once and the next. */
#define PAUSE_MS 1000u
#define VERSION_BYTES_MAX 256u

struct following {
    struct dv_cli_api *api;
    const struct dv_cli_follow *follow;
    dv_str fields;
    struct dv_buf version; /* where the watch is */
    bool is_expired;       /* the server has forgotten that point */
    bool has_failed;       /* told, if there is somebody to tell */
    bool has_come;         /* something, in this watch */
};

static void set_version(struct following *following, dv_str version)
{
    if (version.n == 0)
        return;
    dv_buf_clear(&following->version);
    dv_buf_add(&following->version, version);
}

static bool tell(struct following *following, struct dv_json *doc, struct dv_arena *arena)
{
    const struct dv_cli_follow *follow = following->follow;
    struct dv_object object;
    struct dv_err err;

    if (!dv_cli_object_decode(follow->target.kind, doc, arena, &object, &err)) {
        (void)dv_cli_complain("%s", err.msg);
        following->has_failed = true;
        return false;
    }
    follow->changed(follow->ctx, &object, doc, arena);
    return true;
}

static bool pause_now(struct following *following)
{
    if (following->follow->pause(following->follow->ctx))
        return true;
    following->has_failed = true;
    return false;
}

static bool read_error(struct following *following, const struct dv_json *status)
{
    const struct dv_json *code = dv_json_get(status, DV_STR("code"));
    dv_str message = dv_cli_text(status, "", "message");

    following->is_expired = dv_str_eq(dv_json_number_text(code), DV_STR("410"));
    following->has_failed = !following->is_expired;
    if (following->has_failed)
        (void)dv_cli_complain("watch: %.*s", DV_FMT(message));
    return false;
}

static bool on_line(void *ctx, dv_str text)
{
    struct following *following = ctx;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_err err;
    const struct dv_json *event = dv_json_parse(text, NULL, arena, &err);
    struct dv_json *doc = dv_json_get(event, DV_STR("object"));
    dv_str type;

    if (!event) {
        (void)dv_cli_complain("watch: the server's event: %s", err.msg);
        following->has_failed = true;
        return false;
    }
    following->has_come = true;
    type = dv_cli_text(event, "", "type");
    if (dv_str_eq(type, DV_STR("ERROR")))
        return read_error(following, doc);
    set_version(following, dv_cli_text(doc, "metadata", "resourceVersion"));
    if (dv_str_eq(type, DV_STR("BOOKMARK")))
        return true;
    return tell(following, doc, arena) && pause_now(following);
}

static enum dv_exit list(struct following *following)
{
    struct dv_cli_api *api = following->api;
    const struct dv_cli_follow *follow = following->follow;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cli_list all = {
        .kind = follow->target.kind,
        .namespace = dv_cli_gather_namespace(api, follow->target.kind),
        .labels = api->cli->labels,
        .fields = following->fields,
    };

    if (!dv_cli_api_list(api, &all, arena))
        return api->exit;
    if (all.failure)
        return dv_cli_api_complain(api, all.failure, follow->target.kind->plural);
    set_version(following, all.resource_version);
    for (size_t i = 0; i < all.n_items; i++)
        if (!tell(following, all.items[i], arena))
            return DV_EXIT_FAILED;
    return pause_now(following) ? DV_EXIT_OK : DV_EXIT_FAILED;
}

/* Watches until it ends in one way or another. */
static enum dv_exit watch(struct following *following)
{
    struct dv_cli_api *api = following->api;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str version = dv_str_copy(dv_buf_str(&following->version), arena);
    const struct dv_cli_param params[] = {
        {"watch",               DV_STR("1")      },
        {"allowWatchBookmarks", DV_STR("true")   },
        {"timeoutSeconds",      WATCH_SECONDS    },
        {"resourceVersion",     version          },
        {"labelSelector",       api->cli->labels },
        {"fieldSelector",       following->fields},
    };
    const struct dv_cli_ask ask = {
        .method = DV_STR("GET"),
        .kind = following->follow->target.kind,
        .namespace = dv_cli_gather_namespace(api, following->follow->target.kind),
        .params = params,
        .n_params = DV_COUNT(params),
    };
    struct dv_cli_answer answer;

    following->has_come = false;
    if (!dv_cli_api_follow(api, &ask, on_line, following, arena, &answer))
        return api->exit;
    if (answer.failure && answer.failure->code == 410)
        following->is_expired = true;
    else if (answer.failure)
        return dv_cli_api_complain(api, answer.failure, DV_STR("watch"));
    if (!following->has_come && !following->has_failed)
        dv_cli_api_sleep(api, PAUSE_MS);
    return following->has_failed ? DV_EXIT_FAILED : DV_EXIT_OK;
}

enum dv_exit dv_cli_follow(struct dv_cli_api *api, const struct dv_cli_follow *follow)
{
    struct following following = {
        .api = api,
        .follow = follow,
        .fields = api->cli->fields,
        .is_expired = true,
    };
    enum dv_exit exit = DV_EXIT_OK;

    if (follow->target.name.n)
        following.fields =
            dv_str_printf(api->cli->arena, "metadata.name=%.*s", DV_FMT(follow->target.name));
    dv_buf_init(&following.version, VERSION_BYTES_MAX);
    while (exit == DV_EXIT_OK) {
        if (following.is_expired) {
            following.is_expired = false;
            exit = list(&following);
        } else {
            exit = watch(&following);
        }
    }
    dv_buf_fini(&following.version);
    return exit;
}
