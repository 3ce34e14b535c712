/* sample_dra.h - what the files of davit-sample-dra-driver share.
 *
 *   sample_dra_driver.c     the driver: callbacks, events, signals, main
 *   sample_dra_options.c    the command line
 *   sample_dra_devices.c    which devices there are: published, and their health
 *   sample_dra_claims.c     claims that are prepared: CDI specs, records on the disk
 *   sample_dra_fault.c      mistakes that it makes when asked to
 *   sample_dra_files.c      files that are there whole or not at all
 *   sample_dra_commands.c   what it does on command
 *   sample_program.h        command lines, control sockets: what the samples have in common */
#ifndef SAMPLE_DRA_H
#define SAMPLE_DRA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "davit/dra.h"
#include "sample_program.h"

/* ---- options ---- */

#define SAMPLE_DRA_NUMAS_MAX 64

struct sample_dra_options {
    const char *driver;
    const char *node; /* NULL: $NODE_NAME, or the host's */
    const char *kubeconfig;
    const char *kubelet_dir;
    const char *plugin_dir; /* NULL: <kubelet_dir>/plugins/<driver> */
    const char *instance;
    const char *cdi_dir;
    const char *control;
    const char *model;
    const char *fault; /* a mistake to make; NULL: none */
    const char *taint; /* KEY[=VALUE]:EFFECT, of all devices; NULL: none */
    unsigned flags;    /* DAVIT_DRA_* */
    size_t n_devices;
    size_t n_partitions; /* of each; 0: they are whole */
    unsigned long memory_mib;
    int numas[SAMPLE_DRA_NUMAS_MAX]; /* device after device, from the first again */
    size_t n_numas;
    bool is_shareable;
    unsigned long correct_s; /* 0: the library's */
    bool has_log;
    enum davit_log_level log;
};

/* Returns -1 to go on, or the exit code. */
int sample_dra_options_parse(int argc, char **argv, struct sample_dra_options *options);
/* How many devices there may be. */
#define SAMPLE_DRA_DEVICES_MAX 10000u

/* ---- devices ---- */

struct sample_dra_device {
    char *name; /* "device-0"; a partition: "device-0-part-1" */
    size_t index;
    int part; /* -1: the whole device */
    enum davit_dra_health health;
    char *message; /* of its health; NULL: none */
    char *taint;   /* KEY[=VALUE]:EFFECT; NULL: none */
};

struct sample_dra_devices {
    const struct sample_dra_options *options;
    struct sample_dra_device *v;
    size_t n;
};

void sample_dra_devices_init(struct sample_dra_devices *devices,
                             const struct sample_dra_options *options);
void sample_dra_devices_fini(struct sample_dra_devices *devices);
/* So many of them; those that stay keep their state. */
void sample_dra_devices_resize(struct sample_dra_devices *devices, size_t n);
/* NULL: there is none. */
struct sample_dra_device *sample_dra_devices_find(const struct sample_dra_devices *devices,
                                                  const char *name);
/* False: it is not like KEY[=VALUE]:EFFECT. */
bool sample_dra_taint_check(const char *text);
bool sample_dra_devices_publish(const struct sample_dra_devices *devices, struct davit_dra *dra,
                                const char *pool, struct davit_error *error);
bool sample_dra_devices_tell(const struct sample_dra_devices *devices, struct davit_dra *dra,
                             const char *pool, struct davit_error *error);

/* ---- claims ---- */

/* Each prepared claim has a record in `dir` (UID: "namespace name pool/device ...") and a CDI spec.
 * Instances of the driver share both; the library keeps their calls apart. */
struct sample_dra_claims {
    char *dir;
    const char *cdi_dir;
    const char *driver;
    const char *fault;
};

bool sample_dra_claims_init(struct sample_dra_claims *claims,
                            const struct sample_dra_options *options, const char *plugin_dir);
void sample_dra_claims_fini(struct sample_dra_claims *claims);
/* Writes both, or says why not. A claim that is prepared already is written again. */
bool sample_dra_claims_prepare(const struct sample_dra_claims *claims,
                               const struct davit_dra_claim *claim, struct davit_error *error);
/* The CDI name of a result; to be freed. */
char *sample_dra_cdi_name(const struct sample_dra_claims *claims,
                          const struct davit_dra_claim *claim, size_t result);
/* One that is not prepared is fine. */
bool sample_dra_claims_unprepare(const struct sample_dra_claims *claims,
                                 const struct davit_dra_claim_ref *claim,
                                 struct davit_error *error);
/* "ok N UID=namespace/name:pool/device,... ..." */
void sample_dra_claims_list(const struct sample_dra_claims *claims, FILE *out);

/* ---- files ---- */

/* Puts the text there in one step, and waits until it is on the disk. */
bool sample_file_replace(const char *path, const char *text, struct davit_error *error);
/* One that is not there is fine. */
bool sample_file_remove(const char *path, struct davit_error *error);
bool sample_dir_make(const char *path, struct davit_error *error); /* and those above it */

/* ---- the driver ---- */

/* When it dies, in the next call. */
enum sample_dra_crash {
    SAMPLE_CRASH_NOT,
    SAMPLE_CRASH_START,  /* before anything is done */
    SAMPLE_CRASH_BEFORE, /* all is done, the answer is not sent */
    SAMPLE_CRASH_AFTER,  /* the answer is on its way */
};

#define SAMPLE_HANG_PREPARE 1u
#define SAMPLE_HANG_UNPREPARE 2u

/* A call that gets no answer for now; what it is about lives as long as it. */
struct sample_dra_held {
    struct davit_call *call;
    const struct davit_dra_claim *claim; /* NULL: unprepare */
    struct davit_dra_claim_ref ref;      /* of either */
};

struct sample_dra {
    struct sample_dra_options options;
    char *node;
    char *plugin_dir;
    struct sample_dra_devices devices;
    struct sample_dra_claims claims;
    struct davit_driver *driver;
    struct davit_dra *dra;
    struct sample_control *control;
    struct sample_dra_held *held;
    size_t n_held;
    unsigned hangs; /* SAMPLE_HANG_* */
    char *fails;    /* claims of this name; "*": all; NULL: none */
    enum sample_dra_crash crash;
    size_t n_prepares; /* asked for */
    size_t n_unprepares;
    int crash_fd;
};

/* ---- faults (sample_dra_fault.c) ---- */

/* False: there is no such fault. */
bool sample_dra_fault_check(const char *name);
/* Before anything is opened; ends the program, or changes node and devices. */
void sample_dra_fault_start(struct sample_dra *sample);
/* Before and after the work of a call; false, with the error, fails it. */
bool sample_dra_fault_before(struct sample_dra *sample, const struct sample_dra_held *held,
                             struct davit_error *error);
void sample_dra_fault_after(struct sample_dra *sample, const struct sample_dra_held *held);
/* Changes what is answered for a device; false: it is left out. */
bool sample_dra_fault_answer(const struct sample_dra *sample, struct davit_dra_prepared *prepared);
/* True: the signal is passed over. */
bool sample_dra_fault_signal(const struct sample_dra *sample);

void sample_dra_hang(struct sample_dra *sample, unsigned hangs); /* 0: what is held is answered */
bool sample_dra_push(struct sample_dra *sample, struct davit_error *error);

extern const struct sample_command sample_dra_commands[];
extern const size_t sample_dra_n_commands;

#endif
