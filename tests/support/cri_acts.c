/* cri_acts.c - the methods of a cri_runtime. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/list.h"
#include "cri/cri.h"
#include "pb/pb.h"
#include "proto/cri_v1.pb-c.h"
#include "support/cri_runtime.h"
#include "support/cri_world.h"
#include "support/dvtest.h"

#define RUNNING CRI_V1__CONTAINER_STATE__CONTAINER_RUNNING
#define CREATED CRI_V1__CONTAINER_STATE__CONTAINER_CREATED
#define EXITED CRI_V1__CONTAINER_STATE__CONTAINER_EXITED
#define SIGTERMED 143
#define CANNOT_START 128

static bool has_image(const char *const images[8], const char *name)
{
    for (size_t i = 0; i < 8; i++)
        if (images[i] && strcmp(images[i], name) == 0)
            return true;
    return false;
}

/* ---- the methods ---- */

struct act {
    struct cri_runtime *runtime;
    const void *request;
    dv_str bytes; /* the request as it came, for what is kept */
    bool has_odd_state;
    struct cri_answer *answer;
    char *subject;
    size_t size;
};

static void say(const struct act *act, const char *text)
{
    (void)snprintf(act->subject, act->size, "%s", text);
}

static bool refuse(const struct act *act, enum dv_code code, const char *what, const char *id)
{
    return dv_fail(&act->answer->err, code, "%s \"%s\"", what, id);
}

static bool act_version(const struct act *act)
{
    struct dv_buf *buf = &act->answer->bytes;

    cri_world_add_c(buf, 1, act->runtime->version);
    cri_world_add_c(buf, 2, act->runtime->name);
    cri_world_add_c(buf, 3, act->runtime->runtime_version);
    cri_world_add_c(buf, 4, "v1");
    return true;
}

static void add_condition(struct dv_buf *buf, const char *type, bool status, const char *reason)
{
    size_t mark = dv_pb_begin(buf, 1);

    cri_world_add_c(buf, 1, type);
    cri_world_add_number(buf, 2, status);
    cri_world_add_c(buf, 3, status ? "" : reason);
    cri_world_add_c(buf, 4, status ? "" : "not today");
    dv_pb_end(buf, mark);
}

static bool act_status(const struct act *act)
{
    const CriV1__StatusRequest *request = act->request;
    struct cri_runtime *runtime = act->runtime;
    struct dv_buf *buf = &act->answer->bytes;
    size_t mark = dv_pb_begin(buf, 1);

    if (!runtime->has_no_conditions) {
        add_condition(buf, "RuntimeReady", !runtime->is_not_ready, "Broken");
        add_condition(buf, "NetworkReady", !runtime->has_no_network, "NetworkPluginNotReady");
    }
    dv_pb_end(buf, mark);
    if (request->verbose && runtime->config)
        cri_world_add_pair(buf, 2, "config", runtime->config);
    return true;
}

static bool act_runtime_config(const struct act *act)
{
    if (!act->runtime->has_runtime_config)
        return dv_fail(&act->answer->err, DV_UNIMPLEMENTED, "unknown method RuntimeConfig");
    dv_pb_end(&act->answer->bytes, dv_pb_begin(&act->answer->bytes, 1));
    return true;
}

static bool act_run(const struct act *act)
{
    struct cri_runtime *runtime = act->runtime;
    struct dv_arena *arena = dv_arena_new();
    struct cri_sandbox *sandbox = DV_NEW(arena, struct cri_sandbox);
    const CriV1__RunPodSandboxRequest *request;
    const CriV1__LinuxSandboxSecurityContext *security;
    struct dv_link *link;
    struct dv_err err;

    request = dv_pb_decode(&cri_v1__run_pod_sandbox_request__descriptor, act->bytes, arena, &err);
    assert_non_null(request->config);
    assert_non_null(request->config->metadata);
    say(act, request->config->metadata->name);
    DV_LIST_EACH (&runtime->sandboxes, link) {
        const CriV1__PodSandboxMetadata *other =
            DV_CONTAINER(link, struct cri_sandbox, link)->config->metadata;

        if (strcmp(other->uid, request->config->metadata->uid) == 0 &&
            other->attempt == request->config->metadata->attempt) {
            dv_arena_free(arena);
            return dv_fail(&act->answer->err, DV_UNKNOWN,
                           "failed to reserve sandbox name: it is reserved");
        }
    }
    sandbox->arena = arena;
    sandbox->config = request->config;
    sandbox->handler = request->runtime_handler;
    sandbox->is_ready = true;
    sandbox->created_at = cri_world_now_ns(runtime);
    cri_world_make_id(runtime, sandbox->id, 'a');
    security = request->config->linux ? request->config->linux->security_context : NULL;
    if (!security || !security->namespace_options ||
        security->namespace_options->network != CRI_V1__NAMESPACE_MODE__NODE)
        (void)snprintf(sandbox->ip, sizeof(sandbox->ip), "10.1.%u.%u", runtime->n_made / 256 % 256,
                       runtime->n_made % 256);
    dv_list_push(&runtime->sandboxes, &sandbox->link);
    cri_world_add_c(&act->answer->bytes, 1, sandbox->id);
    return true;
}

