/* bench_cluster - the embedded API: durable creates, reads, lists, watches, memory, restart.
 *
 *     bench_cluster [DIRECTORY...]     the default: one on /tmp, one in memory (/dev/shm)
 *
 * Creates stand beside the store's floor: the same bytes written by the store alone, with as many
 * in flight. */
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "loop/loop.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "store/store.h"
#include "support/bench.h"
#include "support/embedded_count.h"
#include "support/store_files.h"
#include "json/json.h"

#define N_CLIENTS_MAX 64u
#define CREATE_MS 1500u
#define N_LIST 5000u
#define N_RESTART 50000u
#define N_WATCHERS 100u
#define N_EVENTS 1000u
#define WAIT_MS 600000u

static const char *const tables[] = {"objects", "meta"};
static const struct dv_store_schema schema = {.tables = tables, .n_tables = 2};

struct bench;

struct client {
    struct bench *bench;
    struct dv_request request;
    struct dv_store_write write;
    struct dv_arena *arena;
    uint64_t begin_ns;
    char key[40];
};

struct bench {
    struct dv_loop *loop;
    struct dv_store *store;
    struct dv_embedded *embedded;
    struct dv_cluster *cluster;
    struct dv_arena *arena;
    const char *dir;
    char path[200];
    /* a run */
    enum dv_kind_id kind;
    void *value;
    dv_str text; /* the same as it is stored: for the floor */
    size_t n_made;
    size_t n_max;
    uint64_t until_ns;
    size_t n_busy;
    struct client clients[N_CLIENTS_MAX];
    DV_VEC(uint64_t) ns;
    size_t n_events;
};

/* ---- life ---- */

