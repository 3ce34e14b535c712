/* Extended resources that classes serve. */
#include "tests/support/dvtest.h"

#include "alloc/alloc.h"
#include "alloc/tests/test_alloc_world.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "number/number.h"
#include "resource/resource.h"
#include "json/json.h"

#define TEXT_BYTES_MAX 65536u
#define IMPLICIT "deviceclass.resource.kubernetes.io/"

struct fixture {
    struct world world;
    struct dv_inventory *inventory;
    struct dv_arena *arena;
    struct dv_extended extended;
    struct dv_err err;
};

static void open_fixture(struct fixture *f, const char *classes)
{
    *f = (struct fixture){.arena = dv_arena_new()};
    world_write(&f->world, classes);
    f->inventory = world_inventory(&f->world);
}

static void close_fixture(struct fixture *f)
{
    dv_inventory_free(f->inventory);
    world_close(&f->world);
    dv_arena_free(f->arena);
}

#define GPU                                                                                        \
    "{'deviceClasses':[{'metadata':{'name':'gpu','creationTimestamp':'2024-01-01T00:00:00Z'},"     \
    "'spec':{'extendedResourceName':'example.com/gpu'}}]}"

static bool read_pod(struct fixture *f, const char *text, const char *allocatable)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_api_pod *pod = DV_NEW(f->arena, struct dv_api_pod);
    struct dv_quantity_entry own = {dv_str_from_c(allocatable),
                                    dv_quantity_from_i64(1, DV_QUANTITY_DECIMAL_SI)};
    const struct dv_json *json;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (; *text; text++)
        dv_buf_add_char(&buf, *text == '\'' ? '"' : *text);
    json = dv_json_parse(dv_str_copy(dv_buf_str(&buf), f->arena), NULL, f->arena, &f->err);
    assert_ok(json != NULL, &f->err);
    assert_ok(dv_decode_json(&dv_message_pod, json, DV_UNKNOWN_DROP, f->arena, pod, NULL, &f->err),
              &f->err);
    return dv_extended_read(f->inventory, &pod->spec, &own, allocatable ? 1 : 0, f->arena,
                            &f->extended, &f->err);
}

/* "request=count:class ...; container resource request ..." */
static dv_str print(struct fixture *f)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < f->extended.n_requests; i++) {
        const struct dv_api_device_request *request = &f->extended.requests[i];

        dv_buf_printf(&buf, "%s%.*s=%lld:%.*s", i ? " " : "", DV_FMT(request->name),
                      (long long)request->exactly->count,
                      DV_FMT(request->exactly->device_class_name));
        assert_str(request->exactly->allocation_mode, "ExactCount");
    }
    for (size_t i = 0; i < f->extended.n_mappings; i++)
        dv_buf_printf(&buf, "; %.*s %.*s %.*s", DV_FMT(f->extended.mappings[i].container_name),
                      DV_FMT(f->extended.mappings[i].resource_name),
                      DV_FMT(f->extended.mappings[i].request_name));
    return dv_str_copy(dv_buf_str(&buf), f->arena);
}

static void finds_the_class_of_a_resource(void **state)
{
    static const char classes[] =
        "{'deviceClasses':["
        "{'metadata':{'name':'old','creationTimestamp':'2024-01-01T00:00:00Z'},'spec':{"
        "'extendedResourceName':'example.com/gpu'}},"
        "{'metadata':{'name':'new-b','creationTimestamp':'2024-02-01T00:00:00Z'},'spec':{"
        "'extendedResourceName':'example.com/gpu'}},"
        "{'metadata':{'name':'new-a','creationTimestamp':'2024-02-01T00:00:00Z'},'spec':{"
        "'extendedResourceName':'example.com/gpu'}},"
        "{'metadata':{'name':'plain'},'spec':{}}]}";
    static const struct {
        const char *resource;
        const char *class;
    } rows[] = {
        {"example.com/gpu",   "new-a"},
        {IMPLICIT "plain",    "plain"},
        {IMPLICIT "old",      "old"  },
        {IMPLICIT "none",     NULL   },
        {"example.com/other", NULL   },
        {"cpu",               NULL   },
    };
    struct fixture f;

    (void)state;
    open_fixture(&f, classes);
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const struct dv_api_device_class *class =
            dv_inventory_extended(f.inventory, dv_str_from_c(rows[i].resource));

        if (!rows[i].class) {
            assert_null(class);
            continue;
        }
        assert_non_null(class);
        assert_str(class->metadata.name, rows[i].class);
    }
    dv_inventory_remove_class(f.inventory, DV_STR("new-a"));
    assert_str(dv_inventory_extended(f.inventory, DV_STR("example.com/gpu"))->metadata.name,
               "new-b");
    close_fixture(&f);
}

