/* From a made-up machine to devices, as tables. */
#include "offer/offer.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "support/dvtest.h"

#define TEXT_BYTES_MAX (1024u * 1024u)
#define OFFERS_MAX 4

#define PCI0 "devices/pci0000:00"
#define XHCI PCI0 "/0000:00:14.0"

enum { CONTROLLER, GPU_A, GPU_B, FTDI, CLONE_A, CLONE_B, CAMERA, BARE, NO_SERIAL };

static const struct dv_offer_part parts[] = {
    [CONTROLLER] = {DV_OFFER_BUS_PCI,               DV_STR_INIT(XHCI),             DV_STR_INIT("8086"),              DV_STR_INIT("a36d"),
                    DV_STR_INIT("0c0330"),                                                                                                              .numa_node = 0},
    [GPU_A] = {DV_OFFER_BUS_PCI,                              DV_STR_INIT(PCI0 "/0000:00:01.0/0000:3b:00.0"),
                    DV_STR_INIT("10de"), DV_STR_INIT("2204"),                                                                                                  DV_STR_INIT("030000"),                                                                                           .numa_node = 0},
    [GPU_B] = {DV_OFFER_BUS_PCI,                DV_STR_INIT("devices/pci0000:80/0000:af:00.0"),
                    DV_STR_INIT("10de"),                                                              DV_STR_INIT("2204"),                    DV_STR_INIT("030000"),                                                                                                                .numa_node = 1},
    [FTDI] = {DV_OFFER_BUS_USB,         DV_STR_INIT(XHCI "/usb1/1-4"),                        DV_STR_INIT("0403"),
                    DV_STR_INIT("6001"),                                         .serial = DV_STR_INIT("A50285BI"),.numa_node = -1},
    [CLONE_A] = {DV_OFFER_BUS_USB,            DV_STR_INIT(XHCI "/usb1/1-5"),        DV_STR_INIT("10c4"),
                    DV_STR_INIT("ea60"),    .serial = DV_STR_INIT("0001"),                                                                                                 .numa_node = -1},
    [CLONE_B] = {DV_OFFER_BUS_USB,           DV_STR_INIT(XHCI "/usb1/1-6"),                                           DV_STR_INIT("10c4"),
                    DV_STR_INIT("ea60"),                                               .serial = DV_STR_INIT("0001"),.numa_node = -1},
    [CAMERA] = {DV_OFFER_BUS_USB,DV_STR_INIT(XHCI "/usb1/1-7"),DV_STR_INIT("046d"),
                    DV_STR_INIT("0825"),                     .serial = DV_STR_INIT("C0FFEE"),                                                        .numa_node = -1},
    [BARE] = {DV_OFFER_BUS_PCI,               DV_STR_INIT(PCI0 "/0000:00:1f.0"),                         DV_STR_INIT("8086"),
                    DV_STR_INIT("a309"),                                                                                                  DV_STR_INIT("060100"),                                                           .numa_node = -1},
    [NO_SERIAL] = {DV_OFFER_BUS_USB,                              DV_STR_INIT(XHCI "/usb1/1-8.2"),                                            DV_STR_INIT("1a86"),
                    DV_STR_INIT("7523"),     .numa_node = -1                                                                                                               },
};

static const dv_str ftdi_links[] = {
    DV_STR_INIT("/dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A50285BI-if00-port0")};

#define PART(i) &parts[i]
#define NODE(name, number, sys, usb_, pci_)                                                        \
    {                                                                                              \
        .path = DV_STR_INIT("/dev/" name), .major = 188, .minor = (number),                        \
        .sys_path = DV_STR_INIT(sys), .usb = (usb_), .pci = (pci_)                                 \
    }

