/* engine_words.c - which engine a command is for, and where its options go.
 *
 *     sudo -u ada  podman --root /x  run -d --rm  IMAGE true
 *     `---------'  `-program          |            `- rest
 *      wrapper                        `- options go behind the verb, before those that are there
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "engines/engine_tables.h"
#include "engines/engines.h"

static const char *const names[DV_N_ENGINES] = {
    [DV_ENGINE_PLAIN] = "plain",
    [DV_ENGINE_PODMAN] = "podman",
    [DV_ENGINE_DOCKER] = "docker",
    [DV_ENGINE_NERDCTL] = "nerdctl",
    [DV_ENGINE_RUNC] = "runc",
    [DV_ENGINE_APPTAINER] = "apptainer",
    [DV_ENGINE_SYSTEMD_RUN] = "systemd-run",
};

const char *dv_engine_name(enum dv_engine_kind kind)
{
    return names[kind];
}

/* Finds an engine by its name or that of a program of its kind: "crun" is DV_ENGINE_RUNC. */
static bool find_engine(dv_str name, enum dv_engine_kind *kind)
{
    const struct dv_engine_grammar *grammar = dv_engine_grammar_find(name);

    if (!grammar && !dv_str_eq(name, DV_STR("plain")))
        return false;
    *kind = grammar ? grammar->kind : DV_ENGINE_PLAIN;
    return true;
}

/* The file's name of a path. */
static dv_str base_name(dv_str path)
{
    size_t n = path.n;

    while (n > 0 && path.p[n - 1] != '/')
        n--;
    return dv_str_slice(path, n, path.n);
}

/* ---- programs that run others ---- */

static bool is_assignment(dv_str word)
{
    size_t equals = dv_str_find_char(word, '=');

    return equals > 0 && equals < word.n && word.p[0] != '-' && word.p[0] != '/';
}

/* Reads the options and words of a wrapper; *at is behind its name. False: what follows is not a
 * command that we could find. */
static bool skip_wrapper(struct dv_engine_command *command, const struct dv_engine_wrapper *wrapper,
                         size_t *at)
{
    struct dv_engine_option option;
    bool loses_env = wrapper->loses_env;
    size_t letter = 0;

    while (dv_engine_read_option(command->words, command->n_words, &wrapper->syntax, at, &letter,
                                 &option)) {
        if (dv_engine_is_listed(wrapper->stops, option.name))
            return false;
        if (dv_engine_is_listed(wrapper->clears_env, option.name))
            loses_env = true;
        if (dv_engine_is_listed(wrapper->keeps_env, option.name))
            loses_env = false;
    }
    if (wrapper->clears_env && *at < command->n_words &&
        dv_str_eq(command->words[*at], DV_STR("-"))) { /* env's short word for -i */
        loses_env = true;
        *at += 1;
    }
    while (wrapper->has_assignments && *at < command->n_words && is_assignment(command->words[*at]))
        *at += 1;
    *at += wrapper->n_operands;
    command->loses_env |= loses_env;
    return *at < command->n_words;
}

/* Finds the program that the wrappers run; a program that only looks like one runs by itself. */
static void find_program(struct dv_engine_command *command)
{
    const struct dv_engine_wrapper *wrapper;
    bool loses_env = false;
    size_t at = 0;

    while ((wrapper = dv_engine_wrapper_find(base_name(command->words[at]))) != NULL) {
        at++;
        if (!skip_wrapper(command, wrapper, &at)) {
            command->loses_env = loses_env;
            return;
        }
        command->program = at;
        loses_env = command->loses_env;
    }
}

/* ---- an engine's words ---- */

/* Refuses a machine that is not this one: its devices are others. */
static bool check_place(const struct dv_engine_command *command,
                        const struct dv_engine_option *option, struct dv_err *err)
{
    static const char places[] = "H host url address a";

    if (!dv_engine_is_listed(places, option->name) ||
        (!dv_str_starts_with(option->value, DV_STR("tcp://")) &&
         !dv_str_starts_with(option->value, DV_STR("ssh://"))))
        return true;
    return dv_fail(err, DV_INVALID_ARGUMENT,
                   "%s is told to work on another machine (%.*s); the devices are on this one",
                   names[command->kind], DV_FMT(option->value));
}