#define CONTAINER(name, requests) "{'name':'" name "','resources':{'requests':{" requests "}}}"
#define SIDECAR(name, requests)                                                                    \
    "{'name':'" name "','restartPolicy':'Always','resources':{'requests':{" requests "}}}"

static void asks_for_what_containers_need(void **state)
{
    static const struct {
        const char *pod;
        const char *allocatable;
        const char *found;
    } rows[] = {
  /* One container: the index counts all that it requests, by name. */
        {"{'spec':{'containers':[" CONTAINER("a",                    "'cpu':'1','example.com/gpu':'2'") "]}}", NULL,
         "container-0-request-1=2:gpu; a example.com/gpu container-0-request-1"                                                                                                              },
 /* The node has it itself. */
        {"{'spec':{'containers':[" CONTAINER("a",                    "'example.com/gpu':'2'") "]}}",           "example.com/gpu",
         ""                                                                                                                                                                                  },
 /* Nothing of it. */
        {"{'spec':{'containers':[" CONTAINER("a",                    "'example.com/gpu':'0'") "]}}",           NULL,                                                                       ""},
 /* Two containers, two requests. */
        {"{'spec':{'containers':[" CONTAINER("a",                    "'example.com/gpu':'1'") "," CONTAINER(
             "b",                                             "'example.com/gpu':'3'") "]}}",
         NULL,                                                                                                                                                                                 "container-0-request-0=1:gpu container-1-request-0=3:gpu; a example.com/gpu "
         "container-0-request-0; b example.com/gpu container-1-request-0"},
 /* One that ends early uses what the others will have. */
        {"{'spec':{'initContainers':[" CONTAINER(
             "i",                                                          "'example.com/gpu':'2'") "],'containers':[" CONTAINER("a",
         "'example.com/"
                                                                   "gpu':'1'") "," CONTAINER("b",
         "'exam"
                                                                                             "ple."
                                                                                             "com/"
                                                                                             "gpu':"
                                                                                             "'3'") "]}}",
         NULL, "container-1-request-0=1:gpu container-2-request-0=3:gpu; a example.com/gpu "
         "container-1-request-0; b example.com/gpu container-2-request-0; i example.com/gpu "
         "container-1-request-0; i example.com/gpu container-2-request-0"},
 /* It needs more: a request of its own for the rest. Of several, the largest serves all. */
        {"{'spec':{'initContainers':[" CONTAINER("i",                                                       "'example.com/gpu':'2'") "," CONTAINER(
             "j",                       "'example.com/gpu':'5'") "],'containers':[" CONTAINER("a",
         "'example.com/gpu':'1'") "]}}",
         NULL, "container-1-request-0=4:gpu container-2-request-0=1:gpu; a example.com/gpu "
         "container-2-request-0; i example.com/gpu container-2-request-0; i example.com/gpu "
         "container-1-request-0; j example.com/gpu container-2-request-0; j example.com/gpu "
         "container-1-request-0"},
 /* A sidecar stays: it is used only by those that start before it. */
        {"{'spec':{'initContainers':[" SIDECAR("s", "'example.com/gpu':'1'") "," CONTAINER(
             "i",                                                                       "'example.com/gpu':'1'") "],'containers':[]}}",
         NULL,                                                                                                                                                "container-0-request-0=1:gpu container-1-request-0=1:gpu; s example.com/gpu "
         "container-0-request-0; i example.com/gpu container-1-request-0"},
 /* By the class' own name, beside the other. */
        {"{'spec':{'containers':[" CONTAINER("a",
         "'" IMPLICIT "gpu':'1','example.com/gpu':'2'") "]}}",
         NULL, "container-0-request-0=1:gpu container-0-request-1=2:gpu; a " IMPLICIT "gpu "
         "container-0-request-0; a example.com/gpu container-0-request-1"                                                                                                                                                                                },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct fixture f;

        open_fixture(&f, GPU);
        assert_ok(read_pod(&f, rows[i].pod, rows[i].allocatable), &f.err);
        assert_str(print(&f), rows[i].found);
        close_fixture(&f);
    }
}

static void refuses_a_part_of_a_device(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, GPU);
    assert_false(read_pod(
        &f, "{'spec':{'containers':[" CONTAINER("a", "'example.com/gpu':'500m'") "]}}", NULL));
    assert_err(&f.err, DV_INVALID_ARGUMENT,
               "container a: the amount of example.com/gpu is not a whole number");
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_class_of_a_resource),
        cmocka_unit_test(asks_for_what_containers_need),
        cmocka_unit_test(refuses_a_part_of_a_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
