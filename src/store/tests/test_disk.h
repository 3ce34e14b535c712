/* test_disk.h - a disk in the test's hand.
 *
 * The program's own pread64, pwrite64, ftruncate64, fdatasync, fsync and rename stand between
 * SQLite (and our code) and the kernel. They pass everything on, count, and do as they are told
 * here. */
#ifndef DV_STORE_TEST_DISK_H
#define DV_STORE_TEST_DISK_H

#include <stdbool.h>
#include <stdint.h>

/* Everything passes, the counts are 0, nothing is recorded. */
void disk_reset(void);
uint64_t disk_n_calls(void); /* since then */
uint64_t disk_n_syncs(void);

/* From the n-th call (1: the next) on, `n_failing` of them fail. */
void disk_fail(uint64_t nth, uint64_t n_failing, int errnum);
bool disk_has_failed(void);
/* All calls on the file at `path` fail. */
void disk_fail_file(const char *path, int errnum);
/* Reads of the file at `path` fail: of the bytes from `at` on, `n_failing` times. */
void disk_fail_reads(const char *path, uint64_t at, uint64_t n_failing, int errnum);

/* Syncs wait until they are released. */
void disk_hold(void);
void disk_wait_held(void); /* until one waits */
void disk_release(void);

/* ---- power cuts ----
 *
 * What is recorded of a store's two files is what a disk sees: writes, and syncs after which they
 * are there for good. An image is what is found after a cut: all that was synced by then, and of
 * the rest each sector or not, as it happens. */

#define DISK_N_FILES 2u /* the database, its log */

void disk_record(const char *path); /* of the database; the files as they are now are synced */
void disk_mark(uint64_t number);    /* into the record: told somebody that this is durable */
uint64_t disk_n_recorded(void);
/* Writes the image after `n` entries of the record, with the choices of `seed`, to `path` and
 * `path`-wal. Returns the largest number marked by then. */
uint64_t disk_make_image(const char *path, uint64_t n, unsigned seed);

#endif
