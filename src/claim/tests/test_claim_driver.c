/* test_claim_driver.c - the drivers of test_claim_host.h. */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/vec.h"
#include "claim/claim.h"
#include "claim/tests/test_claim_host.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "pb/pb.h"
#include "plugin/plugin.h"
#include "store/store.h"
#include "support/dvtest.h"

#define MESSAGE_BYTES_MAX (15u << 20)

/* One call that is being answered. */
struct served {
    struct driver *driver;
    struct dv_server_call *call;
    enum dv_dra_service service;
    bool is_prepare;
    struct dv_link link;
    struct dv_arena *arena;
    DV_VEC(dv_str) uids;
    DV_VEC(dv_str) keys; /* of their records in the store */
};

static bool takes_one(const struct served *served)
{
    return served->service == DV_DRA_V1ALPHA2 || served->service == DV_DRA_V1ALPHA1;
}

/* ---- requests ---- */

static void read_claim(struct served *served, struct dv_pb_reader *reader)
{
    dv_str fields[4] = {{0}};
    struct dv_pb_field field;
    struct dv_err err;
    struct dv_buf key;

    while (!dv_pb_is_at_end(reader)) {
        assert_ok(dv_pb_read(reader, &field, &err), &err);
        if ((field.tag >> 3) < DV_COUNT(fields))
            fields[field.tag >> 3] = field.bytes;
    }
    *dv_vec_add_in(&served->uids, served->arena) = dv_str_copy(fields[2], served->arena);
    dv_buf_init(&key, SIZE_MAX);
    dv_buf_add_char(&key, 'c');
    dv_buf_add(&key, fields[1]);
    dv_buf_add(&key, (dv_str){"\0\1", 2});
    dv_buf_add(&key, fields[3]);
    dv_buf_add(&key, (dv_str){"\0\1", 2});
    *dv_vec_add_in(&served->keys, served->arena) = dv_str_copy(dv_buf_str(&key), served->arena);
    dv_buf_fini(&key);
}

static void read_request(struct served *served, dv_str request)
{
    struct dv_pb_reader reader;
    struct dv_pb_reader inner;
    struct dv_pb_field field;
    struct dv_err err;

    dv_pb_reader_init(&reader, request);
    if (takes_one(served)) {
        read_claim(served, &reader);
        return;
    }
    while (!dv_pb_is_at_end(&reader)) {
        assert_ok(dv_pb_read(&reader, &field, &err), &err);
        assert_ok(dv_pb_enter(&reader, &field, &inner, &err), &err);
        read_claim(served, &inner);
    }
}

/* ---- answers ---- */

static void add_device(const struct served *served, dv_str uid, size_t i, struct dv_buf *buf)
{
    const struct driver *driver = served->driver;
    char text[128];
    size_t mark = dv_pb_begin(buf, 1);

    if (driver->names_requests)
        dv_pb_add_bytes(buf, 1, DV_STR("r0"));
    dv_pb_add_bytes(buf, 2, DV_STR("pool"));
    (void)snprintf(text, sizeof(text), "dev%zu", i);
    dv_pb_add_bytes(buf, 3, i == 0 ? DV_STR("dev") : dv_str_from_c(text));
    (void)snprintf(text, sizeof(text), "vendor.example/gpu=%.*s", DV_FMT(uid));
    dv_pb_add_bytes(buf, 4, dv_str_from_c(driver->cdi_id ? driver->cdi_id : text));
    if (driver->share_id)
        dv_pb_add_bytes(buf, 5, dv_str_from_c(driver->share_id));
    dv_pb_end(buf, mark);
}

static void add_names(const struct served *served, dv_str uid, struct dv_buf *buf)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "vendor.example/gpu=%.*s", DV_FMT(uid));
    dv_pb_add_bytes(buf, 1, dv_str_from_c(served->driver->cdi_id ? served->driver->cdi_id : text));
}

static void add_answer(const struct served *served, dv_str uid, struct dv_buf *buf)
{
    const struct driver *driver = served->driver;
    size_t entry = dv_pb_begin(buf, 1);
    size_t value;

    dv_pb_add_bytes(buf, 1, uid);
    value = dv_pb_begin(buf, 2);
    if (driver->manner == DRIVER_REFUSES_CLAIMS)
        dv_pb_add_bytes(buf, served->is_prepare ? 2 : 1, DV_STR("not today"));
    else if (served->is_prepare && driver->is_generation_a)
        add_names(served, uid, buf);
    else if (served->is_prepare && driver->manner != DRIVER_ANSWERS_NULL)
        for (size_t i = 0; i < driver->n_devices; i++)
            add_device(served, uid, i, buf);
    dv_pb_end(buf, value);
    dv_pb_end(buf, entry);
}

