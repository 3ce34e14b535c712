/* The engine over an API server against our own, while the way between them fails.
 *
 * Seeds are printed; DV_STORM_SEED runs one alone, DV_STORM_WRITES sets how many writes. */
#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/num.h"
#include "base/vec.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/proxy.h"
#include "cluster/remote.h"
#include "cluster/world.h"
#include "resource/object_pool.h"
#include "resource/resource.h"

#define N_NAMES 60u
#define N_WRITES 2000u
#define N_RUNNING_MAX 16u
#define NAME_BYTES 16

struct step {
    unsigned name;
    uint64_t version; /* 0: it went */
};

struct storm;

/* What a view told, in order, and what it must show after that. */
struct witness {
    const char *who;
    struct dv_view *view;
    DV_VEC(struct step) steps;
    uint64_t shown[N_NAMES]; /* versions; 0: absent */
    unsigned n_losses;
};

struct job {
    struct storm *storm;
    struct dv_request request;
    struct dv_api_config_map map;
    struct dv_str_entry data;
    char name[NAME_BYTES];
    char version[24];
    char value[64];
};

struct storm {
    struct world *world;
    uint64_t random;
    size_t n_running;
    size_t n_written;
    size_t n_conflicts;
    size_t n_failures; /* of other kinds */
    struct witness local;
    struct witness remote;
};

/* ---- views ---- */

static unsigned number_of(const struct dv_object *object)
{
    uint32_t number;

    assert_true(dv_str_to_u32(dv_str_slice(object->meta->name, 1, object->meta->name.n), &number));
    assert_true(number < N_NAMES);
    return number;
}

static void on_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct witness *witness = ctx;
    unsigned name = number_of(now ? now : old);

    /* Nothing is told twice, nothing goes back, and one is never taken for another. */
    assert_int_equal(witness->shown[name], old ? old->version : 0);
    if (old && now) {
        assert_true(old->version < now->version);
        assert_true(dv_str_eq(old->meta->uid, now->meta->uid));
    }
    witness->shown[name] = now ? now->version : 0;
    *dv_vec_add(&witness->steps) = (struct step){name, now ? now->version : 0};
}

static void on_disturbed(void *ctx, const struct dv_err *err)
{
    struct witness *witness = ctx;

    if (err)
        witness->n_losses++;
}

static void open_view(struct witness *witness, const char *who, struct dv_cluster *cluster)
{
    struct dv_view_options options = {.kind = dv_kind(DV_KIND_CONFIG_MAP),
                                      .changed = on_changed,
                                      .disturbed = on_disturbed,
                                      .ctx = witness};
    struct dv_err err;

    witness->who = who;
    witness->view = dv_view_open(cluster, &options, &err);
    if (!witness->view)
        fail_msg("%s: %s", who, err.msg);
}

static bool is_synced(void *ctx)
{
    return dv_view_is_synced(((struct witness *)ctx)->view);
}

/* ---- writes ---- */

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    struct job *job = DV_CONTAINER(request, struct job, request);
    struct storm *storm = job->storm;

    storm->n_running--;
    storm->n_written += !failure;
    if (failure && failure->code == 409)
        storm->n_conflicts++;
    else if (failure)
        storm->n_failures++;
    free(job);
}

static void fill(struct job *job, unsigned name)
{
    struct storm *storm = job->storm;
    uint64_t shown = storm->remote.shown[name];
    uint64_t dice = proxy_random(&storm->random) % 10;

    (void)snprintf(job->name, sizeof(job->name), "m%u", name);
    (void)snprintf(job->value, sizeof(job->value), "%llu",
                   (unsigned long long)proxy_random(&storm->random));
    job->data = (struct dv_str_entry){DV_STR("key"), dv_str_from_c(job->value)};
    job->map.metadata.name = dv_str_from_c(job->name);
    job->map.metadata.namespace = DV_STR("default");
    job->map.data = &job->data;
    job->map.n_data = 1;
    job->request.verb = dice < 2 ? DV_VERB_DELETE : !shown ? DV_VERB_CREATE : DV_VERB_UPDATE;
    /* By what the view shows, which may be old by now: then it is refused. */
    if (job->request.verb == DV_VERB_UPDATE && dice % 2) {
        (void)snprintf(job->version, sizeof(job->version), "%llu", (unsigned long long)shown);
        job->map.metadata.resource_version = dv_str_from_c(job->version);
    }
}

