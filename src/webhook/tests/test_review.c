/* test_review.c - what a webhook is sent, and what its answers mean. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "vap/vap.h"
#include "webhook/webhook.h"
#include "json/json.h"

static void a_review_has_the_request_and_both_objects(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_kind *kind = dv_kind(DV_KIND_NAMESPACE);
    const struct dv_api_user_info user = {.username = DV_STR("u")};
    const struct dv_api_namespace object = {.metadata = {.name = DV_STR("n")}};
    struct dv_vap_write write = {.operation = DV_VAP_CREATE,
                                 .kind = kind,
                                 .version = kind->versions,
                                 .namespace = DV_STR("n"),
                                 .name = DV_STR("n"),
                                 .object = &object,
                                 .user = &user};
    struct dv_buf buf;
#define BEGIN(version)                                                                             \
    "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/" version                     \
    "\",\"request\":{\"kind\":"                                                                    \
    "{\"group\":\"\",\"version\":\"v1\",\"kind\":\"Namespace\"},\"resource\":{\"group\":\"\","     \
    "\"version\":\"v1\","                                                                          \
    "\"resource\":\"namespaces\"},\"requestKind\":{\"group\":\"\",\"version\":\"v1\",\"kind\":"    \
    "\"Namespace\"},"                                                                              \
    "\"requestResource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"namespaces\"},"         \
    "\"name\":\"n\","                                                                              \
    "\"namespace\":\"n\",\"operation\":"
#define END "\"userInfo\":{\"username\":\"u\"},\"dryRun\":false,\"uid\":\"1-2\","

    (void)state;
    dv_buf_init(&buf, 65536);
    dv_review_print(&write, kind->versions, DV_REVIEW_V1, DV_STR("1-2"), arena, &buf);
    if (!dv_json_eq(
            dv_json_parse(dv_buf_str(&buf), NULL, arena, &(struct dv_err){0}),
            dv_json_parse(
                DV_STR(BEGIN("v1") "\"CREATE\"," END
                                   "\"object\":{\"kind\":\"Namespace\",\"apiVersion\":\"v1\","
                                   "\"metadata\":{\"name\":\"n\"},\"spec\":{},\"status\":{}},"
                                   "\"oldObject\":null,\"options\":null}}"),
                NULL, arena, &(struct dv_err){0})))
        fail_msg("%s", dv_buf_c(&buf));
    dv_buf_clear(&buf);
    write.operation = DV_VAP_DELETE;
    write.old = write.object;
    write.object = NULL;
    dv_review_print(&write, kind->versions, DV_REVIEW_V1BETA1, DV_STR("1-2"), arena, &buf);
    assert_true(dv_str_find(dv_buf_str(&buf), DV_STR("\"object\":null,\"oldObject\":{")) < buf.n);
    assert_true(dv_str_find(dv_buf_str(&buf), DV_STR("admission.k8s.io/v1beta1")) < buf.n);
    dv_buf_fini(&buf);
}

#define V1 "apiVersion: admission.k8s.io/v1, kind: AdmissionReview, "
#define OLD "apiVersion: admission.k8s.io/v1beta1, kind: AdmissionReview, "
/* base64 of `[{"op":"add","path":"/a","value":1}]`, of `[]`, of `{}`, and of `[`. */
#define PATCH "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MX1d"
#define NO_PATCH "W10="
#define NOT_A_LIST "e30="
#define NOT_JSON "Ww=="

/* "allowed", "refused", with " patch" and the number of warnings; or the error. */
static dv_str read_answer(const char *text, enum dv_review_version review,
                          enum dv_webhook_phase phase, struct dv_arena *arena)
{
    struct dv_webhook_answer answer;
    struct dv_err err;

    if (!dv_review_read(dv_str_from_c(text), review, DV_STR("7"), phase, arena, &answer, &err)) {
        assert_int_equal(err.code, DV_INVALID_ARGUMENT);
        return dv_str_printf(arena, "%s", err.msg);
    }
    return dv_str_printf(arena, "%s%s %zu", answer.is_allowed ? "allowed" : "refused",
                         answer.patch ? " patch" : "", answer.n_warnings);
}

