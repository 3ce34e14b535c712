/* Views over a scripted API server. */
#include "support/dvtest.h"

#include "base/buf.h"
#include "cluster/cluster.h"
#include "cluster/remote.h"
#include "cluster/tests/test_remote.h"
#include "resource/resource.h"

static void lists_page_by_page_and_then_watches(void **state)
{
    struct fake *fake = *state;

    fake_connect(fake);
    fake_reply(fake, PAGE("5", "next&page", OBJECT("a", "ua", "3") "," OBJECT("b", "ub", "4")));
    fake_reply(fake, LIST("5", OBJECT("c", "uc", "1")));
    fake_stream(fake, EVENT("ADDED", OBJECT("d", "ud", "6")));
    fake_view(fake);
    assert_false(dv_view_is_synced(fake->view));
    fake_expect_log(fake, "+a@3 +b@4 +c@1 synced +d@6 ");
    fake_expect(fake, "GET /api/v1/configmaps?limit=2");
    fake_expect(fake, "GET /api/v1/configmaps?limit=2&continue=next%26page");
    fake_expect(fake, WATCHES("5"));
    fake_send(fake, DV_STR(EVENT("MODIFIED", OBJECT("a", "ua", "7"))
                               EVENT("DELETED", OBJECT("b", "ub", "8"))));
    fake_expect_log(fake, "~a@7 -b ");
    assert_int_equal(dv_view_n(fake->view), 3);
    assert_str(dv_buf_str(&fake->token), "Bearer secret");
}

static void asks_for_what_the_view_selects(void **state)
{
    struct fake *fake = *state;
    struct dv_view_options options = {.kind = dv_kind(DV_KIND_POD),
                                      .namespace = DV_STR("s"),
                                      .label_selector = DV_STR("a in (b,c)"),
                                      .field_selector = DV_STR("spec.nodeName=n"),
                                      .ctx = fake};
    struct dv_view *view;
    struct dv_err err;

    fake_connect(fake);
    view = dv_view_open(dv_remote_cluster(fake->remote), &options, &err);
    assert_non_null(view);
    fake_expect(fake, "GET /api/v1/namespaces/s/pods?labelSelector=a%20in%20%28b%2Cc%29&"
                      "fieldSelector=spec.nodeName%3Dn&limit=2");
    dv_view_close(view);
    options.label_selector = DV_STR("a in");
    assert_null(dv_view_open(dv_remote_cluster(fake->remote), &options, &err));
    assert_int_equal(err.code, DV_INVALID_ARGUMENT);
}

/* ---- ends of watches ---- */

static void goes_on_where_a_lost_connection_was(void **state)
{
    struct fake *fake = *state;

    fake_begin(fake);
    fake_send(fake, DV_STR(EVENT("MODIFIED", OBJECT("a", "ua", "7"))));
    fake_expect_log(fake, "~a@7 ");
    fake_send(fake, DV_STR("{\"type\":\"MODIFIED\",\"obj")); /* a part of one */
    fake_settle(fake);
    fake_cut(fake);
    fake_expect_log(fake, "lost ");
    fake_reply(fake, LIST("8", OBJECT("a", "ua", "8")));
    fake_stream(fake, EVENT("MODIFIED", OBJECT("a", "ua", "8")));
    fake_advance(fake, 3000);
    fake_expect(fake, CHECKS);
    fake_expect(fake, WATCHES("7"));
    fake_expect_log(fake, "back ~a@8 ");
}

static void goes_on_behind_a_bookmark(void **state)
{
    struct fake *fake = *state;

    fake_begin(fake);
    fake_send(fake, DV_STR(BOOKMARK("90")));
    fake_settle(fake);
    for (int i = 0; i < 3; i++) { /* bookmarks, as servers send them, for more than five minutes */
        fake_advance(fake, 101000);
        fake_send(fake, DV_STR(BOOKMARK("90")));
        fake_settle(fake);
    }
    fake_stream(fake, "");
    fake_finish(fake);
    fake_expect(fake, WATCHES("90"));
    fake_expect_log(fake, ""); /* an end in time is no trouble */
}

static void a_quiet_watch_after_a_loss_is_said_to_work(void **state)
{
    struct fake *fake = *state;

    fake_begin(fake);
    fake_cut(fake);
    fake_expect_log(fake, "lost ");
    fake_reply(fake, SAME_LIST);
    fake_stream(fake, "");
    fake_advance(fake, 3000);
    fake_expect(fake, CHECKS);
    fake_expect(fake, WATCHES("5"));
    fake_advance(fake, 16000);
    fake_expect_log(fake, "back ");
}