static void write_something(struct storm *storm)
{
    struct job *job = DV_ALLOC(struct job);
    struct dv_cluster *cluster = proxy_random(&storm->random) % 2
                                     ? dv_embedded_cluster(storm->world->embedded)
                                     : dv_remote_cluster(storm->world->remote);

    job->storm = storm;
    job->request.kind = dv_kind(DV_KIND_CONFIG_MAP);
    job->request.namespace = DV_STR("default");
    job->request.done = on_done;
    fill(job, (unsigned)(proxy_random(&storm->random) % N_NAMES));
    job->request.name = job->map.metadata.name;
    job->request.value = job->request.verb == DV_VERB_DELETE ? NULL : &job->map;
    storm->n_running++;
    dv_request_start(cluster, &job->request);
}

static bool has_room(void *ctx)
{
    return ((const struct storm *)ctx)->n_running < N_RUNNING_MAX;
}

static bool is_idle(void *ctx)
{
    return ((const struct storm *)ctx)->n_running == 0;
}

/* ---- the comparison ---- */

/* The view shows what a list of the API does, no more and no less. */
static bool is_same(void *ctx)
{
    struct storm *storm = ctx;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_list_query query = {.kind = dv_kind(DV_KIND_CONFIG_MAP)};
    struct dv_list_page page;
    struct dv_api_status *failure;

    query.version = &query.kind->versions[0];
    assert_true(dv_embedded_list(storm->world->embedded, &query, arena, &page, &failure));
    if (dv_view_n(storm->remote.view) != page.n_objects)
        return false;
    for (size_t i = 0; i < page.n_objects; i++) {
        const struct dv_object *object = dv_object_unpack(page.objects[i]);
        const struct dv_object *shown =
            dv_view_get(storm->remote.view, object->meta->namespace, object->meta->name);

        if (!shown || shown->version != object->version)
            return false;
        assert_true(dv_message_eq(object->kind->versions[0].message, object->value, shown->value));
        assert_int_equal(storm->remote.shown[number_of(object)], object->version);
    }
    return true;
}

/* Both have told the same, in the same order. */
static void compare_steps(const struct storm *storm)
{
    assert_int_equal(storm->remote.steps.n, storm->local.steps.n);
    for (size_t i = 0; i < storm->local.steps.n; i++) {
        assert_int_equal(storm->remote.steps.v[i].name, storm->local.steps.v[i].name);
        assert_int_equal(storm->remote.steps.v[i].version, storm->local.steps.v[i].version);
    }
}

/* ---- storms ---- */

struct weather {
    const char *name;
    struct proxy_faults faults;
    bool has_tls;
    size_t n_history_max; /* 0: nothing is ever forgotten here */
    unsigned cut_all;     /* of a thousand writes: the server seems to go away */
};

static size_t n_writes(void)
{
    const char *text = getenv("DV_STORM_WRITES");
    size_t n = N_WRITES;

    if (text)
        assert_true(dv_str_to_size(dv_str_from_c(text), &n));
    return n;
}

static void rage(struct storm *storm, const struct weather *weather)
{
    struct world *world = storm->world;

    world->proxy.faults = weather->faults;
    for (size_t n = n_writes(); n > 0; n--) {
        write_something(storm);
        world_turn(world, proxy_random(&storm->random) % 40);
        if (proxy_random(&storm->random) % 1000 < weather->cut_all)
            proxy_cut_all(&world->proxy);
        world_wait(world, has_room, storm, 120000);
    }
    world->proxy.faults = (struct proxy_faults){0};
    world_wait(world, is_idle, storm, 120000);
}

