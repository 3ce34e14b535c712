#include "support/dvtest.h"

#include <stdbool.h>

#include "base/defs.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/tests/test_cluster_fixture.h"
#include "resource/resource.h"

#define CLAIM "{\"metadata\":{\"name\":\"c1\",\"labels\":{\"a\":\"1\"}}," CLAIM_SPEC "}"
#define CONFIG(labels)                                                                             \
    "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceClaim\",\"metadata\":{\"name\":"    \
    "\"c1\",\"labels\":{" labels "}}," CLAIM_SPEC "}"

#define NO_NAME "the name of the object (c1 based on URL) was undeterminable: name must be provided"

static struct reply patch_claim(struct fixture *fixture, enum dv_patch_type type, const char *json)
{
    return patch(fixture, DV_KIND_CLAIM, "default", "c1", type, json);
}

static void patches_of_each_type_change_the_object(void **state)
{
    static const struct {
        enum dv_patch_type type;
        const char *json;
        const char *value; /* of label a afterwards */
    } cases[] = {
        {DV_PATCH_JSON,      "[{\"op\":\"replace\",\"path\":\"/metadata/labels/a\",\"value\":\"2\"}]",
         "2"                                                                                              },
        {DV_PATCH_MERGE,     "{\"metadata\":{\"labels\":{\"a\":\"3\"}}}",                              "3"},
        {DV_PATCH_STRATEGIC, "{\"metadata\":{\"labels\":{\"a\":\"4\"}}}",                              "4"},
    };
    struct fixture *fixture = *state;
    struct dv_object *claim = must(create(fixture, DV_KIND_CLAIM, "default", CLAIM));

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        uint64_t before = claim->version;

        claim = must(patch_claim(fixture, cases[i].type, cases[i].json));
        assert_str(claim->meta->labels[0].value, cases[i].value);
        assert_int_equal(claim->version, before + 1);
        assert_int_equal(must(patch_claim(fixture, cases[i].type, cases[i].json))->version,
                         before + 1); /* again: nothing changes */
    }
    assert_int_equal(claim->meta->n_managed_fields, 2);
}

static void refuses_patches_that_cannot_be(void **state)
{
    static const struct {
        enum dv_patch_type type;
        const char *json;
        int code;
        const char *message;
    } cases[] = {
        {DV_PATCH_JSON,      "[{\"op\":\"test\",\"path\":\"/metadata/labels/a\",\"value\":\"no\"}]", 422,
         "the server rejected our request due to an error in our request"                                                                },
        {DV_PATCH_JSON,      "[{\"op\":\"replace\",\"path\":\"/metadata/name\",\"value\":\"c2\"}]",  400,
         "the name of the object (c2) does not match the name on the URL (c1)"                                                           },
        {DV_PATCH_MERGE,     "{\"metadata\":{\"resourceVersion\":\"1\"}}",                           409,
         "Operation cannot be fulfilled on resourceclaims.resource.k8s.io \"c1\": the object has "
         "been modified; please apply your changes to the latest version and try again"                                                  },
        {DV_PATCH_MERGE,     "{\"metadata\":{\"labels\":{\"q\":7}}}",                                422, NULL                           },
        {DV_PATCH_MERGE,     "{\"metadata\":{\"uid\":\"00000000-0000-0000-0000-000000000000\"}}",    422,
         "ResourceClaim.resource.k8s.io \"c1\" is invalid: metadata.uid: Invalid value: "
         "\"00000000-0000-0000-0000-000000000000\": field is immutable"                                                                  },
        {DV_PATCH_MERGE,     "[]",                                                                   400,
         "error decoding patch: json: cannot unmarshal array into Go value of type "
         "map[string]interface {}"                                                                                                       },
        {DV_PATCH_MERGE,     "{\"metadata\":null}",                                                  400, NO_NAME                        },
        {DV_PATCH_STRATEGIC, "{\"metadata\":null}",                                                  400, NO_NAME                        },
        {DV_PATCH_STRATEGIC, "{\"metadata\":{\"$patch\":\"delete\"}}",                               400, NO_NAME                        },
        {DV_PATCH_STRATEGIC, "{\"$patch\":\"replace\"}",                                             400, NO_NAME                        },
        {DV_PATCH_APPLY,     "{\"metadata\":{\"name\":\"c1\"}}",                                     400, "invalid object type: /, Kind="},
    };
    struct fixture *fixture = *state;
    struct dv_object *claim = must(create(fixture, DV_KIND_CLAIM, "default", CLAIM));

    for (size_t i = 0; i < DV_COUNT(cases); i++)
        must_fail(patch_claim(fixture, cases[i].type, cases[i].json), cases[i].code, NULL,
                  cases[i].message);
    assert_int_equal(dv_embedded_version(fixture->embedded), claim->version);
    must_fail(patch(fixture, DV_KIND_CLAIM, "default", "nope", DV_PATCH_MERGE, "{}"), 404,
              "NotFound", NULL);
}

