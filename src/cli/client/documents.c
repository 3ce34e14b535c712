/* documents.c - files of objects, split into what is applied one by one. */
#include "cli/client/documents.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/file.h"
#include "base/num.h"
#include "base/vec.h"
#include "cli/client/cli_api.h"
#include "cli/client/cli_kinds.h"
#include "resource/resource.h"
#include "json/json.h"

/* Thousands of objects in one file. */
#define FILE_BYTES_MAX (64u << 20)

/* ---- which files ---- */

static bool is_for_us(dv_str name)
{
    return name.n && name.p[0] != '.' &&
           (dv_str_ends_with(name, DV_STR(".yaml")) || dv_str_ends_with(name, DV_STR(".yml")) ||
            dv_str_ends_with(name, DV_STR(".json")));
}

static bool add_folder(dv_str path, struct dv_arena *arena, struct dv_cli_paths *paths,
                       struct dv_err *err)
{
    DIR *folder = opendir(dv_str_to_c(path, arena));
    const struct dirent *entry;
    size_t from = paths->n;

    if (!folder)
        return dv_fail_errno(err, errno, "%.*s", DV_FMT(path));
    while ((entry = readdir(folder)))
        if (is_for_us(dv_str_from_c(entry->d_name)))
            *dv_vec_add_in(paths, arena) =
                dv_str_printf(arena, "%.*s%s%s", DV_FMT(path),
                              dv_str_ends_with(path, DV_STR("/")) ? "" : "/", entry->d_name);
    (void)closedir(folder); /* it was only read */
    if (paths->n == from)
        return dv_fail(err, DV_NOT_FOUND, "%.*s has no *.yaml, *.yml or *.json files",
                       DV_FMT(path));
    qsort(paths->v + from, paths->n - from, sizeof(paths->v[0]), dv_str_compare);
    return true;
}

bool dv_cli_paths_add(dv_str path, struct dv_arena *arena, struct dv_cli_paths *paths,
                      struct dv_err *err)
{
    struct stat about;

    if (!dv_str_eq(path, DV_STR("-"))) {
        if (stat(dv_str_to_c(path, arena), &about) < 0)
            return dv_fail_errno(err, errno, "%.*s", DV_FMT(path));
        if (S_ISDIR(about.st_mode))
            return add_folder(path, arena, paths, err);
    }
    *dv_vec_add_in(paths, arena) = path;
    return true;
}

/* ---- documents ---- */

/* An item says itself what it is, or its list does: a ResourceClaimList holds ResourceClaims. */
static void complete(struct dv_json *item, const struct dv_json *list, struct dv_arena *arena)
{
    dv_str kind = dv_cli_text(list, "", "kind");
    dv_str version = dv_cli_text(list, "", "apiVersion");

    if (!dv_json_is(item, DV_JSON_OBJECT) || kind.n == 4 || dv_json_get(item, DV_STR("kind")) ||
        dv_json_get(item, DV_STR("apiVersion")))
        return;
    dv_json_set(item, DV_STR("apiVersion"), dv_json_new_str(version, arena), arena);
    dv_json_set(item, DV_STR("kind"), dv_json_new_str(dv_str_slice(kind, 0, kind.n - 4), arena),
                arena);
}

static void add(dv_str file, size_t number, struct dv_json *json, struct dv_arena *arena,
                struct dv_cli_documents *documents)
{
    struct dv_json *items = dv_json_get(json, DV_STR("items"));
    bool is_list = dv_str_ends_with(dv_cli_text(json, "", "kind"), DV_STR("List"));

    if (dv_json_is(json, DV_JSON_NULL))
        return;
    if (!is_list || !dv_json_is(items, DV_JSON_ARRAY)) {
        *dv_vec_add_in(documents, arena) = (struct dv_cli_document){file, number, json};
        return;
    }
    for (struct dv_json *item = dv_json_first(items); item; item = dv_json_next(item)) {
        complete(item, json, arena);
        *dv_vec_add_in(documents, arena) = (struct dv_cli_document){file, number, item};
    }
}

