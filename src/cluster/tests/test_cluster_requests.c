#include "support/dvtest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/tests/test_cluster_fixture.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "resource/validate.h"
#include "support/embedded_count.h"

#define CLAIM "{\"metadata\":{\"name\":\"c1\"}," CLAIM_SPEC "}"
#define POD "{\"metadata\":{\"name\":\"p1\"}," POD_SPEC "}"
#define LEASE "{\"metadata\":{\"name\":\"l1\"},\"spec\":{\"holderIdentity\":\"a\"}}"
#define NOBODY "00000000-0000-0000-0000-000000000000"
#define MODIFIED                                                                                   \
    "the object has been modified; please apply your changes to the latest version and try again"

static bool is_uuid(dv_str uid)
{
    return uid.n == 36 && uid.p[8] == '-' && uid.p[14] == '4' && strchr("89ab", uid.p[19]);
}

static void creates_with_what_the_server_sets(void **state)
{
    struct fixture *fixture = *state;
    struct dv_object *claim = must(create(fixture, DV_KIND_CLAIM, "default", CLAIM));
    const struct dv_api_resource_claim *value = claim->value;

    assert_true(is_uuid(claim->meta->uid));
    assert_true(claim->meta->creation_timestamp.is_set);
    assert_int_equal(claim->version, dv_embedded_version(fixture->embedded));
    assert_str(claim->meta->namespace, "default");
    assert_int_equal(value->spec.devices.requests[0].exactly->count, 1);
    assert_int_equal(claim->meta->n_managed_fields, 1);
    assert_str(claim->meta->managed_fields[0].manager, "davit");
    assert_str(claim->meta->managed_fields[0].operation, "Update");
    assert_str(claim->meta->managed_fields[0].api_version, "resource.k8s.io/v1");
}

static void makes_the_namespaces_that_always_exist(void **state)
{
    static const char *const names[] = {"default", "kube-node-lease", "kube-public", "kube-system"};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < DV_COUNT(names); i++) {
        struct dv_object *namespace = must(get(fixture, DV_KIND_NAMESPACE, "", names[i]));
        const struct dv_api_namespace *value = namespace->value;

        assert_str(value->status.phase, "Active");
        assert_str(value->spec.finalizers[0], "kubernetes");
        assert_str(namespace->meta->labels[0].value, names[i]);
    }
}

static void refuses_what_cannot_be_created(void **state)
{
    static const struct {
        enum dv_kind_id kind;
        const char *namespace;
        const char *json;
        int code;
        const char *reason;
        const char *message;
    } cases[] = {
        {DV_KIND_CLAIM, "default", CLAIM,                                                     409, "AlreadyExists",
         "resourceclaims.resource.k8s.io \"c1\" already exists"                                                                                                                                            },
        {DV_KIND_CLAIM, "nowhere", CLAIM,                                                     404, "NotFound",      "namespaces \"nowhere\" not found"                                                     },
        {DV_KIND_CLAIM, "default", "{\"metadata\":{\"name\":\"x\",\"namespace\":\"other\"}}", 400,
         "BadRequest",                                                                                              "the namespace of the provided object does not match the namespace sent on the request"},
        {DV_KIND_CLAIM, "default",
         "{\"metadata\":{\"name\":\"ro\",\"resourceVersion\":\"5\"}," CLAIM_SPEC "}",         500, "",
         "resourceVersion should not be set on objects to be created"                                                                                                                                      },
        {DV_KIND_CLAIM, "default", "{\"metadata\":{}," CLAIM_SPEC "}",                        422, "Invalid",
         "ResourceClaim.resource.k8s.io \"\" is invalid: metadata.name: Required value: name or "
         "generateName is required"                                                                                                                                                                        },
        {DV_KIND_CLAIM, "default",
         "{\"metadata\":{\"name\":\"f2\",\"finalizers\":[\"nodomain\"]}," CLAIM_SPEC "}",     422,
         "Invalid",                                                                                                 "ResourceClaim.resource.k8s.io \"f2\" is invalid: metadata.finalizers[0]: Invalid value: "
         "\"nodomain\": name is neither a standard finalizer name nor is it fully qualified"                                                                                            },
    };
    struct fixture *fixture = *state;

    (void)must(create(fixture, DV_KIND_CLAIM, "default", CLAIM));
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        must_fail(create(fixture, cases[i].kind, cases[i].namespace, cases[i].json), cases[i].code,
                  cases[i].reason, cases[i].message);
    assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_CLAIM)), 1);
}

