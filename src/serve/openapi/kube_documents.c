/* kube_documents.c - keeps the documents about the API by name: those of what is built in for good,
 * those that have kinds which definitions make until one of these changes. */
#include "serve/openapi/kube_documents.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "resource/custom.h"
#include "rest/rest.h"
#include "serve/openapi/discovery.h"
#include "serve/openapi/openapi.h"
#include "serve/wire/kube_route.h"

/* The limit of a document; all of OpenAPI is about a megabyte. */
#define DOCUMENT_BYTES_MAX (16u << 20)

struct kept {
    struct dv_arena *arena;
    struct dv_map by_name;
};

struct dv_documents {
    struct kept fixed;
    struct kept changing;
    uint64_t generation; /* of the kinds that `changing` has */
};

static void kept_init(struct kept *kept)
{
    kept->arena = dv_arena_new();
    dv_map_init(&kept->by_name);
}

static void kept_fini(struct kept *kept)
{
    dv_map_fini(&kept->by_name);
    dv_arena_free(kept->arena);
}

struct dv_documents *dv_documents_new(void)
{
    struct dv_documents *documents = DV_ALLOC(struct dv_documents);

    kept_init(&documents->fixed);
    kept_init(&documents->changing);
    return documents;
}

void dv_documents_free(struct dv_documents *documents)
{
    if (!documents)
        return;
    kept_fini(&documents->fixed);
    kept_fini(&documents->changing);
    free(documents);
}

/* Where documents about these kinds are kept. What was printed of kinds that have changed is
 * forgotten. */
static struct kept *kept_for(struct dv_documents *documents, const struct dv_custom_set *customs)
{
    if (!customs || customs->n == 0)
        return &documents->fixed;
    if (documents->generation != customs->generation) {
        documents->generation = customs->generation;
        kept_fini(&documents->changing);
        kept_init(&documents->changing);
    }
    return &documents->changing;
}

static const struct dv_document *keep(struct kept *kept, dv_str name, struct dv_buf *text)
{
    struct dv_document *document = DV_NEW(kept->arena, struct dv_document);

    document->text = dv_str_copy(dv_buf_str(text), kept->arena);
    document->tag = dv_rest_sha256_hex(document->text, kept->arena);
    (void)dv_map_set(&kept->by_name, dv_str_copy(name, kept->arena), document);
    dv_buf_fini(text);
    return document;
}

/* Returns the document of that name, which is printed when it is first asked for. */
static const struct dv_document *
print_once(struct dv_documents *documents, const struct dv_custom_set *customs, dv_str name,
           void (*print)(const struct dv_custom_set *customs, struct dv_arena *scratch,
                         struct dv_buf *text))
{
    struct kept *kept = kept_for(documents, customs);
    const struct dv_document *document = dv_map_get(&kept->by_name, name);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = NULL;
    struct dv_buf text;

    if (document)
        return document;
    scratch = dv_arena_new();
    dv_buf_init(&text, DOCUMENT_BYTES_MAX);
    print(customs, scratch, &text);
    return keep(kept, name, &text);
}

static void print_core(const struct dv_custom_set *customs, struct dv_arena *scratch,
                       struct dv_buf *text)
{
    dv_discovery_aggregated(customs, true, scratch, text);
}

static void print_groups(const struct dv_custom_set *customs, struct dv_arena *scratch,
                         struct dv_buf *text)
{
    dv_discovery_aggregated(customs, false, scratch, text);
}

const struct dv_document *dv_documents_discovery(struct dv_documents *documents,
                                                 const struct dv_custom_set *customs, bool is_core)
{
    return is_core ? print_once(documents, NULL, DV_STR("/api"), print_core)
                   : print_once(documents, customs, DV_STR("/apis"), print_groups);
}

const struct dv_document *dv_documents_openapi_v2(struct dv_documents *documents,
                                                  const struct dv_custom_set *customs)
{
    return print_once(documents, customs, DV_STR("/openapi/v2"), dv_openapi_v2);
}

const struct dv_document *dv_documents_openapi_v2_protobuf(struct dv_documents *documents,
                                                           const struct dv_custom_set *customs)
{
    dv_str name = DV_STR("/openapi/v2 in protobuf");
    struct kept *kept = kept_for(documents, customs);
    const struct dv_document *document = dv_map_get(&kept->by_name, name);
    struct dv_buf text;
    struct dv_err err;

    if (document)
        return document;
    dv_buf_init(&text, DOCUMENT_BYTES_MAX);
    if (dv_openapi_v2_protobuf(dv_documents_openapi_v2(documents, customs)->text, &text, &err))
        return keep(kept, name, &text);
    dv_buf_fini(&text);
    return NULL;
}

/* ---- v3 ---- */

