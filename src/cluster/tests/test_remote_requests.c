/* Requests to a scripted API server. */
#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/defs.h"
#include "cluster/cluster.h"
#include "cluster/remote.h"
#include "cluster/tests/test_remote.h"
#include "resource/resource.h"
#include "json/json.h"

/* A request, and what became of it. */
struct ask {
    struct dv_request request;
    struct fake *fake;
    int n_done;
    int64_t code; /* 0: success */
    struct dv_arena *arena;
    dv_str reason;
    dv_str message;
    bool has_object;
    uint64_t version;
    size_t n_objects;
    dv_str warning;
    dv_str token;
    bool closes_remote;
};

static void on_closed(void *ctx)
{
    ((struct fake *)ctx)->n_closed++;
}

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    struct ask *ask = DV_CONTAINER(request, struct ask, request);

    ask->n_done++;
    ask->code = failure ? failure->code : 0;
    if (failure) {
        ask->reason = dv_str_copy(failure->reason, ask->arena);
        ask->message = dv_str_copy(failure->message, ask->arena);
        assert_null(request->object);
        assert_int_equal(request->n_objects, 0);
    }
    ask->has_object = request->object != NULL;
    if (request->object)
        ask->version = request->object->version;
    ask->n_objects = request->n_objects;
    if (request->token)
        ask->token = dv_str_copy(request->token->status.token, ask->arena);
    if (request->n_warnings)
        ask->warning = dv_str_copy(request->warnings[0], ask->arena);
    if (ask->closes_remote) {
        dv_remote_close(ask->fake->remote, on_closed, ask->fake);
        ask->fake->remote = NULL;
    }
}

static struct ask ask_of(struct fake *fake, enum dv_verb verb)
{
    return (struct ask){
        .fake = fake,
        .arena = fake->arena,
        .request = {.verb = verb,
                    .kind = dv_kind(DV_KIND_CONFIG_MAP),
                    .namespace = DV_STR("s"),
                    .name = DV_STR("a"),
                    .done = on_done}
    };
}

static void start(struct ask *ask)
{
    dv_request_start(dv_remote_cluster(ask->fake->remote), &ask->request);
    assert_int_equal(ask->n_done, 0);
}

static void wait(struct ask *ask)
{
    fake_wait(ask->fake, &ask->n_done, 1);
}

static void run(struct ask *ask)
{
    start(ask);
    wait(ask);
    fake_settle(ask->fake);
    assert_int_equal(ask->n_done, 1);
}

static const struct dv_json *json(struct fake *fake, const char *text)
{
    struct dv_err err;
    const struct dv_json *doc = dv_json_parse(dv_str_from_c(text), NULL, fake->arena, &err);

    assert_non_null(doc);
    return doc;
}

/* ---- what is asked ---- */

#define CONFIG_MAP "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{"