static void a_patched_object_stays_of_its_kind(void **state)
{
    static const char *const others[] = {"{\"kind\":\"Pod\"}", "{\"apiVersion\":\"v9\"}",
                                         "{\"kind\":null}"};
    struct fixture *fixture = *state;

    (void)must(create(fixture, DV_KIND_CLAIM, "default", CLAIM));
    for (size_t i = 0; i < DV_COUNT(others); i++)
        must_fail(patch_claim(fixture, DV_PATCH_MERGE, others[i]), 422, "Invalid", NULL);
    (void)must(patch_claim(fixture, DV_PATCH_STRATEGIC, "{\"kind\":\"Pod\"}"));
    (void)must(patch_claim(fixture, DV_PATCH_JSON, "null"));
    (void)must(patch_claim(fixture, DV_PATCH_STRATEGIC, "null"));
}

static void what_has_no_namespace_loses_the_one_it_is_given(void **state)
{
    struct fixture *fixture = *state;
    struct dv_object *class =
        must(create(fixture, DV_KIND_CLASS, "", "{\"metadata\":{\"name\":\"c\"},\"spec\":{}}"));
    uint64_t before = class->version;

    class = must(patch(fixture, DV_KIND_CLASS, "", "c", DV_PATCH_MERGE,
                       "{\"metadata\":{\"namespace\":\"other\"}}"));
    assert_int_equal(class->version, before);
    assert_int_equal(class->meta->namespace.n, 0);
}

/* In an update too, of kinds that check their metadata only as an update. */
static void finalizers_have_a_domain(void **state)
{
    static const char finalizer[] = "{\"metadata\":{\"finalizers\":[\"x\"]}}";
    struct fixture *fixture = *state;

    must_fail(
        patch(fixture, DV_KIND_NAMESPACE, "", "default", DV_PATCH_MERGE, finalizer), 422, "Invalid",
        "Namespace \"default\" is invalid: metadata.finalizers[0]: Invalid value: \"x\": name "
        "is neither a standard finalizer name nor is it fully qualified");
}

static void unknown_fields_are_told_or_refused(void **state)
{
    struct fixture *fixture = *state;
    struct dv_request request = {.verb = DV_VERB_PATCH,
                                 .kind = dv_kind(DV_KIND_CLAIM),
                                 .namespace = DV_STR("default"),
                                 .name = DV_STR("c1"),
                                 .patch_type = DV_PATCH_MERGE,
                                 .patch = json_of(fixture, "{\"metadata\":{\"nope\":1}}"),
                                 .field_validation = DV_VALIDATE_WARN};
    struct reply reply;

    (void)must(create(fixture, DV_KIND_CLAIM, "default", CLAIM));
    reply = ask(fixture, &request);
    (void)must(reply);
    assert_int_equal(reply.n_warnings, 1);
    assert_string_equal(reply.warning, "unknown field \"metadata.nope\"");
    request.field_validation = DV_VALIDATE_IGNORE;
    assert_int_equal(ask(fixture, &request).n_warnings, 0);
    request.field_validation = DV_VALIDATE_STRICT;
    must_fail(ask(fixture, &request), 422, "Invalid", NULL);
}

