#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/file.h"
#include "flight/flight.h"
#include "grpc/grpc.h"
#include "record/record.h"
#include "support/dvtest.h"
#include "support/rig.h"
#include "support/scratch.h"

#define FILES_MAX 16u
#define FILE_BYTES_MAX (64u * 1024u * 1024u)

struct host {
    struct rig rig;
    char dir[96];
    struct dv_flight *flight;
    struct dv_buf seen; /* what is in all files, a word a record */
    size_t n_files;
    uint64_t largest;
    uint64_t n_lost; /* that the files tell of */
};

static int start(void **state)
{
    struct host *host = DV_ALLOC(struct host);

    rig_init(&host->rig, "flight");
    (void)snprintf(host->dir, sizeof(host->dir), "%s/ring", host->rig.dir);
    dv_buf_init(&host->seen, FILE_BYTES_MAX);
    *state = host;
    return 0;
}

static int end(void **state)
{
    struct host *host = *state;

    dv_buf_fini(&host->seen);
    rig_fini(&host->rig);
    free(host);
    return 0;
}

static void open_flight(struct host *host, uint64_t file_bytes, uint32_t n_files)
{
    const struct dv_flight_options options = {
        .dir = dv_str_from_c(host->dir),
        .file_bytes_max = file_bytes,
        .n_files_max = n_files,
        .about = DV_STR("a test"),
    };
    struct dv_err err;

    host->flight = dv_flight_open(host->rig.loop, &options, &err);
    assert_ok(host->flight, &err);
}

static void close_flight(struct host *host)
{
    int n_before = host->rig.n_closed;

    dv_flight_close(host->flight, rig_on_closed, &host->rig);
    rig_wait_count(&host->rig, &host->rig.n_closed, n_before + 1);
}

static void record(struct host *host, enum dv_grpc_event_kind kind, dv_str message)
{
    struct dv_grpc_observer *observer = dv_flight_observer(host->flight);
    const struct dv_grpc_event event = {
        .kind = kind,
        .name = DV_STR("gpu.example.com"),
        .method = DV_STR("/x.Y/Z"),
        .timeout_ms = DV_NO_DEADLINE,
        .message = message,
    };

    observer->event(observer, &event);
}

static void read_file(struct host *host, const char *name, struct dv_arena *arena)
{
    dv_str path = dv_str_printf(arena, "%s/%s", host->dir, name);
    struct dv_record_reader reader;
    enum dv_record_result result;
    struct dv_record got;
    struct dv_err err;
    dv_str bytes;

    assert_ok(dv_file_read(path, FILE_BYTES_MAX, arena, &bytes, &err), &err);
    assert_ok(dv_record_reader_init(&reader, bytes, &err), &err);
    host->n_files++;
    if (bytes.n > host->largest)
        host->largest = bytes.n;
    while ((result = dv_record_next(&reader, &got)) == DV_RECORD_READ) {
        dv_buf_add_c(&host->seen, dv_record_kind_name(got.kind));
        dv_buf_add_char(&host->seen, ' ');
        if (got.text.n > 0)
            dv_buf_printf(&host->seen, "\"%.*s\" ", DV_FMT(got.text));
        host->n_lost += got.n_lost;
    }
    assert_int_equal(result, DV_RECORD_OVER);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Reads all files of the ring, in their order. */
static void read_ring(struct host *host)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const char *names[FILES_MAX];
    const struct dirent *entry;
    DIR *dir = opendir(host->dir);
    size_t n = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        if (!dv_str_ends_with(dv_str_from_c(entry->d_name), DV_STR(DV_RECORD_SUFFIX)))
            continue;
        assert_true(n < FILES_MAX);
        names[n++] = dv_str_to_c(dv_str_from_c(entry->d_name), arena);
    }
    (void)closedir(dir);
    qsort(names, n, sizeof(names[0]), by_name);
    for (size_t i = 0; i < n; i++)
        read_file(host, names[i], arena);
}

