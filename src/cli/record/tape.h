/* tape.h - a recording in memory: the records of one file, or of a ring of files, in their order.
 */
#ifndef DV_CLI_TAPE_H
#define DV_CLI_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "record/record.h"

struct dv_arena;
struct dv_err;

struct dv_tape_record {
    struct dv_record r;
    uint64_t run; /* of the process that recorded: ids of calls are unique in one */
};

/* How far a file has been read. */
struct dv_tape_file {
    const char *path;
    uint64_t at;
    uint64_t run;
    uint64_t torn; /* bytes at its end that are no record yet */
};

struct dv_tape {
    struct dv_arena *arena;
    const dv_str *places; /* files and directories, as they were named */
    size_t n_places;
    DV_VEC(struct dv_tape_record) records;
    DV_VEC(struct dv_tape_file) files;
};

/* Begins; `places` are kept. */
void dv_tape_init(struct dv_tape *tape, const dv_str *places, size_t n_places,
                  struct dv_arena *arena);
void dv_tape_fini(struct dv_tape *tape);
/* Reads what the files have more than before, new files of directories too. Damage is told on
 * standard error, and passed over. DV_NOT_FOUND: there is no recording. */
DV_CHECKED bool dv_tape_read(struct dv_tape *tape, struct dv_err *err);
/* Tells of records that were torn at the ends of files, on standard error. */
void dv_tape_tell_torn(const struct dv_tape *tape);

/* Which records are wanted; what is empty does not choose. */
struct dv_tape_filter {
    dv_str driver; /* or resource */
    dv_str claim;  /* its UID, its name, or NAMESPACE/NAME */
    dv_str pod;    /* its UID, or how that begins */
    dv_str call;   /* "Method" or the whole path */
    dv_str status; /* a name or number of gRPC, or "error": all but OK */
    uint64_t since_ns;
    uint64_t until_ns; /* 0: no end */
};

/* DV_INVALID_ARGUMENT: there is no such status. */
DV_CHECKED bool dv_tape_filter_check(const struct dv_tape_filter *filter, struct dv_err *err);
/* Sets wanted[i] for each record of the tape, which has room for all. Of a call that is wanted
 * because of one of its records, all are. */
void dv_tape_choose(const struct dv_tape *tape, const struct dv_tape_filter *filter, bool *wanted);

/* The name of the driver or resource that the record is about, also while a socket was asked for
 * it; empty: none. Valid for the tape's life. */
struct dv_tape_owners;
struct dv_tape_owners *dv_tape_owners_new(const struct dv_tape *tape, struct dv_arena *arena);
void dv_tape_owners_fini(struct dv_tape_owners *owners);
dv_str dv_tape_owner(const struct dv_tape_owners *owners, const struct dv_tape_record *record);

#endif
