/* engine_tables.c - the options of engines and of programs that run others, as far as they matter
 * for finding where a command's options end.
 *
 * Options that are not listed take a value with an engine, because most do and new ones are rather
 * like that, and none with the others. */
#include "engines/engine_tables.h"

#include "base/defs.h"
#include "base/num.h"
#include "base/str.h"
#include "engines/engines.h"

static const struct dv_engine_wrapper wrappers[] = {
    {.name = "sudo",
     .syntax =
         {"CDghpRrTtUu",
          "close-from chdir group host prompt chroot role command-timeout type other-user user",
          true},
     .has_assignments = true,
     .loses_env = true,
     .keeps_env = "E preserve-env",
     .stops = "e edit l list s shell i login"},
    {.name = "doas",         .syntax = {"Cu", "", true},                                                        .loses_env = true,                                                                                                                                                                    .stops = "s"},
    {.name = "run0",
     .syntax = {"u", "user group nice chdir slice property setenv", true},
     .loses_env = true},
    {.name = "runuser",                        .syntax = {"ugG", "user group supp-group", true}                           },
    {.name = "env",
     .syntax = {"uC", "unset chdir", true},
     .has_assignments = true,
     .clears_env = "i ignore-environment",
     .stops = "S split-string"},
    {.name = "nice", .syntax = {"n", "adjustment", true}                                                                        },
    {.name = "ionice",                                     .syntax = {"cn", "class classdata", true},                                                                                .stops = "p pid P pgid u uid"                                                                                      },
    {.name = "nohup",                      .syntax = {"", "", true}},
    {.name = "setsid",                       .syntax = {"", "", true}                                 },
    {.name = "time",.syntax = {"fo", "format output", true}             },
    {.name = "timeout",                                     .syntax = {"ks", "kill-after signal", true},                                                                .n_operands = 1                                                                                                                                                                         },
    {.name = "stdbuf",                                     .syntax = {"ioe", "input output error", true}                                                                             },
    {.name = "taskset",                     .syntax = {"", "", true},                                 .n_operands = 1,                                                                                                                                                         .stops = "p pid"},
    {.name = "chrt",
     .syntax = {"TPD", "sched-runtime sched-period sched-deadline", true},
     .n_operands = 1,
     .stops = "p pid"},
    {.name = "numactl",
     .syntax = {"imNCpPw", "interleave membind cpunodebind physcpubind preferred preferred-many",
                true},
     .stops = "s show H hardware"                                                                                                                                             },
    {.name = "flock",
     .syntax = {"wE", "wait timeout conflict-exit-code", true},
     .n_operands = 1,
     .stops = "c command"},
    {.name = "systemd-inhibit",                       .syntax = {"", "what who why mode", true},                                                                            .stops = "list"                                                                                            },
};

/* What the three that speak docker's language have in common. */
#define CONTAINER_LETTERS "ditPqh"
#define CONTAINER_NAMES                                                                            \
    "detach interactive tty publish-all quiet help rm privileged init read-only no-healthcheck "   \
    "oom-kill-disable sig-proxy disable-content-trust use-api-socket env-host http-proxy "         \
    "no-hosts "                                                                                    \
    "no-hostname read-only-tmpfs replace rmi tls-verify passwd unsetenv-all rootfs "               \
    "insecure-registry"

static const struct dv_engine_grammar grammars[] = {
    {.kind = DV_ENGINE_PODMAN,
     .programs = "podman podman-remote",
     .globals = {"rhv", "remote help version noout syslog trace transient-store", false},
     .groups = "container",
     .verbs = "run",
     .makers = "create",
     .options = {CONTAINER_LETTERS, CONTAINER_NAMES, false}},
    {.kind = DV_ENGINE_DOCKER,
     .programs = "docker",
     .globals = {"Dvh", "debug tls tlsverify version help", false},
     .groups = "container",
     .verbs = "run",
     .makers = "create",
     .options = {CONTAINER_LETTERS, CONTAINER_NAMES, false}},
    {.kind = DV_ENGINE_NERDCTL,
     .programs = "nerdctl",
     .globals = {"hv",
                 "debug debug-full insecure-registry experimental kube-hide-dupe help version",
                 false},
     .groups = "container",
     .verbs = "run",
     .makers = "create",
     .options = {CONTAINER_LETTERS, CONTAINER_NAMES, false}},
    {.kind = DV_ENGINE_RUNC,
     .programs = "runc crun youki",
     .globals = {"hv", "debug systemd-cgroup help version", false},
     .verbs = "run create",
     .options = {"dh", "detach no-pivot no-subreaper no-new-keyring keep help", false}},
    {.kind = DV_ENGINE_APPTAINER,
     .programs = "apptainer singularity singularity-ce",
     .globals = {"dhsqv", "debug help nocolor silent quiet verbose version", false},
     .groups = "instance",
     .verbs = "exec run shell start",
     .options = {"cCefhinpsuw",
                 "contain containall cleanenv compat fakeroot help ipc keep-privs net no-eval "
                 "no-home no-https no-init no-oci no-privs no-umask no-userns nv nvccli oci pid "
                 "rocm sharens tmp-sandbox no-tmp-sandbox underlay unsquash userns uts writable "
                 "writable-tmpfs allow-setuid disable-cache",
                 false}},
    {.kind = DV_ENGINE_SYSTEMD_RUN,
     .programs = "systemd-run",
     .options = {"dGhPqrSt",
                 "user system scope remain-after-exit send-sighup no-block wait pty pipe quiet "
                 "collect same-dir shell no-ask-password help version expand-environment "
                 "ignore-failure",
                 false}                             },
};

