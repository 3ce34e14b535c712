/* flight_thread.c - the recorder's thread: takes all that is queued and writes it. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/num.h"
#include "base/str.h"
#include "flight/flight.h"
#include "flight/flight_files.h"
#include "flight/flight_pins.h"
#include "flight/flight_state.h"
#include "loop/loop.h"
#include "record/message.h"
#include "record/record.h"

/* How long nothing is tried after a failure. */
#define RETRY_NS (1000u * 1000000u)
/* A buffer that has grown beyond this is given back. */
#define KEEP_BYTES (256u * 1024u)
/* What is blanked may get longer: a field of three bytes gets eleven. */
#define BLANKED_FACTOR 4u
/* What is repeated at the beginning of a file takes no more than such a part of it. */
#define PINS_PART 4u
#define HEAD_BYTES_MAX (64u * 1024u)

/* What the thread has taken from the queue, and what it knows of its own. */
struct writer {
    struct dv_flight *flight;
    struct dv_flight_files *files;
    struct dv_buf batch;
    uint64_t n_batch; /* records in it */
    uint64_t n_lost;  /* that no LOST record in a file tells of yet */
    uint64_t lost_bytes;
    uint64_t run;      /* a number for readers: ids of calls are unique in one run */
    uint64_t retry_ns; /* on the monotonic clock; 0: nothing has failed */
    struct dv_flight_stats stats;
    struct dv_flight_pins pins;
};

/* ---- when ---- */

/* Waits for records and takes them; false: there are none, and there will be no more. */
static bool take(struct writer *writer)
{
    struct dv_flight *flight = writer->flight;
    struct dv_buf empty = writer->batch;

    (void)pthread_mutex_lock(&flight->lock);
    flight->stats.n_records += writer->stats.n_records;
    flight->stats.n_bytes += writer->stats.n_bytes;
    flight->stats.n_lost_disk += writer->stats.n_lost_disk;
    flight->stats.n_files += writer->stats.n_files;
    flight->stats.is_failing = writer->retry_ns != 0;
    writer->stats = (struct dv_flight_stats){0};
    while (!(flight->is_due && flight->n_queued > 0) && !flight->is_closing)
        (void)pthread_cond_wait(&flight->more, &flight->lock);
    flight->is_due = false;
    writer->batch = flight->queue;
    writer->n_batch = flight->n_queued;
    writer->n_lost += flight->n_lost;
    writer->lost_bytes += flight->lost_bytes;
    empty.max = flight->queue.max;
    flight->queue = empty;
    flight->n_queued = flight->n_lost = flight->lost_bytes = 0;
    (void)pthread_mutex_unlock(&flight->lock);
    return writer->n_batch > 0;
}

/* ---- what ---- */

static void add_sealed(struct dv_buf *buf, struct dv_record *record)
{
    size_t start = buf->n;

    record->wall_ns = dv_clock_wall_ns(dv_clock_real());
    record->clock_ns = dv_clock_now_ns(dv_clock_real());
    dv_record_add(buf, record);
    if (!buf->is_over)
        (void)dv_record_seal(buf->p + start);
}

static bool begin_file(struct writer *writer, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf head;
    struct dv_record about = {
        .kind = DV_RECORD_FILE,
        .connection = writer->run,
        .text = writer->files->options.about,
    };

    dv_buf_init(&head, HEAD_BYTES_MAX + writer->pins.bytes_max);
    dv_record_add_head(&head);
    add_sealed(&head, &about);
    dv_flight_pins_add(&writer->pins, &head);
    if (!dv_flight_files_begin(writer->files, dv_buf_str(&head), err))
        return false;
    writer->stats.n_files++;
    writer->stats.n_bytes += head.n;
    return true;
}

/* Says in the file how much is missing before what follows. */
static bool tell_lost(struct writer *writer, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf frame;
    struct dv_record lost = {
        .kind = DV_RECORD_LOST, .n_lost = writer->n_lost, .lost_bytes = writer->lost_bytes};

    dv_buf_init(&frame, HEAD_BYTES_MAX);
    if (writer->n_lost == 0)
        return true;
    add_sealed(&frame, &lost);
    if (!dv_flight_files_write(writer->files, dv_buf_str(&frame), err))
        return false;
    writer->stats.n_bytes += frame.n;
    writer->n_lost = writer->lost_bytes = 0;
    return true;
}