static void print_result(const struct storm *storm, const struct weather *weather, uint64_t seed)
{
    const struct proxy *proxy = &storm->world->proxy;

    print_message("    %s, seed %llu: %zu written, %zu conflicts, %zu failed; %u cuts, %u delays, "
                  "%u corruptions, %u refusals; told %zu of %zu, lost %u times\n",
                  weather->name, (unsigned long long)seed, storm->n_written, storm->n_conflicts,
                  storm->n_failures, proxy->n_cuts, proxy->n_delays, proxy->n_corruptions,
                  proxy->n_refusals, storm->remote.steps.n, storm->local.steps.n,
                  storm->remote.n_losses);
}

static void run(const struct weather *weather, uint64_t seed)
{
    struct storm storm = {.random = seed};
    struct world_options options = {.seed = seed + 1,
                                    .has_tls = weather->has_tls,
                                    .n_history_max =
                                        weather->n_history_max ? weather->n_history_max : 1000000,
                                    .n_page_objects = 7};

    storm.world = world_open(&options);
    open_view(&storm.local, "local", dv_embedded_cluster(storm.world->embedded));
    open_view(&storm.remote, "remote", dv_remote_cluster(storm.world->remote));
    world_wait(storm.world, is_synced, &storm.local, 10000);
    world_wait(storm.world, is_synced, &storm.remote, 10000);
    rage(&storm, weather);
    world_wait(storm.world, is_same, &storm, 400000);
    print_result(&storm, weather, seed);
    if (weather->n_history_max == 0 && weather->faults.corrupt == 0)
        compare_steps(&storm);
    assert_true(storm.n_written > 0 && storm.n_conflicts > 0);
    dv_view_close(storm.local.view);
    dv_view_close(storm.remote.view);
    world_close(storm.world);
    dv_vec_fini(&storm.local.steps);
    dv_vec_fini(&storm.remote.steps);
}

static void run_seeds(const struct weather *weather)
{
    const char *text = getenv("DV_STORM_SEED");
    uint64_t seed;

    if (text) {
        assert_true(dv_str_to_u64(dv_str_from_c(text), &seed));
        run(weather, seed);
        return;
    }
    run(weather, 1);
    run(weather, 2);
    run(weather, dv_random_u64() % 1000000);
}

static void tells_everything_in_order_on_a_good_day(void **state)
{
    static const struct weather weather = {.name = "calm"};

    (void)state;
    run_seeds(&weather);
}

static void loses_nothing_when_connections_are_cut_and_slow(void **state)
{
    static const struct weather weather = {
        .name = "cuts",
        .faults = {.cut = 15, .delay = 50, .delay_ms = 3000, .refuse = 100},
        .cut_all = 2,
    };

    (void)state;
    run_seeds(&weather);
}

static void converges_when_the_server_forgets(void **state)
{
    static const struct weather weather = {
        .name = "oblivion",
        .faults = {.cut = 15, .delay = 50, .delay_ms = 3000, .refuse = 100},
        .n_history_max = 20,
        .cut_all = 10,
    };

    (void)state;
    run_seeds(&weather);
}

/* Without a checksum only what is no text at all can be noticed. */
static void converges_when_bytes_are_broken(void **state)
{
    static const struct weather weather = {
        .name = "noise",
        .faults = {.cut = 5, .corrupt = 40, .shows = true, .delay = 20, .delay_ms = 1000},
    };

    (void)state;
    run_seeds(&weather);
}

static void converges_under_tls_when_any_byte_is_broken(void **state)
{
    static const struct weather weather = {
        .name = "tls",
        .faults = {.cut = 5, .corrupt = 10, .delay = 20, .delay_ms = 1000, .refuse = 20},
        .has_tls = true,
        .n_history_max = 200,
        .cut_all = 2,
    };

    (void)state;
    run_seeds(&weather);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_everything_in_order_on_a_good_day),
        cmocka_unit_test(loses_nothing_when_connections_are_cut_and_slow),
        cmocka_unit_test(converges_when_the_server_forgets),
        cmocka_unit_test(converges_when_bytes_are_broken),
        cmocka_unit_test(converges_under_tls_when_any_byte_is_broken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
