/* cmd_describe.c - objects for people to read, each with its events. */
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/cli_api.h"
#include "cli/client/cli_kinds.h"
#include "cli/client/gather.h"
#include "cli/describe/cli_node_claims.h"
#include "cli/describe/describe.h"
#include "proto/davit_node_v1.pb-c.h"
#include "resource/resource.h"

#define OUTPUT_BYTES_MAX (256u << 20)

/* Describes the events. False: the server is gone. A user who may not see events still sees the
 * object. */
static bool describe_events(struct dv_cli_api *api, const struct dv_describe *d,
                            const struct dv_object *object)
{
    struct dv_cli_list list = {
        .kind = dv_kind(DV_KIND_EVENT),
        .namespace = object->meta->namespace,
        .fields = dv_str_printf(d->arena, "involvedObject.uid=%.*s", DV_FMT(object->meta->uid)),
    };
    const struct dv_api_event **events;
    size_t n_events = 0;

    if (object->kind->id == DV_KIND_EVENT || object->meta->uid.n == 0)
        return true;
    if (!dv_cli_api_list(api, &list, d->arena))
        return false;
    if (list.failure) {
        dv_describe_line(d, 0, "Events", "%.*s", DV_FMT(list.failure->message));
        return true;
    }
    events = DV_NEW_ARRAY(d->arena, const struct dv_api_event *, list.n_items);
    for (size_t i = 0; i < list.n_items; i++) {
        struct dv_object event;
        struct dv_err err;

        if (dv_cli_object_decode(list.kind, list.items[i], d->arena, &event, &err))
            events[n_events++] = event.value;
        else
            (void)dv_cli_complain("%s", err.msg);
    }
    dv_describe_events(d, events, n_events);
    return true;
}

/* Describes an object. False: the server is gone. */
static bool describe(struct dv_cli_api *api, const struct dv_cli_found *found, bool *has_failed)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_buf buf;
    const struct dv_describe d = {arena, &buf, dv_cli_now()};
    struct dv_object object;
    struct dv_err err;
    bool is_answered;

    if (!dv_cli_object_decode(found->kind, found->doc, arena, &object, &err)) {
        *has_failed = true;
        (void)dv_cli_complain("%s", err.msg);
        return true;
    }
    dv_buf_init(&buf, OUTPUT_BYTES_MAX);
    dv_describe_object(&d, &object, found->doc);
    if (found->kind->id == DV_KIND_CLAIM) {
        const NodeV1__Claim *here =
            dv_node_claims_find(dv_node_claims_ask(api->cli), object.meta->uid);

        if (here)
            dv_describe_node_claim(&d, here);
    }
    is_answered = describe_events(api, &d, &object);
    (void)fputs(dv_buf_c(&buf), stdout);
    dv_buf_fini(&buf);
    return is_answered;
}

static enum dv_exit describe_all(struct dv_cli_api *api, const struct dv_cli_targets *targets)
{
    struct dv_cli_gathered gathered;
    bool has_failed;

    if (!dv_cli_gather(api, targets, api->cli->arena, &gathered))
        return api->exit;
    has_failed = gathered.has_failed;
    if (gathered.n == 0 && !has_failed)
        dv_cli_gather_tell_none(api, targets);
    for (size_t i = 0; i < gathered.n; i++) {
        if (i > 0)
            (void)puts("\n");
        if (!describe(api, &gathered.v[i], &has_failed))
            return api->exit;
    }
    return has_failed ? DV_EXIT_FAILED : DV_EXIT_OK;
}

enum dv_exit dv_cmd_describe(struct dv_cli *cli)
{
    struct dv_cli_targets targets;
    struct dv_cli_api api;
    struct dv_err err;
    enum dv_exit exit;

    if (!dv_cli_gather_parse(cli, &targets, &err))
        return dv_cli_complain_usage("describe", "%s", err.msg);
    exit = dv_cli_api_open(cli, &api);
    if (exit != DV_EXIT_OK)
        return exit;
    exit = describe_all(&api, &targets);
    dv_cli_api_close(&api);
    return exit;
}
