#include "support/cri_world.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/list.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "proto/cri_v1.pb-c.h"
#include "support/dvtest.h"

#define RUNNING CRI_V1__CONTAINER_STATE__CONTAINER_RUNNING
#define EXITED CRI_V1__CONTAINER_STATE__CONTAINER_EXITED
#define ODD_STATE 77
#define SIGKILLED 137

/* ---- wire ---- */

void cri_world_add_c(struct dv_buf *buf, uint32_t number, const char *text)
{
    if (text && text[0])
        dv_pb_add_bytes(buf, number, dv_str_from_c(text));
}

void cri_world_add_number(struct dv_buf *buf, uint32_t number, int64_t value)
{
    if (value != 0)
        dv_pb_add_number(buf, number, (uint64_t)value);
}

void cri_world_add_pair(struct dv_buf *buf, uint32_t number, const char *key, const char *value)
{
    size_t mark = dv_pb_begin(buf, number);

    cri_world_add_c(buf, 1, key);
    cri_world_add_c(buf, 2, value);
    dv_pb_end(buf, mark);
}

static void add_image(struct dv_buf *buf, uint32_t number, const char *image)
{
    size_t mark = dv_pb_begin(buf, number);

    cri_world_add_c(buf, 1, image);
    dv_pb_end(buf, mark);
}

static void add_sandbox_metadata(struct dv_buf *buf, const struct cri_sandbox *sandbox)
{
    const CriV1__PodSandboxMetadata *metadata = sandbox->config->metadata;
    size_t mark = dv_pb_begin(buf, 2);

    cri_world_add_c(buf, 1, metadata->name);
    cri_world_add_c(buf, 2, metadata->uid);
    cri_world_add_c(buf, 3, metadata->namespace_);
    cri_world_add_number(buf, 4, metadata->attempt);
    dv_pb_end(buf, mark);
}

void cri_world_add_sandbox(struct dv_buf *buf, const struct cri_sandbox *sandbox, bool is_status,
                           bool has_odd_state)
{
    const CriV1__PodSandboxConfig *config = sandbox->config;
    size_t mark;

    cri_world_add_c(buf, 1, sandbox->id);
    add_sandbox_metadata(buf, sandbox);
    cri_world_add_number(buf, 3, has_odd_state ? ODD_STATE : !sandbox->is_ready);
    cri_world_add_number(buf, 4, sandbox->created_at);
    if (is_status) {
        mark = dv_pb_begin(buf, 5);
        cri_world_add_c(buf, 1, sandbox->ip);
        dv_pb_end(buf, mark);
    }
    for (size_t i = 0; i < config->n_labels; i++)
        cri_world_add_pair(buf, is_status ? 7 : 5, config->labels[i]->key,
                           config->labels[i]->value);
    for (size_t i = 0; i < config->n_annotations; i++)
        cri_world_add_pair(buf, is_status ? 8 : 6, config->annotations[i]->key,
                           config->annotations[i]->value);
    cri_world_add_c(buf, is_status ? 9 : 7, sandbox->handler);
}

static void add_container_metadata(struct dv_buf *buf, uint32_t number,
                                   const struct cri_container *container)
{
    size_t mark = dv_pb_begin(buf, number);

    cri_world_add_c(buf, 1, container->config->metadata->name);
    cri_world_add_number(buf, 2, container->config->metadata->attempt);
    dv_pb_end(buf, mark);
}

void cri_world_add_listed_container(struct dv_buf *buf, const struct cri_container *container,
                                    bool has_odd_state)
{
    const CriV1__ContainerConfig *config = container->config;

    cri_world_add_c(buf, 1, container->id);
    cri_world_add_c(buf, 2, container->sandbox->id);
    add_container_metadata(buf, 3, container);
    add_image(buf, 4, config->image->image);
    cri_world_add_c(buf, 5, config->image->image);
    cri_world_add_number(buf, 6, has_odd_state ? ODD_STATE : container->state);
    cri_world_add_number(buf, 7, container->created_at);
    for (size_t i = 0; i < config->n_labels; i++)
        cri_world_add_pair(buf, 8, config->labels[i]->key, config->labels[i]->value);
    for (size_t i = 0; i < config->n_annotations; i++)
        cri_world_add_pair(buf, 9, config->annotations[i]->key, config->annotations[i]->value);
}

void cri_world_add_container_status(struct dv_buf *buf, const struct cri_container *container,
                                    bool has_odd_state)
{
    const CriV1__ContainerConfig *config = container->config;
    char log_path[512];

    cri_world_add_c(buf, 1, container->id);
    add_container_metadata(buf, 2, container);
    cri_world_add_number(buf, 3, has_odd_state ? ODD_STATE : container->state);
    cri_world_add_number(buf, 4, container->created_at);
    cri_world_add_number(buf, 5, container->started_at);
    cri_world_add_number(buf, 6, container->finished_at);
    cri_world_add_number(buf, 7, container->exit_code);
    add_image(buf, 8, config->image->image);
    cri_world_add_c(buf, 9, config->image->image);
    cri_world_add_c(buf, 10, container->reason);
    for (size_t i = 0; i < config->n_labels; i++)
        cri_world_add_pair(buf, 12, config->labels[i]->key, config->labels[i]->value);
    for (size_t i = 0; i < config->n_annotations; i++)
        cri_world_add_pair(buf, 13, config->annotations[i]->key, config->annotations[i]->value);
    for (size_t i = 0; i < config->n_mounts; i++) {
        size_t mark = dv_pb_begin(buf, 14);

        cri_world_add_c(buf, 1, config->mounts[i]->container_path);
        cri_world_add_c(buf, 2, config->mounts[i]->host_path);
        dv_pb_end(buf, mark);
    }
    (void)snprintf(log_path, sizeof(log_path), "%s/%s", container->sandbox->config->log_directory,
                   config->log_path);
    cri_world_add_c(buf, 15, log_path);
}

