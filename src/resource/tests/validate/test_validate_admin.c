#include "support/dvtest.h"

#include "base/arena.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "resource/tests/test_values.h"
#include "resource/validate.h"

#define ASKS "{\"name\":\"a\",\"exactly\":{\"adminAccess\":true}}"
#define PLAIN "{\"name\":\"b\",\"exactly\":{\"adminAccess\":false}},{\"name\":\"c\"}"
#define CLAIM(requests) "{\"spec\":{\"devices\":{\"requests\":[" requests "]}}}"
#define TEMPLATE(requests) "{\"spec\":" CLAIM(requests) "}"
#define GRANTED                                                                                    \
    "{\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"x\"},{\"request\":"     \
    "\"a\",\"adminAccess\":true}]}}}}"
#define NOT_GRANTED                                                                                \
    "{\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"a\",\"adminAccess\":"   \
    "false}]}}}}"

static const struct {
    enum dv_kind_id kind;
    enum dv_operation operation;
    const char *value;
    const char *old;
    const char *label; /* of the namespace; NULL: none */
    const char *want;  /* the field; "": it is fine */
} cases[] = {
    {DV_KIND_CLAIM,    DV_CREATE,        CLAIM(ASKS),                    NULL,           NULL,    "spec.devices.requests[0].adminAccess"},
    {DV_KIND_CLAIM,    DV_CREATE,        CLAIM(PLAIN "," ASKS "," ASKS), NULL,           NULL,
     "spec.devices.requests[2].adminAccess"                                                                                             },
    {DV_KIND_CLAIM,    DV_CREATE,        CLAIM(ASKS),                    NULL,           "false", "spec.devices.requests[0].adminAccess"},
    {DV_KIND_CLAIM,    DV_CREATE,        CLAIM(ASKS),                    NULL,           "True",  "spec.devices.requests[0].adminAccess"},
    {DV_KIND_CLAIM,    DV_CREATE,        CLAIM(ASKS),                    NULL,           "",      "spec.devices.requests[0].adminAccess"},
    {DV_KIND_CLAIM,    DV_CREATE,        CLAIM(ASKS),                    NULL,           "true",  ""                                    },
    {DV_KIND_CLAIM,    DV_CREATE,        CLAIM(PLAIN),                   NULL,           NULL,    ""                                    },
    {DV_KIND_CLAIM,    DV_CREATE,        "{}",                           NULL,           NULL,    ""                                    },
    {DV_KIND_CLAIM,    DV_UPDATE,        CLAIM(ASKS),                    CLAIM(ASKS),    NULL,    ""                                    },
    {DV_KIND_TEMPLATE, DV_CREATE,        TEMPLATE(ASKS),                 NULL,           NULL,
     "spec.spec.devices.requests[0].adminAccess"                                                                                        },
    {DV_KIND_TEMPLATE, DV_CREATE,        TEMPLATE(ASKS),                 NULL,           "true",  ""                                    },
    {DV_KIND_TEMPLATE, DV_UPDATE,        TEMPLATE(ASKS),                 TEMPLATE(ASKS), NULL,    ""                                    },
    {DV_KIND_CLAIM,    DV_UPDATE_STATUS, GRANTED,                        "{}",           NULL,
     "status.allocation.devices.results[1].adminAccess"                                                                                 },
    {DV_KIND_CLAIM,    DV_UPDATE_STATUS, GRANTED,                        NOT_GRANTED,    NULL,
     "status.allocation.devices.results[1].adminAccess"                                                                                 },
    {DV_KIND_CLAIM,    DV_UPDATE_STATUS, GRANTED,                        GRANTED,        NULL,    ""                                    },
    {DV_KIND_CLAIM,    DV_UPDATE_STATUS, GRANTED,                        "{}",           "true",  ""                                    },
    {DV_KIND_CLAIM,    DV_UPDATE_STATUS, NOT_GRANTED,                    "{}",           NULL,    ""                                    },
    {DV_KIND_CLAIM,    DV_UPDATE_STATUS, "{}",                           GRANTED,        NULL,    ""                                    },
};

static void admin_access_needs_a_label_of_the_namespace(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct dv_kind *kind = dv_kind(cases[i].kind);
        const struct dv_message *message = kind->versions[0].message;
        struct dv_str_entry label = {DV_STR("resource.kubernetes.io/admin-access"),
                                     dv_str_from_c(cases[i].label ? cases[i].label : "")};
        const struct dv_api_object_meta namespace = {.labels = &label,
                                                     .n_labels = cases[i].label != NULL};
        struct dv_problems problems = {.arena = arena};
        struct dv_validation what = {.kind = kind, .operation = cases[i].operation};

        what.value = decoded(message, cases[i].value, arena);
        what.old = cases[i].old ? decoded(message, cases[i].old, arena) : NULL;
        dv_validate_admin_access(&what, &namespace, &problems);
        if (problems.n != (cases[i].want[0] != '\0'))
            fail_msg("case %zu: %zu problems", i, problems.n);
        if (problems.n == 0)
            continue;
        assert_str(problems.v[0].field, cases[i].want);
        assert_str(problems.v[0].detail,
                   "Forbidden: admin access to devices requires the "
                   "`resource.kubernetes.io/admin-access: true` label on the containing namespace");
        assert_int_equal(problems.v[0].type, DV_PROBLEM_FORBIDDEN);
    }
}

static void an_unknown_namespace_allows_nothing(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_problems problems = {.arena = arena};
    const struct dv_validation what = {.kind = dv_kind(DV_KIND_CLAIM),
                                       .operation = DV_CREATE,
                                       .value =
                                           decoded(&dv_message_resource_claim, CLAIM(ASKS), arena)};

    (void)state;
    dv_validate_admin_access(&what, NULL, &problems);
    assert_int_equal(problems.n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(admin_access_needs_a_label_of_the_namespace),
        cmocka_unit_test(an_unknown_namespace_allows_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
