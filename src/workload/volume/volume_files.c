#include "workload/volume/volume_files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "workload/downward.h"
#include "workload/volume.h"
#include "workload/workload.h"

/* The reference's limits of a path and of each part of it. */
#define PATH_BYTES_MAX 4096u
#define NAME_BYTES_MAX 255u
/* The limit of all files of a pod together: far more than pods have, and far less than a node. A
 * pod that names one large object ten thousand times would fill its disk, or its memory. */
#define FILES_BYTES_MAX (128u << 20)
#define TOO_LARGE "the files of the pod's volumes have more than 134217728 bytes"
/* The longest text of all problems of one volume together: an event has 1024 bytes. */
#define PROBLEM_BYTES_MAX 1024u
/* The API sets defaultMode; a pod that has not passed it has this one. */
#define MODE_DEFAULT 0644u
/* Tokens are only their user's; the plan's group adds its own right to read. */
#define MODE_TOKEN 0600u
#define MODE_BITS 0777u

struct file {
    struct dv_volume_file file;
    size_t order; /* in which it was named: of two with one path the later one counts */
};

/* What is gathered for one volume. Only texts of ours and names go into problems: no contents. */
struct gathering {
    struct dv_volume_filling *filling;
    const struct dv_volume_input *input;
    struct dv_arena *arena;
    bool is_too_large;
    DV_VEC(struct file) files;
    DV_VEC(dv_str) problems;
    unsigned mode; /* of files that have none of their own */
};

/* ---- problems and files ---- */

static void add_problem(struct gathering *all, dv_str text)
{
    *dv_vec_add_in(&all->problems, all->arena) = text;
}

/* Joins them as Go's aggregated errors are printed: "a", "[a, b]". */
static dv_str join_problems(const struct gathering *all)
{
    struct dv_buf buf;
    dv_str text;

    if (all->problems.n == 1)
        return all->problems.v[0];
    dv_buf_init(&buf, PROBLEM_BYTES_MAX);
    for (size_t i = 0; i < all->problems.n; i++) {
        dv_buf_add_c(&buf, i == 0 ? "[" : ", ");
        dv_buf_add(&buf, all->problems.v[i]);
    }
    dv_buf_add_c(&buf, "]");
    text = dv_str_copy(dv_buf_str(&buf), all->arena);
    dv_buf_fini(&buf);
    return text;
}

/* Cleans the path of a file in a volume: "a//./b" is "a/b". Returns what is wrong with it, or
 * NULL. */
static const char *path_fault(dv_str path, struct dv_arena *arena, dv_str *clean)
{
    char *out = dv_arena_alloc(arena, path.n + 1, 1);
    dv_str rest = path;
    dv_str part;
    size_t n = 0;

    if (path.n == 0)
        return "must not be empty";
    if (path.p[0] == '/')
        return "must be relative path";
    if (path.n > PATH_BYTES_MAX)
        return "must be less than or equal to 4096 characters";
    if (memchr(path.p, '\0', path.n))
        return "must not contain a zero byte";
    while (dv_str_split(&rest, '/', &part)) {
        if (part.n == 0 || dv_str_eq(part, DV_STR(".")))
            continue;
        if (dv_str_eq(part, DV_STR("..")))
            return "must not contain '..'";
        if (part.n > NAME_BYTES_MAX)
            return "filenames must be less than or equal to 255 characters";
        /* Such names are the writer's own, at the top: "..data", "..2026_01_01...". */
        if (n == 0 && dv_str_starts_with(part, DV_STR("..")))
            return "must not start with '..'";
        if (n > 0)
            out[n++] = '/';
        memcpy(out + n, part.p, part.n);
        n += part.n;
    }
    if (n == 0)
        return "must not be empty";
    *clean = (dv_str){out, n};
    return NULL;
}

static void add_file(struct gathering *all, dv_str path, const int64_t *mode, dv_str content)
{
    unsigned bits = mode ? (unsigned)*mode & MODE_BITS : all->mode;
    dv_str clean;
    const char *fault = path_fault(path, all->arena, &clean);
    struct file *file;

    if (fault) {
        add_problem(all, dv_str_printf(all->arena, "invalid path: %s: %.*s", fault, DV_FMT(path)));
        return;
    }
    if (content.n > FILES_BYTES_MAX - all->filling->n_bytes) {
        if (!all->is_too_large)
            add_problem(all, DV_STR(TOO_LARGE));
        all->is_too_large = true;
        return;
    }
    all->filling->n_bytes += content.n;
    file = dv_vec_add_in(&all->files, all->arena);
    file->file = (struct dv_volume_file){.path = clean, .content = content, .mode = bits};
    file->order = all->files.n;
}

/* Orders by path, then by the order in which they were named. */
static int compare_files(const void *a, const void *b)
{
    const struct file *left = a;
    const struct file *right = b;
    int by_path = dv_str_cmp(left->file.path, right->file.path);

    if (by_path != 0)
        return by_path;
    return left->order < right->order ? -1 : 1;
}

