/* golden_cri_config.c - replays golden/cri-config: the messages to the runtime are made again for
 * every pod and compared, and with them its hosts file, the files of its volumes, and why a
 * container could not be made.
 *
 *     golden_cri_config DIR      DIR holds pods.jsonl and node.json
 *
 * Compared as the corpus' README says: DNS options in any order, variables in any order within
 * those of plugins, of the pod and of services. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cri_config_case.h"
#include "jsonl.h"
#include "pb_json.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/resource.h"
#include "workload/config.h"
#include "workload/volume.h"
#include "workload/workload.h"
#include "json/json.h"

#define TEXT_BYTES_MAX (4u * 1024u * 1024u)

static const char *dir;

static void free_json(json_t **json)
{
    json_decref(*json);
}

/* -- Comparing ------------------------------------------------------------------------------ */

static void differ(struct jsonl_record *record, const char *what, const char *how)
{
    dv_str id = jsonl_str(record, "id");

    printf("%s:%u: %.*s: %s: %s\n", record->file, record->line, DV_FMT(id), what, how);
    record->has_failed = true;
}

static json_t *to_jansson(const struct dv_json *node)
{
    struct dv_buf buf;
    json_t *json;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_json_print(node, NULL, &buf);
    json = json_loadb(buf.p, buf.n, 0, NULL);
    dv_buf_fini(&buf);
    return json;
}

/* By the text that JSON has for them: members in the order of their names. */
static int by_text(const void *a, const void *b)
{
    char *x = json_dumps(*(json_t *const *)a, JSON_SORT_KEYS | JSON_ENCODE_ANY);
    char *y = json_dumps(*(json_t *const *)b, JSON_SORT_KEYS | JSON_ENCODE_ANY);
    int order = strcmp(x, y);

    free(x);
    free(y);
    return order;
}

/* Sorts elements [from, to) of a list, where their order is arbitrary. */
static void sort_range(json_t *list, size_t from, size_t to)
{
    size_t n = json_array_size(list) < to ? json_array_size(list) : to;
    json_t **elements;
    size_t n_elements = 0;

    if (n <= from)
        return;
    elements = calloc(n - from, sizeof(elements[0]));
    for (size_t i = from; i < n; i++)
        elements[n_elements++] = json_incref(json_array_get(list, i));
    qsort(elements, n_elements, sizeof(elements[0]), by_text);
    for (size_t i = 0; i < n_elements; i++)
        (void)json_array_set_new(list, from + i, elements[i]);
    free(elements);
}

static void compare(struct jsonl_record *record, const char *what, json_t *got, json_t *want)
{
    struct dv_err err;

    if (!json_compare(got, want, &err))
        differ(record, what, err.msg);
}

/* -- Sandboxes ------------------------------------------------------------------------------ */

static void sort_options(json_t *sandbox)
{
    sort_range(json_object_get(json_object_get(sandbox, "dns_config"), "options"), 0, SIZE_MAX);
}

/* Makes the sandbox of a case. False: it has none, and must not have. */
static bool replay_sandbox(struct jsonl_record *record, const struct cri_config_case *of)
{
    const struct dv_json *recorded = dv_json_get(record->json, DV_STR("sandbox"));
    struct dv_config_notes notes = {0};
    struct dv_err err;
    CriV1__PodSandboxConfig *config =
        dv_config_sandbox(&of->node, &of->pod, 0, of->arena, &notes, &err);

    if (config && recorded) {
        DV_CLEANUP(free_json) json_t *got = pb_to_json(&config->base);
        DV_CLEANUP(free_json) json_t *want = to_jansson(recorded);

        sort_options(got);
        sort_options(want);
        compare(record, "sandbox", got, want);
    } else if (recorded) {
        differ(record, "sandbox", err.msg);
    } else if (config) {
        differ(record, "sandbox", "was made, and the reference makes none");
    }
    return config && recorded;
}

/* -- Containers ----------------------------------------------------------------------------- */

/* How many variables of the environment are not those of services. */
static size_t count_own(const struct dv_config_input *input, struct dv_arena *arena)
{
    struct dv_workload_objects without = *input->objects;
    struct dv_config_input copy = *input;
    struct dv_config_environment environment = {0};
    struct dv_err err;

    without.n_services = 0;
    copy.objects = &without;
    return dv_config_environment(&copy, arena, &environment, &err) ? environment.n : 0;
}

/* Variables as the corpus has them: the value as text. */
static json_t *envs_to_json(const CriV1__ContainerConfig *config)
{
    json_t *list = json_array();

    for (size_t i = 0; i < config->n_envs; i++) {
        const ProtobufCBinaryData *value = &config->envs[i]->value;
        json_t *entry = json_object();

        (void)json_object_set_new(entry, "key", json_string(config->envs[i]->key));
        (void)json_object_set_new(
            entry, "value",
            json_stringn(value->len > 0 ? (const char *)value->data : "", value->len));
        (void)json_array_append_new(list, entry);
    }
    return list;
}

