/* Devices that drivers of 1.30 offer: what becomes of them, and how drivers are asked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "claim/claim.h"
#include "claim/tests/test_claim_host.h"
#include "grpc/grpc.h"
#include "number/number.h"
#include "pb/pb.h"
#include "resource/resource.h"
#include "support/dvtest.h"

/* ---- messages ---- */

enum type {
    BOOL = 2,
    STRING = 5,
    QUANTITY = 6,
    INT = 7,
    INTS = 8,
    STRINGS = 9,
    VERSION = 10,
    BOTH = 100, /* a string and a version */
    NONE = 101,
};

static void add_value(struct dv_buf *buf, enum type type, const char *value)
{
    size_t mark = dv_pb_begin(buf, 2);
    size_t inner;

    switch (type) {
    case BOOL:
    case INT:
        dv_pb_add_number(buf, (uint32_t)type, (uint64_t)strtoll(value, NULL, 10));
        break;
    case STRING:
    case VERSION:
        dv_pb_add_bytes(buf, (uint32_t)type, dv_str_from_c(value));
        break;
    case QUANTITY:
    case INTS:
    case STRINGS:
        inner = dv_pb_begin(buf, (uint32_t)type);
        if (type == INTS)
            dv_pb_add_number(buf, 1, 7);
        else
            dv_pb_add_bytes(buf, 1, dv_str_from_c(value));
        dv_pb_end(buf, inner);
        break;
    case BOTH:
        dv_pb_add_bytes(buf, STRING, dv_str_from_c(value));
        dv_pb_add_bytes(buf, VERSION, dv_str_from_c(value));
        break;
    case NONE:
        break;
    }
    dv_pb_end(buf, mark);
}

struct one {
    const char *name;
    enum type type;
    const char *value;
};

/* Adds a model with one instance. */
static void add_instance(struct dv_buf *buf, const char *name, const struct one *all, size_t n)
{
    size_t model = dv_pb_begin(buf, 1);
    size_t named = dv_pb_begin(buf, 1);
    size_t instance = dv_pb_begin(buf, 1);

    dv_pb_add_bytes(buf, 1, dv_str_from_c(name));
    for (size_t i = 0; i < n; i++) {
        size_t attribute = dv_pb_begin(buf, 2);

        dv_pb_add_bytes(buf, 1, dv_str_from_c(all[i].name));
        add_value(buf, all[i].type, all[i].value);
        dv_pb_end(buf, attribute);
    }
    dv_pb_end(buf, instance);
    dv_pb_end(buf, named);
    dv_pb_end(buf, model);
}

