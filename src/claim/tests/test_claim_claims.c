/* Records, drivers, answers and state files. Pure. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "claim/claim.h"
#include "pb/pb.h"
#include "resource/resource.h"
#include "support/dvtest.h"

#define GPU "gpu.example.com"
#define NIC "nic.example.com"

struct world {
    struct dv_arena *arena;
    struct dv_claim_state *state;
};

static int world_start(void **state)
{
    struct world *world = DV_ALLOC(struct world);

    world->arena = dv_arena_new();
    world->state = dv_claim_state_new(&(struct dv_claim_opts){.boot_id = DV_STR("boot")});
    *state = world;
    return 0;
}

static int world_end(void **state)
{
    struct world *world = *state;

    dv_claim_state_free(world->state);
    dv_arena_free(world->arena);
    free(world);
    return 0;
}

/* An object allocated from the drivers. */
static struct dv_api_resource_claim object_of(struct world *world, const char *name,
                                              const char *uid, const char *const *drivers, size_t n)
{
    struct dv_api_allocation_result *allocation =
        DV_NEW(world->arena, struct dv_api_allocation_result);
    struct dv_api_resource_claim object = {
        .metadata = {.namespace = DV_STR("ns"),
                     .name = dv_str_from_c(name),
                     .uid = dv_str_from_c(uid)},
        .status = {.allocation = allocation},
    };

    allocation->devices.results =
        DV_NEW_ARRAY(world->arena, struct dv_api_device_request_allocation_result, n);
    allocation->devices.n_results = n;
    for (size_t i = 0; i < n; i++)
        allocation->devices.results[i].driver = dv_str_from_c(drivers[i]);
    return object;
}

static struct dv_claim *attach(struct world *world, const char *pod, const char *name,
                               const char *const *drivers, size_t n)
{
    struct dv_api_resource_claim object = object_of(world, name, "uid", drivers, n);
    struct dv_claim *claim;
    struct dv_err err;

    assert_ok(dv_claim_attach(world->state, dv_str_from_c(pod), &object, &claim, &err), &err);
    return claim;
}

static const char *const gpu_twice[] = {NIC, GPU, GPU};

/* ---- records ---- */

static void makes_a_record_of_a_claim(void **state)
{
    struct world *world = *state;
    struct dv_claim *claim = attach(world, "p1", "c1", gpu_twice, 3);
    const struct dv_claim *empty = attach(world, "p1", "c2", NULL, 0);

    assert_int_equal(claim->record.n_drivers, 2);
    assert_str(claim->record.drivers[0].name, GPU);
    assert_null(claim->record.drivers[0].devices);
    assert_int_equal(empty->record.n_drivers, 0);
    assert_ptr_equal(attach(world, "p1", "c1", gpu_twice, 3), claim);
    assert_int_equal(claim->record.n_pods, 1);
    assert_true(dv_claim_is_attached(claim, DV_STR("p1")));
    assert_false(dv_claim_is_attached(claim, DV_STR("p2")));
    dv_claim_detach(world->state, claim, DV_STR("p2")); /* was not there */
    assert_true(dv_claim_pod_has_any(world->state, DV_STR("p1")));
    assert_false(dv_claim_pod_has_any(world->state, DV_STR("p2")));
}

