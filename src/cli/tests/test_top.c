#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "cli/top/top.h"
#include "proto/davit_node_v1.pb-c.h"

#define SCREEN_BYTES_MAX (1u << 20)
#define NOW_MS INT64_C(1800000000000)
#define N_GPUS 6u

/* A node with some of everything; never changed. */
struct world {
    NodeV1__PodRef pod;
    NodeV1__Holder holder;
    NodeV1__Holder *holders[1];
    int64_t nodes[2];
    NodeV1__Device devices[N_GPUS];
    NodeV1__Device *device_list[N_GPUS];
    NodeV1__Device nic;
    NodeV1__Device *nic_list[1];
    NodeV1__Resource resource;
    NodeV1__Resource gone;
    NodeV1__Resource *resources[2];
    NodeV1__Holder claimer;
    NodeV1__Holder *claimers[1];
    NodeV1__PoolDevice tpu;
    NodeV1__PoolDevice *tpus[1];
    NodeV1__Pool pool;
    NodeV1__Pool *pools[1];
    NodeV1__DeviceCounts counts[4]; /* of gpus, nics, tpus, all */
    NodeV1__ListDevicesResponse list;
    NodeV1__PodRef *claim_pods[1];
    NodeV1__ClaimDevice claim_device;
    NodeV1__ClaimDevice *claim_devices[1];
    NodeV1__ClaimDriver driver;
    NodeV1__ClaimDriver *drivers[1];
    NodeV1__Claim claim;
    NodeV1__Claim *claim_list[1];
    NodeV1__ListClaimsResponse claims;
    NodeV1__PodStatus pod_status;
    NodeV1__PodStatus *pod_list[1];
    NodeV1__WatchPodsResponse pods;
    NodeV1__Plugin plugin;
    NodeV1__Plugin *plugin_list[1];
    NodeV1__ListPluginsResponse plugins;
    NodeV1__StatusResponse status;
    struct dv_top_event event;
    struct dv_top_data data;
};

static void fill_devices(struct world *w)
{
    static const char *const ids[N_GPUS] = {"gpu-0", "gpu-1", "gpu-2", "gpu-3", "gpu-4", "gpu-5"};

    node_v1__pod_ref__init(&w->pod);
    w->pod.uid = "u1";
    w->pod.namespace_ = "ml";
    w->pod.name = "train-0";
    node_v1__holder__init(&w->holder);
    w->holder.pod = &w->pod;
    w->holder.container = "main";
    w->holder.since_ms = NOW_MS - 130000;
    w->holders[0] = &w->holder;
    w->nodes[1] = 1;
    for (size_t i = 0; i < N_GPUS; i++) {
        node_v1__device__init(&w->devices[i]);
        w->devices[i].id = ids[i];
        w->devices[i].healthy = i != 3;
        w->devices[i].state = i < 2 ? "held" : i == 3 ? "unhealthy" : "free";
        w->devices[i].trouble = i == 3 || i == 1 ? "unhealthy" : "";
        w->devices[i].numa_nodes = &w->nodes[i % 2];
        w->devices[i].n_numa_nodes = i < 5;
        w->devices[i].holders = w->holders;
        w->devices[i].n_holders = i < 2;
        w->device_list[i] = &w->devices[i];
    }
    node_v1__resource__init(&w->resource);
    w->resource.name = "example.com/gpu";
    w->resource.connected = true;
    w->resource.devices = w->device_list;
    w->resource.n_devices = N_GPUS;
    node_v1__resource__init(&w->gone);
    w->gone.name = "example.com/nic";
    w->gone.devices = &w->nic_list[0];
    w->gone.n_devices = 1;
    node_v1__device__init(&w->nic);
    w->nic.id = "nic-0";
    w->nic.state = w->nic.trouble = "gone";
    w->nic_list[0] = &w->nic;
    w->resources[0] = &w->resource;
    w->resources[1] = &w->gone;
    node_v1__list_devices_response__init(&w->list);
    w->list.resources = w->resources;
    w->list.n_resources = 2;
}