static bool is_verb(const struct dv_engine_command *command,
                    const struct dv_engine_grammar *grammar, size_t at)
{
    return at < command->n_words && (dv_engine_is_listed(grammar->verbs, command->words[at]) ||
                                     dv_engine_is_listed(grammar->makers, command->words[at]) ||
                                     dv_engine_is_listed(grammar->groups, command->words[at]));
}

/* Reads what stands before the verb. A switch that we do not know would take the verb for its
 * value: then no verb follows. */
static bool skip_globals(struct dv_engine_command *command, const struct dv_engine_grammar *grammar,
                         size_t *at, struct dv_err *err)
{
    struct dv_engine_option option;
    size_t letter = 0;

    while (dv_engine_read_option(command->words, command->n_words, &grammar->globals, at, &letter,
                                 &option)) {
        if (!check_place(command, &option, err))
            return false;
        if (option.n_words == 2 && is_verb(command, grammar, *at - 1) &&
            !is_verb(command, grammar, *at))
            *at -= 1;
    }
    return true;
}

static bool refuse_verb(const struct dv_engine_command *command,
                        const struct dv_engine_grammar *grammar, size_t at, struct dv_err *err)
{
    const char *name = names[command->kind];
    dv_str word = at < command->n_words ? command->words[at] : DV_STR_NONE;

    if (word.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "%s is told nothing to do", name);
    if (dv_str_eq(word, DV_STR("compose")) || dv_str_eq(word, DV_STR("kube")) ||
        dv_str_eq(word, DV_STR("play")))
        return dv_fail(
            err, DV_INVALID_ARGUMENT,
            "%s %.*s reads its devices from a file: take them with davit lease take, and "
            "name them there",
            name, DV_FMT(word));
    return dv_fail(err, DV_INVALID_ARGUMENT,
                   "%s %.*s starts nothing that could be given devices, only %s %.*s does; with "
                   "--engine plain it runs as it is",
                   name, DV_FMT(word), name,
                   DV_FMT(dv_str_slice(dv_str_from_c(grammar->verbs), 0,
                                       dv_str_find_char(dv_str_from_c(grammar->verbs), ' '))));
}

/* Finds the verb; *at is then behind it. */
static bool read_verb(struct dv_engine_command *command, const struct dv_engine_grammar *grammar,
                      size_t *at, struct dv_err *err)
{
    size_t verb = *at;

    if (verb + 1 < command->n_words && dv_engine_is_listed(grammar->groups, command->words[verb])) {
        command->is_detached = dv_str_eq(command->words[verb], DV_STR("instance"));
        verb++;
    }
    if (verb >= command->n_words || (!dv_engine_is_listed(grammar->verbs, command->words[verb]) &&
                                     !dv_engine_is_listed(grammar->makers, command->words[verb])))
        return refuse_verb(command, grammar, verb, err);
    if (dv_str_eq(command->words[verb], DV_STR("start")) && !command->is_detached)
        return refuse_verb(command, grammar, verb, err);
    command->is_only_made = dv_engine_is_listed(grammar->makers, command->words[verb]);
    if (command->kind == DV_ENGINE_RUNC && dv_str_eq(command->words[verb], DV_STR("create")))
        command->is_detached = true; /* its process is there, and waits */
    *at = verb + 1;
    return true;
}

/* A switch that may be given a value: "--detach=false". */
static bool is_on(const struct dv_engine_option *option)
{
    return !option->has_value ||
           (!dv_str_eq(option->value, DV_STR("false")) && !dv_str_eq(option->value, DV_STR("0")));
}

static bool is_any(const struct dv_engine_option *option, const char *list)
{
    return dv_engine_is_listed(list, option->name);
}

static bool take_container_option(struct dv_engine_command *command,
                                  const struct dv_engine_option *option, struct dv_err *err)
{
    if (is_any(option, "d detach"))
        command->is_detached = is_on(option);
    else if (is_any(option, "cidfile"))
        command->cid_file = option->value;
    else if (is_any(option, "pidfile pid-file") && command->kind != DV_ENGINE_DOCKER)
        command->pid_file = option->value;
    else if (is_any(option, "restart") && option->value.n > 0 &&
             !dv_str_eq(option->value, DV_STR("no")))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "%s would start the container again (--restart %.*s) when its devices are "
                       "somebody else's; let a systemd unit or a quadlet do that, with davit lease "
                       "take",
                       names[command->kind], DV_FMT(option->value));
    return true;
}