/* Takes what is secret out of the batch. */
static void blank_batch(struct writer *writer)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_buf blanked;
    size_t at = 0;

    dv_buf_init(&blanked, writer->batch.max * BLANKED_FACTOR);
    while (at < writer->batch.n) {
        size_t size = dv_record_seal(writer->batch.p + at);
        struct dv_record record;

        size_t before = blanked.n;

        dv_record_get((dv_str){writer->batch.p + at, size}, &record);
        dv_record_blank(&record, writer->files->options.blanks, arena);
        dv_record_add(&blanked, &record);
        if (blanked.is_over) { /* it does not get that long: see BLANKED_FACTOR */
            dv_buf_cut(&blanked, before);
            blanked.is_over = false;
        }
        at += size;
        dv_arena_reset(arena);
    }
    blanked.max = writer->batch.max;
    dv_buf_fini(&writer->batch);
    writer->batch = blanked;
}

/* Writes frames that fit into one file. */
static bool write_run(struct writer *writer, dv_str run, uint64_t n_records, struct dv_err *err)
{
    if (run.n == 0)
        return true;
    if (dv_flight_files_needs_new(writer->files, run.n) && !begin_file(writer, err))
        return false;
    if (!tell_lost(writer, err) || !dv_flight_files_write(writer->files, run, err))
        return false;
    writer->stats.n_records += n_records;
    writer->stats.n_bytes += run.n;
    /* Only now: the file that has them need not repeat them. */
    for (size_t at = 0, size; at < run.n; at += size) {
        size = dv_record_frame_size(run.p + at);
        dv_flight_pins_see(&writer->pins, dv_str_slice(run, at, at + size));
    }
    return true;
}

/* Writes the batch in as few pieces as there are files for it; *n_done counts what is written. */
static bool write_batch(struct writer *writer, uint64_t *n_done, struct dv_err *err)
{
    char *frames = writer->batch.p;
    size_t start = 0;
    size_t at = 0;
    uint64_t n = 0;

    while (at < writer->batch.n) {
        size_t size = dv_record_seal(frames + at);

        if (at > start && !dv_flight_files_has_room(writer->files, at + size - start)) {
            if (!write_run(writer, (dv_str){frames + start, at - start}, n, err))
                return false;
            *n_done += n;
            start = at;
            n = 0;
        }
        at += size;
        n++;
    }
    if (!write_run(writer, (dv_str){frames + start, at - start}, n, err))
        return false;
    *n_done += n;
    return true;
}

static bool blank_and_write(struct writer *writer, uint64_t *n_done, struct dv_err *err)
{
    if (writer->files->options.blanks != 0)
        blank_batch(writer);
    return write_batch(writer, n_done, err);
}

/* The records that were not written are lost; the next attempt comes in a while. */
static void fail(struct writer *writer, uint64_t n_done, const struct dv_err *err)
{
    if (writer->retry_ns == 0)
        dv_log(DV_LOG_ERROR,
               "flight: cannot record; trying again, and what comes meanwhile is lost",
               DV_F_ERR(err));
    writer->retry_ns = dv_clock_now_ns(dv_clock_real()) + RETRY_NS;
    writer->n_lost += writer->n_batch - n_done;
    writer->lost_bytes += writer->batch.n;
    writer->stats.n_lost_disk += writer->n_batch - n_done;
}

static void handle_batch(struct writer *writer)
{
    uint64_t n_done = 0;
    struct dv_err err;

    if (writer->retry_ns != 0 && dv_clock_now_ns(dv_clock_real()) < writer->retry_ns) {
        writer->n_lost += writer->n_batch;
        writer->lost_bytes += writer->batch.n;
        writer->stats.n_lost_disk += writer->n_batch;
    } else if (!blank_and_write(writer, &n_done, &err)) {
        fail(writer, n_done, &err);
    } else if (writer->retry_ns != 0) {
        dv_log(DV_LOG_INFO, "flight: records again");
        writer->retry_ns = 0;
    }
    if (writer->batch.size > KEEP_BYTES) {
        size_t max = writer->batch.max;

        dv_buf_fini(&writer->batch);
        dv_buf_init(&writer->batch, max);
    }
    dv_buf_clear(&writer->batch);
}

void *dv_flight_write(void *ctx)
{
    struct dv_flight *flight = ctx;
    struct writer writer = {
        .flight = flight,
        .files = &flight->files,
        .run = dv_random_u64(),
    };
    struct dv_err err;

    dv_flight_pins_init(&writer.pins, flight->files.options.file_bytes_max / PINS_PART);
    dv_buf_init(&writer.batch, flight->queue.max);
    while (take(&writer))
        handle_batch(&writer);
    if (flight->files.fd >= 0)
        (void)tell_lost(&writer, &err); /* there is nobody left who could do anything about it */
    dv_flight_pins_fini(&writer.pins);
    dv_buf_fini(&writer.batch);
    dv_async_wake(flight->wake); /* the last that the thread does: it is joined then */
    return NULL;
}