static void answers_are_read_as_the_reference_reads_them(void **state)
{
    static const struct {
        const char *answer; /* YAML */
        enum dv_review_version review;
        enum dv_webhook_phase phase;
        const char *want; /* behind "received invalid webhook response: " for errors: "!" */
    } rows[] = {
        {"{" V1 "response: {uid: '7', allowed: true}}",                                              DV_REVIEW_V1,      DV_WEBHOOK_VALIDATES,
         "allowed 0"                                                                                                                                                                                       },
        {"{" V1 "response: {uid: '7'}}",                                                             DV_REVIEW_V1,      DV_WEBHOOK_VALIDATES, "refused 0"                                                  },
        {"{" V1 "response: {uid: '7', allowed: true, warnings: [a, b], auditAnnotations: {a: b}}}",
         DV_REVIEW_V1,                                                                                                  DV_WEBHOOK_VALIDATES, "allowed 2"                                                  },
        {"{" V1 "}",                                                                                 DV_REVIEW_V1,      DV_WEBHOOK_VALIDATES, "!webhook response was absent"                               },
        {"{" V1 "response: null}",                                                                   DV_REVIEW_V1,      DV_WEBHOOK_VALIDATES,
         "!webhook response was absent"                                                                                                                                                                    },
        {"{" V1 "response: {uid: '8', allowed: true}}",                                              DV_REVIEW_V1,      DV_WEBHOOK_VALIDATES,
         "!expected response.uid=\"7\", got \"8\""                                                                                                                                                         },
        {"{" V1 "response: {allowed: true}}",                                                        DV_REVIEW_V1,      DV_WEBHOOK_VALIDATES,
         "!expected response.uid=\"7\", got \"\""                                                                                                                                                          },
        {"{response: {uid: '7', allowed: true}}",                                                    DV_REVIEW_V1,      DV_WEBHOOK_VALIDATES,
         "!expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="                                                                                                           },
        {"{" OLD "response: {uid: '7', allowed: true}}",                                             DV_REVIEW_V1,      DV_WEBHOOK_VALIDATES,
         "!expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got "
         "admission.k8s.io/v1beta1, Kind=AdmissionReview"                                                                                                                                                  },
        {"{" V1 "response: {uid: '7', allowed: true, patch: " PATCH ", patchType: JSONPatch}}",
         DV_REVIEW_V1,                                                                                                  DV_WEBHOOK_MUTATES,   "allowed patch 0"                                            },
        {"{" V1 "response: {uid: '7', allowed: true, patch: " NO_PATCH ", patchType: JSONPatch}}",
         DV_REVIEW_V1,                                                                                                  DV_WEBHOOK_MUTATES,   "allowed 0"                                                  },
        {"{" V1 "response: {uid: '7', allowed: true, patch: " PATCH "}}",                            DV_REVIEW_V1,
         DV_WEBHOOK_MUTATES,                                                                                                                  "!webhook returned response.patch but not response.patchType"},
        {"{" V1 "response: {uid: '7', allowed: true, patchType: JSONPatch}}",                        DV_REVIEW_V1,
         DV_WEBHOOK_MUTATES,                                                                                                                  "!webhook returned response.patchType but not response.patch"},
        {"{" V1 "response: {uid: '7', allowed: true, patch: " PATCH ", patchType: Merge}}",
         DV_REVIEW_V1,                                                                                                  DV_WEBHOOK_MUTATES,
         "!webhook returned invalid response.patchType of \"Merge\""                                                                                                                                       },
        {"{" V1 "response: {uid: '7', allowed: true, patch: " PATCH ", patchType: JSONPatch}}",
         DV_REVIEW_V1,                                                                                                  DV_WEBHOOK_VALIDATES, "!validating webhook may not return response.patch"          },
        {"{" V1 "response: {uid: '7', allowed: true, patchType: JSONPatch}}",                        DV_REVIEW_V1,
         DV_WEBHOOK_VALIDATES,                                                                                                                "!validating webhook may not return response.patchType"      },
        {"{" V1 "response: {uid: '7', allowed: true, patch: '*', patchType: JSONPatch}}",
         DV_REVIEW_V1,                                                                                                  DV_WEBHOOK_MUTATES,   "!response.patch is not base64"                              },
        {"{" V1 "response: {uid: '7', allowed: true, patch: " NOT_A_LIST ", patchType: JSONPatch}}",
         DV_REVIEW_V1,                                                                                                  DV_WEBHOOK_MUTATES,
         "!received undecodable patch in webhook response: want a list of operations, got an "
         "object"                                                                                                                                                                                          },
        {"{" OLD "response: {allowed: true, patch: " PATCH "}}",                                     DV_REVIEW_V1BETA1,
         DV_WEBHOOK_MUTATES,                                                                                                                  "allowed patch 0"                                            },
        {"{response: {allowed: true, patch: " PATCH "}}",                                            DV_REVIEW_V1BETA1, DV_WEBHOOK_VALIDATES,
         "allowed 0"                                                                                                                                                                                       },
    };
    static const char *const garbage[] = {
        "",
        "x",
        "[]",
        "1",
        "null",
        "{\"response\":1}",
        "{\"response\":{\"uid\":7}}",
        "{\"apiVersion\":\"admission.k8s.io/"
        "v1\",\"kind\":\"AdmissionReview\",\"response\":{\"uid\":"
        "\"7\",\"allowed\":\"yes\"}}",
        "{\"apiVersion\":\"admission.k8s.io/"
        "v1\",\"kind\":\"AdmissionReview\",\"response\":{\"uid\":"
        "\"7\",\"status\":{\"code\":\"x\"}}}",
        "{\"apiVersion\":\"admission.k8s.io/"
        "v1\",\"kind\":\"AdmissionReview\",\"response\":{\"uid\":"
        "\"7\",\"allowed\":true,\"warnings\":[1]}}",
        "{\"apiVersion\":\"admission.k8s.io/"
        "v1\",\"kind\":\"AdmissionReview\",\"response\":{\"uid\":"
        "\"7\",\"allowed\":true,\"patch\":\"" NOT_JSON "\",\"patchType\":\"JSONPatch\"}}",
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_err err;
        const struct dv_json *doc = dv_yaml_parse(dv_str_from_c(rows[i].answer), NULL, arena, &err);
        bool is_error = rows[i].want[0] == '!';
        struct dv_buf buf;
        dv_str got;

        dv_buf_init(&buf, 65536);
        dv_json_print(doc, NULL, &buf);
        got = read_answer(dv_buf_c(&buf), rows[i].review, rows[i].phase, arena);
        assert_str(got, dv_str_printf(arena, "%s%s",
                                      is_error ? "received invalid webhook response: " : "",
                                      rows[i].want + is_error)
                            .p);
        dv_buf_fini(&buf);
    }
    for (size_t i = 0; i < DV_COUNT(garbage); i++)
        assert_true(
            dv_str_starts_with(read_answer(garbage[i], DV_REVIEW_V1, DV_WEBHOOK_MUTATES, arena),
                               DV_STR("received invalid webhook response: ")));
}