static const struct dv_offer_node nodes[] = {
    NODE("bus/usb/001/007", 90, XHCI "/usb1/1-7", PART(CAMERA), PART(CONTROLLER)),
    NODE("dri/card0", 1, PCI0 "/0000:00:01.0/0000:3b:00.0/drm/card0", NULL, PART(GPU_A)),
    NODE("dri/card1", 2, "devices/pci0000:80/0000:af:00.0/drm/card1", NULL, PART(GPU_B)),
    NODE("dri/renderD128", 3, PCI0 "/0000:00:01.0/0000:3b:00.0/drm/renderD128", NULL, PART(GPU_A)),
    NODE("dri/renderD129", 4, "devices/pci0000:80/0000:af:00.0/drm/renderD129", NULL, PART(GPU_B)),
    NODE("kvm", 5, "devices/virtual/misc/kvm", NULL, NULL),
    NODE("media0", 6, XHCI "/usb1/1-7/1-7:1.0/media0", PART(CAMERA), PART(CONTROLLER)),
    NODE("ttyS0", 7, "devices/platform/serial8250/tty/ttyS0", NULL, NULL),
    {.path = DV_STR_INIT("/dev/ttyUSB0"),
                                                                       .major = 188,
                                                                       .minor = 0,
                                                                       .links = ftdi_links,
                                                                       .n_links = 1,
                                                                       .sys_path = DV_STR_INIT(XHCI "/usb1/1-4/1-4:1.0/ttyUSB0/tty/ttyUSB0"),
                                                                       .usb = PART(FTDI),
                                                                       .pci = PART(CONTROLLER)},
    NODE("ttyUSB1", 9, XHCI "/usb1/1-5/1-5:1.0/ttyUSB1/tty/ttyUSB1", PART(CLONE_A),
         PART(CONTROLLER)),
    NODE("ttyUSB2", 10, XHCI "/usb1/1-6/1-6:1.0/ttyUSB2/tty/ttyUSB2", PART(CLONE_B),
         PART(CONTROLLER)),
    NODE("ttyUSB10", 11, XHCI "/usb1/1-8.2/1-8.2:1.2/ttyUSB10/tty/ttyUSB10", PART(NO_SERIAL),
         PART(CONTROLLER)),
    NODE("video0", 12, XHCI "/usb1/1-7/1-7:1.0/video4linux/video0", PART(CAMERA), PART(CONTROLLER)),
    NODE("video1", 13, XHCI "/usb1/1-7/1-7:1.0/video4linux/video1", PART(CAMERA), PART(CONTROLLER)),
};

static const dv_str gpu_a_nodes[] = {DV_STR_INIT("/dev/dri/card0"), DV_STR_INIT("/dev/nvidia0")};
static const dv_str gpu_b_nodes[] = {DV_STR_INIT("/dev/dri/card1"), DV_STR_INIT("/dev/nvidia1")};
static const dv_str gpu_nodes[] = {DV_STR_INIT("/dev/dri/card0"), DV_STR_INIT("/dev/dri/card1"),
                                   DV_STR_INIT("/dev/nvidia0"), DV_STR_INIT("/dev/nvidia1")};

#define CDI(name_, nodes_)                                                                         \
    {                                                                                              \
        DV_STR_INIT("nvidia.com/gpu=" name_), DV_STR_INIT("nvidia.com/gpu"), DV_STR_INIT(name_),   \
            nodes_, DV_COUNT(nodes_)                                                               \
    }

static const struct dv_offer_cdi cdi[] = {
    CDI("0", gpu_a_nodes),
    CDI("1", gpu_b_nodes),
    CDI("GPU-8f6a1e0c-1111-2222-3333-444455556666", gpu_a_nodes),
    CDI("all", gpu_nodes),
    CDI("both", gpu_nodes),
};

static const struct dv_offer_snapshot machine = {nodes, DV_COUNT(nodes), parts, DV_COUNT(parts),
                                                 cdi,   DV_COUNT(cdi),   false};

