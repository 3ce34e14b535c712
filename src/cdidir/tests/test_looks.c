/* Looks at the files that events name, held against a reading of everything. */
#include "cdidir/tests/test_cdidir.h"

#include <stdbool.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/file.h"

#define PRINT_BYTES_MAX (1024u * 1024u)
#define ROUNDS 1500u
#define REPLACEMENTS 400

/* ---- what there is, as text ---- */

static void print_index(const struct dv_cdi_index *index, struct dv_buf *buf)
{
    static const char *const names[] = {"p", "q", "r", "s", "t"};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    size_t n;
    const struct dv_cdi_entry **entries = dv_cdi_index_list(index, arena, &n);

    for (size_t i = 0; i < n; i++)
        dv_buf_printf(buf, "%.*s %.*s\n", DV_FMT(entries[i]->device->full_name),
                      DV_FMT(entries[i]->spec->path));
    (void)dv_cdi_check_print(index, buf); /* its number of lines is plain to see */
    dv_buf_printf(buf, "%zu entries\n", n);
    for (size_t i = 0; i < DV_COUNT(names); i++) {
        char full[] = "v.com/gpu=?";
        const struct dv_cdi_entry *entry;

        full[sizeof(full) - 2] = names[i][0];
        entry = dv_cdi_index_find(index, dv_str_from_c(full));
        if (entry)
            dv_buf_printf(buf, "%s %.*s\n", full, DV_FMT(entry->device->edits.env[0]));
    }
}

static void print_now(struct fixture *fixture, struct dv_buf *buf)
{
    const struct dv_cdi_problem *problems;
    size_t n = dv_cdi_dirs_problems(fixture->dirs, &problems);

    print_index(dv_cdi_dirs_index(fixture->dirs), buf);
    for (size_t i = 0; i < n; i++)
        dv_buf_printf(buf, "%.*s: %.*s\n", DV_FMT(problems[i].path), DV_FMT(problems[i].reason));
}

static void print_afresh(struct fixture *fixture, struct dv_buf *buf)
{
    dv_str dirs[] = {in_root(fixture, "a"), in_root(fixture, "b")};
    struct dv_cdi_reading reading;
    struct dv_cdi_index *index;

    dv_cdi_dirs_read(dirs, DV_COUNT(dirs), fixture->arena, &reading);
    index = dv_cdi_index_new(reading.specs, reading.n_specs);
    print_index(index, buf);
    for (size_t i = 0; i < reading.n_problems; i++)
        dv_buf_printf(buf, "%.*s: %.*s\n", DV_FMT(reading.problems[i].path),
                      DV_FMT(reading.problems[i].reason));
    for (size_t i = 0; i < reading.n_specs; i++) {
        const struct dv_cdi_spec *spec = reading.specs[i];

        for (size_t k = 0; k < spec->n_problems; k++)
            dv_buf_printf(buf, "%.*s: %.*s\n", DV_FMT(spec->path), DV_FMT(spec->problems[k]));
    }
    dv_cdi_index_free(index);
    dv_cdi_reading_fini(&reading);
}

static bool is_as_afresh(void *ctx)
{
    struct fixture *fixture = ctx;
    DV_CLEANUP(dv_buf_fini) struct dv_buf now;
    DV_CLEANUP(dv_buf_fini) struct dv_buf afresh;

    dv_buf_init(&now, PRINT_BYTES_MAX);
    dv_buf_init(&afresh, PRINT_BYTES_MAX);
    print_now(fixture, &now);
    print_afresh(fixture, &afresh);
    return dv_str_eq(dv_buf_str(&now), dv_buf_str(&afresh));
}

static void expect_as_afresh(struct fixture *fixture)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf now;
    DV_CLEANUP(dv_buf_fini) struct dv_buf afresh;

    dv_buf_init(&now, PRINT_BYTES_MAX);
    dv_buf_init(&afresh, PRINT_BYTES_MAX);
    print_now(fixture, &now);
    print_afresh(fixture, &afresh);
    assert_string_equal(dv_buf_c(&now), dv_buf_c(&afresh));
}

