/* What a claim gets, and what is remembered of it. */
#include "offer/offer.h"

#include "base/arena.h"
#include "base/buf.h"
#include "support/dvtest.h"

#define TEXT_BYTES_MAX (1024u * 1024u)

static const struct dv_offer_node ports[] = {
    {.path = DV_STR_INIT("/dev/ttyUSB0"), .major = 188, .minor = 0  },
    {.path = DV_STR_INIT("/dev/ttyUSB1"), .major = 188, .minor = 1  },
    {.path = DV_STR_INIT("/dev/kvm"),     .major = 10,  .minor = 232},
};

struct rig {
    struct dv_arena *arena;
    struct dv_offers offers;
    struct dv_offer_list list;
};

static void set_up(struct rig *rig)
{
    static const struct dv_offer_snapshot snapshot = {.nodes = ports, .n_nodes = DV_COUNT(ports)};
    struct dv_err err;

    *rig = (struct rig){.arena = dv_arena_new()};
    assert_true(dv_offers_add_text(&rig->offers, DV_STR("serial=/dev/ttyUSB*,mode=0600,owner=7:8"),
                                   rig->arena, &err));
    assert_true(dv_offers_add_text(&rig->offers, DV_STR("kvm=/dev/kvm,shared,as=/dev/vm"),
                                   rig->arena, &err));
    dv_offer_apply(&rig->offers, &snapshot, NULL, rig->arena, &rig->list);
    assert_int_equal(rig->list.n_devices, 3);
}

static struct dv_offer_given give(const struct rig *rig, const char *device, const char *request)
{
    const struct dv_offer_device *found = dv_offer_find(&rig->list, dv_str_from_c(device));

    assert_non_null(found);
    return (struct dv_offer_given){.device = found, .request = dv_str_from_c(request)};
}

static void a_spec_has_the_nodes_and_a_variable_for_each_request(void **state)
{
    struct rig rig;
    struct dv_buf buf;

    (void)state;
    set_up(&rig);
    {
        struct dv_offer_given given[] = {
            give(&rig, "serial-ttyusb0", "a"),
            give(&rig, "serial-ttyusb1", "a"),
            give(&rig, "kvm", "b"),
            give(&rig, "kvm", "c"),
        };

        dv_buf_init(&buf, TEXT_BYTES_MAX);
        assert_true(dv_offer_spec_print(DV_STR("uid"), given, DV_COUNT(given), DV_STR("/host/dev"),
                                        rig.arena, &buf));
        assert_string_equal(
            dv_buf_c(&buf),
            "{\"cdiVersion\":\"0.5.0\",\"kind\":\"offer.davit.node/claim\",\"devices\":["
            "{\"name\":\"uid-serial-ttyusb0\",\"containerEdits\":{"
            "\"env\":[\"DAVIT_SERIAL=/dev/ttyUSB0,/dev/ttyUSB1\"],\"deviceNodes\":["
            "{\"path\":\"/dev/ttyUSB0\",\"hostPath\":\"/host/dev/ttyUSB0\",\"type\":\"c\","
            "\"major\":188,\"minor\":0,\"fileMode\":384,\"permissions\":\"rw\",\"uid\":7,\"gid\":8}"
            "]}},"
            "{\"name\":\"uid-serial-ttyusb1\",\"containerEdits\":{"
            "\"env\":[\"DAVIT_SERIAL=/dev/ttyUSB0,/dev/ttyUSB1\"],\"deviceNodes\":["
            "{\"path\":\"/dev/ttyUSB1\",\"hostPath\":\"/host/dev/ttyUSB1\",\"type\":\"c\","
            "\"major\":188,\"minor\":1,\"fileMode\":384,\"permissions\":\"rw\",\"uid\":7,\"gid\":8}"
            "]}},"
            "{\"name\":\"uid-kvm\",\"containerEdits\":{\"env\":[\"DAVIT_KVM=/dev/vm\"],"
            "\"deviceNodes\":[{\"path\":\"/dev/vm\",\"hostPath\":\"/host/dev/kvm\",\"type\":\"c\","
            "\"major\":10,\"minor\":232,\"permissions\":\"rw\"}]}}]}\n");
        assert_true(dv_str_eq(given[3].cdi_name, DV_STR("offer.davit.node/claim=uid-kvm")));
        dv_buf_fini(&buf);
    }
    dv_arena_free(rig.arena);
}

