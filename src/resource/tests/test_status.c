#include "support/dvtest.h"

#include "base/defs.h"
#include "resource/patch.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "resource/validate.h"
#include "support/arena.h"

static void failures_name_what_they_are_about(void **state)
{
    struct dv_arena *arena = *state;
    const struct dv_status_about claim = {.kind = dv_kind(DV_KIND_CLAIM), .name = DV_STR("c")};
    const struct dv_status_about pod = {.kind = dv_kind(DV_KIND_POD), .name = DV_STR("p")};
    const struct dv_status_about pods = {.kind = dv_kind(DV_KIND_POD)};
    const struct dv_status_about binding = {
        .kind = dv_kind(DV_KIND_POD), .name = DV_STR("p"), .what = DV_STR("pods/binding")};
    const struct dv_status_about path = {0};
    const struct {
        const struct dv_api_status *status;
        int code;
        const char *reason;
        const char *message;
    } cases[] = {
        {dv_status_not_found(&claim,     arena),                  404,                                     "NotFound",
         "resourceclaims.resource.k8s.io \"c\" not found"},
        {dv_status_not_found(&pod,                              arena),                              404,                                  "NotFound",                                                            "pods \"p\" not found"},
        {dv_status_already_exists(&pod,        arena),                               409,                                          "AlreadyExists",                            "pods \"p\" already exists"},
        {dv_status_conflict(&binding,               arena,           "no"),         409,              "Conflict",
         "Operation cannot be fulfilled on pods/binding \"p\": no"},
        {dv_status_forbidden(&pod,                         arena,                                   "no"),                                                        403,                                                                                                    "Forbidden", "pods \"p\" is forbidden: no"},
        {dv_status_forbidden(&pods,       arena, "no"), 403, "Forbidden", "pods is forbidden: no"},
        {dv_status_forbidden(&path, arena,                        "no"),                                       403,                                                                                      "Forbidden", "forbidden: no"},
        {dv_status_too_large_version(9,                           7,                                       arena),                                                       504,                                                                                                                 "Timeout",
         "Timeout: Too large resource version: 9, current: 7"},
        {dv_status_expired(arena,                         "too old"),                    410,                  "Expired","too old"},
        {dv_status_unauthorized(arena),                              401,                         "Unauthorized",                                     "Unauthorized"                                                  },
    };

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        assert_int_equal(cases[i].status->code, cases[i].code);
        assert_str(cases[i].status->reason, cases[i].reason);
        assert_str(cases[i].status->message, cases[i].message);
        assert_str(cases[i].status->status, "Failure");
    }
    assert_str(cases[0].status->details->kind, "resourceclaims");
    assert_str(cases[0].status->details->group, "resource.k8s.io");
}

static void problems_are_told_once_and_listed_each(void **state)
{
    struct dv_arena *arena = *state;
    struct dv_problem found[] = {
        {.type = DV_PROBLEM_REQUIRED,  .field = DV_STR("a"), .detail = DV_STR("Required value")},
        {.type = DV_PROBLEM_REQUIRED,  .field = DV_STR("a"), .detail = DV_STR("Required value")},
        {.type = DV_PROBLEM_FORBIDDEN, .field = DV_STR("b"), .detail = DV_STR("Forbidden: no") },
    };
    struct dv_problems problems = {.v = found, .n = 2, .arena = arena};
    const struct dv_status_about about = {.kind = dv_kind(DV_KIND_CLAIM), .name = DV_STR("c")};
    const struct dv_api_status *status = dv_status_invalid(&about, &problems, arena);

    assert_str(status->message,
               "ResourceClaim.resource.k8s.io \"c\" is invalid: a: Required value");
    assert_int_equal(status->details->n_causes, 2);
    assert_str(status->details->causes[1].reason, "FieldValueRequired");
    problems.n = 3;
    status = dv_status_invalid(&about, &problems, arena);
    assert_str(status->message,
               "ResourceClaim.resource.k8s.io \"c\" is invalid: [a: Required value, "
               "b: Forbidden: no]");
}

static void conflicts_of_apply_are_told_by_manager(void **state)
{
    struct dv_arena *arena = *state;
    const struct dv_apply_conflict conflicts[] = {
        {DV_STR_INIT("\"x\""), DV_STR_INIT(".a")},
        {DV_STR_INIT("\"x\""), DV_STR_INIT(".b")},
        {DV_STR_INIT("\"y\""), DV_STR_INIT(".c")},
    };

    assert_str(dv_status_apply_conflict(conflicts, 1, arena)->message,
               "Apply failed with 1 conflict: conflict with \"x\": .a");
    assert_str(dv_status_apply_conflict(conflicts, 3, arena)->message,
               "Apply failed with 3 conflicts: conflicts with \"x\":\n- .a\n- .b\nconflicts with "
               "\"y\":\n- .c");
}

static void errors_become_failures_and_come_back(void **state)
{
    static const struct {
        enum dv_code code;
        int http;
        enum dv_code back;
    } cases[] = {
        {DV_INVALID_ARGUMENT,   400, DV_INVALID_ARGUMENT },
        {DV_RESOURCE_EXHAUSTED, 503, DV_UNAVAILABLE      },
        {DV_UNAVAILABLE,        503, DV_UNAVAILABLE      },
        {DV_NOT_FOUND,          404, DV_NOT_FOUND        },
        {DV_ALREADY_EXISTS,     409, DV_ALREADY_EXISTS   },
        {DV_ABORTED,            409, DV_ABORTED          },
        {DV_PERMISSION_DENIED,  403, DV_PERMISSION_DENIED},
        {DV_OUT_OF_RANGE,       410, DV_OUT_OF_RANGE     },
        {DV_DATA_LOSS,          500, DV_INTERNAL         },
        {DV_CANCELLED,          499, DV_CANCELLED        },
    };
    struct dv_arena *arena = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err = {.code = cases[i].code, .msg = "why"};
        const struct dv_api_status *status = dv_status_from_err(&err, arena);

        assert_int_equal(status->code, cases[i].http);
        dv_status_to_err(status, &err);
        assert_int_equal(err.code, cases[i].back);
        assert_err(&err, cases[i].back, "why");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        arena_test(failures_name_what_they_are_about),
        arena_test(problems_are_told_once_and_listed_each),
        arena_test(conflicts_of_apply_are_told_by_manager),
        arena_test(errors_become_failures_and_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