static void print_group(dv_str group, struct dv_buf *buf)
{
    dv_buf_printf(buf,
                  "{\"openapi\":\"3.0.0\",\"info\":{\"title\":\"davit\",\"version\":\"v1.36.4\"},"
                  "\"paths\":{\"/apis/%.*s/\":{\"get\":{\"operationId\":\"getAPIGroup%.*s\","
                  "\"responses\":{\"200\":{\"description\":\"OK\"}}}}},\"components\":{"
                  "\"schemas\":{}}}",
                  DV_FMT(group), DV_FMT(group));
}

static void print_version(struct dv_buf *buf)
{
    dv_buf_add_c(buf, "{\"openapi\":\"3.0.0\",\"info\":{\"title\":\"davit\",\"version\":\"v1.36.4\""
                      "},\"paths\":{\"/version/\":{\"get\":{\"operationId\":\"getCodeVersion\","
                      "\"responses\":{\"200\":{\"description\":\"OK\"}}}}},\"components\":{"
                      "\"schemas\":{}}}");
}

/* The parts of a name like "apis/GROUP/VERSION"; false: it is another one. */
static bool split(dv_str name, dv_str *group, dv_str *version)
{
    const dv_str apis = DV_STR("apis/");
    dv_str rest = dv_str_slice(name, apis.n, name.n);
    size_t slash = dv_str_find_char(rest, '/');

    *group = dv_str_slice(rest, 0, slash);
    *version = dv_str_slice(rest, slash + 1, rest.n);
    return dv_str_starts_with(name, apis);
}

/* Prints the document; false when there is no such one. */
static bool print_v3(const struct dv_custom_set *customs, dv_str name, struct dv_buf *buf)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    dv_str group;
    dv_str version;

    if (dv_str_eq(name, DV_STR("version"))) {
        print_version(buf);
    } else if (dv_str_eq(name, DV_STR("api/v1"))) {
        dv_openapi_v3(NULL, DV_STR_NONE, DV_STR("v1"), scratch, buf);
    } else if (!split(name, &group, &version) || !dv_api_has_group(customs, group)) {
        return false;
    } else if (version.n == 0) {
        print_group(group, buf);
    } else {
        if (!dv_api_has_version(customs, group, version))
            return false;
        dv_openapi_v3(customs, group, version, scratch, buf);
    }
    return true;
}

const struct dv_document *dv_documents_openapi_v3(struct dv_documents *documents,
                                                  const struct dv_custom_set *customs, dv_str name)
{
    dv_str group;
    dv_str version;
    bool is_built_in = !split(name, &group, &version) || dv_api_has_group(NULL, group);
    struct kept *kept = kept_for(documents, is_built_in ? NULL : customs);
    const struct dv_document *document = dv_map_get(&kept->by_name, name);
    struct dv_buf text;

    if (document)
        return document;
    dv_buf_init(&text, DOCUMENT_BYTES_MAX);
    if (print_v3(is_built_in ? NULL : customs, name, &text))
        return keep(kept, name, &text);
    dv_buf_fini(&text);
    return NULL;
}

/* What the index is made of. */
struct index {
    struct dv_documents *documents;
    const struct dv_custom_set *customs;
    struct dv_buf *buf;
};

static void add_to_index(const struct index *index, dv_str name)
{
    const struct dv_document *document =
        dv_documents_openapi_v3(index->documents, index->customs, name);

    dv_buf_printf(index->buf, "%s\"%.*s\":{\"serverRelativeURL\":\"/openapi/v3/%.*s?hash=%.*s\"}",
                  index->buf->p[index->buf->n - 1] == '{' ? "" : ",", DV_FMT(name), DV_FMT(name),
                  DV_FMT(document->tag));
}

const struct dv_document *dv_documents_openapi_v3_index(struct dv_documents *documents,
                                                        const struct dv_custom_set *customs)
{
    dv_str key = DV_STR("/openapi/v3");
    struct kept *kept = kept_for(documents, customs);
    const struct dv_document *document = dv_map_get(&kept->by_name, key);
    struct dv_buf text;
    const struct index index = {documents, customs, &text};
    const struct dv_api_group *groups;
    size_t n;

    if (document)
        return document;
    groups = dv_api_groups(customs, kept->arena, &n);
    dv_buf_init(&text, DOCUMENT_BYTES_MAX);
    dv_buf_add_c(&text, "{\"paths\":{");
    add_to_index(&index, DV_STR("api/v1"));
    for (size_t i = 0; i < n; i++) {
        add_to_index(&index, dv_str_printf(kept->arena, "apis/%.*s", DV_FMT(groups[i].name)));
        for (size_t k = 0; k < groups[i].n_versions; k++)
            add_to_index(&index,
                         dv_str_printf(kept->arena, "apis/%.*s/%.*s", DV_FMT(groups[i].name),
                                       DV_FMT(groups[i].versions[k])));
    }
    add_to_index(&index, DV_STR("version"));
    dv_buf_add_c(&text, "}}");
    return keep(kept, key, &text);
}
