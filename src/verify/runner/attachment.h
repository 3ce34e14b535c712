/* attachment.h - the directory of --attach while a run uses it: nobody else does, and for DRA
 * drivers a process keeps the API there. */
#ifndef DV_VERIFY_ATTACHMENT_H
#define DV_VERIFY_ATTACHMENT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/defs.h"
#include "base/err.h"
#include "verify/kit/trial.h"

struct dv_attachment {
    struct dv_trial trial; /* the keeper's; its arena is ours */
    int dir_fd;            /* locked; -1: it is not ours */
    int keeper_fd;         /* the keeper tells by it that it serves */
    pid_t keeper;          /* 0: there is none */
};

/* Takes the directory, and starts the keeper for DRA drivers. `model` is a trial as cases have it.
 * False: `err` says why, and nothing is left. */
DV_CHECKED bool dv_attachment_open(struct dv_attachment *attachment, const struct dv_trial *model,
                                   struct dv_err *err);
/* Whether the keeper, where there is one, still runs. False: `err` says how it ended. */
DV_CHECKED bool dv_attachment_check(struct dv_attachment *attachment, struct dv_err *err);
void dv_attachment_close(struct dv_attachment *attachment); /* zeroed memory is fine */

#endif
