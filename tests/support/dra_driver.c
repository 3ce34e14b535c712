#include "support/dra_driver.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "pb/pb.h"
#include "support/dvtest.h"

#define MESSAGE_BYTES_MAX (1u << 20)
#define SERVICE "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"

/* Of a claim: its uid is the second field. */
static dv_str read_uid(struct dv_pb_reader *reader)
{
    struct dv_pb_field field;
    struct dv_err err;
    dv_str uid = DV_STR("");

    while (!dv_pb_is_at_end(reader)) {
        assert_ok(dv_pb_read(reader, &field, &err), &err);
        if ((field.tag >> 3) == 2)
            uid = field.bytes;
    }
    return uid;
}

static void add_device(const struct dra_driver *driver, struct dv_buf *buf)
{
    size_t mark = dv_pb_begin(buf, 1);

    dv_pb_add_bytes(buf, 2, DV_STR("pool"));
    dv_pb_add_bytes(buf, 3, dv_str_from_c(driver->device ? driver->device : "dev"));
    if (driver->cdi_id)
        dv_pb_add_bytes(buf, 4, dv_str_from_c(driver->cdi_id));
    dv_pb_end(buf, mark);
}

static void answer_claim(struct dra_driver *driver, dv_str uid, bool is_prepare, struct dv_buf *buf)
{
    bool is_refused = is_prepare ? driver->refuses : driver->keeps;
    size_t entry = dv_pb_begin(buf, 1);
    char refusal[64];
    size_t value;
    int n = snprintf(refusal, sizeof(refusal), "not today: attempt %d failed",
                     is_prepare ? driver->n_prepare : driver->n_unprepare);

    dv_pb_add_bytes(buf, 1, uid);
    value = dv_pb_begin(buf, 2);
    if (is_refused)
        dv_pb_add_bytes(buf, is_prepare ? 2 : 1, (dv_str){refusal, (size_t)n});
    else if (is_prepare)
        add_device(driver, buf);
    dv_pb_end(buf, value);
    dv_pb_end(buf, entry);
    if (is_refused)
        return;
    if (is_prepare)
        (void)dv_map_set(&driver->prepared, dv_str_copy(uid, driver->arena), driver);
    else
        (void)dv_map_remove(&driver->prepared, uid);
}

static void on_cancelled(void *ctx, struct dv_server_call *call)
{
    (void)ctx;
    dv_server_call_finish(call, NULL);
}

static void answer(struct dra_driver *driver, struct dv_server_call *call, dv_str request,
                   bool is_prepare)
{
    struct dv_pb_reader reader;
    struct dv_pb_reader inner = {0};
    struct dv_pb_field field;
    struct dv_buf buf;
    struct dv_err err;

    if (driver->holds) {
        dv_server_call_on_cancel(call, on_cancelled, driver);
        return;
    }
    dv_buf_init(&buf, MESSAGE_BYTES_MAX);
    dv_pb_reader_init(&reader, request);
    while (!dv_pb_is_at_end(&reader)) {
        assert_ok(dv_pb_read(&reader, &field, &err), &err);
        assert_ok(dv_pb_enter(&reader, &field, &inner, &err), &err);
        answer_claim(driver, read_uid(&inner), is_prepare, &buf);
    }
    dv_server_call_reply(call, dv_h2_msg_copy(dv_buf_str(&buf)));
    dv_buf_fini(&buf);
}

static void handle_prepare(void *ctx, struct dv_server_call *call, dv_str request)
{
    ((struct dra_driver *)ctx)->n_prepare++;
    answer(ctx, call, request, true);
}

static void handle_unprepare(void *ctx, struct dv_server_call *call, dv_str request)
{
    ((struct dra_driver *)ctx)->n_unprepare++;
    answer(ctx, call, request, false);
}

void dra_driver_start(struct dra_driver *driver, struct dv_loop *loop, const char *dir,
                      const char *name)
{
    static const struct dv_method methods[] = {
        {SERVICE "NodePrepareResources",   handle_prepare  },
        {SERVICE "NodeUnprepareResources", handle_unprepare},
    };
    const struct dv_service service = {
        .methods = methods, .n_methods = DV_COUNT(methods), .ctx = driver};
    const struct dv_server_options options = {
        .name = DV_STR("driver"), .mode = 0600, .services = &service, .n_services = 1};
    struct dv_err err;

    if (!driver->arena) {
        driver->arena = dv_arena_new();
        dv_map_init(&driver->prepared);
    }
    driver->loop = loop;
    driver->name = name;
    (void)snprintf(driver->path, sizeof(driver->path), "%s/%s.sock", dir, name);
    driver->server = dv_server_open(loop, dv_str_from_c(driver->path), &options, &err);
    assert_ok(driver->server, &err);
}

static void on_registered(struct dv_plugin_registration *registration, const struct dv_err *err)
{
    if (err)
        fail_msg("the driver is not taken: %s", err->msg);
    DV_CONTAINER(registration, struct dra_driver, registration)->n_registered++;
}

void dra_driver_register(struct dra_driver *driver, struct dv_claim_manager *claims)
{
    static const dv_str versions[] = {DV_STR_INIT("v1.DRAPlugin")};
    struct dv_plugin_handler handler = dv_claim_manager_handler(claims);

    driver->info = (struct dv_plugin_info){
        .type = DV_STR("DRAPlugin"),
        .name = dv_str_from_c(driver->name),
        .endpoint = dv_str_from_c(driver->path),
        .versions = versions,
        .n_versions = DV_COUNT(versions),
    };
    driver->registration =
        (struct dv_plugin_registration){.done = on_registered, .info = &driver->info};
    handler.start(handler.ctx, &driver->registration);
}

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_true(void *ctx)
{
    return *(const bool *)ctx;
}

void dra_driver_kill(struct dra_driver *driver)
{
    bool is_closed = false;

    if (!driver->server)
        return;
    dv_server_close(driver->server, 0, on_closed, &is_closed);
    driver->server = NULL;
    assert_true(dv_loop_run_until(driver->loop, is_true, &is_closed, 20000));
}

void dra_driver_fini(struct dra_driver *driver)
{
    dra_driver_kill(driver);
    if (!driver->arena)
        return;
    dv_map_fini(&driver->prepared);
    dv_arena_free(driver->arena);
    driver->arena = NULL;
}