/* "name: nodes or CDI name", then "! note", a line each. */
static dv_str print(const struct dv_offer_list *list, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < list->n_devices; i++) {
        const struct dv_offer_device *device = &list->devices[i];

        dv_buf_printf(&buf, "%.*s:", DV_FMT(device->name));
        if (device->cdi)
            dv_buf_printf(&buf, " %.*s", DV_FMT(device->cdi->name));
        for (size_t k = 0; k < device->n_nodes; k++)
            dv_buf_printf(&buf, " %.*s", DV_FMT(device->nodes[k]->path));
        dv_buf_add_char(&buf, '\n');
    }
    for (size_t i = 0; i < list->n_notes; i++)
        dv_buf_printf(&buf, "! %.*s: %.*s\n", DV_FMT(list->notes[i].offer->name),
                      DV_FMT(list->notes[i].text));
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

static struct dv_offers offers_of(const char *const *texts, size_t n, struct dv_arena *arena)
{
    struct dv_offers offers = {0};
    struct dv_err err;

    for (size_t i = 0; i < n && texts[i]; i++)
        if (!dv_offers_add_text(&offers, dv_str_from_c(texts[i]), arena, &err))
            fail_msg("%s", err.msg);
    return offers;
}

static void devices_come_of_offers_and_the_machine(void **state)
{
    static const struct {
        const char *offers[OFFERS_MAX];
        const char *devices;
    } cases[] = {
        {{"serial=/dev/ttyUSB*"},
         "serial-usb-0403-6001-a50285bi-if00: /dev/ttyUSB0\n"
         "serial-usb-10c4-ea60-0001-if00: /dev/ttyUSB1\n"
         "serial-usb-10c4-ea60-0001-if00-at-1-6: /dev/ttyUSB2\n"
         "serial-usb-1a86-7523-at-1-8-2-if02: /dev/ttyUSB10\n"                                                              },
        {{"ftdi=/dev/serial/by-id/*FTDI*"},                   "ftdi-usb-0403-6001-a50285bi-if00: /dev/ttyUSB0\n"            },
        {{"ftdi=usb:0403:6001:A5*"},                          "ftdi-usb-0403-6001-a50285bi: /dev/ttyUSB0\n"                 },
        {{"ftdi=usb:0403:6001:B*"},                           "! ftdi: usb:0403:6001:B*: nothing matches now\n"             },
        {{"camera=usb:046D:0825"},
         "camera-usb-046d-0825-c0ffee: /dev/bus/usb/001/007 /dev/media0 /dev/video0 /dev/video1\n"                          },
        {{"camera=/dev/video*,/dev/media*,group=usb"},
         "camera-usb-046d-0825-c0ffee: /dev/media0 /dev/video0 /dev/video1\n"                                               },
        {{"camera=/dev/video*"},
         "camera-usb-046d-0825-c0ffee-if00: /dev/video0\n"
         "camera-usb-046d-0825-c0ffee-if00-at-1-7: /dev/video1\n"                                                           },
        {{"gpu=pci:10de"},
         "gpu-pci-0000-3b-00-0: /dev/dri/card0 /dev/dri/renderD128\n"
         "gpu-pci-0000-af-00-0: /dev/dri/card1 /dev/dri/renderD129\n"                                                       },
        {{"gpu=pci:af:00.0"},                                 "gpu-pci-0000-af-00-0: /dev/dri/card1 /dev/dri/renderD129\n"  },
        {{"gpu=pci:class:03,group=node"},
         "gpu-pci-0000-3b-00-0-drm: /dev/dri/card0\n"
         "gpu-pci-0000-af-00-0-drm: /dev/dri/card1\n"
         "gpu-pci-0000-3b-00-0-drm-at-dev-dri-renderd128: /dev/dri/renderD128\n"
         "gpu-pci-0000-af-00-0-drm-at-dev-dri-renderd129: /dev/dri/renderD129\n"                                            },
        {{"usb=pci:8086:a36d"},                               "! usb: pci:8086:a36d: nothing matches now\n"                 },
        {{"isa=pci:8086:a309"},                               "! isa: pci:8086:a309: 1 matching without a node below /dev\n"},
        {{"kvm=/dev/kvm,shared", "uart=/dev/ttyS*"},          "kvm: /dev/kvm\nuart-ttys0: /dev/ttyS0\n"                     },
        {{"gpu=cdi:nvidia.com/gpu"},
         "gpu-gpu-8f6a1e0c-1111-2222-3333-444455556666: "
         "nvidia.com/gpu=GPU-8f6a1e0c-1111-2222-3333-444455556666 /dev/dri/card0\n"
         "gpu-1: nvidia.com/gpu=1 /dev/dri/card1\n"                                                                         },
        {{"gpu=cdi:nvidia.com/gpu=?"},
         "gpu-0: nvidia.com/gpu=0 /dev/dri/card0\ngpu-1: nvidia.com/gpu=1 /dev/dri/card1\n"                                 },
        {{"gpu=cdi:amd.com/gpu"},                             "! gpu: cdi:amd.com/gpu: nothing matches now\n"               },
 /* the first offer that selects a node has it */
        {{"a=/dev/ttyUSB0", "b=/dev/ttyUSB[01]"},
         "a-usb-0403-6001-a50285bi-if00: /dev/ttyUSB0\n"
         "b-usb-10c4-ea60-0001-if00: /dev/ttyUSB1\n"
         "! b: /dev/ttyUSB0 is offered as a\n"                                                                              },
        {{"card=/dev/dri/card0", "gpu=cdi:nvidia.com/gpu=?"},
         "card-pci-0000-3b-00-0-drm: /dev/dri/card0\n"
         "gpu-1: nvidia.com/gpu=1 /dev/dri/card1\n"
         "! gpu: nvidia.com/gpu=0 has a node that is offered as card\n"                                                     },
        {{"gpu=cdi:nvidia.com/gpu=?", "card=/dev/dri/card*"},
         "gpu-0: nvidia.com/gpu=0 /dev/dri/card0\ngpu-1: nvidia.com/gpu=1 /dev/dri/card1\n"
         "! card: /dev/dri/card0 is offered as gpu\n! card: /dev/dri/card1 is offered as gpu\n"                             },
 /* a node that two selectors of one offer select is there once */
        {{"a=/dev/ttyUSB0,usb:0403"},                         "a-usb-0403-6001-a50285bi-if00: /dev/ttyUSB0\n"               },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_offers offers = offers_of(cases[i].offers, OFFERS_MAX, arena);
        struct dv_offer_list list;
        const char *got;

        dv_offer_apply(&offers, &machine, NULL, arena, &list);
        got = dv_str_to_c(print(&list, arena), arena);
        if (strcmp(got, cases[i].devices) != 0)
            fail_msg("case %zu:\n%s\nwanted:\n%s", i, got, cases[i].devices);
    }
}