static void generates_names(void **state)
{
    struct fixture *fixture = *state;
    const char *json = "{\"metadata\":{\"generateName\":\"gen-\"}," CLAIM_SPEC "}";
    const char *long_name =
        "{\"metadata\":{\"generateName\":"
        "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-\"}," CLAIM_SPEC
        "}";

    for (size_t i = 0; i < 100; i++) {
        dv_str name = must(create(fixture, DV_KIND_CLAIM, "default", json))->meta->name;

        assert_int_equal(name.n, 9);
        assert_true(dv_str_starts_with(name, DV_STR("gen-")));
    }
    assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_CLAIM)), 100);
    assert_int_equal(must(create(fixture, DV_KIND_CLAIM, "default", long_name))->meta->name.n, 63);
}

static const char *with_version(struct fixture *fixture, const char *meta, uint64_t version)
{
    return dv_str_to_c(dv_str_printf(fixture->arena,
                                     "{\"metadata\":{%s,\"resourceVersion\":\"%llu\"}," CLAIM_SPEC
                                     "}",
                                     meta, (unsigned long long)version),
                       fixture->arena);
}

static void updates_with_and_without_a_version(void **state)
{
    struct fixture *fixture = *state;
    struct dv_object *old = must(create(fixture, DV_KIND_CLAIM, "default", CLAIM));
    struct dv_object *now;

    now = must(update(fixture, DV_KIND_CLAIM, "default", "c1",
                      with_version(fixture, "\"labels\":{\"a\":\"b\"}", old->version)));
    assert_true(now->version > old->version);
    assert_str(now->meta->labels[0].value, "b");
    assert_true(dv_str_eq(now->meta->uid, old->meta->uid));
    must_fail(update(fixture, DV_KIND_CLAIM, "default", "c1",
                     with_version(fixture, "\"labels\":{\"a\":\"c\"}", old->version)),
              409, "Conflict",
              "Operation cannot be fulfilled on resourceclaims.resource.k8s.io \"c1\": " MODIFIED);
    /* Nothing changes: no write, the same version, whatever of it is the server's. */
    old = now;
    now = must(update(fixture, DV_KIND_CLAIM, "default", "c1",
                      "{\"metadata\":{\"labels\":{\"a\":\"b\"},\"generation\":99,"
                      "\"creationTimestamp\":\"2021-01-01T00:00:00Z\"}," CLAIM_SPEC "}"));
    assert_int_equal(now->version, old->version);
    assert_int_equal(dv_embedded_version(fixture->embedded), old->version);
}

static void refuses_what_cannot_be_updated(void **state)
{
    struct fixture *fixture = *state;
    struct dv_object *pod = must(create(fixture, DV_KIND_POD, "default", POD));
    const char *uid = dv_str_to_c(pod->meta->uid, fixture->arena);
    const char *conflict = dv_str_to_c(
        dv_str_printf(fixture->arena,
                      "Operation cannot be fulfilled on pods \"p1\": StorageError: invalid object, "
                      "Code: 4, Key: /registry/pods/default/p1, ResourceVersion: 0, "
                      "AdditionalErrorMsg: Precondition failed: UID in precondition: " NOBODY
                      ", UID in object meta: %s",
                      uid),
        fixture->arena);

    must_fail(update(fixture, DV_KIND_POD, "default", "nope", "{\"metadata\":{}," POD_SPEC "}"),
              404, "NotFound", "pods \"nope\" not found");
    must_fail(update(fixture, DV_KIND_POD, "default", "p1",
                     "{\"metadata\":{\"name\":\"other\"}," POD_SPEC "}"),
              400, "BadRequest",
              "the name of the object (other) does not match the name on the URL (p1)");
    must_fail(update(fixture, DV_KIND_POD, "default", "p1",
                     "{\"metadata\":{\"uid\":\"" NOBODY "\"}," POD_SPEC "}"),
              409, "Conflict", conflict);
    (void)must(create(fixture, DV_KIND_LEASE, "default", LEASE));
    must_fail(update(fixture, DV_KIND_LEASE, "default", "l1", LEASE), 422, "Invalid",
              "leases.coordination.k8s.io \"l1\" is invalid: metadata.resourceVersion: Invalid "
              "value: 0: must be specified for an update");
}