void cri_world_print_event(const struct cri_container *container, int type, struct dv_buf *buf)
{
    size_t mark;

    cri_world_add_c(buf, 1, container->id);
    cri_world_add_number(buf, 2, type);
    cri_world_add_number(buf, 3, container->created_at);
    mark = dv_pb_begin(buf, 4);
    cri_world_add_sandbox(buf, container->sandbox, true, false);
    dv_pb_end(buf, mark);
}

/* ---- what there is ---- */

struct cri_sandbox *cri_world_find_sandbox(struct cri_runtime *runtime, const char *id)
{
    struct dv_link *link;

    DV_LIST_EACH (&runtime->sandboxes, link) {
        struct cri_sandbox *sandbox = DV_CONTAINER(link, struct cri_sandbox, link);

        if (strcmp(sandbox->id, id) == 0)
            return sandbox;
    }
    return NULL;
}

struct cri_container *cri_world_find_container(struct cri_runtime *runtime, const char *id)
{
    struct dv_link *link;

    DV_LIST_EACH (&runtime->containers, link) {
        struct cri_container *container = DV_CONTAINER(link, struct cri_container, link);

        if (strcmp(container->id, id) == 0)
            return container;
    }
    return NULL;
}

struct cri_container *cri_runtime_container(struct cri_runtime *runtime, const char *name)
{
    struct cri_container *found = NULL;
    struct dv_link *link;

    DV_LIST_EACH (&runtime->containers, link) {
        struct cri_container *container = DV_CONTAINER(link, struct cri_container, link);

        if (strcmp(container->config->metadata->name, name) == 0)
            found = container;
    }
    return found;
}

struct cri_sandbox *cri_runtime_sandbox(struct cri_runtime *runtime, const char *pod)
{
    struct cri_sandbox *found = NULL;
    struct dv_link *link;

    DV_LIST_EACH (&runtime->sandboxes, link) {
        struct cri_sandbox *sandbox = DV_CONTAINER(link, struct cri_sandbox, link);

        if (strcmp(sandbox->config->metadata->name, pod) == 0)
            found = sandbox;
    }
    return found;
}

static size_t count(const struct dv_list *list)
{
    const struct dv_link *link;
    size_t n = 0;

    DV_LIST_EACH (list, link)
        n++;
    return n;
}

size_t cri_runtime_n_containers(const struct cri_runtime *runtime)
{
    return count(&runtime->containers);
}

size_t cri_runtime_n_sandboxes(const struct cri_runtime *runtime)
{
    return count(&runtime->sandboxes);
}

int64_t cri_world_now_ns(struct cri_runtime *runtime)
{
    return (int64_t)dv_clock_wall_ns(dv_loop_clock(runtime->loop));
}

void cri_world_make_id(struct cri_runtime *runtime, char id[65], char first)
{
    (void)snprintf(id, 65, "%c%063x", first, ++runtime->n_made);
}

void cri_runtime_end(struct cri_runtime *runtime, struct cri_container *container, int exit_code,
                     const char *reason)
{
    if (container->state == EXITED)
        return;
    container->state = EXITED;
    container->finished_at = cri_world_now_ns(runtime);
    container->exit_code = exit_code;
    container->reason = reason;
    cri_runtime_tell(runtime, container, CRI_V1__CONTAINER_EVENT_TYPE__CONTAINER_STOPPED_EVENT);
}

void cri_runtime_end_sandbox(struct cri_runtime *runtime, struct cri_sandbox *sandbox)
{
    struct dv_link *link;

    sandbox->is_ready = false;
    DV_LIST_EACH (&runtime->containers, link) {
        struct cri_container *container = DV_CONTAINER(link, struct cri_container, link);

        if (container->sandbox == sandbox && container->state == RUNNING)
            cri_runtime_end(runtime, container, SIGKILLED, "Error");
    }
}

void cri_world_remove_container(struct cri_runtime *runtime, struct cri_container *container)
{
    dv_link_remove(&container->link);
    cri_runtime_tell(runtime, container, CRI_V1__CONTAINER_EVENT_TYPE__CONTAINER_DELETED_EVENT);
    dv_arena_free(container->arena);
}

void cri_world_remove_sandbox(struct cri_runtime *runtime, struct cri_sandbox *sandbox)
{
    struct dv_list all;
    struct dv_link *link;

    dv_list_init(&all);
    dv_list_move_all(&all, &runtime->containers);
    while ((link = dv_list_shift(&all)) != NULL) {
        struct cri_container *container = DV_CONTAINER(link, struct cri_container, link);

        if (container->sandbox == sandbox)
            cri_world_remove_container(runtime, container);
        else
            dv_list_push(&runtime->containers, link);
    }
    dv_link_remove(&sandbox->link);
    dv_arena_free(sandbox->arena);
}

void cri_world_remove_all(struct cri_runtime *runtime)
{
    struct dv_link *link;

    while ((link = dv_list_first(&runtime->sandboxes)) != NULL)
        cri_world_remove_sandbox(runtime, DV_CONTAINER(link, struct cri_sandbox, link));
}