/* The table of phases: what is not in it is refused. */
static void takes_each_event_in_its_phase_only(void **state)
{
    static const struct {
        const char
            *events;     /* s w p u d f b: saved, wanted, prepared, unwanted, done, failed, boot */
        const char *end; /* the phase, or "refused" for the last event */
    } cases[] = {
        {"",       "wanted"     },
        {"s",      "preparing"  },
        {"p",      "refused"    },
        {"f",      "refused"    },
        {"ss",     "preparing"  },
        {"sp",     "prepared"   },
        {"sf",     "preparing"  },
        {"spp",    "prepared"   },
        {"spb",    "preparing"  },
        {"sb",     "refused"    },
        {"u",      "unpreparing"},
        {"su",     "unpreparing"},
        {"spu",    "unpreparing"},
        {"spup",   "refused"    },
        {"spus",   "refused"    },
        {"spuf",   "unpreparing"},
        {"spuw",   "preparing"  },
        {"spd",    "refused"    },
        {"spud",   "gone"       },
        {"spufud", "gone"       },
    };
    static const char letters[] = "swpudfb";
    static const enum dv_claim_event events[] = {
        DV_CLAIM_ON_SAVED,      DV_CLAIM_ON_WANTED, DV_CLAIM_ON_PREPARED, DV_CLAIM_ON_UNWANTED,
        DV_CLAIM_ON_UNPREPARED, DV_CLAIM_ON_FAILED, DV_CLAIM_ON_STALE,
    };
    struct world *world = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_claim *claim = attach(world, "p1", cases[i].events, gpu_twice, 1);
        const char *end = "";
        struct dv_err err;

        for (const char *e = cases[i].events; *e; e++)
            end = dv_claim_handle(world->state, claim, events[strchr(letters, *e) - letters], &err)
                      ? ""
                      : "refused";
        claim = dv_claim_find(world->state, DV_STR("ns"), dv_str_from_c(cases[i].events));
        if (!*end)
            end = claim ? dv_claim_phase_name(claim->record.phase) : "gone";
        assert_string_equal(end, cases[i].end);
    }
}

static void refuses_what_is_in_the_way(void **state)
{
    struct world *world = *state;
    struct dv_claim *claim = attach(world, "p1", "c1", gpu_twice, 1);
    struct dv_api_resource_claim other = object_of(world, "c1", "other", gpu_twice, 1);
    struct dv_api_resource_claim same = object_of(world, "c1", "uid", gpu_twice, 1);
    struct dv_claim *got;
    struct dv_err err;

    assert_false(dv_claim_attach(world->state, DV_STR("p2"), &other, &got, &err));
    assert_err(&err, DV_FAILED_PRECONDITION,
               "old ResourceClaim with same name c1 and different UID uid still exists (previous "
               "pod force-deleted?!)");
    assert_ok(dv_claim_handle(world->state, claim, DV_CLAIM_ON_UNWANTED, &err), &err);
    dv_claim_begin_hold(claim);
    assert_false(dv_claim_attach(world->state, DV_STR("p2"), &same, &got, &err));
    assert_err(&err, DV_ABORTED, "ResourceClaim c1 is being unprepared");
    dv_claim_end_hold(claim); /* it has failed */
    assert_ok(dv_claim_attach(world->state, DV_STR("p2"), &same, &got, &err), &err);
    assert_int_equal(got->record.phase, DV_CLAIM_PREPARING);
}

static void counts_what_is_in_use(void **state)
{
    struct world *world = *state;
    struct dv_claim *claim = attach(world, "p1", "c1", gpu_twice, 3);
    struct dv_err err;
    size_t *counts;
    dv_str *names;

    assert_int_equal(dv_claim_n_prepared(world->state), 0);
    assert_int_equal(dv_claim_drivers_in_use(world->state, world->arena, &names, &counts), 0);
    assert_ok(dv_claim_handle(world->state, claim, DV_CLAIM_ON_SAVED, &err), &err);
    assert_ok(dv_claim_handle(world->state, claim, DV_CLAIM_ON_PREPARED, &err), &err);
    assert_int_equal(dv_claim_n_prepared(world->state), 1);
    assert_int_equal(dv_claim_drivers_in_use(world->state, world->arena, &names, &counts), 2);
    assert_str(names[0], GPU);
    assert_int_equal(counts[0], 1);
    assert_str(names[1], NIC);
    assert_int_equal(counts[1], 1);
}

/* ---- drivers ---- */

