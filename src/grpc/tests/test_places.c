#include "support/dvtest.h"

#include <ctype.h>
#include <string.h>
#include <sys/types.h>

#include "base/list.h"
#include "grpc/grpc_places.h"
#include "loop/loop.h"

#define PLACES 16u /* a share is 4 */
#define ROOM (-1)
#define REFUSED (-2)

/* A letter is a process, a digit a user whose process is not known. */
static struct dv_peer peer_of(char name)
{
    if (isdigit((unsigned char)name))
        return (struct dv_peer){.pid = 0, .uid = (uid_t)name};
    return (struct dv_peer){.pid = tolower((unsigned char)name), .uid = 0};
}

static void a_newcomer_gets_its_place_from_who_has_most(void **state)
{
    static const struct {
        const char *name;
        const char *have; /* the oldest first; upper case: with a call. After it:
                           * '.' it is silent, '+' it has had a call */
        char newcomer;
        int displaced; /* which of `have`, or ROOM, or REFUSED */
        const char *text;
    } rows[] = {
        {"the first",                         "",                   'a', ROOM,    ""                   },
        {"below the share",                   "aaa",                'a', ROOM,    ""                   },
        {"at the share, its own goes",        "baaaa",              'a', 1,       ""                   },
        {"the oldest idle of its own",        "bAAaa",              'a', 3,       ""                   },
        {"calls count in the share",          "bAAAA",              'a', REFUSED, "has calls on 4"     },
        {"others are not touched by that",    "AAAAb",              'b', ROOM,    ""                   },
        {"its silent one goes first",         "aaa.a",              'a', 2,       ""                   },
        {"the oldest of its silent ones",     "Aa.a.a",             'a', 1,       ""                   },
        {"one that was used goes last",       "a+aaa",              'a', 1,       ""                   },
        {"unless the others have calls",      "a+AAA",              'a', 0,       ""                   },
        {"all were used",                     "a+a+a+a+",           'a', 0,       ""                   },
        {"a silent one before unused ones",   "a+aa.a",             'a', 2,       ""                   },
        {"full: used or not, of strangers",   "a+bcdefghijklmnop",  'z', 0,       ""                   },
        {"full: who has most loses",          "baaaaccceeeddfff",   'g', 1,       ""                   },
        {"full: calls are not displaced",     "bAAAAccceeeddfff",   'g', 5,       ""                   },
        {"full: one call, the rest is idle",  "bAaaaccceeeddfff",   'g', 2,       ""                   },
        {"full: silent ones of who has most", "baaaa.ccc.eeeddfff", 'g', 4,       ""                   },
        {"full: silent ones among equals",    "abcd.efghijklmnop",  'z', 3,       ""                   },
        {"full: else the oldest of equals",   "abcdefghijklmnop",   'z', 0,       ""                   },
        {"full: not of one who has as many",  "abcdefghijklmnop",   'p', 15,      ""                   },
        {"full: not of one who has less",     "aBBBBCCCCDDDDEEE",   'E', REFUSED, "16 are open already"},
        {"full: of one who has more",         "aaBBBBCCCCDDDDEE",   'f', 0,       ""                   },
        {"full of calls",                     "AAAABBBBCCCCDDDD",   'e', REFUSED, "none is idle"       },
        {"full of idle",                      "aaaabbbbccccdddd",   'e', 0,       ""                   },
        {"users where no process is known",   "1111",               '1', 0,       ""                   },
        {"each user for itself",              "1111",               '2', ROOM,    ""                   },
        {"a process is not its user",         "1111",               'a', ROOM,    ""                   },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_place have[PLACES] = {0};
        struct dv_place newcomer = {0};
        struct dv_place *displaced = NULL;
        struct dv_place *want = rows[i].displaced >= 0 ? &have[rows[i].displaced] : NULL;
        struct dv_places places;
        struct dv_peer peer;
        struct dv_err err;
        bool is_in;
        size_t n = 0;

        dv_places_init(&places, PLACES);
        for (const char *p = rows[i].have; *p; p++) {
            if (*p == '.') {
                have[n - 1].is_ready = false;
                continue;
            }
            if (*p == '+') {
                have[n - 1].is_used = true;
                continue;
            }
            peer = peer_of(*p);
            assert_ok(dv_places_take(&places, &have[n], &peer, 0, &displaced, &err), &err);
            assert_null(displaced);
            have[n].is_ready = true;
            have[n++].n_calls = isupper((unsigned char)*p) ? 1 : 0;
        }
        peer = peer_of(rows[i].newcomer);
        is_in = dv_places_take(&places, &newcomer, &peer, 2000, &displaced, &err);
        if (is_in != (rows[i].displaced != REFUSED) || displaced != want)
            fail_msg("%s: %s, displaced %td", rows[i].name, is_in ? "in" : err.msg,
                     displaced ? displaced - have : ROOM);
        if (!is_in)
            assert_err(&err, DV_RESOURCE_EXHAUSTED, rows[i].text);
        assert_int_equal(places.n, n + (rows[i].displaced == ROOM ? 1 : 0));
        dv_places_leave(&places, &newcomer);
        for (size_t k = 0; k < n; k++)
            dv_places_leave(&places, &have[k]); /* also the one that has left */
        assert_int_equal(places.n, 0);
        assert_true(dv_list_is_empty(&places.all));
        assert_true(dv_list_is_empty(&places.holders));
    }
}