static bool add_yaml(dv_str file, dv_str text, struct dv_arena *arena,
                     struct dv_cli_documents *documents, struct dv_err *err)
{
    const struct dv_json_opts opts = {.bytes_max = FILE_BYTES_MAX, .refuse_duplicates = true};
    DV_CLEANUP(dv_yaml_stream_freep)
    struct dv_yaml_stream *stream = dv_yaml_stream_new(text, &opts, err);

    if (!stream)
        return dv_wrap(err, "%.*s", DV_FMT(file));
    for (size_t number = 1;; number++) {
        struct dv_json *json;

        if (!dv_yaml_stream_next(stream, arena, &json, err))
            return dv_wrap(err, "%.*s, document %zu", DV_FMT(file), number);
        if (!json)
            return true;
        add(file, number, json, arena, documents);
    }
}

bool dv_cli_documents_split(dv_str file, dv_str text, struct dv_arena *arena,
                            struct dv_cli_documents *documents, struct dv_err *err)
{
    const struct dv_json_opts opts = {.bytes_max = FILE_BYTES_MAX, .refuse_duplicates = true};
    dv_str trimmed = dv_str_trim(text);
    struct dv_json *json;

    /* Nearly all of JSON is YAML, but its own reader is the better one, also in what it says. */
    if (trimmed.n && trimmed.p[0] == '{') {
        json = dv_json_parse(dv_str_copy(text, arena), &opts, arena, err);
        if (json) {
            add(file, 1, json, arena, documents);
            return true;
        }
        if (dv_str_ends_with(file, DV_STR(".json")))
            return dv_wrap(err, "%.*s, document 1", DV_FMT(file));
    }
    return add_yaml(file, text, arena, documents, err);
}

bool dv_cli_documents_read(dv_str path, struct dv_arena *arena, struct dv_cli_documents *documents,
                           struct dv_err *err)
{
    dv_str real = dv_str_eq(path, DV_STR("-")) ? DV_STR("/dev/stdin") : path;
    dv_str text;

    return dv_file_read(real, FILE_BYTES_MAX, arena, &text, err) &&
           dv_cli_documents_split(path, text, arena, documents, err);
}

/* Cuts the first step off a path as the API writes it: "spec", "containers", "[0]" or "[cpu]". */
static dv_str cut_step(dv_str *path)
{
    size_t n = 0;
    dv_str step;

    if (path->n > 0 && path->p[0] == '[') {
        n = dv_str_find_char(*path, ']');
        step = dv_str_slice(*path, 1, n);
        *path = dv_str_slice(*path, n + 1, path->n);
    } else {
        while (n < path->n && path->p[n] != '.' && path->p[n] != '[')
            n++;
        step = dv_str_slice(*path, 0, n);
        *path = dv_str_slice(*path, n, path->n);
    }
    if (path->n > 0 && path->p[0] == '.')
        *path = dv_str_slice(*path, 1, path->n);
    return step;
}

const struct dv_json *dv_cli_field_find(const struct dv_json *node, dv_str path)
{
    while (path.n > 0) {
        dv_str step = cut_step(&path);
        const struct dv_json *next = dv_json_get(node, step);
        uint64_t i;

        if (dv_json_is(node, DV_JSON_ARRAY) && dv_str_to_u64(step, &i))
            next = dv_json_at(node, (size_t)i);
        if (!next)
            break;
        node = next;
    }
    return node;
}

dv_str dv_cli_document_place(const struct dv_cli_document *document, dv_str field,
                             struct dv_arena *arena)
{
    return dv_str_printf(arena, "%.*s, document %zu, line %u", DV_FMT(document->file),
                         document->number, dv_json_line(dv_cli_field_find(document->json, field)));
}

/* ---- what a document is about ---- */

/* The kinds of DRA up to 1.31 that have gone, and what does their work now. */
static const struct {
    dv_str kind;
    const char *instead;
} gone_kinds[] = {
    {DV_STR_INIT("ResourceClass"),           "a DeviceClass"                                  },
    {DV_STR_INIT("ResourceClassParameters"), "opaque configuration of a DeviceClass"          },
    {DV_STR_INIT("ResourceClaimParameters"), "opaque configuration of a ResourceClaim"        },
    {DV_STR_INIT("PodSchedulingContext"),    "the scheduler, which allocates claims by itself"},
    {DV_STR_INIT("PodScheduling"),           "the scheduler, which allocates claims by itself"},
};