/* A device of a driver that is gone, held by a claim. */
static void fill_pool(struct world *w)
{
    node_v1__holder__init(&w->claimer);
    w->claimer.claim = "ml/fast";
    w->claimers[0] = &w->claimer;
    node_v1__pool_device__init(&w->tpu);
    w->tpu.name = "tpu-7";
    w->tpu.state = "held";
    w->tpu.trouble = "gone";
    w->tpu.holders = w->claimers;
    w->tpu.n_holders = 1;
    w->tpus[0] = &w->tpu;
    node_v1__pool__init(&w->pool);
    w->pool.driver = "tpu.example.com";
    w->pool.name = "n1";
    w->pool.devices = w->tpus;
    w->pool.n_devices = 1;
    w->pools[0] = &w->pool;
    w->list.pools = w->pools;
    w->list.n_pools = 1;
}

/* The counts as davitd tells them, which are not made here. */
static void fill_counts(struct world *w)
{
    for (size_t i = 0; i < DV_COUNT(w->counts); i++)
        node_v1__device_counts__init(&w->counts[i]);
    w->counts[0].free = 3;
    w->counts[0].held = 2;
    w->counts[0].unhealthy = 1;
    w->counts[1].gone = 1;
    w->counts[2].held = 1;
    w->counts[3].free = 3;
    w->counts[3].held = 3;
    w->counts[3].unhealthy = 1;
    w->counts[3].gone = 1;
    w->resource.counts = &w->counts[0];
    w->gone.counts = &w->counts[1];
    w->pool.counts = &w->counts[2];
    w->list.counts = &w->counts[3];
}

static void fill_claims(struct world *w)
{
    node_v1__claim_device__init(&w->claim_device);
    w->claim_device.pool = "n1";
    w->claim_device.device = "tpu-7";
    w->claim_device.health = "Unknown";
    w->claim_devices[0] = &w->claim_device;
    node_v1__claim_driver__init(&w->driver);
    w->driver.name = "tpu.example.com";
    w->driver.devices = w->claim_devices;
    w->driver.n_devices = 1;
    w->drivers[0] = &w->driver;
    w->claim_pods[0] = &w->pod;
    node_v1__claim__init(&w->claim);
    w->claim.namespace_ = "ml";
    w->claim.name = "fast";
    w->claim.state = "preparing";
    w->claim.awaited = "driver tpu.example.com";
    w->claim.pods = w->claim_pods;
    w->claim.n_pods = 1;
    w->claim.drivers = w->drivers;
    w->claim.n_drivers = 1;
    w->claim_list[0] = &w->claim;
    node_v1__list_claims_response__init(&w->claims);
    w->claims.claims = w->claim_list;
    w->claims.n_claims = 1;
}

static void fill_rest(struct world *w)
{
    node_v1__pod_status__init(&w->pod_status);
    w->pod_status.pod = &w->pod;
    w->pod_status.state = "waiting";
    w->pod_status.awaited = "claim fast";
    w->pod_status.since_ms = NOW_MS - 65000;
    w->pod_list[0] = &w->pod_status;
    node_v1__watch_pods_response__init(&w->pods);
    w->pods.pods = w->pod_list;
    w->pods.n_pods = 1;
    node_v1__plugin__init(&w->plugin);
    w->plugin.name = "tpu.example.com";
    w->plugin.type = "DRAPlugin";
    w->plugin.state = "failing";
    w->plugin.error = "connect:\033[31m refused";
    w->plugin_list[0] = &w->plugin;
    node_v1__list_plugins_response__init(&w->plugins);
    w->plugins.plugins = w->plugin_list;
    w->plugins.n_plugins = 1;
    node_v1__status_response__init(&w->status);
    w->status.version = "1.2.3";
    w->status.node_name = "n1";
    w->status.started_at_ms = NOW_MS - INT64_C(3600000) * 3;
    w->event = (struct dv_top_event){
        .uid = DV_STR("e"),
        .at_ms = NOW_MS - 5000,
        .type = DV_STR("Warning"),
        .reason = DV_STR("FailedPrepare"),
        .object = DV_STR("ResourceClaim fast"),
        .message = DV_STR("the driver tpu.example.com is not there, and nobody knows "
                          "when it comes back"),
        .count = 3,
    };
}