/* "gpu-0 cores=7 memory:80Gi; gpu-1; | what was left out | ..." */
static const char *print(const struct dv_claim_offer *offer, struct dv_arena *arena)
{
    struct dv_buf buf;
    const char *text;

    dv_buf_init(&buf, 1u << 20);
    for (size_t i = 0; i < offer->n_devices; i++) {
        const struct dv_api_device *device = &offer->devices[i];

        dv_buf_add(&buf, device->name);
        for (size_t k = 0; k < device->n_attributes; k++) {
            const struct dv_api_device_attribute *value = &device->attributes[k].value;

            dv_buf_printf(&buf, " %.*s=", DV_FMT(device->attributes[k].key));
            if (value->int_)
                dv_buf_printf(&buf, "%lld", (long long)*value->int_);
            else if (value->bool_)
                dv_buf_add_c(&buf, *value->bool_ ? "true" : "false");
            else
                dv_buf_printf(&buf, "%s%.*s", value->version.p ? "v" : "",
                              DV_FMT(value->version.p ? value->version : value->string));
        }
        for (size_t k = 0; k < device->n_capacity; k++) {
            dv_buf_printf(&buf, " %.*s:", DV_FMT(device->capacity[k].key));
            dv_quantity_print(&device->capacity[k].value.value, &buf);
        }
        dv_buf_add_c(&buf, ";");
    }
    for (size_t i = 0; i < offer->n_named; i++)
        dv_buf_printf(&buf, " | %.*s", DV_FMT(offer->left_out[i]));
    text = dv_str_to_c(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

static const char *decode(const struct dv_buf *buf, struct dv_arena *arena)
{
    struct dv_claim_offer offer;
    struct dv_err err;

    if (!dv_claim_offer_decode(dv_buf_str(buf), arena, &offer, &err))
        return dv_str_to_c(dv_str_from_c(err.msg), arena);
    return print(&offer, arena);
}

static void makes_attributes_and_capacity_of_each_value(void **state)
{
    static const struct one all[] = {
        {"model",            STRING,   "A \"100\""},
        {"cores",            INT,      "-7"       },
        {"driver-version",   VERSION,  "1.2.3"    },
        {"example.com",      BOOL,     "1"        },
        {"3d",               BOOL,     "0"        },
        {"memory",           QUANTITY, "80Gi"     },
        {"under_score.CASE", STRING,   ""         },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_buf buf;

    (void)state;
    dv_buf_init(&buf, 1u << 20);
    add_instance(&buf, "gpu-0", all, DV_COUNT(all));
    add_instance(&buf, "gpu-1", NULL, 0);
    assert_string_equal(decode(&buf, arena),
                        "gpu-0 _3d=false cores=-7 driver_version=v1.2.3 example_com=true "
                        "model=A \"100\" under_score_CASE= memory:80Gi;gpu-1;");
    dv_buf_fini(&buf);
}

static void leaves_out_and_names_what_has_no_place_today(void **state)
{
#define LONG "a1234567890123456789012345678901234567890123456789012345678901234"
    static const struct {
        struct one one;
        const char *why;
    } cases[] = {
        {{"ids", INTS, ""},                                 "it is a list"                                    },
        {{"ids", STRINGS, "a"},                             "it is a list"                                    },
        {{"memory", QUANTITY, "much"},                      "its value is not a quantity"                     },
        {{"memory", QUANTITY, ""},                          "its value is not a quantity"                     },
        {{"v", VERSION, "1.2"},                             "its value is not a semantic version"             },
        {{"s", STRING, LONG},                               "its value has more than 64 bytes, or a zero byte"},
        {{"s", BOTH, "1.2.3"},                              "it has several values"                           },
        {{"s", NONE, ""},                                   "it has no value of a known type"                 },
        {{"", STRING, ""},
         "its name is not a C identifier of at most 32 characters, dots and dashes aside"                     },
        {{"a/b", STRING, ""},
         "its name is not a C identifier of at most 32 characters, dots and dashes aside"                     },
        {{"a12345678901234567890123456789012", STRING, ""},
         "its name is not a C identifier of at most 32 characters, dots and dashes aside"                     },
        {{"same-name", STRING, "second"},                   "another one has that name"                       },
    };
    static const struct one first = {"same.name", STRING, "first"};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct one all[] = {first, cases[i].one};
        struct dv_buf buf;

        dv_buf_init(&buf, 1u << 20);
        add_instance(&buf, "gpu-0", all, DV_COUNT(all));
        assert_string_equal(
            decode(&buf, arena),
            dv_str_to_c(dv_str_printf(arena,
                                      "gpu-0 same_name=first; | device \"gpu-0\": attribute "
                                      "\"%s\": %s",
                                      cases[i].one.name, cases[i].why),
                        arena));
        dv_buf_fini(&buf);
    }
}

static void leaves_out_devices_that_cannot_be_named(void **state)
{
    static const char *const names[] = {"a.b", "", "UPPER", "-a", LONG, "gpu-0"};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_claim_offer offer;
    struct dv_buf buf;
    struct dv_err err;

    (void)state;
    dv_buf_init(&buf, 1u << 20);
    add_instance(&buf, "gpu-0", NULL, 0);
    for (size_t i = 0; i < DV_COUNT(names); i++)
        add_instance(&buf, names[i], NULL, 0);
    assert_ok(dv_claim_offer_decode(dv_buf_str(&buf), arena, &offer, &err), &err);
    assert_int_equal(offer.n_devices, 1);
    assert_int_equal(offer.n_left_out, DV_COUNT(names));
    assert_str(offer.left_out[0],
               "device \"a.b\": its name is not a DNS label of at most 63 characters");
    assert_str(offer.left_out[5], "device \"gpu-0\": another one has that name");
    dv_buf_fini(&buf);
}

static void takes_as_many_as_the_limits_say(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_claim_offer offer;
    struct one all[40];
    char names[40][16];
    struct dv_buf buf;
    struct dv_err err;
    char name[16];

    (void)state;
    for (size_t i = 0; i < DV_COUNT(all); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "a%zu", i);
        all[i] = (struct one){names[i], i % 2 ? QUANTITY : INT, "1"};
    }
    dv_buf_init(&buf, 8u << 20);
    add_instance(&buf, "gpu-0", all, DV_COUNT(all));
    for (size_t i = 1; i < DV_CLAIM_OFFER_DEVICES_MAX; i++) {
        (void)snprintf(name, sizeof(name), "gpu-%zu", i);
        add_instance(&buf, name, NULL, 0);
    }
    assert_ok(dv_claim_offer_decode(dv_buf_str(&buf), arena, &offer, &err), &err);
    assert_int_equal(offer.n_devices, DV_CLAIM_OFFER_DEVICES_MAX);
    assert_int_equal(offer.devices[0].n_attributes + offer.devices[0].n_capacity, 32);
    assert_int_equal(offer.n_left_out, 8);
    add_instance(&buf, "one-more", NULL, 0);
    assert_string_equal(decode(&buf, arena),
                        "resources[512]: namedResources[0]: instances[0]: more than 512 devices");
    while (dv_buf_str(&buf).n <= DV_CLAIM_OFFER_BYTES_MAX)
        add_instance(&buf, "gpu-0", all, DV_COUNT(all));
    assert_false(dv_claim_offer_decode(dv_buf_str(&buf), arena, &offer, &err));
    assert_int_equal(err.code, DV_RESOURCE_EXHAUSTED);
    dv_buf_fini(&buf);
}

/* ---- drivers ---- */

/* What was offered so far: "driver gpu-0;gpu-1; / driver - / ". */
static struct dv_buf heard;

static void on_offered(void *ctx, dv_str driver, const struct dv_claim_offer *offer)
{
    struct host *host = ctx;

    dv_buf_printf(&heard, "%.*s %s / ", DV_FMT(driver),
                  offer ? print(offer, host->rig.arena) : "-");
}

static int offers_start(void **state)
{
    struct host *host;

    (void)host_start(state);
    host = *state;
    host_close(host);
    host->options.offered = on_offered;
    host_open(host);
    dv_buf_init(&heard, 1u << 20);
    return 0;
}

static int offers_end(void **state)
{
    int code = host_end(state);

    dv_buf_fini(&heard);
    return code;
}

static void offer(struct driver *driver, const char *device)
{
    struct dv_buf buf;

    dv_buf_init(&buf, 1u << 20);
    add_instance(&buf, device, NULL, 0);
    host_wait_count(driver->host, &driver->n_watches, 1);
    driver_send(driver, dv_buf_str(&buf));
    dv_buf_fini(&buf);
}

static void hears_what_a_driver_offers_until_it_goes(void **state)
{
    struct host *host = *state;
    struct driver driver = {.versions = "1.30.0 v1alpha3.NodeService"};

    driver_start(&driver, host, GPU, "gpu.sock");
    offer(&driver, "gpu-0");
    host_wait_text(host, &heard, GPU " gpu-0; / ");
    driver_send(&driver, DV_STR("\x0a\xff"));
    driver_send(&driver, DV_STR(""));
    host_wait_text(host, &heard, GPU " gpu-0; / " GPU "  / ");
    driver_deregister(&driver);
    host_wait_text(host, &heard, GPU "  / " GPU " - / ");
    driver_stop(&driver);
    driver_end(&driver);
}

static void asks_again_when_the_stream_ends(void **state)
{
    struct host *host = *state;
    struct driver driver = {.versions = "1.30.0 v1alpha3.NodeService"};
    struct dv_server_call *call;
    struct dv_err err;

    driver_start(&driver, host, GPU, "gpu.sock");
    for (int n = 1; n <= 3; n++) {
        host_wait_count(host, &driver.n_watches, n);
        call = driver.watch;
        driver.watch = NULL;
        (void)dv_fail(&err, DV_INTERNAL, "broken");
        dv_server_call_finish(call, &err);
        host_settle(host);
        host_advance(host, (800u << (n - 1)) - 1);
        assert_int_equal(driver.n_watches, n);
        host_advance(host, (400u << (n - 1)) + 1);
    }
    host_wait_count(host, &driver.n_watches, 4);
    offer(&driver, "gpu-1");
    host_wait_text(host, &heard, GPU " gpu-1; / ");
    driver_deregister(&driver);
    driver_stop(&driver);
    driver_end(&driver);
}

static void does_not_ask_again_who_does_not_have_the_method(void **state)
{
    struct host *host = *state;
    struct driver driver = {.versions = "v1alpha3.NodeService"};

    driver_start(&driver, host, GPU, "gpu.sock");
    host_settle(host);
    host_advance(host, 3600 * 1000);
    assert_int_equal(driver.n_watches, 0);
    assert_int_equal(heard.n, 0);
    driver_deregister(&driver);
    driver_stop(&driver);
    driver_end(&driver);
}

static void listens_to_the_instance_that_stays(void **state)
{
    struct host *host = *state;
    struct driver old = {.versions = "1.30.0 v1alpha3.NodeService"};
    struct driver new = {.versions = "1.30.0 v1alpha3.NodeService"};

    driver_start(&old, host, GPU, "old.sock");
    offer(&old, "gpu-0");
    driver_start(&new, host, GPU, "new.sock");
    offer(&new, "gpu-1");
    host_wait_text(host, &heard, "gpu-1; / ");
    driver_deregister(&old);
    host_settle(host);
    assert_null(strstr(dv_buf_c(&heard), GPU " - / "));
    driver_deregister(&new);
    host_wait_text(host, &heard, GPU " - / ");
    driver_stop(&old);
    driver_stop(&new);
    driver_end(&old);
    driver_end(&new);
}

int main(void)
{
#define ON_HOST(test) cmocka_unit_test_setup_teardown(test, offers_start, offers_end)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_attributes_and_capacity_of_each_value),
        cmocka_unit_test(leaves_out_and_names_what_has_no_place_today),
        cmocka_unit_test(leaves_out_devices_that_cannot_be_named),
        cmocka_unit_test(takes_as_many_as_the_limits_say),
        ON_HOST(hears_what_a_driver_offers_until_it_goes),
        ON_HOST(asks_again_when_the_stream_ends),
        ON_HOST(does_not_ask_again_who_does_not_have_the_method),
        ON_HOST(listens_to_the_instance_that_stays),
    };
#undef ON_HOST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
