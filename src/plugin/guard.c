#include "plugin/guard.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "plugin/peer_identity.h"

/* A policy of a thousand rules is smaller. */
#define FILE_BYTES_MAX (1u << 20)
/* How many kinds of refusals are remembered; a new one takes the place of the oldest. */
#define REFUSALS_MAX 32u
/* A refusal is kept with its name and its text; longer ones are cut. */
#define NAME_BYTES 320u
#define TEXT_BYTES 512u
#define GROUP_BYTES 4096u

struct refusal {
    struct dv_guard_refusal view;
    char name[NAME_BYTES];
    char text[TEXT_BYTES];
};

struct dv_guard {
    struct dv_arena *arena; /* holds the policy */
    const struct dv_policy *policy;
    uint64_t counts[DV_N_POLICY_ACTIONS][2]; /* the numbers of refusals and of warnings */
    struct refusal refusals[REFUSALS_MAX];
    size_t n_refusals;
    size_t next; /* the place that is overwritten when all are taken */
    char path[];
};

/* ---- the file ---- */

static bool find_group(void *ctx, dv_str name, gid_t *gid)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    char buffer[GROUP_BYTES];
    struct group group;
    struct group *found = NULL;

    (void)ctx;
    if (getgrnam_r(dv_str_to_c(name, arena), &group, buffer, sizeof(buffer), &found) != 0 || !found)
        return false;
    *gid = found->gr_gid;
    return true;
}

/* Checks who can write the file: whoever can is able to let itself in. */
static bool check_file(const char *path, struct dv_err *err)
{
    struct stat info;

    if (stat(path, &info) < 0)
        return dv_fail_errno(err, errno, "policy %s", path);
    if (!S_ISREG(info.st_mode))
        return dv_fail(err, DV_FAILED_PRECONDITION, "policy %s is not a file", path);
    if (info.st_uid != 0 && info.st_uid != geteuid())
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "policy %s belongs to uid %u; make it root's: chown root %s", path,
                       info.st_uid, path);
    if (info.st_mode & (S_IWGRP | S_IWOTH))
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "policy %s can be written by others (mode %04o); chmod go-w %s", path,
                       info.st_mode & 07777, path);
    return true;
}

bool dv_guard_reload(struct dv_guard *guard, struct dv_err *err)
{
    struct dv_arena *arena = dv_arena_new();
    const struct dv_policy *policy = NULL;
    dv_str text;

    if (check_file(guard->path, err) &&
        dv_file_read(dv_str_from_c(guard->path), FILE_BYTES_MAX, arena, &text, err)) {
        policy = dv_policy_parse(text, find_group, NULL, arena, err);
        if (!policy)
            (void)dv_wrap(err, "policy %s", guard->path);
    }
    if (!policy) {
        dv_arena_free(arena);
        return false;
    }
    dv_arena_free(guard->arena);
    guard->arena = arena;
    guard->policy = policy;
    dv_log(DV_LOG_INFO, "plugin: policy loaded", DV_F_C("file", guard->path),
           DV_F_C("mode", dv_policy_mode_name(dv_policy_mode(policy))),
           DV_F_U64("rules", dv_policy_n_rules(policy)));
    return true;
}

struct dv_guard *dv_guard_open(dv_str path, struct dv_err *err)
{
    struct dv_guard *guard = dv_alloc(sizeof(*guard) + path.n + 1);

    memcpy(guard->path, path.p, path.n);
    if (dv_guard_reload(guard, err))
        return guard;
    dv_guard_free(guard);
    return NULL;
}

void dv_guard_free(struct dv_guard *guard)
{
    if (!guard)
        return;
    dv_arena_free(guard->arena);
    free(guard);
}

/* Returns the policy's mode. Without a guard (NULL) nothing is judged. */
static enum dv_policy_mode mode_of(const struct dv_guard *guard)
{
    return guard ? dv_policy_mode(guard->policy) : DV_POLICY_OFF;
}

/* ---- judgements ---- */

const struct dv_policy_peer *dv_guard_identify(const struct dv_guard *guard,
                                               const struct dv_stream *stream,
                                               struct dv_arena *arena)
{
    return mode_of(guard) == DV_POLICY_OFF ? NULL : dv_peer_identify(stream, arena);
}

static bool is_same(const struct refusal *refusal, enum dv_policy_action action, bool is_warning,
                    dv_str name, dv_str text)
{
    return refusal->view.action == action && refusal->view.is_warning == is_warning &&
           dv_str_eq(refusal->view.name, name) && dv_str_eq(refusal->view.text, text);
}

static dv_str keep(char *to, size_t size, dv_str text)
{
    size_t n = text.n < size ? text.n : size;

    while (n > 0 && n < text.n && ((unsigned char)text.p[n] & 0xc0) == 0x80)
        n--; /* do not cut within a character */
    memcpy(to, text.p, n);
    return (dv_str){to, n};
}

/* Counts a refusal, and returns how often it has happened by now. */
static uint64_t note(struct dv_guard *guard, enum dv_policy_action action, bool is_warning,
                     dv_str name, dv_str text)
{
    struct refusal *refusal;

    name = dv_str_slice(name, 0, NAME_BYTES);
    text = dv_str_slice(text, 0, TEXT_BYTES);
    guard->counts[action][is_warning]++;
    for (size_t i = 0; i < guard->n_refusals; i++)
        if (is_same(&guard->refusals[i], action, is_warning, name, text))
            return ++guard->refusals[i].view.n;
    if (guard->n_refusals < REFUSALS_MAX) {
        refusal = &guard->refusals[guard->n_refusals++];
    } else {
        refusal = &guard->refusals[guard->next];
        guard->next = (guard->next + 1) % REFUSALS_MAX;
    }
    refusal->view = (struct dv_guard_refusal){
        .action = action,
        .is_warning = is_warning,
        .name = keep(refusal->name, NAME_BYTES, name),
        .text = keep(refusal->text, TEXT_BYTES, text),
        .n = 1,
    };
    return 1;
}