/* Takes what the kernel has told; no spec has the name. */
static void ask_in_vain(struct fixture *fixture)
{
    dv_str name = DV_STR("v.com/gpu=none");
    struct dv_cdi_edits edits;
    struct dv_err err;

    assert_false(dv_cdi_dirs_resolve(fixture->dirs, &name, 1, fixture->arena, &edits, &err));
    assert_int_equal(err.code, DV_NOT_FOUND);
}

/* ---- anything that may happen to files ---- */

/* The same on each run: a failure can be looked at again. */
static unsigned roll(uint64_t *state, unsigned sides)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*state >> 33) % sides;
}

static const char *some_file(struct fixture *fixture, uint64_t *state)
{
    return dv_str_to_c(dv_str_printf(fixture->arena, "%c/%u.%s", "aab"[roll(state, 3)],
                                     roll(state, 4), roll(state, 8) ? "yaml" : "txt"),
                       fixture->arena);
}

static const char *some_text(struct fixture *fixture, uint64_t *state)
{
    if (roll(state, 8) == 0)
        return "{cdiVersion: 0.5.0, kind: v.com/gpu, devices: [";
    return dv_str_to_c(dv_str_printf(fixture->arena, SPEC(DEVICE("%c", "%u")),
                                     'p' + (int)roll(state, 5), roll(state, 1000)),
                       fixture->arena);
}

static void replace(struct fixture *fixture, const char *name, const char *text)
{
    struct dv_err err;

    assert_ok(dv_file_replace(in_root(fixture, name), dv_str_from_c(text), 0600, &err), &err);
}

static void renew_dir(struct fixture *fixture, uint64_t *state)
{
    remove_tree(fixture, "a");
    if (roll(state, 2))
        ask_in_vain(fixture);
    make_dir(fixture, "a");
    put(fixture, "a/0.yaml", some_text(fixture, state));
}

static void do_something(struct fixture *fixture, uint64_t *state)
{
    const char *name = some_file(fixture, state);
    int is_done = 0;

    switch (roll(state, 12)) {
    case 0:
    case 1:
    case 2:
        replace(fixture, name, some_text(fixture, state));
        break;
    case 3:
        (void)rename(c_in_root(fixture, name), /* or it is not there */
                     c_in_root(fixture, some_file(fixture, state)));
        break;
    case 4:
    case 5:
    case 6:
        (void)unlink(c_in_root(fixture, name)); /* or it is not there */
        break;
    case 7:
        is_done = symlink("../outside", c_in_root(fixture, name));
        break;
    case 8:
        is_done = link(c_in_root(fixture, some_file(fixture, state)), c_in_root(fixture, name));
        break;
    case 9:
        if (roll(state, 10) == 0)
            renew_dir(fixture, state);
        break;
    default: /* in place, but not through a link, of which no event tells */
        (void)unlink(c_in_root(fixture, name));
        put(fixture, name, some_text(fixture, state));
    }
    (void)is_done; /* what is there, or is not, may be in the way */
}

static void start_model(struct fixture *fixture)
{
    put(fixture, "outside", SPEC(DEVICE("t", "outside")));
    make_dir(fixture, "a");
    make_dir(fixture, "b");
    open_dirs(fixture);
}

static bool has_swept(void *ctx)
{
    struct fixture *fixture = ctx;

    return fixture->n_changed >= fixture->want_changed;
}

/* Time stands still: after the first miss, only what events name is looked at. */
static void asking_sees_all_that_was_done(void **state)
{
    struct fixture *fixture = *state;
    uint64_t seed = 7;

    start_model(fixture);
    ask_in_vain(fixture);
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned n = roll(&seed, 4) + 1; n > 0; n--)
            do_something(fixture, &seed);
        ask_in_vain(fixture);
        expect_as_afresh(fixture);
        if (roll(&seed, 8) == 0) { /* a turn of the loop, for what waits for its end */
            put(fixture, "b/turn.yaml", some_text(fixture, &seed));
            fixture->want_changed = fixture->n_changed;
            ask_in_vain(fixture);
            assert_true(dv_loop_run_until(fixture->loop, has_swept, fixture, 5000));
        }
    }
}