static void chooses_a_service_in_the_drivers_order(void **state)
{
    static const struct {
        dv_str versions[3];
        size_t n;
        bool is_strict;
        const char *wanted; /* or the error */
    } cases[] = {
        {{{0}},
         0,                                                                     false,
         "invalid supported gRPC versions of DRA driver plugin d at endpoint e: empty list of "
         "supported gRPC services (aka supported versions)"                                                  },
        {{DV_STR_INIT("v1beta1.DRAPlugin")},                                 1, true,  "v1beta1.DRAPlugin"   },
        {{DV_STR_INIT("x"), DV_STR_INIT("v1beta1.DRAPlugin")},               2, true,  "v1beta1.DRAPlugin"   },
        {{DV_STR_INIT("v1beta1.DRAPlugin"), DV_STR_INIT("v1.DRAPlugin")},
         2,                                                                     true,
         "v1beta1.DRAPlugin"                                                                                 },
        {{DV_STR_INIT("v1alpha3.NodeService"), DV_STR_INIT("v1.DRAPlugin")},
         2,                                                                     false,
         "v1.DRAPlugin"                                                                                      },
        {{DV_STR_INIT("1.0.0")},
         1,                                                                     true,
         "invalid supported gRPC versions of DRA driver plugin d at endpoint e: none of services "
         "supported by the plugin ([\"1.0.0\"]) are supported by the kubelet ([\"v1.DRAPlugin\" "
         "\"v1beta1.DRAPlugin\"])"                                                                           },
        {{DV_STR_INIT("1.0.0")},                                             1, false, "v1alpha3.NodeService"},
        {{DV_STR_INIT("v1alpha3.NodeService")},                              1, false, "v1alpha3.NodeService"},
        {{DV_STR_INIT("2.0.0")},
         1,                                                                     false,
         "invalid supported gRPC versions of DRA driver plugin d at endpoint e: none of services "
         "supported by the plugin ([\"2.0.0\"]) are supported by the kubelet ([\"v1.DRAPlugin\" "
         "\"v1beta1.DRAPlugin\"])"                                                                           },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        enum dv_dra_service service;
        struct dv_buf text;
        struct dv_err err;

        dv_buf_init(&text, SIZE_MAX);
        if (dv_dra_choose_service(DV_STR("d"), DV_STR("e"), cases[i].versions, cases[i].n,
                                  cases[i].is_strict, &service, &text, &err))
            assert_string_equal(dv_dra_service_name(service), cases[i].wanted);
        else
            assert_string_equal(dv_buf_c(&text), cases[i].wanted);
        dv_buf_fini(&text);
    }
}

static void hands_out_the_newest_instance_that_is_connected(void **state)
{
    struct dv_dra_drivers *drivers = dv_dra_drivers_new();
    struct dv_dra_instance old = {.driver = DV_STR("d"), .endpoint = DV_STR("old")};
    struct dv_dra_instance new = {.driver = DV_STR("d"), .endpoint = DV_STR("new")};
    struct dv_dra_instance again = {.driver = DV_STR("d"), .endpoint = DV_STR("new")};
    struct dv_err err;

    (void)state;
    assert_null(dv_dra_choose(drivers, DV_STR(""), &err));
    assert_err(&err, DV_NOT_FOUND, "DRA driver name is empty");
    assert_null(dv_dra_choose(drivers, DV_STR("d"), &err));
    assert_err(&err, DV_NOT_FOUND, "DRA driver d is not registered");
    assert_int_equal(dv_dra_evaluate(drivers, DV_STR("d"), false), DV_DRA_WIPE_PLAN);
    assert_ok(dv_dra_add(drivers, &old, &err), &err);
    assert_ptr_equal(dv_dra_choose(drivers, DV_STR("d"), &err), &old);
    assert_ok(dv_dra_add(drivers, &new, &err), &err);
    assert_false(dv_dra_add(drivers, &again, &err));
    assert_err(&err, DV_ALREADY_EXISTS, "endpoint new already registered for DRA driver plugin d");
    assert_ptr_equal(dv_dra_choose(drivers, DV_STR("d"), &err), &new);
    old.is_connected = true;
    assert_ptr_equal(dv_dra_choose(drivers, DV_STR("d"), &err), &old);
    assert_int_equal(dv_dra_evaluate(drivers, DV_STR("d"), true), DV_DRA_WIPE_CANCEL);
    new.is_connected = true;
    assert_ptr_equal(dv_dra_choose(drivers, DV_STR("d"), &err), &new);
    dv_dra_remove(drivers, &old);
    assert_null(dv_dra_find(drivers, DV_STR("d"), DV_STR("old")));
    assert_int_equal(dv_dra_evaluate(drivers, DV_STR("d"), false), DV_DRA_WIPE_KEEP);
    dv_dra_remove(drivers, &new);
    dv_dra_remove(drivers, &new); /* is harmless */
    assert_null(dv_dra_choose(drivers, DV_STR("d"), &err));
    assert_int_equal(dv_dra_evaluate(drivers, DV_STR("d"), true), DV_DRA_WIPE_KEEP);
    dv_dra_drivers_free(drivers);
}