static void begins_anew_when_nothing_comes_for_long(void **state)
{
    struct fake *fake = *state;

    fake_begin(fake);
    fake_reply(fake, SAME_LIST);
    fake_advance(fake, 151000);
    fake_expect(fake, CHECKS);
    fake_expect(fake, WATCHES("5"));
}

static const char changed_list[] =
    LIST("20", OBJECT("a", "ua", "3") "," OBJECT("c", "uc", "11") "," OBJECT("d", "ud", "12"));

static void expect_difference(struct fake *fake)
{
    fake_expect(fake, "GET /api/v1/configmaps?limit=2");
    fake_expect(fake, WATCHES("20"));
    fake_expect_log(fake, "+c@11 +d@12 -b ");
}

static void tells_the_difference_when_its_version_is_forgotten(void **state)
{
    struct fake *fake = *state;

    fake_begin(fake);
    fake_reply(fake, changed_list);
    fake_stream(fake, "");
    fake_send(fake, DV_STR(EVENT("ERROR", EXPIRED)));
    expect_difference(fake);
}

static void tells_the_difference_when_a_watch_is_answered_with_410(void **state)
{
    struct fake *fake = *state;

    fake_begin(fake);
    fake_advance(fake, 11000);
    fake_reply(fake, SAME_LIST);
    fake_answer(fake, (struct answer){.status = 410, .body = EXPIRED});
    fake_reply(fake, changed_list);
    fake_stream(fake, "");
    fake_finish(fake);
    fake_expect(fake, CHECKS);
    fake_expect(fake, WATCHES("5"));
    expect_difference(fake);
}

static void tells_that_one_went_and_another_of_its_name_came(void **state)
{
    struct fake *fake = *state;

    fake_begin(fake);
    fake_reply(fake, LIST("20", OBJECT("a", "other", "11") "," OBJECT("b", "ub", "4")));
    fake_stream(fake, "");
    fake_send(fake, DV_STR(EVENT("ERROR", EXPIRED)));
    fake_expect_log(fake, "-a +a@11 ");
}

static void lists_from_the_start_when_the_pages_expire(void **state)
{
    struct fake *fake = *state;

    fake_connect(fake);
    fake_reply(fake, PAGE("5", "p2", OBJECT("a", "ua", "3") "," OBJECT("b", "ub", "4")));
    fake_answer(fake, (struct answer){.status = 410, .body = EXPIRED});
    fake_reply(fake, LIST("9", OBJECT("b", "ub", "8")));
    fake_stream(fake, "");
    fake_view(fake);
    fake_expect_log(fake, "+a@3 +b@4 ~b@8 -a synced ");
    fake_expect(fake, "GET /api/v1/configmaps?limit=2");
    fake_expect(fake, "GET /api/v1/configmaps?limit=2&continue=p2");
    fake_expect(fake, "GET /api/v1/configmaps?limit=2");
    fake_expect(fake, WATCHES("9"));
}

static void many_that_are_gone_are_told_in_portions(void **state)
{
    struct fake *fake = *state;
    struct dv_buf list;

    dv_buf_init(&list, 1u << 20);
    dv_buf_add_c(&list, "{\"kind\":\"ConfigMapList\",\"metadata\":{\"resourceVersion\":\"5\"},"
                        "\"items\":[");
    for (int i = 0; i < 1201; i++)
        dv_buf_printf(&list,
                      "%s{\"metadata\":{\"name\":\"o%d\",\"namespace\":\"s\",\"uid\":\"u%d\","
                      "\"resourceVersion\":\"4\"}}",
                      i ? "," : "", i, i);
    dv_buf_add_c(&list, "]}");
    fake_connect(fake);
    fake_reply(fake, dv_buf_c(&list));
    fake_stream(fake, EVENT("ERROR", EXPIRED));
    fake_reply(fake, LIST("20", ""));
    fake_stream(fake, "");
    fake_view(fake);
    fake_wait(fake, &fake->n_told, 1201 + 1 + 1201);
    assert_int_equal(dv_view_n(fake->view), 0);
    dv_buf_fini(&list);
}

static void asks_for_older_versions_of_a_kind(void **state)
{
    struct fake *fake = *state;
    struct dv_view_options options = {.kind = dv_kind(DV_KIND_CLASS), .ctx = fake};
    struct dv_view *view;
    struct dv_err err;

    fake_connect(fake);
    fake_answer(fake, (struct answer){.status = 404, .body = "404 page not found"});
    fake_answer(fake, (struct answer){.status = 404, .body = "404 page not found"});
    fake_reply(fake, "{\"kind\":\"DeviceClassList\",\"metadata\":{\"resourceVersion\":\"5\"},"
                     "\"items\":null}");
    view = dv_view_open(dv_remote_cluster(fake->remote), &options, &err);
    assert_non_null(view);
    fake_expect(fake, "GET /apis/resource.k8s.io/v1/deviceclasses?");
    fake_expect(fake, "GET /apis/resource.k8s.io/v1beta2/deviceclasses?");
    fake_advance(fake, 5000);
    fake_expect(fake, "GET /apis/resource.k8s.io/v1beta1/deviceclasses?");
    fake_expect(fake, "GET /apis/resource.k8s.io/v1beta1/deviceclasses?watch=true");
    dv_view_close(view);
}

