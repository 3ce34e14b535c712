/* state_place.h - the state of a node that `davit state` works on, and the kubelet's files beside
 * it. */
#ifndef DV_CLI_STATE_PLACE_H
#define DV_CLI_STATE_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/cli.h"

struct dv_claim_state;
struct dv_device_state;
struct dv_err;
struct dv_loop;
struct dv_store;

#define DV_STATE_FILE_BYTES_MAX (256u << 20)

/* The kubelet's files. */
struct dv_state_paths {
    const char *devices;
    const char *claims;
    const char *health;
};

/* The state, opened as the daemon opens it. */
struct dv_state_place {
    struct dv_cli *cli;
    struct dv_loop *loop;
    struct dv_store *store;
    struct dv_device_state *state;
    struct dv_claim_state *claims;
    size_t n_pods; /* that the store has */
    size_t n_rows; /* that could be used, of all */
};

/* state_import.c: reads the kubelet's files into a state that has no pods yet, and tells what it
 * read. */
bool dv_state_import(struct dv_state_place *place, const struct dv_state_paths *paths,
                     struct dv_err *err);

/* state_backup.c: all of the state as one file, from a davitd that runs, and back while none does.
 */
enum dv_exit dv_state_backup(struct dv_cli *cli, const char *path);
enum dv_exit dv_state_restore(struct dv_cli *cli, const char *path);

#endif