/* ---- answers ---- */

/* A map's key that comes twice counts once, as it was told last. */
static void takes_the_last_of_two_answers_for_a_claim(void **state)
{
    struct world *world = *state;
    struct dv_claim_answer *answers;
    struct dv_buf buf;
    struct dv_err err;
    size_t n;

    dv_buf_init(&buf, SIZE_MAX);
    for (int i = 0; i < 2; i++) {
        size_t entry = dv_pb_begin(&buf, 1);
        size_t value;

        dv_pb_add_bytes(&buf, 1, DV_STR("u1"));
        value = dv_pb_begin(&buf, 2);
        dv_pb_add_bytes(&buf, 2, i == 0 ? DV_STR("bad") : DV_STR(""));
        dv_pb_end(&buf, value);
        dv_pb_end(&buf, entry);
    }
    assert_ok(dv_claim_response_decode(DV_DRA_V1, true, DV_STR(""), dv_buf_str(&buf), world->arena,
                                       &answers, &n, &err),
              &err);
    assert_int_equal(n, 1);
    assert_str(answers[0].error, "");
    dv_buf_fini(&buf);
}

/* ---- files ---- */

static void reads_and_writes_the_kubelets_file(void **state)
{
#define FILE_WITH(data, sum) "{\"Data\":\"" data "\",\"Checksum\":" sum "}"
#define HEAD                                                                                       \
    "{\\\"kind\\\":\\\"DRACheckpoint\\\",\\\"apiVersion\\\":\\\"checkpoint.dra.kubelet.k8s.io/"    \
    "v1\\\","
#define EXAMPLE(share)                                                                             \
    HEAD "\\\"ClaimInfoStateList\\\":[{\\\"ClaimUID\\\":\\\"067798be-454e-4be4-9047-"              \
         "1aa06aea63f7\\\",\\\"ClaimName\\\":\\\"example\\\",\\\"Namespace\\\":\\\"default\\\","   \
         "\\\"PodUIDs\\\":{\\\"139cdb46-f989-4f17-9561-ca10cfb509a6\\\":{}},\\\"DriverState\\\":{" \
         "\\\"test-driver.cdi.k8s.io\\\":{\\\"Devices\\\":[{\\\"PoolName\\\":\\\"worker-1\\\","    \
         "\\\"DeviceName\\\":\\\"dev-1\\\",\\\"ShareID\\\":" share                                 \
         ",\\\"RequestNames\\\":[\\\"test "                                                        \
         "request\\\"],\\\"CDIDeviceIDs\\\":[\\\"example.com/example=cdi-example\\\"]}]}}}]}"
    static const struct {
        const char *file;
        enum dv_claim_verdict verdict;
        size_t n_records;
    } cases[] = {
        {FILE_WITH(HEAD "\\\"ClaimInfoStateList\\\":null}", "4010664294"), DV_CLAIM_FILE_OK,                                  0},
        {FILE_WITH(HEAD "\\\"ClaimInfoStateList\\\":[]}",                                                 "2361995144"),                DV_CLAIM_FILE_OK,    0},
        {FILE_WITH(EXAMPLE("null"),                                                "2570581864"),                                                             DV_CLAIM_FILE_OK,                                                                                   1},
        {FILE_WITH(EXAMPLE("\\\"aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa\\\""),                                 "736302156"),
         DV_CLAIM_FILE_OK,1},
        {FILE_WITH(EXAMPLE("null"),     "2570581863"),                                                 DV_CLAIM_FILE_CORRUPT,                                                                                                                                                  0},
        {"{",                         DV_CLAIM_FILE_JSON_SYNTAX,                     0},
    };
#undef FILE_WITH
#undef HEAD
#undef EXAMPLE
    struct world *world = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str file = dv_str_from_c(cases[i].file);
        struct dv_claim_checkpoint checkpoint;
        struct dv_buf buf;
        struct dv_err err;

        assert_int_equal(dv_claim_checkpoint_decode(file, world->arena, &checkpoint, &err),
                         cases[i].verdict);
        if (cases[i].verdict == DV_CLAIM_FILE_CORRUPT)
            assert_string_equal(err.msg, "checkpoint is corrupted");
        if (cases[i].verdict != DV_CLAIM_FILE_OK)
            continue;
        assert_int_equal(checkpoint.n_records, cases[i].n_records);
        dv_buf_init(&buf, SIZE_MAX);
        dv_claim_checkpoint_encode(&checkpoint, &buf);
        assert_str(dv_buf_str(&buf), cases[i].file);
        dv_buf_fini(&buf);
    }
}