/* What it does, whatever it then says. */
static void act(const struct served *served)
{
    struct driver *driver = served->driver;

    if (driver->manner == DRIVER_REFUSES_CLAIMS || driver->manner == DRIVER_FAILS)
        return;
    for (size_t i = 0; i < served->uids.n; i++) {
        if (served->is_prepare)
            (void)dv_map_set(&driver->prepared,
                             dv_str_copy(served->uids.v[i], driver->host->rig.arena), driver);
        else
            (void)dv_map_remove(&driver->prepared, served->uids.v[i]);
    }
}

static void reply(struct served *served)
{
    const struct driver *driver = served->driver;
    struct dv_buf buf;
    struct dv_err err;

    act(served);
    if (driver->manner == DRIVER_FAILS ||
        (driver->manner == DRIVER_REFUSES_CLAIMS && takes_one(served))) {
        (void)dv_fail(&err, DV_RESOURCE_EXHAUSTED, "not today");
        dv_server_call_finish(served->call, &err);
        return;
    }
    dv_buf_init(&buf, MESSAGE_BYTES_MAX);
    if (driver->manner == DRIVER_ANSWERS_NONSENSE)
        dv_buf_add(&buf, DV_STR("\x0a\xff"));
    else if (takes_one(served) && served->is_prepare)
        add_names(served, served->uids.v[0], &buf);
    else if (driver->manner != DRIVER_SKIPS && !takes_one(served))
        for (size_t i = 0; i < served->uids.n; i++)
            add_answer(served, served->uids.v[i], &buf);
    if (driver->manner == DRIVER_ADDS_UNKNOWN)
        add_answer(served, DV_STR("u-unknown"), &buf);
    dv_server_call_reply(served->call, dv_h2_msg_copy(dv_buf_str(&buf)));
    dv_buf_fini(&buf);
}

static void end_served(struct served *served)
{
    dv_link_remove(&served->link);
    dv_arena_free(served->arena);
    free(served);
}

static bool is_recorded(const struct served *served, dv_str key, const struct dv_store_row *rows,
                        size_t n_rows)
{
    struct dv_claim_record record;
    struct dv_err err;

    for (size_t i = 0; i < n_rows; i++)
        if (dv_str_eq(rows[i].key, key))
            return dv_claim_record_decode(key, rows[i].value, served->arena, &record, &err) &&
                   (record.phase == DV_CLAIM_UNPREPARING) == !served->is_prepare;
    return false;
}

static void on_cancelled(void *ctx, struct dv_server_call *call)
{
    struct served *served = ctx;

    dv_server_call_finish(call, NULL);
    end_served(served);
}

/* Counts the claims whose record is not on the disk although their driver is called. */
static void check_recorded(struct served *served)
{
    struct dv_store_row *rows;
    size_t n_rows = test_store_rows(served->driver->host->store, 0, served->arena, &rows);

    for (size_t i = 0; i < served->keys.n; i++)
        served->driver->n_unrecorded += !is_recorded(served, served->keys.v[i], rows, n_rows);
}

static void handle(struct driver *driver, struct dv_server_call *call, dv_str request,
                   enum dv_dra_service service, bool is_prepare)
{
    struct served *served = DV_ALLOC(struct served);

    served->driver = driver;
    served->call = call;
    served->service = service;
    served->is_prepare = is_prepare;
    served->arena = dv_arena_new();
    read_request(served, request);
    driver->n_prepare += is_prepare;
    driver->n_unprepare += !is_prepare;
    driver->n_claims = (int)served->uids.n;
    driver->n_connections = (int)dv_server_n_connections(driver->server);
    driver->deadline_ms = dv_server_call_deadline_ms(call);
    dv_buf_printf(&driver->methods, "%s ",
                  is_prepare ? dv_dra_prepare_method(service) : dv_dra_unprepare_method(service));
    check_recorded(served);
    if (driver->manner == DRIVER_HOLDS) {
        dv_server_call_on_cancel(call, on_cancelled, served);
        dv_list_push(&driver->held, &served->link);
        return;
    }
    reply(served);
    end_served(served);
}

