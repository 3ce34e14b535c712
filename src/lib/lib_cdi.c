/* lib_cdi.c - writes the CDI specs of drivers. What is written was read by our own reader first,
 * so that a mistake is told to who makes it, and not to who starts a container. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "davit/cdi.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "lib/common/driver.h"
#include "json/json.h"

/* The oldest version that has all that can be said here: hostPath of nodes came with it. */
#define CDI_VERSION "0.5.0"
#define FILE_MODE 0644u
#define DIR_MODE 0755
/* The names of a file have 255 bytes at most, and its temporary one some more. */
#define ID_BYTES_MAX 128u

static void set_text(struct dv_json *object, const char *key, const char *text,
                     struct dv_arena *arena)
{
    if (text)
        dv_json_set(object, dv_str_from_c(key), dv_json_new_str(dv_str_from_c(text), arena), arena);
}

static void set_texts(struct dv_json *object, const char *key, const char *const *texts, size_t n,
                      struct dv_arena *arena)
{
    struct dv_json *list = dv_json_new_array(arena);

    for (size_t i = 0; i < n; i++)
        dv_json_append(list, dv_json_new_str(dv_str_from_c(texts[i]), arena));
    if (n > 0)
        dv_json_set(object, dv_str_from_c(key), list, arena);
}

static void add_nodes(const struct davit_cdi_device *device, struct dv_json *edits,
                      struct dv_arena *arena)
{
    struct dv_json *list = dv_json_new_array(arena);

    for (size_t i = 0; i < device->n_nodes; i++) {
        struct dv_json *node = dv_json_new_object(arena);

        set_text(node, "path", device->nodes[i].path, arena);
        set_text(node, "hostPath", device->nodes[i].host_path, arena);
        set_text(node, "permissions", device->nodes[i].permissions, arena);
        dv_json_append(list, node);
    }
    if (device->n_nodes > 0)
        dv_json_set(edits, DV_STR("deviceNodes"), list, arena);
}

static void add_mounts(const struct davit_cdi_device *device, struct dv_json *edits,
                       struct dv_arena *arena)
{
    struct dv_json *list = dv_json_new_array(arena);

    for (size_t i = 0; i < device->n_mounts; i++) {
        struct dv_json *mount = dv_json_new_object(arena);

        set_text(mount, "hostPath", device->mounts[i].host_path, arena);
        set_text(mount, "containerPath", device->mounts[i].container_path, arena);
        set_texts(mount, "options", device->mounts[i].options, device->mounts[i].n_options, arena);
        dv_json_append(list, mount);
    }
    if (device->n_mounts > 0)
        dv_json_set(edits, DV_STR("mounts"), list, arena);
}

static struct dv_json *spec_json(const struct davit_cdi_spec *spec, struct dv_arena *arena)
{
    struct dv_json *doc = dv_json_new_object(arena);
    struct dv_json *devices = dv_json_new_array(arena);

    set_text(doc, "cdiVersion", CDI_VERSION, arena);
    set_text(doc, "kind", spec->kind, arena);
    for (size_t i = 0; i < spec->n_devices; i++) {
        struct dv_json *device = dv_json_new_object(arena);
        struct dv_json *edits = dv_json_new_object(arena);

        set_text(device, "name", spec->devices[i].name, arena);
        set_texts(edits, "env", spec->devices[i].env, spec->devices[i].n_env, arena);
        add_nodes(&spec->devices[i], edits, arena);
        add_mounts(&spec->devices[i], edits, arena);
        dv_json_set(device, DV_STR("containerEdits"), edits, arena);
        dv_json_append(devices, device);
    }
    dv_json_set(doc, DV_STR("devices"), devices, arena);
    return doc;
}

/* "/var/run/cdi/vendor.com-class_ID.json", the form that the specification asks for. */
static bool make_path(const char *dir, const char *kind, const char *id, struct dv_arena *arena,
                      dv_str *path, struct dv_err *err)
{
    const char *slash = kind ? strchr(kind, '/') : NULL;

    if (!slash || strchr(slash + 1, '/'))
        return dv_fail(err, DV_INVALID_ARGUMENT, "a kind is vendor.com/class, not \"%s\"",
                       kind ? kind : "");
    if (!id || !id[0] || strchr(id, '/') || strlen(id) > ID_BYTES_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "the id of a spec is a part of its file's name, not \"%s\"", id ? id : "");
    *path = dv_str_printf(arena, "%s/%.*s-%s_%s.json", dir ? dir : DAVIT_CDI_DIR,
                          (int)(slash - kind), kind, slash + 1, id);
    return true;
}

/* Whether runtimes will take it: ours does. */
static bool check(dv_str path, dv_str text, struct dv_err *err)
{
    const struct dv_cdi_file file = {.path = path, .text = text};
    DV_CLEANUP(dv_cdi_spec_unrefp) struct dv_cdi_spec *spec = dv_cdi_spec_new(&file);

    if (spec->n_problems > 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "%.*s", DV_FMT(spec->problems[0]));
    return true;
}

static bool write_spec(const struct davit_cdi_spec *spec, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    const char *dir = spec->dir ? spec->dir : DAVIT_CDI_DIR;
    dv_str path;

    dv_buf_init(&text, DV_CDI_SPEC_BYTES_MAX);
    if (!make_path(dir, spec->kind, spec->id, arena, &path, err))
        return false;
    dv_json_print(spec_json(spec, arena), NULL, &text);
    if (!dv_buf_check(&text, "CDI spec", err) || !check(path, dv_buf_str(&text), err))
        return false;
    if (mkdir(dir, DIR_MODE) != 0 && errno != EEXIST)
        return dv_fail_errno(err, errno, "making %s", dir);
    return dv_file_replace(path, dv_buf_str(&text), FILE_MODE, err);
}

bool davit_cdi_write(const struct davit_cdi_spec *spec, struct davit_error *error)
{
    struct dv_err err;

    return write_spec(spec, &err) || dv_lib_fail(error, &err);
}

bool davit_cdi_remove(const char *dir, const char *kind, const char *id, struct davit_error *error)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_err err;
    dv_str path;

    if (!make_path(dir, kind, id, arena, &path, &err))
        return dv_lib_fail(error, &err);
    if (unlink(dv_str_to_c(path, arena)) == 0 || errno == ENOENT)
        return true;
    (void)dv_fail_errno(&err, errno, "removing %.*s", DV_FMT(path));
    return dv_lib_fail(error, &err);
}

bool davit_cdi_name(const char *kind, const char *device, char *name, size_t size)
{
    int n = snprintf(name, size, "%s=%s", kind, device);

    return n >= 0 && (size_t)n < size;
}
