#include "pod/tests/test_pod_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "store/store.h"
#include "store/store_saver.h"
#include "support/dvtest.h"

/* ---- life ---- */

static void on_devices_changed(void *ctx)
{
    struct host *host = ctx;

    if (host->pods)
        dv_pods_look_again(host->pods);
}

static void on_ended(void *ctx, const struct dv_pod_verdict *verdict,
                     const struct dv_pod_times *times)
{
    struct host *host = ctx;

    host->n_ended++;
    host->n_verdicts += verdict != NULL;
    host->times = *times;
}

static void open_all(struct host *host)
{
    const struct dv_device_manager_options devices = {
        .kubelet_dir = dv_str_from_c(host->rig.dir),
        .store = host->store,
        .table = DV_TABLE_DEVICES,
        .changed = on_devices_changed,
        .ctx = host,
    };
    struct dv_pods_options pods = {
        .store = host->store,
        .topology = &host->topology,
        .machine = &host->machine,
        .wait_ms = DV_POD_WAIT_MS,
        .ended = on_ended,
        .ctx = host,
    };
    struct dv_err err;

    host->devices = dv_device_manager_open(host->rig.loop, &devices, &err);
    assert_ok(host->devices, &err);
    pods.devices = host->devices;
    host->pods = dv_pods_open(host->rig.loop, &pods, &err);
    assert_ok(host->pods, &err);
    host_start_plugin(host);
}

static void open_memory(struct host *host)
{
    host->faults = (struct test_store_faults){0};
    host->store = test_store_open(host->rig.loop, &dv_node_schema, &host->faults);
    open_all(host);
}

void host_close(struct host *host)
{
    int n_closed = host->rig.n_closed;
    struct dv_pods *pods = host->pods;

    host->pods = NULL;
    dv_pods_close(pods, rig_on_closed, &host->rig);
    rig_wait_count(&host->rig, &host->rig.n_closed, n_closed + 1);
    dv_device_manager_close(host->devices, rig_on_closed, &host->rig);
    host->devices = NULL;
    rig_wait_count(&host->rig, &host->rig.n_closed, n_closed + 2);
    dv_store_close(host->store, rig_on_closed, &host->rig);
    rig_wait_count(&host->rig, &host->rig.n_closed, n_closed + 3);
    device_plugin_kill(&host->plugin);
    host->store = NULL;
}

void host_renew(struct host *host)
{
    host_close(host);
    open_memory(host);
}

void host_reopen_on_disk(struct host *host)
{
    char path[96];

    host_close(host);
    (void)snprintf(path, sizeof(path), "%s/state.db", host->rig.dir);
    host->store = test_store_open_at(host->rig.loop, path, &dv_node_schema, &host->faults);
    open_all(host);
}

int host_start(void **state)
{
    struct host *host = DV_ALLOC(struct host);
    struct dv_err err;

    rig_init(&host->rig, "pod");
    assert_ok(dv_topology_machine_parse(DV_STR("0"), host->rig.arena, &host->machine, &err), &err);
    assert_ok(dv_topology_config_parse(DV_STR("none"), DV_STR("container"), NULL, 0, &host->machine,
                                       &host->topology, &err),
              &err);
    (void)snprintf(host->plugins, sizeof(host->plugins), "%s/device-plugins", host->rig.dir);
    open_memory(host);
    *state = host;
    return 0;
}

int host_end(void **state)
{
    struct host *host = *state;

    if (host->pods)
        host_close(host);
    rig_fini(&host->rig);
    free(host);
    return 0;
}

/* ---- the plugin ---- */

static size_t n_healthy(const struct host *host)
{
    struct dv_device_resource_info info;

    return dv_device_find(dv_device_manager_state(host->devices), DV_STR(GPU), &info)
               ? info.n_healthy
               : 0;
}

static bool is_there(void *ctx)
{
    return n_healthy(ctx) == 4;
}

static bool is_gone(void *ctx)
{
    return n_healthy(ctx) == 0;
}

void host_start_plugin(struct host *host)
{
    device_plugin_start(&host->plugin, host->rig.loop, host->plugins, "a.sock", GPU, "g0 g1 g2 g3");
    device_plugin_register(&host->plugin, host->plugins);
    rig_wait(&host->rig, is_there, host);
}

void host_kill_plugin(struct host *host)
{
    device_plugin_kill(&host->plugin);
    rig_wait(&host->rig, is_gone, host);
}

/* ---- pods ---- */

static void on_admitted(struct dv_pod_admission *admission, const struct dv_pod_verdict *verdict,
                        const struct dv_err *err)
{
    struct asked *asked = DV_CONTAINER(admission, struct asked, admission);

    asked->n_done++;
    if (err) {
        asked->err = *err;
        return;
    }
    asked->is_admitted = verdict->is_admitted;
    (void)snprintf(asked->reason, sizeof(asked->reason), "%s",
                   verdict->is_admitted ? "" : dv_pod_refusal_name(verdict->refusal));
    if (!verdict->is_admitted)
        (void)dv_fail(&asked->err, DV_OK, "%.*s", DV_FMT(verdict->message));
}

void host_ask_input(struct host *host, struct asked *asked, struct dv_pod_input *input)
{
    *asked = (struct asked){.admission = {.done = on_admitted}};
    dv_pods_admit(host->pods, &asked->admission, input, UINT64_MAX);
    assert_int_equal(asked->n_done, 0);
}