static void asks_as_the_api_wants_it(void **state)
{
    struct fake *fake = *state;
    struct dv_api_config_map map = {
        .metadata = {.name = DV_STR("a"), .namespace = DV_STR("s")}
    };
    struct dv_api_delete_options options = {.propagation_policy = DV_STR("Orphan")};
    struct ask asks[] = {
        ask_of(fake, DV_VERB_GET),    ask_of(fake, DV_VERB_CREATE),
        ask_of(fake, DV_VERB_UPDATE), ask_of(fake, DV_VERB_PATCH),
        ask_of(fake, DV_VERB_PATCH),  ask_of(fake, DV_VERB_DELETE),
        ask_of(fake, DV_VERB_DELETE), ask_of(fake, DV_VERB_DELETE_COLLECTION),
    };
    static const char *const wanted[] = {
        "GET /api/v1/namespaces/s/configmaps/a",
        "POST /api/v1/namespaces/s/configmaps?fieldManager=davit&dryRun=All&fieldValidation=Strict "
        "application/json: " CONFIG_MAP,
        "PUT /api/v1/namespaces/s/configmaps/a?fieldManager=me&fieldValidation=Ignore "
        "application/json: " CONFIG_MAP,
        "PATCH /api/v1/namespaces/s/configmaps/a/status?fieldManager=davit "
        "application/merge-patch+json: {\"data\":{\"k\":\"v\"}}",
        "PATCH /api/v1/namespaces/s/configmaps/a?fieldManager=davit&force=true "
        "application/apply-patch+yaml: {\"data\":{\"k\":\"v\"}}",
        "DELETE /api/v1/namespaces/s/configmaps/a",
        "DELETE /api/v1/namespaces/s/configmaps/a application/json: "
        "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"propagationPolicy\":\"Orphan\"}",
        "DELETE /api/v1/namespaces/s/configmaps?labelSelector=a%3Db",
    };

    asks[1].request.value = asks[2].request.value = &map;
    asks[1].request.is_dry_run = true;
    asks[1].request.field_validation = DV_VALIDATE_STRICT;
    asks[2].request.field_manager = DV_STR("me");
    asks[2].request.field_validation = DV_VALIDATE_IGNORE;
    asks[3].request.patch_type = DV_PATCH_MERGE;
    asks[3].request.subresource = DV_SUB_STATUS;
    asks[3].request.patch = asks[4].request.patch = json(fake, "{\"data\":{\"k\":\"v\"}}");
    asks[4].request.patch_type = DV_PATCH_APPLY;
    asks[4].request.is_forced = true;
    asks[6].request.delete_options = &options;
    asks[7].request.name = DV_STR_NONE;
    asks[7].request.label_selector = DV_STR("a=b");
    fake_connect(fake);
    for (size_t i = 0; i < DV_COUNT(asks); i++) {
        fake_reply(fake, i == 7 ? LIST("9", OBJECT("a", "ua", "3")) : OBJECT("a", "ua", "7"));
        run(&asks[i]);
        assert_int_equal(asks[i].code, 0);
        fake_expect(fake, wanted[i]);
        assert_int_equal(asks[i].version, i == 7 ? 0 : 7);
        assert_int_equal(asks[i].n_objects, i == 7 ? 1 : 0);
    }
}

static void binds_and_evicts_pods(void **state)
{
    struct fake *fake = *state;
    struct dv_api_binding binding = {
        .metadata = {.name = DV_STR("p") },
          .target = { .kind = DV_STR("Node"), .name = DV_STR("n")}
    };
    struct dv_api_eviction eviction = {.metadata = {.name = DV_STR("p")}};
    struct ask bind = ask_of(fake, DV_VERB_CREATE);
    struct ask evict = ask_of(fake, DV_VERB_CREATE);

    bind.request.kind = evict.request.kind = dv_kind(DV_KIND_POD);
    bind.request.subresource = DV_SUB_BINDING;
    bind.request.value = &binding;
    evict.request.subresource = DV_SUB_EVICTION;
    evict.request.value = &eviction;
    fake_connect(fake);
    fake_answer(fake, (struct answer){.status = 201, .body = "{\"kind\":\"Status\"}"});
    run(&bind);
    fake_expect(fake, "POST /api/v1/namespaces/s/pods/a/binding?fieldManager=davit "
                      "application/json: {\"kind\":\"Binding\",\"apiVersion\":\"v1\",");
    assert_int_equal(bind.code, 0);
    fake_answer(fake, (struct answer){.status = 201, .body = "{\"kind\":\"Status\"}"});
    run(&evict);
    fake_expect(fake, "POST /api/v1/namespaces/s/pods/a/eviction?fieldManager=davit "
                      "application/json: {\"kind\":\"Eviction\",\"apiVersion\":\"policy/v1\",");
    assert_int_equal(evict.code, 0);
}