static bool check_gone(const struct dv_json *json, dv_str group, dv_str name, struct dv_err *err)
{
    for (size_t i = 0; i < DV_COUNT(gone_kinds); i++)
        if (dv_str_eq(group, DV_STR("resource.k8s.io")) && dv_str_eq(name, gone_kinds[i].kind))
            return dv_json_fail(json, err,
                                "%.*s is of classic DRA, which is not served; in its place is %s",
                                DV_FMT(name), gone_kinds[i].instead);
    return true;
}

static bool find_kind(const struct dv_json *json, dv_str api_version, dv_str name,
                      struct dv_cli_subject *subject, struct dv_err *err)
{
    const struct dv_kind *known = dv_cli_kind_find(name);
    dv_str group;
    dv_str version;
    dv_str meant;

    dv_api_version_split(api_version, &group, &version);
    subject->kind = dv_kind_by_name(group, version, name, &subject->version);
    if (subject->kind)
        return true;
    if (!check_gone(json, group, name, err))
        return false;
    meant = known ? known->name : dv_cli_kind_suggest(name);
    if (known)
        return dv_json_fail(json, err,
                            "there is no kind %.*s in %.*s; did you mean %.*s in %.*s%s%.*s?",
                            DV_FMT(name), DV_FMT(api_version), DV_FMT(known->name),
                            DV_FMT(known->versions[0].group), known->versions[0].group.n ? "/" : "",
                            DV_FMT(known->versions[0].version));
    if (meant.n)
        return dv_json_fail(json, err, "there is no kind %.*s in %.*s; did you mean %.*s?",
                            DV_FMT(name), DV_FMT(api_version),
                            DV_FMT(dv_cli_kind_find(meant)->name));
    return dv_json_fail(json, err, "there is no kind %.*s in %.*s", DV_FMT(name),
                        DV_FMT(api_version));
}

static bool read_subject(const struct dv_json *json, dv_str wanted_namespace, dv_str namespace,
                         struct dv_cli_subject *subject, struct dv_err *err)
{
    const struct dv_json *node;
    dv_str api_version;
    dv_str kind;

    if (!dv_json_expect(json, DV_JSON_OBJECT, err))
        return false;
    node = dv_json_require(json, DV_STR("apiVersion"), err);
    if (!node || !dv_json_as_str(node, &api_version, err))
        return false;
    node = dv_json_require(json, DV_STR("kind"), err);
    if (!node || !dv_json_as_str(node, &kind, err) ||
        !find_kind(json, api_version, kind, subject, err))
        return false;
    node = dv_json_require(json, DV_STR("metadata"), err);
    if (!node)
        return false;
    if (!dv_json_get(node, DV_STR("name")) && dv_json_get(node, DV_STR("generateName")))
        return dv_json_fail(node, err, "generateName cannot be applied: give it a name");
    node = dv_json_require(node, DV_STR("name"), err);
    if (!node || !dv_json_as_str(node, &subject->name, err))
        return false;
    if (subject->name.n == 0)
        return dv_json_fail(node, err, "it is empty");
    if (!subject->kind->is_namespaced)
        return true;
    subject->namespace = dv_cli_text(json, "metadata", "namespace");
    if (wanted_namespace.n && subject->namespace.n &&
        !dv_str_eq(subject->namespace, wanted_namespace))
        return dv_json_fail(json, err, "it is for the namespace %.*s, and -n says %.*s",
                            DV_FMT(subject->namespace), DV_FMT(wanted_namespace));
    if (subject->namespace.n == 0)
        subject->namespace = namespace;
    return true;
}

bool dv_cli_document_subject(const struct dv_cli_document *document, dv_str wanted_namespace,
                             dv_str namespace, struct dv_cli_subject *subject, struct dv_err *err)
{
    *subject = (struct dv_cli_subject){0};
    if (!read_subject(document->json, wanted_namespace, namespace, subject, err))
        return dv_wrap(err, "%.*s, document %zu", DV_FMT(document->file), document->number);
    return true;
}