/* ---- closing ---- */

/* All that a view tells: two lists with a loss in between, and events. */
static void play(struct fake *fake)
{
    fake->n_told = 0;
    fake->n_answers = fake->n_answered = 0;
    fake_connect(fake);
    fake_reply(fake, LIST("5", OBJECT("a", "ua", "3") "," OBJECT("b", "ub", "4")));
    fake_stream(fake, EVENT("ADDED", OBJECT("c", "uc", "6"))
                          EVENT("DELETED", OBJECT("a", "ua", "7")) "bad\n");
    fake_answer(fake, (struct answer){.status = 500, .body = ""});
    fake_reply(fake, EXPIRED);
    fake_reply(fake, LIST("9", OBJECT("b", "other", "8")));
    fake_stream(fake, EVENT("DELETED", OBJECT("b", "other", "10")) EVENT("ERROR", EXPIRED));
    fake_view(fake);
    fake_advance(fake, 20000);
}

static void may_be_closed_in_any_callback(void **state)
{
    struct fake *fake = *state;
    int n_all;

    play(fake);
    n_all = fake->n_told;
    assert_true(n_all >= 12);
    fake_view_close(fake);
    fake_disconnect(fake);
    for (int i = 1; i <= 3 * n_all; i++) {
        int n = (i - 1) / 3 + 1;

        fake->closes_view_at = i % 3 != 1 ? n : 0;
        fake->closes_remote_at = i % 3 != 2 ? n : 0;
        play(fake);
        assert_int_equal(fake->n_told, n); /* nothing afterwards */
        fake_view_close(fake);
        fake_disconnect(fake);
        fake_settle(fake);
    }
    assert_int_equal(fake->n_closed, 1 + 3 * n_all);
}

static void may_be_closed_at_any_time(void **state)
{
    struct fake *fake = *state;

    for (int turns = 0; turns < 60; turns++) {
        fake->n_answers = fake->n_answered = 0;
        fake_connect(fake);
        fake_reply(fake, PAGE("5", "p", OBJECT("a", "ua", "3")));
        fake_reply(fake, LIST("5", OBJECT("b", "ub", "4")));
        fake_stream(fake, EVENT("ADDED", OBJECT("c", "uc", "6")));
        fake_view(fake);
        for (int i = 0; i < turns; i += 10)
            fake_settle(fake);
        if (turns & 1)
            fake_view_close(fake);
        fake_disconnect(fake);
        fake_view_close(fake);
        fake_settle(fake);
    }
}

static void a_view_of_a_closing_client_shows_nothing(void **state)
{
    struct fake *fake = *state;
    struct dv_view_options options = {.kind = dv_kind(DV_KIND_POD)};
    struct dv_view *view;
    struct dv_err err;

    fake_connect(fake);
    fake->otherwise = (struct answer){0};
    fake_view(fake);
    fake_expect(fake, "GET ");
    dv_remote_close(fake->remote, NULL, NULL);
    view = dv_view_open(dv_remote_cluster(fake->remote), &options, &err);
    fake->remote = NULL;
    assert_non_null(view);
    fake_settle(fake);
    assert_false(dv_view_is_synced(view));
    dv_view_close(view);
    fake_expect_log(fake, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_start, fake_end)
        TEST(lists_page_by_page_and_then_watches),
        TEST(asks_for_what_the_view_selects),
        TEST(goes_on_where_a_lost_connection_was),
        TEST(goes_on_behind_a_bookmark),
        TEST(a_quiet_watch_after_a_loss_is_said_to_work),
        TEST(begins_anew_when_nothing_comes_for_long),
        TEST(tells_the_difference_when_its_version_is_forgotten),
        TEST(tells_the_difference_when_a_watch_is_answered_with_410),
        TEST(tells_that_one_went_and_another_of_its_name_came),
        TEST(lists_from_the_start_when_the_pages_expire),
        TEST(many_that_are_gone_are_told_in_portions),
        TEST(asks_for_older_versions_of_a_kind),
        TEST(may_be_closed_in_any_callback),
        TEST(may_be_closed_at_any_time),
        TEST(a_view_of_a_closing_client_shows_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