static void runtime_classes_are_updated_as_leases_are(void **state)
{
    static const char class[] = "{\"metadata\":{\"name\":\"r\"},\"handler\":\"runc\"}";
    struct fixture *fixture = *state;
    struct reply reply = update(fixture, DV_KIND_RUNTIME_CLASS, "", "r", class);

    (void)must(reply);
    assert_true(reply.is_created);
    must_fail(update(fixture, DV_KIND_RUNTIME_CLASS, "", "r", class), 422, "Invalid",
              "runtimeclasses.node.k8s.io \"r\" is invalid: metadata.resourceVersion: Invalid "
              "value: 0: must be specified for an update");
}

static void roles_are_made_by_an_update_and_need_no_version(void **state)
{
    static const char role[] = "{\"metadata\":{\"name\":\"a:b\"},\"rules\":[]}";
    struct fixture *fixture = *state;
    struct reply reply = update(fixture, DV_KIND_CLUSTER_ROLE, "", "a:b", role);

    (void)must(reply);
    assert_true(reply.is_created);
    (void)must(update(fixture, DV_KIND_CLUSTER_ROLE, "", "a:b", role));
}

static void leases_are_made_by_an_update(void **state)
{
    struct fixture *fixture = *state;
    struct reply reply = update(fixture, DV_KIND_LEASE, "default", "l1", LEASE);

    (void)must(reply);
    assert_true(reply.is_created);
}

static void status_and_the_rest_do_not_mix(void **state)
{
    struct fixture *fixture = *state;
    const char *status = "\"status\":{\"phase\":\"Running\"}";
    const char *json = dv_str_to_c(
        dv_str_printf(fixture->arena, "{\"metadata\":{\"labels\":{\"x\":\"y\"}}," POD_SPEC ",%s}",
                      status),
        fixture->arena);
    struct dv_object *pod = must(create(fixture, DV_KIND_POD, "default", POD));

    assert_int_equal(pod->meta->generation, 1);
    pod = must(update(fixture, DV_KIND_POD, "default", "p1", json));
    assert_str(((struct dv_api_pod *)pod->value)->status.phase, "Pending");
    assert_int_equal(pod->meta->n_labels, 1);
    pod = must(update_status(fixture, DV_KIND_POD, "default", "p1",
                             "{\"metadata\":{},\"spec\":{},\"status\":{\"phase\":\"Running\"}}"));
    assert_str(((struct dv_api_pod *)pod->value)->status.phase, "Running");
    assert_int_equal(((struct dv_api_pod *)pod->value)->spec.n_containers, 1);
    assert_int_equal(pod->meta->generation, 1);
    must_fail(update_status(fixture, DV_KIND_SECRET, "default", "s", "{}"), 405, "MethodNotAllowed",
              NULL);
}

static void dry_runs_change_nothing(void **state)
{
    struct fixture *fixture = *state;
    uint64_t version = dv_embedded_version(fixture->embedded);
    struct dv_request request = {.verb = DV_VERB_CREATE,
                                 .kind = dv_kind(DV_KIND_CLAIM),
                                 .namespace = DV_STR("default"),
                                 .value = value_of(fixture, DV_KIND_CLAIM, CLAIM),
                                 .is_dry_run = true};
    struct reply reply = ask(fixture, &request);

    assert_true(reply.is_created);
    assert_int_equal(must(reply)->version, 0);
    assert_false(exists(fixture, DV_KIND_CLAIM, "default", "c1"));
    assert_int_equal(dv_embedded_version(fixture->embedded), version);

    (void)must(create(fixture, DV_KIND_CLAIM, "default", CLAIM));
    version = dv_embedded_version(fixture->embedded);
    must_fail(ask(fixture, &request), 409, "AlreadyExists", NULL);
    request = (struct dv_request){.verb = DV_VERB_DELETE,
                                  .kind = dv_kind(DV_KIND_CLAIM),
                                  .namespace = DV_STR("default"),
                                  .name = DV_STR("c1"),
                                  .is_dry_run = true};
    assert_int_equal(must(ask(fixture, &request))->version, version);
    assert_true(exists(fixture, DV_KIND_CLAIM, "default", "c1"));
    request =
        (struct dv_request){.verb = DV_VERB_PATCH,
                            .kind = dv_kind(DV_KIND_CLAIM),
                            .namespace = DV_STR("default"),
                            .name = DV_STR("c1"),
                            .patch_type = DV_PATCH_MERGE,
                            .patch = json_of(fixture, "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"),
                            .is_dry_run = true};
    reply = ask(fixture, &request);
    assert_int_equal(must(reply)->version, version);
    assert_int_equal(reply.object->meta->n_labels, 1);
    assert_int_equal(must(get(fixture, DV_KIND_CLAIM, "default", "c1"))->meta->n_labels, 0);
}