static void sort_envs(json_t *container, size_t n_given, size_t n_own)
{
    json_t *envs = json_object_get(container, "envs");

    sort_range(envs, 0, n_given);
    sort_range(envs, n_given, n_own);
    sort_range(envs, n_own, SIZE_MAX);
}

static struct dv_workload_mount *find_mounts(const struct cri_config_case *of,
                                             const struct dv_volume_plan *plan,
                                             const struct dv_api_container *container,
                                             const dv_str *sub_paths)
{
    struct dv_workload_mount *made =
        DV_NEW_ARRAY(of->arena, struct dv_workload_mount, container->n_volume_mounts);

    for (size_t i = 0; i < container->n_volume_mounts; i++) {
        dv_str name = container->volume_mounts[i].name;
        const struct dv_volume *volume = dv_volume_find(plan, name);

        if (!volume)
            continue;
        made[i] = (struct dv_workload_mount){.host_path = volume->path,
                                             .is_read_only = volume->is_read_only};
        if (sub_paths[i].n > 0)
            made[i].host_path = dv_volume_sub_path_place(plan, name, container->name, i, of->arena);
        for (size_t j = 0; j < of->api->spec.n_volumes; j++) {
            const struct dv_api_volume *from = &of->api->spec.volumes[j];

            if (!dv_str_eq(from->name, name) || !from->volume_source.image)
                continue;
            made[i].image_reference = from->volume_source.image->reference;
            made[i].image = cri_config_image(made[i].image_reference, of->arena).id;
        }
    }
    return made;
}

static CriV1__ContainerConfig *make(const struct cri_config_case *of,
                                    const struct dv_volume_plan *plan,
                                    const struct dv_config_input *input, struct dv_err *err)
{
    struct dv_config_environment environment;
    dv_str *sub_paths;
    dv_str log;

    if (!dv_config_environment(input, of->arena, &environment, err) ||
        !dv_config_sub_paths(input, &environment, of->arena, &sub_paths, err))
        return NULL;
    log = dv_str_printf(of->arena, "%.*s/containers/%.*s/<hex8>", DV_FMT(plan->pod_dir),
                        DV_FMT(input->container->name));
    return dv_config_container(input, &environment,
                               find_mounts(of, plan, input->container, sub_paths), log, of->arena,
                               err);
}

static struct dv_config_input input_of(const struct cri_config_case *of, dv_str name,
                                       const struct dv_json *recorded)
{
    struct dv_config_input input = {.node = &of->node, .pod = &of->pod, .objects = &of->objects};

    input.container = dv_workload_container(of->api, name, &input.kind);
    if (!input.container) {
        printf("container %.*s is not in the pod\n", DV_FMT(name));
        exit(2);
    }
    input.given = cri_config_given(of, input.container, recorded);
    input.image = cri_config_image(input.container->image, of->arena);
    return input;
}

static void replay_container(struct jsonl_record *record, const struct cri_config_case *of,
                             const struct dv_volume_plan *plan, const struct dv_json *recorded)
{
    dv_str name = {0};
    struct dv_err err;
    bool has_name = dv_json_as_str(
        dv_json_get(dv_json_get(recorded, DV_STR("metadata")), DV_STR("name")), &name, &err);
    struct dv_config_input input = input_of(of, has_name ? name : DV_STR(""), recorded);
    CriV1__ContainerConfig *config = make(of, plan, &input, &err);

    if (config) {
        DV_CLEANUP(free_json) json_t *got = pb_to_json(&config->base);
        DV_CLEANUP(free_json) json_t *want = to_jansson(recorded);
        size_t n_own = count_own(&input, of->arena);

        if (config->n_envs > 0)
            (void)json_object_set_new(got, "envs", envs_to_json(config));
        sort_envs(got, input.given->n_envs, n_own);
        sort_envs(want, input.given->n_envs, n_own);
        compare(record, config->metadata->name, got, want);
    } else {
        differ(record, dv_str_to_c(name, of->arena), err.msg);
    }
}

/* A container that the reference could not make: for the same reason. */
static void replay_refused(struct jsonl_record *record, const struct cri_config_case *of,
                           const struct dv_volume_plan *plan, dv_str name)
{
    const struct dv_json *state = dv_json_get(dv_json_get(record->json, DV_STR("waiting")), name);
    const struct dv_json *waiting = dv_json_get(state, DV_STR("waiting"));
    const struct dv_json *message = dv_json_get(waiting, DV_STR("message"));
    struct dv_config_input input = input_of(of, name, NULL);
    struct dv_err err = {0};
    dv_str want = {0};
    struct dv_err ignored;

    if (message && !dv_json_as_str(message, &want, &ignored))
        exit(2);
    if (make(of, plan, &input, &err))
        differ(record, dv_str_to_c(name, of->arena), "was made, and the reference makes none");
    else
        jsonl_compare_str(record, "message", dv_str_from_c(err.msg), want);
}

