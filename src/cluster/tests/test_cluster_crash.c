/* test_cluster_crash.c - kill -9 under load: what was acknowledged is there, and nothing is half
 * there.
 *
 * The child is this program again. Its clients each have objects of their own, and take turns to
 * create, change and delete them; every answer is told on standard output as a record. */
#include "support/dvtest.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/tests/test_cluster_fixture.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "store/store.h"
#include "support/api.h"

#define N_ROUNDS 200
#define N_CLIENTS 16u
#define KILL_AFTER_MS_MAX 12

/* A change that was acknowledged: a client's are numbered, and the object has the number of the
 * last one twice, so that half a change would show. */
struct record {
    uint32_t client;
    uint32_t number;
    uint64_t version;
    uint32_t stored; /* the number in the object; 0: it was deleted */
    uint32_t unused;
};

/* ---- the child ---- */

struct client {
    struct child *child;
    struct dv_request request;
    struct dv_arena *arena;
    uint32_t index;
    uint32_t number;
    bool is_there;
    char name[16];
};

struct child {
    struct dv_cluster *cluster;
    struct client clients[N_CLIENTS];
};

static void next(struct client *client);

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    struct client *client = request->ctx;
    struct record record = {
        .client = client->index, .number = client->number, .stored = client->number};

    if (failure)
        _exit(10);
    record.version = request->object->version;
    client->is_there = request->verb != DV_VERB_DELETE;
    if (!client->is_there)
        record.stored = 0;
    if (write(1, &record, sizeof(record)) != sizeof(record))
        _exit(3);
    next(client);
}

static void next(struct client *client)
{
    struct dv_request *request = &client->request;
    struct dv_api_config_map *map;

    dv_arena_reset(client->arena);
    client->number++;
    *request = (struct dv_request){.verb = client->is_there ? DV_VERB_UPDATE : DV_VERB_CREATE,
                                   .kind = dv_kind(DV_KIND_CONFIG_MAP),
                                   .namespace = DV_STR("default"),
                                   .name = dv_str_from_c(client->name),
                                   .done = on_done,
                                   .ctx = client};
    if (client->is_there && client->number % 7 == 0) {
        request->verb = DV_VERB_DELETE;
    } else {
        map = DV_NEW(client->arena, struct dv_api_config_map);
        map->metadata.name = request->name;
        map->n_data = 2;
        map->data = DV_NEW_ARRAY(client->arena, struct dv_str_entry, 2);
        map->data[0].key = DV_STR("a");
        map->data[1].key = DV_STR("b");
        map->data[0].value = map->data[1].value =
            dv_str_printf(client->arena, "%u", client->number);
        request->value = map;
    }
    dv_request_start(client->child->cluster, request);
}

static void on_damaged(void *ctx, const char *set_aside)
{
    (void)ctx;
    (void)set_aside;
    _exit(4);
}

/* Goes on where the store is, and with numbers that were never used. */
static void start_client(struct child *child, struct dv_embedded *embedded, uint32_t i,
                         uint32_t first)
{
    struct client *client = &child->clients[i];

    *client = (struct client){.child = child, .arena = dv_arena_new(), .index = i};
    client->number = first;
    (void)snprintf(client->name, sizeof(client->name), "m%u", i);
    client->is_there = dv_embedded_get(embedded, dv_kind(DV_KIND_CONFIG_MAP), DV_STR("default"),
                                       dv_str_from_c(client->name)) != NULL;
    next(client);
}

static int run_child(const char *path, const char *first)
{
    const struct dv_store_options options = {.schema = &api_schema, .damaged = on_damaged};
    const struct dv_embedded_options how = {.table_objects = API_TABLE_OBJECTS,
                                            .table_meta = API_TABLE_META};
    static struct child child;
    struct dv_err err;
    struct dv_loop *loop = dv_loop_new(dv_clock_real(), &err);
    struct dv_store *store = dv_store_open(loop, dv_str_from_c(path), &options, &err);
    struct dv_embedded *embedded = store ? dv_embedded_open(loop, store, &how, &err) : NULL;
    uint32_t number;

    if (!embedded || !dv_str_to_u32(dv_str_from_c(first), &number))
        return 2;
    child.cluster = dv_embedded_cluster(embedded);
    for (uint32_t i = 0; i < N_CLIENTS; i++)
        start_client(&child, embedded, i, number);
    dv_loop_run(loop); /* until we are killed */
    return 5;
}