/* A row that cannot be is told from one of a later version. */
static void tells_damaged_rows_from_later_ones(void **state)
{
    static const struct {
        dv_str key;
        dv_str value;
        enum dv_code code;
    } cases[] = {
        {DV_STR_INIT(""),                      DV_STR_INIT("\1"),         DV_DATA_LOSS    },
        {DV_STR_INIT("x"),                     DV_STR_INIT("\1"),         DV_DATA_LOSS    },
        {DV_STR_INIT("cns\0\1"),               DV_STR_INIT("\1"),         DV_DATA_LOSS    },
        {DV_STR_INIT("cns\0\1c\0\1x"),         DV_STR_INIT("\1"),         DV_DATA_LOSS    },
        {DV_STR_INIT("cns\0\1c\0\1"),          DV_STR_INIT(""),           DV_DATA_LOSS    },
        {DV_STR_INIT("cns\0\1c\0\1"),          DV_STR_INIT("\2"),         DV_UNIMPLEMENTED},
        {DV_STR_INIT("cns\0\1c\0\1"),          DV_STR_INIT("\1\x10\x09"), DV_DATA_LOSS    },
        {DV_STR_INIT("cns\0\1c\0\1"),          DV_STR_INIT("\1\x0a\xff"), DV_DATA_LOSS    },
        {DV_STR_INIT("hdriver\0\1pool/d\0\1"), DV_STR_INIT("\1\x0a\xff"), DV_DATA_LOSS    },
    };
    struct world *world = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err;

        assert_false(dv_claim_load(world->state, cases[i].key, cases[i].value, &err));
        assert_int_equal(err.code, cases[i].code);
    }
    assert_int_equal(dv_claim_count(world->state), 0);
}

#define OLD(handles)                                                                               \
    "{\"version\":\"v1\",\"entries\":[{\"DriverName\":\"test-driver.cdi.k8s.io\",\"ClassName\":"   \
    "\"class-name\",\"ClaimUID\":\"067798be-454e-4be4-9047-1aa06aea63f7\",\"ClaimName\":"          \
    "\"example\",\"Namespace\":\"default\",\"PodUIDs\":{\"139cdb46-f989-4f17-9561-ca10cfb509a6\":" \
    "{}}," handles                                                                                 \
    "\"CDIDevices\":{\"test-driver.cdi.k8s.io\":[\"example.com/example=cdi-example\"]}}],"         \
    "\"checksum\":"
#define HANDLE                                                                                     \
    "\"ResourceHandles\":[{\"driverName\":\"test-driver.cdi.k8s.io\",\"data\":"                    \
    "\"{\\\"a\\\": \\\"b\\\"}\"}],"