static bool act_stop_sandbox(const struct act *act)
{
    const CriV1__StopPodSandboxRequest *request = act->request;
    struct cri_sandbox *sandbox = cri_world_find_sandbox(act->runtime, request->pod_sandbox_id);

    if (!sandbox)
        return refuse(act, DV_NOT_FOUND, "an error occurred when try to find sandbox",
                      request->pod_sandbox_id);
    say(act, sandbox->config->metadata->name);
    cri_runtime_end_sandbox(act->runtime, sandbox);
    return true;
}

static bool act_remove_sandbox(const struct act *act)
{
    const CriV1__RemovePodSandboxRequest *request = act->request;
    struct cri_sandbox *sandbox = cri_world_find_sandbox(act->runtime, request->pod_sandbox_id);

    if (!sandbox)
        return true;
    say(act, sandbox->config->metadata->name);
    if (sandbox->is_ready)
        return refuse(act, DV_UNKNOWN, "failed to remove running sandbox", sandbox->id);
    cri_world_remove_sandbox(act->runtime, sandbox);
    return true;
}

static bool act_sandbox_status(const struct act *act)
{
    const CriV1__PodSandboxStatusRequest *request = act->request;
    struct cri_sandbox *sandbox = cri_world_find_sandbox(act->runtime, request->pod_sandbox_id);
    size_t mark;

    if (!sandbox)
        return refuse(act, DV_NOT_FOUND, "an error occurred when try to find sandbox",
                      request->pod_sandbox_id);
    say(act, sandbox->config->metadata->name);
    mark = dv_pb_begin(&act->answer->bytes, 1);
    cri_world_add_sandbox(&act->answer->bytes, sandbox, true, act->has_odd_state);
    dv_pb_end(&act->answer->bytes, mark);
    return true;
}

/* Whether a label selector, which davit uses for uids alone, chooses the pod. */
static bool is_chosen(const char *selector, const struct cri_sandbox *sandbox)
{
    return !selector || strcmp(selector, sandbox->config->metadata->uid) == 0;
}

static bool act_list_sandboxes(const struct act *act)
{
    const CriV1__ListPodSandboxRequest *request = act->request;
    const char *selector = request->filter && request->filter->n_label_selector > 0
                               ? request->filter->label_selector[0]->value
                               : NULL;
    struct dv_link *link;

    say(act, selector ? selector : "");
    DV_LIST_EACH (&act->runtime->sandboxes, link) {
        const struct cri_sandbox *sandbox = DV_CONTAINER(link, struct cri_sandbox, link);
        size_t mark;

        if (!is_chosen(selector, sandbox))
            continue;
        mark = dv_pb_begin(&act->answer->bytes, 1);
        cri_world_add_sandbox(&act->answer->bytes, sandbox, false, act->has_odd_state);
        dv_pb_end(&act->answer->bytes, mark);
    }
    return true;
}

static bool act_list_containers(const struct act *act)
{
    const CriV1__ListContainersRequest *request = act->request;
    const char *selector = request->filter && request->filter->n_label_selector > 0
                               ? request->filter->label_selector[0]->value
                               : NULL;
    struct dv_link *link;

    say(act, selector ? selector : "");
    DV_LIST_EACH (&act->runtime->containers, link) {
        const struct cri_container *container = DV_CONTAINER(link, struct cri_container, link);
        size_t mark;

        if (!is_chosen(selector, container->sandbox))
            continue;
        mark = dv_pb_begin(&act->answer->bytes, 1);
        cri_world_add_listed_container(&act->answer->bytes, container, act->has_odd_state);
        dv_pb_end(&act->answer->bytes, mark);
    }
    return true;
}

/* ---- containers ---- */

