/* test_growth.c - lists that users make as long as a request allows cost what is in them. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "resource/patch.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "resource/validate/pod_checks.h"
#include "support/growth.h"
#include "json/json.h"

#define TEXT_BYTES_MAX (64u * 1024u * 1024u)

/* A document with `n` items in the place of %: {head}{item}{item}...{tail}, each %zu its number. */
struct list {
    enum dv_kind_id kind;
    enum dv_operation operation;
    const char *head;
    const char *item; /* with two %zu */
    const char *tail;
};

#define META "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\"},"
#define NO_ITEM "{\"name\":\"c\",\"image\":\"i\""

static const struct list lists[] = {
    {DV_KIND_POD,        DV_CREATE,        META "\"spec\":{\"containers\":[",
     "{\"name\":\"c%zu\",\"image\":\"i%zu\"}",                                                                                  "]}}"   },
    {DV_KIND_POD,        DV_CREATE,        META "\"spec\":{\"initContainers\":[",
     "{\"name\":\"c%zu\",\"image\":\"i%zu\"}",                                                                                  "]}}"   },
    {DV_KIND_POD,        DV_UPDATE,        META "\"spec\":{\"tolerations\":[",
     "{\"key\":\"k%zu\",\"value\":\"v%zu\"}",                                                                                   "]}}"   },
    {DV_KIND_POD,        DV_UPDATE,        META "\"spec\":{\"schedulingGates\":[",                   "{\"name\":\"k%zu-%zu\"}",
     "]}}"                                                                                                                              },
    {DV_KIND_POD,        DV_UPDATE,        META "\"spec\":{\"nodeSelector\":{",                      "\"k%zu\":\"v%zu\"",       "}}}"   },
    {DV_KIND_POD,        DV_CREATE,        META "\"spec\":{\"resourceClaims\":[",
     "{\"name\":\"c%zu\",\"resourceClaimName\":\"x%zu\"}",                                                                      "]}}"   },
    {DV_KIND_POD,        DV_CREATE,
     META "\"spec\":{\"containers\":[" NO_ITEM ",\"resources\":{\"limits\":{",
     "\"a.b/r%zu\":\"%zu\"",                                                                                                    "}}}]}}"},
    {DV_KIND_POD,        DV_CREATE,
     META "\"spec\":{\"containers\":[" NO_ITEM ",\"resources\":{\"claims\":[",
     "{\"name\":\"c%zu\",\"request\":\"r%zu\"}",                                                                                "]}}]}}"},
    {DV_KIND_POD,        DV_UPDATE_STATUS, META "\"status\":{\"resourceClaimStatuses\":[",
     "{\"name\":\"c%zu\",\"resourceClaimName\":\"r%zu\"}",                                                                      "]}}"   },
    {DV_KIND_POD,        DV_UPDATE_STATUS,
     META "\"status\":{\"extendedResourceClaimStatus\":{\"requestMappings\":[",
     "{\"containerName\":\"c%zu\",\"resourceName\":\"r%zu\"}",                                                                  "]}}}"  },
    {DV_KIND_NODE,       DV_CREATE,        "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"taints\":[",
     "{\"key\":\"k%zu\",\"value\":\"v%zu\",\"effect\":\"NoSchedule\"}",                                                         "]}}"   },
    {DV_KIND_CONFIG_MAP, DV_CREATE,
     "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"ownerReferences\":[",                      "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p%zu\",\"uid\":\"u%zu\",\"controller\":"
     "true}",                                    "]}}"   },
    {DV_KIND_CONFIG_MAP, DV_CREATE,
     "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"finalizers\":[",                           "\"a.b/%zu-%zu\"",
     "]}}"                                                                                                                              },
    {DV_KIND_CLAIM,      DV_CREATE,        META "\"spec\":{\"devices\":{\"requests\":[",
     "{\"name\":\"r%zu\",\"exactly\":{\"deviceClassName\":\"c%zu\"}}",                                                          "]}}}"  },
    {DV_KIND_CLAIM,      DV_UPDATE_STATUS, META "\"status\":{\"reservedFor\":[",
     "{\"resource\":\"pods\",\"name\":\"p%zu\",\"uid\":\"u%zu\"}",                                                              "]}}"   },
    {DV_KIND_SLICE,      DV_CREATE,        "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"devices\":[",
     "{\"name\":\"d%zu-%zu\"}",                                                                                                 "]}}"   },
};

static void print_list(const struct list *list, size_t n, struct dv_buf *buf)
{
    dv_buf_add_c(buf, list->head);
    for (size_t i = 0; i < n; i++) {
        dv_buf_add_c(buf, i > 0 ? "," : "");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        dv_buf_printf(buf, list->item, i, i); /* constants of this file */
#pragma GCC diagnostic pop
    }
    dv_buf_add_c(buf, list->tail);
}

