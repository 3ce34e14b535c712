/* verify_case.h - a case: what it proves, why it matters, what the protocol says, its steps. */
#ifndef DV_VERIFY_CASE_H
#define DV_VERIFY_CASE_H

#include <stdbool.h>
#include <stddef.h>

#include "verify/verify.h"

struct dv_trial;

/* What a case needs beyond a driver that answers; without it, it is skipped with the reason. */
#define DV_NEEDS_PROCESS 1u   /* the driver is a process of davit's: not with --attach */
#define DV_NEEDS_PREFER 2u    /* the plugin offers GetPreferredAllocation */
#define DV_NEEDS_PRESTART 4u  /* the plugin wants PreStartContainer */
#define DV_NEEDS_HEALTH 8u    /* the driver offers device health */
#define DV_NEEDS_SLICES 16u   /* the driver publishes slices for its node */
#define DV_NEEDS_INSTANCE 32u /* two instances can run: the command line has {instance} */
#define DV_NEEDS_CLASSIC 64u  /* the plugin registers by kubelet.sock */
#define DV_NEEDS_WATCHER 128u /* the plugin registers by a socket in plugins_registry */
#define DV_NEEDS_TWO 256u     /* the driver has two devices or more */
#define DV_NEEDS_RESTART 512u /* ends and starts the driver: with --attach by hooks */

struct dv_verify_case {
    const char *id;       /* "allocate.unknown-id" */
    const char *proves;   /* a sentence that is true of a driver that passes */
    const char *matters;  /* which failure it comes from */
    const char *protocol; /* what the protocol says about it */
    unsigned needs;       /* DV_NEEDS_* */
    bool is_slow;         /* many drivers take half a minute for it: it is begun before others */
    void (*run)(struct dv_trial *trial);
};

/* The cases of one file. */
struct dv_verify_group {
    enum dv_verify_kind kind;
    const struct dv_verify_case *cases;
    size_t n_cases;
};

#endif
