/* bench_store - durable writes a second, beside the disk's own floor in the same run.
 *
 *     bench_store [DIRECTORY...]     the default: one on /tmp, one in memory (/dev/shm)
 *
 * The floor is a bare pwrite + fdatasync of the same bytes over a file that has its size already;
 * store and floor take turns of a fraction of a second, so that both see the same disk. */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "loop/loop.h"
#include "store/store.h"
#include "support/bench.h"

#define KEY_BYTES_MAX 64u
#define KEY_BYTES 29u /* of which are used */
#define SLICE_MS 250u
#define N_SLICES 4u
#define FLOOR_FILE_BYTES (4u << 20)
#define N_CLIENTS_MAX 64u

static const char *const tables[] = {"objects"};
static const struct dv_store_schema schema = {.tables = tables, .n_tables = 1};

struct samples {
    DV_VEC(uint64_t) ns;
    uint64_t busy_ns;
    uint64_t cpu_ns;
    uint64_t written_bytes;
    size_t n_ops;
};

struct client {
    struct dv_store_write write;
    struct run *run;
    uint64_t begin_ns;
};

struct run {
    struct dv_loop *loop;
    struct dv_store *store;
    size_t n_rows;    /* stored: updated at random */
    size_t n_created; /* instead of updating, when not 0: new rows, scattered among the others */
    size_t value_bytes;
    uint64_t until_ns;
    size_t n_busy;
    unsigned seed;
    struct samples *samples;
    struct client clients[N_CLIENTS_MAX];
};

/* What this process has handed to the kernel so far. */
static uint64_t written_bytes(void)
{
    return bench_proc("/proc/self/io", "wchar: ");
}

static void must(bool is_ok, const char *what)
{
    if (is_ok)
        return;
    perror(what);
    exit(1);
}

/* ---- numbers ---- */

static double percentile_us(const struct samples *samples, size_t per_cent)
{
    size_t place = samples->ns.n * per_cent / 100;

    return place < samples->ns.n ? (double)samples->ns.v[place] / 1e3 : 0;
}

static void report(const char *what, struct samples *samples)
{
    qsort(samples->ns.v, samples->ns.n, sizeof(samples->ns.v[0]), bench_by_size);
    printf("  %-34s %9.0f/s  p50 %8.1f us  p99 %8.1f us  cpu %6.1f us  %7.0f bytes written\n", what,
           (double)samples->n_ops / ((double)samples->busy_ns / 1e9), percentile_us(samples, 50),
           percentile_us(samples, 99), (double)samples->cpu_ns / 1e3 / (double)samples->n_ops,
           (double)samples->written_bytes / (double)samples->n_ops);
    dv_vec_fini(&samples->ns);
    *samples = (struct samples){0};
}

/* ---- the floor ---- */

/* `n_at_once` records in each write, as a shared commit has them. */
static void run_floor(const char *dir, size_t record_bytes, size_t n_at_once,
                      struct samples *samples)
{
    size_t n = record_bytes * n_at_once;
    char *bytes = dv_alloc(FLOOR_FILE_BYTES);
    uint64_t begin_cpu_ns;
    uint64_t begin_ns;
    uint64_t last_ns;
    char path[200];
    off_t at = 0;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/floor", dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    must(fd >= 0 && pwrite(fd, bytes, FLOOR_FILE_BYTES, 0) == FLOOR_FILE_BYTES && fsync(fd) == 0,
         path);
    begin_cpu_ns = bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    begin_ns = last_ns = bench_now_ns();
    while (last_ns < begin_ns + SLICE_MS * UINT64_C(1000000)) {
        uint64_t done_ns;

        must(pwrite(fd, bytes, n, at) == (ssize_t)n && fdatasync(fd) == 0, path);
        at = at + 2 * (off_t)n <= FLOOR_FILE_BYTES ? at + (off_t)n : 0;
        done_ns = bench_now_ns();
        *dv_vec_add(&samples->ns) = done_ns - last_ns;
        last_ns = done_ns;
        samples->n_ops += n_at_once;
    }
    samples->busy_ns += last_ns - begin_ns;
    samples->cpu_ns += bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu_ns;
    samples->written_bytes = samples->n_ops * record_bytes;
    must(close(fd) == 0 && unlink(path) == 0, path);
    free(bytes);
}

