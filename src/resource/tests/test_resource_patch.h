/* test_resource_patch.h - documents in the tests of patches: written as YAML, compared as values;
 * and objects that managers apply. */
#ifndef DV_RESOURCE_TEST_RESOURCE_PATCH_H
#define DV_RESOURCE_TEST_RESOURCE_PATCH_H

#include "support/dvtest.h"

#include "base/buf.h"
#include "resource/patch.h"
#include "resource/resource.h"
#include "support/docs.h"
#include "json/json.h"

#define PRINT_BYTES_MAX 65536u

static inline dv_str print(const struct dv_json *node)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, PRINT_BYTES_MAX);
    dv_json_print(node, NULL, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

static inline void assert_doc(const struct dv_json *got, const char *wanted)
{
    if (!dv_json_eq(got, parse_yaml(wanted)))
        fail_msg("got %.*s, want %.*s", DV_FMT(print(got)), DV_FMT(print(parse_yaml(wanted))));
}

/* An object under several managers. */
struct thing {
    const struct dv_message *message;
    const char *api_version;
    const char *subresource;
    struct dv_json *live;
    struct dv_managed_fields managed;
    int64_t now;
};

static inline struct dv_manager manager(const struct thing *thing, const char *name)
{
    return (struct dv_manager){
        .name = dv_str_from_c(name),
        .api_version = dv_str_from_c(thing->api_version),
        .subresource = dv_str_from_c(thing->subresource ? thing->subresource : ""),
        .now = {.seconds = thing->now, .is_set = true},
    };
}

static inline struct dv_apply_result try_apply(const struct thing *thing, const char *name,
                                               const char *config, bool force)
{
    struct dv_manager who = manager(thing, name);
    struct dv_apply_result result;
    struct dv_err err;

    assert_ok(dv_apply(thing->message, thing->live, &thing->managed, parse_yaml(config), &who,
                       force, arena, &result, &err),
              &err);
    return result;
}

static inline void apply(struct thing *thing, const char *name, const char *config)
{
    struct dv_apply_result result = try_apply(thing, name, config, true);

    assert_int_equal(result.n_conflicts, 0);
    thing->live = result.doc;
    thing->managed = result.managed;
    thing->now++;
}

static inline const struct dv_api_managed_fields_entry *entry_at(const struct thing *thing,
                                                                 size_t i)
{
    if (!thing->managed.v || i >= thing->managed.n)
        fail_msg("there is no entry %zu", i);
    return &thing->managed.v[i];
}

/* Each entry as "manager operation subresource fields". */
static inline void assert_managed(const struct thing *thing, const char *const *wanted, size_t n)
{
    assert_int_equal(thing->managed.n, n);
    for (size_t i = 0; i < n; i++) {
        const struct dv_api_managed_fields_entry *entry = entry_at(thing, i);

        assert_str(dv_str_printf(arena, "%.*s %.*s %.*s %.*s", DV_FMT(entry->manager),
                                 DV_FMT(entry->operation), DV_FMT(entry->subresource),
                                 DV_FMT(entry->fields_v1)),
                   wanted[i]);
        assert_str(entry->fields_type, "FieldsV1");
        assert_str(entry->api_version, thing->api_version);
    }
}

#define assert_owners(thing, ...)                                                                  \
    do {                                                                                           \
        const char *const assert_owners_wanted[] = {__VA_ARGS__};                                  \
        assert_managed((thing), assert_owners_wanted, DV_COUNT(assert_owners_wanted));             \
    } while (0)

static inline struct thing pod(void)
{
    return (struct thing){.message = &dv_message_pod, .api_version = "v1", .now = 1000};
}

#endif
