#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "loop/loop.h"
#include "store/store.h"
#include "store/tests/test_store_fixture.h"

struct reader {
    struct dv_store_read read;
    bool is_done;
    enum dv_code code;
};

static void on_read(struct dv_store_read *read, const struct dv_err *err)
{
    struct reader *reader = DV_CONTAINER(read, struct reader, read);

    assert_false(reader->is_done);
    reader->is_done = true;
    reader->code = err ? err->code : DV_OK;
}

static bool was_read(void *ctx)
{
    return ((struct reader *)ctx)->is_done;
}

struct writer {
    struct dv_store_write write;
    bool is_done;
    enum dv_code code;
};

static void on_write(struct dv_store_write *write, const struct dv_err *err)
{
    struct writer *writer = DV_CONTAINER(write, struct writer, write);

    assert_false(writer->is_done);
    writer->is_done = true;
    writer->code = err ? err->code : DV_OK;
}

static bool was_written(void *ctx)
{
    return ((struct writer *)ctx)->is_done;
}

static void fill(struct fixture *fixture, const char *const *keys, size_t n)
{
    struct dv_store_change changes[16];

    assert_in_range(n, 1, DV_COUNT(changes));
    for (size_t i = 0; i < n; i++)
        changes[i] = (struct dv_store_change){DV_STORE_PUT, PODS, dv_str_from_c(keys[i]),
                                              dv_str_from_c("value")};
    assert_int_equal(write_set(fixture, changes, n), DV_OK);
}

static void a_read_gives_a_page_of_what_was_asked(void **state)
{
    static const char *const keys[] = {"a", "ns/1", "ns/2", "ns/3", "ns/4", "ns0", "z"};
    static const struct {
        const char *prefix;
        const char *after;
        size_t n_rows_max;
        size_t bytes_max;
        const char *rows;
        bool has_more;
    } cases[] = {
        {"",        "",     100, 1000, "a ns/1 ns/2 ns/3 ns/4 ns0 z ", false},
        {"",        "",     7,   1000, "a ns/1 ns/2 ns/3 ns/4 ns0 z ", false},
        {"",        "",     6,   1000, "a ns/1 ns/2 ns/3 ns/4 ns0 ",   true },
        {"",        "ns/3", 2,   1000, "ns/4 ns0 ",                    true },
        {"",        "ns/3", 3,   1000, "ns/4 ns0 z ",                  false},
        {"ns/",     "",     100, 1000, "ns/1 ns/2 ns/3 ns/4 ",         false},
        {"ns/",     "ns/2", 100, 1000, "ns/3 ns/4 ",                   false},
        {"ns/",     "ns/4", 100, 1000, "",                             false},
        {"ns/",     "a",    100, 1000, "ns/1 ns/2 ns/3 ns/4 ",         false}, /* before them */
        {"ns/",     "z",    100, 1000, "",                             false}, /* behind them */
        {"ns/2",    "",     1,   1000, "ns/2 ",                        false}, /* one row */
        {"nothing", "",     100, 1000, "",                             false},
        {"",        "",     100, 15,   "a ns/1 ",                      true }, /* 6 and 9 bytes */
        {"",        "",     100, 14,   "a ",                           true },
        {"ns/",     "",     100, 1,    "ns/1 ",                        true },
    };
    struct fixture *fixture = *state;

    must_open(fixture);
    fill(fixture, keys, DV_COUNT(keys));
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct reader reader = {
            .read = {.done = on_read,
                     .table = PODS,
                     .prefix = dv_str_from_c(cases[i].prefix),
                     .after = dv_str_from_c(cases[i].after),
                     .n_rows_max = cases[i].n_rows_max,
                     .bytes_max = cases[i].bytes_max,
                     .arena = arena},
        };

        dv_store_read(fixture->store, &reader.read);
        assert_false(reader.is_done);
        run_until(fixture, was_read, &reader);
        assert_int_equal(reader.code, DV_OK);
        dv_buf_clear(&fixture->text);
        for (size_t row = 0; row < reader.read.n_rows; row++) {
            dv_buf_printf(&fixture->text, "%.*s ", DV_FMT(reader.read.rows[row].key));
            assert_str(reader.read.rows[row].value, "value");
        }
        assert_string_equal(dv_buf_c(&fixture->text), cases[i].rows);
        assert_int_equal(reader.read.has_more, cases[i].has_more);
    }
}