/* The checksums of the first two are published. */
static void state_files_of_older_releases_are_read(void **state)
{
    static const struct {
        const char *file;
        const char *form;  /* NULL: none */
        enum dv_code code; /* DV_OK: it is read */
    } cases[] = {
        {OLD("") "153446146}",                                 "Kubernetes 1.27",         DV_OK              },
        {OLD(HANDLE) "113577689}",                             "Kubernetes 1.28 to 1.30", DV_OK              },
        {OLD("") "153446147}",                                 "Kubernetes 1.27",         DV_DATA_LOSS       },
        {OLD(HANDLE) "153446146}",                             "Kubernetes 1.28 to 1.30", DV_DATA_LOSS       },
        {"{\"version\":\"v2\",\"entries\":[],\"checksum\":1}", "Kubernetes 1.27",         DV_UNIMPLEMENTED   },
        {"{\"version\":\"v1\",\"entries\":{},\"checksum\":1}", "Kubernetes 1.27",
         DV_INVALID_ARGUMENT                                                                                 },
        {"{\"version\":\"v1\",\"entries\":[]}",                "Kubernetes 1.27",         DV_INVALID_ARGUMENT},
        {"{\"Data\":\"\",\"Checksum\":1}",                     NULL,                      DV_INVALID_ARGUMENT},
        {"[]",                                                 NULL,                      DV_INVALID_ARGUMENT},
        {"x",                                                  NULL,                      DV_INVALID_ARGUMENT},
    };
    struct world *world = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_claim_checkpoint checkpoint;
        struct dv_claim_old_form form;
        struct dv_err err = {0};
        const struct dv_claim_record *record;
        bool is_read = dv_claim_checkpoint_decode_old(dv_str_from_c(cases[i].file), world->arena,
                                                      &checkpoint, &form, &err);

        if (is_read != (cases[i].code == DV_OK) || (!is_read && err.code != cases[i].code))
            fail_msg("case %zu: %s", i, err.msg);
        assert_true(cases[i].form ? form.name && strcmp(form.name, cases[i].form) == 0
                                  : !form.name);
        if (!is_read)
            continue;
        assert_false(form.is_unchecked);
        assert_int_equal(checkpoint.n_records, 1);
        record = &checkpoint.records[0];
        assert_str(record->namespace, "default");
        assert_str(record->name, "example");
        assert_str(record->uid, "067798be-454e-4be4-9047-1aa06aea63f7");
        assert_int_equal(record->n_pods, 1);
        assert_str(record->pods[0], "139cdb46-f989-4f17-9561-ca10cfb509a6");
        assert_int_equal(record->n_drivers, 1);
        assert_str(record->drivers[0].name, "test-driver.cdi.k8s.io");
        assert_int_equal(record->drivers[0].n_devices, 1);
        assert_str(record->drivers[0].devices[0].cdi_ids[0], "example.com/example=cdi-example");
        /* field 4 of a request, with its length */
        assert_str(record->drivers[0].handle, i == 1 ? "\x22\x0a{\"a\": \"b\"}" : "");
    }
}

int main(void)
{
#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_start, world_end)
    const struct CMUnitTest tests[] = {
        IN_WORLD(makes_a_record_of_a_claim),
        IN_WORLD(takes_each_event_in_its_phase_only),
        IN_WORLD(refuses_what_is_in_the_way),
        IN_WORLD(counts_what_is_in_use),
        IN_WORLD(chooses_a_service_in_the_drivers_order),
        IN_WORLD(hands_out_the_newest_instance_that_is_connected),
        IN_WORLD(takes_the_last_of_two_answers_for_a_claim),
        IN_WORLD(reads_and_writes_the_kubelets_file),
        IN_WORLD(tells_damaged_rows_from_later_ones),
        IN_WORLD(state_files_of_older_releases_are_read),
    };
#undef IN_WORLD

    return cmocka_run_group_tests(tests, NULL, NULL);
}