static void a_record_is_read_as_it_was_written(void **state)
{
    struct dv_offer_record record, read;
    struct rig rig;
    struct dv_buf buf, again;
    struct dv_err err;

    (void)state;
    set_up(&rig);
    {
        struct dv_offer_given given[] = {give(&rig, "serial-ttyusb1", "a"), give(&rig, "kvm", "b")};

        dv_offer_record_make(DV_STR("uid"), DV_STR("ns/claim"), DV_STR("/run/cdi/x.json"), given, 2,
                             rig.arena, &record);
    }
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_buf_init(&again, TEXT_BYTES_MAX);
    dv_offer_record_print(&record, &buf);
    if (!dv_offer_record_parse(dv_buf_str(&buf), rig.arena, &read, &err))
        fail_msg("%s", err.msg);
    dv_offer_record_print(&read, &again);
    assert_string_equal(dv_buf_c(&buf), dv_buf_c(&again));
    /* cut anywhere, it is refused */
    for (size_t n = 0; n + 1 < buf.n; n++)
        assert_false(
            dv_offer_record_parse(dv_str_slice(dv_buf_str(&buf), 0, n), rig.arena, &read, &err));
    dv_buf_fini(&buf);
    dv_buf_fini(&again);
    dv_arena_free(rig.arena);
}

static void a_node_that_a_container_still_has_is_nobody_elses(void **state)
{
    static const struct dv_offer_part other = {.bus = DV_OFFER_BUS_USB,
                                               .path = DV_STR_INIT("devices/usb1/1-9"),
                                               .vendor = DV_STR_INIT("0403"),
                                               .product = DV_STR_INIT("6001"),
                                               .numa_node = -1};
    static const struct dv_offer_node plugged[] = {
        {.path = DV_STR_INIT("/dev/ttyUSB0"), .major = 188, .minor = 0,                         .usb = &other},
        {.path = DV_STR_INIT("/dev/ttyUSB1"),                                   .major = 188,             .minor = 1}
    };
    static const struct dv_offer_snapshot now = {.nodes = plugged, .n_nodes = 2};
    struct dv_offer_record record;
    const struct dv_offer_record *records[] = {&record};
    struct dv_offer_list list;
    struct rig rig;

    (void)state;
    set_up(&rig);
    {
        struct dv_offer_given given[] = {give(&rig, "serial-ttyusb0", "a"),
                                         give(&rig, "serial-ttyusb1", "a"), give(&rig, "kvm", "b")};

        dv_offer_record_make(DV_STR("uid"), DV_STR("ns/claim"), DV_STR(""), given, 3, rig.arena,
                             &record);
    }
    /* Another adapter got the number of the first one, which was unplugged. */
    dv_offer_apply(&rig.offers, &now, NULL, rig.arena, &list);
    assert_str(list.devices[0].name, "serial-usb-0403-6001-at-1-9");
    assert_ptr_equal(dv_offer_rival(&list.devices[0], records, 1), &record);
    /* The second one is the same, and kvm may be shared. */
    assert_null(dv_offer_rival(&list.devices[1], records, 1));
    assert_null(dv_offer_rival(dv_offer_find(&rig.list, DV_STR("kvm")), records, 1));
    dv_arena_free(rig.arena);
}

static void names_of_held_devices_are_remembered(void **state)
{
    struct dv_offer_held held = {.offer = DV_STR("serial"),
                                 .name = DV_STR("serial-old-name"),
                                 .key = DV_STR("ttyUSB0"),
                                 .place = DV_STR("/dev/ttyUSB0")};
    struct dv_offer_record record = {.claim_uid = DV_STR("uid"), .devices = &held, .n_devices = 1};
    static const struct dv_offer_snapshot snapshot = {.nodes = ports, .n_nodes = DV_COUNT(ports)};
    struct dv_offer_list before = {0}, list;
    struct rig rig;

    (void)state;
    set_up(&rig);
    dv_offer_record_remember(&record, rig.arena, &before);
    dv_offer_apply(&rig.offers, &snapshot, &before, rig.arena, &list);
    assert_non_null(dv_offer_find(&list, DV_STR("serial-old-name")));
    assert_null(dv_offer_find(&list, DV_STR("serial-ttyusb0")));
    dv_arena_free(rig.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_has_the_nodes_and_a_variable_for_each_request),
        cmocka_unit_test(a_record_is_read_as_it_was_written),
        cmocka_unit_test(a_node_that_a_container_still_has_is_nobody_elses),
        cmocka_unit_test(names_of_held_devices_are_remembered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