void host_ask(struct host *host, struct asked *asked, const char *uid, const char *amounts)
{
    struct dv_buf json;
    dv_str rest = dv_str_from_c(amounts);
    struct dv_pod_input *input;
    struct dv_err err;
    dv_str amount;
    int n = 0;

    dv_buf_init(&json, 1u << 20);
    dv_buf_printf(&json,
                  "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\","
                  "\"uid\":\"%s\"},\"spec\":{\"containers\":[",
                  uid, uid);
    while (rest.n > 0 && dv_str_split(&rest, ' ', &amount)) {
        dv_buf_printf(&json, "%s{\"name\":\"c%d\",\"resources\":{\"limits\":{\"" GPU "\":%.*s}}}",
                      n > 0 ? "," : "", n, DV_FMT(amount));
        n++;
    }
    dv_buf_add_c(&json, "]}}");
    input = dv_pod_input_parse(dv_buf_str(&json), &err);
    assert_ok(input != NULL, &err);
    dv_buf_fini(&json);
    host_ask_input(host, asked, input);
}

enum dv_code host_admit(struct host *host, struct asked *asked, const char *uid,
                        const char *amounts)
{
    host_ask(host, asked, uid, amounts);
    rig_wait_count(&host->rig, &asked->n_done, 1);
    return asked->err.code;
}

static void on_released(struct dv_pod_release *release, bool was_known, const struct dv_err *err)
{
    struct asked *asked = DV_CONTAINER(release, struct asked, release);

    asked->n_done++;
    asked->was_known = was_known;
    if (err)
        asked->err = *err;
}

void host_begin_release(struct host *host, struct asked *asked, const char *uid)
{
    const struct dv_pod_ref ref = {.uid = dv_str_from_c(uid)};

    *asked = (struct asked){.release = {.done = on_released}};
    dv_pods_release(host->pods, &asked->release, &ref);
}

enum dv_code host_release(struct host *host, struct asked *asked, const char *uid)
{
    host_begin_release(host, asked, uid);
    rig_wait_count(&host->rig, &asked->n_done, 1);
    return asked->err.code;
}

/* ---- what there is ---- */

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "p0=g0,g1" with what the state has for it. */
static const char *pod_text(const struct dv_device_state *state, dv_str uid, struct dv_arena *arena)
{
    const struct dv_device_record *records;
    size_t n = dv_device_records_of_pod(state, uid, arena, &records);
    dv_str text = dv_str_printf(arena, "%.*s=", DV_FMT(uid));
    bool is_first = true;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < records[i].n_placed; k++)
            for (size_t m = 0; m < records[i].placed[k].n_ids; m++) {
                text = dv_str_printf(arena, "%.*s%s%.*s", DV_FMT(text), is_first ? "" : ",",
                                     DV_FMT(records[i].placed[k].ids[m]));
                is_first = false;
            }
    return dv_str_to_c(text, arena);
}

static const char *join(const char **texts, size_t n, struct dv_arena *arena)
{
    dv_str text = DV_STR("");

    if (n > 0)
        qsort(texts, n, sizeof(texts[0]), compare_text);
    for (size_t i = 0; i < n; i++)
        text = dv_str_printf(arena, "%.*s%s ", DV_FMT(text), texts[i]);
    return dv_str_to_c(text, arena);
}

const char *host_pods(struct host *host)
{
    const char **texts = DV_NEW_ARRAY(host->rig.arena, const char *, dv_pods_count(host->pods));
    struct dv_pod_view view;
    size_t at = 0;
    size_t n = 0;

    while (dv_pods_next(host->pods, &at, &view))
        texts[n++] =
            pod_text(dv_device_manager_state(host->devices), view.spec->ref.uid, host->rig.arena);
    return join(texts, n, host->rig.arena);
}

struct saving {
    struct dv_save save;
    int n_done;
};

static void on_saved(struct dv_save *save, const struct dv_err *err)
{
    assert_null(err);
    DV_CONTAINER(save, struct saving, save)->n_done++;
}

const char *host_stored(struct host *host)
{
    struct saving saving = {.save = {.done = on_saved}};
    struct dv_device_state *state = dv_device_state_new(NULL);
    struct dv_store_row *devices;
    struct dv_store_row *pods;
    size_t n_devices;
    size_t n_pods;
    const char **texts;
    const char *text;
    struct dv_err err;

    dv_device_manager_save(host->devices, &saving.save); /* with all that waits */
    rig_wait_count(&host->rig, &saving.n_done, 1);
    test_store_wait(host->store);
    n_devices = test_store_rows(host->store, DV_TABLE_DEVICES, host->rig.arena, &devices);
    n_pods = test_store_rows(host->store, DV_TABLE_PODS, host->rig.arena, &pods);
    for (size_t i = 0; i < n_devices; i++)
        assert_ok(dv_device_load(state, devices[i].key, devices[i].value, 1, &err), &err);
    texts = DV_NEW_ARRAY(host->rig.arena, const char *, n_pods);
    for (size_t i = 0; i < n_pods; i++)
        texts[i] = pod_text(state, pods[i].key, host->rig.arena);
    text = join(texts, n_pods, host->rig.arena);
    dv_device_state_free(state);
    return text;
}

void host_check(struct host *host, const char *pods)
{
    assert_string_equal(host_pods(host), pods);
    assert_string_equal(host_stored(host), pods);
}
