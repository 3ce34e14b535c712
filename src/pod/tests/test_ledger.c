#include "support/dvtest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "pod/ledger/ledger.h"
#include "pod/ledger/pod_identity.h"
#include "support/growth.h"

/* "PCI 0000:3b:00.0" and the like, in short: "pci:…", "uuid:…", "node:…", "path:…". */
static struct dv_identities set_of(const char *text, struct dv_arena *arena)
{
    static const struct {
        dv_str prefix;
        enum dv_identity_kind kind;
    } kinds[] = {
        {DV_STR_INIT("pci:"),  DV_IDENTITY_PCI },
        {DV_STR_INIT("uuid:"), DV_IDENTITY_UUID},
        {DV_STR_INIT("node:"), DV_IDENTITY_NODE},
        {DV_STR_INIT("path:"), DV_IDENTITY_PATH},
    };
    dv_str rest = dv_str_from_c(text);
    struct dv_identities set = {0};
    dv_str word;

    while (rest.n > 0 && dv_str_split(&rest, ' ', &word)) {
        for (size_t i = 0; i < DV_COUNT(kinds); i++) {
            if (dv_str_starts_with(word, kinds[i].prefix))
                dv_identities_add(
                    &set,
                    (struct dv_identity){kinds[i].kind,
                                         dv_str_slice(word, kinds[i].prefix.n, SIZE_MAX)},
                    arena);
        }
    }
    return set;
}

/* "x r:v.com/gpu gpu0 gpu1": pod ns/x through a resource; "x d:driver pool/dev": through a driver,
 * by claim "c". */
static struct dv_ledger_holder holder_of(const char *text, struct dv_arena *arena)
{
    struct dv_ledger_holder holder = {.namespace = DV_STR("ns")};
    dv_str rest = dv_str_from_c(text);
    dv_str *devices = DV_NEW_ARRAY(arena, dv_str, 100);
    dv_str giver = DV_STR_NONE;

    (void)dv_str_split(&rest, ' ', &holder.name);
    holder.pod_uid = dv_str_printf(arena, "uid-%.*s", DV_FMT(holder.name));
    (void)dv_str_split(&rest, ' ', &giver);
    holder.giver = dv_str_slice(giver, 2, SIZE_MAX);
    holder.giver_kind = giver.p[0] == 'r' ? DV_LEDGER_PLUGIN : DV_LEDGER_DRIVER;
    if (holder.giver_kind == DV_LEDGER_DRIVER)
        holder.claim = DV_STR("c");
    else
        holder.container = DV_STR("main");
    while (rest.n > 0 && dv_str_split(&rest, ' ', &devices[holder.n_devices]))
        holder.n_devices++;
    holder.devices = devices;
    return holder;
}

static void hold(struct dv_ledger *ledger, const char *holder, const char *identities,
                 struct dv_arena *arena)
{
    struct dv_ledger_holder who = holder_of(holder, arena);
    struct dv_identities set = set_of(identities, arena);

    dv_ledger_hold(ledger, &who, set.v, set.n);
    assert_true(dv_ledger_learn(ledger, who.pod_uid, SIZE_MAX));
}

/* "" when it may have them. */
static const char *ask(const struct dv_ledger *ledger, const char *holder, const char *identities,
                       struct dv_arena *arena)
{
    struct dv_ledger_holder who = holder_of(holder, arena);
    struct dv_identities set = set_of(identities, arena);
    struct dv_ledger_conflict conflict;
    struct dv_err err;

    if (dv_ledger_check(ledger, &who, set.v, set.n, &conflict))
        return "";
    assert_false(dv_ledger_conflict_fail(&conflict, &who, &err));
    assert_int_equal(err.code, DV_FAILED_PRECONDITION);
    return dv_str_to_c(dv_str_from_c(err.msg), arena);
}

#define GPU "path:/dev/gpu0"
#define PLUGIN "x r:v.com/gpu gpu0"
#define DRIVER "y d:d.com p/g"