static void events_alone_bring_all_that_was_done(void **state)
{
    struct fixture *fixture = *state;
    uint64_t seed = 11;

    start_model(fixture);
    for (unsigned i = 0; i < ROUNDS / 20; i++) {
        for (unsigned n = roll(&seed, 6) + 1; n > 0; n--)
            do_something(fixture, &seed);
        if (roll(&seed, 4) == 0)
            ask_in_vain(fixture); /* in the midst of a look, perhaps */
        if (!dv_loop_run_until(fixture->loop, is_as_afresh, fixture, 5000))
            expect_as_afresh(fixture);
    }
}

/* ---- one thing at a time ---- */

static void a_file_that_moves_on_and_on_is_found_where_it_is(void **state)
{
    struct fixture *fixture = *state;

    start_model(fixture);
    ask_in_vain(fixture);
    put(fixture, "a/1.yaml", SPEC(DEVICE("p", "1")));
    assert_int_equal(rename(c_in_root(fixture, "a/1.yaml"), c_in_root(fixture, "a/2.yaml")), 0);
    assert_int_equal(rename(c_in_root(fixture, "a/2.yaml"), c_in_root(fixture, "a/3.tmp")), 0);
    assert_int_equal(rename(c_in_root(fixture, "a/3.tmp"), c_in_root(fixture, "b/4.yaml")), 0);
    put(fixture, "a/2.yaml", SPEC(DEVICE("q", "2")));
    ask_in_vain(fixture);
    assert_string_equal(value_of(fixture, "p"), "1");
    assert_string_equal(value_of(fixture, "q"), "2");
    expect_as_afresh(fixture);
    assert_int_equal(rename(c_in_root(fixture, "b/4.yaml"), c_in_root(fixture, "a/2.yaml")), 0);
    ask_in_vain(fixture);
    assert_string_equal(value_of(fixture, "q"), "-");
    expect_as_afresh(fixture);
}

static void a_directory_that_was_away_is_read_again(void **state)
{
    struct fixture *fixture = *state;

    start_model(fixture);
    put(fixture, "a/1.yaml", SPEC(DEVICE("p", "1")));
    put(fixture, "a/2.yaml", SPEC(DEVICE("q", "1")));
    ask_in_vain(fixture);
    assert_string_equal(value_of(fixture, "p"), "1");
    remove_tree(fixture, "a");
    make_dir(fixture, "a");
    put(fixture, "a/1.yaml", SPEC(DEVICE("p", "2")));
    ask_in_vain(fixture);
    assert_string_equal(value_of(fixture, "p"), "2");
    assert_string_equal(value_of(fixture, "q"), "-");
    put(fixture, "a/2.yaml", SPEC(DEVICE("q", "2"))); /* and it is watched */
    ask_in_vain(fixture);
    assert_string_equal(value_of(fixture, "q"), "2");
    expect_as_afresh(fixture);
}

static void lost_events_are_made_good_by_asking(void **state)
{
    struct fixture *fixture = *state;

    start_model(fixture);
    ask_in_vain(fixture);
    for (size_t i = 0; i < 6000; i++) {
        put(fixture, "a/1.yaml", "");
        assert_int_equal(unlink(c_in_root(fixture, "a/1.yaml")), 0);
    }
    put(fixture, "a/2.yaml", SPEC(DEVICE("p", "1"))); /* no event tells of it */
    ask_in_vain(fixture);
    assert_string_equal(value_of(fixture, "p"), "1");
    expect_as_afresh(fixture);
}