static void asks_for_tokens_of_accounts(void **state)
{
    struct fake *fake = *state;
    int64_t seconds = 3607;
    struct dv_api_token_request value = {.spec = {.expiration_seconds = &seconds}};
    struct ask good = ask_of(fake, DV_VERB_CREATE);
    struct ask empty = ask_of(fake, DV_VERB_CREATE);

    good.request.kind = empty.request.kind = dv_kind(DV_KIND_SERVICE_ACCOUNT);
    good.request.subresource = empty.request.subresource = DV_SUB_TOKEN;
    good.request.value = empty.request.value = &value;
    fake_connect(fake);
    fake_answer(fake, (struct answer){.status = 201,
                                      .body = "{\"kind\":\"TokenRequest\",\"status\":{"
                                              "\"token\":\"secret\"}}"});
    run(&good);
    fake_expect(fake, "POST /api/v1/namespaces/s/serviceaccounts/a/token?fieldManager=davit "
                      "application/json: {\"kind\":\"TokenRequest\",\"apiVersion\":"
                      "\"authentication.k8s.io/v1\",");
    assert_int_equal(good.code, 0);
    assert_str(good.token, "secret");
    fake_answer(fake, (struct answer){.status = 201, .body = "{\"kind\":\"TokenRequest\"}"});
    run(&empty);
    assert_int_equal(empty.code, 500);
}

/* ---- what is answered ---- */

static void tells_failures_as_the_server_does(void **state)
{
    struct fake *fake = *state;
    struct ask conflict = ask_of(fake, DV_VERB_GET);
    struct ask odd = ask_of(fake, DV_VERB_GET);
    struct ask nonsense = ask_of(fake, DV_VERB_GET);
    struct ask other = ask_of(fake, DV_VERB_GET);
    struct ask missing = ask_of(fake, DV_VERB_GET);

    fake_connect(fake);
    fake_answer(fake, (struct answer){.status = 409, .body = STATUS("409", "Conflict", "changed")});
    run(&conflict);
    assert_int_equal(conflict.code, 409);
    assert_str(conflict.reason, "Conflict");
    assert_str(conflict.message, "changed");
    fake_answer(fake, (struct answer){.status = 502, .body = "<html>"});
    run(&odd);
    assert_int_equal(odd.code, 502);
    fake_reply(fake, "nonsense");
    run(&nonsense);
    assert_int_equal(nonsense.code, 500);
    fake_reply(fake, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}");
    run(&other);
    assert_int_equal(other.code, 500);
    fake_answer(fake, (struct answer){.status = 404,
                                      .body = "{\"kind\":\"Status\",\"reason\":\"NotFound\","
                                              "\"details\":{\"name\":\"a\"},\"code\":404}"});
    run(&missing);
    assert_int_equal(missing.code, 404);
    assert_str(missing.reason, "NotFound");
}

#define DELETING(rest)                                                                             \
    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"s\",\"resourceVersion\":\"9\","                 \
    "\"deletionTimestamp\":\"2024-01-01T00:00:00Z\"" rest "}}"

static void knows_what_is_gone(void **state)
{
    static const struct {
        enum dv_verb verb;
        const char *body;
        bool is_removed;
    } cases[] = {
        {DV_VERB_DELETE, "{\"kind\":\"Status\",\"status\":\"Success\"}", true          },
        {DV_VERB_DELETE, OBJECT("a",                                     "ua",           "7"), true},
        {DV_VERB_DELETE,          DELETING(",\"finalizers\":[\"f\"],\"deletionGracePeriodSeconds\":0"),
         false                                                        },
        {DV_VERB_DELETE,          DELETING(",\"deletionGracePeriodSeconds\":30"),                                                        false},
        {DV_VERB_DELETE,         DELETING(",\"deletionGracePeriodSeconds\":0"),true},
        {DV_VERB_UPDATE,          DELETING(",\"finalizers\":[\"f\"],\"deletionGracePeriodSeconds\":0"),
         false                                                         },
        {DV_VERB_UPDATE,          DELETING(",\"deletionGracePeriodSeconds\":0"),                                                        true},
        {DV_VERB_UPDATE,          OBJECT("a", "ua",   "7"), false},
        {DV_VERB_GET,          DELETING(",\"deletionGracePeriodSeconds\":0"),                                                    false                                                          },
    };
    struct fake *fake = *state;
    struct dv_api_config_map map = {
        .metadata = {.name = DV_STR("a"), .namespace = DV_STR("s")}
    };

    fake_connect(fake);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct ask ask = ask_of(fake, cases[i].verb);

        ask.request.value = cases[i].verb == DV_VERB_UPDATE ? &map : NULL;
        fake_reply(fake, cases[i].body);
        run(&ask);
        assert_int_equal(ask.code, 0);
        assert_int_equal(ask.request.is_removed, cases[i].is_removed);
    }
}

