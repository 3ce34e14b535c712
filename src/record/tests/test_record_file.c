#include <string.h>

#include "base/buf.h"
#include "record/record.h"
#include "support/dvtest.h"

#define FILE_BYTES_MAX 65536u

static const struct dv_record records[] = {
    {.kind = DV_RECORD_FILE,
     .wall_ns = 1700000000000000000,
     .text = DV_STR_INIT("davitd 0.1.0 on n1")             },
    {       .kind = DV_RECORD_CONNECTED,
     .wall_ns = 1700000000000000001,
     .clock_ns = 7,
     .connection = 3,
     .has_peer = true,
     .pid = 4711,
     .uid = 0,
     .gid = 0,
     .name = DV_STR_INIT("gpu.example.com"),
     .socket = DV_STR_INIT("/var/lib/kubelet/plugins/gpu/dra.sock")},
    {                                               .kind = DV_RECORD_CALL,
     .connection = 3,
     .call = 4,
     .is_sent = true,
     .pod_uid = DV_STR_INIT("4b1d"),
     .container = DV_STR_INIT("main"),
     .has_timeout = true,
     .timeout_ms = 0,
     .name = DV_STR_INIT("gpu.example.com"),
     .method = DV_STR_INIT("/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"),
     .message = DV_STR_INIT("")},
    { .kind = DV_RECORD_MESSAGE,
     .call = 4,
     .message = DV_STR_INIT("\n\x03"
                            "abc"),
     .message_bytes = 5000,
     .is_blanked = true},
    {                                                .kind = DV_RECORD_END,
     .call = 4,
     .n_tries = 2,
     .status = DV_DEADLINE_EXCEEDED,
     .text = DV_STR_INIT("late")},
    {                         .kind = DV_RECORD_REFUSED,
     .is_served = true,
     .has_peer = true,
     .pid = -1,
     .uid = UINT32_MAX,
     .gid = 5},
    {                                                      .kind = DV_RECORD_LOST,            .n_lost = 17,             .lost_bytes = UINT64_MAX,                                   .is_repeated = true},
};

static void write_all(struct dv_buf *file)
{
    dv_buf_init(file, FILE_BYTES_MAX);
    dv_record_add_head(file);
    for (size_t i = 0; i < DV_COUNT(records); i++) {
        size_t at = file->n;

        dv_record_add(file, &records[i]);
        assert_int_equal(dv_record_seal(file->p + at), file->n - at);
    }
}

static void check_record(const struct dv_record *got, const struct dv_record *want)
{
    assert_int_equal(got->kind, want->kind);
    assert_int_equal(got->wall_ns, want->wall_ns);
    assert_int_equal(got->clock_ns, want->clock_ns);
    assert_int_equal(got->connection, want->connection);
    assert_int_equal(got->call, want->call);
    assert_int_equal(got->is_served, want->is_served);
    assert_int_equal(got->is_sent, want->is_sent);
    assert_int_equal(got->is_blanked, want->is_blanked);
    assert_int_equal(got->is_repeated, want->is_repeated);
    assert_int_equal(got->has_peer, want->has_peer);
    assert_int_equal(got->pid, want->pid);
    assert_int_equal(got->uid, want->uid);
    assert_int_equal(got->gid, want->gid);
    assert_int_equal(got->has_timeout, want->has_timeout);
    assert_int_equal(got->timeout_ms, want->timeout_ms);
    assert_int_equal(got->n_tries, want->n_tries);
    assert_int_equal(got->status, want->status);
    assert_int_equal(got->message_bytes, want->message_bytes);
    assert_int_equal(got->n_lost, want->n_lost);
    assert_int_equal(got->lost_bytes, want->lost_bytes);
    assert_true(dv_str_eq(got->pod_uid, want->pod_uid));
    assert_true(dv_str_eq(got->container, want->container));
    assert_true(dv_str_eq(got->name, want->name));
    assert_true(dv_str_eq(got->socket, want->socket));
    assert_true(dv_str_eq(got->method, want->method));
    assert_true(dv_str_eq(got->text, want->text));
    assert_true(dv_str_eq(got->message, want->message));
    assert_int_equal(got->message.p == NULL, want->message.p == NULL);
}

static void reads_back_what_was_written(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf file;
    struct dv_record_reader reader;
    struct dv_record record;
    struct dv_err err;

    (void)state;
    write_all(&file);
    assert_ok(dv_record_reader_init(&reader, dv_buf_str(&file), &err), &err);
    for (size_t i = 0; i < DV_COUNT(records); i++) {
        assert_int_equal(dv_record_next(&reader, &record), DV_RECORD_READ);
        check_record(&record, &records[i]);
    }
    assert_int_equal(dv_record_next(&reader, &record), DV_RECORD_OVER);
}

