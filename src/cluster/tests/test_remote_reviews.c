/* Reviews by a scripted API server. */
#include "support/dvtest.h"

#include "base/defs.h"
#include "cluster/cluster.h"
#include "cluster/remote.h"
#include "cluster/tests/test_remote.h"
#include "resource/resource.h"

#define TOKEN_TARGET "POST /apis/authentication.k8s.io/v1/tokenreviews application/json: "
#define ACCESS_TARGET "POST /apis/authorization.k8s.io/v1/subjectaccessreviews application/json: "

/* A review, and what became of it. */
struct ask {
    struct dv_user_review review;
    struct fake *fake;
    int n_done;
    enum dv_code code;
    bool is_authenticated;
    bool is_allowed;
    dv_str user;
};

static const struct dv_api_token_review_spec token = {.token = DV_STR_INIT("secret")};
static struct dv_api_resource_attributes attributes = {.verb = DV_STR_INIT("get"),
                                                       .resource = DV_STR_INIT("nodes"),
                                                       .subresource = DV_STR_INIT("metrics"),
                                                       .name = DV_STR_INIT("n1")};
static const struct dv_api_subject_access_review_spec access_spec = {
    .user = DV_STR_INIT("bob"), .resource_attributes = &attributes};

static void on_done(struct dv_user_review *review, const struct dv_err *err)
{
    struct ask *ask = DV_CONTAINER(review, struct ask, review);

    ask->n_done++;
    ask->code = err ? err->code : DV_OK;
    if (!err && review->token) {
        ask->is_authenticated = review->token_status->authenticated;
        ask->user = dv_str_copy(review->token_status->user.username, ask->fake->arena);
    } else if (!err) {
        ask->is_allowed = review->access_status->allowed;
    }
}

static void start(struct ask *ask)
{
    ask->review.done = on_done;
    dv_user_review_start(dv_remote_cluster(ask->fake->remote), &ask->review);
    assert_int_equal(ask->n_done, 0);
}

static void wait(struct ask *ask)
{
    fake_wait(ask->fake, &ask->n_done, 1);
}

static void asks_whose_a_token_is(void **state)
{
    struct fake *fake = *state;
    struct ask ask = {.fake = fake, .review = {.token = &token}};

    fake_connect(fake);
    fake_answer(fake, (struct answer){.status = 201,
                                      .body = "{\"status\":{\"authenticated\":true,\"user\":{"
                                              "\"username\":\"bob\",\"groups\":[\"a\"]}}}"});
    start(&ask);
    wait(&ask);
    fake_expect(fake, TOKEN_TARGET "{\"kind\":\"TokenReview\",\"apiVersion\":"
                                   "\"authentication.k8s.io/v1\",");
    assert_int_equal(ask.code, DV_OK);
    assert_true(ask.is_authenticated);
    assert_str(ask.user, "bob");
}

static void asks_whether_a_user_may(void **state)
{
    struct fake *fake = *state;
    struct ask yes = {.fake = fake, .review = {.access = &access_spec}};
    struct ask no = {.fake = fake, .review = {.access = &access_spec}};

    fake_connect(fake);
    fake_answer(fake, (struct answer){.status = 201, .body = "{\"status\":{\"allowed\":true}}"});
    start(&yes);
    wait(&yes);
    fake_expect(fake, ACCESS_TARGET "{\"kind\":\"SubjectAccessReview\",\"apiVersion\":"
                                    "\"authorization.k8s.io/v1\",");
    assert_true(yes.code == DV_OK && yes.is_allowed);
    fake_answer(fake, (struct answer){.status = 201, .body = "{\"status\":{\"allowed\":false}}"});
    start(&no);
    wait(&no);
    assert_true(no.code == DV_OK && !no.is_allowed);
}

static void tells_why_there_is_no_answer(void **state)
{
    static const struct {
        struct answer answer;
        enum dv_code code;
    } rows[] = {
        {{.status = 403, .body = STATUS("403", "Forbidden", "no")}, DV_PERMISSION_DENIED},
        {{.status = 201, .body = "nonsense"},                       DV_INTERNAL         },
        {{.status = 201, .body = "{\"status\":[]}"},                DV_INTERNAL         },
    };
    struct fake *fake = *state;

    fake_connect(fake);
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct ask ask = {.fake = fake, .review = {.token = &token}};

        fake_answer(fake, rows[i].answer);
        start(&ask);
        wait(&ask);
        assert_int_equal(ask.code, rows[i].code);
        assert_false(ask.is_authenticated);
    }
}

static void gives_up_a_server_that_says_nothing(void **state)
{
    struct fake *fake = *state;
    struct ask slow = {.fake = fake, .review = {.token = &token}};
    struct ask unwanted = {.fake = fake, .review = {.token = &token}};
    struct ask last = {.fake = fake, .review = {.token = &token}};

    fake_connect(fake);
    fake->otherwise = (struct answer){0};
    start(&slow);
    fake_expect(fake, TOKEN_TARGET);
    fake_advance(fake, 10000);
    wait(&slow);
    assert_int_equal(slow.code, DV_DEADLINE_EXCEEDED);
    start(&unwanted);
    dv_user_review_cancel(dv_remote_cluster(fake->remote), &unwanted.review);
    dv_user_review_cancel(dv_remote_cluster(fake->remote), &unwanted.review);
    assert_int_equal(unwanted.n_done, 0);
    wait(&unwanted);
    assert_int_equal(unwanted.code, DV_CANCELLED);
    start(&last); /* the client closes before it is answered */
    fake_disconnect(fake);
    assert_int_equal(last.n_done, 1);
    assert_int_equal(last.code, DV_CANCELLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(asks_whose_a_token_is, fake_start, fake_end),
        cmocka_unit_test_setup_teardown(asks_whether_a_user_may, fake_start, fake_end),
        cmocka_unit_test_setup_teardown(tells_why_there_is_no_answer, fake_start, fake_end),
        cmocka_unit_test_setup_teardown(gives_up_a_server_that_says_nothing, fake_start, fake_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