void driver_answer(struct driver *driver)
{
    struct dv_link *link;

    while ((link = dv_list_shift(&driver->held)) != NULL) {
        struct served *served = DV_CONTAINER(link, struct served, link);

        reply(served);
        end_served(served);
    }
}

/* ---- the services ---- */

#define HANDLERS(name, service)                                                                    \
    static void prepare_##name(void *ctx, struct dv_server_call *call, dv_str request)             \
    {                                                                                              \
        handle(ctx, call, request, service, true);                                                 \
    }                                                                                              \
    static void unprepare_##name(void *ctx, struct dv_server_call *call, dv_str request)           \
    {                                                                                              \
        handle(ctx, call, request, service, false);                                                \
    }

HANDLERS(v1, DV_DRA_V1)
HANDLERS(v1beta1, DV_DRA_V1BETA1)
HANDLERS(v1alpha3, DV_DRA_V1ALPHA3)
HANDLERS(v1alpha2, DV_DRA_V1ALPHA2)
HANDLERS(v1alpha1, DV_DRA_V1ALPHA1)

static void on_watch_cancelled(void *ctx, struct dv_server_call *call)
{
    ((struct driver *)ctx)->watch = NULL;
    dv_server_call_finish(call, NULL);
}

static void watch(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct driver *driver = ctx;

    (void)request;
    driver->watch = call;
    driver->n_watches++;
    dv_server_call_on_cancel(call, on_watch_cancelled, driver);
}

static const struct {
    const char *version; /* in `versions`, or a word of the test's own */
    struct dv_method methods[2];
} services[] = {
    {"v1.DRAPlugin",
     {{"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources", prepare_v1},
      {"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources", unprepare_v1}}             },
    {"v1beta1.DRAPlugin",
     {{"/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources", prepare_v1beta1},
      {"/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources",
       unprepare_v1beta1}}                                                                            },
    {"v1alpha3.NodeService",
     {{"/v1alpha3.Node/NodePrepareResources", prepare_v1alpha3},
      {"/v1alpha3.Node/NodeUnprepareResources", unprepare_v1alpha3}}                                  },
    {"1.27.0",
     {{"/v1alpha2.Node/NodePrepareResource", prepare_v1alpha2},
      {"/v1alpha2.Node/NodeUnprepareResource", unprepare_v1alpha2}}                                   },
    {"1.26.0",
     {{"/v1alpha1.Node/NodePrepareResource", prepare_v1alpha1},
      {"/v1alpha1.Node/NodeUnprepareResource", unprepare_v1alpha1}}                                   },
    {"v1.DRAResourceHealth",       {{"/v1.DRAResourceHealth/NodeWatchResources", watch}, {NULL, NULL}}},
    {"v1alpha1.DRAResourceHealth",
     {{"/v1alpha1.DRAResourceHealth/NodeWatchResources", watch}, {NULL, NULL}}                        },
    {"1.30.0",                     {{"/v1alpha3.Node/NodeListAndWatchResources", watch}, {NULL, NULL}}},
};

static bool has_version(const struct driver *driver, const char *version)
{
    dv_str rest = dv_str_from_c(driver->versions);
    dv_str word;

    while (rest.n > 0 && dv_str_split(&rest, ' ', &word))
        if (dv_str_eq(word, dv_str_from_c(version)))
            return true;
    return false;
}

void driver_serve(struct driver *driver, struct host *host, const char *name, const char *file)
{
    struct dv_method *methods =
        DV_NEW_ARRAY(host->rig.arena, struct dv_method, 2 * DV_COUNT(services));
    struct dv_service service = {.methods = methods, .ctx = driver};
    struct dv_server_options options = {
        .name = DV_STR("driver"), .mode = 0600, .services = &service, .n_services = 1};
    struct dv_err err;

    if (!driver->host) {
        dv_buf_init(&driver->methods, 1u << 20);
        dv_map_init(&driver->prepared);
        dv_list_init(&driver->held);
        driver->n_devices = driver->n_devices ? driver->n_devices : 1;
    }
    driver->host = host;
    driver->name = name;
    if (!driver->versions)
        driver->versions = "v1.DRAPlugin";
    for (size_t i = 0; i < DV_COUNT(services); i++)
        for (size_t k = 0; has_version(driver, services[i].version) && k < 2; k++)
            if (services[i].methods[k].path)
                methods[service.n_methods++] = services[i].methods[k];
    (void)snprintf(driver->path, sizeof(driver->path), "%s/%s", host->rig.dir, file);
    driver->server = dv_server_open(host->rig.loop, dv_str_from_c(driver->path), &options, &err);
    assert_ok(driver->server, &err);
    host->n_serving++;
}