static struct world *make_world(struct dv_arena *arena)
{
    struct world *w = DV_NEW(arena, struct world);

    fill_devices(w);
    fill_pool(w);
    fill_counts(w);
    fill_claims(w);
    fill_rest(w);
    w->data = (struct dv_top_data){
        .status = &w->status,
        .plugins = &w->plugins,
        .devices = &w->list,
        .pods = &w->pods,
        .claims = &w->claims,
        .events = &w->event,
        .n_events = 1,
        .now_ms = NOW_MS,
    };
    return w;
}

/* The screen as text, a line each. */
static void draw(const struct dv_top_data *data, struct dv_top_view *view, struct dv_buf *text)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_top_frame frame;

    dv_top_draw(data, view, arena, &frame);
    if (view->height > 0)
        assert_int_equal(frame.n, view->height);
    dv_buf_clear(text);
    for (size_t i = 0; i < frame.n; i++)
        dv_buf_printf(text, "%.*s\n", DV_FMT(frame.lines[i]));
}

#define HEADER "n1  davitd 1.2.3, up 3h0m                    3 free, 3 held, 1 unhealthy, 1 gone\n"
#define HELP "  q quit  Tab, 1-5 section  j/k scroll  / filter"

static void a_screen_shows_the_chosen_section(void **state)
{
    static const struct {
        const char *keys;
        unsigned width;
        unsigned height;
        const char *want;
    } cases[] = {
        {"",         80,  24,
         HEADER "[1 Devices 8] 2 Claims 1  3 Pods 1  4 Plugins 1  5 Events 1\n"
                "DEVICE   NUMA  STATE            SINCE  HELD BY\n"
                "example.com/gpu  3 free, 2 held, 1 unhealthy\n"
                "  gpu-0  0     held             2m     ml/train-0:main\n"
                "  gpu-2  0     free\n"
                "  gpu-4  0     free\n"
                "  gpu-1  1     held, unhealthy  2m     ml/train-0:main\n"
                "  gpu-3  1     unhealthy\n"
                "  gpu-5  -     free\n"
                "example.com/nic  0 free, 0 held, 1 gone\n"
                "  nic-0  -     gone\n"
                "tpu.example.com/n1  0 free, 1 held\n"
                "  tpu-7  -     held, gone              claim ml/fast\n"
                "\n\n\n\n\n\n\n\n\n"
                "1-11 of 11" HELP "\n"               },
        {"5",        80,  24,
         HEADER " 1 Devices 8  2 Claims 1  3 Pods 1  4 Plugins 1 [5 Events 1]\n"
                "AGE  TYPE     REASON         OBJECT              MESSAGE\n"
                "5s   Warning  FailedPrepare  ResourceClaim fast  the driver tpu.example.com is ~\n"
                "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
                "1-1 of 1" HELP "\n"                 },
        {"4",        80,  6,
         HEADER " 1 Devices 8  2 Claims 1  3 Pods 1 [4 Plugins 1] 5 Events 1\n"
                "PLUGIN           TYPE       STATE    ERROR\n"
                "tpu.example.com  DRAPlugin  failing  connect:\\x1b[31m refused\n"
                "\n"
                "1-1 of 1" HELP "\n"                 },
        {"jjj",      20,  5,
         "n1  davitd 1.2.3, u~\n"
         "[1 Devices 8] 2 Cla~\n"
         "DEVICE   NUMA  STATE\n"
         "  gpu-4  0     free\n"
         "4-4 of 11  q quit  ~\n"                    },
        {"\t\t",     40,  4,
         "n1  davitd 1.2.3, up 3h0m\n"
         " 1 Devices 8  2 Claims 1 [3 Pods 1] 4 P~\n"
         "POD         STATE    SINCE  WAITS FOR, ~\n"
         "0-0 of 1  q quit  Tab, 1-5 section  j/k~\n"},
        {"2",        120, 6,
         "n1  davitd 1.2.3, up 3h0m                                             "
         "               3 free, 3 held, 1 unhealthy, 1 gone\n"
         " 1 Devices 8 [2 Claims 1] 3 Pods 1  4 Plugins 1  5 Events 1\n"
         "CLAIM    STATE      DEVICES  PODS        WHY\n"
         "ml/fast  preparing  tpu-7    ml/train-0  waits for driver tpu.example.com\n"
         "\n"
         "1-1 of 1" HELP "\n"                        },
        {"/GPU-3\r", 80,  6,
         HEADER "[1 Devices 1] 2 Claims 0  3 Pods 0  4 Plugins 0  5 Events 0\n"
                "DEVICE   NUMA  STATE      SINCE  HELD BY\n"
                "example.com/gpu  3 free, 2 held, 1 unhealthy\n"
                "  gpu-3  1     unhealthy\n"
                "1-2 of 2" HELP ": GPU-3\n"          },
        {"",         1,   1,  "~\n"                  },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct world *world = make_world(arena);
    struct dv_buf text;

    (void)state;
    dv_buf_init(&text, SCREEN_BYTES_MAX);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_top_view view = {.width = cases[i].width, .height = cases[i].height};

        dv_top_press(&view, dv_str_from_c(cases[i].keys));
        draw(&world->data, &view, &text);
        assert_string_equal(dv_buf_c(&text), cases[i].want);
    }
    dv_buf_fini(&text);
}