static bool take_runc_option(struct dv_engine_command *command,
                             const struct dv_engine_option *option, struct dv_err *err)
{
    if (is_any(option, "d detach"))
        command->is_detached |= is_on(option);
    else if (is_any(option, "pid-file"))
        command->pid_file = option->value;
    else if (is_any(option, "b bundle")) {
        command->bundle = option->value;
        command->bundle_word = option->at;
        command->n_bundle_words = option->n_words;
    } else if (is_any(option, "f config"))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "--config names another file than the bundle's config.json: put it there");
    return true;
}

static bool take_option(struct dv_engine_command *command, const struct dv_engine_option *option,
                        struct dv_err *err)
{
    switch (command->kind) {
    case DV_ENGINE_PODMAN:
    case DV_ENGINE_DOCKER:
    case DV_ENGINE_NERDCTL:
        return take_container_option(command, option, err);
    case DV_ENGINE_RUNC:
        return take_runc_option(command, option, err);
    case DV_ENGINE_APPTAINER:
        command->is_oci |= is_any(option, "oci") && is_on(option);
        if (is_any(option, "pid-file"))
            command->pid_file = option->value;
        return true;
    case DV_ENGINE_SYSTEMD_RUN:
        command->is_scope |= is_any(option, "scope");
        command->is_user |= is_any(option, "user");
        if (is_any(option, "wait t pty P pipe scope"))
            command->is_detached = false;
        if (is_any(option, "u unit"))
            command->unit = option->value;
        return true;
    case DV_ENGINE_PLAIN:
    case DV_N_ENGINES:
        break;
    }
    return true;
}

static bool read_options(struct dv_engine_command *command, const struct dv_engine_grammar *grammar,
                         size_t at, struct dv_err *err)
{
    struct dv_engine_option option;
    size_t letter = 0;

    command->options = at;
    while (dv_engine_read_option(command->words, command->n_words, &grammar->options, &at, &letter,
                                 &option))
        if (!take_option(command, &option, err))
            return false;
    command->rest = at;
    if (at < command->n_words)
        return true;
    return dv_fail(err, DV_INVALID_ARGUMENT, "%s is not told what to start", names[command->kind]);
}

bool dv_engine_parse(const dv_str *words, size_t n_words, dv_str forced,
                     struct dv_engine_command *command, struct dv_err *err)
{
    const struct dv_engine_grammar *grammar;
    enum dv_engine_kind kind;
    size_t at;

    *command =
        (struct dv_engine_command){.words = words, .n_words = n_words, .bundle_word = n_words};
    if (n_words == 0 || words[0].n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "there is no command");
    find_program(command);
    command->options = command->program;
    command->rest = command->program;
    grammar = dv_engine_grammar_find(base_name(words[command->program]));
    if (forced.n > 0) {
        if (!find_engine(forced, &kind))
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "there is no engine \"%.*s\"; there are plain, podman, docker, nerdctl, "
                           "runc, crun, apptainer, singularity and systemd-run",
                           DV_FMT(forced));
        grammar = dv_engine_grammar(kind);
    }
    if (!grammar)
        return true;
    command->kind = grammar->kind;
    command->is_detached = grammar->kind == DV_ENGINE_SYSTEMD_RUN;
    at = command->program + 1;
    if (grammar->verbs &&
        (!skip_globals(command, grammar, &at, err) || !read_verb(command, grammar, &at, err)))
        return false;
    return read_options(command, grammar, at, err);
}

/* ---- versions ---- */

struct dv_engine_version dv_engine_version_parse(dv_str text)
{
    struct dv_engine_version version = {0};
    dv_str line = dv_str_slice(text, 0, dv_str_find_char(text, '\n'));
    dv_str word;

    while (dv_str_split(&line, ' ', &word)) {
        size_t dot = dv_str_find_char(word, '.');
        dv_str minor = dv_str_slice(word, dot + 1, word.n);
        dv_str major = dv_str_slice(word, 0, dot);
        size_t n = 0;

        (void)dv_str_take(&major, 'v');
        while (n < minor.n && minor.p[n] >= '0' && minor.p[n] <= '9')
            n++;
        if (dot < word.n && dv_str_to_u32(major, &version.major) &&
            dv_str_to_u32(dv_str_slice(minor, 0, n), &version.minor))
            return version;
        version = (struct dv_engine_version){0};
    }
    return version;
}