static void a_device_is_given_once(void **state)
{
    static const struct {
        const char *held_by;
        const char *held;
        const char *asked_by;
        const char *asked;
        bool is_free;
    } cases[] = {
        {PLUGIN, "pci:1",      DRIVER,                "pci:1",          false},
        {DRIVER, "uuid:u",     PLUGIN,                "path:/x uuid:u", false},
        {PLUGIN, GPU,          DRIVER,                GPU,              false},
        {PLUGIN, "pci:1",      DRIVER,                "pci:2",          true },
        {PLUGIN, "uuid:u",     DRIVER,                "path:u",         true },
        {PLUGIN, "",           DRIVER,                "",               true },
 /* itself, or its own business */
        {PLUGIN, "pci:1 " GPU, "x d:d.com p/g",       "pci:1 " GPU,     true },
        {PLUGIN, "uuid:u",     "y r:v.com/gpu gpu0",  "uuid:u",         true },
        {DRIVER, "uuid:u",     "z d:d.com p/g",       "uuid:u",         true },
 /* others of the same kind of giver */
        {DRIVER, "uuid:u",     "z d:e.com p/g",       "uuid:u",         false},
        {PLUGIN, "uuid:u",     "y r:v.com/half gpu0", "uuid:u",         false},
        {PLUGIN, GPU,          "y r:w.com/gpu gpu0",  GPU,              false},
        {PLUGIN, GPU,          "y r:v.com/half gpu0", GPU,              true }, /* one vendor */
        {PLUGIN, "uuid:u",     "y d:v.com/gpu p/g",   "uuid:u",         false}, /* only its name */
  /* what is at different PCI addresses is not one device */
        {PLUGIN, "pci:1 " GPU, DRIVER,                GPU " pci:2",     true },
        {PLUGIN, "pci:1 " GPU, DRIVER,                GPU,              false},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_ledger_freep) struct dv_ledger *ledger = dv_ledger_new();
        const char *got;

        hold(ledger, cases[i].held_by, cases[i].held, arena);
        got = ask(ledger, cases[i].asked_by, cases[i].asked, arena);
        if ((got[0] == '\0') != cases[i].is_free)
            fail_msg("%s asks for %s: %s", cases[i].asked_by, cases[i].asked, got);
    }
}

static void a_conflict_names_both(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_ledger_freep) struct dv_ledger *ledger = dv_ledger_new();

    (void)state;
    hold(ledger, "x r:v.com/gpu gpu0", GPU " pci:0000:3b:00.0", arena);
    assert_string_equal(
        ask(ledger, "y d:d.com p/g", GPU " pci:0000:3b:00.0", arena),
        "PCI address 0000:3b:00.0 is held by pod ns/x through resource v.com/gpu "
        "device gpu0; wanted by pod ns/y through driver d.com claim ns/c device p/g");
    hold(ledger, "z d:e.com p/h", "node:char", arena);
    assert_string_equal(
        ask(ledger, "y r:v.com/gpu 1 2 3 4 5 6", "node:char", arena),
        "device node char is held by pod ns/z through driver e.com claim ns/c device "
        "p/h; wanted by pod ns/y through resource v.com/gpu devices 1, 2, 3, 4 and 2 "
        "more");
}

/* ---- common nodes ---- */

static void what_is_given_for_different_devices_is_common(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_ledger_freep) struct dv_ledger *ledger = dv_ledger_new();

    (void)state;
    hold(ledger, "x r:v.com/gpu gpu0", GPU " path:/dev/ctl", arena);
    assert_string_not_equal(ask(ledger, "y d:d.com p/g", "path:/dev/ctl", arena), "");
    hold(ledger, "z r:v.com/gpu gpu1", "path:/dev/gpu1 path:/dev/ctl", arena);
    assert_string_equal(ask(ledger, "y d:d.com p/g", "path:/dev/ctl", arena), "");
    assert_string_not_equal(ask(ledger, "y d:d.com p/g", "path:/dev/ctl " GPU, arena), "");
    /* It stays known when they are gone. */
    dv_ledger_release(ledger, DV_STR("uid-x"));
    assert_string_equal(ask(ledger, "y d:d.com p/g", "path:/dev/ctl", arena), "");
}

/* Two of a pod's devices would make the node common; the pod goes without having had them. */
static void a_pod_that_gets_nothing_teaches_nothing(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_ledger_freep) struct dv_ledger *ledger = dv_ledger_new();
    struct dv_ledger_holder one = holder_of("x r:v.com/gpu gpu0", arena);
    struct dv_ledger_holder two = holder_of("x r:v.com/gpu gpu1", arena);
    struct dv_identities node = set_of("path:/dev/ctl", arena);

    (void)state;
    dv_ledger_hold(ledger, &one, node.v, node.n);
    dv_ledger_hold(ledger, &two, node.v, node.n);
    dv_ledger_release(ledger, one.pod_uid);
    hold(ledger, "z r:v.com/gpu gpu2", "path:/dev/ctl", arena);
    assert_string_not_equal(ask(ledger, "y d:d.com p/g", "path:/dev/ctl", arena), "");
    /* Once it has them, it teaches, a part at a time. */
    dv_ledger_hold(ledger, &one, node.v, node.n);
    dv_ledger_hold(ledger, &two, node.v, node.n);
    assert_false(dv_ledger_learn(ledger, one.pod_uid, 1));
    assert_true(dv_ledger_learn(ledger, one.pod_uid, 1));
    dv_ledger_release(ledger, one.pod_uid);
    assert_string_equal(ask(ledger, "y d:d.com p/g", "path:/dev/ctl", arena), "");
}

