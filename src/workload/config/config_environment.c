/* config_environment.c - the environment of a container, from all that adds to it. */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "workload/config/config_parts.h"
#include "workload/config/env_file.h"
#include "workload/downward.h"
#include "workload/workload.h"

/* The environment while it is made. What is set later replaces what was set before. */
struct draft {
    const struct dv_config_input *input;
    DV_VEC(struct dv_str_entry) own; /* of envFrom and env, each name once */
    struct dv_map places;            /* name to its place in `own`, counted from 1 */
    const struct dv_str_entry *services;
    size_t n_services;
    size_t n_bytes; /* of all that was ever set */
    struct dv_arena *arena;
};

/* Values that double each other, or one large object under many prefixes, would fill the memory. */
static bool set(struct draft *draft, dv_str name, dv_str value, struct dv_err *err)
{
    uintptr_t place = (uintptr_t)dv_map_get(&draft->places, name);

    draft->n_bytes += name.n + value.n;
    if (draft->n_bytes > DV_CONFIG_TEXTS_BYTES_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "environment variable %.*s: all of them have more than %u bytes",
                       DV_FMT(name), DV_CONFIG_TEXTS_BYTES_MAX);
    if (place > 0) {
        draft->own.v[place - 1].value = value;
        return true;
    }
    *dv_vec_add_in(&draft->own, draft->arena) = (struct dv_str_entry){name, value};
    (void)dv_map_set(&draft->places, name, (void *)draft->own.n); /* it was not there */
    return true;
}

/* A dv_config_lookup: what is known so far, then the services. */
static bool look_up(const void *ctx, dv_str name, dv_str *value)
{
    const struct draft *draft = ctx;
    uintptr_t place = (uintptr_t)dv_map_get(&draft->places, name);
    const struct dv_str_entry *found =
        place > 0 ? &draft->own.v[place - 1]
                  : dv_entry_find(draft->services, draft->n_services, name);

    if (found)
        *value = found->value;
    return found != NULL;
}

static bool is_true(const bool *optional)
{
    return optional && *optional;
}

static bool set_all(struct draft *draft, dv_str prefix, const struct dv_str_entry *entries,
                    size_t n, struct dv_err *err)
{
    for (size_t i = 0; i < n; i++) {
        dv_str name = entries[i].key;

        if (prefix.n > 0)
            name = dv_str_printf(draft->arena, "%.*s%.*s", DV_FMT(prefix), DV_FMT(name));
        if (!set(draft, name, entries[i].value, err))
            return false;
    }
    return true;
}

static bool add_source(struct draft *draft, const struct dv_api_env_from_source *source,
                       struct dv_err *err)
{
    if (source->config_map_ref) {
        dv_str name = source->config_map_ref->local_object_reference.name;
        const struct dv_api_config_map *map = dv_workload_config_map(draft->input->objects, name);

        if (map)
            return set_all(draft, source->prefix, map->data, map->n_data, err);
        return is_true(source->config_map_ref->optional) ||
               dv_fail(err, DV_NOT_FOUND, "configmap \"%.*s\" not found", DV_FMT(name));
    }
    if (source->secret_ref) {
        dv_str name = source->secret_ref->local_object_reference.name;
        const struct dv_api_secret *secret = dv_workload_secret(draft->input->objects, name);

        if (secret)
            return set_all(draft, source->prefix, secret->data, secret->n_data, err);
        return is_true(source->secret_ref->optional) ||
               dv_fail(err, DV_NOT_FOUND, "secret \"%.*s\" not found", DV_FMT(name));
    }
    return true;
}

/* The value of a variable that comes from elsewhere. */
struct found {
    dv_str value;
    bool is_left_out; /* it is optional, and not there */
};

/* Takes the value of a key, or says why there is none. `kind` is as messages write it. */
static bool take_key(struct draft *draft, const char *kind, dv_str object, dv_str key,
                     const struct dv_str_entry *entry, bool is_optional, struct found *found,
                     struct dv_err *err)
{
    found->is_left_out = !entry;
    if (entry)
        found->value = entry->value;
    return entry || is_optional ||
           dv_fail(err, DV_NOT_FOUND, "couldn't find key %.*s in %s %.*s/%.*s", DV_FMT(key), kind,
                   DV_FMT(draft->input->pod->pod->metadata.namespace), DV_FMT(object));
}

static bool from_config_map(struct draft *draft, const struct dv_api_config_map_key_selector *from,
                            struct found *found, struct dv_err *err)
{
    dv_str name = from->local_object_reference.name;
    const struct dv_api_config_map *map = dv_workload_config_map(draft->input->objects, name);

    if (map)
        return take_key(draft, "ConfigMap", name, from->key,
                        dv_entry_find(map->data, map->n_data, from->key), is_true(from->optional),
                        found, err);
    found->is_left_out = true;
    return is_true(from->optional) ||
           dv_fail(err, DV_NOT_FOUND, "configmap \"%.*s\" not found", DV_FMT(name));
}