static void a_read_sees_what_was_submitted_before_it(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_store_change change = {DV_STORE_PUT, PODS, DV_STR_INIT("a"), DV_STR_INIT("1")};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct writer writer = {.write = {.done = on_write}};
    struct reader reader = {
        .read = {
                 .done = on_read, .table = PODS, .n_rows_max = 10, .bytes_max = 10, .arena = arena}
    };

    must_open(fixture);
    dv_store_write(fixture->store, &writer.write, &change, 1);
    dv_store_read(fixture->store, &reader.read);
    run_until(fixture, was_read, &reader);
    assert_true(writer.is_done); /* done in the order of submission */
    assert_int_equal(reader.read.n_rows, 1);
    assert_str(reader.read.rows[0].value, "1");
}

static void a_read_with_a_key_out_of_bounds_is_refused(void **state)
{
    static char large[DV_STORE_KEY_BYTES_MAX + 1];
    struct fixture *fixture = *state;
    struct reader reader = {
        .read = {.done = on_read, .after = {large, sizeof(large)}}
    };

    must_open(fixture);
    dv_store_read(fixture->store, &reader.read);
    assert_false(reader.is_done);
    run_until(fixture, was_read, &reader);
    assert_int_equal(reader.code, DV_INVALID_ARGUMENT);
}

static void a_store_in_memory_behaves_the_same(void **state)
{
    struct fixture *fixture = *state;

    fixture->store =
        dv_store_open_memory(fixture->loop, fixture->options.schema, NULL, &fixture->err);
    assert_non_null(fixture->store);
    assert_string_equal(load_rows(fixture, PODS), "");
    must_put(fixture, PODS, "b", "2");
    must_put(fixture, PODS, "a", "1");
    assert_string_equal(rows_of(fixture, PODS), "a=1 b=2 ");
    assert_null(find_file(fixture, ""));
    assert_null(dv_store_set_aside(fixture->store));
}

static void the_nth_write_to_a_store_in_memory_can_be_made_to_fail(void **state)
{
    struct fixture *fixture = *state;
    struct dv_store_faults faults = {.n_until = 2, .code = DV_DATA_LOSS};

    fixture->store =
        dv_store_open_memory(fixture->loop, fixture->options.schema, &faults, &fixture->err);
    assert_non_null(fixture->store);
    must_put(fixture, PODS, "a", "1");
    assert_int_equal(put(fixture, PODS, "b", "2"), DV_DATA_LOSS);
    must_put(fixture, PODS, "c", "3");
    faults = (struct dv_store_faults){.n_until = 1, .code = DV_RESOURCE_EXHAUSTED};
    assert_int_equal(put(fixture, PODS, "d", "4"), DV_RESOURCE_EXHAUSTED);
    must_put(fixture, PODS, "e", "5");
    assert_string_equal(rows_of(fixture, PODS), "a=1 c=3 e=5 ");
}

static void a_store_works_on_a_loop_whose_clock_stands_still(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_store_change change = {DV_STORE_PUT, PODS, DV_STR_INIT("a"), DV_STR_INIT("1")};
    struct writer writer = {.write = {.done = on_write}};
    struct dv_clock_virtual clock;
    struct dv_store *store;
    struct dv_loop *loop;

    dv_clock_virtual_init(&clock);
    loop = dv_loop_new(&clock.clock, &fixture->err);
    assert_non_null(loop);
    store = dv_store_open_memory(loop, fixture->options.schema, NULL, &fixture->err);
    assert_non_null(store);
    dv_store_write(store, &writer.write, &change, 1);
    assert_true(dv_loop_run_until(loop, was_written, &writer, 10000));
    assert_int_equal(writer.code, DV_OK);
    dv_store_close(store, NULL, NULL);
    dv_loop_free(loop); /* runs what is still due */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_read_gives_a_page_of_what_was_asked, start, end),
        cmocka_unit_test_setup_teardown(a_read_sees_what_was_submitted_before_it, start, end),
        cmocka_unit_test_setup_teardown(a_read_with_a_key_out_of_bounds_is_refused, start, end),
        cmocka_unit_test_setup_teardown(a_store_in_memory_behaves_the_same, start, end),
        cmocka_unit_test_setup_teardown(the_nth_write_to_a_store_in_memory_can_be_made_to_fail,
                                        start, end),
        cmocka_unit_test_setup_teardown(a_store_works_on_a_loop_whose_clock_stands_still, start,
                                        end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