/* -- Volumes -------------------------------------------------------------------------------- */

static struct dv_volume_plan *plan_volumes(const struct cri_config_case *of)
{
    struct dv_volume_input input = {.node = &of->node, .pod = &of->pod, .objects = &of->objects};
    struct dv_volume_token *tokens = dv_volume_tokens(of->api, of->arena, &input.n_tokens);

    for (size_t i = 0; i < input.n_tokens; i++)
        tokens[i].text = DV_STR("<token>");
    input.tokens = tokens;
    return dv_volume_plan(&input, of->arena);
}

/* A file as the corpus lists it; one that is read-only gets the group's right to read. */
static json_t *file_to_json(const struct dv_volume_plan *plan, const struct dv_volume *volume,
                            const struct dv_volume_file *file, struct dv_arena *arena)
{
    unsigned mode = file->mode | (plan->fs_group ? 0440u : 0u);
    json_t *json = json_object();

    (void)json_object_set_new(
        json, "path",
        json_string(dv_str_printf(arena, "%.*s/%.*s/..<time>/%.*s", DV_FMT(volume->plugin),
                                  DV_FMT(volume->name), DV_FMT(file->path))
                        .p));
    (void)json_object_set_new(json, "mode", json_string(dv_str_printf(arena, "0o%o", mode).p));
    (void)json_object_set_new(json, "uid", json_integer(file->uid ? *file->uid : 0));
    (void)json_object_set_new(json, "gid", json_integer(plan->fs_group ? *plan->fs_group : 0));
    if (dv_str_is_utf8(file->content)) {
        (void)json_object_set_new(json, "content", json_stringn(file->content.p, file->content.n));
    } else {
        struct dv_buf buf;

        dv_buf_init(&buf, TEXT_BYTES_MAX);
        dv_base64_encode(file->content, &buf);
        (void)json_object_set_new(json, "contentBase64", json_stringn(buf.p, buf.n));
        dv_buf_fini(&buf);
    }
    return json;
}

/* Directories and links are made in one way only, whatever the plan; here it is what is in files.
 */
static void replay_files(struct jsonl_record *record, const struct dv_volume_plan *plan,
                         struct dv_arena *arena)
{
    const struct dv_json *list = dv_json_get(record->json, DV_STR("volumeFiles"));
    DV_CLEANUP(free_json) json_t *got = json_array();
    DV_CLEANUP(free_json) json_t *want = json_array();

    if (!list)
        return;
    for (size_t i = 0; i < plan->n_volumes; i++)
        for (size_t j = 0; j < plan->volumes[i].n_files; j++)
            (void)json_array_append_new(
                got, file_to_json(plan, &plan->volumes[i], &plan->volumes[i].files[j], arena));
    for (const struct dv_json *file = dv_json_first(list); file; file = dv_json_next(file))
        if (dv_json_get(file, DV_STR("content")) || dv_json_get(file, DV_STR("contentBase64")))
            (void)json_array_append_new(want, to_jansson(file));
    sort_range(got, 0, SIZE_MAX);
    sort_range(want, 0, SIZE_MAX);
    compare(record, "volumeFiles", got, want);
}

/* -- Cases ---------------------------------------------------------------------------------- */

static void replay_case(struct jsonl_record *record)
{
    const struct dv_json *node = cri_config_read_node(dir, record->arena);
    const struct dv_json *containers = dv_json_get(record->json, DV_STR("containers"));
    const struct dv_json *refused = dv_json_get(record->json, DV_STR("notCreated"));
    const struct dv_volume_plan *plan;
    struct cri_config_case of;
    dv_str hosts;

    cri_config_read(record->json, node, record->arena, &of);
    plan = plan_volumes(&of);
    jsonl_compare_str(record, "qosClass", dv_config_qos(of.api, record->arena),
                      jsonl_str(record, "qosClass"));
    replay_files(record, plan, record->arena);
    if (!replay_sandbox(record, &of))
        return;
    for (const struct dv_json *one = dv_json_first(containers); one; one = dv_json_next(one))
        replay_container(record, &of, plan, one);
    for (const struct dv_json *one = dv_json_first(refused); one; one = dv_json_next(one)) {
        struct dv_err err;
        dv_str name;

        if (dv_json_as_str(one, &name, &err))
            replay_refused(record, &of, plan, name);
    }
    if (dv_json_get(record->json, DV_STR("etcHosts")))
        jsonl_compare_str(record, "etcHosts",
                          dv_config_hosts(&of.node, &of.pod, record->arena, &hosts) ? hosts
                                                                                    : DV_STR(""),
                          jsonl_str(record, "etcHosts"));
}

int main(int argc, char **argv)
{
    static const struct jsonl_replay replays[] = {
        {.kind = {.name = "pods.jsonl", .has = {"pod", "containers"}}, .replay = replay_case},
    };

    dir = argc == 2 ? argv[1] : ".";
    return jsonl_main(argc, argv, replays, DV_COUNT(replays));
}
