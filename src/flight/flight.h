/* flight.h - the flight recorder: what channels and servers send and receive, written into files.
 *
 * The loop copies each event into a bounded queue; a thread writes them. What does not fit into the
 * queue, and what the disk does not take, is lost and counted: nobody waits for a recording, and no
 * fault of its disk reaches anybody else. */
#ifndef DV_FLIGHT_H
#define DV_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "loop/loop.h"

struct dv_err;
struct dv_flight;
struct dv_grpc_observer;

struct dv_flight_options {
    /* The directory of a ring of files; the oldest is removed for a new one. It is made when it is
     * not there, again if need be. */
    dv_str dir;
    /* Or one file, which is replaced; empty: there is a ring. */
    dv_str file;
    uint64_t file_bytes_max; /* 0: 16 MiB. A single file takes no more than this */
    uint32_t n_files_max;    /* of the ring; 0: 8 */
    dv_str about;            /* who records, for readers */
    uint32_t blanks;         /* what is blanked: bits of record/message.h */
};

struct dv_flight_stats {
    uint64_t n_records;    /* that were written */
    uint64_t n_bytes;      /* that were written */
    uint64_t n_lost_queue; /* records for which there was no room */
    uint64_t n_lost_disk;  /* records that could not be written */
    uint64_t n_files;      /* that were begun */
    bool is_failing;       /* the last attempt to write failed */
};

/* Opens the recorder. Fails only when there can be no thread: a directory that cannot be used yet
 * is tried again, and logged. */
struct dv_flight *dv_flight_open(struct dv_loop *loop, const struct dv_flight_options *options,
                                 struct dv_err *err);
/* What channels and servers are given; it lives as long as the recorder. */
struct dv_grpc_observer *dv_flight_observer(struct dv_flight *flight);
/* Records a text. */
void dv_flight_note(struct dv_flight *flight, dv_str text);
struct dv_flight_stats dv_flight_stats(struct dv_flight *flight);
/* Writes what is in the queue, and closes the recorder, which nobody may have as an observer any
 * more. `closed` may be NULL. */
void dv_flight_close(struct dv_flight *flight, dv_closed_fn *closed, void *ctx);

#endif