/* ---- the store ---- */

static dv_str print_key(size_t i, char key[KEY_BYTES_MAX])
{
    int n = snprintf(key, KEY_BYTES_MAX, "namespace-%03zu/object-%08zu", i * 7919 % 1000, i);

    return (dv_str){key, (size_t)n};
}

static void write_one(struct client *client);

static void on_done(struct dv_store_write *write, const struct dv_err *err)
{
    struct client *client = DV_CONTAINER(write, struct client, write);
    struct run *run = client->run;
    uint64_t done_ns = bench_now_ns();

    if (err) {
        (void)fprintf(stderr, "%s\n", err->msg);
        exit(1);
    }
    *dv_vec_add(&run->samples->ns) = done_ns - client->begin_ns;
    run->samples->n_ops++;
    if (done_ns < run->until_ns)
        write_one(client);
    else
        run->n_busy--;
}

static void write_one(struct client *client)
{
    static char value[8192];
    struct run *run = client->run;
    char key[KEY_BYTES_MAX];
    size_t row = run->n_created ? run->n_rows + run->n_created++ - 1
                                : (size_t)rand_r(&run->seed) % run->n_rows;
    const struct dv_store_change change = {
        DV_STORE_PUT, 0, print_key(row, key), {value, run->value_bytes}
    };

    value[0]++; /* no two rows are the same */
    client->begin_ns = bench_now_ns();
    dv_store_write(run->store, &client->write, &change, 1);
}

static bool is_over(void *ctx)
{
    return ((struct run *)ctx)->n_busy == 0;
}

static void run_store(struct run *run, size_t n_clients, struct samples *samples)
{
    uint64_t begin_bytes = written_bytes();
    uint64_t begin_cpu_ns = bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t begin_ns = bench_now_ns();

    run->samples = samples;
    run->until_ns = begin_ns + SLICE_MS * UINT64_C(1000000);
    run->n_busy = n_clients;
    for (size_t i = 0; i < n_clients; i++) {
        run->clients[i] = (struct client){.write = {.done = on_done}, .run = run};
        write_one(&run->clients[i]);
    }
    if (!dv_loop_run_until(run->loop, is_over, run, 60000))
        must(false, "store hangs");
    samples->busy_ns += bench_now_ns() - begin_ns;
    samples->cpu_ns += bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu_ns;
    samples->written_bytes += written_bytes() - begin_bytes;
}

struct filling {
    struct dv_store_write write;
    bool is_done;
};

static void on_filled(struct dv_store_write *write, const struct dv_err *err)
{
    must(!err, "fill");
    DV_CONTAINER(write, struct filling, write)->is_done = true;
}

static bool is_filled(void *ctx)
{
    return ((struct filling *)ctx)->is_done;
}

/* Up to `n_rows`, a thousand a set. */
static void fill(struct run *run, size_t n_rows)
{
    static char keys[1000][KEY_BYTES_MAX];
    static struct dv_store_change changes[1000];
    static char value[8192];

    while (run->n_rows < n_rows) {
        struct filling filling = {.write = {.done = on_filled}};
        size_t n = 0;

        for (; n < DV_COUNT(changes) && run->n_rows < n_rows; n++, run->n_rows++)
            changes[n] = (struct dv_store_change){
                DV_STORE_PUT, 0, print_key(run->n_rows, keys[n]), {value, run->value_bytes}
            };
        dv_store_write(run->store, &filling.write, changes, n);
        if (!dv_loop_run_until(run->loop, is_filled, &filling, 60000))
            must(false, "store hangs");
    }
}

/* ---- tables ---- */

static void on_damaged(void *ctx, const char *set_aside)
{
    (void)ctx;
    (void)fprintf(stderr, "damaged: %s\n", set_aside);
    exit(1);
}

