#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "serve/openapi/discovery.h"
#include "serve/openapi/kube_documents.h"
#include "json/json.h"

static struct dv_json *parse(dv_str text, struct dv_arena *arena)
{
    const struct dv_json_opts opts = {.refuse_duplicates = true};
    struct dv_err err;
    struct dv_json *doc = dv_json_parse(text, &opts, arena, &err);

    if (!doc)
        fail_msg("%s", err.msg);
    return doc;
}

static dv_str text_of(const struct dv_json *node)
{
    dv_str text = DV_STR_NONE;
    struct dv_err err;

    assert_non_null(node);
    assert_ok(dv_json_as_str(node, &text, &err), &err);
    return text;
}

static const struct dv_json *find_named(const struct dv_json *array, const char *name)
{
    const struct dv_json *item;

    for (item = dv_json_first(array); item; item = dv_json_next(item))
        if (dv_str_eq(text_of(dv_json_get(item, DV_STR("name"))), dv_str_from_c(name)))
            return item;
    return NULL;
}

static void resources_are_listed_as_the_reference_lists_them(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_buf text;
    const struct dv_json *doc, *pods, *eviction;

    (void)state;
    dv_buf_init(&text, 1u << 20);
    dv_discovery_resources(NULL, DV_STR_NONE, DV_STR("v1"), arena, &text);
    doc = parse(dv_buf_str(&text), arena);
    pods = find_named(dv_json_get(doc, DV_STR("resources")), "pods");
    assert_str(text_of(dv_json_at(dv_json_get(pods, DV_STR("shortNames")), 0)), "po");
    assert_str(text_of(dv_json_at(dv_json_get(pods, DV_STR("categories")), 0)), "all");
    assert_str(text_of(dv_json_get(pods, DV_STR("storageVersionHash"))), "xPOwRZ+Yhw8=");
    assert_int_equal(dv_json_n(dv_json_get(pods, DV_STR("verbs"))), 8);
    eviction = find_named(dv_json_get(doc, DV_STR("resources")), "pods/eviction");
    assert_str(text_of(dv_json_get(eviction, DV_STR("group"))), "policy");
    dv_buf_clear(&text);
    dv_discovery_groups(NULL, arena, &text);
    (void)parse(dv_buf_str(&text), arena);
    dv_buf_clear(&text);
    dv_discovery_paths(NULL, arena, &text);
    (void)parse(dv_buf_str(&text), arena);
    dv_buf_fini(&text);
}

/* Every reference of a document leads to a schema that it has. */
static void check_references(const struct dv_json *node, const struct dv_json *schemas, size_t root)
{
    const struct dv_json *child;

    for (child = dv_json_first(node); child; child = dv_json_next(child)) {
        if (dv_str_eq(dv_json_key(child), DV_STR("$ref"))) {
            dv_str name = dv_str_slice(text_of(child), root, text_of(child).n);

            if (!dv_json_get(schemas, name))
                fail_msg("no schema %.*s", DV_FMT(name));
        }
        check_references(child, schemas, root);
    }
}

static void openapi_documents_are_whole(void **state)
{
    static const char *const names[] = {"api/v1",
                                        "apis/resource.k8s.io/v1",
                                        "apis/resource.k8s.io/v1beta2",
                                        "apis/resource.k8s.io/v1beta1",
                                        "apis/resource.k8s.io/v1alpha3",
                                        "apis/events.k8s.io/v1",
                                        "apis/coordination.k8s.io/v1",
                                        "apis/node.k8s.io/v1",
                                        "apis/authentication.k8s.io/v1",
                                        "apis/authorization.k8s.io/v1"};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_documents *documents = dv_documents_new();
    const struct dv_json *doc;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(names); i++) {
        doc = parse(dv_documents_openapi_v3(documents, NULL, dv_str_from_c(names[i]))->text, arena);
        check_references(doc,
                         dv_json_get(dv_json_get(doc, DV_STR("components")), DV_STR("schemas")),
                         sizeof("#/components/schemas/") - 1);
    }
    doc = parse(dv_documents_openapi_v2(documents, NULL)->text, arena);
    check_references(doc, dv_json_get(doc, DV_STR("definitions")), sizeof("#/definitions/") - 1);
    assert_non_null(dv_documents_openapi_v2_protobuf(documents, NULL));
    assert_null(dv_documents_openapi_v3(documents, NULL, DV_STR("apis/nope/v1")));
    assert_null(dv_documents_openapi_v3(documents, NULL, DV_STR("nope")));
    dv_documents_free(documents);
}

static void patches_are_described_for_validation_by_the_server(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_documents *documents = dv_documents_new();
    const struct dv_json *doc = parse(
        dv_documents_openapi_v3(documents, NULL, DV_STR("apis/resource.k8s.io/v1beta2"))->text,
        arena);
    const struct dv_json *path = dv_json_get(
        dv_json_get(doc, DV_STR("paths")),
        DV_STR("/apis/resource.k8s.io/v1beta2/namespaces/{namespace}/resourceclaims/{name}"));
    const struct dv_json *patch = dv_json_get(path, DV_STR("patch"));
    const struct dv_json *gvk = dv_json_get(patch, DV_STR("x-kubernetes-group-version-kind"));

    (void)state;
    assert_str(text_of(dv_json_get(gvk, DV_STR("kind"))), "ResourceClaim");
    assert_str(text_of(dv_json_get(gvk, DV_STR("version"))), "v1beta2");
    assert_non_null(find_named(dv_json_get(patch, DV_STR("parameters")), "fieldValidation"));
    dv_documents_free(documents);
}

static void a_log_is_told_to_be_text(void **state)
{
    static const char *const way[] = {
        "paths",      "/api/v1/namespaces/{namespace}/pods/{name}/log",
        "get",        "responses",
        "200",        "content",
        "text/plain", "schema"};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_documents *documents = dv_documents_new();
    const struct dv_json *at =
        parse(dv_documents_openapi_v3(documents, NULL, DV_STR("api/v1"))->text, arena);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(way); i++) {
        at = dv_json_get(at, dv_str_from_c(way[i]));
        if (i == 2)
            assert_non_null(find_named(dv_json_get(at, DV_STR("parameters")), "tailLines"));
    }
    assert_str(text_of(dv_json_get(at, DV_STR("type"))), "string");
    dv_documents_free(documents);
}

static void lists_say_how_they_are_merged(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_documents *documents = dv_documents_new();
    const struct dv_json *doc =
        parse(dv_documents_openapi_v3(documents, NULL, DV_STR("api/v1"))->text, arena);
    const struct dv_json *schemas =
        dv_json_get(dv_json_get(doc, DV_STR("components")), DV_STR("schemas"));
    const struct dv_json *containers =
        dv_json_get(dv_json_get(dv_json_get(schemas, DV_STR("io.k8s.api.core.v1.PodSpec")),
                                DV_STR("properties")),
                    DV_STR("containers"));

    (void)state;
    assert_str(text_of(dv_json_get(containers, DV_STR("x-kubernetes-patch-merge-key"))), "name");
    assert_str(text_of(dv_json_get(containers, DV_STR("x-kubernetes-patch-strategy"))), "merge");
    assert_str(text_of(dv_json_get(containers, DV_STR("x-kubernetes-list-type"))), "map");
    dv_documents_free(documents);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resources_are_listed_as_the_reference_lists_them),
        cmocka_unit_test(openapi_documents_are_whole),
        cmocka_unit_test(a_log_is_told_to_be_text),
        cmocka_unit_test(patches_are_described_for_validation_by_the_server),
        cmocka_unit_test(lists_say_how_they_are_merged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