static void hands_on_warnings(void **state)
{
    struct fake *fake = *state;
    struct ask ask = ask_of(fake, DV_VERB_GET);

    fake_connect(fake);
    fake_answer(fake, (struct answer){200, OBJECT("a", "ua", "7"), "Warning",
                                      "299 - \"unknown field \\\"x\\\"\"", false});
    run(&ask);
    assert_str(ask.warning, "unknown field \"x\"");
}

/* ---- patience ---- */

static void comes_again_when_the_server_said(void **state)
{
    static const unsigned busy[] = {429, 503};
    struct fake *fake = *state;

    fake_connect(fake);
    for (size_t i = 0; i < DV_COUNT(busy); i++) {
        struct ask ask = ask_of(fake, DV_VERB_GET);
        int n = fake->n_asked;

        fake_answer(fake, (struct answer){busy[i], "", "Retry-After", "8", false});
        fake_reply(fake, OBJECT("a", "ua", "7"));
        start(&ask);
        fake_wait(fake, &fake->n_asked, n + 1);
        fake_advance(fake, 7900);
        assert_int_equal(fake->n_asked, n + 1);
        fake_advance(fake, 2200);
        wait(&ask);
        assert_int_equal(fake->n_asked, n + 2);
        assert_int_equal(ask.code, 0);
    }
}

static void a_busy_server_that_says_nothing_more_is_a_failure(void **state)
{
    struct fake *fake = *state;
    struct ask silent = ask_of(fake, DV_VERB_GET);
    struct ask late = ask_of(fake, DV_VERB_GET);
    struct ask other = ask_of(fake, DV_VERB_GET);

    fake_connect(fake);
    fake_answer(fake, (struct answer){.status = 429, .body = ""});
    run(&silent);
    assert_int_equal(silent.code, 429);
    late.request.timeout_ms = 5000;
    fake_answer(fake, (struct answer){429, "", "Retry-After", "8", false});
    run(&late);
    assert_int_equal(late.code, 429);
    fake_answer(fake, (struct answer){500, "", "Retry-After", "1", false});
    run(&other);
    assert_int_equal(other.code, 500);
}

#define FORBIDDEN                                                                                  \
    (struct answer)                                                                                \
    {                                                                                              \
        .status = 403, .body = STATUS("403", "Forbidden", "no relationship found")                 \
    }

/* The Node authorizer learns of a pod a little later than the pod's node. */
static void rights_that_come_late_are_waited_for(void **state)
{
    struct fake *fake = *state;
    struct ask ask = ask_of(fake, DV_VERB_GET);

    fake_connect(fake);
    ask.request.may_be_early = true;
    fake_answer(fake, FORBIDDEN);
    fake_answer(fake, FORBIDDEN);
    fake_reply(fake, OBJECT("a", "ua", "7"));
    start(&ask);
    fake_wait(fake, &fake->n_asked, 1);
    fake_advance(fake, 200);
    assert_int_equal(fake->n_asked, 1);
    fake_advance(fake, 3000);
    wait(&ask);
    assert_int_equal(ask.code, 0);
    assert_int_equal(ask.version, 7);
    assert_int_equal(fake->n_asked, 3);
}

static void rights_that_do_not_come_are_told(void **state)
{
    struct fake *fake = *state;
    struct ask early = ask_of(fake, DV_VERB_GET);
    struct ask other = ask_of(fake, DV_VERB_GET);
    struct ask brief = ask_of(fake, DV_VERB_GET);
    struct ask dropped = ask_of(fake, DV_VERB_GET);

    fake_connect(fake);
    fake->otherwise = FORBIDDEN;
    run(&other); /* which is for no pod */
    assert_int_equal(other.code, 403);
    assert_int_equal(fake->n_asked, 1);
    early.request.may_be_early = true;
    start(&early);
    fake_advance(fake, 5000);
    assert_int_equal(early.n_done, 0);
    fake_advance(fake, 5000);
    wait(&early);
    assert_int_equal(early.code, 403);
    assert_str(early.message, "no relationship found");
    assert_int_equal(fake->n_asked, 7);
    brief.request.may_be_early = true;
    brief.request.timeout_ms = 500; /* before the second repetition */
    start(&brief);
    fake_advance(fake, 450);
    wait(&brief);
    assert_int_equal(brief.code, 403);
    dropped.request.may_be_early = true;
    start(&dropped);
    fake_advance(fake, 100);
    dv_request_cancel(dv_remote_cluster(fake->remote), &dropped.request);
    wait(&dropped);
    assert_int_equal(dropped.code, 499);
}