static bool act_create(const struct act *act)
{
    struct cri_runtime *runtime = act->runtime;
    struct dv_arena *arena = dv_arena_new();
    struct cri_container *container = DV_NEW(arena, struct cri_container);
    const CriV1__CreateContainerRequest *request;
    struct dv_link *link;
    struct dv_err err;

    container->arena = arena;
    request = dv_pb_decode(&cri_v1__create_container_request__descriptor, act->bytes, arena, &err);
    container->config = request->config;
    say(act, request->config->metadata->name);
    container->sandbox = cri_world_find_sandbox(runtime, request->pod_sandbox_id);
    if (!container->sandbox || !container->sandbox->is_ready)
        (void)refuse(act, container->sandbox ? DV_UNKNOWN : DV_NOT_FOUND,
                     "failed to find a ready sandbox", request->pod_sandbox_id);
    else if (!has_image(runtime->images, request->config->image->image))
        (void)refuse(act, DV_UNKNOWN, "failed to get image from containerd",
                     request->config->image->image);
    DV_LIST_EACH (&runtime->containers, link) {
        const struct cri_container *other = DV_CONTAINER(link, struct cri_container, link);

        if (other->sandbox == container->sandbox &&
            strcmp(other->config->metadata->name, container->config->metadata->name) == 0 &&
            other->config->metadata->attempt == container->config->metadata->attempt)
            (void)refuse(act, DV_UNKNOWN, "failed to reserve container name; it is reserved for",
                         other->id);
    }
    if (act->answer->err.code != DV_OK) {
        dv_arena_free(arena);
        return false;
    }
    container->state = CREATED;
    container->created_at = cri_world_now_ns(runtime);
    cri_world_make_id(runtime, container->id, 'c');
    dv_list_push(&runtime->containers, &container->link);
    cri_runtime_tell(runtime, container, CRI_V1__CONTAINER_EVENT_TYPE__CONTAINER_CREATED_EVENT);
    cri_world_add_c(&act->answer->bytes, 1, container->id);
    return true;
}

/* The container that the request is about; NULL: there is none, and the call fails. */
static struct cri_container *find(const struct act *act, const char *id)
{
    struct cri_container *container = cri_world_find_container(act->runtime, id);

    if (container)
        say(act, container->config->metadata->name);
    else
        (void)refuse(act, DV_NOT_FOUND, "an error occurred when try to find container", id);
    return container;
}

static bool is_command(const struct cri_container *container, const char *word)
{
    return container->config->n_command > 0 && strcmp(container->config->command[0], word) == 0;
}

static bool act_start(const struct act *act)
{
    const CriV1__StartContainerRequest *request = act->request;
    struct cri_container *container = find(act, request->container_id);
    const CriV1__ContainerConfig *config = container ? container->config : NULL;

    if (!container)
        return false;
    if (container->state != CREATED || !container->sandbox->is_ready)
        return refuse(act, DV_UNKNOWN, "container is in another state than CREATED", container->id);
    container->started_at = cri_world_now_ns(act->runtime);
    if (is_command(container, "broken")) {
        cri_runtime_end(act->runtime, container, CANNOT_START, "StartError");
        return refuse(act, DV_UNKNOWN, "failed to create containerd task: exec", container->id);
    }
    container->state = RUNNING;
    cri_runtime_tell(act->runtime, container,
                     CRI_V1__CONTAINER_EVENT_TYPE__CONTAINER_STARTED_EVENT);
    if (is_command(container, "exit")) {
        int code = config->n_command > 1 ? atoi(config->command[1]) : 0;

        cri_runtime_end(act->runtime, container, code, code == 0 ? "Completed" : "Error");
    }
    return true;
}

static bool act_stop(const struct act *act)
{
    const CriV1__StopContainerRequest *request = act->request;
    struct cri_container *container = find(act, request->container_id);

    if (!container)
        return false;
    container->n_stops++;
    if (container->state == RUNNING && is_command(container, "stubborn")) {
        act->answer->after_ms = (uint64_t)request->timeout * 1000;
        act->answer->killed = container;
    } else if (container->state == RUNNING) {
        cri_runtime_end(act->runtime, container, SIGTERMED, "Error");
    }
    return true;
}

static bool act_remove(const struct act *act)
{
    const CriV1__RemoveContainerRequest *request = act->request;
    struct cri_container *container = cri_world_find_container(act->runtime, request->container_id);

    if (!container)
        return true;
    say(act, container->config->metadata->name);
    if (container->state == RUNNING)
        return refuse(act, DV_UNKNOWN, "container is still running", container->id);
    cri_world_remove_container(act->runtime, container);
    return true;
}

