/* flight_files.h - the files of a recorder, on its thread: a ring in a directory, or one file. */
#ifndef DV_FLIGHT_FILES_H
#define DV_FLIGHT_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "flight/flight.h"

struct dv_err;

struct dv_flight_files {
    struct dv_flight_options options; /* texts are owned */
    int fd;                           /* -1: there is no file yet */
    uint64_t n_bytes;                 /* in the file */
    uint64_t n_head_bytes;            /* with which every file begins */
    uint64_t number;                  /* of the last file that was begun, in the ring */
    bool has_begun;                   /* a single file was made; it is not replaced again */
};

/* Copies the options. */
void dv_flight_files_init(struct dv_flight_files *files, const struct dv_flight_options *options);
void dv_flight_files_fini(struct dv_flight_files *files);

/* Whether so many bytes more fit into the file, if there is one. */
bool dv_flight_files_has_room(const struct dv_flight_files *files, uint64_t n_bytes);
/* Whether so many bytes more need a new file: there is none, it is full, or it was taken away. */
bool dv_flight_files_needs_new(const struct dv_flight_files *files, uint64_t n_bytes);
/* Begins the next file with `head`, and removes the oldest ones. DV_RESOURCE_EXHAUSTED: the single
 * file is full. */
DV_CHECKED bool dv_flight_files_begin(struct dv_flight_files *files, dv_str head,
                                      struct dv_err *err);
/* Adds whole frames to the file. What was written in part is taken back as far as that goes. */
DV_CHECKED bool dv_flight_files_write(struct dv_flight_files *files, dv_str frames,
                                      struct dv_err *err);

#endif