static bool from_secret(struct draft *draft, const struct dv_api_secret_key_selector *from,
                        struct found *found, struct dv_err *err)
{
    dv_str name = from->local_object_reference.name;
    const struct dv_api_secret *secret = dv_workload_secret(draft->input->objects, name);

    if (secret)
        return take_key(draft, "Secret", name, from->key,
                        dv_entry_find(secret->data, secret->n_data, from->key),
                        is_true(from->optional), found, err);
    found->is_left_out = true;
    return is_true(from->optional) ||
           dv_fail(err, DV_NOT_FOUND, "secret \"%.*s\" not found", DV_FMT(name));
}

static bool from_file(struct draft *draft, const struct dv_api_file_key_selector *from,
                      struct found *found, struct dv_err *err)
{
    const struct dv_workload_objects *objects = draft->input->objects;
    const struct dv_workload_env_file *file = NULL;

    for (size_t i = 0; i < objects->n_env_files && !file; i++)
        if (dv_str_eq(objects->env_files[i].volume, from->volume_name) &&
            dv_str_eq(objects->env_files[i].path, from->path))
            file = &objects->env_files[i];
    if (!file || !dv_env_file_find(file->text, from->key, draft->arena, &found->value))
        return dv_fail(err, DV_FAILED_PRECONDITION, "couldn't parse env file");
    found->is_left_out = found->value.n == 0;
    return !found->is_left_out || is_true(from->optional) ||
           dv_fail(err, DV_NOT_FOUND,
                   "environment variable key \"%.*s\" not found in file \"%.*s\"",
                   DV_FMT(from->key), DV_FMT(from->path));
}

static bool from_elsewhere(struct draft *draft, const struct dv_api_env_var_source *from,
                           struct found *found, struct dv_err *err)
{
    const struct dv_config_input *input = draft->input;

    *found = (struct found){.value = DV_STR("")};
    if (from->field_ref)
        return dv_downward_env(input->node, input->pod, from->field_ref, draft->arena,
                               &found->value, err);
    if (from->resource_field_ref)
        return dv_downward_env_resource(input->node, input->pod, input->container,
                                        from->resource_field_ref, draft->arena, &found->value, err);
    if (from->config_map_key_ref)
        return from_config_map(draft, from->config_map_key_ref, found, err);
    if (from->secret_key_ref)
        return from_secret(draft, from->secret_key_ref, found, err);
    if (from->file_key_ref)
        return from_file(draft, from->file_key_ref, found, err);
    return true;
}

static bool add_variable(struct draft *draft, const struct dv_api_env_var *variable,
                         struct dv_err *err)
{
    struct found found = {.value = variable->value};

    if (variable->value.n > 0) {
        if (!dv_config_replace(variable->value, look_up, draft, draft->arena, &found.value, err))
            return dv_wrap(err, "environment variable %.*s", DV_FMT(variable->name));
    } else if (variable->value_from && !from_elsewhere(draft, variable->value_from, &found, err)) {
        return false;
    }
    return found.is_left_out || set(draft, variable->name, found.value, err);
}

static bool fill(struct draft *draft, struct dv_err *err)
{
    const struct dv_api_container *container = draft->input->container;

    for (size_t i = 0; i < container->n_env_from; i++)
        if (!add_source(draft, &container->env_from[i], err))
            return false;
    for (size_t i = 0; i < container->n_env; i++)
        if (!add_variable(draft, &container->env[i], err))
            return false;
    return true;
}

/* Plugins' variables, the pod's own, and services' where they are not set yet. */
static void finish(const struct draft *draft, struct dv_config_environment *environment)
{
    const struct dv_workload_given *given = draft->input->given;
    size_t n_given = given ? given->n_envs : 0;
    struct dv_config_environment made = {
        .v = DV_NEW_ARRAY(draft->arena, struct dv_str_entry,
                          n_given + draft->own.n + draft->n_services)};

    for (size_t i = 0; i < n_given; i++)
        made.v[made.n++] = given->envs[i];
    for (size_t i = 0; i < draft->own.n; i++)
        made.v[made.n++] = draft->own.v[i];
    for (size_t i = 0; i < draft->n_services; i++)
        if (!dv_map_get(&draft->places, draft->services[i].key))
            made.v[made.n++] = draft->services[i];
    dv_config_index(&made, draft->arena);
    *environment = made;
}

bool dv_config_environment(const struct dv_config_input *input, struct dv_arena *arena,
                           struct dv_config_environment *environment, struct dv_err *err)
{
    struct draft draft = {.input = input, .arena = arena};
    bool is_good;

    if (!input->pod->pod->spec.enable_service_links)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "nil pod.spec.enableServiceLinks encountered, cannot construct envvars");
    draft.services = dv_config_services(input->pod, input->objects, arena, &draft.n_services);
    dv_map_init(&draft.places);
    is_good = fill(&draft, err);
    if (is_good)
        finish(&draft, environment);
    dv_map_fini(&draft.places);
    return is_good;
}