static const struct dv_json *make_doc(const struct list *list, size_t n, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    const struct dv_json *doc;
    struct dv_err err;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    print_list(list, n, &buf);
    doc = dv_json_parse(dv_str_copy(dv_buf_str(&buf), arena), NULL, arena, &err);
    assert_ok(doc, &err);
    return doc;
}

/* All that a write does to an object on the way to the store. */
static void validate_list(void *ctx, size_t n)
{
    const struct list *list = ctx;
    const struct dv_kind *kind = dv_kind(list->kind);
    const struct dv_api_version *version = &kind->versions[0];
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_json *doc = make_doc(list, n, arena);
    void *value = dv_arena_alloc(arena, version->message->size, version->message->align);
    void *old = dv_arena_alloc(arena, version->message->size, version->message->align);
    const struct dv_prepare how = {
        .now = {.seconds = 1, .is_set = true},
          .arena = arena
    };
    struct dv_problems problems = {.arena = arena};
    struct dv_decode_notes notes = {0};
    struct dv_validation what = {
        .kind = kind, .operation = list->operation, .version = version, .value = value};
    struct dv_err err;

    assert_ok(dv_decode_json(version->message, doc, DV_UNKNOWN_DROP, arena, value, &notes, &err),
              &err);
    assert_ok(dv_decode_json(version->message, doc, DV_UNKNOWN_DROP, arena, old, &notes, &err),
              &err);
    dv_default(kind, version, value, how.now, arena);
    dv_default(kind, version, old, how.now, arena);
    if (list->operation == DV_CREATE) {
        dv_prepare_create(kind, value, &how);
    } else {
        what.old = old;
        dv_prepare_update(kind, list->operation, value, old, &how);
        dv_validate_before_update(&what, &problems);
    }
    dv_validate(&what, &problems);
}

static void validation_costs_what_is_in_the_list(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(lists); i++) {
        struct list list = lists[i];

        if (!growth_is_linear(validate_list, &list, 6000))
            fail_msg("list %zu: %s", i, list.head);
    }
}

static void apply_list(void *ctx, size_t n)
{
    const struct list *list = ctx;
    const struct dv_api_version *version = &dv_kind(list->kind)->versions[0];
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_json *doc = make_doc(list, n, arena);
    struct dv_manager manager = {.name = DV_STR("m"), .api_version = DV_STR("v1")};
    struct dv_apply_result first;
    struct dv_apply_result again;
    struct dv_err err;

    assert_ok(dv_apply(version->message, NULL, &(struct dv_managed_fields){0},
                       dv_json_copy(doc, arena), &manager, true, arena, &first, &err),
              &err);
    assert_ok(dv_apply(version->message, first.doc, &first.managed, dv_json_copy(doc, arena),
                       &manager, true, arena, &again, &err),
              &err);
    manager.name = DV_STR("o");
    assert_ok(dv_apply(version->message, first.doc, &first.managed, make_doc(list, n / 2, arena),
                       &manager, false, arena, &again, &err),
              &err);
}

static void applying_costs_what_is_in_the_list(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(lists); i++) {
        struct list list = lists[i];

        if (list.operation == DV_CREATE && !growth_is_linear(apply_list, &list, 2000))
            fail_msg("list %zu: %s", i, list.head);
    }
}

static void compare_texts(void *ctx, size_t n)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf from;
    DV_CLEANUP(dv_buf_fini) struct dv_buf to;
    DV_CLEANUP(dv_buf_fini) struct dv_buf diff;

    (void)ctx;
    dv_buf_init(&from, TEXT_BYTES_MAX);
    dv_buf_init(&to, TEXT_BYTES_MAX);
    dv_buf_init(&diff, TEXT_BYTES_MAX);
    for (size_t i = 0; i < n; i++) {
        dv_buf_printf(&from, "name: %zu\nvalue: v\nkey: x\n", i);
        dv_buf_printf(&to, "name: %zu\nvalue: w\nkey: x\n", i);
    }
    dv_diff_lines(dv_buf_str(&from), dv_buf_str(&to), &diff);
    assert_true(diff.n > 0);
}

static void differences_of_long_texts_are_bounded(void **state)
{
    (void)state;
    assert_true(growth_is_linear(compare_texts, NULL, 20000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validation_costs_what_is_in_the_list),
        cmocka_unit_test(applying_costs_what_is_in_the_list),
        cmocka_unit_test(differences_of_long_texts_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
