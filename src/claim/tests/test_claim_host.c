#include "claim/tests/test_claim_host.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "claim/claim.h"
#include "store/store.h"
#include "support/dvtest.h"
#include "support/turns.h"

/* ---- waiting ---- */

void host_wait(struct host *host, bool (*is_met)(void *ctx), void *ctx)
{
    rig_wait(&host->rig, is_met, ctx);
}

struct wait {
    struct host *host;
    const int *count;
    int n;
    const struct dv_buf *buf;
    const char *text;
    bool is_connected;
};

static bool has_count(void *ctx)
{
    const struct wait *wait = ctx;

    return *wait->count >= wait->n;
}

void host_wait_count(struct host *host, const int *count, int at_least)
{
    host_wait(host, has_count, &(struct wait){.count = count, .n = at_least});
}

static bool has_text(void *ctx)
{
    const struct wait *wait = ctx;

    return strstr(dv_buf_c(wait->buf), wait->text) != NULL;
}

void host_wait_text(struct host *host, const struct dv_buf *buf, const char *text)
{
    host_wait(host, has_text, &(struct wait){.buf = buf, .text = text});
}

void host_turn(struct host *host)
{
    struct mark mark;

    mark_post(&mark, host->rig.loop);
    host_wait_count(host, &mark.n_passed, 1);
}

/* A way through the store's thread and the sockets and back. */
void host_settle(struct host *host)
{
    for (int i = 0; i < 12; i++) {
        test_store_wait(host->store);
        host_turn(host);
    }
}

void host_advance(struct host *host, uint64_t ms)
{
    dv_clock_virtual_advance_ms(&host->rig.clock, ms);
    host_turn(host);
    host_settle(host);
}

/* ---- the node ---- */

static bool is_wanted(void *ctx, dv_str pod_uid)
{
    struct host *host = ctx;
    dv_str rest = dv_buf_str(&host->gone_pods);
    dv_str word;

    while (rest.n > 0 && dv_str_split(&rest, ' ', &word))
        if (dv_str_eq(word, pod_uid))
            return false;
    return true;
}

static void on_pods_changed(void *ctx, const dv_str *uids, size_t n)
{
    struct host *host = ctx;

    for (size_t i = 0; i < n; i++)
        dv_buf_printf(&host->pods_changed, "%.*s ", DV_FMT(uids[i]));
    dv_buf_add_char(&host->pods_changed, ';');
}

static void on_operation(void *ctx, const char *name, bool is_error, uint64_t ns)
{
    (void)ns;
    dv_buf_printf(&((struct host *)ctx)->metrics, "%s %s;", name, is_error ? "error" : "ok");
}

static void on_call(void *ctx, dv_str driver, const char *method, enum dv_code code, uint64_t ns)
{
    (void)ns;
    dv_buf_printf(&((struct host *)ctx)->metrics, "%.*s %s %s;", DV_FMT(driver),
                  strrchr(method, '/') + 1, dv_code_go_name(code));
}

void host_open(struct host *host)
{
    struct dv_err err;

    host->options.store = host->store;
    host->claims = dv_claim_manager_open(host->rig.loop, &host->options, &err);
    assert_ok(host->claims, &err);
}

void host_close(struct host *host)
{
    int n_closed = host->rig.n_closed;

    dv_claim_manager_close(host->claims, rig_on_closed, &host->rig);
    host->claims = NULL;
    host_wait_count(host, &host->rig.n_closed, n_closed + 1);
}

void host_die(struct host *host)
{
    host_die_at_write(host, 1);
}

void host_die_at_write(struct host *host, uint64_t n)
{
    host->faults =
        (struct test_store_faults){.n_until = n, .code = DV_DATA_LOSS, .is_for_good = true};
}

bool host_has_died(const struct host *host)
{
    return host->faults.is_for_good && host->faults.n_failed > 0;
}

static void open_store(struct host *host)
{
    static const char *const tables[] = {"claims"};
    static const struct dv_store_schema schema = {.tables = tables, .n_tables = 1};

    host->store = test_store_open(host->rig.loop, &schema, &host->faults);
}

static void close_store(struct host *host)
{
    int n_closed = host->rig.n_closed;

    dv_store_close(host->store, rig_on_closed, &host->rig);
    host_wait_count(host, &host->rig.n_closed, n_closed + 1);
}

void host_come_back(struct host *host)
{
    host_die(host);
    host_close(host);
    host->faults = (struct test_store_faults){0};
    host->store = test_store_reopen(host->store);
    host_open(host);
}

int host_start(void **state)
{
    struct host *host = DV_ALLOC(struct host);

    rig_init(&host->rig, "claim");
    dv_buf_init(&host->pods_changed, 1u << 20);
    dv_buf_init(&host->metrics, 1u << 20);
    dv_buf_init(&host->gone_pods, 1u << 20);
    dv_buf_init(&host->api.wiped, 1u << 20);
    open_store(host);
    host->api.cluster = (struct dv_cluster){.engine = &api_engine, .loop = host->rig.loop};
    host->api.host = host;
    dv_list_init(&host->api.held);
    dv_map_init(&host->api.objects);
    host->options = (struct dv_claim_manager_options){
        .cluster = &host->api.cluster,
        .node_name = DV_STR("node-1"),
        .boot_id = DV_STR("boot-1"),
        .is_wanted = is_wanted,
        .pods_changed = on_pods_changed,
        .operation_ended = on_operation,
        .call_ended = on_call,
        .ctx = host,
    };
    host_open(host);
    *state = host;
    return 0;
}