/* ---- admission by the caller ---- */

static size_t n_asked;

static void refuse(struct dv_request *request, const struct dv_object *old, const void *value,
                   struct dv_problems *problems)
{
    static struct dv_problem problem = {.type = DV_PROBLEM_FORBIDDEN,
                                        .field = DV_STR_INIT("spec.nodeName"),
                                        .detail = DV_STR_INIT("Forbidden: not yours")};

    (void)request;
    (void)old;
    (void)value;
    n_asked++;
    problems->v = &problem;
    problems->n = 1;
}

static void the_caller_may_refuse_a_change(void **state)
{
    struct fixture *fixture = *state;
    struct dv_request request = {.verb = DV_VERB_CREATE,
                                 .kind = dv_kind(DV_KIND_CLAIM),
                                 .namespace = DV_STR("default"),
                                 .value = value_of(fixture, DV_KIND_CLAIM, CLAIM),
                                 .admit = refuse};

    n_asked = 0;
    must_fail(ask(fixture, &request), 422, "Invalid",
              "ResourceClaim.resource.k8s.io \"c1\" is invalid: spec.nodeName: Forbidden: not "
              "yours");
    (void)must(create(fixture, DV_KIND_CLAIM, "default", CLAIM));
    request = (struct dv_request){.verb = DV_VERB_DELETE_COLLECTION,
                                  .kind = dv_kind(DV_KIND_CLAIM),
                                  .namespace = DV_STR("default"),
                                  .admit = refuse};
    must_fail(ask(fixture, &request), 422, "Invalid", NULL);
    assert_int_equal(n_asked, 2);
    assert_true(exists(fixture, DV_KIND_CLAIM, "default", "c1"));
}

/* ---- requests that are given up ---- */

struct given_up {
    struct dv_request request;
    int code;
    size_t n_done;
};

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    struct given_up *given_up = request->ctx;

    given_up->code = failure ? (int)failure->code : 0;
    given_up->n_done++;
}

static bool all_done(void *ctx)
{
    const struct given_up *all = ctx;

    return all[0].n_done && all[1].n_done && all[2].n_done;
}

static void what_is_cancelled_ends_once_and_others_go_on(void **state)
{
    struct fixture *fixture = *state;
    struct given_up all[3] = {0};

    for (size_t i = 0; i < DV_COUNT(all); i++) {
        all[i].request = (struct dv_request){.verb = DV_VERB_CREATE,
                                             .kind = dv_kind(DV_KIND_CLAIM),
                                             .namespace = DV_STR("default"),
                                             .value = value_of(fixture, DV_KIND_CLAIM, CLAIM),
                                             .done = on_done,
                                             .ctx = &all[i]};
        dv_request_start(fixture->cluster, &all[i].request);
    }
    dv_request_cancel(fixture->cluster, &all[0].request); /* is being written */
    dv_request_cancel(fixture->cluster, &all[1].request); /* waits */
    dv_request_cancel(fixture->cluster, &all[1].request);
    assert_int_equal(all[0].n_done + all[1].n_done, 0);
    run_until(fixture, all_done, all);
    settle(fixture);
    assert_int_equal(all[0].code, 499);
    assert_int_equal(all[1].code, 499);
    assert_int_equal(all[2].code, 409); /* the first one was made all the same */
    assert_int_equal(all[0].n_done + all[1].n_done + all[2].n_done, 3);
}

/* ---- tokens of service accounts ---- */

static struct dv_embedded_token *wanted_token; /* of the request that came last */

static void keep_token(void *ctx, struct dv_embedded_token *token)
{
    (void)ctx;
    wanted_token = token;
}

struct token_ask {
    struct dv_request request;
    char text[32];
    int code;
    size_t n_done;
};