/* Prints the peer in terms that a rule can use: "uid 0, unit gpu.service, executable
 * /usr/bin/gpu". */
static dv_str print_peer(const struct dv_policy_peer *peer, struct dv_arena *arena)
{
    dv_str text = peer->has_ids ? dv_str_printf(arena, "uid %u gid %u", peer->uid,
                                                peer->n_gids > 0 ? peer->gids[0] : 0)
                                : DV_STR("an unknown user");

    if (peer->unit.n > 0)
        text = dv_str_printf(arena, "%.*s, unit %.*s", DV_FMT(text), DV_FMT(peer->unit));
    if (peer->executable.n > 0)
        text =
            dv_str_printf(arena, "%.*s, executable %.*s", DV_FMT(text), DV_FMT(peer->executable));
    if (peer->doubt.n > 0)
        text = dv_str_printf(arena, "%.*s (%.*s)", DV_FMT(text), DV_FMT(peer->doubt));
    return text;
}

static const char *const wants[] = {
    [DV_POLICY_DRIVER] = "register the DRA driver",
    [DV_POLICY_RESOURCE] = "register the resource",
    [DV_POLICY_CONNECT] = "be called on the socket",
    [DV_POLICY_CALL] = "call",
};

bool dv_guard_judge(struct dv_guard *guard, const struct dv_policy_peer *peer,
                    enum dv_policy_action action, dv_str name, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = NULL;
    enum dv_policy_mode mode = mode_of(guard);
    struct dv_policy_verdict verdict;
    uint64_t n;
    dv_str who;

    /* Our own driver needs no rule: whoever may start us may say what we offer. */
    if (mode == DV_POLICY_OFF || !peer || peer->pid == getpid())
        return true;
    verdict = dv_policy_judge(guard->policy, peer, action, name);
    if (verdict.is_allowed)
        return true;
    arena = dv_arena_new();
    who = print_peer(peer, arena);
    (void)dv_fail(err, DV_PERMISSION_DENIED,
                  "policy: %s %.*s: %s%.*s does not allow %.*s; add to %s", wants[action],
                  DV_FMT(name), verdict.rule.n ? "rule " : "no rule", DV_FMT(verdict.rule),
                  DV_FMT(who), guard->path);
    n = note(guard, action, mode == DV_POLICY_WARN, name, dv_str_from_c(err->msg));
    /* A refused peer tries for ever, so only the 1st, 2nd, 4th, ... time is logged. */
    if ((n & (n - 1)) == 0)
        dv_log(DV_LOG_WARN,
               mode == DV_POLICY_WARN ? "plugin: the policy would refuse this"
                                      : "plugin: refused by the policy",
               DV_F_C("wants", wants[action]), DV_F_STR("name", name), DV_F_I64("pid", peer->pid),
               DV_F_STR("who", who), DV_F_STR("rule", verdict.rule), DV_F_U64("times", n),
               DV_F_C("policy", guard->path));
    return mode == DV_POLICY_WARN;
}

bool dv_guard_allows(struct dv_guard *guard, const struct dv_stream *stream,
                     enum dv_policy_action action, dv_str name, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = NULL;

    if (mode_of(guard) == DV_POLICY_OFF)
        return true;
    arena = dv_arena_new();
    return dv_guard_judge(guard, dv_guard_identify(guard, stream, arena), action, name, err);
}

/* ---- leases ---- */

bool dv_guard_judge_lease(struct dv_guard *guard, const struct dv_policy_peer *peer, bool is_class,
                          dv_str name, struct dv_policy_grant *grant, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    enum dv_policy_mode mode = mode_of(guard);
    const struct dv_policy_grant free_grant = {.is_allowed = true,
                                               .rule = DV_STR(""),
                                               .devices_max = DV_POLICY_NO_LIMIT,
                                               .seconds_max = DV_POLICY_NO_LIMIT};
    const struct dv_policy_peer nobody = {0};

    *grant = free_grant;
    if (mode == DV_POLICY_OFF)
        return true;
    *grant = dv_policy_judge_lease(guard->policy, peer ? peer : &nobody, is_class, name);
    if (grant->is_allowed)
        return true;
    (void)dv_fail(err, DV_PERMISSION_DENIED, "policy: lease %s%.*s: no rule allows %.*s; add to %s",
                  is_class ? "devices of class " : "", DV_FMT(name),
                  DV_FMT(print_peer(peer ? peer : &nobody, arena)), guard->path);
    if (mode == DV_POLICY_ENFORCE)
        return false;
    *grant = free_grant;
    dv_log(DV_LOG_WARN, "plugin: the policy would refuse this lease", DV_F_ERR(err));
    return true;
}

bool dv_guard_rule_has(const struct dv_guard *guard, dv_str rule, bool is_class, dv_str name)
{
    return mode_of(guard) != DV_POLICY_OFF &&
           dv_policy_rule_has(guard->policy, rule, is_class, name);
}

bool dv_guard_is_admin(const struct dv_guard *guard, const struct dv_policy_peer *peer)
{
    return peer && mode_of(guard) != DV_POLICY_OFF && dv_policy_is_admin(guard->policy, peer);
}

/* ---- what was refused ---- */

const struct dv_guard_refusal *dv_guard_refusal(const struct dv_guard *guard, size_t i)
{
    return guard && i < guard->n_refusals ? &guard->refusals[i].view : NULL;
}

uint64_t dv_guard_count(const struct dv_guard *guard, enum dv_policy_action action, bool is_warning)
{
    return guard->counts[action][is_warning];
}
