/* test_voldir.h - a pod's directories in a scratch directory and a mount namespace of their own. */
#ifndef DV_VOLDIR_TESTS_TEST_VOLDIR_H
#define DV_VOLDIR_TESTS_TEST_VOLDIR_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"
#include "support/rig.h"
#include "workload/volume.h"

#define VOLUMES_MAX 8

struct host {
    struct rig rig;
    struct dv_volume volumes[VOLUMES_MAX];
    struct dv_volume_plan plan; /* of pod "u1", below rig.dir */
    int n_done;
    enum dv_code code; /* how the last operation ended */
    char msg[DV_ERR_MSG_BYTES];
    const struct dv_voldir_problem *problems; /* of the last set-up */
    size_t n_problems;
};

/* For main: what the tests mount is seen by nobody else and goes with them. False, after saying
 * why, where this is not root with the right to mount: the tests are left out then. */
bool host_may_mount(void);

int host_start(void **state);
int host_end(void **state);
#define host_test(f) cmocka_unit_test_setup_teardown(f, host_start, host_end)

/* Adds a volume with a path of its kind; for files, set them in the result. */
struct dv_volume *host_volume(struct host *host, const char *name, enum dv_volume_kind kind,
                              const char *plugin);

/* Run an operation to its end; host->code and msg tell how it ended. */
void host_set_up(struct host *host);
void host_tear_down(struct host *host, const char *uid);
/* The path that was bound, in the rig's arena; empty when it failed. */
dv_str host_sub_path(struct host *host, const char *volume, const char *sub_path, size_t index);
#define assert_done(host) assert_string_equal((host)->msg, "")

/* Paths below the scratch directory, printed as with printf. */
const char *at(const struct host *host, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Files as tests see them; links are not followed but by read_file. */
void write_file(const char *path, const char *text);
dv_str read_file(struct host *host, const char *path);
mode_t mode_of(const char *path); /* type and permissions; 0 when it is not there */
bool is_there(const char *path);
/* All names in a directory, sorted, joined by blanks. */
dv_str names_in(struct host *host, const char *path);

#endif
