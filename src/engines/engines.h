/* engines.h - how a command that starts something is told which devices to give it.
 *
 *     words of a command --> which engine, and where in the words its options go
 *     what was granted + that --> the words to run instead, and what the process itself gets
 *
 * An engine is what starts containers (podman, docker, nerdctl, runc and its likes, apptainer and
 * singularity), systemd-run, or nothing: then the command is a process of this machine. Nothing
 * here runs an engine or looks at the machine. */
#ifndef DV_ENGINES_H
#define DV_ENGINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "oci/oci.h"

struct dv_arena;
struct dv_err;
struct dv_json;

enum dv_engine_kind {
    DV_ENGINE_PLAIN, /* a process */
    DV_ENGINE_PODMAN,
    DV_ENGINE_DOCKER,
    DV_ENGINE_NERDCTL,
    DV_ENGINE_RUNC, /* and crun, youki: what runs OCI bundles */
    DV_ENGINE_APPTAINER,
    DV_ENGINE_SYSTEMD_RUN,
    DV_N_ENGINES,
};

/* "podman"; "plain" for a process. */
const char *dv_engine_name(enum dv_engine_kind kind);

/* What the words of a command mean. Numbers are places among the words. */
struct dv_engine_command {
    enum dv_engine_kind kind;
    const dv_str *words; /* borrowed */
    size_t n_words;
    size_t program; /* the words before it are of programs that run it: sudo, env, nice */
    size_t options; /* where options for what is started go: behind `run` */
    size_t rest;    /* the first word behind its options: an image, a container's id, a command */
    bool is_only_made; /* `create`: it is not started */
    bool is_detached;  /* the command ends while what it started goes on */
    bool is_scope;     /* systemd-run --scope: the process itself, in another control group */
    bool is_user;      /* systemd-run --user */
    bool is_oci;       /* singularity --oci */
    bool loses_env;    /* a program before it, such as sudo, clears the environment */
    dv_str pid_file;   /* that the words name, or empty */
    dv_str cid_file;
    dv_str bundle;      /* of runc; empty: the folder it is called in */
    size_t bundle_word; /* where it is named, with its option; n_words: nowhere */
    size_t n_bundle_words;
    dv_str unit; /* of systemd-run */
};

/* Reads the words; `forced` is an engine's name that counts more than the program's, or empty.
 * DV_INVALID_ARGUMENT: the engine is not known, or the command starts nothing that could hold
 * devices, and what does. */
DV_CHECKED bool dv_engine_parse(const dv_str *words, size_t n_words, dv_str forced,
                                struct dv_engine_command *command, struct dv_err *err);

/* The version in the first line that a program prints about itself: "podman version 4.3.1". */
struct dv_engine_version {
    uint32_t major; /* 0 with minor 0: not known */
    uint32_t minor;
};
struct dv_engine_version dv_engine_version_parse(dv_str text);

/* What the caller found out about an engine, before names of CDI devices are given to it. */
struct dv_engine_facts {
    struct dv_engine_version version;
    bool has_cdi; /* docker: its daemon has it switched on */
};
/* What must be so that it does, for a message: "podman 4.1 or newer". */
const char *dv_engine_cdi_need(enum dv_engine_kind kind);

/* What was granted. */
struct dv_engine_grant {
    const struct dv_oci_options *options;
    const dv_str *names; /* of CDI devices */
    size_t n_names;
    const struct dv_cdi_edits *edits; /* what the names stand for */
    bool are_names_found;             /* where engines look for CDI specs */
};

struct dv_engine_node {
    dv_str path;      /* where the device is to be */
    dv_str host_path; /* where it is */
    dv_str permissions;
};

struct dv_engine_mount {
    dv_str path;
    dv_str host_path;
    bool is_read_only;
};

/* The command that was made. */
struct dv_engine_plan {
    dv_str *words;
    size_t n_words;
    /* For the process itself, where there is no engine that does it. */
    dv_str *env; /* "NAME=value", each name once */
    size_t n_env;
    struct dv_engine_node *nodes;
    size_t n_nodes;
    struct dv_engine_mount *mounts;
    size_t n_mounts;
    uint32_t *gids;
    size_t n_gids;
    /* What is left out and can be done without, a line each for a person. */
    dv_str *notes;
    size_t n_notes;
};

/* How the command is made. */
struct dv_engine_settings {
    bool is_isolated; /* a process gets a /dev of its own, so that mounts and other paths are
                         possible */
    dv_str pid_file;  /* where the engine is to write the process's number; empty: not */
    dv_str cid_file;  /* docker's: the container's id; empty: not */
    dv_str unit;      /* systemd-run's, where the words have none; empty: it makes one up */
    dv_str bundle;    /* runc: the folder with the edited config */
};

/* Makes the command; all is in `arena`, or borrowed from what came in.
 * DV_FAILED_PRECONDITION: the engine cannot be told something, and which setting changes that. */
DV_CHECKED bool dv_engine_plan(const struct dv_engine_command *command,
                               const struct dv_engine_facts *facts,
                               const struct dv_engine_grant *grant,
                               const struct dv_engine_settings *settings, struct dv_arena *arena,
                               struct dv_engine_plan *plan, struct dv_err *err);

/* The config for another folder than its bundle's: `config` with what was granted, and with the
 * paths that count from the bundle's folder, which is absolute, made absolute. NULL as of
 * dv_oci_apply. */
struct dv_json *dv_engine_bundle_config(const struct dv_json *config, dv_str bundle,
                                        const struct dv_engine_grant *grant,
                                        const struct dv_oci_host *host, struct dv_arena *arena,
                                        struct dv_err *err);

/* Prints the words as a shell reads them, with quotes where one is needed. */
struct dv_buf;
void dv_engine_print_words(const dv_str *words, size_t n_words, struct dv_buf *buf);

#endif