static void tells_a_torn_end_wherever_it_is(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf file;
    struct dv_err err;

    (void)state;
    write_all(&file);
    for (size_t n = DV_RECORD_HEAD_BYTES; n < file.n; n++) {
        struct dv_record_reader reader;
        enum dv_record_result result;
        struct dv_record record;
        size_t n_read = 0;

        assert_ok(dv_record_reader_init(&reader, (dv_str){file.p, n}, &err), &err);
        while ((result = dv_record_next(&reader, &record)) == DV_RECORD_READ)
            check_record(&record, &records[n_read++]);
        assert_int_equal(result, reader.at == n ? DV_RECORD_OVER : DV_RECORD_TORN);
        assert_int_equal(reader.skipped, n - reader.at);
        assert_int_equal(dv_record_next(&reader, &record), result);
    }
}

/* Any byte of a record may be wrong: that record is passed over, and those behind it are read. */
static void passes_over_a_damaged_record(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf file;
    struct dv_err err;

    (void)state;
    write_all(&file);
    for (size_t at = DV_RECORD_HEAD_BYTES; at < file.n; at++) {
        struct dv_record_reader reader;
        enum dv_record_result result;
        struct dv_record record;
        size_t n_read = 0;
        size_t n_bad = 0;

        file.p[at] ^= 0x40;
        assert_ok(dv_record_reader_init(&reader, dv_buf_str(&file), &err), &err);
        while ((result = dv_record_next(&reader, &record)) == DV_RECORD_READ ||
               result == DV_RECORD_DAMAGED) {
            n_bad += result == DV_RECORD_DAMAGED;
            n_read += result == DV_RECORD_READ;
        }
        n_bad += result == DV_RECORD_TORN; /* the length of the last record was changed */
        assert_int_equal(n_bad, 1);
        assert_int_equal(n_read, DV_COUNT(records) - 1);
        file.p[at] ^= 0x40;
    }
}

static void refuses_other_files_and_later_versions(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf file;
    struct dv_record_reader reader;
    struct dv_err err;

    (void)state;
    assert_false(dv_record_reader_init(&reader, DV_STR(""), &err));
    assert_false(dv_record_reader_init(&reader, DV_STR("SQLite format 3 and more"), &err));
    assert_int_equal(err.code, DV_INVALID_ARGUMENT);
    dv_buf_init(&file, FILE_BYTES_MAX);
    dv_record_add_head(&file);
    assert_ok(dv_record_reader_init(&reader, dv_buf_str(&file), &err), &err);
    file.p[8] = DV_RECORD_VERSION + 1;
    assert_false(dv_record_reader_init(&reader, dv_buf_str(&file), &err));
    assert_int_equal(err.code, DV_UNIMPLEMENTED);
    assert_non_null(strstr(err.msg, "use a later davit"));
    file.p[8] = 0;
    assert_false(dv_record_reader_init(&reader, dv_buf_str(&file), &err));
}

/* Marks that follow each other closely, each with a length that reaches far: the search for the
 * next record has an end. */
static void does_not_search_for_ever(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf file;
    struct dv_record_reader reader;
    struct dv_record record;
    struct dv_err err;

    (void)state;
    dv_buf_init(&file, FILE_BYTES_MAX * 64);
    dv_record_add_head(&file);
    for (size_t i = 0; i < 40000; i++) /* a length of 2 MiB */
        dv_buf_add(&file, (dv_str){"\xd6REC\0\0\x20\0", 8});
    for (size_t i = 0; i < 40000; i++)
        dv_buf_add(&file, (dv_str){"0123456789012345678901234567890123456789012345678", 50});
    assert_ok(dv_record_reader_init(&reader, dv_buf_str(&file), &err), &err);
    while (dv_record_next(&reader, &record) == DV_RECORD_DAMAGED)
        ;
    assert_true(reader.work < 64 * (uint64_t)file.n);
}

/* Each mark begins a frame that would reach nearly to the end, and behind each is a record. */
static void does_not_search_for_ever_between_records(void **state)
{
    const struct dv_record note = {.kind = DV_RECORD_NOTE};
    DV_CLEANUP(dv_buf_fini) struct dv_buf file;
    struct dv_record_reader reader;
    enum dv_record_result result;
    struct dv_record record;
    struct dv_err err;

    (void)state;
    dv_buf_init(&file, 1u << 20);
    dv_record_add_head(&file);
    for (size_t i = 0; i < 8000; i++) {
        size_t at = file.n + 12;

        dv_buf_add(&file, (dv_str){"\xd6REC\0\0\1\0sums", 12});
        dv_record_add(&file, &note);
        assert_int_equal(dv_record_seal(file.p + at), file.n - at);
    }
    for (size_t i = 0; i < 1u << 16; i++)
        dv_buf_add_char(&file, 'x');
    assert_ok(dv_record_reader_init(&reader, dv_buf_str(&file), &err), &err);
    do
        result = dv_record_next(&reader, &record);
    while (result == DV_RECORD_READ || result == DV_RECORD_DAMAGED);
    assert_int_equal(result, DV_RECORD_OVER);
    assert_true(reader.work < 64 * (uint64_t)file.n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_back_what_was_written),
        cmocka_unit_test(tells_a_torn_end_wherever_it_is),
        cmocka_unit_test(passes_over_a_damaged_record),
        cmocka_unit_test(refuses_other_files_and_later_versions),
        cmocka_unit_test(does_not_search_for_ever),
        cmocka_unit_test(does_not_search_for_ever_between_records),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
