/* Views over an API server, or what claims to be one, that does not do what it should. */
#include "support/dvtest.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/defs.h"
#include "cluster/tests/test_remote.h"

static const char *const bad_events[] = {
    "not json\n",
    "{}\n",
    "[]\n",
    "12\n",
    "{\"type\":\"ADDED\"}\n",
    EVENT("ODD", OBJECT("c", "uc", "6")),
    EVENT("added", OBJECT("c", "uc", "6")),
    EVENT("ADDED", "null"),
    EVENT("ADDED", OBJECT("c", "uc", "")),
    EVENT("ADDED", OBJECT("c", "uc", "x")),
    EVENT("ADDED", OBJECT("c", "uc", "0")),
    EVENT("ADDED", OBJECT("", "uc", "6")),
    EVENT("MODIFIED", OBJECT("a", "ua", "5")), /* as old as the list */
    EVENT("MODIFIED", OBJECT("a", "ua", "2")),
    EVENT("BOOKMARK", OBJECT("", "", "4")),
    EVENT("ADDED", "{\"metadata\":{\"name\":\"c\",\"resourceVersion\":\"6\"}}"),
    EVENT("ADDED", "{\"metadata\":{\"name\":7,\"namespace\":\"s\",\"resourceVersion\":\"6\"}}"),
    EVENT("ADDED", "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"c\","
                   "\"namespace\":\"s\",\"resourceVersion\":\"6\"}}"),
    EVENT("ERROR", STATUS("500", "InternalError", "oh")),
    EVENT("ERROR", STATUS("504", "Timeout", "too large resource version")),
    EVENT("ERROR", "{}"),
};

static void a_bad_event_leads_to_a_list_and_changes_nothing(void **state)
{
    struct fake *fake = *state;

    for (size_t i = 0; i < DV_COUNT(bad_events); i++) {
        fake_begin(fake);
        fake_send(fake, dv_str_from_c(bad_events[i]));
        fake_expect_log(fake, "lost ");
        fake_reply(fake, LIST("9", OBJECT("a", "ua", "3") "," OBJECT("b", "ub", "8")));
        fake_stream(fake, EVENT("ADDED", OBJECT("c", "uc", "10")));
        fake_advance(fake, 3000);
        fake_expect(fake, "GET /api/v1/configmaps?limit=2");
        fake_expect(fake, WATCHES("9"));
        fake_expect_log(fake, "~b@8 back +c@10 ");
        fake_view_close(fake);
        fake_disconnect(fake);
    }
}

static void a_bad_event_behind_good_ones_is_asked_for_again(void **state)
{
    struct fake *fake = *state;

    fake_begin(fake);
    fake_send(fake, DV_STR(EVENT("ADDED", OBJECT("c", "uc", "6")) "{\"type\":\"ADD\1D\"}\n" EVENT(
                        "ADDED", OBJECT("e", "ue", "8"))));
    fake_expect_log(fake, "+c@6 lost ");
    fake_stream(fake,
                EVENT("ADDED", OBJECT("d", "ud", "7")) EVENT("ADDED", OBJECT("e", "ue", "8")));
    fake_advance(fake, 3000);
    fake_expect(fake, WATCHES("6"));
    fake_expect_log(fake, "back +d@7 +e@8 ");
}

static void a_busy_server_is_asked_for_the_same_watch(void **state)
{
    struct fake *fake = *state;

    fake_begin(fake);
    fake_advance(fake, 11000);
    fake_reply(fake, SAME_LIST);
    fake_stream(fake, EVENT("ERROR", STATUS("429", "TooManyRequests", "slow")));
    fake_answer(fake, (struct answer){.status = 429, .body = "slow"});
    fake_answer(fake, (struct answer){.status = 503, .body = "down"});
    fake_reply(fake, SAME_LIST);
    fake_finish(fake);
    fake_advance(fake, 30000);
    fake_expect(fake, CHECKS);
    for (int i = 0; i < 3; i++)
        fake_expect(fake, WATCHES("5"));
    fake_expect(fake, CHECKS);
    fake_expect(fake, WATCHES("5"));
}

/* With 200. */
static const char *const bad_lists[] = {
    "",
    "<html>",
    "{}",
    "{\"kind\":\"ConfigMapList\",\"metadata\":{\"resourceVersion\":\"9\"}}",
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[]}",
    LIST("", ""),
    LIST("9", "{}"),
    LIST("9", "7"),
    LIST("9", OBJECT("a", "ua", "")),
    EXPIRED,
};

static const unsigned bad_statuses[] = {201, 302, 400, 401, 403, 404, 429, 500, 503};

static void check_bad_list(struct fake *fake, struct answer answer)
{
    fake_begin(fake);
    fake_answer(fake, answer);
    fake_reply(fake, LIST("9", OBJECT("a", "ua", "3")));
    fake_stream(fake, "");
    fake_send(fake, DV_STR(EVENT("ERROR", EXPIRED)));
    fake_expect(fake, "GET /api/v1/configmaps?limit=2");
    fake_expect_log(fake, "lost ");
    fake_advance(fake, 3000);
    fake_expect_log(fake, "back -b ");
    fake_expect(fake, "GET /api/v1/configmaps?limit=2");
    fake_expect(fake, WATCHES("9"));
    fake_view_close(fake);
    fake_disconnect(fake);
}

