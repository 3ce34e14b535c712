/* test_static_pods.c - a folder of static pods, on a loop, with real files. */
#include "support/dvtest.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "loop/loop.h"
#include "pod/static_pods.h"
#include "resource/resource.h"

#define WAIT_MS 60000u
#define POD(image)                                                                                 \
    "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, "            \
    "image: " image "}]}}"

struct fixture {
    struct dv_loop *loop;
    struct dv_static_pods *pods;
    struct dv_arena *arena;
    char dir[64];
    struct dv_buf told; /* "+web-n1 ~web-n1 -web-n1 " */
    struct dv_buf faults;
    int n_synced;
    int n_closed;
    const char *wanted;
};

static void on_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct fixture *fixture = ctx;
    const struct dv_object *pod = now ? now : old;

    dv_buf_printf(&fixture->told, "%c%.*s ",
                  !old   ? '+'
                  : !now ? '-'
                         : '~',
                  DV_FMT(pod->meta->name));
}

static void on_synced(void *ctx)
{
    ((struct fixture *)ctx)->n_synced++;
}

static void on_faulty(void *ctx, const dv_str *texts, size_t n)
{
    struct fixture *fixture = ctx;

    dv_buf_clear(&fixture->faults);
    for (size_t i = 0; i < n; i++)
        dv_buf_printf(&fixture->faults, "%.*s\n", DV_FMT(texts[i]));
}

static int start(void **state)
{
    struct fixture *fixture = DV_ALLOC(struct fixture);
    struct dv_err err;

    (void)snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/davit-static-XXXXXX");
    assert_non_null(mkdtemp(fixture->dir));
    fixture->arena = dv_arena_new();
    fixture->loop = dv_loop_new(dv_clock_real(), &err);
    assert_ok(fixture->loop, &err);
    dv_buf_init(&fixture->told, 4096);
    dv_buf_init(&fixture->faults, 65536);
    *state = fixture;
    return 0;
}

static void open_folder(struct fixture *fixture, const char *name)
{
    const struct dv_static_pods_options options = {
        .dir = dv_str_printf(fixture->arena, "%s/%s", fixture->dir, name),
        .node_name = DV_STR("n1"),
        .changed = on_changed,
        .synced = on_synced,
        .faulty = on_faulty,
        .ctx = fixture,
    };

    fixture->pods = dv_static_pods_open(fixture->loop, &options);
}

static void on_closed(void *ctx)
{
    ((struct fixture *)ctx)->n_closed++;
}

static bool is_closed(void *ctx)
{
    return ((const struct fixture *)ctx)->n_closed > 0;
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *where)
{
    (void)about;
    (void)type;
    (void)where;
    return remove(path);
}

static int end(void **state)
{
    struct fixture *fixture = *state;

    dv_static_pods_close(fixture->pods, on_closed, fixture);
    assert_int_equal(fixture->n_closed, 0);
    assert_true(dv_loop_run_until(fixture->loop, is_closed, fixture, WAIT_MS));
    dv_loop_free(fixture->loop);
    dv_buf_fini(&fixture->told);
    dv_buf_fini(&fixture->faults);
    dv_arena_free(fixture->arena);
    (void)nftw(fixture->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(fixture);
    return 0;
}

static void put(const struct fixture *fixture, const char *name, const char *text)
{
    const char *path =
        dv_str_to_c(dv_str_printf(fixture->arena, "%s/%s", fixture->dir, name), fixture->arena);
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void drop(const struct fixture *fixture, const char *name)
{
    assert_int_equal(unlink(dv_str_to_c(dv_str_printf(fixture->arena, "%s/%s", fixture->dir, name),
                                        fixture->arena)),
                     0);
}

static bool is_told(void *ctx)
{
    const struct fixture *fixture = ctx;

    return strcmp(dv_buf_c(&((struct fixture *)ctx)->told), fixture->wanted) == 0;
}

static bool is_at_fault(void *ctx)
{
    struct fixture *fixture = ctx;

    return fixture->wanted[0] ? strstr(dv_buf_c(&fixture->faults), fixture->wanted) != NULL
                              : fixture->faults.n == 0;
}

static void wait_for(struct fixture *fixture, bool (*is_so)(void *ctx), const char *wanted)
{
    fixture->wanted = wanted;
    if (!dv_loop_run_until(fixture->loop, is_so, fixture, WAIT_MS))
        fail_msg("wanted %s: told %s; at fault %s", wanted, dv_buf_c(&fixture->told),
                 dv_buf_c(&fixture->faults));
}

static void tells_what_comes_changes_and_goes(void **state)
{
    struct fixture *fixture = *state;

    put(fixture, "web.yaml", POD("x"));
    put(fixture, ".hidden.yaml", POD("z"));
    open_folder(fixture, "");
    wait_for(fixture, is_told, "+web-n1 ");
    assert_int_equal(fixture->n_synced, 1);
    put(fixture, "web.yaml", POD("z"));
    wait_for(fixture, is_told, "+web-n1 ~web-n1 ");
    put(fixture, "web.yaml", "# another text, the same pod\n" POD("z"));
    put(fixture, "wrong.yaml", "{]");
    wait_for(fixture, is_at_fault, "wrong.yaml: ");
    assert_string_equal(dv_buf_c(&fixture->told), "+web-n1 ~web-n1 ");
    put(fixture, "web.yaml", "{]"); /* what it was goes on */
    wait_for(fixture, is_at_fault, "web.yaml: ");
    assert_string_equal(dv_buf_c(&fixture->told), "+web-n1 ~web-n1 ");
    drop(fixture, "web.yaml");
    drop(fixture, "wrong.yaml");
    wait_for(fixture, is_told, "+web-n1 ~web-n1 -web-n1 ");
    wait_for(fixture, is_at_fault, "");
    assert_int_equal(fixture->n_synced, 1);
}

static void of_two_files_with_one_pod_the_first_counts(void **state)
{
    struct fixture *fixture = *state;

    put(fixture, "a.yaml", POD("x"));
    put(fixture, "b.yaml", POD("z"));
    open_folder(fixture, "");
    wait_for(fixture, is_at_fault, "b.yaml: pod default/web-n1 is that of ");
    assert_string_equal(dv_buf_c(&fixture->told), "+web-n1 ");
    drop(fixture, "a.yaml");
    wait_for(fixture, is_told, "+web-n1 -web-n1 +web-n1 ");
}

static void a_folder_may_come_later(void **state)
{
    struct fixture *fixture = *state;
    const char *path =
        dv_str_to_c(dv_str_printf(fixture->arena, "%s/sub", fixture->dir), fixture->arena);

    open_folder(fixture, "sub");
    assert_int_equal(mkdir(path, 0700), 0);
    put(fixture, "sub/web.yaml", POD("x"));
    wait_for(fixture, is_told, "+web-n1 ");
}

static void may_be_closed_while_it_reads(void **state)
{
    struct fixture *fixture = *state;

    put(fixture, "web.yaml", POD("x"));
    open_folder(fixture, "");
    /* the job has begun, or not */
    assert_false(dv_loop_run_until(fixture->loop, is_closed, fixture, 1));
}

static void may_be_closed_at_once(void **state)
{
    open_folder(*state, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tells_what_comes_changes_and_goes, start, end),
        cmocka_unit_test_setup_teardown(of_two_files_with_one_pod_the_first_counts, start, end),
        cmocka_unit_test_setup_teardown(a_folder_may_come_later, start, end),
        cmocka_unit_test_setup_teardown(may_be_closed_while_it_reads, start, end),
        cmocka_unit_test_setup_teardown(may_be_closed_at_once, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