static void set_true(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_true(void *ctx)
{
    return *(const bool *)ctx;
}

static void wait_for(struct bench *bench, bool (*is_met)(void *ctx), void *ctx)
{
    bench_must(dv_loop_run_until(bench->loop, is_met, ctx, WAIT_MS), "waiting", NULL);
}

static void on_damaged(void *ctx, const char *set_aside)
{
    (void)ctx;
    (void)fprintf(stderr, "damaged: %s\n", set_aside);
    exit(1);
}

static bool is_ready(void *ctx)
{
    const struct bench *bench = ctx;

    return embedded_count(bench->embedded, dv_kind(DV_KIND_NAMESPACE)) >= 4;
}

static void open_all(struct bench *bench)
{
    const struct dv_store_options options = {.schema = &schema, .damaged = on_damaged};
    const struct dv_embedded_options how = {.table_objects = 0, .table_meta = 1};
    struct dv_err err;

    bench->store = dv_store_open(bench->loop, dv_str_from_c(bench->path), &options, &err);
    bench_must(bench->store != NULL, "store", &err);
    bench->embedded = dv_embedded_open(bench->loop, bench->store, &how, &err);
    bench_must(bench->embedded != NULL, "embedded", &err);
    bench->cluster = dv_embedded_cluster(bench->embedded);
}

static void close_all(struct bench *bench)
{
    bool is_closed = false;

    dv_embedded_close(bench->embedded, set_true, &is_closed);
    wait_for(bench, is_true, &is_closed);
    is_closed = false;
    dv_store_close(bench->store, set_true, &is_closed);
    wait_for(bench, is_true, &is_closed);
}

/* ---- values ---- */

#define SLICE_DEVICE                                                                               \
    "{\"name\":\"gpu-%zu\",\"attributes\":{\"model\":{\"string\":\"a100\"},\"index\":{\"int\":%zu" \
    "},\"numa\":{\"int\":0},\"firmware\":{\"version\":\"2.1.0\"}},\"capacity\":{\"memory\":{"      \
    "\"value\":\"40Gi\"}}}"

static const char claim_json[] =
    "{\"metadata\":{\"labels\":{\"app\":\"train\"}},\"spec\":{\"devices\":{\"requests\":[{"
    "\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":\"gpu.example.com\",\"selectors\":[{\"cel\":"
    "{\"expression\":\"device.attributes[\\\"gpu.example.com\\\"].model == \\\"a100\\\"\"}}]}}]}}}";
static const char pod_json[] =
    "{\"metadata\":{\"labels\":{\"app\":\"train\",\"tier\":\"batch\"}},\"spec\":{\"containers\":[{"
    "\"name\":\"main\",\"image\":\"registry.example/train:1\",\"args\":[\"--epochs\",\"3\"],"
    "\"resources\":{\"claims\":[{\"name\":\"gpu\"}],\"requests\":{\"cpu\":\"2\",\"memory\":\"4Gi\""
    "}}}],\"resourceClaims\":[{\"name\":\"gpu\",\"resourceClaimTemplateName\":\"gpu\"}]}}";

static const char *slice_json(struct bench *bench)
{
    struct dv_buf buf;
    const char *text;

    dv_buf_init(&buf, 1u << 20);
    dv_buf_add_c(&buf, "{\"metadata\":{},\"spec\":{\"driver\":\"gpu.example.com\",\"nodeName\":"
                       "\"node-a\",\"pool\":{\"name\":\"node-a\",\"generation\":1,"
                       "\"resourceSliceCount\":1},\"devices\":[");
    for (size_t i = 0; i < 8; i++) {
        dv_buf_add_c(&buf, i > 0 ? "," : "");
        dv_buf_printf(&buf, SLICE_DEVICE, i, i);
    }
    dv_buf_add_c(&buf, "]}}");
    text = dv_str_to_c(dv_buf_str(&buf), bench->arena);
    dv_buf_fini(&buf);
    return text;
}

static void choose(struct bench *bench, enum dv_kind_id kind)
{
    const struct dv_message *message = dv_kind(kind)->versions[0].message;
    const char *json = kind == DV_KIND_CLAIM ? claim_json
                       : kind == DV_KIND_POD ? pod_json
                                             : slice_json(bench);
    struct dv_err err;
    const struct dv_json *doc = dv_json_parse(dv_str_from_c(json), NULL, bench->arena, &err);

    bench_must(doc != NULL, "json", &err);
    bench->kind = kind;
    bench->value = dv_arena_alloc(bench->arena, message->size, message->align);
    bench_must(
        dv_decode_json(message, doc, DV_UNKNOWN_DROP, bench->arena, bench->value, NULL, &err),
        "decode", &err);
}

/* ---- creates ---- */

static void report(struct bench *bench, const char *what, uint64_t ns, uint64_t cpu)
{
    size_t n = bench->ns.n;
    size_t middle = n / 2;
    size_t slow = n * 99 / 100;

    qsort(bench->ns.v, n, sizeof(bench->ns.v[0]), bench_by_size);
    printf("  %-44s %9.0f/s  p50 %8.1f us  p99 %8.1f us  cpu %6.1f us\n", what,
           (double)n / ((double)ns / 1e9), (double)bench->ns.v[middle] / 1e3,
           (double)bench->ns.v[slow] / 1e3, (double)cpu / 1e3 / (double)n);
    dv_vec_clear(&bench->ns);
}

static bool is_idle(void *ctx)
{
    return ((const struct bench *)ctx)->n_busy == 0;
}

static bool has_next(const struct bench *bench)
{
    return bench->n_max > 0 ? bench->n_made < bench->n_max : bench_now_ns() < bench->until_ns;
}

static void create_next(struct client *client);

static void on_created(struct dv_request *request, const struct dv_api_status *failure)
{
    struct client *client = DV_CONTAINER(request, struct client, request);

    if (failure) {
        (void)fprintf(stderr, "create: %.*s\n", DV_FMT(failure->message));
        exit(1);
    }
    *dv_vec_add(&client->bench->ns) = bench_now_ns() - client->begin_ns;
    client->bench->n_busy--;
    create_next(client);
}

static void create_next(struct client *client)
{
    struct bench *bench = client->bench;
    const struct dv_kind *kind = dv_kind(bench->kind);

    if (!has_next(bench))
        return;
    bench->n_busy++;
    /* Names come in no order, as those of pods do. */
    (void)snprintf(client->key, sizeof(client->key), "obj-%08x-%zu",
                   (unsigned)(bench->n_made * 2654435761u), bench->n_made);
    bench->n_made++;
    client->begin_ns = bench_now_ns();
    client->request =
        (struct dv_request){.verb = DV_VERB_CREATE,
                            .kind = kind,
                            .namespace = kind->is_namespaced ? DV_STR("default") : DV_STR_NONE,
                            .name = dv_str_from_c(client->key),
                            .value = bench->value,
                            .done = on_created};
    dv_request_start(bench->cluster, &client->request);
}

static void put_next(struct client *client);

static void on_put(struct dv_store_write *write, const struct dv_err *err)
{
    struct client *client = DV_CONTAINER(write, struct client, write);

    bench_must(!err, "put", err);
    *dv_vec_add(&client->bench->ns) = bench_now_ns() - client->begin_ns;
    client->bench->n_busy--;
    put_next(client);
}

static void put_next(struct client *client)
{
    struct bench *bench = client->bench;
    struct dv_store_change change = {.kind = DV_STORE_PUT, .value = bench->text};

    if (!has_next(bench))
        return;
    bench->n_busy++;
    (void)snprintf(client->key, sizeof(client->key), "floor/%08x-%zu",
                   (unsigned)(bench->n_made * 2654435761u), bench->n_made);
    bench->n_made++;
    change.key = dv_str_from_c(client->key);
    client->begin_ns = bench_now_ns();
    client->write.done = on_put;
    dv_store_write(bench->store, &client->write, &change, 1);
}

/* Runs for a time (n 0) or for so many. */
static void run(struct bench *bench, size_t n_clients, size_t n,
                void (*next)(struct client *client), const char *what)
{
    uint64_t begin = bench_now_ns();
    uint64_t cpu = bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);

    bench->n_max = n > 0 ? bench->n_made + n : 0;
    bench->until_ns = begin + CREATE_MS * UINT64_C(1000000);
    for (size_t i = 0; i < n_clients; i++) {
        bench->clients[i].bench = bench;
        next(&bench->clients[i]);
    }
    wait_for(bench, is_idle, bench);
    if (what)
        report(bench, what, bench_now_ns() - begin, bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    dv_vec_clear(&bench->ns);
}

static void bench_creates(struct bench *bench)
{
    struct dv_list_query query = {.kind = dv_kind(DV_KIND_CLAIM), .limit = 1};
    struct dv_api_status *failure;
    struct dv_list_page page;
    struct dv_buf text;

    choose(bench, DV_KIND_CLAIM);
    run(bench, 1, 0, create_next, "create a claim, 1 in flight");
    run(bench, 64, 0, create_next, "create a claim, 64 in flight");
    bench_must(dv_embedded_list(bench->embedded, &query, bench->arena, &page, &failure), "list",
               NULL);
    dv_buf_init(&text, 1u << 20);
    dv_encode_json_text(query.kind->versions[0].message, dv_object_unpack(page.objects[0])->value,
                        NULL, DV_STR_NONE, &text);
    bench->text = dv_buf_str(&text);
    run(bench, 1, 0, put_next, "floor: the same bytes by the store, 1");
    run(bench, 64, 0, put_next, "floor: the same bytes by the store, 64");
    printf("  (%zu bytes a claim)\n", text.n);
    dv_buf_fini(&text);
}

/* ---- reads ---- */

static void bench_gets(struct bench *bench)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_CLAIM);
    struct dv_list_query query = {.kind = kind};
    struct dv_api_status *failure;
    struct dv_list_page page;
    uint64_t begin;
    size_t n_found = 0;

    bench_must(dv_embedded_list(bench->embedded, &query, bench->arena, &page, &failure), "list",
               NULL);
    begin = bench_now_ns();
    for (size_t i = 0; i < 1000000; i++) {
        const struct dv_object *object =
            dv_object_unpack(page.objects[(i * 7919) % page.n_objects]);

        n_found += dv_embedded_get(bench->embedded, kind, object->meta->namespace,
                                   object->meta->name) != NULL;
    }
    printf("  %-44s %9.0f/s  of %zu claims\n", "get by name",
           (double)n_found / ((double)(bench_now_ns() - begin) / 1e9), page.n_objects);
}

