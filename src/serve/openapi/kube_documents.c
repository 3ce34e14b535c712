/* kube_documents.c - keeps the OpenAPI documents by name. */
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

struct dv_documents {
    struct dv_arena *arena;
    struct dv_map by_name;
    struct dv_arena *changing; /* what has the kinds that definitions make */
    uint64_t generation;       /* of those kinds */
    struct dv_document *discovery;
};

struct dv_documents *dv_documents_new(void)
{
    struct dv_documents *documents = DV_ALLOC(struct dv_documents);

    documents->arena = dv_arena_new();
    documents->changing = dv_arena_new();
    dv_map_init(&documents->by_name);
    return documents;
}

void dv_documents_free(struct dv_documents *documents)
{
    if (!documents)
        return;
    dv_map_fini(&documents->by_name);
    dv_arena_free(documents->arena);
    dv_arena_free(documents->changing);
    free(documents);
}

static const struct dv_document *keep(struct dv_documents *documents, dv_str name,
                                      struct dv_buf *text)
{
    struct dv_document *document = DV_NEW(documents->arena, struct dv_document);

    document->text = dv_str_copy(dv_buf_str(text), documents->arena);
    document->tag = dv_rest_sha256_hex(document->text, documents->arena);
    (void)dv_map_set(&documents->by_name, dv_str_copy(name, documents->arena), document);
    dv_buf_fini(text);
    return document;
}

/* Returns the document of that name, which is printed when it is first asked for. */
static const struct dv_document *print_once(struct dv_documents *documents, dv_str name,
                                            void (*print)(struct dv_arena *scratch,
                                                          struct dv_buf *text))
{
    const struct dv_document *document = dv_map_get(&documents->by_name, name);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = NULL;
    struct dv_buf text;

    if (document)
        return document;
    scratch = dv_arena_new();
    dv_buf_init(&text, DOCUMENT_BYTES_MAX);
    print(scratch, &text);
    return keep(documents, name, &text);
}

static void print_core(struct dv_arena *scratch, struct dv_buf *text)
{
    dv_discovery_aggregated(NULL, true, scratch, text);
}

static void print_groups(struct dv_arena *scratch, struct dv_buf *text)
{
    dv_discovery_aggregated(NULL, false, scratch, text);
}

/* Forgets what was printed of kinds that definitions make, when one of them has changed. */
static void follow(struct dv_documents *documents, const struct dv_custom_set *customs)
{
    if (documents->generation == customs->generation)
        return;
    documents->generation = customs->generation;
    dv_arena_reset(documents->changing);
    documents->discovery = NULL;
}

/* Prints what has the kinds that definitions make, which is kept until one of them changes. */
static const struct dv_document *custom_discovery(struct dv_documents *documents,
                                                  const struct dv_custom_set *customs)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = NULL;
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;

    dv_buf_init(&text, DOCUMENT_BYTES_MAX);
    follow(documents, customs);
    if (documents->discovery)
        return documents->discovery;
    scratch = dv_arena_new();
    dv_discovery_aggregated(customs, false, scratch, &text);
    documents->discovery = DV_NEW(documents->changing, struct dv_document);
    documents->discovery->text = dv_str_copy(dv_buf_str(&text), documents->changing);
    documents->discovery->tag = dv_rest_sha256_hex(documents->discovery->text, documents->changing);
    return documents->discovery;
}

const struct dv_document *dv_documents_discovery(struct dv_documents *documents,
                                                 const struct dv_custom_set *customs, bool is_core)
{
    if (!is_core && customs && customs->n > 0)
        return custom_discovery(documents, customs);
    return is_core ? print_once(documents, DV_STR("/api"), print_core)
                   : print_once(documents, DV_STR("/apis"), print_groups);
}

const struct dv_document *dv_documents_openapi_v2(struct dv_documents *documents)
{
    return print_once(documents, DV_STR("/openapi/v2"), dv_openapi_v2);
}

const struct dv_document *dv_documents_openapi_v2_protobuf(struct dv_documents *documents)
{
    dv_str name = DV_STR("/openapi/v2 in protobuf");
    const struct dv_document *document = dv_map_get(&documents->by_name, name);
    struct dv_buf text;
    struct dv_err err;

    if (document)
        return document;
    dv_buf_init(&text, DOCUMENT_BYTES_MAX);
    if (dv_openapi_v2_protobuf(dv_documents_openapi_v2(documents)->text, &text, &err))
        return keep(documents, name, &text);
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

/* Prints the document; false when there is no such one. */
static bool print_v3(dv_str name, struct dv_buf *buf)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const dv_str apis = DV_STR("apis/");
    dv_str rest = dv_str_slice(name, apis.n, name.n);
    size_t slash = dv_str_find_char(rest, '/');
    dv_str group = dv_str_slice(rest, 0, slash);
    dv_str version = dv_str_slice(rest, slash + 1, rest.n);

    if (dv_str_eq(name, DV_STR("version"))) {
        print_version(buf);
    } else if (dv_str_eq(name, DV_STR("api/v1"))) {
        dv_openapi_v3(DV_STR_NONE, DV_STR("v1"), scratch, buf);
    } else if (!dv_str_starts_with(name, apis) || !dv_api_has_group(NULL, group)) {
        return false;
    } else if (slash == rest.n) {
        print_group(group, buf);
    } else {
        if (!dv_api_has_version(NULL, group, version))
            return false;
        dv_openapi_v3(group, version, scratch, buf);
    }
    return true;
}

const struct dv_document *dv_documents_openapi_v3(struct dv_documents *documents, dv_str name)
{
    const struct dv_document *document = dv_map_get(&documents->by_name, name);
    struct dv_buf text;

    if (document)
        return document;
    dv_buf_init(&text, DOCUMENT_BYTES_MAX);
    if (print_v3(name, &text))
        return keep(documents, name, &text);
    dv_buf_fini(&text);
    return NULL;
}

static void add_to_index(struct dv_documents *documents, dv_str name, struct dv_buf *index)
{
    const struct dv_document *document = dv_documents_openapi_v3(documents, name);

    dv_buf_printf(index, "%s\"%.*s\":{\"serverRelativeURL\":\"/openapi/v3/%.*s?hash=%.*s\"}",
                  index->p[index->n - 1] == '{' ? "" : ",", DV_FMT(name), DV_FMT(name),
                  DV_FMT(document->tag));
}

const struct dv_document *dv_documents_openapi_v3_index(struct dv_documents *documents)
{
    dv_str key = DV_STR("/openapi/v3");
    const struct dv_document *document = dv_map_get(&documents->by_name, key);
    struct dv_buf index;
    size_t n;
    const struct dv_api_group *groups = dv_api_groups(NULL, NULL, &n);

    if (document)
        return document;
    dv_buf_init(&index, DOCUMENT_BYTES_MAX);
    dv_buf_add_c(&index, "{\"paths\":{");
    add_to_index(documents, DV_STR("api/v1"), &index);
    for (size_t i = 0; i < n; i++) {
        add_to_index(documents,
                     dv_str_printf(documents->arena, "apis/%.*s", DV_FMT(groups[i].name)), &index);
        for (size_t k = 0; k < groups[i].n_versions; k++)
            add_to_index(documents,
                         dv_str_printf(documents->arena, "apis/%.*s/%.*s", DV_FMT(groups[i].name),
                                       DV_FMT(groups[i].versions[k])),
                         &index);
    }
    add_to_index(documents, DV_STR("version"), &index);
    dv_buf_add_c(&index, "}}");
    return keep(documents, key, &index);
}