bool dv_engine_is_listed(const char *list, dv_str word)
{
    dv_str rest = dv_str_from_c(list);
    dv_str name;

    while (word.n > 0 && rest.n > 0 && dv_str_split(&rest, ' ', &name))
        if (dv_str_eq(name, word))
            return true;
    return false;
}

const struct dv_engine_wrapper *dv_engine_wrapper_find(dv_str program)
{
    for (size_t i = 0; i < DV_COUNT(wrappers); i++)
        if (dv_str_eq(dv_str_from_c(wrappers[i].name), program))
            return &wrappers[i];
    return NULL;
}

const struct dv_engine_grammar *dv_engine_grammar_find(dv_str program)
{
    for (size_t i = 0; i < DV_COUNT(grammars); i++)
        if (dv_engine_is_listed(grammars[i].programs, program))
            return &grammars[i];
    return NULL;
}

const struct dv_engine_grammar *dv_engine_grammar(enum dv_engine_kind kind)
{
    for (size_t i = 0; i < DV_COUNT(grammars); i++)
        if (grammars[i].kind == kind)
            return &grammars[i];
    return NULL;
}

/* ---- reading options ---- */

static bool takes_value(const struct dv_engine_syntax *syntax, dv_str name, bool is_letter)
{
    bool is_listed;

    if (is_letter)
        is_listed = dv_str_find_char(dv_str_from_c(syntax->letters), name.p[0]) <
                    dv_str_from_c(syntax->letters).n;
    else
        is_listed = dv_engine_is_listed(syntax->names, name);
    return is_listed == syntax->are_valued;
}

/* "--name", "--name=value", "--name" and a word */
static void read_long(const dv_str *words, size_t n_words, const struct dv_engine_syntax *syntax,
                      size_t *at, struct dv_engine_option *option)
{
    dv_str word = words[*at];
    size_t equals = dv_str_find_char(word, '=');

    *option = (struct dv_engine_option){.at = *at, .n_words = 1};
    option->name = dv_str_slice(word, 2, equals);
    option->has_value = equals < word.n;
    option->value = dv_str_slice(word, equals + 1, word.n);
    if (!option->has_value && takes_value(syntax, option->name, false) && *at + 1 < n_words) {
        option->has_value = true;
        option->value = words[*at + 1];
        option->n_words = 2;
    }
    *at += option->n_words;
}

/* "-d", "-itd", "-vvalue", "-v" and a word */
static void read_letter(const dv_str *words, size_t n_words, const struct dv_engine_syntax *syntax,
                        size_t *at, size_t *letter, struct dv_engine_option *option)
{
    dv_str word = words[*at];
    size_t i = dv_size_max(*letter, 1);

    *option = (struct dv_engine_option){.at = *at, .n_words = 1};
    option->name = dv_str_slice(word, i, i + 1);
    if (!takes_value(syntax, option->name, true)) {
        *letter = i + 1 < word.n ? i + 1 : 0;
        *at += *letter == 0;
        return;
    }
    option->has_value = i + 1 < word.n || *at + 1 < n_words;
    option->value = dv_str_slice(word, i + 1, word.n);
    (void)dv_str_take(&option->value, '=');
    if (i + 1 == word.n && option->has_value) {
        option->value = words[*at + 1];
        option->n_words = 2;
    }
    *letter = 0;
    *at += option->n_words;
}

bool dv_engine_read_option(const dv_str *words, size_t n_words,
                           const struct dv_engine_syntax *syntax, size_t *at, size_t *letter,
                           struct dv_engine_option *option)
{
    dv_str word;

    if (*at >= n_words)
        return false;
    word = words[*at];
    if (*letter == 0 && (word.n < 2 || word.p[0] != '-'))
        return false;
    if (*letter == 0 && word.p[1] == '-') {
        if (word.n == 2) {
            *at += 1;
            return false;
        }
        read_long(words, n_words, syntax, at, option);
        return true;
    }
    read_letter(words, n_words, syntax, at, letter, option);
    return true;
}