/* The machine without the nodes of one part. */
static struct dv_offer_snapshot without(size_t part, struct dv_arena *arena)
{
    struct dv_offer_snapshot snapshot = machine;
    struct dv_offer_node *left = DV_NEW_ARRAY(arena, struct dv_offer_node, DV_COUNT(nodes));

    snapshot.n_nodes = 0;
    for (size_t i = 0; i < DV_COUNT(nodes); i++)
        if (nodes[i].usb != &parts[part])
            left[snapshot.n_nodes++] = nodes[i];
    snapshot.nodes = left;
    snapshot.n_parts = 0;
    return snapshot;
}

static void devices_that_look_alike_keep_their_names(void **state)
{
    static const char *const texts[] = {"serial=usb:10c4:ea60"};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_offers offers = offers_of(texts, 1, arena);
    struct dv_offer_snapshot one = without(CLONE_A, arena);
    struct dv_offer_list second, both, again;

    (void)state;
    /* The second of them was there first: it has the name, and keeps it when the other comes. */
    dv_offer_apply(&offers, &one, NULL, arena, &second);
    assert_string_equal(dv_str_to_c(print(&second, arena), arena),
                        "serial-usb-10c4-ea60-0001: /dev/ttyUSB2\n");
    dv_offer_apply(&offers, &machine, &second, arena, &both);
    assert_string_equal(dv_str_to_c(print(&both, arena), arena),
                        "serial-usb-10c4-ea60-0001-at-1-5: /dev/ttyUSB1\n"
                        "serial-usb-10c4-ea60-0001: /dev/ttyUSB2\n");
    /* And a name that was given for the other's sake stays when the other goes. */
    one = without(CLONE_B, arena);
    dv_offer_apply(&offers, &one, &both, arena, &again);
    assert_string_equal(dv_str_to_c(print(&again, arena), arena),
                        "serial-usb-10c4-ea60-0001-at-1-5: /dev/ttyUSB1\n");
}