/* ---- the parent ---- */

static pid_t start_child(struct fixture *fixture, uint32_t first, int *out)
{
    char number[24];
    int fds[2];
    pid_t pid;

    (void)snprintf(number, sizeof(number), "%u", first);
    assert_int_equal(pipe(fds), 0);
    pid = fork();
    if (pid == 0) {
        (void)dup2(fds[1], 1);
        (void)close(fds[0]);
        (void)close(fds[1]);
        (void)execl("/proc/self/exe", "test_cluster_crash", fixture->path, number, (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    assert_int_equal(close(fds[1]), 0);
    *out = fds[0];
    return pid;
}

/* What is known of a client: its last change, and what its object is then. */
struct last {
    uint32_t number;
    uint32_t stored; /* 0: it is not there */
    uint64_t version;
};

static size_t read_records(int fd, struct last last[N_CLIENTS])
{
    struct record record;
    size_t n = 0;

    for (; read(fd, &record, sizeof(record)) == sizeof(record); n++) {
        assert_in_range(record.client, 0, N_CLIENTS - 1);
        assert_true(record.version > last[record.client].version);
        last[record.client] = (struct last){record.number, record.stored, record.version};
    }
    assert_int_equal(close(fd), 0);
    return n;
}

/* The number that is stored, whole; 0: not there. */
static uint32_t number_of(const struct dv_object *object)
{
    const struct dv_api_config_map *map = object ? object->value : NULL;
    uint32_t a;
    uint32_t b;

    if (!map)
        return 0;
    assert_int_equal(map->n_data, 2);
    assert_true(dv_str_to_u32(map->data[0].value, &a));
    assert_true(dv_str_to_u32(map->data[1].value, &b));
    assert_int_equal(a, b);
    return a;
}

/* What was acknowledged is there; or the one change after it, which was under way. */
static void check(struct fixture *fixture, struct last last[N_CLIENTS], uint32_t *highest)
{
    for (uint32_t i = 0; i < N_CLIENTS; i++) {
        dv_str name = dv_str_printf(fixture->arena, "m%u", i);
        const struct dv_object *object = dv_embedded_get(
            fixture->embedded, dv_kind(DV_KIND_CONFIG_MAP), DV_STR("default"), name);
        uint32_t stored = number_of(object);
        uint32_t next_number = last[i].number + 1;
        bool is_deletion = last[i].stored > 0 && next_number % 7 == 0;

        if (stored != last[i].stored)
            assert_int_equal(stored, is_deletion ? 0 : next_number);
        assert_true(!object || object->version >= last[i].version);
        assert_true(dv_embedded_version(fixture->embedded) >= last[i].version);
        last[i].stored = stored;
        *highest = next_number > *highest ? next_number : *highest;
    }
}

static void sleep_ms(long ms)
{
    const struct timespec pause = {.tv_nsec = ms * 1000000};

    (void)nanosleep(&pause, NULL);
}

static void wait_for_output(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&ready, 1, 10000), 1);
}

static void nothing_acknowledged_is_lost_after_kill_9(void **state)
{
    struct fixture *fixture = *state;
    struct last last[N_CLIENTS] = {0};
    uint32_t highest = 0;
    size_t n_acknowledged = 0;

    srandom((unsigned)time(NULL));
    for (int round = 0; round < N_ROUNDS; round++) {
        int status;
        int out;
        pid_t pid;

        stop(fixture);
        for (uint32_t i = 0; i < N_CLIENTS; i++)
            last[i].number = highest;
        pid = start_child(fixture, highest, &out);
        if (round % 5 != 0) /* some are killed while they open */
            wait_for_output(out);
        sleep_ms(random() % KILL_AFTER_MS_MAX);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status)); /* else it has failed by itself */
        n_acknowledged += read_records(out, last);
        go_on(fixture);
        check(fixture, last, &highest);
    }
    print_message("%d kills, %zu changes acknowledged, none lost, none half there\n", N_ROUNDS,
                  n_acknowledged);
    assert_true(n_acknowledged > N_ROUNDS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_acknowledged_is_lost_after_kill_9, start_on_disk,
                                        end),
    };

    if (argc == 3)
        return run_child(argv[1], argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