int host_end(void **state)
{
    struct host *host = *state;
    const struct dv_map_entry *entry;

    if (host->n_serving > 0)
        return 0; /* a test that failed has left its drivers behind */
    if (host->claims)
        host_close(host);
    close_store(host);
    for (size_t at = 0; (entry = dv_map_next(&host->api.objects, &at)) != NULL;)
        dv_object_unref(entry->value);
    dv_map_fini(&host->api.objects);
    dv_buf_fini(&host->pods_changed);
    dv_buf_fini(&host->metrics);
    dv_buf_fini(&host->gone_pods);
    dv_buf_fini(&host->api.wiped);
    rig_fini(&host->rig);
    free(host);
    return 0;
}

/* ---- operations ---- */

static void on_done(struct dv_claim_operation *operation, const struct dv_err *err)
{
    struct pending *pending = DV_CONTAINER(operation, struct pending, operation);

    pending->n_done++;
    if (err)
        pending->err = *err;
}

static void pending_init(struct pending *pending)
{
    struct dv_claim_operation asked = {
        .done = on_done,
        .wait_ms = pending->operation.wait_ms,
        .may_prepare = pending->operation.may_prepare,
    };

    *pending = (struct pending){.operation = asked};
}

void pending_prepare(struct host *host, struct pending *pending, const struct dv_api_pod *pod)
{
    pending_init(pending);
    dv_claim_manager_prepare(host->claims, &pending->operation, pod);
}

void pending_unprepare(struct host *host, struct pending *pending, const char *pod)
{
    pending_init(pending);
    dv_claim_manager_unprepare(host->claims, &pending->operation, dv_str_from_c(pod));
}

const char *pending_end(struct host *host, struct pending *pending)
{
    host_wait_count(host, &pending->n_done, 1);
    assert_int_equal(pending->n_done, 1);
    return dv_str_to_c(dv_str_from_c(pending->err.msg), host->rig.arena);
}

const char *host_prepare(struct host *host, const struct dv_api_pod *pod)
{
    struct pending pending = {0};

    pending_prepare(host, &pending, pod);
    return pending_end(host, &pending);
}

const char *host_unprepare(struct host *host, const char *pod)
{
    struct pending pending = {0};

    pending_unprepare(host, &pending, pod);
    return pending_end(host, &pending);
}

const char *host_claim(struct host *host, const char *name)
{
    const struct dv_claim *claim =
        dv_claim_find(dv_claim_manager_state(host->claims), DV_STR("ns"), dv_str_from_c(name));
    dv_str text;

    if (!claim)
        return "-";
    text = dv_str_from_c(dv_claim_phase_name(claim->record.phase));
    for (size_t i = 0; i < claim->record.n_drivers; i++)
        text = dv_str_printf(host->rig.arena, "%.*s %.*s:%zu", DV_FMT(text),
                             DV_FMT(claim->record.drivers[i].name),
                             claim->record.drivers[i].n_devices);
    for (size_t i = 0; i < claim->record.n_pods; i++)
        text = dv_str_printf(host->rig.arena, "%.*s %.*s", DV_FMT(text),
                             DV_FMT(claim->record.pods[i]));
    return dv_str_to_c(text, host->rig.arena);
}

const char *host_names(struct host *host, const struct dv_api_pod *pod)
{
    DV_CLEANUP(dv_claim_lookup_fini) struct dv_claim_lookup lookup = {0};
    struct dv_claim_cdi_name *names;
    dv_str text = DV_STR("");
    struct dv_err err;
    size_t n;

    dv_claim_lookup_init(&lookup, pod);
    if (!dv_claim_cdi_names(dv_claim_manager_state(host->claims), &lookup, &pod->spec.containers[0],
                            host->rig.arena, &names, &n, &err))
        return dv_str_to_c(dv_str_from_c(err.msg), host->rig.arena);
    for (size_t i = 0; i < n; i++)
        text = dv_str_printf(host->rig.arena, "%.*s%s%.*s", DV_FMT(text), i > 0 ? " " : "",
                             DV_FMT(names[i].id));
    return dv_str_to_c(text, host->rig.arena);
}

static bool is_connected(void *ctx)
{
    const struct wait *wait = ctx;

    return dv_dra_is_usable(dv_claim_manager_drivers(wait->host->claims),
                            dv_str_from_c(wait->text)) == wait->is_connected;
}

void host_wait_connected(struct host *host, const char *driver, bool should)
{
    host_wait(host, is_connected,
              &(struct wait){.host = host, .text = driver, .is_connected = should});
}
