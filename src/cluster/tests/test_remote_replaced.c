/* Views over an API server whose database was replaced: wiped, or restored from a backup. */
#include "support/dvtest.h"

#include "cluster/cluster.h"
#include "cluster/tests/test_remote.h"

#define LISTS "GET /api/v1/configmaps?limit=2"

/* Another "a", no "b", and "c"; all of them older than what was seen. */
static const char wiped_list[] = LIST("2", OBJECT("a", "new", "1") "," OBJECT("c", "uc", "2"));

/* What the server says from here on: first to the check. */
static void script_wiped(struct fake *fake)
{
    fake_reply(fake, PAGE("2", "more", OBJECT("a", "new", "1")));
    fake_reply(fake, wiped_list);
    fake_stream(fake, EVENT("ADDED", OBJECT("d", "ud", "3")));
}

static void expect_anew(struct fake *fake, const char *log)
{
    fake_expect(fake, CHECKS);
    fake_expect(fake, LISTS);
    fake_expect(fake, WATCHES("2"));
    fake_expect_log(fake, log);
}

static void is_noticed_after_a_lost_connection(void **state)
{
    struct fake *fake = *state;

    fake_begin(fake);
    fake_cut(fake);
    fake_expect_log(fake, "lost ");
    script_wiped(fake);
    fake_advance(fake, 3000);
    expect_anew(fake, "-a +a@1 +c@2 back -b +d@3 ");
    assert_int_equal(dv_view_n(fake->view), 3);
}

static void is_noticed_when_the_server_comes_back_late(void **state)
{
    struct fake *fake = *state;

    fake_begin(fake);
    fake_cut(fake);
    fake_expect_log(fake, "lost ");
    fake_answer(fake, (struct answer){.status = 503, .body = "starting"});
    fake_answer(fake, (struct answer){.status = 429, .body = "starting"});
    script_wiped(fake);
    fake_advance(fake, 15000);
    fake_expect(fake, CHECKS);
    fake_expect(fake, CHECKS);
    fake_expect(fake, CHECKS);
    fake_expect(fake, LISTS);
    fake_expect(fake, WATCHES("2"));
    assert_int_equal(dv_view_n(fake->view), 3);
}

/* As a server does that lives on while its database goes. */
static void is_noticed_after_a_watch_that_ended_early(void **state)
{
    struct fake *fake = *state;

    fake_begin(fake);
    fake_advance(fake, 11000);
    script_wiped(fake);
    fake_finish(fake);
    expect_anew(fake, "-a +a@1 +c@2 -b +d@3 ");
}

static void is_noticed_on_a_watch_that_says_nothing(void **state)
{
    struct fake *fake = *state;

    fake_begin(fake);
    script_wiped(fake);
    fake_advance(fake, 151000);
    expect_anew(fake, "-a +a@1 +c@2 -b +d@3 ");
}

/* Its versions have grown past those that were seen: the objects are others all the same. */
static void is_noticed_by_uids(void **state)
{
    struct fake *fake = *state;

    fake_begin(fake);
    fake_advance(fake, 11000);
    fake_reply(fake, PAGE("90", "more", OBJECT("a", "new", "4")));
    fake_reply(fake, LIST("90", OBJECT("a", "new", "4") "," OBJECT("b", "newb", "82")));
    fake_stream(fake, "");
    fake_finish(fake);
    fake_expect(fake, CHECKS);
    fake_expect(fake, LISTS);
    fake_expect(fake, WATCHES("90"));
    fake_expect_log(fake, "-a +a@4 -b +b@82 ");
}