static bool act_container_status(const struct act *act)
{
    const CriV1__ContainerStatusRequest *request = act->request;
    const struct cri_container *container = find(act, request->container_id);
    size_t mark;

    if (!container)
        return false;
    mark = dv_pb_begin(&act->answer->bytes, 1);
    cri_world_add_container_status(&act->answer->bytes, container, act->has_odd_state);
    dv_pb_end(&act->answer->bytes, mark);
    return true;
}

static bool act_exec_sync(const struct act *act)
{
    const CriV1__ExecSyncRequest *request = act->request;
    const struct cri_container *container = find(act, request->container_id);

    if (!container)
        return false;
    if (container->state != RUNNING)
        return refuse(act, DV_UNKNOWN, "container is not running", container->id);
    cri_world_add_c(&act->answer->bytes, 1, "out");
    if (act->runtime->exec)
        cri_world_add_number(&act->answer->bytes, 3,
                             act->runtime->exec(act->runtime->ctx, container, request));
    return true;
}

/* ---- images ---- */

static bool act_image_status(const struct act *act)
{
    const CriV1__ImageStatusRequest *request = act->request;
    size_t mark;

    say(act, request->image->image);
    if (!has_image(act->runtime->images, request->image->image))
        return true; /* an empty answer */
    mark = dv_pb_begin(&act->answer->bytes, 1);
    cri_world_add_c(&act->answer->bytes, 1, request->image->image);
    cri_world_add_c(&act->answer->bytes, 2, request->image->image);
    dv_pb_end(&act->answer->bytes, mark);
    return true;
}

static bool act_list_images(const struct act *act)
{
    for (size_t i = 0; i < DV_COUNT(act->runtime->images); i++) {
        size_t mark;

        if (!act->runtime->images[i])
            continue;
        mark = dv_pb_begin(&act->answer->bytes, 1);
        cri_world_add_c(&act->answer->bytes, 1, act->runtime->images[i]);
        cri_world_add_c(&act->answer->bytes, 2, act->runtime->images[i]);
        cri_world_add_number(&act->answer->bytes, 4, CRI_IMAGE_BYTES);
        cri_world_add_number(&act->answer->bytes, 8,
                             act->runtime->images[i] == act->runtime->pinned);
        dv_pb_end(&act->answer->bytes, mark);
    }
    return true;
}

static bool act_image_fs_info(const struct act *act)
{
    struct dv_buf *buf = &act->answer->bytes;
    size_t system;
    size_t id;

    if (!act->runtime->image_dir)
        return true;
    system = dv_pb_begin(buf, 1);
    id = dv_pb_begin(buf, 2);
    cri_world_add_c(buf, 1, act->runtime->image_dir);
    dv_pb_end(buf, id);
    dv_pb_end(buf, system);
    return true;
}

static bool act_pull(const struct act *act)
{
    const CriV1__PullImageRequest *request = act->request;
    struct cri_runtime *runtime = act->runtime;

    say(act, request->image->image);
    for (size_t i = 0; i < DV_COUNT(runtime->pullable); i++) {
        const char *name = runtime->pullable[i];

        if (!name || strcmp(name, request->image->image) != 0)
            continue;
        for (size_t j = 0; j < DV_COUNT(runtime->images) && !has_image(runtime->images, name); j++)
            if (!runtime->images[j])
                runtime->images[j] = name;
        cri_world_add_c(&act->answer->bytes, 1, name);
        return true;
    }
    return refuse(act, DV_NOT_FOUND, "failed to pull and unpack image", request->image->image);
}

static bool act_remove_image(const struct act *act)
{
    const CriV1__RemoveImageRequest *request = act->request;

    say(act, request->image->image);
    for (size_t i = 0; i < DV_COUNT(act->runtime->images); i++)
        if (act->runtime->images[i] && strcmp(act->runtime->images[i], request->image->image) == 0)
            act->runtime->images[i] = NULL;
    return true;
}

static bool act_nothing(const struct act *act)
{
    (void)act;
    return true;
}