static void a_tall_screen_shows_all_sections(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct world *world = make_world(arena);
    struct dv_top_view view = {.width = 200, .height = 60};
    struct dv_buf text;

    (void)state;
    dv_buf_init(&text, SCREEN_BYTES_MAX);
    draw(&world->data, &view, &text);
    assert_non_null(strstr(dv_buf_c(&text), "\nDevices\nDEVICE  "));
    assert_non_null(strstr(dv_buf_c(&text), "\nClaims\nCLAIM  "));
    assert_non_null(strstr(dv_buf_c(&text), "\nPods\nPOD  "));
    assert_non_null(strstr(dv_buf_c(&text), "\nPlugins\nPLUGIN  "));
    assert_non_null(strstr(dv_buf_c(&text), "is not there, and nobody knows when it comes back"
                                            " (x3)\n1-11 of 11"));
    dv_buf_fini(&text);
}

static void text_is_whole_where_there_is_no_terminal(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct world *world = make_world(arena);
    struct dv_top_view view = {.width = 4096};
    struct dv_buf text;

    (void)state;
    world->resource.n_devices = 0;
    node_v1__device_counts__init(&world->counts[0]);
    world->list.n_resources = 1;
    world->data.n_events = 0;
    world->data.events_note = DV_STR("no kubeconfig");
    dv_buf_init(&text, SCREEN_BYTES_MAX);
    draw(&world->data, &view, &text);
    assert_string_equal(dv_buf_c(&text),
                        "n1  davitd 1.2.3, up 3h0m  3 free, 3 held, 1 unhealthy, 1 gone\n"
                        "\n"
                        "Devices\n"
                        "DEVICE   NUMA  STATE       SINCE  HELD BY\n"
                        "example.com/gpu  0 free, 0 held\n"
                        "tpu.example.com/n1  0 free, 1 held\n"
                        "  tpu-7  -     held, gone         claim ml/fast\n"
                        "\n"
                        "Claims\n"
                        "CLAIM    STATE      DEVICES  PODS        WHY\n"
                        "ml/fast  preparing  tpu-7    ml/train-0  waits for driver "
                        "tpu.example.com\n"
                        "\n"
                        "Pods\n"
                        "POD         STATE    SINCE  WAITS FOR, OR IS NOT WELL\n"
                        "ml/train-0  waiting  65s    claim fast\n"
                        "\n"
                        "Plugins\n"
                        "PLUGIN           TYPE       STATE    ERROR\n"
                        "tpu.example.com  DRAPlugin  failing  connect:\\x1b[31m refused\n"
                        "\n"
                        "Events\n"
                        "no kubeconfig\n");
    dv_buf_fini(&text);
}