/* The first object is newer than what was seen, which may be: the watch tells. */
static void is_noticed_by_uids_on_the_watch(void **state)
{
    struct fake *fake = *state;

    fake_begin(fake);
    fake_advance(fake, 11000);
    fake_reply(fake, PAGE("90", "more", OBJECT("a", "new", "81")));
    fake_stream(fake, EVENT("ADDED", OBJECT("a", "new", "81")));
    fake_reply(fake, LIST("90", OBJECT("a", "new", "81") "," OBJECT("b", "newb", "4")));
    fake_stream(fake, "");
    fake_finish(fake);
    fake_expect(fake, CHECKS);
    fake_expect(fake, WATCHES("5"));
    fake_expect_log(fake, "lost ");
    fake_advance(fake, 3000);
    fake_expect(fake, LISTS);
    fake_expect_log(fake, "-a +a@81 -b +b@4 back ");
}

static void is_noticed_when_nothing_is_left(void **state)
{
    struct fake *fake = *state;
    int n;

    fake_begin(fake);
    n = fake->n_told;
    fake_advance(fake, 11000);
    fake_reply(fake, LIST("90", ""));
    fake_reply(fake, LIST("90", ""));
    fake_stream(fake, "");
    fake_finish(fake);
    fake_expect(fake, CHECKS);
    fake_expect(fake, LISTS);
    fake_expect(fake, WATCHES("90"));
    fake_wait(fake, &fake->n_told, n + 2);
    assert_int_equal(dv_view_n(fake->view), 0);
}

/* The same version of an object need not be the same text then. */
static void a_backup_is_told_whole(void **state)
{
    struct fake *fake = *state;

    fake->goes_back = true;
    fake_begin(fake);
    fake_advance(fake, 11000);
    fake_reply(fake, PAGE("4", "more", OBJECT("a", "ua", "3")));
    fake_reply(fake, LIST("4", OBJECT("a", "ua", "3") "," OBJECT("b", "ub", "2")));
    fake_stream(fake, EVENT("MODIFIED", OBJECT("a", "ua", "5")));
    fake_finish(fake);
    fake_expect(fake, CHECKS);
    fake_expect(fake, LISTS);
    fake_expect(fake, WATCHES("4"));
    fake_expect_log(fake, "~a@3 ~b@2 ~a@5 ");
}

static void a_version_that_is_too_large_leads_to_a_list(void **state)
{
    struct fake *fake = *state;

    fake_begin(fake);
    fake_advance(fake, 11000);
    fake_reply(fake, SAME_LIST);
    fake_answer(fake, (struct answer){.status = 504,
                                      .body = STATUS("504", "Timeout",
                                                     "Too large resource version: 5, current: 2")});
    fake_reply(fake, wiped_list);
    fake_stream(fake, "");
    fake_finish(fake);
    fake_expect(fake, CHECKS);
    fake_expect(fake, WATCHES("5"));
    fake_advance(fake, 3000);
    fake_expect(fake, LISTS);
    fake_expect(fake, WATCHES("2"));
    fake_expect_log(fake, "lost -a +a@1 +c@2 back -b ");
}

static void a_check_that_cannot_be_read_leads_to_a_list(void **state)
{
    struct fake *fake = *state;

    fake_begin(fake);
    fake_advance(fake, 11000);
    fake_reply(fake, "<html>");
    fake_reply(fake, wiped_list);
    fake_stream(fake, "");
    fake_finish(fake);
    fake_expect(fake, CHECKS);
    fake_expect_log(fake, "lost ");
    fake_advance(fake, 3000);
    fake_expect(fake, LISTS);
    fake_expect_log(fake, "-a +a@1 +c@2 back -b ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_start, fake_end)
        TEST(is_noticed_after_a_lost_connection),
        TEST(is_noticed_when_the_server_comes_back_late),
        TEST(is_noticed_after_a_watch_that_ended_early),
        TEST(is_noticed_on_a_watch_that_says_nothing),
        TEST(is_noticed_by_uids),
        TEST(is_noticed_by_uids_on_the_watch),
        TEST(is_noticed_when_nothing_is_left),
        TEST(a_backup_is_told_whole),
        TEST(a_version_that_is_too_large_leads_to_a_list),
        TEST(a_check_that_cannot_be_read_leads_to_a_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