static void gives_up_at_the_deadline(void **state)
{
    struct fake *fake = *state;
    struct ask ask = ask_of(fake, DV_VERB_GET);
    struct ask busy = ask_of(fake, DV_VERB_GET);

    fake_connect(fake);
    ask.request.timeout_ms = 5000;
    start(&ask);
    fake_expect(fake, "GET ");
    fake_advance(fake, 5000);
    wait(&ask);
    assert_int_equal(ask.code, 504);
    fake->otherwise = (struct answer){429, "", "Retry-After", "1", false};
    busy.request.timeout_ms = 10000;
    start(&busy);
    fake_advance(fake, 11000);
    wait(&busy);
    assert_int_equal(busy.code, 429);
    assert_in_range(fake->n_asked, 8, 12);
}

static void tries_older_versions_of_a_kind(void **state)
{
    struct fake *fake = *state;
    struct ask ask = ask_of(fake, DV_VERB_GET);
    struct ask next = ask_of(fake, DV_VERB_GET);

    fake_connect(fake);
    ask.request.kind = next.request.kind = dv_kind(DV_KIND_CLASS);
    fake_answer(fake, (struct answer){.status = 404, .body = "404 page not found"});
    fake_reply(fake, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"3\"}}");
    run(&ask);
    assert_int_equal(ask.code, 0);
    fake_expect(fake, "GET /apis/resource.k8s.io/v1/deviceclasses/a");
    fake_expect(fake, "GET /apis/resource.k8s.io/v1beta2/deviceclasses/a");
    fake_reply(fake, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"3\"}}");
    run(&next);
    fake_expect(fake, "GET /apis/resource.k8s.io/v1beta2/deviceclasses/a");
}

/* ---- ends ---- */

static void is_cancelled_at_any_time(void **state)
{
    struct fake *fake = *state;
    struct ask at_once = ask_of(fake, DV_VERB_GET);
    struct ask asked = ask_of(fake, DV_VERB_GET);
    struct ask waiting = ask_of(fake, DV_VERB_GET);
    struct ask *asks[] = {&at_once, &asked, &waiting};

    fake_connect(fake);
    start(&at_once);
    dv_request_cancel(dv_remote_cluster(fake->remote), &at_once.request);
    wait(&at_once);
    start(&asked);
    fake_expect(fake, "GET ");
    dv_request_cancel(dv_remote_cluster(fake->remote), &asked.request);
    wait(&asked);
    fake_answer(fake, (struct answer){429, "", "Retry-After", "8", false});
    start(&waiting);
    fake_expect(fake, "GET ");
    fake_advance(fake, 1000);
    for (int i = 0; i < 2; i++) /* twice is once */
        dv_request_cancel(dv_remote_cluster(fake->remote), &waiting.request);
    wait(&waiting);
    fake_advance(fake, 20000);
    for (size_t i = 0; i < DV_COUNT(asks); i++) {
        assert_int_equal(asks[i]->n_done, 1);
        assert_int_equal(asks[i]->code, 499);
        dv_request_cancel(dv_remote_cluster(fake->remote), &asks[i]->request); /* too late */
    }
}

static void ends_with_its_client(void **state)
{
    struct fake *fake = *state;
    struct ask asked = ask_of(fake, DV_VERB_GET);
    struct ask waiting = ask_of(fake, DV_VERB_GET);
    struct ask fresh = ask_of(fake, DV_VERB_GET);
    struct ask late = ask_of(fake, DV_VERB_GET);

    fake_connect(fake);
    fake_answer(fake, (struct answer){429, "", "Retry-After", "8", false});
    start(&waiting);
    fake_expect(fake, "GET ");
    start(&asked);
    fake_expect(fake, "GET ");
    fake_settle(fake);
    start(&fresh);
    dv_remote_close(fake->remote, on_closed, fake);
    start(&late);
    fake->remote = NULL;
    fake_wait(fake, &fake->n_closed, 1);
    assert_int_equal(asked.code, 499);
    assert_int_equal(waiting.code, 499);
    assert_int_equal(fresh.code, 499);
    assert_int_equal(late.code, 499);
    assert_int_equal(asked.n_done + waiting.n_done + fresh.n_done + late.n_done, 4);
}

