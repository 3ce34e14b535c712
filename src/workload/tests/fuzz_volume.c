/* fuzz_volume.c - whatever a pod and its objects say, a plan leads nowhere but into the volumes of
 * that pod: names are names, and paths of files lead down, each once, none through another file.
 *
 * An input is YAML: {pod: {...}, configMaps: [...], secrets: [...]}. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "workload/volume.h"
#include "workload/workload.h"
#include "json/json.h"

#define OBJECTS_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- reading ---- */

static void *read_as(const struct dv_message *message, const struct dv_json *doc,
                     struct dv_arena *arena)
{
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;

    if (doc && !dv_decode_json(message, doc, DV_UNKNOWN_DROP, arena, value, NULL, &err))
        return NULL;
    return value;
}

static size_t read_list(const struct dv_message *message, const struct dv_json *list,
                        struct dv_arena *arena, const void *objects[OBJECTS_MAX])
{
    size_t n = 0;

    for (const struct dv_json *at = dv_json_first(list); at && n < OBJECTS_MAX;
         at = dv_json_next(at)) {
        objects[n] = read_as(message, at, arena);
        n += objects[n] != NULL;
    }
    return n;
}

/* ---- what holds ---- */

static void check_path(dv_str path)
{
    dv_str rest = path;
    dv_str part;
    bool is_first = true;

    assert(path.n > 0 && path.n <= 4096 && !memchr(path.p, '\0', path.n));
    while (dv_str_split(&rest, '/', &part)) {
        assert(part.n > 0 && part.n <= 255);
        assert(!dv_str_eq(part, DV_STR(".")) && !dv_str_eq(part, DV_STR("..")));
        assert(!is_first || !dv_str_starts_with(part, DV_STR("..")));
        is_first = false;
    }
}

static void check_files(const struct dv_volume *volume)
{
    for (size_t i = 0; i < volume->n_files; i++) {
        dv_str path = volume->files[i].path;

        check_path(path);
        assert(volume->files[i].mode <= 0777);
        if (i == 0)
            continue;
        assert(dv_str_cmp(volume->files[i - 1].path, path) < 0);
        for (size_t k = 0; k < i; k++) {
            dv_str other = volume->files[k].path;

            assert(!dv_str_starts_with(path, other) || path.p[other.n] != '/');
        }
    }
}

static void check_volume(const struct dv_volume_plan *plan, const struct dv_volume *volume)
{
    dv_str place = dv_str_slice(volume->path, 0, plan->pod_dir.n);

    assert(dv_volume_find(plan, volume->name));
    if (volume->problem.n > 0) {
        assert(volume->n_files == 0);
        return;
    }
    assert(volume->name.n > 0 && !memchr(volume->name.p, '/', volume->name.n));
    if (volume->plugin.n > 0)
        assert(dv_str_eq(place, plan->pod_dir) && dv_str_ends_with(volume->path, volume->name));
    else if (volume->kind == DV_VOLUME_HOST_PATH)
        assert(volume->path.n > 0 && volume->path.p[0] == '/' &&
               !memchr(volume->path.p, '\0', volume->path.n));
    else
        assert(volume->kind == DV_VOLUME_IMAGE && volume->path.n == 0);
    check_files(volume);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct dv_workload_node node = {.root_dir = DV_STR_INIT("/k"),
                                                 .log_dir = DV_STR_INIT("/l")};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_err err;
    const struct dv_json *doc =
        dv_yaml_parse((dv_str){size ? (const char *)data : "", size}, NULL, arena, &err);
    const void *maps[OBJECTS_MAX];
    const void *secrets[OBJECTS_MAX];
    struct dv_workload_objects objects = {0};
    struct dv_workload_pod pod = {.uid = DV_STR("u"), .source = DV_STR("api")};
    struct dv_volume_input input = {.node = &node, .pod = &pod, .objects = &objects};
    struct dv_volume_token *tokens;
    const struct dv_volume_plan *plan;

    if (!doc)
        return 0;
    pod.pod = read_as(&dv_message_pod, dv_json_get(doc, DV_STR("pod")), arena);
    if (!pod.pod)
        return 0;
    objects.n_config_maps =
        read_list(&dv_message_config_map, dv_json_get(doc, DV_STR("configMaps")), arena, maps);
    objects.config_maps = (const struct dv_api_config_map *const *)(const void *)maps;
    objects.n_secrets =
        read_list(&dv_message_secret, dv_json_get(doc, DV_STR("secrets")), arena, secrets);
    objects.secrets = (const struct dv_api_secret *const *)(const void *)secrets;
    tokens = dv_volume_tokens(pod.pod, arena, &input.n_tokens);
    for (size_t i = 0; i < input.n_tokens; i++)
        tokens[i].text = DV_STR("token");
    input.tokens = tokens;
    plan = dv_volume_plan(&input, arena);
    for (size_t i = 0; i < plan->n_volumes; i++)
        check_volume(plan, &plan->volumes[i]);
    return 0;
}