static void who_has_just_come_is_not_late(void **state)
{
    static const struct {
        uint64_t now_ms;
        size_t displaced;
    } rows[] = {
        {1999, 0},
        {2000, 3},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_place have[4] = {0};
        struct dv_place newcomer = {0};
        struct dv_place *displaced;
        const struct dv_peer peer = peer_of('a');
        struct dv_places places;
        struct dv_err err;

        dv_places_init(&places, PLACES);
        for (size_t k = 0; k < DV_COUNT(have); k++) {
            assert_ok(dv_places_take(&places, &have[k], &peer, 0, &displaced, &err), &err);
            have[k].is_ready = k != 3;
        }
        assert_ok(dv_places_take(&places, &newcomer, &peer, rows[i].now_ms, &displaced, &err),
                  &err);
        assert_ptr_equal(displaced, &have[rows[i].displaced]);
        dv_places_leave(&places, &newcomer);
        for (size_t k = 0; k < DV_COUNT(have); k++)
            dv_places_leave(&places, &have[k]);
    }
}

static void a_flood_of_one_leaves_room_for_others(void **state)
{
    static struct dv_place flood[2000];
    struct dv_place others[3] = {0};
    struct dv_place *displaced;
    struct dv_peer peer = peer_of('a');
    struct dv_places places;
    struct dv_err err;

    (void)state;
    memset(flood, 0, sizeof(flood));
    dv_places_init(&places, 1024);
    for (size_t i = 0; i < DV_COUNT(flood); i++) {
        assert_ok(dv_places_take(&places, &flood[i], &peer, i, &displaced, &err), &err);
        assert_ptr_equal(displaced, i < 256 ? NULL : &flood[i - 256]);
    }
    for (size_t i = 0; i < DV_COUNT(others); i++) {
        peer = peer_of((char)('b' + i));
        assert_ok(dv_places_take(&places, &others[i], &peer, 3000, &displaced, &err), &err);
        assert_null(displaced);
    }
    assert_int_equal(places.n, 256 + DV_COUNT(others));
    for (size_t i = 0; i < DV_COUNT(flood); i++)
        dv_places_leave(&places, &flood[i]);
    for (size_t i = 0; i < DV_COUNT(others); i++)
        dv_places_leave(&places, &others[i]);
    assert_int_equal(places.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_newcomer_gets_its_place_from_who_has_most),
        cmocka_unit_test(who_has_just_come_is_not_late),
        cmocka_unit_test(a_flood_of_one_leaves_room_for_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