static void a_callback_may_close_the_client(void **state)
{
    struct fake *fake = *state;
    struct ask ask = ask_of(fake, DV_VERB_GET);

    fake_connect(fake);
    ask.closes_remote = true;
    fake_reply(fake, OBJECT("a", "ua", "7"));
    start(&ask);
    wait(&ask);
    fake_wait(fake, &fake->n_closed, 1);
    assert_int_equal(ask.code, 0);
}

static void a_server_that_is_not_there_is_a_failure(void **state)
{
    struct fake *fake = *state;
    struct ask ask = ask_of(fake, DV_VERB_GET);
    struct dv_kubeconfig config = {.server = DV_STR("http://localhost"),
                                   .socket = DV_STR("/nonexistent/socket")};
    struct dv_remote_options options = {0};
    struct dv_err err;

    fake->remote = dv_remote_open(fake->loop, &config, &options, &err);
    assert_non_null(fake->remote);
    run(&ask);
    assert_int_equal(ask.code, 503);
}

/* ---- tokens ---- */

static void write_token(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static bool has_fresh_token(struct fake *fake)
{
    struct ask ask = ask_of(fake, DV_VERB_GET);

    fake_reply(fake, OBJECT("a", "ua", "7"));
    run(&ask);
    return dv_str_eq(dv_buf_str(&fake->token), DV_STR("Bearer fresh"));
}

/* The file is read by a worker thread, which takes its own time. */
static void expect_fresh_token(struct fake *fake)
{
    for (int i = 0; i < 1000 && !has_fresh_token(fake); i++)
        (void)usleep(1000); /* may be cut short */
    assert_true(has_fresh_token(fake));
}

static void a_token_file_is_read_anew(void **state)
{
    struct fake *fake = *state;
    char path[] = "/tmp/dv-token-XXXXXX";
    int fd = mkstemp(path);
    struct ask ask = ask_of(fake, DV_VERB_GET);

    assert_true(fd >= 0 && close(fd) == 0);
    fake->config.token = DV_STR("old");
    fake->config.token_file = dv_str_from_c(path);
    fake_connect(fake);
    write_token(path, "fresh\n");
    fake_advance(fake, 50000);
    assert_false(has_fresh_token(fake));
    fake_advance(fake, 11000);
    expect_fresh_token(fake);
    fake_disconnect(fake);

    fake_connect(fake); /* once more with the old one: the server does not know it */
    fake_answer(fake, (struct answer){.status = 401, .body = ""});
    run(&ask);
    assert_int_equal(ask.code, 401);
    fake_advance(fake, 1000);
    expect_fresh_token(fake);
    write_token(path, ""); /* being renewed: the last one stays */
    fake_advance(fake, 61000);
    assert_true(has_fresh_token(fake));
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_start, fake_end)
        TEST(asks_as_the_api_wants_it),
        TEST(binds_and_evicts_pods),
        TEST(asks_for_tokens_of_accounts),
        TEST(tells_failures_as_the_server_does),
        TEST(knows_what_is_gone),
        TEST(hands_on_warnings),
        TEST(comes_again_when_the_server_said),
        TEST(a_busy_server_that_says_nothing_more_is_a_failure),
        TEST(rights_that_come_late_are_waited_for),
        TEST(rights_that_do_not_come_are_told),
        TEST(gives_up_at_the_deadline),
        TEST(tries_older_versions_of_a_kind),
        TEST(is_cancelled_at_any_time),
        TEST(ends_with_its_client),
        TEST(a_callback_may_close_the_client),
        TEST(a_server_that_is_not_there_is_a_failure),
        TEST(a_token_file_is_read_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