static void on_registered(struct dv_plugin_registration *registration, const struct dv_err *err)
{
    struct driver *driver = DV_CONTAINER(registration, struct driver, registration);

    driver->n_registered++;
    if (err)
        driver->err = *err;
    else
        (void)dv_succeed(&driver->err);
}

static struct dv_plugin_info info_of(struct driver *driver)
{
    DV_VEC(dv_str) versions = {0};
    dv_str rest = dv_str_from_c(driver->versions);
    dv_str word;

    while (rest.n > 0 && dv_str_split(&rest, ' ', &word))
        *dv_vec_add_in(&versions, driver->host->rig.arena) = word;
    return (struct dv_plugin_info){
        .type = DV_STR("DRAPlugin"),
        .name = dv_str_from_c(driver->name),
        .endpoint = dv_str_from_c(driver->path),
        .versions = versions.v,
        .n_versions = versions.n,
    };
}

void driver_register(struct driver *driver)
{
    struct dv_plugin_handler handler = dv_claim_manager_handler(driver->host->claims);
    struct dv_plugin_info info = info_of(driver);
    int n = driver->n_registered;

    driver->registration = (struct dv_plugin_registration){.done = on_registered, .info = &info};
    handler.start(handler.ctx, &driver->registration);
    assert_int_equal(driver->n_registered, n);
    host_wait_count(driver->host, &driver->n_registered, n + 1);
}

void driver_deregister(struct driver *driver)
{
    struct dv_plugin_handler handler = dv_claim_manager_handler(driver->host->claims);
    struct dv_plugin_info info = info_of(driver);

    handler.deregister(handler.ctx, &info);
}

void driver_start(struct driver *driver, struct host *host, const char *name, const char *file)
{
    driver_serve(driver, host, name, file);
    driver_register(driver);
    assert_ok(driver->err.code == DV_OK, &driver->err);
    host_wait_connected(host, name, true);
}

void driver_stop(struct driver *driver)
{
    int n_closed = driver->host->rig.n_closed;

    if (!driver->server)
        return;
    dv_server_close(driver->server, 0, rig_on_closed, &driver->host->rig);
    driver->server = NULL;
    driver->host->n_serving--;
    host_wait_count(driver->host, &driver->host->rig.n_closed, n_closed + 1);
}

void driver_end(struct driver *driver)
{
    driver_stop(driver);
    dv_map_fini(&driver->prepared);
    dv_buf_fini(&driver->methods);
}

bool driver_has(const struct driver *driver, const char *uid)
{
    return dv_map_get(&driver->prepared, dv_str_from_c(uid)) != NULL;
}

/* ---- health ---- */

void driver_send(struct driver *driver, dv_str message)
{
    struct dv_h2_msg *msg = dv_h2_msg_copy(message);
    struct dv_err err;

    assert_non_null(driver->watch);
    assert_ok(dv_server_call_send(driver->watch, msg, &err), &err);
    dv_h2_msg_unref(msg);
}

void driver_tell_health(struct driver *driver, const char *devices)
{
    dv_str rest = dv_str_from_c(devices);
    struct dv_buf buf;
    dv_str word;

    dv_buf_init(&buf, SIZE_MAX);
    while (rest.n > 0 && dv_str_split(&rest, ' ', &word)) {
        size_t slash = dv_str_find_char(word, '/');
        size_t equals = dv_str_find_char(word, '=');
        size_t colon = dv_str_find_char(word, ':');
        size_t mark = dv_pb_begin(&buf, 1);
        size_t inner = dv_pb_begin(&buf, 1);

        dv_pb_add_bytes(&buf, 1, dv_str_slice(word, 0, slash));
        dv_pb_add_bytes(&buf, 2, dv_str_slice(word, slash + 1, equals));
        dv_pb_end(&buf, inner);
        dv_pb_add_number(&buf, 2, (uint64_t)(word.p[equals + 1] - '0'));
        dv_pb_add_bytes(&buf, 5, dv_str_slice(word, colon + 1, word.n));
        dv_pb_end(&buf, mark);
    }
    driver_send(driver, dv_buf_str(&buf));
    dv_buf_fini(&buf);
}