/* A file cannot be a directory for another one: "a" beside "a/b". */
static void check_parents(struct gathering *all, const struct dv_volume_file *files, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t at = 0; at < files[i].path.n; at++) {
            dv_str parent = dv_str_slice(files[i].path, 0, at);

            if (files[i].path.p[at] == '/' &&
                bsearch(&parent, files, n, sizeof(files[0]), dv_str_compare)) {
                add_problem(all, dv_str_printf(all->arena,
                                               "invalid path: %.*s is a file, and is to be a "
                                               "directory for %.*s",
                                               DV_FMT(parent), DV_FMT(files[i].path)));
                return;
            }
        }
    }
}

/* Puts what was gathered into the volume: sorted, each path once. */
static void finish(struct gathering *all, struct dv_volume *volume)
{
    struct dv_volume_file *files = DV_NEW_ARRAY(all->arena, struct dv_volume_file, all->files.n);
    size_t n = 0;

    if (all->files.n > 0)
        qsort(all->files.v, all->files.n, sizeof(all->files.v[0]), compare_files);
    for (size_t i = 0; i < all->files.n; i++) {
        if (n > 0 && dv_str_eq(files[n - 1].path, all->files.v[i].file.path))
            n--;
        files[n++] = all->files.v[i].file;
    }
    check_parents(all, files, n);
    if (all->problems.n > 0) {
        volume->problem = join_problems(all);
        return;
    }
    volume->files = files;
    volume->n_files = n;
}

/* ---- config maps and secrets ---- */

/* What an object has, and how the reference calls it. */
struct object {
    const char *kind; /* "configmap" */
    dv_str name;
    bool is_there;
    bool is_optional;
    const struct dv_str_entry *data[2];
    size_t n_data[2];
    const char *no_key; /* the text before a key that is not there */
};

static const struct dv_str_entry *find_key(const struct object *object, dv_str key)
{
    for (size_t k = 0; k < DV_COUNT(object->data); k++) {
        const struct dv_str_entry *found = object->n_data[k]
                                               ? bsearch(&key, object->data[k], object->n_data[k],
                                                         sizeof(object->data[k][0]), dv_str_compare)
                                               : NULL;

        if (found)
            return found;
    }
    return NULL;
}

static void add_object(struct gathering *all, const struct object *object,
                       const struct dv_api_key_to_path *items, size_t n_items)
{
    if (!object->is_there) {
        if (!object->is_optional)
            add_problem(all, dv_str_printf(all->arena, "%s \"%.*s\" not found", object->kind,
                                           DV_FMT(object->name)));
        return;
    }
    for (size_t i = 0; i < n_items; i++) {
        const struct dv_str_entry *found = find_key(object, items[i].key);

        if (found)
            add_file(all, items[i].path, items[i].mode, found->value);
        else if (!object->is_optional)
            add_problem(
                all, dv_str_printf(all->arena, "%s: %.*s", object->no_key, DV_FMT(items[i].key)));
    }
    if (n_items > 0)
        return;
    for (size_t k = 0; k < DV_COUNT(object->data); k++)
        for (size_t i = 0; i < object->n_data[k]; i++)
            add_file(all, object->data[k][i].key, NULL, object->data[k][i].value);
}

static void add_config_map(struct gathering *all, dv_str name, const bool *optional,
                           const struct dv_api_key_to_path *items, size_t n_items)
{
    const struct dv_api_config_map *map = dv_workload_config_map(all->input->objects, name);
    struct object object = {
        .kind = "configmap",
        .name = name,
        .is_there = map,
        .is_optional = optional && *optional,
        .no_key = "configmap references non-existent config key",
    };

    if (map) {
        object.data[0] = map->data;
        object.n_data[0] = map->n_data;
        object.data[1] = map->binary_data;
        object.n_data[1] = map->n_binary_data;
    }
    add_object(all, &object, items, n_items);
}

static void add_secret(struct gathering *all, dv_str name, const bool *optional,
                       const struct dv_api_key_to_path *items, size_t n_items)
{
    const struct dv_api_secret *secret = dv_workload_secret(all->input->objects, name);
    struct object object = {
        .kind = "secret",
        .name = name,
        .is_there = secret,
        .is_optional = optional && *optional,
        .no_key = "references non-existent secret key",
    };

    if (secret) {
        object.data[0] = secret->data;
        object.n_data[0] = secret->n_data;
    }
    add_object(all, &object, items, n_items);
}

/* ---- the pod itself ---- */

/* Where the text of all labels or annotations is kept; NULL: the field is another one. */
static dv_str *kept_text(const struct gathering *all, dv_str path)
{
    if (dv_str_eq(path, DV_STR("metadata.labels")))
        return &all->filling->labels;
    if (dv_str_eq(path, DV_STR("metadata.annotations")))
        return &all->filling->annotations;
    return NULL;
}

static bool read_field(const struct gathering *all,
                       const struct dv_api_object_field_selector *field, dv_str *value,
                       struct dv_err *err)
{
    dv_str *kept = kept_text(all, field->field_path);

    if (kept && kept->n > 0)
        *value = *kept;
    else if (!dv_downward_file(all->input->pod, field, all->arena, value, err))
        return false;
    if (kept)
        *kept = *value;
    return true;
}