static void open_store(struct run *run, const char *dir)
{
    const struct dv_store_options options = {.schema = &schema, .damaged = on_damaged};
    struct dv_err err;
    char path[200];

    (void)snprintf(path, sizeof(path), "%s/bench.db", dir);
    run->loop = dv_loop_new(dv_clock_real(), &err);
    run->store = run->loop ? dv_store_open(run->loop, dv_str_from_c(path), &options, &err) : NULL;
    if (!run->store) {
        (void)fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
}

static bool count_row(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    (void)row;
    (void)err;
    (*(size_t *)ctx)++;
    return true;
}

static void report_reopen(struct run *run, const char *dir)
{
    uint64_t begin_ns;
    uint64_t open_ns;
    struct dv_err err;
    size_t n_rows = 0;

    dv_store_close(run->store, NULL, NULL);
    dv_loop_free(run->loop);
    begin_ns = bench_now_ns();
    open_store(run, dir);
    open_ns = bench_now_ns();
    if (!dv_store_load(run->store, 0, count_row, &n_rows, &err))
        must(false, err.msg);
    printf("  %-34s open and check %.1f ms, load %.1f ms\n", "restart", //
           (double)(open_ns - begin_ns) / 1e6, (double)(bench_now_ns() - open_ns) / 1e6);
    assert(n_rows == run->n_rows);
}

static void report_stats(struct run *run)
{
    struct dv_store_stats stats;

    dv_store_get_stats(run->store, &stats);
    printf("  %-34s %.1f writes each, %.1f us each; %llu checkpoints, %.1f us each\n", "commits",
           (double)stats.n_writes / (double)stats.n_commits,
           (double)stats.commit_ns / 1e3 / (double)stats.n_commits,
           (unsigned long long)stats.n_checkpoints,
           stats.n_checkpoints ? (double)stats.checkpoint_ns / 1e3 / (double)stats.n_checkpoints
                               : 0.0);
}

static void bench_growth(const char *dir, size_t value_bytes)
{
    static const size_t counts[] = {10, 1000, 10000, 100000};
    static struct samples one, many, created, floor_one, floor_many;
    static struct run run;
    char what[64];

    run = (struct run){.value_bytes = value_bytes, .seed = 1};
    open_store(&run, dir);
    printf("%s, rows of %zu bytes, updated at random\n", dir, value_bytes);
    for (size_t i = 0; i < DV_COUNT(counts); i++) {
        fill(&run, counts[i]);
        for (size_t slice = 0; slice < N_SLICES; slice++) {
            run_floor(dir, KEY_BYTES + value_bytes, 1, &floor_one);
            run_store(&run, 1, &one);
            run_floor(dir, KEY_BYTES + value_bytes, N_CLIENTS_MAX, &floor_many);
            run_store(&run, N_CLIENTS_MAX, &many);
        }
        run.n_created = 1;
        run_store(&run, N_CLIENTS_MAX, &created);
        run.n_rows += run.n_created - 1;
        run.n_created = 0;
        (void)snprintf(what, sizeof(what), "%zu stored: floor, 1 a sync", counts[i]);
        report(what, &floor_one);
        (void)snprintf(what, sizeof(what), "%zu stored: 1 in flight", counts[i]);
        report(what, &one);
        (void)snprintf(what, sizeof(what), "%zu stored: floor, 64 a sync", counts[i]);
        report(what, &floor_many);
        (void)snprintf(what, sizeof(what), "%zu stored: 64 in flight", counts[i]);
        report(what, &many);
        (void)snprintf(what, sizeof(what), "%zu stored: 64 in flight, creating", counts[i]);
        report(what, &created);
    }
    report_stats(&run);
    report_reopen(&run, dir);
    dv_store_close(run.store, NULL, NULL);
    dv_loop_free(run.loop);
}

static void bench_dir(const char *parent)
{
    char dir[100];
    char path[200];

    (void)snprintf(dir, sizeof(dir), "%s/dv-bench-XXXXXX", parent);
    must(mkdtemp(dir) != NULL, dir);
    for (size_t value_bytes = 300; value_bytes <= 2000; value_bytes += 1700) {
        bench_growth(dir, value_bytes);
        (void)snprintf(path, sizeof(path), "%s/bench.db", dir);
        must(unlink(path) == 0, path);
        (void)snprintf(path, sizeof(path), "%s/bench.db.mark", dir);
        must(unlink(path) == 0, path);
    }
    (void)snprintf(path, sizeof(path), "%s/bench.db.lock", dir);
    must(unlink(path) == 0 && rmdir(dir) == 0, path);
}

int main(int argc, char **argv)
{
    if (argc == 1) {
        bench_dir("/tmp");
        bench_dir("/dev/shm");
    }
    for (int i = 1; i < argc; i++)
        bench_dir(argv[i]);
    return 0;
}