static void writes_what_it_is_told(void **state)
{
    struct host *host = *state;
    struct stat about;

    open_flight(host, 0, 0);
    dv_flight_note(host->flight, DV_STR("begin"));
    record(host, DV_GRPC_CONNECTED, (dv_str){NULL, 0});
    record(host, DV_GRPC_CALL, DV_STR("request"));
    record(host, DV_GRPC_MESSAGE, DV_STR(""));
    record(host, DV_GRPC_END, (dv_str){NULL, 0});
    record(host, DV_GRPC_DISCONNECTED, (dv_str){NULL, 0});
    close_flight(host);
    read_ring(host);
    assert_str(dv_buf_str(&host->seen),
               "file \"a test\" note \"begin\" connected call message end disconnected ");
    assert_int_equal(host->n_files, 1);
    assert_int_equal(stat(host->dir, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);
}

static void keeps_no_more_than_the_ring(void **state)
{
    struct host *host = *state;
    char text[1000];
    char other[128];

    memset(text, 'x', sizeof(text));
    for (int run = 0; run < 2; run++) { /* the second goes on behind the first */
        open_flight(host, 10000, 3);
        for (int i = 0; i < 60; i++)
            record(host, DV_GRPC_MESSAGE, (dv_str){text, sizeof(text)});
        (void)snprintf(other, sizeof(other), "%s/davit-mine" DV_RECORD_SUFFIX ".bak", host->dir);
        close_flight(host);
        close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    }
    assert_int_equal(access(other, F_OK), 0); /* what is not of the ring stays */
    read_ring(host);
    assert_int_equal(host->n_files, 3);
    assert_true(host->largest <= 10000);
    (void)snprintf(other, sizeof(other), "%s/davit-00000001" DV_RECORD_SUFFIX, host->dir);
    assert_int_equal(access(other, F_OK), -1);
}

/* Turns the clock past all that is gathered, and waits a little in real time, because that is what
 * the thread has: for loops of a condition, with the test's own time limit. */
static void let_write(struct host *host)
{
    rig_advance(&host->rig, 250);
    (void)usleep(1000);
}

static void record_status(struct host *host, enum dv_code code)
{
    struct dv_grpc_observer *observer = dv_flight_observer(host->flight);
    const struct dv_err status = {.code = code};
    const struct dv_grpc_event event = {
        .kind = DV_GRPC_END, .method = DV_STR("/x.Y/Z"), .status = &status};

    observer->event(observer, &event);
}

/* Gives the thread time to write what it should not. */
static uint64_t n_written_after(struct host *host, uint64_t ms)
{
    rig_advance(&host->rig, ms);
    (void)usleep(20000);
    return dv_flight_stats(host->flight).n_records;
}

static void await_written(struct host *host, uint64_t n)
{
    while (dv_flight_stats(host->flight).n_records < n)
        (void)usleep(1000); /* the thread was woken */
}

static void writes_what_was_gathered_in_a_quarter_of_a_second_and_failures_sooner(void **state)
{
    struct host *host = *state;

    open_flight(host, 0, 0);
    record(host, DV_GRPC_CALL, DV_STR("first"));
    record_status(host, DV_OK);
    assert_int_equal(n_written_after(host, 249), 0);
    rig_advance(&host->rig, 1);
    await_written(host, 2);
    record(host, DV_GRPC_CALL, DV_STR("second"));
    assert_int_equal(n_written_after(host, 100), 2);
    record_status(host, DV_UNAVAILABLE);
    assert_int_equal(n_written_after(host, 24), 2);
    rig_advance(&host->rig, 1);
    await_written(host, 4);
    /* The failure has not made what comes later wait for the time of before. */
    record(host, DV_GRPC_DISCONNECTED, DV_STR_NONE);
    rig_advance(&host->rig, 25);
    await_written(host, 5);
    close_flight(host);
}

static void writes_much_at_once(void **state)
{
    struct host *host = *state;
    size_t n = 1024u * 1024u;
    char *text = dv_alloc(n);

    open_flight(host, 0, 0);
    record(host, DV_GRPC_MESSAGE, (dv_str){text, n});
    await_written(host, 1); /* no time has passed */
    close_flight(host);
    free(text);
}

static void makes_a_directory_again_that_was_removed(void **state)
{
    struct host *host = *state;

    open_flight(host, 0, 0);
    record(host, DV_GRPC_CALL, DV_STR("first"));
    while (dv_flight_stats(host->flight).n_files == 0)
        let_write(host);
    scratch_remove(host->dir);
    while (dv_flight_stats(host->flight).n_files < 2) {
        record(host, DV_GRPC_MESSAGE, DV_STR("again"));
        let_write(host);
    }
    close_flight(host);
    read_ring(host);
    assert_int_equal(host->n_files, 1);
    assert_true(dv_str_starts_with(dv_buf_str(&host->seen), DV_STR("file \"a test\" message ")));
}

static void goes_on_when_the_directory_can_be_used(void **state)
{
    struct host *host = *state;
    int fd = open(host->dir, O_CREAT | O_WRONLY | O_CLOEXEC, 0600); /* a file in its place */

    assert_true(fd >= 0);
    (void)close(fd);
    open_flight(host, 0, 0);
    record(host, DV_GRPC_CALL, DV_STR("first"));
    while (dv_flight_stats(host->flight).n_lost_disk == 0)
        let_write(host);
    assert_true(dv_flight_stats(host->flight).is_failing);
    assert_int_equal(unlink(host->dir), 0);
    while (dv_flight_stats(host->flight).n_records == 0) {
        record(host, DV_GRPC_MESSAGE, DV_STR("again"));
        let_write(host);
    }
    close_flight(host);
    read_ring(host);
    assert_true(
        dv_str_starts_with(dv_buf_str(&host->seen), DV_STR("file \"a test\" lost message ")));
    assert_true(host->n_lost > 0);
}

static void counts_what_does_not_fit_into_the_queue(void **state)
{
    struct host *host = *state;
    size_t n = 3u * 1024u * 1024u;
    char *text = dv_alloc(n);
    struct dv_flight_stats stats;

    open_flight(host, 64u * 1024u * 1024u, 2);
    do {
        record(host, DV_GRPC_MESSAGE, (dv_str){text, n});
        stats = dv_flight_stats(host->flight);
    } while (stats.n_lost_queue == 0);
    record(host, DV_GRPC_END, (dv_str){NULL, 0});
    close_flight(host);
    read_ring(host);
    assert_true(host->n_lost > 0);
    free(text);
}

static void keeps_the_beginning_of_a_long_message(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct host *host = *state;
    size_t n = 5u * 1024u * 1024u;
    char *text = dv_alloc(n);
    struct dv_record_reader reader;
    struct dv_record got;
    struct dv_err err;
    dv_str bytes;

    open_flight(host, 0, 0);
    record(host, DV_GRPC_MESSAGE, (dv_str){text, n});
    close_flight(host);
    assert_ok(dv_file_read(dv_str_printf(arena, "%s/davit-00000001.dav", host->dir), FILE_BYTES_MAX,
                           arena, &bytes, &err),
              &err);
    assert_ok(dv_record_reader_init(&reader, bytes, &err), &err);
    assert_int_equal(dv_record_next(&reader, &got), DV_RECORD_READ);
    assert_int_equal(dv_record_next(&reader, &got), DV_RECORD_READ);
    assert_int_equal(got.message_bytes, n);
    assert_int_equal(got.message.n, 4u * 1024u * 1024u);
    free(text);
}

/* A plugin's list of devices is at the beginning of a file that has nothing else of it. */
static void repeats_what_plugins_said_of_themselves(void **state)
{
    struct host *host = *state;
    struct dv_grpc_observer *observer;
    struct dv_grpc_event list = {
        .kind = DV_GRPC_MESSAGE,
        .name = DV_STR("example.com/gpu"),
        .method = DV_STR("/v1beta1.DevicePlugin/ListAndWatch"),
        .message = DV_STR("\n\x04\n\x02id"),
    };
    char text[1000] = "";
    size_t n_lists = 0;

    open_flight(host, 40000, 2);
    observer = dv_flight_observer(host->flight);
    observer->event(observer, &list);
    observer->event(observer, &list); /* only the last counts */
    for (int i = 0; i < 60; i++)
        record(host, DV_GRPC_END, (dv_str){text, sizeof(text)});
    close_flight(host);
    read_ring(host);
    assert_int_equal(host->n_files, 2);
    for (dv_str rest = dv_buf_str(&host->seen); rest.n > 0; n_lists++) {
        size_t at = dv_str_find(rest, DV_STR("message "));

        if (at == rest.n)
            break;
        rest = dv_str_slice(rest, at + 1, rest.n);
    }
    assert_int_equal(n_lists, 3); /* both, and in the second file once more */
}

static void fills_one_file_and_says_what_is_missing(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct host *host = *state;
    const struct dv_flight_options options = {
        .file = dv_str_printf(arena, "%s/case.dav", host->rig.dir),
        .file_bytes_max = 5000,
        .about = DV_STR("a case"),
    };
    char text[1000] = "";
    struct dv_err err;

    host->flight = dv_flight_open(host->rig.loop, &options, &err);
    assert_ok(host->flight, &err);
    for (int i = 0; i < 10; i++)
        record(host, DV_GRPC_MESSAGE, (dv_str){text, sizeof(text)});
    close_flight(host);
    (void)snprintf(host->dir, sizeof(host->dir), "%s", host->rig.dir);
    read_file(host, "case.dav", arena);
    assert_str(dv_buf_str(&host->seen), "file \"a case\" message message message message lost ");
    assert_int_equal(host->n_lost, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_what_it_is_told, start, end),
        cmocka_unit_test_setup_teardown(keeps_no_more_than_the_ring, start, end),
        cmocka_unit_test_setup_teardown(
            writes_what_was_gathered_in_a_quarter_of_a_second_and_failures_sooner, start, end),
        cmocka_unit_test_setup_teardown(writes_much_at_once, start, end),
        cmocka_unit_test_setup_teardown(makes_a_directory_again_that_was_removed, start, end),
        cmocka_unit_test_setup_teardown(goes_on_when_the_directory_can_be_used, start, end),
        cmocka_unit_test_setup_teardown(counts_what_does_not_fit_into_the_queue, start, end),
        cmocka_unit_test_setup_teardown(keeps_the_beginning_of_a_long_message, start, end),
        cmocka_unit_test_setup_teardown(repeats_what_plugins_said_of_themselves, start, end),
        cmocka_unit_test_setup_teardown(fills_one_file_and_says_what_is_missing, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