static void bench_list(struct bench *bench)
{
    struct dv_list_query query = {.kind = dv_kind(DV_KIND_SLICE)};
    struct dv_api_status *failure;
    struct dv_list_page page;
    uint64_t begin;

    choose(bench, DV_KIND_SLICE);
    run(bench, 64, N_LIST - embedded_count(bench->embedded, query.kind), create_next, NULL);
    begin = bench_now_ns();
    for (size_t i = 0; i < 100; i++) {
        dv_arena_reset(bench->arena);
        bench_must(dv_embedded_list(bench->embedded, &query, bench->arena, &page, &failure), "list",
                   NULL);
    }
    printf("  %-44s %9.1f us  %zu slices\n", "list all slices",
           (double)(bench_now_ns() - begin) / 1e5, page.n_objects);
    query.field_selector = DV_STR("spec.nodeName=node-a,spec.driver=gpu.example.com");
    begin = bench_now_ns();
    for (size_t i = 0; i < 100; i++) {
        dv_arena_reset(bench->arena);
        bench_must(dv_embedded_list(bench->embedded, &query, bench->arena, &page, &failure), "list",
                   NULL);
    }
    printf("  %-44s %9.1f us  %zu slices\n", "list slices of a node and driver",
           (double)(bench_now_ns() - begin) / 1e5, page.n_objects);
}

/* ---- watches ---- */

struct watcher {
    struct dv_watcher watcher;
    struct bench *bench;
};

static void on_event(struct dv_watcher *watcher, enum dv_object_event event,
                     struct dv_object *object, uint64_t version)
{
    (void)event;
    (void)object;
    (void)version;
    DV_CONTAINER(watcher, struct watcher, watcher)->bench->n_events++;
}