static void a_newcomer_can_be_the_second_device(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_ledger_freep) struct dv_ledger *ledger = dv_ledger_new();

    (void)state;
    hold(ledger, "x r:v.com/gpu gpu0", "path:/dev/gpu0 path:/dev/ctl", arena);
    dv_ledger_release(ledger, DV_STR("uid-x"));
    hold(ledger, "y d:d.com p/g", "path:/dev/ctl path:/dev/gpu9", arena);
    assert_string_not_equal(ask(ledger, "z r:v.com/gpu gpu0", "path:/dev/ctl", arena), "");
    assert_string_equal(ask(ledger, "z r:v.com/gpu gpu1", "path:/dev/ctl", arena), "");
    assert_string_not_equal(ask(ledger, "z r:v.com/gpu gpu1", "path:/dev/gpu9", arena), "");
}

static void answers_for_several_devices_are_taken_apart(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_ledger_freep) struct dv_ledger *ledger = dv_ledger_new();

    (void)state;
    hold(ledger, "a r:v.com/gpu 0 1", "path:/dev/0 path:/dev/1 path:/dev/ctl", arena);
    hold(ledger, "b r:v.com/gpu 1 2", "path:/dev/1 path:/dev/2 path:/dev/ctl", arena);
    hold(ledger, "c r:v.com/gpu 0 2", "path:/dev/0 path:/dev/2 path:/dev/ctl", arena);
    assert_string_equal(ask(ledger, "y d:d.com p/g", "path:/dev/ctl", arena), "");
    assert_string_not_equal(ask(ledger, "y d:d.com p/g", "path:/dev/0", arena), "");
    assert_string_not_equal(ask(ledger, "y d:d.com p/g", "path:/dev/1", arena), "");
    assert_string_not_equal(ask(ledger, "y d:d.com p/g", "path:/dev/2", arena), "");
}

static void shares_of_a_device_are_one_device(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_ledger_freep) struct dv_ledger *ledger = dv_ledger_new();

    (void)state;
    hold(ledger, "a r:v.com/gpu gpu0::0", GPU, arena);
    hold(ledger, "b r:v.com/gpu gpu0::1", GPU, arena);
    assert_string_not_equal(ask(ledger, "y d:d.com p/g", GPU, arena), "");
}

static void pci_addresses_and_uuids_are_never_common(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_ledger_freep) struct dv_ledger *ledger = dv_ledger_new();

    (void)state;
    hold(ledger, "a d:d.com p/part0", "pci:0000:3b:00.0", arena);
    hold(ledger, "b d:d.com p/part1", "pci:0000:3b:00.0", arena);
    assert_string_not_equal(ask(ledger, "y r:v.com/gpu gpu0", "pci:0000:3b:00.0", arena), "");
}

static void too_many_devices_teach_nothing(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_ledger_freep) struct dv_ledger *ledger = dv_ledger_new();
    struct dv_ledger_holder many = holder_of("x r:v.com/gpu", arena);
    struct dv_identities set = set_of(GPU, arena);
    dv_str devices[65];

    (void)state;
    for (size_t i = 0; i < DV_COUNT(devices); i++)
        devices[i] = dv_str_printf(arena, "other%zu", i);
    many.devices = devices;
    many.n_devices = DV_COUNT(devices);
    hold(ledger, "a r:v.com/gpu gpu0", GPU, arena);
    dv_ledger_hold(ledger, &many, set.v, set.n);
    assert_string_not_equal(ask(ledger, "y d:d.com p/g", GPU, arena), "");
}

/* ---- releasing ---- */

static bool holds(const struct dv_ledger *ledger, const char *pod_uid)
{
    const struct dv_ledger_holder *holder;
    const struct dv_identity *identities;
    size_t at = 0;
    size_t n;

    return dv_ledger_next(ledger, dv_str_from_c(pod_uid), &at, &holder, &identities, &n);
}

static void what_is_released_is_free(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_ledger_freep) struct dv_ledger *ledger = dv_ledger_new();

    (void)state;
    hold(ledger, "x r:v.com/gpu gpu0", "uuid:a", arena);
    hold(ledger, "x d:d.com p/g", "uuid:b", arena);
    hold(ledger, "x d:d.com p/h", "uuid:c", arena);
    hold(ledger, "z r:v.com/gpu gpu0", "uuid:a", arena);
    assert_true(holds(ledger, "uid-x") && holds(ledger, "uid-z"));

    dv_ledger_release(ledger, DV_STR("uid-x"));
    assert_string_equal(ask(ledger, "y d:e.com p/g", "uuid:b uuid:c", arena), "");
    assert_true(!holds(ledger, "uid-x") && holds(ledger, "uid-z"));
    assert_non_null(strstr(ask(ledger, "y d:e.com p/g", "uuid:a", arena), "pod ns/z"));
    dv_ledger_release(ledger, DV_STR("uid-z"));
    dv_ledger_release(ledger, DV_STR("uid-z"));
    assert_string_equal(ask(ledger, "y d:e.com p/g", "uuid:a", arena), "");
    assert_false(holds(ledger, "uid-z"));
}