static void leases_are_shown_beside_pods(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct world *w = make_world(arena);
    const char *command[] = {"/usr/bin/train.py", "--fast"};
    NodeV1__Lease held = NODE_V1__LEASE__INIT;
    NodeV1__Lease waiting = NODE_V1__LEASE__INIT;
    NodeV1__Lease *all[] = {&held, &waiting};
    NodeV1__ListLeasesResponse leases = NODE_V1__LIST_LEASES_RESPONSE__INIT;
    struct dv_top_rows rows;

    (void)state;
    held.id = "abc123";
    held.state = "held";
    held.user = "ada";
    held.command = command;
    held.n_command = 2;
    held.since_ms = NOW_MS - 65000;
    waiting.id = "xyz789";
    waiting.state = "waiting";
    waiting.user = "1002\033[31m";
    waiting.place = 2;
    waiting.wanted = "4 example.com/gpu";
    waiting.since_ms = NOW_MS - 5000;
    leases.leases = all;
    leases.n_leases = 2;
    w->data.leases = &leases;
    /* The pod by which the lease holds its devices is not shown again. */
    w->pod.namespace_ = "default";
    w->pod.name = "lease-abc123";
    w->pod_status.lease = "abc123";
    dv_top_rows_make(&w->data, DV_TOP_PODS, DV_STR(""), arena, &rows);
    assert_int_equal(rows.n, 2);
    assert_string_equal(rows.v[0].cells[0], "lease/abc123 train.py of ada");
    assert_string_equal(rows.v[0].cells[1], "held");
    assert_string_equal(rows.v[0].cells[3], "");
    assert_null(strchr(rows.v[1].cells[0], '\033'));
    assert_string_equal(rows.v[1].cells[3], "4 example.com/gpu, 2 in the queue");
    w->pod.name = "lease-other"; /* a pod that only is called so */
    w->pod_status.lease = "";
    dv_top_rows_make(&w->data, DV_TOP_PODS, DV_STR(""), arena, &rows);
    assert_int_equal(rows.n, 3);
    dv_top_rows_make(&w->data, DV_TOP_PODS, DV_STR("train"), arena, &rows);
    assert_int_equal(rows.n, 1);
}

static void nothing_known_is_told(void **state)
{
    const struct dv_top_data data = {.trouble = DV_STR("no davitd answers on /x: gone")};
    struct dv_top_view view = {.width = 40, .height = 5};
    struct dv_buf text;

    (void)state;
    dv_buf_init(&text, SCREEN_BYTES_MAX);
    draw(&data, &view, &text);
    assert_string_equal(dv_buf_c(&text), "davit top  waiting for davitd\n"
                                         "[1 Devices 0] 2 Claims 0  3 Pods 0  4 P~\n"
                                         "no devices\n"
                                         "\n"
                                         "no davitd answers on /x: gone\n");
    dv_buf_fini(&text);
}

static void colours_do_not_count_as_columns(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct world *world = make_world(arena);
    struct dv_top_view view = {.width = 80, .height = 24, .has_colours = true};
    struct dv_buf text;

    (void)state;
    world->resource.name = "\xe4\xbd\xa0\xe5\xa5\xbd/gpu"; /* each as wide as two letters */
    dv_buf_init(&text, SCREEN_BYTES_MAX);
    draw(&world->data, &view, &text);
    assert_non_null(strstr(dv_buf_c(&text), "  gpu-3  1     "
                                            "\033[31munhealthy\033[0m"));
    assert_non_null(strstr(dv_buf_c(&text), "\033[7m 1 Devices 8 \033[0m"));
    view.width = 7;
    draw(&world->data, &view, &text);
    assert_non_null(strstr(dv_buf_c(&text), "\033[1m\xe4\xbd\xa0\xe5\xa5\xbd/g~\033[0m"));
    dv_buf_fini(&text);
}

