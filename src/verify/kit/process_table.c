/* process_table.c - what /proc tells of processes: what those of the driver use, which of them are
 * left, and the end of those that nobody else ends. */
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/num.h"
#include "base/str.h"
#include "verify/kit/trial.h"

#define STAT_BYTES_MAX 4096u
/* The kernel's limit for arguments and environment of most machines. */
#define ENVIRON_BYTES_MAX (2u << 20)

struct stat_line {
    pid_t parent;
    pid_t group;
    char state;
};

/* The name in it may hold anything, brackets too: what counts begins after the last one. */
static bool read_stat(const char *pid, struct dv_arena *arena, struct stat_line *line)
{
    dv_str path = dv_str_printf(arena, "/proc/%s/stat", pid);
    struct dv_err err;
    const char *rest;
    dv_str text;
    int parent;
    int group;

    if (!dv_file_read(path, STAT_BYTES_MAX, arena, &text, &err))
        return false;
    rest = strrchr(dv_str_to_c(text, arena), ')');
    if (!rest ||
        sscanf(rest, ") %c %d %d", &line->state, &parent, &group) != 3) // NOLINT(cert-err34-c)
        return false;
    line->parent = parent;
    line->group = group;
    return true;
}

/* Calls `each` for every process that there is. */
static void each_process(void *ctx,
                         void (*each)(void *ctx, const char *pid, const struct stat_line *line))
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DIR *dir = opendir("/proc");
    const struct dirent *entry;
    struct stat_line line;

    while (dir && (entry = readdir(dir))) {
        dv_arena_reset(arena);
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' &&
            read_stat(entry->d_name, arena, &line))
            each(ctx, entry->d_name, &line);
    }
    if (dir)
        (void)closedir(dir); /* was only read */
}

struct census {
    pid_t group;
    size_t n_members;
    size_t n_descriptors;
    size_t rss_pages;
};

static size_t count_entries(const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    size_t n = 0;

    while (dir && (entry = readdir(dir)))
        n += entry->d_name[0] != '.';
    if (dir)
        (void)closedir(dir); /* was only read */
    return n;
}

static void count(void *ctx, const char *pid, const struct stat_line *line)
{
    struct census *census = ctx;
    size_t total = 0;
    size_t resident = 0;
    char path[64];
    FILE *file;

    if (line->group != census->group || line->state == 'Z')
        return;
    census->n_members++;
    (void)snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
    census->n_descriptors += count_entries(path);
    (void)snprintf(path, sizeof(path), "/proc/%.20s/statm", pid);
    file = fopen(path, "re");
    if (file && fscanf(file, "%zu %zu", &total, &resident) == 2) // NOLINT(cert-err34-c)
        census->rss_pages += resident;
    if (file)
        (void)fclose(file); /* was only read */
}

static struct census take_census(const struct dv_child *process)
{
    struct census census = {.group = process->pid};

    each_process(&census, count);
    return census;
}

size_t dv_child_n_descriptors(const struct dv_child *process)
{
    return take_census(process).n_descriptors;
}

size_t dv_child_rss_kib(const struct dv_child *process)
{
    return take_census(process).rss_pages * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

size_t dv_child_n_members(const struct dv_child *process)
{
    return take_census(process).n_members;
}

/* ---- what is left ---- */

struct strangers {
    pid_t parent;
    const pid_t *known;
    size_t n_known;
    size_t n_found;
};

/* A child of ours that we did not start was left by a driver: it called setsid, and its parent
 * ended. */
static void kill_stranger(void *ctx, const char *pid, const struct stat_line *line)
{
    struct strangers *strangers = ctx;
    uint32_t number;

    if (line->parent != strangers->parent || !dv_str_to_u32(dv_str_from_c(pid), &number))
        return;
    for (size_t i = 0; i < strangers->n_known; i++)
        if (strangers->known[i] == (pid_t)number)
            return;
    strangers->n_found++;
    (void)kill((pid_t)number, SIGKILL);
    (void)waitpid((pid_t)number, NULL, WNOHANG);
}

struct orphans {
    const struct dv_trial *trial;
    pid_t self;
    size_t n;
};

static void count_orphan(void *ctx, const char *pid, const struct stat_line *line)
{
    struct orphans *orphans = ctx;
    uint32_t number;

    if (line->parent != orphans->self || line->state == 'Z' ||
        !dv_str_to_u32(dv_str_from_c(pid), &number))
        return;
    for (size_t i = 0; i < orphans->trial->processes.n; i++)
        if (orphans->trial->processes.v[i]->pid == (pid_t)number ||
            orphans->trial->processes.v[i]->pid == line->group)
            return; /* started here, or counted as a member of that group */
    orphans->n++;
}

size_t dv_trial_n_orphans(const struct dv_trial *trial)
{
    struct orphans orphans = {.trial = trial, .self = getpid()};

    each_process(&orphans, count_orphan);
    return orphans.n;
}

/* Each one's end may bring others: its children become ours. */
void dv_children_end_others(const pid_t *known, size_t n_known)
{
    struct strangers strangers = {.parent = getpid(), .known = known, .n_known = n_known};

    do {
        strangers.n_found = 0;
        each_process(&strangers, kill_stranger);
        if (strangers.n_found > 0)
            (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    } while (strangers.n_found > 0);
}

struct marks {
    const dv_str *roots;
    size_t n_roots;
    struct dv_arena *arena;
    bool has_found;
};

static bool is_marked(const struct marks *marks, dv_str variables)
{
    dv_str variable;

    while (variables.n > 0 && dv_str_split(&variables, '\0', &variable))
        for (size_t i = 0; i < marks->n_roots; i++)
            if (dv_str_starts_with(variable, DV_STR(DV_TRIAL_VARIABLE "=")) &&
                dv_str_eq(dv_str_slice(variable, sizeof(DV_TRIAL_VARIABLE), variable.n),
                          marks->roots[i]))
                return true;
    return false;
}

static void kill_marked(void *ctx, const char *pid, const struct stat_line *line)
{
    struct marks *marks = ctx;
    dv_str path = dv_str_printf(marks->arena, "/proc/%s/environ", pid);
    struct dv_err err;
    uint32_t number;
    dv_str text;

    if (line->state != 'Z' && dv_str_to_u32(dv_str_from_c(pid), &number) &&
        dv_file_read(path, ENVIRON_BYTES_MAX, marks->arena, &text, &err) &&
        is_marked(marks, text)) {
        marks->has_found = true;
        (void)kill((pid_t)number, SIGKILL); /* gone is fine */
    }
    dv_arena_reset(marks->arena);
}

bool dv_processes_end_marked(const dv_str *roots, size_t n_roots)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct marks marks = {.roots = roots, .n_roots = n_roots, .arena = arena};

    each_process(&marks, kill_marked);
    return marks.has_found;
}