static void on_token(struct dv_request *request, const struct dv_api_status *failure)
{
    struct token_ask *ask_token = DV_CONTAINER(request, struct token_ask, request);

    ask_token->n_done++;
    ask_token->code = failure ? (int)failure->code : 0;
    if (request->token)
        (void)snprintf(ask_token->text, sizeof(ask_token->text), "%.*s",
                       DV_FMT(request->token->status.token));
}

static bool is_token_told(void *ctx)
{
    return ((const struct token_ask *)ctx)->n_done > 0;
}

static void start_token(struct fixture *fixture, struct token_ask *ask_token,
                        const struct dv_api_token_request *value)
{
    *ask_token = (struct token_ask){
        .request = {.verb = DV_VERB_CREATE,
                    .subresource = DV_SUB_TOKEN,
                    .kind = dv_kind(DV_KIND_SERVICE_ACCOUNT),
                    .namespace = DV_STR("default"),
                    .name = DV_STR("account"),
                    .value = value,
                    .done = on_token}
    };
    dv_request_start(fixture->cluster, &ask_token->request);
}

static void tokens_are_made_by_who_serves_the_api(void **state)
{
    struct fixture *fixture = *state;
    dv_str audience = DV_STR("vault");
    struct dv_api_token_request value = {
        .spec = {.audiences = &audience, .n_audiences = 1}
    };
    struct token_ask one;

    start_token(fixture, &one, &value); /* nobody does */
    run_until(fixture, is_token_told, &one);
    assert_int_equal(one.code, 503);

    dv_embedded_set_token_maker(fixture->embedded, keep_token, NULL);
    start_token(fixture, &one, &value);
    assert_str(wanted_token->name, "account");
    assert_str(wanted_token->request->spec.audiences[0], "vault");
    wanted_token->request->status.token = DV_STR("secret");
    dv_embedded_token_made(wanted_token, NULL);
    assert_int_equal(one.n_done, 0);
    run_until(fixture, is_token_told, &one);
    assert_int_equal(one.code, 0);
    assert_string_equal(one.text, "secret");

    start_token(fixture, &one, &value);
    dv_embedded_token_made(wanted_token, dv_status_new(404, DV_STR("NotFound"), wanted_token->arena,
                                                       "no such account"));
    run_until(fixture, is_token_told, &one);
    assert_int_equal(one.code, 404);
}

/* The caller is told at once, and what the maker answers later goes nowhere. */
static void a_token_that_nobody_waits_for_is_dropped(void **state)
{
    struct fixture *fixture = *state;
    struct dv_api_token_request value = {0};
    struct token_ask one;

    dv_embedded_set_token_maker(fixture->embedded, keep_token, NULL);
    start_token(fixture, &one, &value);
    dv_request_cancel(fixture->cluster, &one.request);
    run_until(fixture, is_token_told, &one);
    assert_int_equal(one.code, 499);
    dv_embedded_token_made(wanted_token, NULL);
    settle(fixture);
    assert_int_equal(one.n_done, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(creates_with_what_the_server_sets, start, end),
        cmocka_unit_test_setup_teardown(makes_the_namespaces_that_always_exist, start, end),
        cmocka_unit_test_setup_teardown(refuses_what_cannot_be_created, start, end),
        cmocka_unit_test_setup_teardown(generates_names, start, end),
        cmocka_unit_test_setup_teardown(updates_with_and_without_a_version, start, end),
        cmocka_unit_test_setup_teardown(refuses_what_cannot_be_updated, start, end),
        cmocka_unit_test_setup_teardown(leases_are_made_by_an_update, start, end),
        cmocka_unit_test_setup_teardown(runtime_classes_are_updated_as_leases_are, start, end),
        cmocka_unit_test_setup_teardown(roles_are_made_by_an_update_and_need_no_version, start,
                                        end),
        cmocka_unit_test_setup_teardown(status_and_the_rest_do_not_mix, start, end),
        cmocka_unit_test_setup_teardown(dry_runs_change_nothing, start, end),
        cmocka_unit_test_setup_teardown(the_caller_may_refuse_a_change, start, end),
        cmocka_unit_test_setup_teardown(what_is_cancelled_ends_once_and_others_go_on, start, end),
        cmocka_unit_test_setup_teardown(tokens_are_made_by_who_serves_the_api, start, end),
        cmocka_unit_test_setup_teardown(a_token_that_nobody_waits_for_is_dropped, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