static void holding_again_replaces(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_ledger_freep) struct dv_ledger *ledger = dv_ledger_new();
    const struct dv_ledger_holder *holder;
    const struct dv_identity *identities;
    size_t n;
    size_t at = 0;

    (void)state;
    hold(ledger, "x r:v.com/gpu gpu0", "uuid:a uuid:b", arena);
    hold(ledger, "x r:v.com/gpu gpu0", "uuid:b", arena);
    assert_string_equal(ask(ledger, "y d:d.com p/g", "uuid:a", arena), "");
    assert_string_not_equal(ask(ledger, "y d:d.com p/g", "uuid:b", arena), "");
    assert_true(dv_ledger_next(ledger, DV_STR("uid-x"), &at, &holder, &identities, &n));
    assert_str(holder->devices[0], "gpu0");
    assert_int_equal(n, 1);
    assert_str(identities[0].text, "b");
    /* Also from what the ledger itself tells. */
    dv_ledger_hold(ledger, holder, identities, n);
    at = 0;
    assert_true(dv_ledger_next(ledger, DV_STR("uid-x"), &at, &holder, &identities, &n));
    assert_false(dv_ledger_next(ledger, DV_STR("uid-x"), &at, &holder, &identities, &n));
    at = 0;
    assert_false(dv_ledger_next(ledger, DV_STR("nobody"), &at, &holder, &identities, &n));
}

static void many_pods_may_share_a_device(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_ledger_freep) struct dv_ledger *ledger = dv_ledger_new();
    char holder[64];

    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        (void)snprintf(holder, sizeof(holder), "pod%zu r:v.com/gpu gpu0::%zu", i, i);
        assert_string_equal(ask(ledger, holder, GPU " uuid:u", arena), "");
        hold(ledger, holder, GPU " uuid:u", arena);
    }
    assert_string_not_equal(ask(ledger, "y d:d.com p/g", GPU, arena), "");
    for (size_t i = 0; i < 1000; i++) {
        (void)snprintf(holder, sizeof(holder), "uid-pod%zu", i);
        dv_ledger_release(ledger, dv_str_from_c(holder));
    }
    assert_string_equal(ask(ledger, "y d:d.com p/g", GPU " uuid:u", arena), "");
}

/* n claims of a pod that all have one node, by two drivers: asked about, entered twice, released.
 */
static void enter_many(void *ctx, size_t n)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_ledger_freep) struct dv_ledger *ledger = dv_ledger_new();
    struct dv_identity node = {DV_IDENTITY_NODE, DV_STR("char 1:2")};

    (void)ctx;
    for (size_t i = 0; i < 4 * n; i++) {
        dv_str device = dv_str_printf(arena, "pool/dev%zu", i % n);
        struct dv_ledger_holder holder = {
            .pod_uid = DV_STR("uid-x"),
            .namespace = DV_STR("ns"),
            .name = DV_STR("x"),
            .giver_kind = DV_LEDGER_DRIVER,
            .giver = i / n % 2 == 0 ? DV_STR("d.com") : DV_STR("e.com"),
            .claim = dv_str_printf(arena, "c%zu", i % n),
            .devices = &device,
            .n_devices = 1,
        };
        struct dv_ledger_conflict conflict;

        assert_true(dv_ledger_check(ledger, &holder, &node, 1, &conflict));
        dv_ledger_hold(ledger, &holder, &node, 1);
    }
    dv_ledger_release(ledger, DV_STR("uid-x"));
    assert_string_equal(ask(ledger, "y d:d.com p/g", "node:1:2", arena), "");
}

static void a_pod_may_hold_very_many(void **state)
{
    (void)state;
    assert_true(growth_is_linear(enter_many, NULL, 2000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_is_given_once),
        cmocka_unit_test(a_conflict_names_both),
        cmocka_unit_test(what_is_given_for_different_devices_is_common),
        cmocka_unit_test(a_pod_that_gets_nothing_teaches_nothing),
        cmocka_unit_test(a_newcomer_can_be_the_second_device),
        cmocka_unit_test(answers_for_several_devices_are_taken_apart),
        cmocka_unit_test(shares_of_a_device_are_one_device),
        cmocka_unit_test(pci_addresses_and_uuids_are_never_common),
        cmocka_unit_test(too_many_devices_teach_nothing),
        cmocka_unit_test(what_is_released_is_free),
        cmocka_unit_test(holding_again_replaces),
        cmocka_unit_test(many_pods_may_share_a_device),
        cmocka_unit_test(a_pod_may_hold_very_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