static void a_device_is_the_same_in_another_port_and_under_another_number(void **state)
{
    static const char *const texts[] = {"serial=/dev/ttyUSB*"};
    static const struct dv_offer_part moved = {
        DV_OFFER_BUS_USB,    DV_STR_INIT(XHCI "/usb2/2-1"),     DV_STR_INIT("0403"),
        DV_STR_INIT("6001"), .serial = DV_STR_INIT("A50285BI"), .numa_node = -1};
    static const struct dv_offer_node node[] = {
        NODE("ttyUSB7", 7, XHCI "/usb2/2-1/2-1:1.0/ttyUSB7/tty/ttyUSB7", &moved, PART(CONTROLLER))};
    const struct dv_offer_snapshot snapshot = {node, 1, &moved, 1, NULL, 0, false};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_offers offers = offers_of(texts, 1, arena);
    struct dv_offer_list before, after;

    (void)state;
    dv_offer_apply(&offers, &machine, NULL, arena, &before);
    dv_offer_apply(&offers, &snapshot, &before, arena, &after);
    assert_int_equal(after.n_devices, 1);
    assert_non_null(dv_offer_find(&before, after.devices[0].name));
    assert_null(dv_offer_find(&after, before.devices[1].name));
}

static void names_that_are_too_long_are_cut_and_stay_different(void **state)
{
    static const char *const texts[] = {"serial=/dev/very-long*"};
    static const struct dv_offer_node alike[] = {
        NODE("very-long-name-of-a-device-that-goes-on-and-on-and-on-and-on-until-1", 1, "", NULL,
             NULL),
        NODE("very-long-name-of-a-device-that-goes-on-and-on-and-on-and-on-until-2", 2, "", NULL,
             NULL),
    };
    const struct dv_offer_snapshot snapshot = {alike, 2, NULL, 0, NULL, 0, false};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_offers offers = offers_of(texts, 1, arena);
    struct dv_offer_list list;

    (void)state;
    dv_offer_apply(&offers, &snapshot, NULL, arena, &list);
    assert_int_equal(list.n_devices, 2);
    assert_int_equal(list.devices[0].name.n, 63);
    assert_false(dv_str_eq(list.devices[0].name, list.devices[1].name));
}

static void there_are_not_more_devices_than_may_be(void **state)
{
    static const char *const texts[] = {"many=/dev/many*"};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_offers offers = offers_of(texts, 1, arena);
    size_t n = DV_OFFER_DEVICES_MAX + 10;
    struct dv_offer_node *many = DV_NEW_ARRAY(arena, struct dv_offer_node, n);
    struct dv_offer_snapshot snapshot = {.nodes = many, .n_nodes = n};
    struct dv_offer_list list;

    (void)state;
    for (size_t i = 0; i < n; i++)
        many[i] = (struct dv_offer_node){.path = dv_str_printf(arena, "/dev/many%zu", i)};
    dv_offer_apply(&offers, &snapshot, NULL, arena, &list);
    assert_int_equal(list.n_devices, DV_OFFER_DEVICES_MAX);
    assert_int_equal(list.n_notes, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_come_of_offers_and_the_machine),
        cmocka_unit_test(devices_that_look_alike_keep_their_names),
        cmocka_unit_test(a_device_is_the_same_in_another_port_and_under_another_number),
        cmocka_unit_test(names_that_are_too_long_are_cut_and_stay_different),
        cmocka_unit_test(there_are_not_more_devices_than_may_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