static void apply_creates_owns_and_gives_back(void **state)
{
    struct fixture *fixture = *state;
    struct reply reply = patch_claim(fixture, DV_PATCH_APPLY, CONFIG("\"a\":\"1\",\"b\":\"2\""));
    struct dv_object *claim = must(reply);
    struct dv_request other = {.verb = DV_VERB_PATCH,
                               .kind = dv_kind(DV_KIND_CLAIM),
                               .namespace = DV_STR("default"),
                               .name = DV_STR("c1"),
                               .patch_type = DV_PATCH_APPLY,
                               .patch = json_of(fixture, CONFIG("\"a\":\"2\"")),
                               .field_manager = DV_STR("other")};

    assert_true(reply.is_created);
    assert_int_equal(claim->meta->n_labels, 2);
    reply = patch_claim(fixture, DV_PATCH_APPLY, CONFIG("\"a\":\"1\",\"b\":\"2\""));
    assert_false(reply.is_created);
    assert_int_equal(must(reply)->version, claim->version);
    claim = must(patch_claim(fixture, DV_PATCH_APPLY, CONFIG("\"a\":\"1\"")));
    assert_int_equal(claim->meta->n_labels, 1);
    must_fail(ask(fixture, &other), 409, "Conflict",
              "Apply failed with 2 conflicts: conflicts with \"tester\":\n- .metadata.labels.a\n- "
              ".spec.devices.requests");
    other.is_forced = true;
    claim = must(ask(fixture, &other));
    assert_str(claim->meta->labels[0].value, "2");
    /* What this endpoint does not write is not owned through it either. */
    other.patch = json_of(fixture, "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":"
                                   "\"ResourceClaim\",\"metadata\":{\"name\":\"c1\"},\"status\":{"
                                   "\"reservedFor\":[]}}");
    other.field_manager = DV_STR("third");
    assert_int_equal(must(ask(fixture, &other))->version, claim->version);
    other.subresource = DV_SUB_STATUS;
    other.name = DV_STR("nope");
    must_fail(ask(fixture, &other), 404, "NotFound", NULL);
}

static void requests_in_older_versions_see_their_own_shape(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_api_version *version;
    const struct dv_kind *kind = dv_kind_by_name(DV_STR("resource.k8s.io"), DV_STR("v1beta1"),
                                                 DV_STR("ResourceClaim"), &version);
    struct dv_request request = {
        .verb = DV_VERB_PATCH,
        .kind = kind,
        .version = version,
        .namespace = DV_STR("default"),
        .name = DV_STR("c1"),
        .patch_type = DV_PATCH_JSON,
        .patch = json_of(fixture, "[{\"op\":\"test\",\"path\":\"/spec/devices/requests/0/"
                                  "deviceClassName\",\"value\":\"gpu\"},{\"op\":\"add\",\"path\":"
                                  "\"/metadata/labels/z\",\"value\":\"z\"}]")};
    struct dv_object *claim;

    (void)must(create(fixture, DV_KIND_CLAIM, "default", CLAIM));
    claim = must(ask(fixture, &request));
    assert_int_equal(claim->meta->n_labels, 2);
    assert_non_null(
        ((struct dv_api_resource_claim *)claim->value)->spec.devices.requests[0].exactly);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(patches_of_each_type_change_the_object, start, end),
        cmocka_unit_test_setup_teardown(refuses_patches_that_cannot_be, start, end),
        cmocka_unit_test_setup_teardown(what_has_no_namespace_loses_the_one_it_is_given, start,
                                        end),
        cmocka_unit_test_setup_teardown(a_patched_object_stays_of_its_kind, start, end),
        cmocka_unit_test_setup_teardown(finalizers_have_a_domain, start, end),
        cmocka_unit_test_setup_teardown(unknown_fields_are_told_or_refused, start, end),
        cmocka_unit_test_setup_teardown(apply_creates_owns_and_gives_back, start, end),
        cmocka_unit_test_setup_teardown(requests_in_older_versions_see_their_own_shape, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
