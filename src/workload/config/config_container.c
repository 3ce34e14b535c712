/* config_container.c - the ContainerConfig of a container, put together from its parts. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"
#include "base/vec.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/resource.h"
#include "workload/config/config_annotations.h"
#include "workload/config/config_parts.h"
#include "workload/workload.h"

/* A hook with its command, or all ports, as JSON; an object of the API is smaller. */
#define ANNOTATION_BYTES_MAX (16u * 1024u * 1024u)

/* ---- annotations ---- */

struct entries {
    struct dv_str_entry *v;
    size_t n;
    size_t size;
};

static void add_entry(struct entries *entries, dv_str key, dv_str value, struct dv_arena *arena)
{
    *dv_vec_add_in(entries, arena) = (struct dv_str_entry){key, value};
}

static void add_number(struct entries *entries, dv_str key, int64_t value, struct dv_arena *arena)
{
    add_entry(entries, key, dv_str_printf(arena, "%lld", (long long)value), arena);
}

static dv_str hook_text(const struct dv_api_lifecycle_handler *hook, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, ANNOTATION_BYTES_MAX);
    dv_encode_json_text(&dv_message_lifecycle_handler, hook, NULL, DV_STR(""), &buf);
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

static dv_str ports_text(const struct dv_api_container *container, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, ANNOTATION_BYTES_MAX);
    for (size_t i = 0; i < container->n_ports; i++) {
        dv_buf_add_char(&buf, i > 0 ? ',' : '[');
        dv_encode_json_text(&dv_message_container_port, &container->ports[i], NULL, DV_STR(""),
                            &buf);
    }
    dv_buf_add_char(&buf, ']');
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

/* Sets the annotations by which a container can be stopped whose pod is not known any more. */
static void set_annotations(CriV1__ContainerConfig *config, const struct dv_config_input *input,
                            struct dv_arena *arena)
{
    const struct dv_api_container *container = input->container;
    const struct dv_api_pod *pod = input->pod->pod;
    const struct dv_workload_given *given = input->given;
    struct dv_config_environment all = {0};
    struct entries list = {0};

    for (size_t i = 0; given && i < given->n_annotations; i++)
        add_entry(&list, given->annotations[i].key, given->annotations[i].value, arena);
    add_entry(&list, NOTE_HASH, dv_str_printf(arena, "%x", dv_config_hash(container)), arena);
    add_number(&list, NOTE_RESTARTS, input->attempt, arena);
    add_entry(&list, NOTE_MESSAGE_PATH, container->termination_message_path, arena);
    add_entry(&list, NOTE_MESSAGE_POLICY, container->termination_message_policy, arena);
    if (pod->metadata.deletion_grace_period_seconds)
        add_number(&list, NOTE_DELETION_GRACE, *pod->metadata.deletion_grace_period_seconds, arena);
    if (pod->spec.termination_grace_period_seconds)
        add_number(&list, NOTE_GRACE, *pod->spec.termination_grace_period_seconds, arena);
    if (container->lifecycle && container->lifecycle->pre_stop)
        add_entry(&list, NOTE_PRE_STOP, hook_text(container->lifecycle->pre_stop, arena), arena);
    if (container->n_ports > 0)
        add_entry(&list, NOTE_PORTS, ports_text(container, arena), arena);
    all.v = list.v;
    all.n = list.n;
    dv_config_index(&all, arena); /* ours come last, and so they count */
    config->n_annotations = all.n_by_name;
    config->annotations = dv_config_map(&cri_v1__container_config__annotations_entry__descriptor,
                                        all.by_name, all.n_by_name, arena);
}

static void set_labels(CriV1__ContainerConfig *config, const struct dv_config_input *input,
                       struct dv_arena *arena)
{
    const struct dv_api_object_meta *meta = &input->pod->pod->metadata;
    const struct dv_str_entry labels[] = {
        {DV_CONFIG_CONTAINER_NAME, input->container->name},
        {DV_CONFIG_POD_NAME,       meta->name            },
        {DV_CONFIG_POD_NAMESPACE,  meta->namespace       },
        {DV_CONFIG_POD_UID,        input->pod->uid       },
    };

    config->n_labels = DV_COUNT(labels);
    config->labels = dv_config_map(&cri_v1__container_config__labels_entry__descriptor, labels,
                                   DV_COUNT(labels), arena);
}

/* ---- the parts of the message ---- */

static bool set_command(CriV1__ContainerConfig *config, const struct dv_config_input *input,
                        const struct dv_config_environment *environment, struct dv_arena *arena,
                        struct dv_err *err)
{
    const struct dv_api_container *container = input->container;
    size_t n_left = DV_CONFIG_TEXTS_BYTES_MAX;
    dv_str *command;
    dv_str *args;

    if (!dv_config_expand_all(container->command, container->n_command, environment, &n_left, arena,
                              &command, err) ||
        !dv_config_expand_all(container->args, container->n_args, environment, &n_left, arena,
                              &args, err))
        return false;
    config->n_command = container->n_command;
    config->command = dv_config_texts(command, container->n_command, arena);
    config->n_args = container->n_args;
    config->args = dv_config_texts(args, container->n_args, arena);
    return true;
}