static void keys_do_what_the_table_says(void **state)
{
    static const struct {
        const char *keys;
        enum dv_top_section section;
        size_t scroll;
        const char *filter;
        bool is_typing;
        bool is_over;
    } cases[] = {
        {"\t",              DV_TOP_CLAIMS,  0,        "",   false, false},
        {"\033[Z",          DV_TOP_EVENTS,  0,        "",   false, false},
        {"3",               DV_TOP_PODS,    0,        "",   false, false},
        {"\033[C\033OC",    DV_TOP_PODS,    0,        "",   false, false},
        {"9",               DV_TOP_DEVICES, 0,        "",   false, false},
        {"jj\033[Bk",       DV_TOP_DEVICES, 2,        "",   false, false},
        {"kk",              DV_TOP_DEVICES, 0,        "",   false, false},
        {"G",               DV_TOP_DEVICES, SIZE_MAX, "",   false, false},
        {"Gj",              DV_TOP_DEVICES, SIZE_MAX, "",   false, false},
        {"Gg",              DV_TOP_DEVICES, 0,        "",   false, false},
        {" \033[6~",        DV_TOP_DEVICES, 18,       "",   false, false},
        {" \033[5~",        DV_TOP_DEVICES, 0,        "",   false, false},
        {"q",               DV_TOP_DEVICES, 0,        "",   false, true },
        {"\003",            DV_TOP_DEVICES, 0,        "",   false, true },
        {"/q1",             DV_TOP_DEVICES, 0,        "q1", true,  false},
        {"/ab\177c\r",      DV_TOP_DEVICES, 0,        "ac", false, false},
        {"/a\303\244\177b", DV_TOP_DEVICES, 0,        "ab", true,  false},
        {"/ab\033",         DV_TOP_DEVICES, 0,        "",   false, false},
        {"/ab\r\033",       DV_TOP_DEVICES, 0,        "",   false, false},
        {"/ab\025c",        DV_TOP_DEVICES, 0,        "c",  true,  false},
        {"/a\033[Ab",       DV_TOP_DEVICES, 0,        "ab", true,  false},
        {"jj/a",            DV_TOP_DEVICES, 0,        "a",  true,  false},
        {"\033[1;5Qj",      DV_TOP_DEVICES, 1,        "",   false, false},
        {"\033[",           DV_TOP_DEVICES, 0,        "",   false, false},
        {"/\003",           DV_TOP_DEVICES, 0,        "",   true,  true },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_top_view view = {.width = 80, .height = 24, .page = 10};

        dv_top_press(&view, dv_str_from_c(cases[i].keys));
        if (view.section != cases[i].section || view.scroll[view.section] != cases[i].scroll ||
            strcmp(view.filter, cases[i].filter) != 0 || view.is_typing != cases[i].is_typing ||
            view.is_over != cases[i].is_over)
            fail_msg("case %zu: section %d, scroll %zu, filter \"%s\"", i, (int)view.section,
                     view.scroll[view.section], view.filter);
    }
}

static void a_long_filter_is_cut_at_its_limit(void **state)
{
    struct dv_top_view view = {.width = 80, .height = 24};

    (void)state;
    dv_top_press(&view, DV_STR("/"));
    for (size_t i = 0; i < 100; i++)
        dv_top_press(&view, DV_STR("\303\244"));
    assert_int_equal(strlen(view.filter), DV_TOP_FILTER_MAX / 2 * 2);
}

static void what_is_gone_is_not_scrolled_past(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct world *world = make_world(arena);
    struct dv_top_view view = {.width = 80, .height = 8};
    struct dv_buf text;

    (void)state;
    dv_buf_init(&text, SCREEN_BYTES_MAX);
    dv_top_press(&view, DV_STR("G"));
    draw(&world->data, &view, &text);
    assert_int_equal(view.scroll[DV_TOP_DEVICES], 7);
    world->list.n_resources = 0;
    draw(&world->data, &view, &text);
    assert_int_equal(view.scroll[DV_TOP_DEVICES], 0);
    dv_buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_screen_shows_the_chosen_section),
        cmocka_unit_test(a_tall_screen_shows_all_sections),
        cmocka_unit_test(text_is_whole_where_there_is_no_terminal),
        cmocka_unit_test(leases_are_shown_beside_pods),
        cmocka_unit_test(nothing_known_is_told),
        cmocka_unit_test(colours_do_not_count_as_columns),
        cmocka_unit_test(keys_do_what_the_table_says),
        cmocka_unit_test(a_long_filter_is_cut_at_its_limit),
        cmocka_unit_test(what_is_gone_is_not_scrolled_past),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