static bool has_told_all(void *ctx)
{
    return ((const struct bench *)ctx)->n_events == (size_t)N_WATCHERS * N_EVENTS;
}

static void bench_watches(struct bench *bench)
{
    static struct watcher watchers[N_WATCHERS];
    struct dv_api_status *failure;
    uint64_t begin;
    uint64_t cpu;

    choose(bench, DV_KIND_CLAIM);
    run(bench, 64, N_EVENTS, create_next, NULL);
    bench->n_events = 0;
    for (size_t i = 0; i < N_WATCHERS; i++) {
        watchers[i] = (struct watcher){
            .watcher = {.kind = dv_kind(DV_KIND_CLAIM),
                        .namespace = DV_STR("default"),
                        .label_selector = i % 2 ? DV_STR("app=train") : DV_STR_NONE,
                        .since = dv_embedded_version(bench->embedded),
                        .event = on_event},
            .bench = bench,
        };
        bench_must(dv_watcher_start(bench->embedded, &watchers[i].watcher, bench->arena, &failure),
                   "watch", NULL);
    }
    begin = bench_now_ns();
    cpu = bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    run(bench, 64, N_EVENTS, create_next, NULL);
    wait_for(bench, has_told_all, bench);
    printf("  %-44s %9.0f events/s  in all %.1f ms, cpu %.1f ms\n",
           "100 watchers, 1,000 creates, 64 in flight",
           (double)bench->n_events / ((double)(bench_now_ns() - begin) / 1e9),
           (double)(bench_now_ns() - begin) / 1e6,
           (double)(bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1e6);
    for (size_t i = 0; i < N_WATCHERS; i++)
        dv_watcher_stop(&watchers[i].watcher);
}

/* ---- memory and restart ---- */

static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static void bench_memory(struct bench *bench, enum dv_kind_id kind)
{
    size_t before;
    size_t n = 2000;

    choose(bench, kind);
    before = heap_bytes();
    run(bench, 64, n, create_next, NULL);
    printf("  %-44s %9.0f bytes, with history and the pages that SQLite keeps\n",
           kind == DV_KIND_CLAIM ? "memory: a claim"
           : kind == DV_KIND_POD ? "memory: a pod"
                                 : "memory: a slice of 8 devices",
           (double)(heap_bytes() - before) / (double)n);
}

static void bench_restart(struct bench *bench)
{
    uint64_t begin;
    size_t n = embedded_count(bench->embedded, dv_kind(DV_KIND_CLAIM));

    choose(bench, DV_KIND_CLAIM);
    if (n < N_RESTART)
        run(bench, 64, N_RESTART - n, create_next, NULL);
    close_all(bench);
    (void)malloc_trim(0);
    begin = bench_now_ns();
    open_all(bench);
    printf("  %-44s %9.0f ms  %zu claims and %zu slices, %zu KiB resident\n", "restart",
           (double)(bench_now_ns() - begin) / 1e6,
           embedded_count(bench->embedded, dv_kind(DV_KIND_CLAIM)),
           embedded_count(bench->embedded, dv_kind(DV_KIND_SLICE)), bench_resident_kib());
    wait_for(bench, is_ready, bench);
}

static void bench_dir(const char *dir)
{
    struct bench *bench = DV_ALLOC(struct bench);
    struct dv_err err;

    bench->loop = dv_loop_new(dv_clock_real(), &err);
    bench_must(bench->loop != NULL, "loop", &err);
    bench->arena = dv_arena_new();
    (void)snprintf(bench->path, sizeof(bench->path), "%s/bench-cluster-%d", dir, (int)getpid());
    printf("%s\n", dir);
    open_all(bench);
    wait_for(bench, is_ready, bench);
    bench_memory(bench, DV_KIND_CLAIM);
    bench_memory(bench, DV_KIND_POD);
    bench_memory(bench, DV_KIND_SLICE);
    bench_creates(bench);
    bench_gets(bench);
    bench_list(bench);
    bench_watches(bench);
    close_all(bench); /* the floor's rows are no objects */
    store_files_remove(bench->path);
    open_all(bench);
    bench_restart(bench);
    close_all(bench);
    store_files_remove(bench->path);
    dv_vec_fini(&bench->ns);
    dv_arena_free(bench->arena);
    dv_loop_free(bench->loop);
    free(bench);
}

int main(int argc, char **argv)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* a report as it goes */
    for (int i = 1; i < argc; i++)
        bench_dir(argv[i]);
    if (argc == 1) {
        bench_dir("/tmp");
        bench_dir("/dev/shm");
    }
    return 0;
}