static const struct {
    const ProtobufCMessageDescriptor *type;
    bool (*act)(const struct act *act);
} methods[] = {
    [DV_CRI_VERSION] = {&cri_v1__version_request__descriptor,                      act_version        },
    [DV_CRI_STATUS] = {&cri_v1__status_request__descriptor,                       act_status         },
    [DV_CRI_RUNTIME_CONFIG] = {&cri_v1__runtime_config_request__descriptor,               act_runtime_config },
    [DV_CRI_UPDATE_RUNTIME_CONFIG] = {&cri_v1__update_runtime_config_request__descriptor,
                        act_nothing                                                                   },
    [DV_CRI_RUN_POD_SANDBOX] = {&cri_v1__run_pod_sandbox_request__descriptor,              act_run            },
    [DV_CRI_STOP_POD_SANDBOX] = {&cri_v1__stop_pod_sandbox_request__descriptor,             act_stop_sandbox   },
    [DV_CRI_REMOVE_POD_SANDBOX] = {&cri_v1__remove_pod_sandbox_request__descriptor,
                        act_remove_sandbox                                                            },
    [DV_CRI_POD_SANDBOX_STATUS] = {&cri_v1__pod_sandbox_status_request__descriptor,
                        act_sandbox_status                                                            },
    [DV_CRI_LIST_POD_SANDBOX] = {&cri_v1__list_pod_sandbox_request__descriptor,             act_list_sandboxes },
    [DV_CRI_CREATE_CONTAINER] = {&cri_v1__create_container_request__descriptor,             act_create         },
    [DV_CRI_START_CONTAINER] = {&cri_v1__start_container_request__descriptor,              act_start          },
    [DV_CRI_STOP_CONTAINER] = {&cri_v1__stop_container_request__descriptor,               act_stop           },
    [DV_CRI_REMOVE_CONTAINER] = {&cri_v1__remove_container_request__descriptor,             act_remove         },
    [DV_CRI_LIST_CONTAINERS] = {&cri_v1__list_containers_request__descriptor,              act_list_containers},
    [DV_CRI_CONTAINER_STATUS] = {&cri_v1__container_status_request__descriptor,
                        act_container_status                                                          },
    [DV_CRI_UPDATE_CONTAINER_RESOURCES] = {&cri_v1__update_container_resources_request__descriptor,
                        act_nothing                                                                   },
    [DV_CRI_UPDATE_POD_SANDBOX_RESOURCES] =
        {&cri_v1__update_pod_sandbox_resources_request__descriptor, act_nothing        },
    [DV_CRI_REOPEN_CONTAINER_LOG] = {&cri_v1__reopen_container_log_request__descriptor,
                        act_nothing                                                                   },
    [DV_CRI_LIST_CONTAINER_STATS] = {&cri_v1__list_container_stats_request__descriptor,
                        act_nothing                                                                   },
    [DV_CRI_LIST_POD_SANDBOX_STATS] = {&cri_v1__list_pod_sandbox_stats_request__descriptor,
                        act_nothing                                                                   },
    [DV_CRI_EXEC_SYNC] = {&cri_v1__exec_sync_request__descriptor,                    act_exec_sync      },
    [DV_CRI_EXEC] = {&cri_v1__exec_request__descriptor,                         act_nothing        },
    [DV_CRI_ATTACH] = {&cri_v1__attach_request__descriptor,                       act_nothing        },
    [DV_CRI_PORT_FORWARD] = {&cri_v1__port_forward_request__descriptor,                 act_nothing        },
    [DV_CRI_LIST_IMAGES] = {&cri_v1__list_images_request__descriptor,                  act_list_images    },
    [DV_CRI_IMAGE_STATUS] = {&cri_v1__image_status_request__descriptor,                 act_image_status   },
    [DV_CRI_PULL_IMAGE] = {&cri_v1__pull_image_request__descriptor,                   act_pull           },
    [DV_CRI_REMOVE_IMAGE] = {&cri_v1__remove_image_request__descriptor,                 act_remove_image   },
    [DV_CRI_IMAGE_FS_INFO] = {&cri_v1__image_fs_info_request__descriptor,                act_image_fs_info  },
};

void cri_world_call(struct cri_runtime *runtime, enum dv_cri_method method, dv_str request,
                    bool has_odd_state, struct cri_answer *answer, char *subject, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_err err;
    const struct act act = {
        .runtime = runtime,
        .request = dv_pb_decode(methods[method].type, request, arena, &err),
        .bytes = request,
        .has_odd_state = has_odd_state,
        .answer = answer,
        .subject = subject,
        .size = size,
    };

    assert_non_null(act.request);
    (void)dv_succeed(&answer->err);
    if (!methods[method].act(&act))
        assert_int_not_equal(answer->err.code, DV_OK);
}