static bool read_downward(const struct gathering *all,
                          const struct dv_api_downward_api_volume_file *file, dv_str *value,
                          struct dv_err *err)
{
    const struct dv_volume_input *input = all->input;

    *value = DV_STR("");
    if (file->field_ref)
        return read_field(all, file->field_ref, value, err);
    if (file->resource_field_ref)
        return dv_downward_file_resource(input->node, input->pod, file->resource_field_ref,
                                         all->arena, value, err);
    return true;
}

static void add_downward(struct gathering *all, const struct dv_api_downward_api_volume_file *files,
                         size_t n_files)
{
    struct dv_err err;
    dv_str value;

    for (size_t i = 0; i < n_files; i++) {
        if (read_downward(all, &files[i], &value, &err))
            add_file(all, files[i].path, files[i].mode, value);
        else
            add_problem(all, dv_str_copy(dv_str_from_c(err.msg), all->arena));
    }
}

/* ---- tokens ---- */

static const int64_t *effective_user(const struct dv_api_pod_spec *spec,
                                     const struct dv_api_container *container)
{
    if (container->security_context && container->security_context->run_as_user)
        return container->security_context->run_as_user;
    return spec->security_context ? spec->security_context->run_as_user : NULL;
}

/* The user that all containers of the pod run as; NULL: they say none, or several. Files that only
 * their owner reads belong to that user. */
static const int64_t *common_user(const struct dv_volume_input *input)
{
    const struct dv_api_pod_spec *spec = &input->pod->pod->spec;
    const int64_t *user = NULL;

    for (size_t i = 0; i < spec->n_init_containers + spec->n_containers; i++) {
        const struct dv_api_container *container =
            i < spec->n_init_containers ? &spec->init_containers[i]
                                        : &spec->containers[i - spec->n_init_containers];
        const int64_t *own = effective_user(spec, container);

        if (!own || (user && *user != *own))
            return NULL;
        user = own;
    }
    return user;
}

static void add_token(struct gathering *all,
                      const struct dv_api_service_account_token_projection *wanted)
{
    const struct dv_volume_token *token =
        dv_volume_token_find(all->input->tokens, all->input->n_tokens, wanted);
    const struct dv_api_pod_security_context *security =
        all->input->pod->pod->spec.security_context;
    const int64_t *user = common_user(all->input);
    size_t n_before = all->files.n;

    if (!token || token->text.n == 0) {
        add_problem(all,
                    dv_str_printf(all->arena, "failed to fetch token: %.*s",
                                  DV_FMT(token && token->problem.n ? token->problem
                                                                   : DV_STR("there is none yet"))));
        return;
    }
    add_file(all, wanted->path, NULL, token->text);
    if (all->files.n == n_before)
        return;
    all->files.v[n_before].file.uid = user;
    if (user || (security && security->fs_group))
        all->files.v[n_before].file.mode = MODE_TOKEN;
}

/* ---- the kinds of volumes ---- */

static void add_projection(struct gathering *all, const struct dv_api_volume_projection *source)
{
    if (source->secret)
        add_secret(all, source->secret->local_object_reference.name, source->secret->optional,
                   source->secret->items, source->secret->n_items);
    else if (source->config_map)
        add_config_map(all, source->config_map->local_object_reference.name,
                       source->config_map->optional, source->config_map->items,
                       source->config_map->n_items);
    else if (source->downward_api)
        add_downward(all, source->downward_api->items, source->downward_api->n_items);
    else if (source->service_account_token)
        add_token(all, source->service_account_token);
    else if (source->cluster_trust_bundle) {
        if (!source->cluster_trust_bundle->optional || !*source->cluster_trust_bundle->optional)
            add_problem(all, DV_STR("cluster trust bundles are not served by this node"));
    } else if (source->pod_certificate)
        add_problem(all, DV_STR("pod certificates are not served by this node"));
}

static unsigned mode_of(const int64_t *mode)
{
    return mode ? (unsigned)*mode & MODE_BITS : MODE_DEFAULT;
}

void dv_volume_fill(struct dv_volume_filling *filling, const struct dv_api_volume *source,
                    struct dv_volume *volume)
{
    const struct dv_api_volume_source *from = &source->volume_source;
    struct gathering all = {.filling = filling, .input = filling->input, .arena = filling->arena};

    if (from->config_map) {
        all.mode = mode_of(from->config_map->default_mode);
        add_config_map(&all, from->config_map->local_object_reference.name,
                       from->config_map->optional, from->config_map->items,
                       from->config_map->n_items);
    } else if (from->secret) {
        all.mode = mode_of(from->secret->default_mode);
        add_secret(&all, from->secret->secret_name, from->secret->optional, from->secret->items,
                   from->secret->n_items);
    } else if (from->downward_api) {
        all.mode = mode_of(from->downward_api->default_mode);
        add_downward(&all, from->downward_api->items, from->downward_api->n_items);
    } else if (from->projected) {
        all.mode = mode_of(from->projected->default_mode);
        for (size_t i = 0; i < from->projected->n_sources; i++)
            add_projection(&all, &from->projected->sources[i]);
    }
    finish(&all, volume);
}