static void a_refusal_says_what_the_webhook_says(void **state)
{
    static const struct {
        struct dv_api_status said;
        int code;
        const char *message; /* behind the name */
    } rows[] = {
        {{.code = 0},                                                                     400, " without explanation"},
        {{.code = 403, .message = DV_STR_INIT("no"), .reason = DV_STR_INIT("Forbidden")},
         403,                                                                                  ": no"                },
        {{.reason = DV_STR_INIT("Because")},                                              400, ": Because"           },
        {{.code = 200, .status = DV_STR_INIT("Success"), .message = DV_STR_INIT("x")},    400, ": x"                 },
        {{.code = 100000},                                                                400, " without explanation"},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const struct dv_api_status *status =
            dv_review_refusal(DV_STR("a.b.c"), &rows[i].said, arena);

        assert_int_equal(status->code, rows[i].code);
        assert_str(status->status, "Failure");
        assert_str(status->message,
                   dv_str_printf(arena, "admission webhook \"a.b.c\" denied the request%s",
                                 rows[i].message)
                       .p);
    }
    assert_int_equal(dv_review_refusal(DV_STR("a"), NULL, arena)->code, 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_review_has_the_request_and_both_objects),
        cmocka_unit_test(answers_are_read_as_the_reference_reads_them),
        cmocka_unit_test(a_refusal_says_what_the_webhook_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
