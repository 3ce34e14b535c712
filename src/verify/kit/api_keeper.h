/* api_keeper.h - the process that keeps one API for all cases of a run, for a driver that runs
 * already. */
#ifndef DV_VERIFY_API_KEEPER_H
#define DV_VERIFY_API_KEEPER_H

struct dv_trial;

/* Opens the API with the address and the token that an earlier run has given in the directory of
 * --attach, or new ones, tells a result as soon as it serves, and does what workers order until it
 * is told to end. */
_Noreturn void dv_keeper_run(struct dv_trial *trial);

#endif