static void a_bad_list_changes_nothing(void **state)
{
    for (size_t i = 0; i < DV_COUNT(bad_lists); i++)
        check_bad_list(*state, (struct answer){.status = 200, .body = bad_lists[i]});
    for (size_t i = 0; i < DV_COUNT(bad_statuses); i++)
        check_bad_list(*state, (struct answer){.status = bad_statuses[i], .body = LIST("9", "")});
}

static void an_event_that_is_too_large_leads_to_a_list(void **state)
{
    struct fake *fake = *state;
    char *blanks = malloc(9u << 20);

    assert_non_null(blanks);
    memset(blanks, ' ', 9u << 20);
    fake_begin(fake);
    fake_send(fake, DV_STR("{\"type\":"));
    fake_send(fake, (dv_str){blanks, 9u << 20});
    fake_expect_log(fake, "lost ");
    fake_reply(fake, LIST("9", OBJECT("a", "ua", "3")));
    fake_stream(fake, "");
    fake_advance(fake, 3000);
    fake_expect(fake, "GET /api/v1/configmaps?limit=2");
    fake_expect_log(fake, "back -b ");
    free(blanks);
}

static void a_page_that_is_too_large_is_asked_for_in_parts(void **state)
{
    struct fake *fake = *state;
    char *blanks = calloc(1, (65u << 20) + 1);

    assert_non_null(blanks);
    memset(blanks, ' ', 65u << 20);
    fake_connect(fake);
    fake_reply(fake, blanks);
    fake_reply(fake, LIST("9", ""));
    fake_view(fake);
    fake_expect(fake, "GET /api/v1/configmaps?limit=2");
    fake_expect_log(fake, "lost ");
    fake_advance(fake, 3000);
    fake_expect(fake, "GET /api/v1/configmaps?limit=1");
    fake_expect_log(fake, "back synced ");
    free(blanks);
}

static void events_may_come_byte_by_byte(void **state)
{
    static const char text[] = "\n \r\n" EVENT("ADDED", OBJECT("c", "uc", "6")) "\n" EVENT(
        "DELETED", OBJECT("a", "ua", "7"));
    struct fake *fake = *state;

    fake_begin(fake);
    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        fake_send(fake, (dv_str){&text[i], 1});
        fake_settle(fake);
    }
    fake_expect_log(fake, "+c@6 -a ");
}

/* ---- patience ---- */

/* Requests in ten minutes, whatever the server answers at once. */
static void check_calm(struct fake *fake, struct answer otherwise)
{
    int n;

    fake_begin(fake);
    fake->otherwise = otherwise;
    fake_cut(fake);
    n = fake->n_asked;
    fake_advance(fake, 600000);
    n = fake->n_asked - n;
    if (n < 10 || n > 60)
        fail_msg("%d requests in ten minutes of %u \"%s\"", n, otherwise.status, otherwise.body);
    fake->otherwise = (struct answer){0};
    fake_view_close(fake);
    fake_disconnect(fake);
    dv_buf_clear(&fake->asked);
    dv_buf_clear(&fake->log);
}

static void does_not_hammer_a_server(void **state)
{
    static const unsigned statuses[] = {200, 404, 410, 429, 500}; /* with 200: ends at once */
    static const char *const bodies[] = {EVENT("ERROR", EXPIRED), LIST("5", "")};

    for (size_t i = 0; i < DV_COUNT(statuses); i++)
        check_calm(*state, (struct answer){.status = statuses[i], .body = ""});
    for (size_t i = 0; i < DV_COUNT(bodies); i++)
        check_calm(*state, (struct answer){.status = 200, .body = bodies[i]});
    check_calm(*state, (struct answer){429, "slow", "Retry-After", "0", false});
}

static void comes_when_the_server_said(void **state)
{
    struct fake *fake = *state;

    fake_connect(fake);
    fake_answer(fake, (struct answer){429, STATUS("429", "TooManyRequests", "slow"), "Retry-After",
                                      "20", false});
    fake_view(fake);
    fake_expect(fake, "GET /api/v1/configmaps?limit=2");
    fake_expect_log(fake, "lost ");
    fake_advance(fake, 19000);
    assert_int_equal(fake->n_asked, 1);
    fake_reply(fake, LIST("9", ""));
    fake_advance(fake, 2000);
    fake_expect(fake, "GET /api/v1/configmaps?limit=2");
    fake_expect_log(fake, "back synced ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_start, fake_end)
        TEST(a_bad_event_leads_to_a_list_and_changes_nothing),
        TEST(a_bad_event_behind_good_ones_is_asked_for_again),
        TEST(a_busy_server_is_asked_for_the_same_watch),
        TEST(a_bad_list_changes_nothing),
        TEST(an_event_that_is_too_large_leads_to_a_list),
        TEST(a_page_that_is_too_large_is_asked_for_in_parts),
        TEST(events_may_come_byte_by_byte),
        TEST(does_not_hammer_a_server),
        TEST(comes_when_the_server_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