static void a_link_is_looked_through_now_and_then(void **state)
{
    struct fixture *fixture = *state;
    dv_str name = DV_STR("v.com/gpu=p");
    struct dv_cdi_edits edits;
    struct dv_err err;

    start_model(fixture);
    assert_int_equal(symlink("../outside", c_in_root(fixture, "a/1.yaml")), 0);
    ask_in_vain(fixture);
    assert_string_equal(value_of(fixture, "t"), "outside");
    put(fixture, "outside", SPEC(DEVICE("p", "1")));
    dv_clock_virtual_advance_ms(&fixture->clock, 99);
    assert_false(dv_cdi_dirs_resolve(fixture->dirs, &name, 1, fixture->arena, &edits, &err));
    assert_err(&err, DV_NOT_FOUND, "/b, all of them looked at 99 ms ago: CDI device \"v.com/gpu=p");
    dv_clock_virtual_advance_ms(&fixture->clock, 1);
    assert_ok(dv_cdi_dirs_resolve(fixture->dirs, &name, 1, fixture->arena, &edits, &err), &err);
    put(fixture, "outside", SPEC(DEVICE("t", "outside")));
    assert_true(dv_cdi_dirs_refresh(fixture->dirs)); /* whoever wants it so gets it at once */
    assert_string_equal(value_of(fixture, "p"), "-");
}

static void a_file_over_the_limit_counts_when_there_is_room(void **state)
{
    struct fixture *fixture = *state;
    char name[32];

    make_dir(fixture, "a");
    make_dir(fixture, "b");
    for (size_t i = 0; i < DV_CDI_DIRS_BYTES_MAX / DV_CDI_SPEC_BYTES_MAX; i++) {
        (void)snprintf(name, sizeof(name), "a/%02zu.json", i);
        put(fixture, name, "");
        assert_int_equal(truncate(c_in_root(fixture, name), DV_CDI_SPEC_BYTES_MAX), 0);
    }
    open_dirs(fixture);
    ask_in_vain(fixture);
    put(fixture, "a/last.yaml", SPEC(DEVICE("p", "1")));
    ask_in_vain(fixture);
    assert_string_equal(value_of(fixture, "p"), "-");
    expect_as_afresh(fixture);
    put(fixture, "a/00.json", "{}"); /* there is room now */
    ask_in_vain(fixture);
    assert_string_equal(value_of(fixture, "p"), "1");
    expect_as_afresh(fixture);
}

static void replace_often(struct fixture *fixture)
{
    for (int i = 0; i <= REPLACEMENTS; i++) {
        dv_str text =
            dv_str_printf(fixture->arena, SPEC(DEVICE("p", "%d") "," DEVICE("q", "%d")), i, i);

        replace(fixture, "a/1.yaml", dv_str_to_c(text, fixture->arena));
    }
}

static bool is_last(void *ctx)
{
    struct fixture *fixture = ctx;

    assert_string_equal(value_of(fixture, "p"), value_of(fixture, "q"));
    return atoi(value_of(fixture, "p")) == REPLACEMENTS;
}

/* By another process, all the while. */
static void a_file_that_is_replaced_while_it_is_read_is_whole(void **state)
{
    struct fixture *fixture = *state;
    int status;
    pid_t pid;

    start_model(fixture);
    replace(fixture, "a/1.yaml", SPEC(DEVICE("p", "0") "," DEVICE("q", "0")));
    ask_in_vain(fixture);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        replace_often(fixture);
        _exit(0);
    }
    assert_true(dv_loop_run_until(fixture->loop, is_last, fixture, 20000));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    expect_as_afresh(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FROZEN_TIME(asking_sees_all_that_was_done),
        ON_LOOP(events_alone_bring_all_that_was_done),
        IN_FROZEN_TIME(a_file_that_moves_on_and_on_is_found_where_it_is),
        IN_FROZEN_TIME(a_directory_that_was_away_is_read_again),
        IN_FROZEN_TIME(lost_events_are_made_good_by_asking),
        IN_FROZEN_TIME(a_link_is_looked_through_now_and_then),
        IN_FROZEN_TIME(a_file_over_the_limit_counts_when_there_is_room),
        ON_LOOP(a_file_that_is_replaced_while_it_is_read_is_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