static void set_envs(CriV1__ContainerConfig *config,
                     const struct dv_config_environment *environment, struct dv_arena *arena)
{
    CriV1__KeyValue *values = DV_NEW_ARRAY(arena, CriV1__KeyValue, environment->n);

    config->n_envs = environment->n;
    config->envs = DV_NEW_ARRAY(arena, CriV1__KeyValue *, environment->n);
    for (size_t i = 0; i < environment->n; i++) {
        dv_str value = environment->v[i].value;

        values[i] = (CriV1__KeyValue)CRI_V1__KEY_VALUE__INIT;
        values[i].key = dv_str_to_c(environment->v[i].key, arena);
        values[i].value.len = value.n;
        values[i].value.data = dv_arena_alloc_raw(arena, value.n, 1);
        if (value.n > 0)
            memcpy(values[i].value.data, value.p, value.n);
        config->envs[i] = &values[i];
    }
}

static void set_devices(CriV1__ContainerConfig *config, const struct dv_workload_given *given,
                        struct dv_arena *arena)
{
    if (!given)
        return;
    config->n_devices = given->n_devices;
    config->devices = DV_NEW_ARRAY(arena, CriV1__Device *, given->n_devices);
    for (size_t i = 0; i < given->n_devices; i++) {
        CriV1__Device *made = DV_NEW(arena, CriV1__Device);

        *made = (CriV1__Device)CRI_V1__DEVICE__INIT;
        made->container_path = dv_str_to_c(given->devices[i].container_path, arena);
        made->host_path = dv_str_to_c(given->devices[i].host_path, arena);
        made->permissions = dv_str_to_c(given->devices[i].permissions, arena);
        config->devices[i] = made;
    }
    config->n_cdi_devices = given->n_cdi_names;
    config->cdi_devices = DV_NEW_ARRAY(arena, CriV1__CDIDevice *, given->n_cdi_names);
    for (size_t i = 0; i < given->n_cdi_names; i++) {
        config->cdi_devices[i] = DV_NEW(arena, CriV1__CDIDevice);
        *config->cdi_devices[i] = (CriV1__CDIDevice)CRI_V1__CDIDEVICE__INIT;
        config->cdi_devices[i]->name = dv_str_to_c(given->cdi_names[i], arena);
    }
}

static void set_names(CriV1__ContainerConfig *config, const struct dv_config_input *input,
                      struct dv_arena *arena)
{
    const struct dv_api_container *container = input->container;

    config->metadata = DV_NEW(arena, CriV1__ContainerMetadata);
    *config->metadata = (CriV1__ContainerMetadata)CRI_V1__CONTAINER_METADATA__INIT;
    config->metadata->name = dv_str_to_c(container->name, arena);
    config->metadata->attempt = input->attempt;
    config->image = DV_NEW(arena, CriV1__ImageSpec);
    *config->image = (CriV1__ImageSpec)CRI_V1__IMAGE_SPEC__INIT;
    config->image->image = dv_str_to_c(input->image.id, arena);
    config->image->user_specified_image = dv_str_to_c(container->image, arena);
    config->working_dir = dv_str_to_c(container->working_dir, arena);
    config->log_path =
        dv_str_printf(arena, "%.*s/%u.log", DV_FMT(container->name), input->attempt).p;
    config->stdin = container->stdin;
    config->stdin_once = container->stdin_once;
    config->tty = container->tty;
}

CriV1__ContainerConfig *dv_config_container(const struct dv_config_input *input,
                                            const struct dv_config_environment *environment,
                                            const struct dv_workload_mount *mounts,
                                            dv_str termination_log, struct dv_arena *arena,
                                            struct dv_err *err)
{
    CriV1__ContainerConfig *config = DV_NEW(arena, CriV1__ContainerConfig);

    *config = (CriV1__ContainerConfig)CRI_V1__CONTAINER_CONFIG__INIT;
    if (!dv_config_check_user(input, arena, err) ||
        !set_command(config, input, environment, arena, err))
        return NULL;
    config->linux = DV_NEW(arena, CriV1__LinuxContainerConfig);
    *config->linux = (CriV1__LinuxContainerConfig)CRI_V1__LINUX_CONTAINER_CONFIG__INIT;
    config->linux->security_context = dv_config_security(input, arena, err);
    if (!config->linux->security_context)
        return NULL;
    config->linux->resources = dv_config_resources(input, arena);
    config->mounts = dv_config_mounts(input, environment, mounts, termination_log,
                                      config->linux->security_context->namespace_options, arena,
                                      &config->n_mounts, err);
    if (!config->mounts)
        return NULL;
    set_names(config, input, arena);
    set_labels(config, input, arena);
    set_annotations(config, input, arena);
    set_envs(config, environment, arena);
    set_devices(config, input->given, arena);
    return config;
}
